//! Matches of gomoku: protocol, rows, forfeits, parameters.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dialogue;

use std::fmt::Write as _;
use std::sync::LazyLock;

use arbiter_games::gomoku::{Board, Colour, Match, Overline, Params, ROW, SIDE, SQUARES, Square};
use arbiter_games::{
    ExpectedReply, Forfeit, Illegal, MatchState, Message, Micros, ParamsError, Rules, Seat, Seed,
    Step, gomoku, read_rules,
};
use dialogue::{Played, Reply, golden, names, play, scores};
use proptest::prelude::*;

const B: Colour = Colour::Black;
const W: Colour = Colour::White;

/// An opening far from the rows of the tests.
const OPENING: &str = "(14,14)(12,14)(13,14)";

#[test]
fn the_example_of_the_source() {
    golden("gomoku-example.txt");
    golden("gomoku-example-zero.txt");
}

#[test]
fn dialogues() {
    golden("gomoku-black.txt");
    golden("gomoku-choice-white.txt");
    golden("gomoku-late.txt");
    golden("gomoku-gone.txt");
}

fn params(json: &str) -> Result<Params, ParamsError> {
    read_rules(&gomoku::game().params, &serde_json::from_str(json).unwrap())
}

fn start(params: &Params) -> Match {
    Match::start(params, &names(2), Seed([0; 32]))
}

fn square(x: u8, y: u8) -> Square {
    Square::new(x, y).unwrap()
}

fn reply(text: impl Into<String>) -> Reply {
    (Ok(text.into()), Micros::ZERO)
}

/// Plays a match with these replies in turn, and a crash after the last one.
fn play_replies(game: &mut dyn MatchState, replies: &[&str]) -> Played {
    let mut replies = replies.iter();
    play(game, |_| replies.next().map_or((Err(Forfeit::Gone), Micros::ZERO), |next| reply(*next)))
}

/// The outcome of the last of these replies.
fn last_outcome(replies: &[&str]) -> Result<(), Illegal> {
    let mut game = start(&Params::default());
    let mut last = Ok(());
    for reply in replies {
        assert_eq!(last, Ok(()));
        assert!(matches!(
            game.step(),
            Step::Send(Message { expected_reply: ExpectedReply::Move, .. })
        ));
        last = game.receive_reply(Ok(reply), Micros::ZERO);
    }
    last
}

#[test]
fn replies_are_strict_except_for_white_space() {
    let to_open: &[&str] = &[];
    let to_swap = &[OPENING];
    let to_choose = &[OPENING, "(0,0)(1,1)"];
    let to_play = &[OPENING, "B"];
    let good: [(&[&str], &[&str]); 4] = [
        (to_open, &["(0,0)(1,1)(14,14)", "(0 , 0) (0,12)\t(1\u{a0}0,4)\r"]),
        (to_swap, &["B", "\"B\"", "\" B \"", "W(0,0)", "\"W\" (0,0)", "(0,0)(1,1)"]),
        (to_choose, &["B", "W", "\"B\"", " \"W\" "]),
        (to_play, &["(0,0)", "( 1 4 , 0 )"]),
    ];
    let bad: [(&[&str], &[&str]); 4] = [
        (
            to_open,
            &["", "(0,0)(1,1)", "(0,0)(1,1)(2,2)(3,3)", "(0,0)(1,1)(0,0)", "B", "(0,0),(1,1)"],
        ),
        (
            to_swap,
            &["", "W", "B(0,0)", "(0,0)", "(0,0)W", "W(0,0)(1,1)", "(0,0)(0,0)", "(0,0)(13,14)"],
        ),
        (to_choose, &["", "b", "\"B", "W\"", "'B'", "BB", "B(0,0)", "(2,2)", "black", "\"\"B"]),
        (
            to_play,
            &[
                "",
                "(15,0)",
                "(0,15)",
                "(256,0)",
                "(99999999999999999999,0)",
                "(07,7)",
                "(00,7)",
                "(+7,7)",
                "(-1,7)",
                "(7;7)",
                "(7,7",
                "7,7",
                "[7,7]",
                "(7,7,7)",
                "(7.0,7)",
                "(,7)",
                "(7,7)(7,8)",
                "(7,7)x",
                "(14,14)",
                "B",
                "\"B\"(7,7)",
                "(7,7)\n(7,8)",
                "(٧,7)",
                "(\u{fffd},7)",
                "EXIT",
                "((7,7),\"B\")",
            ],
        ),
    ];
    for (earlier, replies) in good {
        for reply in replies {
            assert_eq!(last_outcome(&[earlier, &[*reply]].concat()), Ok(()), "{reply:?}");
        }
    }
    for (earlier, replies) in bad {
        for reply in replies {
            assert!(last_outcome(&[earlier, &[*reply]].concat()).is_err(), "{reply:?}");
        }
    }
}

