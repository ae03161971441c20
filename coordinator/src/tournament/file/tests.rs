use std::io;

use arbiter_games::bitwa::shipped_boards;
use arbiter_games::{Games, blackjack};
use arbiter_proto::limits::Bytes;
use arbiter_schedule::{
    FoursomesConfig, Knockout, Repetitions, RoundRobin, Sides, Solo, TableSeats, Tables,
};

use super::*;
use crate::db::tournaments::Replays;

mod stages;
mod template;

/// Parses a file of this game with these lines. They begin at line 3.
fn file(game: &str, lines: &str) -> Result<TournamentFile, FileError> {
    TournamentFile::parse(
        &Games::built_in(),
        &format!("name = \"cup\"\ngame = \"{game}\"\n{lines}"),
    )
}

fn refusal(game: &str, lines: &str) -> String {
    let error = file(game, lines).unwrap_err().to_string();
    assert!(error.lines().count() <= 2 && error.len() < 300, "{error}");
    error
}

#[test]
fn missing_keys_have_official_values() {
    for game in Games::built_in().iter() {
        let official = TournamentFile::official("cup", game);
        assert_eq!(file(game.as_str(), "").unwrap(), official, "{game}");
    }
    let blackjack = TournamentFile::official("cup", &blackjack::game());
    assert_eq!(blackjack.limits.memory, Bytes::megabytes(256));
    assert_eq!(blackjack.to_json()["params"]["rounds"], 5);
    assert_eq!(blackjack.settings().params.get("rounds"), None);
}

#[test]
fn files_round_trip_as_json() {
    let files = [
        "seed = \"x\"\nrerun = \"manual\"\nexpected = \"2s\"\n[house]\nbots = [\"a\", \"b/c\"]",
        "ponder = \"allow\"\n[clock]\nkind = \"cpu\"\n[limits]\nmemory = \"1GB\"\ncpus = 2",
        "[audit]\nreplay = \"0%\"\nshadow = \"12.5%\"",
        "[submissions]\npreflight = false\nwindow = \"0ms\"\ncloses = \"2027-03-01T12:00:00+01:00\"",
    ];
    for game in Games::built_in().iter() {
        for text in files {
            let parsed = file(game.as_str(), text).unwrap();
            let json = parsed.to_json();
            assert!(json.get("seed").is_none(), "{json}");
            let again = TournamentFile::from_json(&Games::built_in(), &json).unwrap();
            assert_eq!(again, TournamentFile { seed: None, ..parsed });
        }
    }
    let small = "8 6 100 2 ######## #.A..a.# #AA#.aa# #BB.#bb# #.B..b.# ########";
    for boards in
        [format!("[params]\nboard = \"{small}\""), format!("schedule.boards = [\"{small}\"]")]
    {
        let parsed = file("bitwa", &boards).unwrap();
        assert_eq!(
            (parsed.boards.len(), parsed.schedule.clone()),
            (0, Schedule::RoundRobin(rules(Sides::Random, 1)))
        );
        let json = parsed.to_json();
        // A shipped board is stored by its name.
        assert_eq!(json["params"]["board"], "przyklad");
        assert_eq!(TournamentFile::from_json(&Games::built_in(), &json).unwrap(), parsed);
    }
}

fn rules(sides: Sides, boards: i64) -> RoundRobin {
    RoundRobin { sides, boards: boards.try_into().unwrap(), ..RoundRobin::default() }
}

#[test]
fn a_beacon_is_published_after_entry_has_closed() {
    let closes = "[submissions]\ncloses = \"2027-03-01T12:00:00Z\"";
    let parsed = file("tricks", &format!("beacon = \" block 900000 \"\n{closes}")).unwrap();
    assert_eq!(parsed.beacon.as_deref(), Some("block 900000"));
    // The beacon has a separate column in the database.
    assert!(parsed.to_json().get("beacon").is_none());
    let error = refusal("tricks", "beacon = \"block 900000\"");
    assert!(error.starts_with("line 3: beacon") && error.contains("closes"), "{error}");
    for invalid in ["\"\"", "\"  \"", "\"a\\nb\"", "5"] {
        let error = refusal("tricks", &format!("beacon = {invalid}\n{closes}"));
        assert!(error.starts_with("line 3: beacon"), "{error}");
    }
}

