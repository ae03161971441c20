//! Matches of wojna: the dialogue, the clock, replies, forfeits, parameters.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dialogue;

use arbiter_games::wojna::{Card, Match, Params};
use arbiter_games::{
    Allowance, Forfeit, MatchState as _, Micros, Owes, ParamsError, Rules, Say, Seed, read_rules,
    wojna,
};
use dialogue::{Played, Reply, golden, play, scores};
use serde_json::json;

fn params(json: serde_json::Value) -> Params {
    read(json).unwrap()
}

fn read(json: serde_json::Value) -> Result<Params, ParamsError> {
    read_rules(&wojna::game().params, &serde_json::from_value(json).unwrap())
}

fn seed(text: &str) -> Seed {
    Seed::of_text(text)
}

/// A match whose first deal has these piles.
fn stacked(json: serde_json::Value, piles: &[&[Card]], text: &str) -> Match {
    let piles: Vec<_> = piles.iter().map(|pile| pile.to_vec()).collect();
    Match::stacked(&params(json), &piles, seed(text))
}

fn in_no_time(text: &str) -> Reply {
    (Ok(text.to_owned()), Micros::ZERO)
}

/// Replies to every request for a move with `choice`, and to all other commands with `=`.
fn always(choice: &str, say: &Say) -> Reply {
    in_no_time(if say.owes == Owes::Move { choice } else { "=" })
}

fn forfeits(played: &Played) -> Vec<Option<Forfeit>> {
    played.standings.iter().map(|standing| standing.forfeit).collect()
}

/// Plays a match in which all seats check, with the exceptions in `special`: a seat, the start of a
/// command, how often the command came before, and the reply.
fn play_with(game: &mut Match, special: &[(u8, &str, usize, Result<&str, Forfeit>)]) -> Played {
    let mut seen = vec![0; special.len()];
    play(game, |say| {
        let mut reply = always("= check", say);
        for ((seat, start, before, answer), seen) in special.iter().zip(&mut seen) {
            if say.seat.number() == *seat && say.text.starts_with(start) {
                if *seen == *before {
                    reply = (answer.map(str::to_owned), Micros::ZERO);
                }
                *seen += 1;
            }
        }
        reply
    })
}

/// The commands to the seat with this number.
fn told(played: &Played, number: u8) -> Vec<&str> {
    let start = format!("{number}> ");
    played.transcript.iter().filter_map(|line| line.strip_prefix(&start)).collect()
}

#[test]
fn the_example_of_the_document() {
    golden("wojna-scheme.txt");
}

#[test]
fn wars_in_the_dialogue() {
    golden("wojna-war.txt");
}

#[test]
fn three_bots_forfeit() {
    golden("wojna-forfeits.txt");
}

#[test]
fn the_official_match_sends_the_official_settings() {
    let mut game = Match::start(&Params::default(), 4, seed("official"));
    let played = play(&mut game, |say| always("= pass", say));
    let told = told(&played, 1);
    assert_eq!(told[0], "your_number 1");
    let eight_of_each: String = (1..=13).map(|card| format!(" {card}").repeat(8)).collect();
    assert_eq!(told[1], format!("setdeck 104{eight_of_each}"));
    assert_eq!(told[2], "time_settings 30000 1000 3000 100");
    assert_eq!(told[3], "setstate 4 4 25 25 25 25");
    assert_eq!(told.iter().filter(|line| line.starts_with("setdeck")).count(), 40);
    assert_eq!(scores(&played).concat().iter().sum::<i64>(), 40 * 84);
}

