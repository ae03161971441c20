//! A tournament of a game package, with a real coordinator and a real worker: it is created from
//! the folder of the package, played, ranked and shown, and played again by changed rules. Its
//! exports are verified elsewhere, without the coordinator and without a network.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod support;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use support::service::done;
use support::up::Up;
use support::{arbiter, files};

const CONNECT4: &str = "games/packages/connect4";

/// More time for a move than a busy machine needs.
const MUCH_TIME: (&str, &str) = ("move = \"500ms\"", "move = \"60s\"");

/// The shipped package.
fn connect4() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(CONNECT4)
}

/// A copy of the package in the new folder `copy`, with these texts of the descriptor replaced.
fn changed(copy: PathBuf, changes: &[(&str, &str)]) -> PathBuf {
    fs::create_dir_all(&copy).unwrap();
    for name in ["rules.py", "drawing.py"] {
        fs::copy(connect4().join(name), copy.join(name)).unwrap();
    }
    let mut descriptor = fs::read_to_string(connect4().join("game.toml")).unwrap();
    for (from, to) in changes {
        assert!(descriptor.contains(from), "{from}");
        descriptor = descriptor.replace(from, to);
    }
    fs::write(copy.join("game.toml"), descriptor).unwrap();
    copy
}

/// Creates the tournament `cup` of the package at `game`, with its bots and more lines in the file.
fn create(up: &Up, game: &Path, more: &str) -> String {
    let text = format!(
        "name = \"cup\"\ngame = \"{}\"\n[params]\ncolumns = 6\n\
         [submissions]\nwindow = \"0ms\"\n{more}",
        game.display()
    );
    let file = up.bots.file("cup.toml", &text);
    up.succeed(&format!("tournament create {file}"))
}

/// The first line of a record.
fn header(record: &str) -> Value {
    serde_json::from_str(record.lines().next().unwrap()).unwrap()
}

/// The scores of a leaderboard.
fn points(board: &[Value]) -> Vec<(Value, Value)> {
    board.iter().map(|line| (line["bot"].clone(), line["score"].clone())).collect()
}

#[test]
fn a_tournament_of_a_package_is_played_ranked_shown_and_replayed_by_new_rules() {
    let up = Up::start_sandboxed(2);
    let created = create(&up, &connect4(), "[schedule]\nlegs = 3\n");
    assert!(created.contains("cup: connect4"), "{created}");
    assert!(created.contains("house bots: blocker, center"), "{created}");
    up.play("cup");

    let board = up.json("ranking cup");
    let bots: Vec<_> = board.iter().filter(|line| line["bot"].is_string()).collect();
    assert_eq!(bots.len(), 2, "{board:?}");
    assert_eq!(bots[0]["bot"], "blocker", "{board:?}");
    assert_eq!(bots[0]["matches"], 6, "{board:?}");
    let shown = up.get("/api/v1/tournaments/cup/matches/0/steps?limit=5");
    assert!(shown.starts_with("HTTP/1.0 200") && shown.contains("svg"), "{shown}");

    // Other rules: everything is played again, and the first board stays.
    let send = |folder: &Path| {
        let command = format!("tournament package cup {}", folder.display());
        let output = up.command(&command).output().unwrap();
        (done(&output), String::from_utf8(output.stderr).unwrap())
    };
    let (same, _) = send(&connect4());
    assert!(same.contains("; the rules are the same, and no match is played again"), "{same}");
    let other = changed(up.bots.path().join("other"), &[("version = \"1\"", "version = \"2\"")]);
    let (sent, warning) = send(&other);
    let before = same.strip_prefix("cup: ").unwrap().split(';').next().unwrap();
    assert!(before.starts_with("connect4 version 1, digest "), "{same}");
    let effect = format!(" (before: {before}); the next edition plays all matches again\n");
    assert!(sent.starts_with("cup: connect4 version 2, ") && sent.ends_with(&effect), "{sent}");
    assert!(!warning.contains("warning"), "{warning}");
    let shown = up.succeed("tournament show cup");
    assert!(shown.contains("\npackage = connect4 version 2, digest "), "{shown}");
    assert!(!shown.contains("house ="), "{shown}");
    let page = up.get("/t/cup/about");
    assert!(
        page.contains("connect4 version 2, digest ") && !page.contains("package.bundle"),
        "{page}"
    );
    up.wait_for("cup", 2);
    let record = |number: i32| up.succeed(&format!("match cup/{number} --record -"));
    assert_ne!(header(&record(0))["package"], header(&record(6))["package"]);
    assert_eq!(points(&up.json("ranking cup --edition 1")), points(&board));
    up.succeed("tournament check cup");

    // A rehearsal is played by the present rules.
    up.succeed("tournament start cup --rehearse");
    up.wait_for("cup-rehearsal-1", 1);
    let shown = up.succeed("tournament show cup-rehearsal-1");
    assert!(shown.contains("\npackage = connect4 version 2, digest "), "{shown}");
    assert_eq!(up.json("ranking cup-rehearsal-1").len(), 2);

    // Other rules of the same version.
    let changes = [("version = \"1\"", "version = \"2\""), MUCH_TIME];
    let (_, warning) = send(&changed(up.bots.path().join("slow"), &changes));
    assert!(warning.contains("warning: the rules have changed but their version"), "{warning}");
}

