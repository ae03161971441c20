//! The output of `arbiter tournament collusion`.

use arbiter_proto::v1::{CollusionPair, FindCollusionResponse};
use serde_json::json;

use crate::server::{Script, Server};
use crate::succeed;

fn script() -> Script {
    let pair = |bot: &str, partner: &str, q: f64| CollusionPair {
        bot: bot.into(),
        partner: partner.into(),
        together: 12,
        mean_with: 71.25,
        mean_without: 40.0,
        difference: 30.5,
        partner_difference: -28.125,
        p: q / 100.0,
        q,
        flagged: q <= 0.05,
    };
    let collusion = FindCollusionResponse {
        edition: 2,
        tables: 90,
        tested: 90,
        flagged: 1,
        false_discoveries: 0.05,
        claim: "evidence, not proof".into(),
        pairs: vec![pair("ada", "b\u{1b}b", 0.0125), pair("cleo", "ada", 0.5)],
    };
    Script { collusion, ..Script::default() }
}

#[test]
fn pairs_are_shown_with_an_explanation() {
    let server = Server::start(script());
    let stdout = succeed(&server, &["tournament", "collusion", "finals"]);
    let lines: Vec<_> = stdout.lines().collect();
    assert_eq!(lines[0], "edition 2: 90 tables, 90 ordered pairs tested, 1 flagged");
    let row = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let header = ["bot", "partner", "tables", "with", "without", "gains", "partner", "p", "q"];
    assert_eq!(row(lines[1]), header);
    let flagged = [
        "ada",
        "b\u{fffd}b",
        "12",
        "71.250",
        "40.000",
        "+30.500",
        "-28.125",
        "1.25e-4",
        "1.25e-2",
        "flagged",
    ];
    assert_eq!(row(lines[2]), flagged);
    assert_eq!(row(lines[3]).last().unwrap(), "5.00e-1");
    assert_eq!(lines[4], "evidence, not proof");
}

#[test]
fn json_has_the_edition_and_then_the_pairs() {
    let server = Server::start(script());
    let stdout = succeed(&server, &["tournament", "collusion", "finals", "--json"]);
    let objects: Vec<serde_json::Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 3);
    assert_eq!((&objects[0]["flagged"], &objects[0]["edition"]), (&json!(1), &json!(2)));
    assert_eq!((&objects[1]["bot"], &objects[1]["flagged"]), (&json!("ada"), &json!(true)));
    assert_eq!((&objects[2]["q"], &objects[2]["flagged"]), (&json!(0.5), &json!(false)));
}
