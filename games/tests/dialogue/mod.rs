//! Plays games without programs, and compares them with golden transcripts.
//!
//! A transcript is a text file in `tests/transcripts/`:
//!
//! ```text
//! # a comment
//! game gomoku {"first_number": 1}
//! seed 0000…                       64 hexadecimal digits
//! names alpha beta
//! 1> A []                          a message to seat 1 (a newline is written \n)
//! 1< (7,7)(7,8)(8,8)               the reply of seat 1, charged 0 ms
//! 2< (7,7) @ 480ms                 the reply of seat 2, charged 480 ms
//! 2! clock                         seat 2 forfeits instead of replying
//! 2? not a square: "x"             why the previous reply is illegal
//! x 2                              the game dismisses seat 2
//! note {"hand":1,…}                a note for the record
//! over [[2],[0]] [null,"clock"]    scores and forfeits at the end of the match
//! ...                              instead of `over`: later steps are not compared
//! ```

#![allow(dead_code, reason = "each test file uses only a part of this module")]

use std::fmt::Write as _;
use std::path::Path;

use arbiter_games::{
    BotName, ExpectedReply, Forfeit, Games, MatchState, Message, Micros, Params, SeatResult, Seed,
    Step,
};

/// A reply or a forfeit, and its charged time.
pub(crate) type Reply = (Result<String, Forfeit>, Micros);

/// A finished match.
#[derive(Debug)]
pub(crate) struct Played {
    /// The lines of its transcript.
    pub(crate) transcript: Vec<String>,
    /// The result of each seat.
    pub(crate) standings: Vec<SeatResult>,
}

/// The maximum number of steps of a match.
const MAX_STEPS: usize = 50_000_000;

/// Plays `game` to its end. `player` gives the replies.
pub(crate) fn play(game: &mut dyn MatchState, mut player: impl FnMut(&Message) -> Reply) -> Played {
    let mut transcript = Vec::new();
    for _ in 0..MAX_STEPS {
        let step = game.step();
        transcript.push(step_line(&step));
        match &step {
            Step::Send(message) if message.expected_reply != ExpectedReply::None => {
                let (reply, charged) = player(message);
                let outcome =
                    game.receive_reply(reply.as_deref().map_err(|forfeit| *forfeit), charged);
                transcript.push(match reply {
                    Ok(text) => format!("{}< {}", message.seat, text.replace('\n', "\\n")),
                    Err(forfeit) => format!("{}! {forfeit}", message.seat),
                });
                if let Err(illegal) = outcome {
                    transcript.push(format!("{}? {illegal}", message.seat));
                }
            }
            Step::Send(_) | Step::Dismiss(_) | Step::Note(_) => {}
            Step::Over(standings) => return Played { transcript, standings: standings.clone() },
            Step::Illegal(..) | Step::Fault(_) => panic!("{step:?} of a built-in game"),
        }
    }
    panic!("the match does not end");
}

/// The transcript line of a game's step.
fn step_line(step: &Step) -> String {
    match step {
        Step::Send(message) => format!("{}> {}", message.seat, message.text.replace('\n', "\\n")),
        Step::Dismiss(seat) => format!("x {seat}"),
        Step::Illegal(seat, illegal) => format!("{seat}? {illegal}"),
        Step::Fault(cause) => format!("fault {cause}"),
        Step::Note(note) => format!("note {}", serde_json::to_string(note).unwrap()),
        Step::Over(standings) => {
            let scores: Vec<_> = standings.iter().map(|standing| &standing.score).collect();
            let forfeits: Vec<_> = standings.iter().map(|standing| standing.forfeit).collect();
            let json = |value| serde_json::to_string(value).unwrap();
            format!("over {} {}", json(&scores), serde_json::to_string(&forfeits).unwrap())
        }
    }
}

/// The scores of a played match, seat by seat.
pub(crate) fn scores(played: &Played) -> Vec<Vec<i64>> {
    played.standings.iter().map(|standing| standing.score.0.clone()).collect()
}

/// Names for `count` bots.
pub(crate) fn names(count: usize) -> Vec<BotName> {
    (1..=count).map(|number| format!("bot{number}").parse().unwrap()).collect()
}

/// Replays the transcript `tests/transcripts/FILE` and compares every line that the game sends.
pub(crate) fn golden(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut game = None;
    let mut params = None;
    let mut seed = Seed([0; 32]);
    let mut body = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(rest) = line.strip_prefix("game ") {
            let (name, json) = rest.split_once(' ').unwrap_or((rest, "{}"));
            let name = Games::built_in().find(name).unwrap();
            let mut json = serde_json::Deserializer::from_str(json);
            params = Some(Params::read(&name, &mut json).unwrap());
        } else if let Some(rest) = line.strip_prefix("seed ") {
            seed = rest.parse().unwrap();
        } else if let Some(rest) = line.strip_prefix("names ") {
            let names: Vec<_> = rest.split(' ').map(|name| name.parse().unwrap()).collect();
            let params = params.as_ref().expect("the line `game` comes first");
            game = Some(params.start(&names, seed).unwrap());
        } else {
            body.push(line);
        }
    }
    follow(game.expect("the line `names` comes last").as_mut(), &body, file);
}

/// Sends the replies in `body` to `game`, and compares all other lines with the game's steps.
pub(crate) fn follow(game: &mut dyn MatchState, body: &[&str], file: &str) {
    let mut previous_lines = String::new();
    let mut lines = body.iter().copied().peekable();
    while let Some(line) = lines.next() {
        if line == "..." {
            return;
        }
        let step = game.step();
        assert_eq!(step_line(&step), line, "{file}, after:\n{previous_lines}");
        writeln!(previous_lines, "{line}").unwrap();
        let Step::Send(Message {
            seat,
            expected_reply: ExpectedReply::Ack | ExpectedReply::Move,
            ..
        }) = step
        else {
            continue;
        };
        let reply =
            lines.next().unwrap_or_else(|| panic!("{file}: the reply to {line} is missing"));
        writeln!(previous_lines, "{reply}").unwrap();
        let outcome = if let Some(kind) = reply.strip_prefix(&format!("{seat}! ")) {
            let kind = Forfeit::ALL.into_iter().find(|forfeit| forfeit.as_str() == kind);
            game.receive_reply(Err(kind.expect("a kind of forfeit")), Micros::ZERO)
        } else {
            let text = reply.strip_prefix(&format!("{seat}< "));
            let text = text
                .unwrap_or_else(|| panic!("{file}: expected a reply of seat {seat}, not {reply}"));
            let (text, time) = text.split_once(" @ ").unwrap_or((text, "0ms"));
            game.receive_reply(Ok(&text.replace("\\n", "\n")), time.parse().unwrap())
        };
        let reason = outcome.err().map(|illegal| format!("{seat}? {illegal}"));
        let expected = lines.next_if(|next| next.starts_with(&format!("{seat}? ")));
        assert_eq!(reason.as_deref(), expected, "{file}, after:\n{previous_lines}");
    }
}