/// Runs `arbiter verify` in `folder`; without a network, where the test may take it away.
#[expect(clippy::disallowed_methods, reason = "unshare starts the program under test")]
fn verify_in(folder: &Path, arguments: &[&str]) -> Output {
    let program = arbiter().get_program().to_owned();
    let mut command = Command::new("unshare");
    if rustix::process::geteuid().is_root() {
        command.arg("--net").arg(program);
    } else {
        command = Command::new(program);
    }
    command.arg("verify").args(arguments).current_dir(folder).output().unwrap()
}

/// The packages in an export.
fn packages(export: &Path) -> Vec<PathBuf> {
    files(&export.join("packages"))
}

/// A coordinator where two editions of `cup` were played by different packages, and both exports.
struct Exported {
    up: Up,
    /// The folders of both packages.
    games: [PathBuf; 2],
    /// The exports of both editions, in a folder of their own.
    exports: [PathBuf; 2],
}

impl Exported {
    fn new() -> Self {
        let up = Up::start_sandboxed(2);
        let bots = connect4().join("bots");
        let house = ["blocker", "center"].map(|name| bots.join(name).display().to_string());
        let first = changed(up.bots.path().join("first"), &[MUCH_TIME]);
        let version = ("version = \"1\"", "version = \"2\"");
        let second = changed(up.bots.path().join("second"), &[MUCH_TIME, version]);
        create(&up, &first, &format!("[house]\nbots = {house:?}\n"));
        up.play("cup");
        up.succeed(&format!("tournament package cup {}", second.display()));
        up.wait_for("cup", 2);
        up.succeed("tournament close cup");
        let elsewhere = up.directory.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let exports = [1, 2].map(|edition| {
            let out = up.bots.path().join(format!("edition-{edition}"));
            let words = format!("tournament export cup --records --edition {edition} --out");
            up.succeed(&format!("{words} {}", out.display()));
            let moved = elsewhere.join(format!("edition-{edition}"));
            fs::rename(out, &moved).unwrap();
            moved
        });
        Self { up, games: [first, second], exports }
    }
}