#[test]
fn a_title_is_a_line_and_a_description_is_markdown() {
    let text = "title = \" Spring Cup \"\ndescription = \"\"\"\n# Prizes\r\n\n- a cup\n\"\"\"\n";
    let parsed = file("tricks", text).unwrap();
    let expected = Presentation {
        title: Some("Spring Cup".to_owned()),
        description: Some("# Prizes\n\n- a cup".to_owned()),
        replays: Replays::Always,
    };
    assert_eq!(parsed.presentation, expected);
    // They have separate columns in the database.
    let json = parsed.to_json();
    assert!(["title", "description", "public"].iter().all(|key| json.get(key).is_none()));
    let empty = file("tricks", "title = \"\"\ndescription = \" \"").unwrap().presentation;
    assert_eq!((empty.title, empty.description), (None, None));
    let longest = "é".repeat(presentation::MAX_TITLE);
    assert!(file("tricks", &format!("title = \"{longest}\"")).is_ok());
    for (key, value) in [
        ("title", format!("\"{longest}e\"")),
        ("title", "\"a\\nb\"".to_owned()),
        ("description", format!("\"{}\"", "x".repeat(presentation::MAX_DESCRIPTION + 1))),
        ("description", "\"a\\u0000b\"".to_owned()),
        ("description", "5".to_owned()),
    ] {
        let error = refusal("tricks", &format!("{key} = {value}"));
        assert!(error.starts_with(&format!("line 3: {key}")), "{error}");
    }
}

#[test]
fn replays_are_public_unless_the_file_says_otherwise() {
    let replays = |lines| file("tricks", lines).unwrap().presentation.replays;
    assert_eq!(replays(""), Replays::Always);
    assert_eq!(replays("[public]\nreplays = \"after_close\""), Replays::AfterClose);
    assert_eq!(replays("public.replays = \"never\""), Replays::Never);
    let error = refusal("tricks", "[public]\nreplays = \"later\"");
    let expected = "line 4: [public] replays = \"later\": write one of \"never\", \
        \"after_close\", \"always\"";
    assert_eq!(error, expected);
}

#[test]
fn the_seed_is_any_text() {
    assert_eq!(file("tricks", "seed = \"spring\"").unwrap().seed, Some(Seed::of_text("spring")));
    assert_eq!(refusal("tricks", "seed = 5"), "line 3: seed = 5: write a text in quotes, not 5");
}

