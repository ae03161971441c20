//! The games accept or refuse the replies in docs/bots as documented.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use arbiter_games::{
    BotName, ExpectedReply, Game, Micros, Params, Seed, Step, bitwa, tricks, wojna,
};
use serde_json::json;

/// The outcome of this reply to the first request for a move.
fn outcome(params: &Params, reply: &str) -> Result<(), String> {
    let names = (1..=*params.seats().end()).map(|number| format!("bot{number}").parse().unwrap());
    let names: Vec<BotName> = names.collect();
    let mut game = params.start(&names, Seed::of_text("answers")).unwrap();
    loop {
        let Step::Send(message) = game.step() else { panic!("expected a message") };
        let is_move = message.expected_reply == ExpectedReply::Move;
        let reply = if is_move { reply } else { "=" };
        let outcome =
            game.receive_reply(Ok(reply), Micros::ZERO).map_err(|illegal| illegal.to_string());
        if is_move {
            return outcome;
        }
    }
}

/// The replies with this outcome in the table of a game's page.
fn documented_replies(game: &Game, outcome: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/bots/{game}.md"));
    let page = std::fs::read_to_string(path).unwrap();
    let end = format!("| {outcome} |");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(&end));
    let replies = rows.flat_map(|row| row.trim_end().trim_end_matches('`').split("`, `"));
    replies.map(str::to_owned).collect()
}

#[test]
fn replies_are_parsed_as_documented() {
    for (game, params) in [
        (wojna::game(), json!({})),
        (bitwa::game(), json!({"board": "przyklad"})),
        (tricks::game(), json!({"tables": 2})),
    ] {
        let params = Params::read(&game, params).unwrap();
        let [legal, illegal] =
            ["taken", "forfeits"].map(|outcome| documented_replies(&game, outcome));
        assert!(legal.len() >= 3 && illegal.len() >= 3, "{game}: {legal:?} {illegal:?}");
        for reply in legal {
            assert_eq!(outcome(&params, &reply), Ok(()), "{game}: {reply}");
        }
        for reply in illegal {
            assert!(outcome(&params, &reply).is_err(), "{game}: {reply}");
        }
    }
}
