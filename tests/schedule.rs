//! `arbiter tournament schedule --dry-run`, as organisers use it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};
use support::{arbiter, run, succeed};

/// The command with `words` after the common arguments.
fn schedule(words: &str) -> Vec<&str> {
    let all = ["tournament", "schedule", "--dry-run"].into_iter();
    all.chain(words.split_whitespace()).collect()
}

/// The JSON objects that the command prints.
fn json_lines(words: &str) -> Vec<Value> {
    let stdout = succeed(&[&schedule(words)[..], &["--json"]].concat());
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The seats of each match, after a check that matches are numbered from 1 and bots from 1 to
/// `bots`.
fn seats(lines: &[Value], bots: u64) -> Vec<Vec<u64>> {
    let tables = (1..).zip(lines).map(|(number, line)| {
        assert_eq!(line["match"], number, "{line}");
        let seats: Vec<u64> = serde_json::from_value(line["seats"].clone()).unwrap();
        assert!(seats.iter().all(|bot| (1..=bots).contains(bot)), "{line}");
        seats
    });
    tables.collect()
}

/// The number of meetings of each pair.
fn meetings(tables: &[Vec<u64>], one: u64, other: u64) -> usize {
    tables.iter().filter(|table| table.contains(&one) && table.contains(&other)).count()
}

#[test]
fn foursomes_are_listed_and_every_pair_meets() {
    let lines = json_lines("--kind foursomes --bots 13 --seed finals");
    assert_eq!(lines[0].as_object().unwrap().keys().collect::<Vec<_>>(), ["match", "seats"]);
    let tables = seats(&lines, 13);
    assert_eq!(tables.len(), 13);
    for one in 1..=13 {
        for other in 1..one {
            assert_eq!(meetings(&tables, one, other), 1, "{one} and {other}");
        }
    }
    assert_eq!(json_lines("--kind foursomes --bots 13 --seed finals"), lines);
    assert_ne!(json_lines("--kind foursomes --bots 13 --seed other"), lines);
}

#[test]
fn pairs_are_listed_with_their_boards() {
    let lines = json_lines("--kind round_robin --bots 5 --legs 2 --sides both");
    assert_eq!(seats(&lines, 5).len(), 40);
    let lines = json_lines("--kind round_robin --bots 6 --boards 8");
    let tables = seats(&lines, 6);
    assert_eq!(tables.len(), 8 * 15);
    for board in 1..=8 {
        assert_eq!(lines.iter().filter(|line| line["board"] == board).count(), 15);
    }
    let first = |one, other| tables.iter().filter(|table| **table == [one, other]).count();
    assert!(
        (1..=6).all(|one| (1..one).all(|other| (first(one, other), first(other, one)) == (4, 4)))
    );
    let plain = succeed(&schedule("--kind round_robin --bots 2 --boards 2"));
    assert_eq!(plain.lines().count(), 2);
    assert!(plain.starts_with("1 on board 1: "), "{plain}");
}

#[test]
fn certificates_prove_the_balance() {
    let lines = json_lines("--kind foursomes --bots 10 --certificate --cost");
    assert_eq!(lines.len(), 15 + 2);
    assert_eq!(lines[15], json!({"cost": {"matches": 15, "fewest_matches": 6, "most_matches": 6}}));
    let certificate = &lines[16]["certificate"];
    assert_eq!(certificate["lambda"], 2);
    assert_eq!(certificate["meetings"], json!([{"times": 2, "pairs": 45}]));
    assert_eq!(certificate["fewest_in_seat"], 1);
    assert_eq!(certificate["most_in_seat"], 2);
    assert_eq!(certificate["verified"], true);
    let stdout = succeed(&schedule("--kind foursomes --bots 38 --games 175 --certificate"));
    assert!(stdout.contains("1 (356 pairs), 2 (347 pairs): all ⌊x⌋ or ⌈x⌉"), "{stdout}");
    assert!(stdout.ends_with("verified: balanced as promised\n"), "{stdout}");
    let stdout = succeed(&schedule("--kind round_robin --bots 7 --boards 3 --certificate"));
    assert_eq!(stdout.matches("board ").count(), 3, "{stdout}");
    assert!(stdout.contains("exactly λ = 3") && stdout.contains("exactly λ = 1"), "{stdout}");
}

#[test]
fn tables_of_any_size_are_listed_and_certified() {
    let lines = json_lines("--kind tables --seats 5 --bots 12 --legs 4 --certificate --cost");
    let tables = seats(&lines[..48], 12);
    for bot in 1..=12 {
        for seat in 0..5 {
            let times = tables.iter().filter(|table| table[seat] == bot).count();
            assert_eq!(times, 4, "bot {bot}, seat {}", seat + 1);
        }
    }
    let cost = json!({"cost": {"matches": 48, "fewest_matches": 20, "most_matches": 20}});
    assert_eq!(lines[48], cost);
    let certificate = &lines[49]["certificate"];
    assert_eq!(certificate["verified"], true);
    let stated = certificate["meetings"].as_array().unwrap();
    for row in stated {
        let pairs = (1..=12).flat_map(|one| (1..one).map(move |other| (one, other)));
        let times = row["times"].as_u64().unwrap();
        let pairs = pairs.filter(|(one, other)| meetings(&tables, *one, *other) as u64 == times);
        assert_eq!(row["pairs"], pairs.count(), "pairs that meet {times} times");
    }
    let stdout = succeed(&schedule("--kind tables --seats 3 --bots 7 --certificate"));
    assert!(stdout.starts_with("7 bots, 70 matches of 3\n"), "{stdout}");
    assert!(stdout.contains("exactly λ = 10"), "{stdout}");
}

#[test]
fn bots_that_play_alone_are_listed_and_certified() {
    let lines = json_lines("--kind solo --bots 3 --legs 2");
    assert_eq!(seats(&lines, 3), [[1], [2], [3], [1], [2], [3]]);
    let stdout = succeed(&schedule("--kind solo --bots 3 --certificate --cost"));
    let expected = "30 matches, 10 for each bot\n3 bots, 30 matches of 1\n\
        matches of a bot:   10\ntimes in a seat:    10, of one bot within 0\n\
        verified: balanced as promised\n";
    assert_eq!(stdout, expected);
}

#[test]
fn each_bot_meets_as_many_others_as_requested() {
    let lines = json_lines("--kind round_robin --bots 20 --opponents 6 --certificate");
    let pairs = seats(&lines[..60], 20);
    for bot in 1..=20 {
        let met = (1..=20).filter(|other| *other != bot && meetings(&pairs, bot, *other) == 1);
        assert_eq!(met.count(), 6, "bot {bot}");
    }
    let certificate = &lines[60]["certificate"];
    let expected = json!([{"times": 0, "pairs": 130}, {"times": 1, "pairs": 60}]);
    assert_eq!((&certificate["meetings"], &certificate["lambda"]), (&expected, &Value::Null));
    assert_eq!(certificate["fewest_opponents"], 6);
    assert_eq!(certificate["most_opponents"], 6);
    assert_eq!(
        (&certificate["adjustment"], &certificate["verified"]),
        (&Value::Null, &json!(true))
    );
    let words = "--kind round_robin --bots 10000 --opponents 64 --certificate --cost";
    let expected = "320000 matches, 64 for each bot\n\
        10000 bots, 320000 matches of 2\n\
        meetings of a pair: 0 (49675000 pairs), 1 (320000 pairs): every bot meets exactly 64 others\n\
        matches of a bot:   64\n\
        times in a seat:    32, of one bot within 0\n\
        sides of a pair:    within 1\n\
        verified: balanced as promised\n";
    assert_eq!(succeed(&schedule(words)), expected);
}

#[test]
fn impossible_numbers_are_rounded_up_and_stated() {
    let meetings = "every pair of bots meets 6 times instead of 4, because 5 bots at tables of four \
        cannot all meet exactly 4 times";
    let stdout = succeed(&schedule("--kind foursomes --bots 5 --meetings 4 --certificate --cost"));
    assert!(stdout.starts_with(&format!("{meetings}\n10 matches, 8 for each bot\n")), "{stdout}");
    assert!(stdout.contains("exactly λ = 6") && stdout.contains("verified"), "{stdout}");
    let lines = json_lines("--kind foursomes --bots 5 --meetings 4 --certificate");
    assert_eq!(lines[10]["certificate"]["adjustment"], meetings);
    let opponents =
        "every bot meets 4 others instead of 3, because 7 bots cannot all meet exactly 3 others";
    let output = run(&schedule("--kind round_robin --bots 7 --opponents 3"));
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 14);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("{opponents}\n"));
}