#[test]
fn schedules_of_all_kinds_are_read() {
    let schedule = |game, lines: &str| file(game, lines).unwrap().schedule;
    let three = Repetitions::try_from(3).unwrap();
    let actual = schedule("gomoku", "[schedule]\nlegs = 3");
    assert_eq!(actual, Schedule::RoundRobin(RoundRobin { legs: three, ..rules(Sides::Both, 1) }));
    let actual = schedule("bitwa", "[schedule]\nboards = [\"pole\", \"maraton\"]");
    assert_eq!(actual, Schedule::RoundRobin(rules(Sides::Random, 2)));
    let actual = schedule("bitwa", "[schedule]\nboards = \"official\"\nsides = \"both\"");
    assert_eq!(actual, Schedule::RoundRobin(rules(Sides::Both, 8)));
    let some = schedule("gomoku", "[schedule]\nopponents = 64");
    let opponents = Some(64.try_into().unwrap());
    assert_eq!(some, Schedule::RoundRobin(RoundRobin { opponents, ..rules(Sides::Both, 1) }));
    let parsed = file("bitwa", "[schedule]\nboards = \"official\"\nopponents = 9").unwrap();
    let json = parsed.to_json();
    assert_eq!(json["schedule"]["opponents"], 9);
    assert_eq!(TournamentFile::from_json(&Games::built_in(), &json).unwrap(), parsed);
    // A coordinator of the previous release refuses unknown keys.
    assert!(file("gomoku", "").unwrap().to_json()["schedule"].get("opponents").is_none());
    let actual = schedule("wojna", "[schedule]\ngames = 30");
    assert_eq!(actual, Schedule::Foursomes(FoursomesConfig::new(None, Some(30)).unwrap()));
    let actual = schedule("wojna", "[params]\nseats = 2\n[schedule]\nkind = \"round_robin\"");
    assert_eq!(actual, Schedule::RoundRobin(RoundRobin::default()));
    let tables = Tables::of(TableSeats::try_from(3).unwrap());
    let actual = schedule("wojna", "[params]\nseats = 3\n[schedule]\nkind = \"tables\"");
    assert_eq!(actual, Schedule::Tables(tables));
    let lines = "[params]\nseats = 3\n[schedule]\nkind = \"tables\"\nseats = 3\nlegs = 3";
    assert_eq!(schedule("wojna", lines), Schedule::Tables(Tables { legs: three, ..tables }));
    let actual = schedule("blackjack", "[schedule]\nepisodes = 3");
    assert_eq!(actual, Schedule::Episodes(arbiter_schedule::Episodes { episodes: three }));
    let knockout = Knockout { best_of: three, third_place: true, ..Knockout::default() };
    let lines = "[schedule]\nkind = \"knockout\"\nbest_of = 3\nthird_place = true";
    assert_eq!(schedule("gomoku", lines), Schedule::Knockout(knockout));
    let lines = format!("[params]\nseats = 2\n{lines}");
    assert_eq!(schedule("wojna", &lines), Schedule::Knockout(knockout));
}

/// Results decide who meets, so no match begins with the files of an earlier one.
#[test]
fn no_files_pass_between_the_matches_of_a_knockout() {
    let knockout = "[schedule]\nkind = \"knockout\"";
    assert_eq!(file("gomoku", knockout).unwrap().state, StateScope::None);
    let error = file("gomoku", &format!("state = \"tournament\"\n{knockout}")).unwrap_err();
    assert!(
        error.to_string().contains("files do not pass between them; write \"none\""),
        "{error}"
    );
}

/// Parses a file of a package with these seats and this default schedule, with these lines.
fn package_file(seats: [usize; 2], schedule: &str, lines: &str) -> Result<Schedule, String> {
    let digest = "0".repeat(64);
    let descriptor = format!(
        "name = 'own'\ntitle = 'Own'\nversion = '1'\nseats = {seats:?}\nschedule = '{schedule}'\n\
         rules = {{ run = ['./rules'] }}"
    );
    let package = format!(
        "[package]\nbundle = \"{digest}\"\ndigest = \"{digest}\"\ndescriptor = \"\"\"{descriptor}\"\"\""
    );
    let file = file("own", &format!("{lines}\n{package}"));
    file.map(|file| file.schedule).map_err(|error| error.to_string())
}

#[test]
fn packages_decide_the_default_schedule() {
    let tables = |seats: i64| Schedule::Tables(Tables::of(seats.try_into().unwrap()));
    assert_eq!(package_file([2, 6], "tables", ""), Ok(tables(6)));
    assert_eq!(package_file([2, 6], "tables", "[schedule]\nseats = 5"), Ok(tables(5)));
    assert_eq!(package_file([2, 6], "round_robin", "[schedule]\nkind = \"tables\""), Ok(tables(6)));
    assert_eq!(package_file([9, 9], "tables", ""), Ok(tables(9)));
    let solo = Schedule::Solo(Solo::default());
    assert_eq!(package_file([1, 1], "solo", ""), Ok(solo.clone()));
    assert_eq!(package_file([1, 3], "tables", "[schedule]\nkind = \"solo\""), Ok(solo.clone()));
    for (seats, lines, cause) in [
        ([2, 6], "[schedule]\nseats = 7", "own: it is a game for 2 to 6; write kind = \"tables\""),
        ([3, 3], "[schedule]\nkind = \"solo\"", "own: it is a game for 3; write kind = \"tables\""),
        ([1, 1], "[schedule]\nkind = \"foursomes\"", "a game for one; write kind = \"solo\""),
        ([9, 9], "state = \"tournament\"", "files pass between tables of at most 8 seats"),
    ] {
        let error = package_file(seats, "tables", lines).unwrap_err();
        assert!(error.contains(cause), "{error}");
    }
}

