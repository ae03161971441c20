//! The client commands with a scripted coordinator: what they print and write, and their exit
//! codes. Other tests use a real coordinator.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod collusion;
mod export;
mod matches;
mod ranking;
mod refusals;
mod rounds;
mod server;
mod submit;
#[path = "../support/mod.rs"]
mod support;
mod tournament;
mod void;

use std::process::{Command, Output};

use arbiter_proto::v1::{
    Edition, GetRankingResponse, LotCount, MatchSeat, MatchStatus, Standing, Tournament,
};
use serde_json::Value;
use server::{Script, Server};

/// A client command for `server`.
fn call(server: &str, arguments: &[&str]) -> Command {
    let mut command = support::arbiter();
    command.args(arguments).env("ARBITER_SERVER", server).env_remove("ARBITER_TOKEN");
    command
}

fn run(server: &Server, arguments: &[&str]) -> Output {
    call(&server.url(), arguments).output().unwrap()
}

/// The output of a command, which must succeed.
fn succeed(server: &Server, arguments: &[&str]) -> String {
    let output = run(server, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// The JSON objects that a command prints.
fn json(server: &Server, arguments: &[&str]) -> Vec<Value> {
    let stdout = succeed(server, arguments);
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Expects exit code `code` and a short message that contains all of `says`.
fn fails(output: &Output, code: i32, says: &[&str]) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!((1..=2).contains(&message.lines().count()), "{message}");
    for part in says {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

/// Expects that nothing in `bytes` controls a terminal.
fn harmless(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap();
    let control = text.chars().find(|c| c.is_control() && !['\n', '\r'].contains(c));
    assert_eq!(control, None, "{text:?}");
}

/// A tournament with two editions.
fn tournament() -> Tournament {
    let lots = [("pending", 12, 120), ("leased", 3, 30), ("aside", 1, 1)];
    let lots = lots.map(|(state, lots, matches)| LotCount { state: state.into(), lots, matches });
    let running = Edition {
        id: 31,
        number: 2,
        state: "running".into(),
        matches: 400,
        counted: 249,
        lots: lots.into(),
        plan: "grown from a plan for 37: 1 joined, 0 left".into(),
        eta_us: Some(1_000_003_600_000_000),
        rate: Some(2.5),
        slots: 8,
        ..Default::default()
    };
    let complete = Edition {
        id: 30,
        number: 1,
        state: "complete".into(),
        official: true,
        matches: 380,
        counted: 380,
        ..Default::default()
    };
    Tournament {
        name: "finals".into(),
        game: "gomoku".into(),
        settings: r#"{"name":"finals","game":"gomoku","schedule":{"kind":"round_robin"}}"#.into(),
        state: "open".into(),
        seed_hash: vec![0xab; 32],
        created_at_us: 1_000_000_000_000_000,
        editions: vec![running, complete],
        ..Default::default()
    }
}

fn place(rank: u32, tied: bool, bot: &str, score: &str) -> Standing {
    Standing {
        rank,
        tied,
        bot: bot.into(),
        version: 2,
        matches: 38,
        score: vec![score.into()],
        mean: 1.25,
        rank_set: None,
        margin: None,
        forfeits: vec![1, 0, 2, 0],
        bad_answers: 0,
        ..Default::default()
    }
}

/// A complete leaderboard of four.
fn board() -> Script {
    let places = vec![
        place(1, false, "ada", "47"),
        place(2, true, "bob", "40"),
        place(2, true, "cyd", "40"),
        Standing {
            forfeits: vec![],
            rank_set: None,
            bad_answers: 3,
            ..place(4, false, "dan", "-3")
        },
    ];
    let board = GetRankingResponse {
        edition: 1,
        official: true,
        matches: 380,
        counted: 380,
        columns: vec!["points".into()],
        ..Default::default()
    };
    Script { tournament: tournament(), board, places, ..Default::default() }
}

/// A match with this number, as it was played in this run of the tournament.
fn played(run: i32, number: i64) -> MatchStatus {
    let seat = |bot: &str, score, forfeit: &str| MatchSeat {
        owner: String::new(),
        bot: bot.into(),
        version: 2,
        score: vec![score],
        forfeit: forfeit.into(),
        bad_answers: 0,
        evidence: None,
        ..Default::default()
    };
    MatchStatus {
        board: None,
        block: None,
        r#match: format!("finals/{number}"),
        tournament: "finals".into(),
        state: "counted".into(),
        seats: vec![seat("ada", 2, ""), seat("bob", 0, "clock")],
        params: String::new(),
        transcript: vec![0x11; 32],
        wall_ms: 1234 + run,
        worker: format!("cellar-{run}"),
        level: "A'".into(),
        faults: vec![],
        failed_leases: 0,
        seed: vec![],
        seed_key: None,
        position: None,
        columns: vec!["points".into()],
        ..Default::default()
    }
}
