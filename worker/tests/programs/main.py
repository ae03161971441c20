import asyncio, multiprocessing, sqlite3, subprocess, threading, tempfile, random


def square(number):
    return number * number


async def wait():
    await asyncio.sleep(0)
    return 1


if __name__ == "__main__":
    results = []
    threads = [threading.Thread(target=results.append, args=(n,)) for n in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(results) == list(range(8))
    with multiprocessing.Pool(2) as pool:
        assert pool.map(square, range(5)) == [0, 1, 4, 9, 16]
    assert asyncio.run(wait()) == 1
    with sqlite3.connect("state.db") as database:
        database.execute("create table t (x)")
        database.execute("insert into t values (42)")
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x")
    random.SystemRandom().random()
    print(subprocess.run(["expr", "40", "+", "2"], capture_output=True, text=True).stdout.strip())
