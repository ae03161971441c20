//! The example of docs/api.md runs as it stands, and finds what the API says.

use std::process::Command;

use serde_json::Value;

use crate::support::service::done;
use crate::test_server::TestServer;

/// The Python program of docs/api.md.
fn example() -> String {
    let page = include_str!("../../docs/api.md");
    let (_, program) = page.split_once("```python\n").unwrap();
    program.split_once("```").unwrap().0.to_owned()
}

/// How often a bot won against an opponent in the matches of the API, from a seat if one is given.
/// A draw is half a win.
fn share_of_wins(matches: &[Value], bot: &str, opponent: Option<&str>, seat: Option<usize>) -> f64 {
    let mut won = 0.0;
    let mut played = 0.0;
    for found in matches {
        let seats = found["seats"].as_array().unwrap();
        let Some(own) = seats.iter().position(|seat| seat["bot"] == bot) else { continue };
        let other = &seats[1 - own];
        if opponent.is_some_and(|name| other["bot"] != name) || seat.is_some_and(|seat| seat != own)
        {
            continue;
        }
        let score = |seat: &Value| seat["score"][0].as_i64().unwrap();
        played += 1.0;
        won += match score(&seats[own]).cmp(&score(other)) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        };
    }
    won / played
}

#[test]
fn the_example_with_pandas_computes_what_the_api_says() {
    let server = TestServer::played();
    let program = format!(
        "{}\nprint(\"JSON\")\nprint(by_seat.to_json(orient=\"index\"))\n\
         print(head_to_head.to_json(orient=\"index\"))\nprint(forfeits.to_json())\n",
        example()
    );
    #[expect(clippy::disallowed_methods, reason = "a program of users is run")]
    let mut pandas = Command::new("python3");
    // ./test installs pandas there if the system has none.
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    pandas.env("PYTHONPATH", std::path::absolute(format!("{target}/numpy")).unwrap());
    pandas.args(["-c", &program, &format!("http://{}", server.up.http), "cup"]);
    let stdout = done(&pandas.output().unwrap());
    for heading in ["Wins by seat", "Wins against each opponent", "Forfeits"] {
        assert!(stdout.contains(heading), "{stdout}");
    }
    let (_, computed) = stdout.split_once("JSON\n").unwrap();
    let computed: Vec<Value> =
        computed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [by_seat, head_to_head, forfeits] = &computed[..] else { panic!("{stdout}") };
    let matches = server.all("/api/v1/tournaments/cup/matches", 1000);
    // In a CSV file a name that could be a formula has an apostrophe.
    let bots = [
        ("ada", "ada"),
        ("bob", "bob"),
        ("eve", "eve"),
        ("player/mine", "player/mine"),
        ("-1-1", "'-1-1"),
    ];
    for (bot, name) in bots {
        for seat in 0..2 {
            let expected = share_of_wins(&matches, bot, None, Some(seat));
            let found = by_seat[name][(seat + 1).to_string()].as_f64().unwrap();
            assert!((found - expected).abs() < 1e-9, "{bot}, seat {}: {found}", seat + 1);
        }
        for (opponent, column) in bots.into_iter().filter(|(opponent, _)| *opponent != bot) {
            let expected = share_of_wins(&matches, bot, Some(opponent), None);
            let found = head_to_head[name][column].as_f64().unwrap();
            assert!((found - expected).abs() < 1e-9, "{bot} against {opponent}: {found}");
        }
        assert_eq!(forfeits[name], if bot == "eve" { 8 } else { 0 }, "{bot}");
    }
    server.up.close();
}
