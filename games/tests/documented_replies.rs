//! The games accept or refuse the replies in docs/bots as documented.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use arbiter_games::{BotName, Game, Micros, Owes, Params, Seed, Step, bitwa, tricks, wojna};
use serde_json::json;

/// The effect of this reply to the first request for a move.
fn verdict(params: &Params, answer: &str) -> Result<(), String> {
    let names = (1..=*params.seats().end()).map(|number| format!("bot{number}").parse().unwrap());
    let names: Vec<BotName> = names.collect();
    let mut game = params.start(&names, Seed::of_text("answers")).unwrap();
    loop {
        let Step::Say(say) = game.step() else { panic!("a move is asked for first") };
        let is_move = say.owes == Owes::Move;
        let answer = if is_move { answer } else { "=" };
        let verdict =
            game.receive_reply(Ok(answer), Micros::ZERO).map_err(|illegal| illegal.to_string());
        if is_move {
            return verdict;
        }
    }
}

/// The replies with this verdict in the table of a game's page.
fn answers(game: &Game, verdict: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/bots/{game}.md"));
    let page = std::fs::read_to_string(path).unwrap();
    let end = format!("| {verdict} |");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(&end));
    let answers = rows.flat_map(|row| row.trim_end().trim_end_matches('`').split("`, `"));
    answers.map(str::to_owned).collect()
}

#[test]
fn replies_are_parsed_as_documented() {
    for (game, params) in [
        (wojna::game(), json!({})),
        (bitwa::game(), json!({"board": "przyklad"})),
        (tricks::game(), json!({"tables": 2})),
    ] {
        let params = Params::read(&game, params).unwrap();
        let [taken, forfeits] = ["taken", "forfeits"].map(|verdict| answers(&game, verdict));
        assert!(taken.len() >= 3 && forfeits.len() >= 3, "{game}: {taken:?} {forfeits:?}");
        for answer in taken {
            assert_eq!(verdict(&params, &answer), Ok(()), "{game}: {answer}");
        }
        for answer in forfeits {
            assert!(verdict(&params, &answer).is_err(), "{game}: {answer}");
        }
    }
}