#[test]
fn other_cards_and_times_are_not_sent() {
    let mut game = Match::start(&params(json!({"deals": 2})), 4, seed("ears"));
    let played = play(&mut game, |say| always("= check", say));
    let public = |number| {
        let mut lines = told(&played, number);
        let mut bidding = true;
        lines.retain(|line| {
            // Between `setstate` and the first play, a topcard is the hearer's own.
            bidding = line.starts_with("play") || bidding && !line.starts_with("setstate");
            let private = ["your_number", "time_left", "genmove"];
            !(private.iter().any(|word| line.starts_with(word))
                || line.starts_with("topcard") && !bidding)
        });
        lines
    };
    assert!((2..=4).all(|number| public(number) == public(1)));
}

#[test]
fn the_bank_pays_for_the_reply_to_every_command() {
    let mut game = Match::start(&params(json!({"deals": 1, "deck": "1-8"})), 4, seed("bank"));
    play(&mut game, |say| {
        let word = say.text.split(' ').next().unwrap();
        let owes = if word == "genmove" { Owes::Move } else { Owes::Ack };
        assert_eq!(say.owes, owes, "{}", say.text);
        assert_eq!(say.tells_time, word == "time_left");
        assert_eq!(say.allowance, Allowance::Bank(Micros::from_millis(30_000)));
        always("= check", say)
    });
}

/// The clock of one seat, as in the document: T for the first M moves, t more for each m more.
struct Model {
    spent: Micros,
    moves: i64,
}

impl Model {
    const TEXT: &str = "1000/3/200/2";

    fn left(&self) -> (Micros, i64) {
        let later = (self.moves - 3).div_euclid(2) + 1;
        let given = 1000 + 200 * later.max(0);
        let due = if self.moves < 3 { 3 - self.moves } else { 2 - (self.moves - 3) % 2 };
        (Micros::from_millis(given) - self.spent, due)
    }
}

#[test]
fn the_clock_adds_time_for_moves_and_restarts_each_deal() {
    let json = json!({"deals": 4, "clock": Model::TEXT, "deck": "1-6*3", "seats": 3});
    let mut game = Match::start(&params(json), 3, seed("clock"));
    let mut clocks = [const { Model { spent: Micros::ZERO, moves: 0 } }; 3];
    let mut most = 0;
    let mut decks = 0;
    play(&mut game, |say| {
        let clock = &mut clocks[say.seat.index()];
        if say.text.starts_with("setdeck") {
            decks += 1;
            // The answer to your_number counts into the first deal.
            if decks > 3 {
                *clock = Model { spent: Micros::ZERO, moves: 0 };
            }
        }
        let (left, due) = clock.left();
        assert_eq!(say.allowance, Allowance::Bank(left), "{}", say.text);
        if say.tells_time {
            assert_eq!(say.text, format!("time_left {} {due}", left.floor_millis().max(0)));
        }
        let cost = Micros(if say.owes == Owes::Move { 11_500 } else { 1300 });
        clock.spent += cost;
        clock.moves += i64::from(say.owes == Owes::Move);
        most = most.max(clock.moves);
        (always("= check", say).0, cost)
    });
    assert!(most > 7, "time is added again and again");
}

#[test]
fn time_left_is_never_negative() {
    let json = json!({"deals": 1, "clock": "10/1000/3000/100"});
    let mut game = Match::start(&params(json), 4, seed("margin"));
    let played = play_with_cost(&mut game, Micros::from_millis(15));
    assert!(told(&played, 1).contains(&"time_left 0 1000"));
}

/// Plays a match in which each seat's first reply takes some time.
fn play_with_cost(game: &mut Match, cost: Micros) -> Played {
    play(game, |say| {
        let first = say.text.starts_with("your_number");
        (always("= check", say).0, if first { cost } else { Micros::ZERO })
    })
}

/// The result of a match in which seat 1 gives this reply to its first `command`.
fn after_answer(command: &str, answer: &str) -> Played {
    let piles: [&[Card]; 2] = [&[2, 1, 1, 1], &[1, 1, 1, 1]];
    let mut game = stacked(json!({"deals": 1}), &piles, "answer");
    play_with(&mut game, &[(1, command, 0, Ok(answer))])
}