/// Games, lines of their files, and the expected errors.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "bitwa",
        "[schedule]\nsides = \"bth\"",
        "line 4: [schedule] sides = \"bth\": sides can be both, random or balanced",
    ),
    (
        "bitwa",
        "[schedule]\nlegz = 2",
        "line 4: [schedule] legz = 2: there is no such key; [schedule] of kind round_robin has kind, legs, sides, boards and opponents",
    ),
    (
        "gomoku",
        "[schedule]\nkind = \"league\"",
        "line 4: [schedule] kind = \"league\": the kinds are round_robin, foursomes, tables, solo, episodes, knockout, swiss, gauntlet and ladder",
    ),
    (
        "gomoku",
        "[schedule]\nkind = \"foursomes\"",
        "line 4: [schedule] kind = \"foursomes\": gomoku: it is a game for two; write kind = \"round_robin\"",
    ),
    (
        "blackjack",
        "[schedule]\nkind = \"foursomes\"",
        "line 4: [schedule] kind = \"foursomes\": blackjack: blackjack is played in episodes; write kind = \"episodes\"",
    ),
    (
        "wojna",
        "[schedule]\nkind = \"episodes\"",
        "line 4: [schedule] kind = \"episodes\": wojna: wojna is played by four; write kind = \"foursomes\", or \"round_robin\" and [params] seats = 2",
    ),
    (
        "wojna",
        "[schedule]\nmeetings = 2\ngames = 3",
        "line 3: [schedule]: meetings = 2 and games = 3 exclude each other; keep one of them",
    ),
    (
        "wojna",
        "[params]\nseats = 3",
        "line 4: [params] seats = 3: foursomes seat four; write 4, or 2 and [schedule] kind = \"round_robin\"",
    ),
    (
        "wojna",
        "[schedule]\nkind = \"tables\"\nseats = 3",
        "[params] seats: the tables of [schedule] have 3; write the same number in both",
    ),
    (
        "wojna",
        "[schedule]\nkind = \"tables\"\nseats = 17",
        "line 5: [schedule] seats = 17: a table cannot have 17 seats; choose 2 to 16, or kind solo for bots that play alone",
    ),
    (
        "gomoku",
        "[schedule]\nkind = \"tables\"\nseats = 3",
        "line 5: [schedule] seats = 3: gomoku: it is a game for two; write kind = \"round_robin\"",
    ),
    (
        "gomoku",
        "[schedule]\nkind = \"solo\"",
        "line 4: [schedule] kind = \"solo\": gomoku: it is a game for two; write kind = \"round_robin\"",
    ),
    (
        "wojna",
        "state = \"pairing\"\n[schedule]\nkind = \"tables\"",
        "line 3: state = \"pairing\": the same bots rarely meet again at a table; write \"tournament\" or \"none\"",
    ),
    (
        "wojna",
        "[schedule]\nkind = \"round_robin\"",
        "[params] seats: a round robin seats two; write 2, or 4 and [schedule] kind = \"foursomes\"",
    ),
    (
        "wojna",
        "[params]\ndeck = \"1\"\nseats = 4",
        "line 4: [params] deck = \"1\": deck cannot have 1 cards: 4 seats need at least one each, as in 1-13*8",
    ),
    (
        "wojna",
        "[params]\ndeels = 3",
        "line 4: [params] deels = 3: there is no such key; [params] of wojna has deals, deck, clock and seats",
    ),
    (
        "tricks",
        "[params]\n\ntables = 3",
        "line 5: [params] tables = 3: tables cannot be 3: each deal is played at two tables, with the hands exchanged, so it takes an even number from 2 to 200, as in 100",
    ),
    (
        "tricks",
        "[schedule]\nboards = [\"pole\"]",
        "line 4: [schedule] boards = [\"pole\"]: tricks has no boards; leave it out",
    ),
    (
        "tricks",
        "[schedule]\nlegs = 0",
        "line 4: [schedule] legs = 0: 0 is not possible here; choose a number from 1 to 1000",
    ),
    (
        "gomoku",
        "[schedule]\nopponents = 0",
        "line 4: [schedule] opponents = 0: 0 is not possible here; choose a number from 1 to 65535, or leave it out for all pairs",
    ),
    (
        "wojna",
        "[schedule]\nmeetings = 20000",
        "line 4: [schedule] meetings = 20000: meetings = 20000 is not possible; write at most 10000",
    ),
    (
        "bitwa",
        "[params]\nboard = \"poel\"",
        "line 4: [params] board = \"poel\": there is no board \"poel\"; the boards are pole, korytarze, labirynt, drobnica, kolosy, twierdze, maraton, rumowisko, przyklad, as in pole",
    ),
    (
        "bitwa",
        "[schedule]\nboards = [\"pole\", \"3 3 5 1 ### #A# ##\"]",
        "line 4: [schedule] boards = [\"pole\",\"3 3 5 1 ### #A# ##\"]: board 2: row 2 of the board has 2 squares instead of 3",
    ),
    (
        "bitwa",
        "[schedule]\nboards = 8",
        "line 4: [schedule] boards = 8: write a list of boards, as in [\"pole\", \"maraton\"], or \"official\"",
    ),
    (
        "bitwa",
        "[schedule]\nboards = []",
        "line 4: [schedule] boards = []: 0 boards are not possible; name 1 to 1000 of them",
    ),
    (
        "bitwa",
        "[params]\nboard = \"pole\"\n[schedule]\nboards = \"official\"",
        "line 6: [schedule] boards = \"official\": [params] board already names the board of all matches; keep one of the two",
    ),
    (
        "blackjack",
        "[params]\nchips = [1, 2]",
        "line 3: [params]: chips = 1,2: in an episode it is one number for all bots, 1000000000000 at most",
    ),
    ("gomoku", "clock = 5", "line 3: clock = 5: it must be a section; write [clock]"),
    (
        "gomoku",
        "[clock]\nmargin = \"5\"",
        "line 4: [clock] margin = \"5\": `5` is not a duration: write a whole number and a unit, as in 500ms, 2s, 15min or 1h",
    ),
    (
        "gomoku",
        "[limits]\nmemory = \"10kB\"",
        "line 4: [limits] memory = \"10kB\": too little memory to run a program; write 1 MB or more",
    ),
    (
        "gomoku",
        "[limits]\ndisk = \"0B\"",
        "line 4: [limits] disk = \"0B\": too little disk space for a program; write 1 MB or more",
    ),
    (
        "gomoku",
        "[limits]\nprocesses = 0",
        "line 4: [limits] processes = 0: a bot needs several processes; write 4 to 32768",
    ),
    (
        "gomoku",
        "[limits]\nfiles = 0",
        "line 4: [limits] files = 0: a bot's working directory needs some files; write 16 or more",
    ),
    (
        "gomoku",
        "[limits]\ndescriptors = 3",
        "line 4: [limits] descriptors = 3: too few descriptors to start a program; write 8 or more",
    ),
    (
        "gomoku",
        "[limits]\ncpus = 0",
        "line 4: [limits] cpus = 0: a bot runs on 1 to 1024 processors",
    ),
    (
        "gomoku",
        "[limits]\nswap = 0",
        "line 4: [limits] swap = 0: there is no such key; [limits] has memory, processes, disk, files, descriptors and cpus",
    ),
    (
        "gomoku",
        "[submissions]\ncloses = \"soon\"",
        "line 4: [submissions] closes = \"soon\": write a date and a time in quotes, as in \"2027-03-01T12:00:00Z\"",
    ),
    (
        "gomoku",
        "[submissions]\nwindow = \"25h\"",
        "line 4: [submissions] window = \"25h\": write a time from 0ms to 24h",
    ),
    (
        "gomoku",
        "[submissions]\nstand_down_percent = 101",
        "line 4: [submissions] stand_down_percent = 101: write 0 to 100; with 100 no bot is suspended",
    ),
    (
        "gomoku",
        "[submissions]\nstand_down_after = 0",
        "line 4: [submissions] stand_down_after = 0: write 1 or more; without matches there is no share of forfeits",
    ),
    (
        "gomoku",
        "[submissions]\nseparate_owners = true",
        "line 4: [submissions] separate_owners = true: only kind = \"foursomes\" keeps owners apart; leave it out",
    ),
    (
        "gomoku",
        "colour = 1",
        "line 3: colour = 1: there is no such key; at the top there are name, title, description, game, seed, beacon, state, ponder, rerun and expected, and the sections params, schedule, clock, limits, submissions, public, audit, house and package and [[stage]]",
    ),
    (
        "gomoku",
        "state = \"all\"",
        "line 3: state = \"all\": write \"none\", \"pairing\" or \"tournament\", not \"all\"",
    ),
    (
        "tricks",
        "state = \"pairing\"",
        "line 3: state = \"pairing\": each pair meets once, so there is no next match; write sides = \"both\" or more legs",
    ),
    (
        "wojna",
        "state = \"pairing\"",
        "line 3: state = \"pairing\": the same four bots rarely meet again; write \"tournament\" or \"none\"",
    ),
    (
        "blackjack",
        "state = \"tournament\"",
        "line 3: state = \"tournament\": episodes are played at the same time, so no match is the next one; write \"none\"",
    ),
    (
        "gomoku",
        "expected = \"0s\"",
        "line 3: expected = \"0s\": write a time from 1us to 24h, or leave it out",
    ),
    (
        "gomoku",
        "[house]\nbots = \"a\"",
        "line 4: [house] bots = \"a\": write a list, as in [\"a\", \"b\"], not \"a\"",
    ),
    (
        "gomoku",
        "[submissions]\nper_hour = \"abc\"",
        "line 4: [submissions] per_hour = \"abc\": write a whole number, not \"abc\"",
    ),
    (
        "gomoku",
        "[submissions]\nper_hour = -1",
        "line 4: [submissions] per_hour = -1: write a whole number from 0 to 4294967295, not -1",
    ),
    (
        "gomoku",
        "[clock]\nmargin = 5",
        "line 4: [clock] margin = 5: write a text in quotes, as in margin = \"20ms\"",
    ),
    (
        "gomoku",
        "[clock]\nkind = \"sun\"",
        "line 4: [clock] kind = \"sun\": write \"wall\" or \"cpu\", not \"sun\"",
    ),
    (
        "blackjack",
        "[params]\nchips = [1, \"a\"]",
        "line 4: [params] chips = [1,\"a\"]: chips: `a` is not a whole number; write whole numbers, as in 120,0,305",
    ),
    (
        "chess",
        "",
        "line 2: game = \"chess\": there is no game `chess`; the games are wojna, bitwa, tricks, blackjack and gomoku; or name the folder of a game package",
    ),
    (
        "gomoku",
        "state = ",
        "line 3: the tournament file: it is not TOML: string values must be quoted, expected literal string",
    ),
    ("gomoku", "game = \"bitwa\"", "line 3: the tournament file: it is not TOML: duplicate key"),
];

