//! `arbiter tournament …`, except `create` and `export`.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use arbiter_proto::v1::{
    Beacon, Bot, Certificate, CheckEditionResponse, Edition, EditionEstimate, PairCount,
    SetAsideMatch,
};
use serde_json::json;

use crate::server::{Script, Server};
use crate::{board, call, fails, run, succeed, tournament};

/// The same rules fail at two questions.
const BOOM: &str = "the rules failed: oops; asked: boom";
const BANG: &str = "the rules failed: oops; asked: bang";

#[test]
fn tournaments_are_listed_and_shown() {
    // The kind of a fault matters, not its text.
    let aside = [
        ("finals/5", "system", "host\u{7} stalled"),
        ("finals/6", "rules", BOOM),
        ("finals/8", "rules", BANG),
        ("finals/9", "system", BOOM),
    ];
    let aside = aside.map(|(name, kind, reason)| SetAsideMatch {
        r#match: name.into(),
        reasons: vec![reason.into(); 3],
        kind: kind.into(),
    });
    let server = Server::start(Script { aside: aside.into(), ..board() });
    let table = succeed(&server, &["tournament", "list"]);
    let row: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
    let expected = "finals gomoku open 2001-09-09 01:46:40 UTC edition 2: 249 of 400, complete about \
        2001-09-09 02:46:40 UTC at 2.5 matches a second";
    assert_eq!(row.join(" "), expected);
    let line = &crate::json(&server, &["tournament", "list", "--json"])[0];
    assert_eq!((&line["tournament"], line.get("editions")), (&json!("finals"), None));
    assert_eq!((&line["running"]["edition"], &line["running"]["rate"]), (&json!(2), &json!(2.5)));
    let stdout = succeed(&server, &["tournament", "show", "finals"]);
    let parts = [
        "finals: gomoku, open, created 2001-09-09 01:46:40 UTC",
        &format!("seed hash {}", "ab".repeat(32)),
        "schedule = {\"kind\":\"round_robin\"}",
        "12 queued, 3 playing, 1 set aside",
        "complete, official",
        "edition 2 will be complete about 2001-09-09 02:46:40 UTC at 2.5 matches a second; 8 slots",
        "edition 2: grown from a plan for 37: 1 joined, 0 left",
        "\n\n1 match set aside: host\u{fffd} stalled\n  retry with arbiter tournament retry MATCH: \
         finals/5\n2 matches set aside, first finals/6: the rules failed: oops; asked: boom\n  \
         correct the rules and send them: arbiter tournament package finals DIR\n\
         1 match set aside: the rules failed: oops; asked: boom\n  retry with",
    ];
    for part in parts {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    let is_seed = |line: &str| line.starts_with("seed ") && !line.starts_with("seed hash ");
    assert!(!stdout.lines().any(is_seed), "{stdout}");
    let object = &crate::json(&server, &["tournament", "show", "finals", "--json"])[0];
    assert_eq!(object["seed"], json!(null));
    assert_eq!(object["settings"]["schedule"]["kind"], "round_robin");
    assert_eq!(
        object["editions"][0]["lots"][1],
        json!({"state": "playing", "lots": 3,
        "matches": 30})
    );
    let expected = json!({"match": "finals/5", "reasons": vec!["host\u{7} stalled"; 3]});
    assert_eq!(object["aside"][0], expected);
}

#[test]
fn organisers_start_cancel_close_and_retry() {
    let server = Server::start(board());
    let stdout = succeed(&server, &["tournament", "start", "finals"]);
    let plan = "grown from a plan for 37: 1 joined, 0 left";
    assert_eq!(stdout, format!("edition 2 of finals is running: 400 matches; {plan}\n"));
    succeed(&server, &["tournament", "start", "finals", "--fresh"]);
    let edition = &crate::json(&server, &["tournament", "start", "finals", "--json"])[0];
    assert_eq!((&edition["edition"], &edition["id"]), (&json!(2), &json!(31)));
    let stdout = succeed(&server, &["tournament", "cancel", "finals"]);
    assert_eq!(stdout, "finals is cancelled\n");
    let stdout = succeed(&server, &["tournament", "close", "finals"]);
    assert!(stdout.contains(&format!("its seed was {}", "5e".repeat(32))), "{stdout}");
    let lines: Vec<_> = stdout.lines().collect();
    assert!(matches!(lines[..], [_, beacon] if beacon.starts_with("public beacon: ")), "{stdout}");
    let stdout = succeed(&server, &["tournament", "retry", "finals/5"]);
    assert_eq!(stdout, "match finals/5 will be played again\n");
    let calls = server.received.lock().unwrap().calls.clone();
    assert_eq!(calls, ["start", "start fresh", "start", "cancel", "close", "retry finals/5"]);
}

#[test]
fn irreversible_commands_need_confirmation() {
    let server = Server::start(board());
    let stdout = succeed(&server, &["tournament", "drop", "finals", "--yes"]);
    assert_eq!(stdout, "finals was deleted, with 2 editions and 12 matches\n");
    let object = &crate::json(&server, &["tournament", "drop", "finals", "--yes", "--json"])[0];
    assert_eq!(object, &json!({"tournament": "finals", "editions": 2, "matches": 12}));
    // Without a terminal the command cannot ask for confirmation.
    fails(&run(&server, &["tournament", "drop", "finals"]), 2, &["finals", "--yes"]);
    let calls = server.received.lock().unwrap().calls.clone();
    assert_eq!(calls, ["drop", "drop"]);
}

#[test]
fn standings_are_verified() {
    let check = |differences: Vec<String>| {
        let check =
            CheckEditionResponse { matches: 380, differences, ..CheckEditionResponse::default() };
        Server::start(Script { check, ..board() })
    };
    let right = check(vec![]);
    let stdout = succeed(&right, &["tournament", "check", "finals"]);
    assert_eq!(stdout, "380 matches recounted: the standings equal the reports\n");
    let wrong = check(vec!["ada: 47 points, not 46".to_owned()]);
    let output = run(&wrong, &["tournament", "check", "finals", "--edition", "1"]);
    assert_eq!(output.stdout, b"ada: 47 points, not 46\n");
    fails(&output, 1, &["the standings of 1 bot are wrong"]);
    let output = run(&wrong, &["tournament", "check", "finals", "--json"]);
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let nothing: [&str; 0] = [];
    assert_eq!(
        object,
        json!({"edition": null, "matches": 380, "differences": ["ada: 47 points, not 46"],
            "derived": 0, "not_derived": null, "records": 0, "seed_differences": nothing})
    );
}

/// After the tournament, its plan is compared with the plan that follows from the seed.
#[test]
fn plans_are_verified() {
    let check = |seed_differences: Vec<String>| {
        let check = CheckEditionResponse {
            matches: 380,
            derived: 380,
            records: 12,
            edition: 3,
            seed_differences,
            ..CheckEditionResponse::default()
        };
        Server::start(Script { check, ..board() })
    };
    let stdout = succeed(&check(vec![]), &["tournament", "check", "finals", "--records"]);
    let derived = "380 matches derived again from the published seed: the stored plan agrees, and \
        the seeds in 12 records agree too\n";
    assert!(stdout.ends_with(derived), "{stdout}");
    assert!(stdout.starts_with("edition 3: 380 matches recounted"), "{stdout}");
    let check_none = CheckEditionResponse {
        edition: 3,
        not_derived: "its rules are of version 0".to_owned(),
        ..CheckEditionResponse::default()
    };
    let none = Server::start(Script { check: check_none, ..board() });
    let stdout = succeed(&none, &["tournament", "check", "finals"]);
    assert!(stdout.ends_with("not derived: its rules are of version 0\n"), "{stdout}");
    let wrong = check(vec!["match finals/5: the stored plan gives it the seed 00".to_owned()]);
    let output = run(&wrong, &["tournament", "check", "finals"]);
    fails(&output, 1, &["do not follow from the published seed"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.starts_with("match finals/5: "), "{stdout}");
    assert!(!stdout.contains("derived again"), "{stdout}");
}

#[test]
fn a_beacon_is_shown_and_set() {
    let server = Server::start(board());
    let stdout = succeed(&server, &["tournament", "show", "finals"]);
    assert!(stdout.contains("public beacon: none; the organiser chose the seed\n"), "{stdout}");
    let stdout = succeed(&server, &["tournament", "schedule", "finals", "--certificate"]);
    assert!(stdout.contains("seed: chosen by the organiser; no public beacon\n"), "{stdout}");

    let awaited = Beacon { name: "block 900000".into(), ..Beacon::default() };
    let mut script = board();
    script.tournament.beacon = Some(awaited.clone());
    script.certificate.beacon = Some(awaited);
    let server = Server::start(script.clone());
    let stdout = succeed(&server, &["tournament", "show", "finals"]);
    assert!(stdout.contains("public beacon: block 900000; no value yet\n"), "{stdout}");
    let stdout = succeed(&server, &["tournament", "schedule", "finals", "--certificate"]);
    assert!(stdout.contains("public beacon \"block 900000\", awaited\n"), "{stdout}");
    let object = &crate::json(&server, &["tournament", "show", "finals", "--json"])[0];
    let expected = json!({"name": "block 900000", "value": null, "set_at": null,
        "first_edition": null});
    assert_eq!(object["beacon"], expected);

    let beacon = Beacon {
        name: "block 900000".into(),
        value: "1a17d".into(),
        set_at_us: 1_000_000_000_000_000,
        first_edition: 2,
    };
    script.tournament.beacon = Some(beacon.clone());
    script.certificate = Certificate { edition: 1, beacon: Some(beacon), ..script.certificate };
    let server = Server::start(script);
    let stdout = succeed(&server, &["tournament", "beacon", "finals", "1a17d"]);
    assert_eq!(
        stdout,
        "public beacon: block 900000; value: 1a17d, set 2001-09-09 01:46:40 UTC; it decides \
         editions from 2 on\nedition 2 is running, played with the seed derived from the beacon\n"
    );
    assert_eq!(server.received.lock().unwrap().calls, ["beacon 1a17d"]);
    let stdout = succeed(&server, &["tournament", "schedule", "finals", "--certificate"]);
    assert!(
        stdout.contains("seed: chosen by the organiser; editions from 2 on are keyed"),
        "{stdout}"
    );
}

/// Edition 2 with this many counted matches.
fn edition(counted: i64, state: &str) -> Edition {
    let running = tournament().editions[0].clone();
    let over = state != "running";
    let eta_us = running.eta_us.filter(|_| !over);
    let rate = running.rate.filter(|_| !over);
    let official = state == "complete";
    Edition { counted, state: state.into(), official, eta_us, rate, ..running }
}

#[test]
fn an_edition_is_watched_across_a_restart() {
    // A unique address, so that its port is still free for the second coordinator.
    let script = Script { watched: vec![edition(10, "running")], ..board() };
    let first = Server::start_at("127.0.0.2:0".parse().unwrap(), script);
    let mut command = call(&first.url(), &["tournament", "watch", "finals"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut line = || lines.next().unwrap().unwrap();
    let lots = "lots: 12 queued, 3 playing, 1 set aside; complete about 2001-09-09 02:46:40 UTC at 2.5 \
        matches a second";
    assert_eq!(line(), format!("edition 2: running, 10 of 400 matches counted; {lots}"));
    assert_eq!(first.received.lock().unwrap().watched, [None]);
    let address = first.address;
    drop(first);
    let mut buffer = [0; 26];
    child.stderr.as_mut().unwrap().read_exact(&mut buffer).unwrap();
    assert_eq!(&buffer, b"lost the connection to the");
    let watched = vec![edition(390, "running"), edition(400, "complete")];
    let second = Server::start_at(address, Script { watched, ..board() });
    assert_eq!(line(), format!("edition 2: running, 390 of 400 matches counted; {lots}"));
    assert_eq!(line(), "edition 2: complete, official, 400 of 400 matches counted");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(second.received.lock().unwrap().watched, [Some(2)], "the same edition as before");
}

#[test]
fn watching_ends_with_the_edition() {
    let watched = vec![edition(10, "running"), edition(10, "cancelled")];
    let server = Server::start(Script { watched, ..board() });
    let output = run(&server, &["tournament", "watch", "finals", "--json"]);
    fails(&output, 1, &["edition 2 of finals is cancelled"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 2);
}

#[test]
fn the_schedule_of_a_tournament_is_described() {
    let bots: Vec<_> = (0..4)
        .map(|number| Bot { name: format!("b{number}"), withdrawn: number == 3, ..Bot::default() })
        .collect();
    let open = Script { bots, ..board() };
    let mut closed = open.clone();
    closed.tournament.seed = vec![7; 32];
    let open = Server::start(open);
    let closed = Server::start(closed);
    let schedule = ["tournament", "schedule", "finals"];
    let with = |more: &[&'static str]| [&schedule[..], more].concat();
    let output = run(&open, &schedule);
    assert!(String::from_utf8_lossy(&output.stderr).contains("seed of finals is not used"));
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 6);
    let stdout = succeed(&open, &with(&["--cost", "--bots", "20"]));
    assert_eq!(stdout, "380 matches, 38 for each bot\n");
    let stdout = succeed(&open, &with(&["--certificate", "--bots", "5"]));
    assert!(stdout.ends_with("verified: balanced as promised\n"), "{stdout}");
    let output = run(&closed, &schedule);
    assert!(output.status.success() && output.stderr.is_empty());
    let seeded = run(&closed, &with(&["--seed", "x", "--json"]));
    assert_eq!(seeded.stdout, run(&open, &with(&["--seed", "x", "--json"])).stdout);
    let described = with(&["--kind", "foursomes"]);
    fails(&run(&open, &described), 2, &["--kind", "--dry-run"]);
    let dry = with(&["--dry-run"]);
    fails(&run(&open, &dry), 2, &["--dry-run"]);
}

/// Counts of the coordinator are printed in the same way as local ones.
#[test]
fn a_coordinator_certifies_and_estimates() {
    let pairs = [(0, 2), (1, 60)].map(|(times, pairs)| PairCount { times, pairs });
    let certificate = Certificate {
        edition: 2,
        plan: "planned from the beginning: the first plan".into(),
        bots: 12,
        seats: 4,
        matches: 10,
        meetings: pairs.into(),
        same_owner_pairs: Some(4),
        fewest_matches: 3,
        most_matches: 4,
        most_in_seat: 1,
        seat_spread: 1,
        ..Certificate::default()
    };
    let estimate = EditionEstimate {
        bots: 38,
        matches: 124,
        to_play: 13,
        match_ms: 40_000.0,
        measured: true,
        slots: 8,
        eta_us: Some(1_000_003_600_000_000),
        bytes: 2_500_000,
        plan: "grown from a plan for 37: 1 joined, 0 left".into(),
    };
    let server = Server::start(Script { certificate: certificate.clone(), estimate, ..board() });
    let schedule = ["tournament", "schedule", "finals"];
    let with = |more: &[&'static str]| [&schedule[..], more].concat();
    let stdout = succeed(&server, &with(&["--certificate"]));
    for part in [
        "edition 2 of finals, planned from the beginning: the first plan\n",
        "12 bots, 10 matches of 4\n",
        "pairs of one owner: 4, which meet 0 times in all\n",
        "verified: balanced as promised\n",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    let stdout = succeed(&server, &with(&["--next", "--certificate"]));
    assert!(stdout.starts_with("the next edition of finals, planned"), "{stdout}");
    let line = &crate::json(&server, &with(&["--certificate", "--json"]))[0]["certificate"];
    assert_eq!((&line["edition"], &line["verified"]), (&json!(2), &json!(true)));
    assert_eq!((&line["same_owner_pairs"], &line["same_owner_meetings"]), (&json!(4), &json!(0)));
    let stdout = succeed(&server, &with(&["--cost"]));
    let lines: Vec<_> = stdout.lines().collect();
    assert_eq!(
        lines,
        [
            "124 matches of 38 bots; grown from a plan for 37: 1 joined, 0 left",
            "13 to play, the others have been played",
            "0.1 slot hours, 40000 ms per match (measured)",
            "done at 2001-09-09 02:46:40 UTC with the 8 slots connected now",
            "2.5 MB of additional database space",
        ]
    );
    let line = &crate::json(&server, &with(&["--cost", "--json"]))[0]["estimate"];
    assert_eq!((&line["to_play"], &line["slots"]), (&json!(13), &json!(8)));
    let broken =
        Certificate { broken_promise: "matches: 9, not 10 as promised".into(), ..certificate };
    let server = Server::start(Script { certificate: broken, ..board() });
    let output = run(&server, &with(&["--certificate"]));
    fails(&output, 1, &["not balanced", "matches: 9, not 10"]);
}

#[test]
fn one_connected_slot_is_not_one_slots() {
    let mut script = board();
    script.tournament.editions[0].slots = 1;
    let eta_us = script.tournament.editions[0].eta_us;
    script.estimate = EditionEstimate { slots: 1, eta_us, ..Default::default() };
    let server = Server::start(script);
    let shown = succeed(&server, &["tournament", "show", "finals"]);
    assert!(shown.contains("; 1 slot connected\n"), "{shown}");
    let cost = succeed(&server, &["tournament", "schedule", "finals", "--cost"]);
    assert!(cost.contains("with the 1 slot connected now\n"), "{cost}");
}

/// The certificate of a plan without counted balance says so, and names the origin of the seed.
#[test]
fn a_certificate_without_numbers_names_the_seed() {
    let with = |more: &[&'static str]| [&["tournament", "schedule", "finals"], more].concat();
    let uncounted = Certificate {
        edition: 2,
        bots: 12,
        not_counted: "rounds follow from results".into(),
        ..Certificate::default()
    };
    let server = Server::start(Script { certificate: uncounted, ..board() });
    let stdout = succeed(&server, &with(&["--certificate"]));
    assert_eq!(
        stdout,
        "edition 2 of finals\n12 bots; balance not certified: rounds follow from results\n\
         seed: chosen by the organiser; no public beacon\n"
    );
    let line = &crate::json(&server, &with(&["--certificate", "--json"]))[0]["certificate"];
    let expected = json!({"bots": 12, "matches": 0, "verified": null, "edition": 2, "plan": null,
        "not_counted": "rounds follow from results", "beacon": null});
    assert_eq!(line, &expected);
}
