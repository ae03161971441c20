"""Proxies between programs: where a network is cut, falls silent or becomes slow."""

import asyncio
import random
import socket
import threading

PASS, CUT, HOLE, SLOW = "pass", "cut", "hole", "slow"
DELAY = 0.4  # seconds that each piece takes on a slow link


def free_port():
    """A port that the system does not assign by itself, so that it is still free later."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Proxy:
    """A link: forwards connections from its port to another port."""

    def __init__(self, loop, target):
        self.loop, self.target, self.port = loop, target, free_port()
        self.mode, self.open = PASS, set()
        start = asyncio.start_server(self._serve, "127.0.0.1", self.port)
        asyncio.run_coroutine_threadsafe(start, loop).result(10)

    def set(self, mode):
        """Changes what the link does. Cutting it ends the connections that are open."""
        self.mode = mode
        if mode == CUT:
            self.loop.call_soon_threadsafe(self._cut)

    def _cut(self):
        for writer in list(self.open):
            writer.transport.abort()

    async def _passable(self):
        while self.mode == HOLE:
            await asyncio.sleep(0.05)

    async def _serve(self, reader, writer):
        self.open.add(writer)
        other = None
        try:
            await self._passable()
            if self.mode == CUT:
                return
            from_other, other = await asyncio.open_connection("127.0.0.1", self.target)
            self.open.add(other)
            await asyncio.gather(self._pump(reader, other), self._pump(from_other, writer))
        except OSError:
            pass
        finally:
            for each in (writer, other):
                if each:
                    self.open.discard(each)
                    each.transport.abort()

    async def _pump(self, reader, writer):
        while True:
            piece = await reader.read(65536)
            if self.mode == SLOW:
                await asyncio.sleep(DELAY)
            await self._passable()
            if not piece:
                # The end of one direction ends both: these protocols need both directions.
                raise ConnectionResetError
            writer.write(piece)
            await writer.drain()


class Network:
    """All proxies, in a separate thread."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def link(self, target):
        return Proxy(self.loop, target)

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)