#[test]
fn an_export_is_verified_elsewhere_without_a_network() {
    let Exported { up, games, exports } = Exported::new();
    for export in &exports {
        let output = verify_in(export, &["."]);
        let stdout = done(&output);
        assert!(stdout.contains("2 matches follow from the published seed"), "{stdout}");
        assert_eq!(stdout.matches(": ok, ").count(), 3, "{stdout}");
        assert_eq!(packages(export).len(), 1);
        // Only the records, and only one.
        done(&verify_in(export, &["records"]));
        done(&verify_in(&export.join("records"), &["000001.jsonl"]));
    }
    assert_ne!(packages(&exports[0])[0].file_name(), packages(&exports[1])[0].file_name());
    let parent = exports[0].parent().unwrap();
    done(&verify_in(parent, &["."]));

    // A bot meets its recorded match again, by the rules of that edition.
    let record = exports[0].join("records/000000.jsonl");
    let bot = header(&fs::read_to_string(&record).unwrap())["seats"][0]["bot"].clone();
    let bot = connect4().join("bots").join(bot.as_str().unwrap());
    let words = format!("--seat 1 --bot {} --sandbox off", bot.display());
    for of in ["cup/0".to_owned(), format!("--record {}", record.display())] {
        let same = up.succeed(&format!("repro {of} {words}"));
        assert!(same.contains("all the same"), "{same}");
    }

    // The packages may come from elsewhere, too.
    for export in &exports {
        fs::remove_dir_all(export.join("packages")).unwrap();
    }
    let [first, second] = games.each_ref().map(|game| game.to_str().unwrap());
    done(&verify_in(parent, &[".", "--game", first, "--game", second]));
    let output = verify_in(parent, &[".", "--game", second]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stdout.matches(": not checked\n").count(), 2, "{stdout}");
    let digest = header(&fs::read_to_string(&record).unwrap())["package"].clone();
    let digest = digest.as_str().unwrap();
    let needs = format!("connect4 version 1 of digest {digest}, not ");
    assert!(stderr.contains(&needs), "{stderr}");
    let remedy = format!("arbiter tournament package T --out FILE --digest {digest}");
    assert!(stderr.contains(&remedy), "{stderr}");

    // Everybody may download them: the present one, and the one of a digest.
    let download = |words: &str| {
        let mut command = up.command(&format!("tournament package cup {words}"));
        done(&command.env_remove("ARBITER_TOKEN").output().unwrap())
    };
    let into = parent.join("packages");
    fs::create_dir(&into).unwrap();
    download(&format!("--out {}", into.display()));
    let file = into.join("first.tar.zst");
    let printed = download(&format!("--out {} --digest {digest}", file.display()));
    assert!(printed.contains(&format!("connect4 version 1 of digest {digest}")), "{printed}");
    assert_eq!(files(&into).len(), 2);
    done(&verify_in(parent, &[".", "--game", file.to_str().unwrap()]));
    let unknown =
        format!("tournament package cup --out {} --digest {}", into.display(), "0".repeat(64));
    let output = up.command(&unknown).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("there is no game package"), "{stderr}");
    assert_eq!(output.status.code(), Some(2), "{stderr}");
}