#[test]
fn costs_are_computed_without_a_plan() {
    let cost = succeed(&schedule("--kind foursomes --bots 65536 --cost"));
    assert_eq!(cost, "357908480 matches, 21845 for each bot\n");
    let cost = succeed(&schedule("--kind foursomes --bots 100 --games 1001 --cost"));
    assert_eq!(cost, "1001 matches, 40 to 41 for each bot\n");
    let cost = succeed(&schedule("--kind round_robin --bots 20 --boards 8 --cost"));
    assert_eq!(cost, "1520 matches, 152 for each bot\n");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut command = arbiter();
    command.args(schedule("--kind foursomes --bots 2000 --json"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("{\"match\":1,"), "{line}");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn invalid_arguments_are_explained() {
    let refuses = |words: &str, says: &[&str]| {
        let output = run(&words.split_whitespace().collect::<Vec<_>>());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}: {stderr}");
        assert!((1..=2).contains(&stderr.lines().count()), "{words}: {stderr}");
        assert!(output.stdout.is_empty(), "{words}");
        assert!(says.iter().all(|part| stderr.contains(part)), "{words}: {stderr}");
    };
    refuses("tournament schedule --kind foursomes --bots 9", &["--dry-run"]);
    let dry = |words: &str, says: &[&str]| {
        refuses(&format!("tournament schedule --dry-run {words}"), says);
    };
    dry("--bots 9", &["--kind", "round_robin, foursomes, tables, solo, knockout, swiss"]);
    dry(
        "--kind league --bots 9",
        &["league", "round_robin, foursomes, tables, solo, knockout, swiss"],
    );
    dry("--kind foursomes", &["--bots"]);
    dry("--kind foursomes --bots many", &["many", "--bots"]);
    dry("--kind foursomes --bots 3", &["tables of four: 3", "at least 4"]);
    dry("--kind round_robin --bots 1", &["robin: 1", "at least 2"]);
    dry("--kind foursomes --bots 70000", &["70000", "65536"]);
    dry("--kind foursomes --bots 12 --meetings 0", &["meetings = 0", "write 1 or more"]);
    dry("--kind foursomes --bots 12 --games -3", &["games = -3", "write 1 or more"]);
    dry("--kind foursomes --bots 12 --games 9 --meetings 3", &["exclude each other"]);
    dry("--kind foursomes --bots 12 --meetings 99999", &["meetings = 99999", "at most 10000"]);
    dry("--kind round_robin --bots 12 --opponents 0", &["--opponents", "0", "1 to 65535"]);
    dry("--kind foursomes --bots 12 --opponents 4", &["--opponents", "foursomes", "--meetings"]);
    dry("--kind foursomes --bots 12 --legs 2", &["--legs", "foursomes", "--meetings"]);
    dry("--kind round_robin --bots 12 --games 5", &["--games", "round_robin", "--legs"]);
    dry("--kind tables --bots 12", &["--seats is missing"]);
    dry("--kind tables --bots 12 --seats 17", &["--seats", "cannot have 17 seats", "2 to 16"]);
    dry("--kind tables --bots 4 --seats 5", &["one table: 4", "at least 5"]);
    dry("--kind tables --bots 12 --seats 5 --games 9", &["--games", "tables", "--seats, --legs"]);
    dry("--kind solo --bots 12 --seats 1", &["--seats", "cannot have 1 seat;", "solo"]);
    dry("--kind solo --bots 12 --sides both", &["--sides", "solo", "--legs"]);
    dry("--kind swiss --bots 12 --games 3", &["3 games", "choose 1, or 2 for both sides"]);
    dry("--kind swiss --bots 12 --panel 3", &["--panel", "swiss", "--rounds"]);
    dry("--kind swiss --bots 12 --seeding rank", &["former stage", "draw or entry"]);
    dry("--kind gauntlet --bots 1", &["a gauntlet: 1", "at least 2"]);
    dry("--file absent.toml --bots 12", &["absent.toml", "No such file"]);
    dry("--file absent.toml --bots 12 --legs 2", &["--legs does not apply to --file"]);
    dry("--kind round_robin --bots 12 --legs 0", &["--legs", "0", "1 to 1000"]);
    dry("--kind round_robin --bots 12 --boards -1", &["--boards", "-1", "1 to 1000"]);
    dry("--kind round_robin --bots 12 --sides left", &["left", "both, random or balanced"]);
}

/// Only the first round is known before the results.
#[test]
fn the_first_round_of_a_knockout_is_listed_and_certified() {
    let words = "--kind knockout --bots 6 --best-of 3 --third-place --certificate --cost";
    let lines = json_lines(words);
    let tables = seats(&lines[..6], 6);
    // Sides are swapped from game to game.
    assert_eq!(tables[0], [tables[1][1], tables[1][0]]);
    assert_eq!(lines[6], json!({"cost": {"matches": {"fewest": 18, "most": 30}}}));
    let certificate = &lines[7]["certificate"];
    assert_eq!((&certificate["rounds"], &certificate["verified"]), (&json!(3), &json!(true)));
    assert_eq!(certificate["byes"].as_array().unwrap().len(), 2);
    assert_eq!(certificate["matches"], json!({"fewest": 18, "most": 30}));
    assert_eq!(json_lines(words), lines);
    let stdout =
        succeed(&schedule("--kind knockout --bots 4 --seeding entry --extra-pairs 0 --cost"));
    assert_eq!(stdout, "6 matches\n");
    let stdout = succeed(&schedule("--kind knockout --bots 5 --seeding entry --certificate"));
    let expected = "5 bots, 3 rounds, matches of 2\n\
        byes:               3 (bots 1, 2, 3), for the best numbers\n\
        first round:        2 matches\n\
        all rounds:         8 to 16 matches\n\
        matches of a bot:   at most 12\n\
        sides of a meeting: within 0\n\
        verified: as promised\n";
    assert_eq!(stdout, expected);
    let output = run(&schedule("--kind knockout --bots 6 --legs 2"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("--legs does not apply to --kind knockout"), "{message}");
}

#[test]
fn schedules_in_rounds_are_listed_and_certified() {
    for (words, matches) in [
        ("--kind swiss --rounds 3 --bots 7", 9),
        ("--kind swiss --rounds 3 --games 2 --accelerated --bots 8", 24),
        ("--kind gauntlet --panel 2 --legs 2 --bots 5", 24),
        ("--kind ladder --rounds 4 --bots 7", 24),
    ] {
        let lines = json_lines(&format!("{words} --certificate --cost"));
        let [.., cost, certificate] = &lines[..] else { panic!("{lines:?}") };
        let bounds = json!({"fewest": matches, "most": matches});
        assert_eq!(*cost, json!({"cost": {"matches": bounds}}), "{words}");
        let certificate = &certificate["certificate"];
        assert_eq!((&certificate["matches"], &certificate["verified"]), (&bounds, &json!(true)));
    }
}

/// The schedule is that of the file, and the number of bots is free.
#[test]
fn the_stages_of_a_tournament_file_are_certified_without_a_tournament() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cup.toml");
    let text = "name = \"cup\"\ngame = \"gomoku\"\n[[stage]]\nkind = \"swiss\"\nrounds = 5\n\
        advance = 4\n[[stage]]\nkind = \"knockout\"\nbest_of = 2\nextra_pairs = 0\n";
    std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let words = format!("--file {path} --bots 20 --cost --certificate");
    let stdout = succeed(&schedule(&words));
    let expected = "56 matches\n20 bots, 7 rounds, matches of 2\n";
    assert!(stdout.starts_with(expected), "{stdout}");
    std::fs::write(&file, text.replace("advance = 4", "advance = 1")).unwrap();
    let output = run(&schedule(&words));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let expected = "line 6: [[stage]] number 1 advance = 1: stage 2 needs 2 or more bots";
    assert!(stderr.contains(expected), "{stderr}");
}
