//! Records of matches without programs.

use std::any::Any;
use std::path::Path;

use arbiter_games::Protocol;
use arbiter_games::{
    BotName, ClockRules, Dice, ExpectedReply, Forfeit, Game, Games, MatchView, Message, Micros,
    Params, RULES_VERSION, Seat, SeatResult, Seed, Step, TimeSpent, bitwa, gomoku, tricks, wojna,
};
use arbiter_proto::level::Level;
use arbiter_replay::{Header, Line, RECORD_VERSION, SeatLine, Transcript, Writer};

/// The time of every reply.
pub(crate) const SPENT: TimeSpent = TimeSpent { wall: Micros(2500), cpu: Micros(1500) };

/// Plays a match with the replies of `player`. Returns the record and the results.
pub(crate) fn play(
    params: &Params,
    seed: Seed,
    names: &[BotName],
    mut player: impl FnMut(&Message, &dyn MatchView) -> Result<String, Forfeit>,
) -> (Vec<u8>, Vec<SeatResult>) {
    let mut game = params.start(names, seed).unwrap();
    let header = header(params, seed, names);
    let mut starting_up = vec![true; names.len()];
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    let mut transcript = Transcript::default();
    for time in (0..).map(Micros) {
        let mut write = |line: Line<'_>| writer.line(&line).unwrap();
        let message = match game.step() {
            Step::Send(message) => message,
            Step::Dismiss(_) => continue,
            Step::Note(note) => {
                write(Line::Noted { time, note });
                continue;
            }
            step @ (Step::Illegal(..) | Step::Fault(_)) => panic!("{step:?} of a built-in game"),
            Step::Over(standings) => {
                let hash = transcript.hash();
                return (writer.finish(&standings, hash).unwrap(), standings);
            }
        };
        let seat = message.seat;
        write(Line::Sent { time, seat, text: message.text.as_str().into() });
        if !message.tells_time {
            transcript.sent(seat, &message.text);
        }
        if message.expected_reply == ExpectedReply::None {
            continue;
        }
        let first = std::mem::replace(&mut starting_up[seat.index()], false)
            && header.seats[seat.index()].protocol == Protocol::Stdio;
        let cost = header.clock.charge(SPENT, message.allowance, first).cost;
        match player(&message, game.view()) {
            Ok(reply) => {
                let bytes = reply.as_bytes().into();
                write(Line::Replied { time, seat, reply: bytes, spent: SPENT });
                if !message.tells_time {
                    transcript.replied(seat, reply.as_bytes());
                }
                if let Err(illegal) = game.receive_reply(Ok(&reply), cost) {
                    let forfeit = Forfeit::Illegal;
                    let detail = illegal.to_string();
                    write(Line::Forfeited { time, seat, forfeit, spent: None, detail });
                    transcript.forfeited(seat, Forfeit::Illegal);
                }
            }
            Err(forfeit) => {
                let spent = Some(SPENT);
                let detail = "details of the forfeit".to_owned();
                write(Line::Forfeited { time, seat, forfeit, spent, detail });
                transcript.forfeited(seat, forfeit);
                game.receive_reply(Err(forfeit), cost).unwrap();
            }
        }
    }
    unreachable!("a match ends");
}

fn header(params: &Params, seed: Seed, names: &[BotName]) -> Header {
    let seat = |bot: &BotName| SeatLine {
        bot: bot.clone(),
        digest: "00".repeat(32),
        protocol: params.game().bots.protocol,
    };
    Header {
        record: RECORD_VERSION,
        package: None,
        game: params.game().clone(),
        rules: RULES_VERSION.to_owned(),
        params: params.clone(),
        seed,
        clock: ClockRules::OFFICIAL,
        sandbox: Level::A,
        seats: names.iter().map(seat).collect(),
    }
}

/// Names for `count` bots.
pub(crate) fn names(count: usize) -> Vec<BotName> {
    (1..=count).map(|number| format!("bot{number}").parse().unwrap()).collect()
}

/// Parameters of a game, as JSON.
pub(crate) fn params(game: &Game, json: &str) -> Params {
    Params::read(game, &mut serde_json::Deserializer::from_str(json)).unwrap()
}