#[test]
fn a_changed_package_of_an_export_verifies_nothing() {
    let Exported { up: _up, exports, .. } = Exported::new();
    let [first, second] = exports.each_ref().map(|export| packages(export).remove(0));
    let refused = |cause: &str| {
        let output = verify_in(&exports[0], &["."]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        let file = first.file_name().unwrap().to_str().unwrap();
        assert!(stderr.contains(file) && stderr.contains(cause), "{cause}: {stderr}");
        assert!(stderr.contains("export the tournament again"), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    };
    let mut bytes = fs::read(&first).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&first, &bytes).unwrap();
    refused("");
    fs::copy(&second, &first).unwrap();
    refused("the file was changed, its package has the digest");
}

#[test]
fn tables_of_three_are_played_and_a_new_bot_plays_only_changed_tables() {
    let up = Up::start_sandboxed(2);
    let game = Path::new(env!("CARGO_MANIFEST_DIR")).join("games/packages/rps");
    let text = format!(
        "name = \"trio\"\ngame = \"{}\"\nseed = \"trio\"\n[schedule]\nseats = 3\nlegs = 2\n[params]\n\
         rounds = 5\nframes = false\n[submissions]\nwindow = \"0ms\"\n",
        game.display()
    );
    up.succeed(&format!("tournament create {}", up.bots.file("trio.toml", &text)));
    let chance = game.join("bots/random");
    let submit = |name: &str| {
        up.succeed(&format!("submit trio {} --name {name} --house", chance.display()));
    };
    ["four", "five", "six"].into_iter().for_each(submit);
    let certificate = up.succeed("tournament schedule trio --next --certificate");
    assert!(certificate.contains("6 bots, 12 matches of 3\n"), "{certificate}");
    assert!(certificate.contains("matches of a bot:   6\n"), "{certificate}");
    assert!(certificate.contains("times in a seat:    2, of one bot within 0\n"), "{certificate}");
    up.play("trio");
    let matches = |words: &str| {
        let board = up.json(words).into_iter().filter(|line| line["bot"].is_string());
        board.map(|line| line["matches"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(matches("ranking trio"), [6; 6]);

    // For each leg the new bot takes three seats, and the replaced bots get a table: 8 new ones.
    // Its trial has tables of three as well, with the bot in every seat.
    up.succeed(&format!("submit trio {} --name seven", chance.display()));
    let trial = up.succeed("log trio seven --trial");
    assert!(trial.contains("3 matches"), "{trial}");
    up.wait_for("trio", 2);
    assert_eq!(matches("ranking trio"), [6; 7]);
    let beyond = up.command("match trio/20").output().unwrap();
    assert!(!beyond.status.success(), "more than eight tables were played again");
    let certificate = up.succeed("tournament schedule trio --certificate");
    assert!(certificate.contains("extends a plan for 6 bots: 1 joined, 0 left"), "{certificate}");
    assert!(certificate.contains("7 bots, 14 matches of 3\n"), "{certificate}");
    assert!(certificate.contains("verified: balanced as promised"), "{certificate}");

    let pairs = up.get("/t/trio/matrix");
    assert!(pairs.starts_with("HTTP/1.0 200") && pairs.contains("seven"), "{pairs}");
    up.succeed("tournament collusion trio");
    check_closed(&up, "trio", 14);
}

/// Closes a tournament, derives its plan from the published seed, and verifies its export
/// elsewhere.
fn check_closed(up: &Up, tournament: &str, matches: usize) {
    up.succeed(&format!("tournament close {tournament}"));
    let checked = up.succeed(&format!("tournament check {tournament} --records"));
    assert!(!checked.contains("not derived"), "{checked}");
    let export = up.directory.path().join("export");
    up.succeed(&format!("tournament export {tournament} --records --out {}", export.display()));
    assert_eq!(files(&export.join("records")).len(), matches);
    done(&verify_in(&export, &["."]));
}

/// Rules for one bot: it is told a number from the seed, and gets as many points as its reply.
const SOLO_RULES: &str = "import json, sys
for line in sys.stdin:
    question = json.loads(line)
    if 'new' in question:
        number = int(question['new']['seed'][:2], 16)
        do = [{'ask': 1, 'text': f'number {number}'}]
    else:
        heard = question['heard'][0]
        text = heard.get('text', '')
        if text.isascii() and text.isdigit() and int(text) <= number:
            do = [{'over': [[int(text)]]}]
        elif 'forfeit' in heard:
            do = [{'over': [[0]]}]
        else:
            do = [{'illegal': 1, 'why': 'not a number in reach'}, {'over': [[0]]}]
    print(json.dumps({'do': do}), flush=True)
";

/// Writes a package with rules in Python into the new folder `game`. Each bot replies with the
/// number that it is told, divided by its divisor.
fn write_package(game: PathBuf, descriptor: &str, rules: &str, bots: &[(&str, u32)]) -> PathBuf {
    fs::create_dir_all(&game).unwrap();
    fs::write(game.join("game.toml"), descriptor).unwrap();
    fs::write(game.join("rules.py"), rules).unwrap();
    for (name, divisor) in bots {
        let bot = game.join("bots").join(name);
        fs::create_dir_all(&bot).unwrap();
        let manifest = format!("name = \"{name}\"\nrun = [\"python3\", \"bot.py\"]\n");
        fs::write(bot.join("bot.toml"), manifest).unwrap();
        let program = format!("print(int(input().split()[1]) // {divisor}, flush=True)\ninput()\n");
        fs::write(bot.join("bot.py"), program).unwrap();
    }
    game
}

/// Writes a package for one bot, with two bots: one takes all points, the other half of them.
fn solo_package(folder: &Path) -> PathBuf {
    let descriptor = "name = \"reach\"\ntitle = \"Reach\"\nversion = \"1\"\nseats = [1, 1]\n\
        score = [\"points\"]\nschedule = \"solo\"\nrules = { run = [\"python3\", \"rules.py\"] }\n";
    write_package(folder.join("reach"), descriptor, SOLO_RULES, &[("all", 1), ("half", 2)])
}

#[test]
fn bots_play_a_game_for_one_alone_with_the_same_seeds() {
    let up = Up::start_sandboxed(2);
    let game = solo_package(up.bots.path());
    let file = up.bots.file(
        "alone.toml",
        "name = \"alone\"\ngame = \"reach\"\n[schedule]\nlegs = 4\n[submissions]\n\
         window = \"0ms\"\n",
    );
    let created = up.succeed(&format!("tournament create {file}"));
    assert!(created.contains("house bots: all, half"), "{created}");
    up.play("alone");
    let rows = || {
        let board = up.json("ranking alone").into_iter().filter(|line| line["bot"].is_string());
        board.map(|line| (line["bot"].clone(), line["matches"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(rows(), [("all".into(), 4.into()), ("half".into(), 4.into())]);

    // Both bots get the same problem in each leg, and other problems in other legs.
    let seed = |number: i32| {
        let record = up.succeed(&format!("match alone/{number} --record -"));
        header(&record)["seed"].clone()
    };
    assert_eq!([seed(0), seed(2)], [seed(1), seed(3)]);
    assert_ne!(seed(0), seed(2));

    // A new bot plays its own matches, and no others.
    let all = game.join("bots/all");
    up.succeed(&format!("submit alone {} --name third --house", all.display()));
    up.wait_for("alone", 2);
    assert_eq!(rows().len(), 3);
    assert_eq!([seed(8), seed(9)], [seed(0), seed(2)]);
    let beyond = up.command("match alone/12").output().unwrap();
    assert!(!beyond.status.success(), "matches of other bots were played again");
    check_closed(&up, "alone", 12);
}

/// Rules for up to two bots with purses: each bets a part of the purse, which a bit of the seed
/// doubles or takes.
const PURSE_RULES: &str = "import json, sys
for line in sys.stdin:
    question = json.loads(line)
    if 'new' in question:
        new = question['new']
        assert list(new['params']) == ['purse'], new
        luck = bytes.fromhex(new['seed'])
        purses = new['params']['purse']
        do = [{'ask': seat, 'text': f'purse {purse}'} for seat, purse in enumerate(purses, 1)]
    else:
        over = []
        for heard, purse, chance in zip(question['heard'], purses, luck):
            text = heard.get('text', '')
            bet = min(int(text), purse) if text.isascii() and text.isdigit() else purse
            wins = chance % 2
            over.append([purse + bet if wins else purse - bet, wins])
        do = [{'over': over}]
    print(json.dumps({'do': do}), flush=True)
";

/// Writes a package of episodes, with three bots that bet different parts of their purse.
fn purse_package(folder: &Path, rules: &str) -> PathBuf {
    let descriptor = "name = \"purse\"\ntitle = \"Purse\"\nversion = \"1\"\nseats = [1, 2]\n\
        score = [\"coins\", \"wins\"]\nrules = { run = [\"python3\", \"rules.py\"] }\n\
        [episodes]\nrounds = \"rounds\"\nscore = \"purse\"\nleast = 1\ncolumn = \"broke\"\n\
        [params.rounds]\ntype = \"integer\"\ndefault = 4\nmin = 1\nmax = 9\nhelp = \"rounds\"\n\
        [params.purse]\ntype = \"per_seat\"\ndefault = 64\nmin = 0\nhelp = \"coins\"\n";
    write_package(
        folder.join("purse"),
        descriptor,
        rules,
        &[("all", 1), ("half", 2), ("little", 8)],
    )
}

/// A tournament of three episodes of the package.
fn purse_tournament(up: &Up) -> String {
    let text = "name = \"purse\"\ngame = \"purse\"\nseed = \"purse\"\n[schedule]\nepisodes = 3\n\
        [submissions]\nwindow = \"0ms\"\n";
    up.bots.file("purse.toml", text)
}

#[test]
fn episodes_have_the_same_columns_in_play_and_in_a_tournament() {
    let up = Up::start_sandboxed(2);
    // Without luck: bets of the whole purse lose, and all others win.
    let rules = PURSE_RULES.replace("chance % 2", "int(bet < purse)");
    let game = purse_package(up.bots.path(), &rules);
    up.succeed(&format!("tournament create {}", purse_tournament(&up)));
    up.play("purse");
    let bots = ["all", "half", "little"].map(|name| game.join("bots").join(name));
    let mut call = vec!["play", game.to_str().unwrap(), "--games", "3", "--seed", "purse"];
    call.extend(bots.iter().map(|bot| bot.to_str().unwrap()));
    let played = support::json(&call).pop().unwrap();

    let shown = |lines: &[Value]| -> Vec<Value> {
        let rows = lines.iter().filter(|line| line["bot"].is_string());
        rows.map(|row| json!([row["rank"], row["bot"], row["score"]])).collect()
    };
    let board = up.json("ranking purse");
    assert_eq!(shown(&board), shown(played["ranking"].as_array().unwrap()), "{played}");
    assert_eq!(board[0]["columns"], played["columns"]);
    // In each episode half has 64 · 1.5⁴ coins at the end, and all goes broke in the first round.
    let expected = [json!([1, "half", [972, 12, 0]]), json!([3, "all", [0, 0, -3]])];
    assert_eq!([&shown(&board)[0], &shown(&board)[2]], [&expected[0], &expected[1]]);
    let winner = &played["ranking"][0];
    assert_eq!((&played["unit"], &winner["games"]), (&json!("episode"), &json!(3)));
    assert_eq!(winner["mean"], 324.0, "the mean is over episodes");
}

#[test]
fn bots_carry_their_scores_through_the_episodes_of_a_package() {
    let up = Up::start_sandboxed(2);
    let game = purse_package(up.bots.path(), PURSE_RULES);
    up.succeed(&format!("tournament create {}", purse_tournament(&up)));
    up.play("purse");

    let board = up.json("ranking purse");
    let matches = usize::try_from(board[0]["counted"].as_u64().unwrap()).unwrap();
    check_closed(&up, "purse", matches);

    // A bot begins each of the three episodes with 64 coins and carries its purse through the
    // rounds, so its wins and losses add up to what the leaderboard says.
    let mut coins: HashMap<String, i64> = HashMap::new();
    let mut wins: HashMap<String, i64> = HashMap::new();
    let mut lost_all: HashMap<String, i64> = HashMap::new();
    for path in files(&up.directory.path().join("export/records")) {
        let record = fs::read_to_string(path).unwrap();
        let over: Value = serde_json::from_str(record.lines().last().unwrap()).unwrap();
        let header = header(&record);
        for (index, seat) in header["seats"].as_array().unwrap().iter().enumerate() {
            let bot = seat["bot"].as_str().unwrap().to_owned();
            let purse = &header["params"]["purse"];
            let purse = purse.get(index).unwrap_or(purse).as_i64().unwrap();
            let score = over["scores"][index][0].as_i64().unwrap();
            *coins.entry(bot.clone()).or_insert(3 * 64) += score - purse;
            *wins.entry(bot.clone()).or_default() += over["scores"][index][1].as_i64().unwrap();
            *lost_all.entry(bot).or_default() += i64::from(score == 0);
        }
    }
    for line in board.iter().filter(|line| line["bot"].is_string()) {
        let bot = line["bot"].as_str().unwrap();
        assert_eq!(line["score"], json!([coins[bot], wins[bot], -lost_all[bot]]), "{line}");
    }
    assert!(lost_all["all"] > 0 && lost_all["little"] == 0, "{lost_all:?}");

    // The same on this machine, without a tournament.
    let bots = ["all", "half", "little"].map(|name| game.join("bots").join(name));
    let mut call = vec!["play", game.to_str().unwrap(), "--games", "2"];
    call.extend(bots.iter().map(|bot| bot.to_str().unwrap()));
    let lines = support::json(&call);
    let table = lines.last().unwrap();
    assert_eq!(table["columns"], json!(["coins", "wins", "broke"]));
    for row in table["ranking"].as_array().unwrap() {
        assert_eq!(row["score"].as_array().unwrap().len(), 3, "{row}");
    }
    let won = lines.iter().flat_map(|line| line["scores"].as_array().cloned().unwrap_or_default());
    let won: i64 = won.map(|score| score[1].as_i64().unwrap()).sum();
    let rows = table["ranking"].as_array().unwrap().iter();
    assert_eq!(rows.map(|row| row["score"][1].as_i64().unwrap()).sum::<i64>(), won, "{table}");

    // A number for each seat fits no table of an episode, and too little plays no round.
    for (setting, cause) in [("purse=64,32", "one number for all bots"), ("purse=0", "needs 1")] {
        let output = support::run(&[&call[..], &["--set", setting]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(cause), "{setting}: {stderr}");
    }
}