#[test]
fn an_illegal_reply_gets_a_reason() {
    for (replies, reason) in [
        (&["(0,0)(1,1)"][..], "three squares expected, found \"(0,0)(1,1)\""),
        (&["(0,0)(1,1)(1,15)"], "\"(1,15)\" is outside the board: coordinates are 0 to 14"),
        (&[OPENING, "(13,14)(0,0)"], "(13,14) is occupied"),
        (&[OPENING, "W"], "\"B\", or \"W\" and a square, or two squares expected, found \"W\""),
        (&[OPENING, "(0,0)(1,1)", "(2,2)"], "\"B\" or \"W\" expected, found \"(2,2)\""),
        (&[OPENING, "B", "B"], "one square expected, found \"B\""),
        (&[OPENING, "B", "(07,7)"], "neither a square nor a colour: \"(07,7)\""),
        (&[OPENING, "B", "(7,7)\n(7,8)"], "an answer is one line, found \"(7,7)\\n(7,8)\""),
        (
            &[OPENING, "B", "I resign, with my compliments"],
            "neither a square nor a colour: \"Iresign,withmycompliment\"…",
        ),
    ] {
        assert_eq!(last_outcome(replies), Err(Illegal(reason.to_string())), "{replies:?}");
    }
}

#[test]
fn a_forfeit_loses_immediately_and_living_bots_get_the_result() {
    let dialogue = [OPENING, "(0,0)(1,1)", "W", "(5,5)", "(6,6)"];
    for kind in Forfeit::ALL {
        for (ply, seat) in [1, 2, 1, 2, 1].into_iter().enumerate() {
            let mut replies = dialogue[..ply].iter();
            let played = play(&mut start(&Params::default()), |_| match replies.next() {
                Some(text) => reply(*text),
                None => (Err(kind), Micros::ZERO),
            });
            let winner = 3 - seat;
            let is_alive = |other: &usize| *other != seat || kind != Forfeit::Gone;
            let living = [1, 2].into_iter().filter(is_alive);
            let farewells = living.map(|seat| format!("{seat}> EXIT bot{winner}"));
            let expected: Vec<_> =
                [format!("{seat}! {kind}")].into_iter().chain(farewells).collect();
            let end = &played.transcript[2 * ply + 1..];
            assert_eq!(end[..end.len() - 1], expected);
            let loser = &played.standings[seat - 1];
            assert_eq!((loser.score.0[0], loser.forfeit), (0, Some(kind)));
            let winner = &played.standings[winner - 1];
            assert_eq!((winner.score.0[0], winner.forfeit), (2, None));
        }
    }
}

#[test]
fn the_result_needs_no_reply_and_the_end_repeats() {
    let mut game = start(&Params::default());
    game.step();
    game.receive_reply(Err(Forfeit::Clock), Micros::ZERO).unwrap();
    for seat in Seat::all(2) {
        let Step::Send(message) = game.step() else { panic!("expected a message") };
        assert_eq!(
            (message.seat, message.expected_reply, message.tells_time),
            (seat, ExpectedReply::None, false)
        );
        assert_eq!(game.receive_reply(Ok("nonsense"), Micros::ZERO), Ok(()));
    }
    let end = game.step();
    assert!(matches!(end, Step::Over(_)));
    assert_eq!(game.receive_reply(Err(Forfeit::Gone), Micros::ZERO), Ok(()));
    assert_eq!(game.step(), end);
}