#[test]
fn moves_are_read_exactly() {
    let good = [
        ("= pass", "pass"),
        ("=pass", "pass"),
        ("= check", "check"),
        ("\n\n= check \r", "check"),
        ("=raise 1", "raise 1"),
        ("=  raise  2\r\n", "raise 2"),
        ("=\nraise 3", "raise 3"),
    ];
    for (answer, choice) in good {
        let played = after_answer("genmove", answer);
        assert_eq!(forfeits(&played), [None, None], "{answer:?}");
        assert!(told(&played, 2).contains(&&*format!("play 1 {choice}")), "{answer:?}");
    }
    let bad = [
        "",
        "=",
        "?",
        "? check",
        "check",
        "= Check",
        "= raise",
        "= raise 0",
        "= raise 4",
        "= raise 01",
        "= raise +1",
        "= raise1",
        "= raise 1 1",
        "= check check",
        "= pass.",
        "=7 check",
        "= \u{fffd}check",
        "! check",
        "= raise 1\n\n= check",
    ];
    for answer in bad {
        let played = after_answer("genmove", answer);
        assert_eq!(forfeits(&played), [Some(Forfeit::Illegal), None], "{answer:?}");
        assert_eq!(scores(&played), [[0], [48]], "{answer:?}");
    }
}

#[test]
fn acknowledgements_may_have_any_content() {
    for command in ["your_number", "setdeck", "time_settings", "setstate", "topcard", "play"] {
        for answer in ["=", "?", "= ok", "=ok", "? unknown command", "=\none\ntwo", "\n="] {
            let played = after_answer(command, answer);
            assert_eq!(forfeits(&played), [None, None], "{command} {answer:?}");
        }
        for answer in ["", "ok", "\u{fffd}", "-"] {
            let played = after_answer(command, answer);
            assert_eq!(forfeits(&played), [Some(Forfeit::Illegal), None], "{command} {answer:?}");
        }
    }
}

