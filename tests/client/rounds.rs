//! The output of `arbiter tournament rounds`.

use arbiter_proto::v1::{
    GetRoundsResponse, MeetingBot, RoundsStage, StageMeeting, StageRound, StageStanding,
};
use serde_json::{Value, json};

use crate::server::{Script, Server};
use crate::{run, succeed};

fn stage(number: u32, kind: &str, state: &str, bots: u32) -> RoundsStage {
    RoundsStage {
        number,
        kind: kind.into(),
        state: state.into(),
        bots,
        rounds: 2,
        finished_rounds: 1,
        begun_rounds: 2,
        ..RoundsStage::default()
    }
}

/// A Swiss with a bye, and a knockout that has not begun.
fn swiss() -> GetRoundsResponse {
    let bot = |bot: &str, points| MeetingBot { bot: bot.into(), points, ..MeetingBot::default() };
    let row = |rank, bot: &str, points| StageStanding {
        rank,
        tied: rank > 1,
        bot: bot.into(),
        points: Some(points),
        buchholz: Some(0.5),
        sonneborn_berger: Some(0.25),
        number: Some(3),
        ..StageStanding::default()
    };
    let meeting = |bots, matches: &[&str]| StageMeeting {
        bots,
        matches: matches.iter().map(ToString::to_string).collect(),
        ..StageMeeting::default()
    };
    let first = vec![
        meeting(vec![bot("ada", Some(0.5)), bot("b\u{1b}b", Some(0.5))], &["cup/4"]),
        meeting(vec![bot("cyd", Some(1.0))], &[]),
    ];
    let second = vec![meeting(vec![bot("cyd", None), bot("ada", None)], &["cup/5"])];
    let round = |number, over, meetings| StageRound { number, over, meetings };
    GetRoundsResponse {
        edition: 2,
        stages: vec![
            RoundsStage { advance: Some(2), ..stage(1, "swiss", "running", 3) },
            stage(2, "knockout", "planned", 2),
        ],
        stage: 1,
        round: 1,
        counted_rounds: 1,
        columns: vec!["points".into()],
        standings: vec![row(1, "cyd", 1.0), row(2, "ada", 0.5), row(2, "b\u{1b}b", 0.5)],
        rounds: vec![round(1, true, first), round(2, false, second)],
        trf: "012 cup\n".into(),
        ..GetRoundsResponse::default()
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn stages_standings_and_the_round_are_tables() {
    let server = Server::start(Script { rounds: swiss(), ..Script::default() });
    let stdout = succeed(&server, &["tournament", "rounds", "cup"]);
    let lines: Vec<_> = stdout.lines().map(words).collect();
    let expected: [&[&str]; 14] = [
        &["edition", "2", "of", "cup"],
        &["stage", "kind", "state", "bots", "advance", "rounds", "over"],
        &["1", "swiss", "running", "3", "2", "1", "of", "2"],
        &["2", "knockout", "planned", "2", "-", "1", "of", "2"],
        &[],
        &["standings", "of", "stage", "1", "after", "round", "1"],
        &["#", "bot", "number", "points", "Buchholz", "Sonneborn-Berger"],
        &["1", "cyd", "3", "1", "0.5", "0.25"],
        &["=2", "ada", "3", "0.5", "0.5", "0.25"],
        &["=2", "b\u{fffd}b", "3", "0.5", "0.5", "0.25"],
        &[],
        &["round", "1"],
        &["seat", "1", "points", "seat", "2", "points", "matches"],
        &["ada", "0.5", "b\u{fffd}b", "0.5", "cup/4"],
    ];
    assert_eq!(lines[..14], expected, "{stdout}");
    assert_eq!(lines[14..], [["cyd", "1", "bye"]], "only the selected round: {stdout}");
}

#[test]
fn all_rounds_of_a_knockout_are_shown() {
    let bot = |bot: &str, score: &str| MeetingBot {
        bot: bot.into(),
        score: vec![score.into()],
        ..MeetingBot::default()
    };
    let meeting = |winner: &str, decided_by: &str, third_place| StageMeeting {
        bots: vec![bot("ada", "2"), bot("bob", "2")],
        matches: vec!["cup/0".into(), "cup/1".into()],
        winner: winner.into(),
        decided_by: decided_by.into(),
        third_place,
    };
    let rounds = vec![
        StageRound { number: 1, over: true, meetings: vec![meeting("ada", "extra_games", false)] },
        StageRound {
            number: 2,
            over: false,
            meetings: vec![meeting("bob", "number", true), meeting("", "", true)],
        },
    ];
    let stages = vec![stage(1, "knockout", "cancelled", 4)];
    let rounds = GetRoundsResponse { edition: 1, stages, stage: 1, round: 1, rounds, ..swiss() };
    let server = Server::start(Script { rounds, ..Script::default() });
    let stdout = succeed(&server, &["tournament", "rounds", "cup"]);
    let lines: Vec<_> = stdout.lines().map(words).collect();
    let row = "ada 2 bob 2 ada (extra games) cup/0 cup/1";
    assert!(lines.contains(&words(row)), "{stdout}");
    assert!(lines.contains(&vec!["round", "2,", "not", "over"]), "{stdout}");
    let row = "ada 2 bob 2 bob (better number), third place cup/0 cup/1";
    assert!(lines.contains(&words(row)), "{stdout}");
    let row = "ada 2 bob 2 third place cup/0 cup/1";
    assert!(lines.contains(&words(row)), "an undecided meeting has no winner: {stdout}");
}

#[test]
fn json_has_stages_then_the_selection_then_standings_then_rounds() {
    let server = Server::start(Script { rounds: swiss(), ..Script::default() });
    let stdout = succeed(&server, &["tournament", "rounds", "cup", "--round", "1", "--json"]);
    let objects: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let key = |object: &Value| object.as_object().unwrap().keys().next().unwrap().clone();
    let keys: Vec<_> = objects.iter().map(key).collect();
    let standing = "standing";
    let expected = ["stage", "stage", "selected", standing, standing, standing, "round", "round"];
    assert_eq!(keys, expected);
    let selected = json!({"edition": 2, "stage": 1, "round": 1, "counted_rounds": 1,
        "columns": ["points"]});
    assert_eq!(objects[2]["selected"], selected);
    let stage = json!({"edition": 2, "stage": 1, "kind": "swiss", "state": "running", "bots": 3,
        "advance": 2, "advanced": [], "rounds": 2, "finished_rounds": 1,
        "begun_rounds": 2});
    assert_eq!(objects[0]["stage"], stage);
    assert_eq!(objects[3]["standing"]["points"], json!(1.0));
    assert_eq!(objects[3]["standing"]["rating"], Value::Null);
    let bye = json!({"bots": [{"bot": "cyd", "points": 1.0, "score": [], "number": null}],
        "winner": null, "decided_by": null, "third_place": false, "matches": []});
    assert_eq!(objects[6]["round"]["meetings"][1], bye);
}

#[test]
fn a_report_is_printed_as_it_is() {
    let server = Server::start(Script { rounds: swiss(), ..Script::default() });
    let stdout = succeed(&server, &["tournament", "rounds", "cup", "--trf"]);
    assert_eq!(stdout, "012 cup\n");
    let output = run(&server, &["tournament", "rounds", "cup", "--trf", "--json"]);
    assert_eq!(output.status.code(), Some(2), "one output has one format");
}