#[test]
fn every_reply_has_the_full_time_limit() {
    let mut game = start(&params(r#"{"move_limit": "2s"}"#).unwrap());
    for reply in [OPENING, "(0,0)(1,1)", "B", "(2,2)"] {
        let Step::Send(message) = game.step() else { panic!("expected a message") };
        assert_eq!(message.allowance.time(), Micros::from_millis(2000));
        game.receive_reply(Ok(reply), Micros::from_millis(1999)).unwrap();
    }
}

/// B takes black. Black then fills (0,0) to (5,0), and places the stone on (3,0) last.
const SIX: [&str; 13] = [
    OPENING, "B", "(0,0)", "(0,2)", "(1,0)", "(2,2)", "(2,0)", "(4,2)", "(4,0)", "(6,2)", "(5,0)",
    "(8,2)", "(3,0)",
];

#[test]
fn an_overline_wins_or_is_ignored() {
    let six = play_replies(&mut start(&Params::default()), &SIX);
    assert_eq!((scores(&six), six.standings[0].forfeit), (vec![vec![0], vec![2]], None));
    let ignored = params(r#"{"overline": "ignored"}"#).unwrap();
    let six = play_replies(&mut start(&ignored), &SIX);
    assert_eq!(six.standings[0].forfeit, Some(Forfeit::Gone), "it is seat 1's turn");
    let mut five = SIX;
    five[10] = "(5,1)";
    let five = play_replies(&mut start(&ignored), &five);
    assert_eq!((scores(&five), five.standings[0].forfeit), (vec![vec![0], vec![2]], None));
}

/// The colour of each stone on a full board without a row of more than two.
fn tie_colour(square: Square) -> Colour {
    if (square.x() / 2 + square.y()).is_multiple_of(2) { B } else { W }
}

/// Fills the board with the black and the white stones in turn. B takes black.
fn fill(black: &[Square], white: &[Square]) -> Played {
    let mut black = black.iter();
    let mut white = white.iter();
    play(&mut start(&Params::default()), |message| {
        let mut stone = |colour| {
            let stones = if colour == B { &mut black } else { &mut white };
            stones.next().unwrap().to_string()
        };
        reply(match message.text.split(' ').next().unwrap() {
            "A" => [B, B, W].map(stone).concat(),
            "B" => "\"B\"".to_string(),
            number if number.parse::<u32>().unwrap().is_multiple_of(2) => stone(B),
            _ => stone(W),
        })
    })
}

#[test]
fn a_full_board_is_a_tie_unless_its_last_stone_wins() {
    let (mut black, mut white): (Vec<_>, Vec<_>) =
        Square::all().partition(|square| tie_colour(*square) == B);
    let replies = 2 + SQUARES - 3;
    let tie = fill(&black, &white);
    let end = ["1> EXIT TIE", "2> EXIT TIE", "over [[1],[1]] [null,null]"];
    assert_eq!(tie.transcript[2 * replies..], end);
    // Four squares change their colour, so that (4,0) completes a white row.
    for (last, other) in [(square(5, 0), square(2, 14)), (square(4, 0), square(10, 14))] {
        black.retain(|square| *square != last);
        black.push(other);
        white.retain(|square| *square != other);
        white.push(last);
    }
    let won = fill(&black, &white);
    let end = ["1> EXIT bot1", "2> EXIT bot1", "over [[2],[0]] [null,null]"];
    assert_eq!(won.transcript[2 * replies..], end);
}

#[test]
fn the_launch_arguments_are_the_opponent_and_a_shared_seed() {
    let arguments = |seed, seat| {
        Match::start(&Params::default(), &names(2), Seed([seed; 32]))
            .launch_arguments(Seat::from_index(seat))
    };
    let [a, b] = [arguments(1, 0), arguments(1, 1)];
    assert_eq!((a[0].as_str(), b[0].as_str(), a.len()), ("bot2", "bot1", 2));
    assert_eq!(a[1], b[1]);
    assert_eq!(a[1].parse::<u32>().unwrap().to_string(), a[1]);
    assert_ne!(a[1], arguments(2, 0)[1]);
    assert_eq!(arguments(0, 0)[1], "2917185654", "part of the rules version");
}

#[test]
fn parameters() {
    let official = Params::default();
    let json = r#"{"overline":"wins","first_number":0,"move_limit":"500ms"}"#;
    assert_eq!(serde_json::to_string(&official.values()).unwrap(), json);
    assert_eq!(params("{}").unwrap(), official);
    let json = r#"{"overline":"ignored","first_number":1,"move_limit":"2s"}"#;
    assert_eq!(serde_json::to_string(&params(json).unwrap().values()).unwrap(), json);
    let game = gomoku::game();
    let keys = game.param_keys();
    assert_eq!(keys, ["overline", "first_number", "move_limit"]);
    for (json, reason) in [
        (r#"{"overlines": "wins"}"#, "unknown field `overlines`"),
        (r#"{"overline": "loses"}"#, "overline cannot be `loses`: rows of more than five are"),
        (r#"{"first_number": 2}"#, "first_number cannot be 2: prompts are counted from 0 or"),
        (r#"{"first_number": -1}"#, "first_number cannot be -1"),
        (r#"{"move_limit": "0ms"}"#, "move_limit cannot be 0ms: a bot needs some time"),
        (
            r#"{"move_limit": "soon"}"#,
            "move_limit cannot be `soon`: write a whole number and a unit, as in",
        ),
    ] {
        let error = params(json).unwrap_err().to_string();
        assert!(error.contains(reason), "{json}: {error}");
    }
}

/// All lines of the board, as lists of squares.
static LINES: LazyLock<Vec<Vec<Square>>> = LazyLock::new(|| {
    let mut lines = Vec::new();
    for key in [|x: i8, _: i8| x, |_, y| y, |x, y| x - y, |x, y| x + y] {
        for value in -14..=28 {
            let on_line = |square: &Square| {
                let signed = |coordinate: u8| i8::try_from(coordinate).unwrap();
                key(signed(square.x()), signed(square.y())) == value
            };
            lines.push(Square::all().filter(on_line).collect());
        }
    }
    lines
});

/// The squares of all winning rows. It splits the text of each line into runs of equal stones.
fn rows(board: &Board, overline: Overline) -> Vec<Square> {
    let mut squares = Vec::new();
    for line in LINES.iter() {
        let text: String = line
            .iter()
            .map(|square| match board.get(*square) {
                Some(Colour::Black) => 'b',
                Some(Colour::White) => 'w',
                None => '.',
            })
            .collect();
        let mut start = 0;
        while start < line.len() {
            let letter = &text[start..=start];
            let length = text[start..].len() - text[start..].trim_start_matches(letter).len();
            let wins = match overline {
                Overline::Wins => length >= ROW,
                Overline::Ignored => length == ROW,
            };
            if letter != "." && wins {
                squares.extend(&line[start..start + length]);
            }
            start += length;
        }
    }
    squares
}

fn any_overline() -> impl Strategy<Value = Overline> {
    prop_oneof![Just(Overline::Wins), Just(Overline::Ignored)]
}

/// The content of each square: mostly black stones, so that rows of all lengths occur.
fn stones() -> impl Strategy<Value = Vec<Option<Colour>>> {
    let stone = prop_oneof![3 => Just(Some(B)), 1 => Just(Some(W)), 1 => Just(None)];
    proptest::collection::vec(stone, SQUARES)
}

/// All squares in random order. Squares near a random centre come first, so that rows are likely.
fn any_order() -> impl Strategy<Value = Vec<Square>> {
    let noise = proptest::collection::vec(0..40_u32, SQUARES);
    (noise, 0..SIDE, 0..SIDE, 0..4_u32).prop_map(|(noise, x, y, pull)| {
        let mut order: Vec<_> = Square::all().collect();
        order.sort_by_key(|square| {
            let distance = square.x().abs_diff(x).max(square.y().abs_diff(y));
            noise[square.index()] + pull * 10 * u32::from(distance)
        });
        order
    })
}

/// Valid and invalid replies.
fn any_reply() -> impl Strategy<Value = Result<String, Forfeit>> {
    let squares = |count| proptest::collection::vec((0..16_u8, 0..16_u8), count);
    let text = |squares: Vec<(u8, u8)>| {
        squares.iter().fold(String::new(), |mut text, (x, y)| {
            write!(text, "({x},{y})").unwrap();
            text
        })
    };
    prop_oneof![
        20 => squares(1..4_usize).prop_map(text).prop_map(Ok),
        5 => "(\"B\"|\"W\"|B|W) ?(\\([0-9]{1,2},[0-9]\\))?".prop_map(Ok),
        2 => "[ \"BW(),0-9]{0,12}".prop_map(Ok),
        1 => ".{0,20}".prop_map(Ok),
        1 => proptest::sample::select(Forfeit::ALL.to_vec()).prop_map(Err),
    ]
}

/// The reply of B to the opening.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Swap {
    Black,
    White,
    Both,
}

fn any_swap() -> impl Strategy<Value = Swap> {
    prop_oneof![Just(Swap::Black), Just(Swap::White), Just(Swap::Both)]
}

/// A valid reply with the next squares of an order. A chooses white.
fn next_in_order(
    message: &Message,
    squares: &mut dyn Iterator<Item = &Square>,
    swap: Swap,
) -> String {
    let mut next = || squares.next().unwrap().to_string();
    match (message.text.split(' ').next().unwrap(), swap) {
        ("A", _) => [next(), next(), next()].concat(),
        ("B", Swap::Black) => "B".to_string(),
        ("B", Swap::White) => format!("W{}", next()),
        ("B", Swap::Both) => [next(), next()].concat(),
        ("C", _) => "W".to_string(),
        _ => next(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_stone_wins_exactly_if_it_is_in_a_winning_row(
        stones in stones(),
        overline in any_overline(),
    ) {
        let mut board = Board::default();
        for (square, stone) in Square::all().zip(stones) {
            stone.map_or(Ok(()), |colour| board.place(square, colour)).unwrap();
        }
        let rows = rows(&board, overline);
        for square in Square::all() {
            prop_assert_eq!(board.wins(square, overline), rows.contains(&square), "{}", square);
        }
    }

    #[test]
    fn a_match_ends_exactly_with_the_first_row(
        order in any_order(),
        overline in any_overline(),
        swap in any_swap(),
    ) {
        let mut game = start(&Params { overline, ..Params::default() });
        let mut squares = order.iter();
        let played = play(&mut game, |message| reply(next_in_order(message, &mut squares, swap)));
        let (opening, black): (&[_], _) = match swap {
            Swap::Black => (&[B, B, W], 2),
            Swap::White => (&[B, B, W, W], 1),
            Swap::Both => (&[B, B, W, B, W], 2),
        };
        let colours = opening.iter().copied().chain([B, W].into_iter().cycle());
        let mut board = Board::default();
        let mut winner = 0;
        for (square, colour) in order.iter().zip(colours) {
            board.place(*square, colour).unwrap();
            if !rows(&board, overline).is_empty() {
                winner = if colour == B { black } else { 3 - black };
                break;
            }
        }
        let points = match winner { 0 => [1, 1], 1 => [2, 0], _ => [0, 2] };
        prop_assert_eq!(scores(&played), points.map(|points| vec![points]));
        let choices = if swap == Swap::Both { 3 } else { 2 };
        let replies = choices + board.count() - opening.len();
        prop_assert_eq!(played.transcript.len(), 2 * replies + 3);
    }

    #[test]
    fn stones_are_listed_in_order(order in any_order(), count in 0..225_usize) {
        let mut board = Board::default();
        for square in &order[..count] {
            board.place(*square, tie_colour(*square)).unwrap();
            prop_assert!(board.place(*square, Colour::Black).is_err());
        }
        let mut sorted = order[..count].to_vec();
        sorted.sort_by_key(|square| (square.x(), square.y()));
        let stone = |square: &Square| format!("({square},\"{}\")", tie_colour(*square));
        let stones: Vec<_> = sorted.iter().map(stone).collect();
        prop_assert_eq!(board.text(), format!("[{}]", stones.join(",")));
    }

    #[test]
    fn every_match_ends(
        order in any_order(),
        swap in any_swap(),
        valid_replies in 0..40_usize,
        replies in proptest::collection::vec(any_reply(), 1..40),
    ) {
        let play_match = || {
            let mut squares = order.iter();
            let mut replies = replies.iter().cycle();
            let mut valid = 0..valid_replies;
            play(&mut start(&Params::default()), |message| match valid.next() {
                Some(_) => reply(next_in_order(message, &mut squares, swap)),
                None => (replies.next().unwrap().clone(), Micros::ZERO),
            })
        };
        let played = play_match();
        let points: i64 = played.standings.iter().map(|standing| standing.score.0[0]).sum();
        prop_assert_eq!(points, 2);
        let forfeits = played.standings.iter().filter(|standing| standing.forfeit.is_some());
        prop_assert!(forfeits.clone().count() <= 1);
        prop_assert!(forfeits.into_iter().all(|standing| standing.score.0[0] == 0));
        prop_assert_eq!(play_match().transcript, played.transcript);
    }
}
