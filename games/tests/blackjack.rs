//! Examples of blackjack: the example of the document, a transcript for each rule, and the
//! parameters.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dialogue;

use std::path::Path;

use arbiter_games::blackjack::{Action, Card, Face, Match, Params, Shoe, Situation, Table, score};
use arbiter_games::{
    Allowance, ExpectedReply, Forfeit, MatchState as _, Micros, Params as AnyParams, ParamsError,
    Rules, Seat, Seed, Step, blackjack, read_rules,
};

const SEED: Seed = Seed([7; 32]);

fn cards(letters: &str) -> Vec<Card> {
    letters.chars().map(|letter| Card::from_letter(letter).unwrap()).collect()
}

fn params(json: &str) -> Params {
    read(json).unwrap()
}

fn read(json: &str) -> Result<Params, ParamsError> {
    read_rules(&blackjack::game().params, &serde_json::from_str(json).unwrap())
}

/// The reply of the document's sample bot "Lim 17" to `situation`.
fn lim17(situation: &str) -> &'static str {
    let score: u32 = situation.split(' ').next().unwrap().parse().unwrap();
    if score < 17 { "H" } else { "S" }
}

/// The text of a transcript of this game.
fn transcript(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/transcripts/blackjack-{name}.txt"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Replays a transcript whose first cards are in the lines `shoe …`. The lines `params JSON` and
/// `seats N` are its other input.
fn stacked(name: &str) {
    let text = transcript(name);
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let values = |key: &str| lines.iter().filter_map(|line| line.strip_prefix(key)).collect();
    let settings: String = values("params ");
    let seats: String = values("seats ");
    let shoe: String = values("shoe ");
    let mut game = Match::stacked(
        &params(&settings),
        seats.parse().unwrap(),
        SEED,
        &cards(&shoe.replace(' ', "")),
    )
    .unwrap();
    let body: Vec<_> = lines
        .into_iter()
        .skip_while(|line| ["params ", "seats ", "shoe "].iter().any(|key| line.starts_with(key)))
        .collect();
    dialogue::follow(&mut game, &body, name);
}

/// Checks that every reply of a transcript is the reply of "Lim 17".
fn is_all_lim17(name: &str) {
    let text = transcript(name);
    let mut expected = None;
    for line in text.lines() {
        if let Some((_, situation)) = line.split_once("> ") {
            expected = Some(lim17(situation));
        } else if let Some((_, reply)) = line.split_once("< ") {
            assert_eq!(Some(reply), expected.take(), "{line}");
        }
    }
}

#[test]
fn the_sample_input_of_the_document() {
    let situation = Situation {
        hand: cards("KJA"),
        visible: cards("KQKJA3592A").into_iter().map(Face::Up).collect(),
        stake: 25,
        chips: 145,
    };
    assert_eq!(situation.to_string(), "21 KJA KQKJA3592A 25 145");
    let hidden = Situation { visible: vec![Face::Up(cards("K")[0]), Face::Down], ..situation };
    assert_eq!(hidden.to_string(), "21 KJA K# 25 145");
}

#[test]
fn the_sample_bot_of_the_document() {
    stacked("lim17");
    is_all_lim17("lim17");
}

#[test]
fn the_sample_bot_on_an_official_table() {
    dialogue::golden("blackjack-official.txt");
    is_all_lim17("official");
}

#[test]
fn every_move() {
    stacked("moves");
}

#[test]
fn aces_are_lowered_one_at_a_time() {
    stacked("aces");
}

#[test]
fn doubling_takes_chips_and_one_card() {
    stacked("double");
}

#[test]
fn players_who_cannot_pay_get_no_cards() {
    stacked("broke");
}

#[test]
fn players_act_in_turn() {
    stacked("passes");
}

#[test]
fn bad_replies_count_as_standing_up_to_the_limit() {
    stacked("bad");
}

#[test]
fn an_empty_shoe_is_replaced_in_the_middle_of_a_hand() {
    stacked("shoe");
}

#[test]
fn bad_replies_are_counted_and_never_forfeit() {
    let settings = params(r#"{"bad_answers": [13, 15, 0]}"#);
    let mut game = Match::start(&settings, 3, SEED).unwrap();
    let played = dialogue::play(&mut game, |message| {
        let reply =
            if message.seat.number() == 3 { Ok("S".to_owned()) } else { Err(Forfeit::Clock) };
        (reply, Micros::ZERO)
    });
    let counts: Vec<_> = played.standings.iter().map(|seat| seat.bad_answers).collect();
    assert_eq!(counts, [2, 0, 0]);
    assert!(played.standings.iter().all(|seat| seat.forfeit.is_none()));
    assert!(
        !played.transcript.iter().any(|line| line.starts_with("2>")),
        "seat 2 gets no messages"
    );
    assert!(!played.transcript.iter().any(|line| line.starts_with('x')), "no seat is dismissed");
}

#[test]
fn every_decision_has_the_time_limit() {
    let mut game = Match::start(&params(r#"{"move_limit": "750ms"}"#), 1, SEED).unwrap();
    let Step::Send(message) = game.step() else { panic!("expected a message") };
    assert_eq!((message.expected_reply, message.tells_time), (ExpectedReply::Move, false));
    assert_eq!(message.allowance, Allowance::Move(Micros::from_millis(750)));
}

#[test]
fn the_hundred_and_first_bet_counts_as_standing() {
    let mut table = Table::new(&[500], Shoe::stacked(&cards("TTTT"), SEED.dice(0)));
    assert!(table.deal());
    for bets in 1..=100 {
        table.act(Action::Bet(1));
        assert_eq!(table.players()[0].stake(), 10 + bets);
        assert_eq!(table.turn(), Some(Seat::from_index(0)));
    }
    table.act(Action::Bet(1));
    assert_eq!((table.players()[0].stake(), table.turn()), (110, None));
}

#[test]
fn stakes_are_capped_below_overflow() {
    let max = 1_000_000_000_000;
    let mut table = Table::new(&[i64::MAX / 4; 2], Shoe::new(SEED.dice(0)));
    assert!(table.deal());
    table.act(Action::Bet(max - 10));
    table.act(Action::Bet(max - 9));
    assert_eq!(table.players()[0].stake(), max);
    assert_eq!(table.players()[1].stake(), 10, "it stands");
    assert_eq!(table.turn(), Some(Seat::from_index(0)));
}

#[test]
fn replies_are_parsed_as_documented() {
    let read = |text: &str| text.parse::<Action>();
    assert_eq!(read(" h\r\n"), Ok(Action::Hit));
    assert_eq!(read("\tS "), Ok(Action::Stand));
    assert_eq!(read("d"), Ok(Action::DoubleDown));
    assert_eq!(read("B 15"), Ok(Action::Bet(15)));
    assert_eq!(read("b \t -15\n"), Ok(Action::Bet(15)));
    assert_eq!(read("B 0"), Ok(Action::Bet(0)));
    assert_eq!(read("B -0"), Ok(Action::Bet(0)));
    assert_eq!(read("B 999999999999999999"), Ok(Action::Bet(999_999_999_999_999_999)));
    assert_eq!(read("B 000000000000000015"), Ok(Action::Bet(15)));
    for invalid in [
        "",
        " ",
        "HIT",
        "H S",
        "H\nS",
        "HH",
        "B",
        "B ",
        "B15",
        "B-5",
        "B +5",
        "B --5",
        "B - 5",
        "B 5 5",
        "B\n5",
        "B 5.0",
        "B 0x5",
        "B ٣",
        "B 1000000000000000000",
        "\"H\"",
        "=H",
        "Ｈ",
        "X",
        "\u{fffd}",
        "\0",
        "B \u{a0}5",
    ] {
        assert!(read(invalid).is_err(), "{invalid:?}");
    }
}

#[test]
fn hands_are_scored() {
    for (hand, expected) in [
        ("", 0),
        ("A", 11),
        ("AA", 12),
        ("AAA", 13),
        ("KQ", 20),
        ("AT", 21),
        ("A9A", 21),
        ("KJA", 21),
        ("KJAA", 22),
        ("23456789", 44),
        ("TJQ", 30),
        ("AAAAAAAAAAA", 21),
        ("AAAAAAAAAAAA", 12),
        ("5A5A", 12),
    ] {
        assert_eq!(score(&cards(hand)), expected, "{hand}");
    }
}

#[test]
fn the_defaults_are_official() {
    let expected = r#"{"rounds":1,"hands":5,"chips":200,"bad_answers":0,"move_limit":"2s"}"#;
    assert_eq!(serde_json::to_string(&Params::default().values()).unwrap(), expected);
    assert_eq!(params("{}"), Params::default());
    let value = serde_json::to_value(Params::default().values()).unwrap();
    let keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let game = blackjack::game();
    let param_keys = game.param_keys();
    assert_eq!(keys, param_keys);
}

#[test]
fn parameters_round_trip() {
    for (input, canonical) in [
        ("200", "200"),
        ("\"200\"", "200"),
        ("[120, 0, 305]", "[120,0,305]"),
        ("[7]", "[7]"),
        ("\"120,0, 305\"", "[120,0,305]"),
        ("1000000000000000000", "1000000000000000000"),
    ] {
        let params_of_json = params(&format!(r#"{{"chips": {input}, "bad_answers": {input}}}"#));
        let text = serde_json::to_string(&params_of_json.values()).unwrap();
        let expected = format!(r#""chips":{canonical},"bad_answers":{canonical}"#);
        assert!(text.contains(&expected), "{text}");
        assert_eq!(params(&text), params_of_json);
    }
}

#[test]
fn invalid_parameters_are_errors() {
    let error = |json: &str| read(json).unwrap_err().to_string();
    for (json, reason) in [
        (r#"{"decks": 2}"#, "unknown field `decks`"),
        (r#"{"rounds": 0}"#, "0 is out of range: 1 to 1000 can be played"),
        (r#"{"rounds": 1001}"#, "1001 is out of range"),
        (r#"{"hands": 101}"#, "101 is out of range: 1 to 100 can be played"),
        (r#"{"hands": -1}"#, "-1 is out of range"),
        (r#"{"chips": -1}"#, "`-1` is not a number of chips or answers: write one whole number"),
        (r#"{"chips": 1.5}"#, "floating point `1.5`, expected a whole number"),
        (r#"{"chips": [1, "a"]}"#, "chips: `a` is not a whole number; write whole numbers, as in"),
        (r#"{"chips": []}"#, "`` is not a number of chips"),
        (r#"{"chips": [1, -2]}"#, "`1,-2` is not a number of chips"),
        (r#"{"chips": [1, 2, 3, 4, 5]}"#, "`1,2,3,4,5` is not a number of chips"),
        (r#"{"chips": "many"}"#, "`many` is not a number of chips"),
        (r#"{"chips": "1,,2"}"#, "`1,,2` is not a number of chips"),
        (r#"{"chips": 1000000000000000001}"#, "`1000000000000000001` is not"),
        (r#"{"bad_answers": 18446744073709551615}"#, "`18446744073709551615` is not"),
        (r#"{"move_limit": "0s"}"#, "move_limit cannot be 0ms: a bot needs some time, as in 2s"),
        (
            r#"{"move_limit": "soon"}"#,
            "move_limit cannot be `soon`: write a whole number and a unit, as in 2s",
        ),
    ] {
        assert!(error(json).contains(reason), "{json}: {}", error(json));
    }
}

#[test]
fn a_table_fits_its_parameters() {
    let start = |json: &str, seats| Match::start(&params(json), seats, SEED).map(drop);
    assert_eq!(start(r#"{"chips": [1, 2]}"#, 2), Ok(()));
    for (json, seats, reason) in [
        ("{}", 0, "a table has 1 to 4 seats, not 0"),
        ("{}", 5, "a table has 1 to 4 seats, not 5"),
        (
            r#"{"chips": "120,0,305"}"#,
            2,
            "chips = 120,0,305 is for a table of 3, and this one has 2 seats",
        ),
        (
            r#"{"bad_answers": [1]}"#,
            2,
            "bad_answers = 1 is for a table of 1, and this one has 2 seats",
        ),
    ] {
        assert_eq!(start(json, seats).unwrap_err().to_string(), reason);
    }
}

#[test]
fn an_episode_fits_its_parameters() {
    let new =
        |json: &str| AnyParams::new(&blackjack::game(), params(json)).episode(5, SEED).map(drop);
    assert_eq!(new(r#"{"chips": 1000000000000, "rounds": 1000}"#), Ok(()));
    for (json, reason) in [
        (r#"{"chips": [1, 2]}"#, "chips = 1,2: in an episode it is one number for all bots"),
        (r#"{"chips": 1000000000001}"#, "chips = 1000000000001: in an episode"),
        (r#"{"bad_answers": [1]}"#, "bad_answers = 1: in an episode it is one number"),
    ] {
        assert!(new(json).unwrap_err().to_string().starts_with(reason), "{json}");
    }
}

#[test]
fn the_game_is_found_by_its_name() {
    let official = AnyParams::official(&blackjack::game());
    assert_eq!(official, AnyParams::new(&blackjack::game(), Params::default()));
    assert_eq!(official.seats(), 1..=4);
    for seats in 1..=4 {
        assert!(official.start(&dialogue::names(seats), SEED).is_ok());
    }
    assert!(official.start(&dialogue::names(5), SEED).is_err());
}
