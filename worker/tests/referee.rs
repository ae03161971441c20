//! The referee with seats in memory: replies in time, late replies, and reported events.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/memory_seat.rs"]
mod memory_seat;

use arbiter_games::{
    BotName, ClockKind, ClockRules, Forfeit, Micros, Params, SeatResult, Seed, bitwa, gomoku,
};
use arbiter_worker::referee::Referee;
use arbiter_worker::seat::SeatDriver;
use memory_seat::{Forfeits, MemorySeat, gomoku_reply};

/// Plays a match between bots. `answer(seat, words)` gives each reply and its time.
fn play(
    params: &Params,
    clock: ClockRules,
    answer: impl Fn(u8, &str) -> (String, Micros) + Copy + 'static,
) -> (Vec<SeatResult>, Vec<(u8, Forfeit, String)>) {
    let names: [BotName; 2] = ["one", "two"].map(|name| name.parse().unwrap());
    let mut game = params.start(&names, Seed([5; 32])).unwrap();
    let seat = |number| -> Box<dyn SeatDriver> {
        Box::new(MemorySeat::new(move |words: &str| {
            let (words, time) = answer(number, words);
            (Ok(words), time)
        }))
    };
    let mut seats = vec![seat(1), seat(2)];
    let mut forfeits = Forfeits::default();
    let standings = Referee::new(clock, &mut forfeits).play(game.as_mut(), &mut seats).unwrap();
    (standings, forfeits.0)
}

#[test]
fn a_reply_within_the_margin_counts_and_a_later_one_does_not() {
    let params = Params::official(&gomoku::game());
    let clock = ClockRules::OFFICIAL;
    let at = |millis: i64| {
        play(&params, clock, move |seat, words| {
            let slow = seat == 2 && words.starts_with("4 ");
            let time = if slow { Micros::from_millis(millis) } else { Micros::ZERO };
            (gomoku_reply(words), time)
        })
    };
    // Seat 2 plays black: its third stone is prompt number 4.
    let (_, forfeits) = at(520);
    assert!(!forfeits.iter().any(|(_, kind, _)| *kind == Forfeit::Clock), "{forfeits:?}");
    let (standings, forfeits) = at(521);
    let expected = "521 ms for one answer: 21 ms over the limit of 500 ms";
    assert_eq!(forfeits, [(2, Forfeit::Clock, expected.to_owned())]);
    assert_eq!(standings[1].forfeit, Some(Forfeit::Clock));
    assert_eq!((&standings[0].score.0[..], &standings[1].score.0[..]), (&[2][..], &[0][..]));
}

#[test]
fn a_bank_pays_for_every_command_and_grants_the_margin_once() {
    let json = serde_json::json!({"board": "przyklad", "bank": "100ms"});
    let params = Params::read(&bitwa::game(), json).unwrap();
    let reply = |seat: u8, words: &str| {
        let words = if words.starts_with("gen_move") { "= 0 1 1 1 1 1" } else { "=" };
        // Seat 1 pays 10 ms for each command, acknowledgements included: the eleventh is paid
        // from the margin, so is the twelfth, and the thirteenth is too many.
        (words.to_owned(), Micros::from_millis(if seat == 1 { 10 } else { 0 }))
    };
    let (standings, forfeits) = play(&params, ClockRules::OFFICIAL, reply);
    assert_eq!(forfeits, [(1, Forfeit::Clock, "bank exhausted: 30 ms over".to_owned())]);
    assert_eq!(standings[0].forfeit, Some(Forfeit::Clock));
    assert_eq!(standings[1].forfeit, None);
}

#[test]
fn a_processor_clock_forgives_waiting_up_to_ten_times() {
    let params = Params::official(&gomoku::game());
    let clock = ClockRules { kind: ClockKind::Cpu, ..ClockRules::OFFICIAL };
    let at = |millis: i64| {
        let reply =
            move |_seat: u8, words: &str| (gomoku_reply(words), Micros::from_millis(millis));
        play(&params, clock, reply).1
    };
    assert!(!at(5_200).iter().any(|(_, kind, _)| *kind == Forfeit::Clock));
    let forfeits = at(5_201);
    assert_eq!((forfeits[0].0, forfeits[0].1), (1, Forfeit::Clock));
    assert!(forfeits[0].2.contains("5201 ms on the wall"), "{}", forfeits[0].2);
}

#[test]
fn an_illegal_reply_is_reported_with_the_reason() {
    let params = Params::official(&gomoku::game());
    let (standings, forfeits) = play(&params, ClockRules::OFFICIAL, |_seat, words| {
        let words =
            if words.starts_with("B ") { "(7,7)(1,1)".to_owned() } else { gomoku_reply(words) };
        (words, Micros::ZERO)
    });
    assert_eq!(forfeits, [(2, Forfeit::Illegal, "(7,7) is occupied".to_owned())]);
    assert_eq!(standings[1].forfeit, Some(Forfeit::Illegal));
}