#[test]
fn errors_name_the_key_and_its_line() {
    for (game, lines, expected) in WRONG {
        assert_eq!(refusal(game, lines), *expected, "{lines}");
    }
}

#[test]
fn a_name_and_a_game_are_needed() {
    let refusal =
        |text: &str| TournamentFile::parse(&Games::built_in(), text).unwrap_err().to_string();
    assert_eq!(refusal("game = \"gomoku\""), "name: it is missing; every tournament has one");
    assert_eq!(
        refusal("name = \"cup\""),
        "game: it is missing; the games are wojna, bitwa, tricks, blackjack and gomoku"
    );
    for name in ["", "a b", "..", "zażółć", &"x".repeat(65)] {
        let error = refusal(&format!("name = \"{name}\"\ngame = \"gomoku\""));
        assert!(error.starts_with("line 1: name"), "{error}");
        let says = "use 1 to 64 of A-Z a-z 0-9 . _ - but not `.` or `..`";
        assert!(error.ends_with(says), "{error}");
    }
}

/// The files in the folder of the tournament file.
fn folder(path: &str) -> io::Result<String> {
    match path {
        "boards/small.bit" => Ok("; small\n3 2 9 1\n#A.\n.a#\n".to_owned()),
        "wrong.bit" => Ok("3 2 9 1 #A. .a".to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

#[test]
fn paths_of_boards_are_replaced_with_the_boards() {
    let inline = |boards: &str| {
        let text =
            format!("name = \"x\" # mine\ngame = \"bitwa\"\n{boards}\n[house]\nbots = [\"a\"]");
        TournamentFile::inline(&Games::built_in(), &text, folder)
    };
    let inlined = inline("schedule.boards = [\"pole\", 'boards/small.bit', \"boards/small.bit\"]");
    let inlined = inlined.unwrap();
    assert!(inlined.contains("[\"pole\", \"3 2 9 1 #A. .a#\", \"3 2 9 1 #A. .a#\"]"), "{inlined}");
    assert!(inlined.starts_with("name = \"x\" # mine\n"), "{inlined}");
    assert_eq!(TournamentFile::parse(&Games::built_in(), &inlined).unwrap().boards.len(), 3);
    let inlined = inline("[params]\nboard = \"boards/small.bit\"").unwrap();
    assert!(inlined.contains("board = \"3 2 9 1 #A. .a#\"\n"), "{inlined}");
    // Names, boards in the notation of the game, and files of other games stay the same.
    for boards in ["schedule.boards = \"official\"", "[params]\nboard = \"3 2 9 1 #A. .a#\""] {
        assert!(inline(boards).unwrap().contains(boards));
    }
    assert_eq!(
        TournamentFile::inline(&Games::built_in(), "game = \"gomoku\"", folder).unwrap(),
        "game = \"gomoku\""
    );
    assert_eq!(
        inline("[params]\nboard = \"wrong.bit\"").unwrap_err().to_string(),
        "line 4: [params] board: wrong.bit: row 1 of the board has 2 squares instead of 3"
    );
    let names: Vec<_> = shipped_boards().map(|(name, _)| name).collect();
    assert_eq!(
        inline("schedule.boards = [\n\"pole\",\n\"gone.bit\"]").unwrap_err().to_string(),
        format!(
            "line 5: [schedule] boards: gone.bit: neither a shipped board ({}) nor a readable \
            file: entity not found",
            names.join(", ")
        )
    );
}

#[test]
fn invalid_json_is_refused() {
    let error = TournamentFile::from_json(&Games::built_in(), &json!([])).unwrap_err().to_string();
    assert_eq!(error, "the tournament file: it must be stored as an object");
}

#[test]
fn audits_are_shares() {
    let audit = |lines| file("tricks", lines).unwrap().audit;
    assert_eq!(audit(""), Audit { replay: Share::percent(5), shadow: Share::percent(1) });
    let none = Audit { replay: Share::percent(0), shadow: Share::ALL };
    assert_eq!(audit("[audit]\nreplay = \"0%\"\nshadow = \"100%\""), none);
    let cause = "write a share from \"0%\" to \"100%\" with at most two decimals, as in \"5%\"";
    let error = refusal("tricks", "[audit]\nshadow = \"101%\"");
    assert_eq!(error, format!("line 4: [audit] shadow = \"101%\": {cause}"));
    let error = refusal("tricks", "[audit]\nshadow = \"1%\"\nreplay = 5");
    assert_eq!(error, format!("line 5: [audit] replay = 5: {cause}"));
    let error = refusal("tricks", "[audit]\nrepeat = \"1%\"");
    assert!(error.contains("there is no such key; [audit] has replay and shadow"), "{error}");
}

/// A limit of a later release says nothing about a stored file.
#[test]
fn stored_files_keep_numbers_that_new_files_cannot_have() {
    let file = file("wojna", "").unwrap();
    let mut stored = file.to_json();
    stored["schedule"]["meetings"] = json!(20_000);
    let read = TournamentFile::from_json(&Games::built_in(), &stored).unwrap();
    assert_eq!(read.to_json(), stored);
}
