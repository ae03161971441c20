//! Matches of bitwa: protocol, forfeits, results, boards, parameters.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dialogue;

use std::cell::Cell;

use arbiter_games::bitwa::{Board, Division, Match, Params, official_boards, shipped_boards};
use arbiter_games::{
    ExpectedReply, Forfeit, MatchState, Message, Micros, ParamsError, Rules, Seed, Step, bitwa,
    read_rules,
};
use dialogue::{Played, Reply, golden, names, play, scores};
use proptest::prelude::*;

/// An order that is valid on every board.
const ORDER: &str = "= 1 0 0 1 1 1";

fn params(json: &str) -> Params {
    read(json).unwrap()
}

fn read(json: &str) -> Result<Params, ParamsError> {
    read_rules(&bitwa::game().params, &serde_json::from_str(json).unwrap())
}

/// A game of two rounds on a board where the two units never meet.
fn quiet() -> Match {
    Match::start(&params(r#"{"board": "3 1 2 1 A#a"}"#))
}

/// The reply of a correct bot.
fn good(message: &Message) -> Reply {
    with(ORDER, message)
}

/// The reply `order` to a request for an order, and a good reply to any other command.
fn with(order: &str, message: &Message) -> Reply {
    let reply = if message.expected_reply == ExpectedReply::Move { order } else { "=" };
    (Ok(reply.to_string()), Micros::ZERO)
}

/// Plays `game`. Commands that start with `command` (with the seat, as in `1> gen_move`) get
/// `reply`. All other commands get a good reply.
fn play_with_reply(
    game: &mut dyn MatchState,
    command: &str,
    reply: Result<&str, Forfeit>,
) -> Played {
    play(game, |message| {
        let line = format!("{}> {}", message.seat, message.text);
        if line.starts_with(command) {
            (reply.map(str::to_string), Micros::ZERO)
        } else {
            good(message)
        }
    })
}

fn forfeits(played: &Played) -> Vec<Option<Forfeit>> {
    played.standings.iter().map(|standing| standing.forfeit).collect()
}

/// The number of transcript lines that start with `prefix`.
fn count(played: &Played, prefix: &str) -> usize {
    played.transcript.iter().filter(|line| line.starts_with(prefix)).count()
}

#[test]
fn the_documents_example() {
    golden("bitwa-example.txt");
}

#[test]
fn transcripts() {
    for file in ["bitwa-annihilation.txt", "bitwa-killed.txt", "bitwa-clock.txt"] {
        golden(file);
    }
}

// Rounds and turns

#[test]
fn divisions_move_once_a_round_in_letter_order() {
    let mut game = Match::start(&params(r#"{"board": "13 1 2 1 z#A#c#a#C#B#Z"}"#));
    let played = play(&mut game, good);
    let requests = played.transcript.iter().filter_map(|line| line.split_once("gen_move "));
    let requests: Vec<_> =
        requests.map(|(seat, letter)| format!("{}{letter}", &seat[..1])).collect();
    assert_eq!(requests, ["1A", "2a", "1B", "1C", "2c", "1Z", "2z"].repeat(2));
}

#[test]
fn divisions_without_units_are_skipped() {
    // A destroys the only unit of a. Then only b can move.
    let mut game = Match::start(&params(r#"{"board": "5 1 2 1 Aa#b#"}"#));
    let played = play_with_reply(&mut game, "1> gen_move A", Ok("= 1 1 0 1 1 1"));
    assert_eq!(count(&played, "2> gen_move a"), 0);
    assert_eq!(count(&played, "2> gen_move b"), 2);
    assert_eq!(scores(&played), [[0, 0, 0], [0, 0, 0]]);
}

#[test]
fn the_rounds_are_limited() {
    for (json, rounds) in [
        (r#"{"board": "3 1 7 1 A#a"}"#, 7),
        (r#"{"board": "3 1 7 1 A#a", "rounds": 3}"#, 3),
        (r#"{"board": "3 1 7 1 A#a", "rounds": 9}"#, 9),
    ] {
        let played = play(&mut Match::start(&params(json)), good);
        assert_eq!(count(&played, "1> gen_move A"), rounds, "{json}");
        assert_eq!(count(&played, "2> gen_move a"), rounds, "{json}");
        assert_eq!(played.transcript[0], format!("1> set_game 3 1 {rounds} 1 A#a"));
        let end = &played.transcript[played.transcript.len() - 3..];
        assert_eq!(end, ["1> quit", "2> quit", "over [[0,0,0],[0,0,0]] [null,null]"]);
    }
}

#[test]
fn a_side_without_units_has_lost_before_the_first_move() {
    let played = play(&mut Match::start(&params(r#"{"board": "4 1 7 5 AB.#"}"#)), good);
    assert_eq!(scores(&played), [[1, 2, 10], [-1, -2, -10]]);
    assert_eq!(count(&played, "1> gen_move"), 0);
    assert_eq!(count(&played, "2> set_game"), 1);
    let played = play(&mut Match::start(&params(r#"{"board": "2 1 7 5 .."}"#)), good);
    assert_eq!(scores(&played), [[0, 0, 0], [0, 0, 0]]);
}

#[test]
fn both_bots_get_the_last_order() {
    let played = play(&mut quiet(), good);
    assert_eq!(count(&played, "1> play A 1 0 0 1 1 1"), 2);
    assert_eq!(count(&played, "2> play a 1 0 0 1 1 1"), 2);
}

// Results

#[test]
fn more_units_win() {
    for (board, result) in [
        ("6 1 1 3 A#a#a#", [-1, -1, -3]),
        ("6 1 1 3 A#B#a#", [1, 1, 3]),
        ("6 1 1 3 A#a#A#", [1, 1, 3]),
        ("6 1 1 3 A#a###", [0, 0, 0]),
    ] {
        let mut game = Match::start(&params(&format!(r#"{{"board": "{board}"}}"#)));
        let played = play(&mut game, good);
        assert_eq!(scores(&played), [result, result.map(|part| -part)], "{board}");
    }
}

#[test]
fn equal_units_are_decided_by_strength() {
    let mut game = Match::start(&params(r#"{"board": "3 1 1 3 .Aa"}"#));
    let played = play(&mut game, |message| match message.seat.number() {
        1 => with("= 1 2 0 1 1 1", message),
        _ => with("= 0 2 0 1 1 1", message),
    });
    assert_eq!(scores(&played), [[1, 0, 1], [-1, 0, -1]]);
}

#[test]
fn more_units_beat_more_strength() {
    // In eight rounds A lowers a and b to one point each, and they never attack.
    let mut game = Match::start(&params(r#"{"board": "3 1 8 5 aAb"}"#));
    let mut orders = 0;
    let played = play(&mut game, |message| match message.text.as_str() {
        "gen_move A" => {
            orders += 1;
            with(if orders <= 4 { "= 1 0 0 1 1 1" } else { "= 1 2 0 1 1 1" }, message)
        }
        "gen_move a" => with("= 0 0 0 1 1 1", message),
        _ => with("= 0 2 0 1 1 1", message),
    });
    assert_eq!(scores(&played), [[-1, -1, 3], [1, 1, -3]]);
}

// Replies and forfeits

#[test]
fn malformed_replies_forfeit() {
    for (reply, reason) in [
        ("= 1 0 0 1 1", "a move is six numbers, A xd yd dx dy p, not 5"),
        ("= 1 0 0 1 1 1 1", "a move is six numbers, A xd yd dx dy p, not 7"),
        ("=", "a move is six numbers, A xd yd dx dy p, not 0"),
        ("", "an answer starts with = or ?, not with \"\""),
        ("1 0 0 1 1 1", "an answer starts with = or ?, not with \"1 0 0 1 1 1\""),
        ("? no idea", "refused to move: \"no idea\""),
        ("= 2 0 0 1 1 1", "A must be 0 or 1, not 2"),
        ("= -1 0 0 1 1 1", "A must be 0 or 1, not -1"),
        ("= 1 3 0 1 1 1", "the target (3, 0) is off the board of 3 x 1 squares"),
        ("= 1 0 1 1 1 1", "the target (0, 1) is off the board of 3 x 1 squares"),
        ("= 1 -1 0 1 1 1", "the target (-1, 0) is off the board of 3 x 1 squares"),
        ("= 1 256 0 1 1 1", "the target (256, 0) is off the board of 3 x 1 squares"),
        ("= 1 0 0 0 1 1", "dx must be -1 or 1, not 0"),
        ("= 1 0 0 1 2 1", "dy must be -1 or 1, not 2"),
        ("= 1 0 0 1 1 -1", "p must be 0 or 1, not -1"),
        ("= 1 0 0 1 +1 1", "dy must be a plain whole number, not \"+1\""),
        ("= 01 0 0 1 1 1", "A must be a plain whole number, not \"01\""),
        ("= 1 -0 0 1 1 1", "xd must be a plain whole number, not \"-0\""),
        ("= 1 0 x 1 1 1", "yd must be a plain whole number, not \"x\""),
        ("= 1 0 0 1 1 1.0", "p must be a plain whole number, not \"1.0\""),
        ("= 1 0 99999999999999999999 1 1 1", "yd must be a plain whole number, not \"9999"),
    ] {
        let played = play_with_reply(&mut quiet(), "1> gen_move", Ok(reply));
        let line = played.transcript.iter().find(|line| line.starts_with("1? "));
        let line = line.unwrap_or_else(|| panic!("{reply} is accepted"));
        assert!(line[3..].starts_with(reason), "{reply}: {line}");
        assert_eq!(forfeits(&played), [Some(Forfeit::Illegal), None]);
        assert_eq!(count(&played, "2> gen_move a"), 2, "the game continues");
        assert_eq!((count(&played, "1> "), count(&played, "x 1")), (3, 1));
    }
}

#[test]
fn white_space_in_replies_is_ignored() {
    for reply in ["=1 2 0 -1 -1 0", "  =  1  2 0\t-1 -1 0 \r", "\n\n= 1 2 0 -1 -1 0\r\n"] {
        let played = play_with_reply(&mut quiet(), "1> gen_move", Ok(reply));
        assert_eq!(forfeits(&played), [None, None], "{reply}");
        assert_eq!(count(&played, "2> play A 1 2 0 -1 -1 0"), 2);
    }
    for command in ["1> set_game", "1> time_left", "1> play", "2> play A"] {
        for reply in ["?", "? unknown command", "= all right", "=\nlines\nof talk"] {
            assert_eq!(forfeits(&play_with_reply(&mut quiet(), command, Ok(reply))), [None, None]);
        }
    }
}

#[test]
fn acknowledgements_without_a_sign_forfeit() {
    for command in ["1> set_game", "1> time_left", "1> play A"] {
        for reply in ["", "ok", "!"] {
            let played = play_with_reply(&mut quiet(), command, Ok(reply));
            assert_eq!(forfeits(&played), [Some(Forfeit::Illegal), None], "{command} {reply}");
            assert_eq!(count(&played, "2> gen_move a"), 2);
        }
    }
}

#[test]
fn the_opponent_continues_after_any_forfeit() {
    for forfeit in Forfeit::ALL {
        for command in ["1> set_game", "1> time_left", "1> gen_move", "1> play A", "1> play a"] {
            let played = play_with_reply(&mut quiet(), command, Err(forfeit));
            assert_eq!(forfeits(&played), [Some(forfeit), None], "{command}");
            assert_eq!(count(&played, "2> gen_move a"), 2, "{command}");
            let dismissal = played.transcript.iter().position(|line| line == "x 1").unwrap();
            assert!(
                played.transcript[dismissal - 1].starts_with("1! "),
                "the program is killed immediately"
            );
            let later = &played.transcript[dismissal..];
            assert!(!later.iter().any(|line| line.starts_with("1>")), "it gets no more messages");
            assert_eq!(played.transcript[played.transcript.len() - 2], "2> quit");
        }
    }
}

/// A valid order counts even if the bot dies right after it.
#[test]
fn an_order_counts_even_if_its_bot_dies_next() {
    let mut game = Match::start(&params(r#"{"board": "4 1 5 1 Aab."}"#));
    let played = play(&mut game, |message| match message.text.as_str() {
        "gen_move A" => (Ok("= 1 1 0 1 1 1".to_string()), Micros::ZERO),
        "gen_move b" => (Ok("= 0 3 0 1 1 1".to_string()), Micros::ZERO),
        text if text.starts_with("play A") && message.seat.number() == 1 => {
            (Err(Forfeit::Gone), Micros::ZERO)
        }
        _ => (Ok("=".to_string()), Micros::ZERO),
    });
    assert_eq!(count(&played, "2> play A 1 1 0 1 1 1"), 1, "seat 2 gets the order");
    assert_eq!(count(&played, "2> gen_move b"), 5, "seat 2 continues alone");
    assert_eq!(scores(&played), [[0, 0, 0], [0, 0, 0]]);
    assert_eq!(forfeits(&played), [Some(Forfeit::Gone), None]);
}

#[test]
fn the_game_ends_when_both_are_killed() {
    let mut game = Match::start(&params(r#"{"board": "4 1 9 2 A#ab"}"#));
    let played = play(&mut game, |message| match message.text.as_str() {
        "gen_move A" => (Err(Forfeit::Clock), Micros::ZERO),
        "gen_move b" => (Err(Forfeit::Gone), Micros::ZERO),
        _ => good(message),
    });
    assert_eq!(forfeits(&played), [Some(Forfeit::Clock), Some(Forfeit::Gone)]);
    assert_eq!(scores(&played), [[-1, -1, -2], [1, 1, 2]], "units on the board count as points");
    let end = &played.transcript[played.transcript.len() - 3..];
    assert_eq!(&end[..2], ["2! gone", "x 2"]);
    let played = play_with_reply(&mut quiet(), "", Err(Forfeit::Gone));
    assert_eq!(count(&played, "1> set_game") + count(&played, "2> set_game"), 2);
    assert_eq!(played.transcript.len(), 7);
}

#[test]
fn replies_after_the_end_have_no_effect() {
    // The last order decides the game. The replies to its `play` commands have no effect.
    for reply in [Err(Forfeit::Gone), Err(Forfeit::Clock), Ok("nonsense")] {
        let play_commands = Cell::new(0);
        let played = play(&mut quiet(), |message| {
            if message.text.starts_with("play a") {
                play_commands.set(play_commands.get() + 1);
            }
            if play_commands.get() > 2 {
                (reply.map(str::to_string), Micros::ZERO)
            } else {
                good(message)
            }
        });
        assert_eq!(forfeits(&played), [None, None]);
        assert_eq!(count(&played, "x "), if reply.is_ok() { 0 } else { 2 });
        assert_eq!(scores(&played), [[0, 0, 0], [0, 0, 0]]);
    }
    let mut game = quiet();
    let results = play(&mut game, good).standings;
    for _ in 0..3 {
        assert_eq!(game.step(), Step::Over(results.clone()));
    }
}

#[test]
fn only_time_left_contains_the_time() {
    play(&mut quiet(), |message| {
        assert_eq!(message.tells_time, message.text.starts_with("time_left"));
        let is_request = message.expected_reply == ExpectedReply::Move;
        assert_eq!(is_request, message.text.starts_with("gen_move"));
        good(message)
    });
}

/// The symmetry between the two players' sides of a board.
#[derive(Clone, Copy, Debug)]
enum Symmetry {
    LeftRight,
    TopBottom,
    Centre,
    /// Left to right, for units but not for walls.
    UnitsLeftRight,
}

impl Symmetry {
    /// The square that mirrors (x, y).
    fn image(self, (x, y): (usize, usize), board: &Board) -> (usize, usize) {
        let right = board.columns() - 1;
        let bottom = board.rows() - 1;
        match self {
            Self::LeftRight | Self::UnitsLeftRight => (right - x, y),
            Self::TopBottom => (x, bottom - y),
            Self::Centre => (right - x, bottom - y),
        }
    }
}

/// The rows of a board as characters.
fn rows(board: &Board) -> Vec<Vec<char>> {
    board.text().split(' ').skip(4).map(|row| row.chars().collect()).collect()
}

fn other_case(letter: char) -> char {
    if letter.is_ascii_uppercase() {
        letter.to_ascii_lowercase()
    } else {
        letter.to_ascii_uppercase()
    }
}

#[test]
fn shipped_boards_are_symmetric() {
    use Symmetry::{Centre, LeftRight, TopBottom, UnitsLeftRight};
    for (name, symmetry) in [
        ("pole", LeftRight),
        ("korytarze", Centre),
        ("labirynt", Centre),
        ("drobnica", TopBottom),
        ("kolosy", LeftRight),
        ("twierdze", Centre),
        ("maraton", Centre),
        ("rumowisko", UnitsLeftRight),
        ("przyklad", UnitsLeftRight),
    ] {
        let board: Board = name.parse().unwrap();
        let rows = rows(&board);
        for (y, row) in rows.iter().enumerate() {
            for (x, &square) in row.iter().enumerate() {
                let (x, y) = symmetry.image((x, y), &board);
                let image = rows[y][x];
                let walls_count = !matches!(symmetry, UnitsLeftRight);
                if walls_count || square.is_alphabetic() {
                    assert_eq!(image, other_case(square), "{name}, the image ({x}, {y})");
                }
            }
        }
    }
}

#[test]
fn shipped_boards_are_playable() {
    let names: Vec<_> = shipped_boards().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 9);
    assert_eq!(official_boards().map(|(name, _)| name).collect::<Vec<_>>(), names[..8]);
    assert_eq!(names[8], "przyklad");
    for (name, text) in shipped_boards() {
        let board: Board = text.parse().unwrap();
        assert_eq!(Ok(&board), name.parse().as_ref());
        assert_eq!(board.text().parse().as_ref(), Ok(&board));
        let rows = rows(&board);
        let right = board.columns() - 1;
        let bottom = board.rows() - 1;
        let border = |x, y| x == 0 || y == 0 || x == right || y == bottom;
        for (y, row) in rows.iter().enumerate() {
            for (x, square) in row.iter().enumerate() {
                assert!(
                    !border(x, y) || *square == '#',
                    "{name}: the border is open at ({x}, {y})"
                );
            }
        }
        assert!(is_connected(&rows), "{name} is not connected");
        let divisions = Division::all().filter(|d| rows.concat().contains(&d.letter())).count();
        let orders = divisions * usize::try_from(board.rounds()).unwrap();
        assert!(orders <= 2500, "{name} needs {orders} orders");
    }
}

/// Whether units can move from every free square to every other free square.
fn is_connected(rows: &[Vec<char>]) -> bool {
    let mut unvisited: Vec<(usize, usize)> = vec![];
    for (y, row) in rows.iter().enumerate() {
        unvisited.extend((0..row.len()).filter(|x| row[*x] != '#').map(|x| (x, y)));
    }
    let mut queue: Vec<_> = unvisited.pop().into_iter().collect();
    while let Some((x, y)) = queue.pop() {
        let is_neighbour = |&(a, b): &(usize, usize)| a.abs_diff(x) <= 1 && b.abs_diff(y) <= 1;
        queue.extend(unvisited.extract_if(.., |square| is_neighbour(square)));
    }
    unvisited.is_empty()
}

#[test]
fn boards_are_read_with_comments_and_any_white_space() {
    let text = "; a comment\n3 2\t4 5\r\n; # another\n#.#\n\n AbC \n";
    let board: Board = text.parse().unwrap();
    assert_eq!(board.text(), "3 2 4 5 #.# AbC");
    let sides = (board.columns(), board.rows());
    let rest = (board.rounds(), board.strength());
    assert_eq!((sides, rest), ((3, 2), (4, 5)));
    let widest = format!("100 100 1000000 1000000{}", format!(" {}", ".".repeat(100)).repeat(100));
    assert!(widest.parse::<Board>().is_ok());
}

#[test]
fn errors_of_boards_name_the_row_and_the_cause() {
    for (text, error) in [
        ("", "the board's number of columns is missing: columns, rows, rounds and strength"),
        ("3 2 4", "the board's number of strength is missing"),
        ("; 3 2 4 1", "the board's number of columns is missing"),
        ("nowhere", "there is no board \"nowhere\"; the boards are pole, korytarze, labirynt"),
        ("Pole", "there is no board \"Pole\""),
        ("0 2 4 1 a b", "the board's number of columns is \"0\": 1 to 100 are allowed"),
        ("101 2 4 1 a b", "the board's number of columns is \"101\": 1 to 100 are allowed"),
        ("3 x 4 1 a b", "the board's number of rows is \"x\": 1 to 100 are allowed"),
        ("3 2 0 1 a b", "the board's number of rounds is \"0\": 1 to 1000000 are allowed"),
        ("3 2 1 -5 a b", "the board's number of strength is \"-5\": 1 to 1000000 are allowed"),
        ("3 2 1 1000001 a b", "the board's number of strength is \"1000001\": 1 to"),
        ("3 2 4 1 ...", "row 1 of the board is missing: it should have 2 rows, counted from 0"),
        ("3 2 4 1 ... ....", "row 1 of the board has 4 squares instead of 3"),
        ("3 2 4 1 .. ...", "row 0 of the board has 2 squares instead of 3"),
        ("3 2 4 1 ... ..ż", "row 1 of the board has 'ż' in column 2: use # . A-Z a-z"),
        ("3 2 4 1 .1. ...", "row 0 of the board has '1' in column 1: use # . A-Z a-z"),
        ("3 1 4 1 ... xyz", "\"xyz\" follows row 0, which should be the last row of the board"),
    ] {
        let message = text.parse::<Board>().unwrap_err().to_string();
        assert!(message.starts_with(error), "{text}: {message}");
    }
}

#[test]
fn official_parameters() {
    let official = Params::default();
    assert_eq!(official, params("{}"));
    let json = serde_json::to_string(&official.values()).unwrap();
    assert_eq!(json, r#"{"board":"pole","bank":"3min"}"#);
    assert_eq!(params(&json), official);
}

#[test]
fn parameters_round_trip() {
    let przyklad = "8 6 100 2 ######## #.A..a.# #AA#.aa# #BB.#bb# #.B..b.# ########";
    for (json, expected) in [
        (
            r#"{"board":"maraton","rounds":7,"bank":"90s"}"#.to_string(),
            r#"{"board":"maraton","rounds":7,"bank":"90s"}"#,
        ),
        (format!(r#"{{"board":"{przyklad}"}}"#), r#"{"board":"przyklad","bank":"3min"}"#),
        (
            r#"{"board":";c\n3 1\n4 1\nA#a"}"#.to_string(),
            r#"{"board":"3 1 4 1 A#a","bank":"3min"}"#,
        ),
    ] {
        let params_of_json = params(&json);
        assert_eq!(serde_json::to_string(&params_of_json.values()).unwrap(), expected);
        assert_eq!(params(expected), params_of_json);
    }
}

#[test]
fn invalid_parameters_are_errors() {
    for (json, error) in [
        (r#"{"baord": "pole"}"#, "unknown field `baord`"),
        (r#"{"board": "nowhere"}"#, "there is no board \"nowhere\""),
        (r#"{"board": 8}"#, "board cannot be 8: write the name of a board or its text, as in pole"),
        (r#"{"rounds": 0}"#, "rounds cannot be 0: 1 to 1000000 are allowed"),
        (r#"{"rounds": 1000001}"#, "rounds cannot be 1000001: 1 to 1000000 are allowed"),
        (r#"{"rounds": -1}"#, "rounds cannot be -1: 1 to 1000000 are allowed"),
        (r#"{"bank": "0ms"}"#, "bank cannot be 0ms: a bot needs some time, as in 3min"),
        (
            r#"{"bank": "-3min"}"#,
            "bank cannot be `-3min`: write a whole number and a unit, as in 3min",
        ),
        (r#"{"bank": 180}"#, "bank cannot be 180: write a whole number and a unit, as in 3min"),
    ] {
        let message = read(json).unwrap_err().to_string();
        assert!(message.starts_with(error), "{json}: {message}");
    }
}

#[test]
fn every_parameter_is_described() {
    let all = serde_json::to_value(params(r#"{"rounds": 1}"#).values()).unwrap();
    let keys: Vec<_> = all.as_object().unwrap().keys().map(String::as_str).collect();
    let game = bitwa::game();
    let described = game.param_keys();
    assert_eq!(described, keys);
    for (name, _) in shipped_boards() {
        assert!(game.params[0].help.contains(name), "{name} is not described");
    }
}

/// Possible replies of a bot.
fn any_reply() -> impl Strategy<Value = Result<String, Forfeit>> {
    let number = || prop_oneof![8 => (-1i64..9).prop_map(|n| n.to_string()), 1 => "[-+0-9]{0,12}"];
    let numbers = proptest::collection::vec(number(), 6).prop_map(|n| format!("= {}", n.join(" ")));
    let sign = || proptest::sample::select(vec![-1, 1]);
    let legal = (0..2, 0..8, 0..6, sign(), sign(), 0..2)
        .prop_map(|(a, x, y, dx, dy, p)| format!("= {a} {x} {y} {dx} {dy} {p}"));
    prop_oneof![
        200 => legal.prop_map(Ok),
        2 => numbers.prop_map(Ok),
        2 => "[=?]?\\PC{0,30}".prop_map(Ok),
        2 => any::<String>().prop_map(Ok),
        1 => proptest::sample::select(Forfeit::ALL.to_vec()).prop_map(Err),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Any replies give a match that ends, with scores that add up to zero, and is reproducible.
    #[test]
    fn every_match_ends(
        replies in proptest::collection::vec((any_reply(), 0i64..2_000_000), 1..200),
        rounds in 1u32..12,
        acks in any::<bool>(),
    ) {
        let json = format!(r#"{{"board": "przyklad", "rounds": {rounds}}}"#);
        let play_match = || {
            let players = [String::from("alpha"), String::from("beta")];
            let mut game = arbiter_games::Params::new(&bitwa::game(), params(&json))
                .start(&players.map(|name| name.parse().unwrap()), Seed([7; 32]))
                .unwrap();
            let mut next = replies.iter().cycle();
            play(game.as_mut(), |message| {
                if acks && message.expected_reply == ExpectedReply::Ack {
                    return good(message);
                }
                let (reply, charged) = next.next().unwrap();
                (reply.clone(), Micros(*charged))
            })
        };
        let played = play_match();
        let replayed = play_match();
        prop_assert_eq!(&played.transcript, &replayed.transcript);
        let scores = scores(&played);
        for (first, second) in scores[0].iter().zip(&scores[1]) {
            prop_assert_eq!(first + second, 0);
        }
        prop_assert!((-1..=1).contains(&scores[0][0]) && scores[0][1].abs() <= 6);
        prop_assert!(scores[0][2].abs() <= 12);
        prop_assert!(count(&played, "1> gen_move A") <= rounds as usize);
    }
}

#[test]
fn a_match_needs_two_bots() {
    let params = arbiter_games::Params::official(&bitwa::game());
    assert!(params.start(&names(2), Seed([0; 32])).is_ok());
    assert!(params.start(&names(3), Seed([0; 32])).is_err());
}