#[test]
fn illegal_replies_get_a_reason() {
    let reason = |answer| {
        let played = after_answer("genmove", answer);
        let reason = played.transcript.iter().find_map(|line| line.strip_prefix("1? "));
        reason.unwrap().to_owned()
    };
    assert_eq!(reason("? no idea"), r#"refused to move: "no idea""#);
    let bad = r#"not a move: "= fold"; the moves are pass, check, raise 1, raise 2 and raise 3"#;
    assert_eq!(reason("= fold"), bad);
    let mut game = stacked(json!({"deals": 1}), &[&[2, 1], &[1, 1]], "answer");
    let played = play_with(&mut game, &[(1, "genmove", 0, Ok("= raise 2"))]);
    let due = "1? raise 2 costs 2 cards, and the pile has 1";
    assert!(played.transcript.iter().any(|line| line == due), "{:?}", played.transcript);
}

#[test]
fn dead_bots_are_dismissed_and_get_no_more_commands() {
    for forfeit in Forfeit::ALL {
        let mut game = Match::start(&params(json!({"deals": 2})), 4, seed("dead"));
        let played = play_with(&mut game, &[(3, "genmove", 2, Err(forfeit))]);
        assert_eq!(forfeits(&played), [None, None, Some(forfeit), None]);
        let lines = &played.transcript;
        let death = lines.iter().position(|line| *line == format!("3! {forfeit}")).unwrap();
        assert_eq!(lines[death + 1], "x 3");
        assert_eq!(lines[death + 2], "1> play 3 pass");
        assert!(!lines[death + 2..].iter().any(|line| line.starts_with("3> ")));
        assert_eq!(played.standings[2].score.0, [0]);
        assert_eq!(scores(&played).concat().iter().sum::<i64>(), 2 * 84);
    }
}

#[test]
fn a_dead_seat_still_compares_cards_and_fights_wars() {
    let piles: [&[Card]; 3] = [&[9, 1, 1, 1], &[9, 2, 1, 1], &[1, 1, 1, 1]];
    let mut game = stacked(json!({"deals": 1}), &piles, "war");
    let played = play_with(&mut game, &[(2, "topcard 3 1", 0, Err(Forfeit::Gone))]);
    let told = told(&played, 1);
    let war = told.iter().position(|line| *line == "setstate 7 3 1 1 3").unwrap();
    // The dead seat pays for the war, and passes at its turn; the other may not even be asked.
    let rest = &told[war..];
    assert_eq!(rest[1], "topcard 1 1");
    let end = rest.iter().position(|line| line.starts_with("setstate 3 3 7 0 2"));
    assert!(rest[..end.unwrap()].contains(&"play 2 pass"));
    assert_eq!(scores(&played)[1], [0]);
}

#[test]
fn a_forfeit_counts_from_the_deal_of_its_detection() {
    // Seat 2 has the better card, and wins each deal that it lives to the end of.
    let piles: [&[Card]; 3] = [&[1], &[3], &[2]];
    let found = |command: &str, before| {
        let mut game = stacked(json!({"deals": 2}), &piles, "found");
        scores(&play_with(&mut game, &[(2, command, before, Err(Forfeit::Gone))]))[1][0]
    };
    assert_eq!(found("your_number", 0), 0);
    assert_eq!(found("setdeck", 0), 0);
    assert_eq!(found("topcard 3 2", 0), 0, "a deal lasts until its last cards are acknowledged");
    assert_eq!(found("setdeck", 1), 48);
    assert_eq!(found("time_settings", 1), 48);
}

#[test]
fn a_deal_with_only_dead_seats_left_ends() {
    let piles: [&[Card]; 4] = [&[1], &[1], &[9; 5], &[9; 5]];
    let mut game = stacked(json!({"deals": 1}), &piles, "only");
    let dead = [(3, "setstate", 1, Err(Forfeit::Clock)), (4, "setstate", 1, Err(Forfeit::Flood))];
    let played = play_with(&mut game, &dead);
    // Seats 1 and 2 left in the same auction, and share the two first places.
    assert_eq!(scores(&played), [[36], [36], [0], [0]]);
    assert_eq!(told(&played, 1).last_chunk(), Some(&["setstate 8 4 0 0 2 2", "quit"]));
}

#[test]
fn the_last_living_seat_has_the_first_place_of_the_remaining_deals() {
    let mut game = Match::start(&params(json!({"deals": 7})), 4, seed("last"));
    let dead = [
        (1, "setdeck", 0, Err(Forfeit::Gone)),
        (2, "setdeck", 0, Ok("no")),
        (4, "setdeck", 2, Err(Forfeit::Clock)),
    ];
    let played = play_with(&mut game, &dead);
    // Two deals are played by seats 3 and 4, and share 24 and 48; five more are seat 3's.
    let [_, _, third, fourth] = <[Vec<i64>; 4]>::try_from(scores(&played)).unwrap();
    assert_eq!(third[0] + fourth[0], 2 * 72 + 5 * 48);
    assert_eq!(told(&played, 3).iter().filter(|line| line.starts_with("setdeck")).count(), 3);
    assert_eq!(told(&played, 3).last(), Some(&"quit"));
    let tail = played.transcript.last_chunk::<3>().unwrap();
    assert_eq!(tail[..2], ["x 4", "3> quit"]);
}

#[test]
fn after_the_end_nothing_changes() {
    let mut game = Match::start(&params(json!({"deals": 1})), 4, seed("end"));
    let played = play(&mut game, |say| always("= check", say));
    for _ in 0..3 {
        assert_eq!(game.receive_reply(Ok("nonsense"), Micros::from_millis(1_000_000)), Ok(()));
        assert_eq!(game.receive_reply(Err(Forfeit::Clock), Micros::ZERO), Ok(()));
        let arbiter_games::Step::Over(standings) = game.step() else { panic!("it was over") };
        assert_eq!(standings, played.standings);
    }
}

#[test]
fn smaller_tables_award_the_upper_places() {
    for (seats, points) in [(2, 72), (3, 84)] {
        let json = json!({"deals": 3, "seats": seats});
        let mut game = Match::start(&params(json), seats, seed("small"));
        let played = play(&mut game, |say| always("= check", say));
        assert_eq!(scores(&played).concat().iter().sum::<i64>(), 3 * points);
    }
}

#[test]
fn the_defaults_are_official_and_round_trip() {
    let official =
        json!({"deals": 40, "deck": "1-13*8", "clock": "30000/1000/3000/100", "seats": 4});
    assert_eq!(serde_json::to_value(Params::default().values()).unwrap(), official);
    assert_eq!(params(json!({})), Params::default());
    assert_eq!(params(official), Params::default());
    assert_eq!(Params::default().seats(), 4..=4);
    let game = wojna::game();
    let keys = game.param_keys();
    assert_eq!(keys, ["deals", "deck", "clock", "seats"]);
}

#[test]
fn decks_print_in_their_shortest_form() {
    let table = [
        ("1-13*8", "1-13*8"),
        ("5, 3 ,4,4", "3,4*2,5"),
        ("1-3,2", "1,2*2,3"),
        ("7*2,8*2,9", "7-8*2,9"),
        ("0-1,65534-65535", "0-1,65534-65535"),
    ];
    for (written, canonical) in table {
        let read = params(json!({"deck": written, "seats": 2}));
        assert_eq!(read.deck.to_string(), canonical);
        assert_eq!(params(json!({"deck": canonical, "seats": 2})), read);
    }
}

#[test]
fn invalid_parameters_are_refused() {
    let table = [
        (json!({"deal": 40}), "unknown field `deal`"),
        (json!({"deals": 0}), "deals cannot be 0: a match has 1 to 10000 deals"),
        (json!({"deals": -1}), "deals cannot be -1"),
        (json!({"deals": 10_001}), "deals cannot be 10001"),
        (json!({"seats": 1}), "seats cannot be 1: a table has 2 to 4 seats"),
        (json!({"seats": 5}), "seats cannot be 5"),
        (json!({"deck": "1-3"}), "deck cannot have 3 cards: 4 seats need at least one each"),
        (json!({"deck": ""}), "deck cannot contain ``"),
        (json!({"deck": "1-13*0"}), "deck cannot contain `1-13*0`"),
        (json!({"deck": "1-13, 9-2"}), "deck cannot contain `9-2`"),
        (json!({"deck": "1,-4"}), "deck cannot contain `-4`"),
        (json!({"deck": "1,+4"}), "deck cannot contain `+4`"),
        (json!({"deck": "70000"}), "cards are 0 to 65535"),
        (json!({"deck": "0-65535*65535"}), "too many cards: at most 1000 are possible"),
        (json!({"clock": "1000/10/100"}), "clock cannot be `1000/10/100`"),
        (json!({"clock": "1/2/3/4/5"}), "clock cannot be `1/2/3/4/5`"),
        (json!({"clock": "0/10/100/10"}), "T, M and m are at least 1"),
        (json!({"clock": "1000/0/100/10"}), "clock cannot be `1000/0/100/10`"),
        (json!({"clock": "1000/10/100/0"}), "clock cannot be `1000/10/100/0`"),
        (json!({"clock": "1000/10/-1/10"}), "clock cannot be `1000/10/-1/10`"),
        (json!({"clock": "4294967296/1/0/1"}), "none is more than 4294967295"),
    ];
    for (json, due) in table {
        let error = read(json.clone()).unwrap_err().to_string();
        assert!(error.contains(due), "{json}: {error}");
    }
    params(json!({"clock": "4294967295/4294967295/0/4294967295"}));
}