/// Plays a golden transcript of the rules and returns its record. After the end of the transcript,
/// every reply is `rest`.
pub(crate) fn transcript(file: &str, rest: &str) -> (Vec<u8>, Vec<SeatResult>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("games/tests/transcripts").join(file)).unwrap();
    let opening = |word: &str| text.lines().find_map(|line| line.strip_prefix(word)).unwrap();
    let line = opening("game ");
    let (game, json) = line.split_once(' ').unwrap_or((line, "{}"));
    let params = params(&Games::built_in().find(game).unwrap(), json);
    let names: Vec<BotName> = opening("names ").split(' ').map(|n| n.parse().unwrap()).collect();
    let mut replies = text.lines().filter_map(|line| {
        let (seat, reply) = line.split_at_checked(1)?;
        let seat = Seat::from_index(seat.parse::<usize>().ok()?.checked_sub(1)?);
        match reply.split_at_checked(2)? {
            ("< ", text) => {
                let text = text.split_once(" @ ").map_or(text, |(text, _)| text);
                Some((seat, Ok(text.replace("\\n", "\n"))))
            }
            ("! ", kind) => {
                let kind = Forfeit::ALL.into_iter().find(|forfeit| forfeit.as_str() == kind);
                Some((seat, Err(kind.unwrap())))
            }
            _ => None,
        }
    });
    play(&params, opening("seed ").parse().unwrap(), &names, |message, _| {
        let Some((seat, reply)) = replies.next() else { return Ok(rest.to_owned()) };
        assert_eq!(seat, message.seat, "{file}");
        reply
    })
}

/// A random reply: usually legal, sometimes illegal or a forfeit.
pub(crate) fn reply(
    dice: &mut Dice,
    message: &Message,
    view: &dyn MatchView,
) -> Result<String, Forfeit> {
    if dice.below(400) == 0 {
        return Err([Forfeit::Gone, Forfeit::Flood][dice.index(2)]);
    }
    if message.expected_reply == ExpectedReply::Ack {
        return Ok("=".to_owned());
    }
    if dice.below(200) == 0 {
        return Ok("nonsense".to_owned());
    }
    let mut any = |bound: u32| dice.below(bound);
    let state: &dyn Any = view;
    Ok(if let Some(game) = state.downcast_ref::<gomoku::Match>() {
        match game.phase() {
            gomoku::Phase::Open => "(7,7)(8,8)(7,9)".to_owned(),
            gomoku::Phase::Swap => {
                ["B", "(6,6)", "(6,6) (5,9)"][any(3) as usize].replace('B', "\"B\"")
            }
            gomoku::Phase::Choose => ["\"B\"", "\"W\""][any(2) as usize].to_owned(),
            gomoku::Phase::Play { .. } => {
                let free: Vec<_> = gomoku::Square::all()
                    .filter(|square| game.board().get(*square).is_none())
                    .collect();
                free[dice.index(free.len())].to_string()
            }
        }
    } else if let Some(game) = state.downcast_ref::<bitwa::Match>() {
        let columns = game.board().columns();
        let rows = game.board().rows();
        let x = dice.index(columns);
        let y = dice.index(rows);
        let sign = |dice: &mut Dice| ["-1", "1"][dice.index(2)];
        let dx = sign(dice);
        let dy = sign(dice);
        format!("= {} {x} {y} {dx} {dy} {}", dice.below(2), dice.below(2))
    } else if let Some(game) = state.downcast_ref::<tricks::Match>() {
        let words = game.tables().iter().map(|table| {
            let cards: Vec<_> = table.playable().collect();
            if table.turn() == Some(game.turn()) {
                cards[dice.index(cards.len())].to_string()
            } else {
                ".".to_owned()
            }
        });
        words.collect::<Vec<_>>().join(" ")
    } else if state.is::<wojna::Match>() {
        ["= pass", "= check", "= check", "= raise 1", "= raise 3"][any(5) as usize].to_owned()
    } else {
        ["H", "S", "S", "D", "B 5"][any(5) as usize].to_owned()
    })
}
