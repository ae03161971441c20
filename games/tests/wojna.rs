//! Matches of wojna: the dialogue, the clock, replies, forfeits, parameters.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dialogue;

use arbiter_games::wojna::{Card, Match, Params};
use arbiter_games::{
    Allowance, ExpectedReply, Forfeit, MatchState as _, Message, Micros, ParamsError, Rules, Seed,
    read_rules, wojna,
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

fn reply(text: &str) -> Reply {
    (Ok(text.to_owned()), Micros::ZERO)
}

/// The reply `bid` to a request for a move, and `=` to any other command.
fn always(bid: &str, message: &Message) -> Reply {
    reply(if message.expected_reply == ExpectedReply::Move { bid } else { "=" })
}

fn forfeits(played: &Played) -> Vec<Option<Forfeit>> {
    played.standings.iter().map(|standing| standing.forfeit).collect()
}

/// Plays a match in which all seats check, except for the replies in `exceptions`: a seat, the
/// start of a command, the number of earlier commands with this start, and the reply.
fn play_with(game: &mut Match, exceptions: &[(u8, &str, usize, Result<&str, Forfeit>)]) -> Played {
    let mut counts = vec![0; exceptions.len()];
    play(game, |message| {
        let mut reply = always("= check", message);
        for ((seat, start, earlier, exception), count) in exceptions.iter().zip(&mut counts) {
            if message.seat.number() == *seat && message.text.starts_with(start) {
                if *count == *earlier {
                    reply = (exception.map(str::to_owned), Micros::ZERO);
                }
                *count += 1;
            }
        }
        reply
    })
}

/// The commands to the seat with this number.
fn commands(played: &Played, number: u8) -> Vec<&str> {
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
    let played = play(&mut game, |message| always("= pass", message));
    let lines = commands(&played, 1);
    assert_eq!(lines[0], "your_number 1");
    let eight_of_each: String = (1..=13).map(|card| format!(" {card}").repeat(8)).collect();
    assert_eq!(lines[1], format!("setdeck 104{eight_of_each}"));
    assert_eq!(lines[2], "time_settings 30000 1000 3000 100");
    assert_eq!(lines[3], "setstate 4 4 25 25 25 25");
    assert_eq!(lines.iter().filter(|line| line.starts_with("setdeck")).count(), 40);
    assert_eq!(scores(&played).concat().iter().sum::<i64>(), 40 * 84);
}

#[test]
fn cards_and_times_of_other_seats_are_not_sent() {
    let mut game = Match::start(&params(json!({"deals": 2})), 4, seed("ears"));
    let played = play(&mut game, |message| always("= check", message));
    let public = |number| {
        let mut lines = commands(&played, number);
        let mut is_bidding = true;
        lines.retain(|line| {
            // Between `setstate` and the first `play`, `topcard` has the receiver's card.
            is_bidding = line.starts_with("play") || is_bidding && !line.starts_with("setstate");
            let private = ["your_number", "time_left", "genmove"];
            !(private.iter().any(|word| line.starts_with(word))
                || line.starts_with("topcard") && !is_bidding)
        });
        lines
    };
    assert!((2..=4).all(|number| public(number) == public(1)));
}

#[test]
fn the_bank_pays_for_the_reply_to_every_command() {
    let mut game = Match::start(&params(json!({"deals": 1, "deck": "1-8"})), 4, seed("bank"));
    play(&mut game, |message| {
        let word = message.text.split(' ').next().unwrap();
        let expected_reply =
            if word == "genmove" { ExpectedReply::Move } else { ExpectedReply::Ack };
        assert_eq!(message.expected_reply, expected_reply, "{}", message.text);
        assert_eq!(message.tells_time, word == "time_left");
        assert_eq!(message.allowance, Allowance::Bank(Micros::from_millis(30_000)));
        always("= check", message)
    });
}

/// The clock of one seat by the document: T ms for the first M moves, t ms for each m later moves.
struct Model {
    spent: Micros,
    moves: i64,
}

impl Model {
    const TEXT: &str = "1000/3/200/2";

    fn left(&self) -> (Micros, i64) {
        let groups = (self.moves - 3).div_euclid(2) + 1;
        let total = 1000 + 200 * groups.max(0);
        let moves_left = if self.moves < 3 { 3 - self.moves } else { 2 - (self.moves - 3) % 2 };
        (Micros::from_millis(total) - self.spent, moves_left)
    }
}

#[test]
fn the_clock_adds_time_for_moves_and_restarts_each_deal() {
    let json = json!({"deals": 4, "clock": Model::TEXT, "deck": "1-6*3", "seats": 3});
    let mut game = Match::start(&params(json), 3, seed("clock"));
    let mut clocks = [const { Model { spent: Micros::ZERO, moves: 0 } }; 3];
    let mut max_moves = 0;
    let mut decks = 0;
    play(&mut game, |message| {
        let clock = &mut clocks[message.seat.index()];
        if message.text.starts_with("setdeck") {
            decks += 1;
            // The reply to `your_number` belongs to the first deal.
            if decks > 3 {
                *clock = Model { spent: Micros::ZERO, moves: 0 };
            }
        }
        let (left, moves_left) = clock.left();
        assert_eq!(message.allowance, Allowance::Bank(left), "{}", message.text);
        if message.tells_time {
            assert_eq!(
                message.text,
                format!("time_left {} {moves_left}", left.floor_millis().max(0))
            );
        }
        let cost =
            Micros(if message.expected_reply == ExpectedReply::Move { 11_500 } else { 1300 });
        clock.spent += cost;
        clock.moves += i64::from(message.expected_reply == ExpectedReply::Move);
        max_moves = max_moves.max(clock.moves);
        (always("= check", message).0, cost)
    });
    assert!(max_moves > 7, "time is added several times");
}

#[test]
fn time_left_is_never_negative() {
    let json = json!({"deals": 1, "clock": "10/1000/3000/100"});
    let mut game = Match::start(&params(json), 4, seed("margin"));
    let played = play_with_cost(&mut game, Micros::from_millis(15));
    assert!(commands(&played, 1).contains(&"time_left 0 1000"));
}

/// Plays a match in which each seat's first reply takes some time.
fn play_with_cost(game: &mut Match, cost: Micros) -> Played {
    play(game, |message| {
        let is_first = message.text.starts_with("your_number");
        (always("= check", message).0, if is_first { cost } else { Micros::ZERO })
    })
}

/// Plays a match in which seat 1 gives this reply to its first `command`.
fn play_with_reply(command: &str, reply: &str) -> Played {
    let piles: [&[Card]; 2] = [&[2, 1, 1, 1], &[1, 1, 1, 1]];
    let mut game = stacked(json!({"deals": 1}), &piles, "answer");
    play_with(&mut game, &[(1, command, 0, Ok(reply))])
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
    for (reply, bid) in good {
        let played = play_with_reply("genmove", reply);
        assert_eq!(forfeits(&played), [None, None], "{reply:?}");
        assert!(commands(&played, 2).contains(&&*format!("play 1 {bid}")), "{reply:?}");
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
    for reply in bad {
        let played = play_with_reply("genmove", reply);
        assert_eq!(forfeits(&played), [Some(Forfeit::Illegal), None], "{reply:?}");
        assert_eq!(scores(&played), [[0], [48]], "{reply:?}");
    }
}

#[test]
fn acknowledgements_may_have_any_content() {
    for command in ["your_number", "setdeck", "time_settings", "setstate", "topcard", "play"] {
        for reply in ["=", "?", "= ok", "=ok", "? unknown command", "=\none\ntwo", "\n="] {
            let played = play_with_reply(command, reply);
            assert_eq!(forfeits(&played), [None, None], "{command} {reply:?}");
        }
        for reply in ["", "ok", "\u{fffd}", "-"] {
            let played = play_with_reply(command, reply);
            assert_eq!(forfeits(&played), [Some(Forfeit::Illegal), None], "{command} {reply:?}");
        }
    }
}

#[test]
fn illegal_replies_get_a_reason() {
    let reason = |reply| {
        let played = play_with_reply("genmove", reply);
        let reason = played.transcript.iter().find_map(|line| line.strip_prefix("1? "));
        reason.unwrap().to_owned()
    };
    assert_eq!(reason("? no idea"), r#"refused to move: "no idea""#);
    let expected =
        r#"not a move: "= fold"; the moves are pass, check, raise 1, raise 2 and raise 3"#;
    assert_eq!(reason("= fold"), expected);
    let mut game = stacked(json!({"deals": 1}), &[&[2, 1], &[1, 1]], "answer");
    let played = play_with(&mut game, &[(1, "genmove", 0, Ok("= raise 2"))]);
    let expected = "1? raise 2 costs 2 cards, and the pile has 1";
    assert!(played.transcript.iter().any(|line| line == expected), "{:?}", played.transcript);
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
    let lines = commands(&played, 1);
    let war = lines.iter().position(|line| *line == "setstate 7 3 1 1 3").unwrap();
    // The dead seat pays for the war and passes at its turn. The other seat possibly gets no turn.
    let rest = &lines[war..];
    assert_eq!(rest[1], "topcard 1 1");
    let end = rest.iter().position(|line| line.starts_with("setstate 3 3 7 0 2"));
    assert!(rest[..end.unwrap()].contains(&"play 2 pass"));
    assert_eq!(scores(&played)[1], [0]);
}

#[test]
fn a_forfeit_counts_from_the_deal_in_which_it_happens() {
    // Seat 2 has the best card, and wins each deal at whose end it is alive.
    let piles: [&[Card]; 3] = [&[1], &[3], &[2]];
    let points = |command: &str, earlier| {
        let mut game = stacked(json!({"deals": 2}), &piles, "found");
        scores(&play_with(&mut game, &[(2, command, earlier, Err(Forfeit::Gone))]))[1][0]
    };
    assert_eq!(points("your_number", 0), 0);
    assert_eq!(points("setdeck", 0), 0);
    assert_eq!(points("topcard 3 2", 0), 0, "a deal lasts until its last cards are acknowledged");
    assert_eq!(points("setdeck", 1), 48);
    assert_eq!(points("time_settings", 1), 48);
}

#[test]
fn a_deal_ends_if_only_dead_seats_have_cards() {
    let piles: [&[Card]; 4] = [&[1], &[1], &[9; 5], &[9; 5]];
    let mut game = stacked(json!({"deals": 1}), &piles, "only");
    let dead = [(3, "setstate", 1, Err(Forfeit::Clock)), (4, "setstate", 1, Err(Forfeit::Flood))];
    let played = play_with(&mut game, &dead);
    // Seats 1 and 2 left in the same auction, and share the two first places.
    assert_eq!(scores(&played), [[36], [36], [0], [0]]);
    assert_eq!(commands(&played, 1).last_chunk(), Some(&["setstate 8 4 0 0 2 2", "quit"]));
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
    // Seats 3 and 4 share 24 and 48 points in each of two deals. Seat 3 wins the other five deals.
    let [_, _, third, fourth] = <[Vec<i64>; 4]>::try_from(scores(&played)).unwrap();
    assert_eq!(third[0] + fourth[0], 2 * 72 + 5 * 48);
    assert_eq!(commands(&played, 3).iter().filter(|line| line.starts_with("setdeck")).count(), 3);
    assert_eq!(commands(&played, 3).last(), Some(&"quit"));
    let tail = played.transcript.last_chunk::<3>().unwrap();
    assert_eq!(tail[..2], ["x 4", "3> quit"]);
}

#[test]
fn replies_after_the_end_have_no_effect() {
    let mut game = Match::start(&params(json!({"deals": 1})), 4, seed("end"));
    let played = play(&mut game, |message| always("= check", message));
    for _ in 0..3 {
        assert_eq!(game.receive_reply(Ok("nonsense"), Micros::from_millis(1_000_000)), Ok(()));
        assert_eq!(game.receive_reply(Err(Forfeit::Clock), Micros::ZERO), Ok(()));
        let arbiter_games::Step::Over(standings) = game.step() else {
            panic!("the match was over")
        };
        assert_eq!(standings, played.standings);
    }
}

#[test]
fn smaller_tables_award_the_upper_places() {
    for (seats, points) in [(2, 72), (3, 84)] {
        let json = json!({"deals": 3, "seats": seats});
        let mut game = Match::start(&params(json), seats, seed("small"));
        let played = play(&mut game, |message| always("= check", message));
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
    for (input, canonical) in table {
        let params_of_json = params(json!({"deck": input, "seats": 2}));
        assert_eq!(params_of_json.deck.to_string(), canonical);
        assert_eq!(params(json!({"deck": canonical, "seats": 2})), params_of_json);
    }
}

#[test]
fn invalid_parameters_are_errors() {
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
    for (json, reason) in table {
        let error = read(json.clone()).unwrap_err().to_string();
        assert!(error.contains(reason), "{json}: {error}");
    }
    params(json!({"clock": "4294967295/4294967295/0/4294967295"}));
}
