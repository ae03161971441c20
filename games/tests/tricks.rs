//! Matches of tricks: the document's example, the protocol, illegal cards, forfeits, parameters.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dialogue;

use arbiter_games::tricks::{
    Card, DECK, Deal, Dealer, HAND, Match, Params, Player, Suit, TRICKS, Table,
};
use arbiter_games::{
    Allowance, ExpectedReply, Forfeit, MIXED_TURNS_RULES_VERSION, MatchState as _, Message, Micros,
    Params as GameParams, ParamsError, RULES_VERSION, Rules, Seed, Step, TurnPolicy, gomoku,
    read_rules, tricks,
};
use dialogue::{follow, golden, names, scores};

/// The cards of a text without separators.
fn cards(text: &str) -> Vec<Card> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| std::str::from_utf8(pair).unwrap().parse().unwrap()).collect()
}

/// A deal of these hands. The pack begins with these cards and continues with the rest of the deck.
fn deal(hands: [&str; 2], pack: &str, trump: Option<Suit>, attacker: Player) -> Deal {
    let mut order: Vec<_> = hands.into_iter().flat_map(cards).chain(cards(pack)).collect();
    let rest: Vec<_> = Card::all().filter(|card| !order.contains(card)).collect();
    order.extend(rest);
    Deal::new(order.try_into().unwrap(), trump, attacker).unwrap()
}

fn read(json: &str) -> Result<Params, ParamsError> {
    read_rules(&tricks::game().params, &serde_json::from_str(json).unwrap())
}

/// A match with the seed `text` at this many tables.
fn start(tables: u32, text: &str) -> Match {
    let params = read(&format!(r#"{{"tables": {tables}}}"#)).unwrap();
    Match::start(&params, Seed::of_text(text))
}

/// The next message.
fn next_message(game: &mut Match) -> Message {
    match game.step() {
        Step::Send(message) => message,
        step => panic!("{step:?}"),
    }
}

/// The first legal card at each table where `player` has the turn, and `.` elsewhere.
fn first_cards(game: &Match, player: Player) -> Vec<String> {
    let card = |table: &Table| match table.turn() {
        Some(turn) if turn == player => table.playable().next().unwrap().to_string(),
        _ => ".".to_owned(),
    };
    game.tables().iter().map(card).collect()
}

/// Plays first cards for `plies` replies, or until the end of the match. Returns the next player.
fn advance(game: &mut Match, plies: usize) -> Option<Player> {
    for _ in 0..plies {
        let player = next_player(game)?;
        game.receive_reply(Ok(&first_cards(game, player).join(" ")), Micros::ZERO).unwrap();
    }
    next_player(game)
}

/// The player that must reply to the next message; `None` at the end.
fn next_player(game: &mut Match) -> Option<Player> {
    let message = next_message(game);
    (message.expected_reply == ExpectedReply::Move).then(|| Player::ALL[message.seat.index()])
}

/// The values of a line `key: values`.
fn line<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.strip_prefix(": ").unwrap().split(' ').collect()
}

#[test]
fn the_documents_example() {
    let hands = ["W4X1X3X4X5X6X7X8Y0", "Z2X0Z7W6Z1Z3W3X2W8"];
    let first = deal(hands, "Y1Y2", None, Player::Second);
    let hands = ["X4X8Z0W0X0W1W2Z8Z6", "Z5Y0Y5W4Z4X7Y2Y3Y7"];
    let second = deal(hands, "X6X1", Some(Suit::X), Player::First);
    let mut game = Match::at([first, second].iter().map(Table::new).collect(), Micros(1));
    let text = include_str!("transcripts/tricks-document.txt");
    let body: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    follow(&mut game, &body, "tricks-document.txt");
}

#[test]
fn transcripts() {
    for file in [
        "tricks-whole.txt",
        "tricks-cards.txt",
        "tricks-line.txt",
        "tricks-clock.txt",
        "tricks-turns.txt",
    ] {
        golden(file);
    }
}

#[test]
fn higher_cards_of_the_suit_and_trumps_beat() {
    let beats =
        |defence: &str, attack: &str, trump| cards(defence)[0].beats(cards(attack)[0], trump);
    for (defence, attack, trump, expected) in [
        ("W5", "W4", None, true),
        ("W4", "W5", None, false),
        ("X8", "W0", None, false),
        ("X8", "W0", Some(Suit::Y), false),
        ("X0", "W8", Some(Suit::X), true),
        ("X0", "X8", Some(Suit::X), false),
        ("X8", "X0", Some(Suit::X), true),
        ("W8", "X0", Some(Suit::X), false),
    ] {
        assert_eq!(beats(defence, attack, trump), expected, "{defence} on {attack}, {trump:?}");
    }
}

#[test]
fn a_defender_follows_suit_if_it_can_and_need_not_trump() {
    let hands = ["W0X0Y0Z0W1X1Y1Z1W2", "W3W4W5X3X4X5Z3Z4Z5"];
    let deal = deal(hands, "", Some(Suit::X), Player::First);
    let mut table = Table::new(&deal);
    let playable =
        |table: &Table| table.playable().map(|card| card.to_string()).collect::<String>();
    assert_eq!(playable(&table), hands[0]);
    table.play(Some(cards("W0")[0]));
    assert_eq!(playable(&table), "W3W4W5");
    let mut other = Table::new(&deal);
    other.play(Some(cards("Y0")[0]));
    assert_eq!(playable(&other), hands[1]);
    other.play(Some(cards("Z3")[0]));
    assert_eq!((other.tricks(Player::First), other.tricks(Player::Second)), (1, 0));
    table.play(Some(cards("X5")[0]));
    assert_eq!(table.turn(), None);
    assert_eq!(table.playable().count(), 0);
    assert_eq!((table.tricks(Player::First), table.tricks(Player::Second)), (TRICKS, 0));
    table.play(Some(cards("W3")[0]));
    table.concede(Player::First);
    assert_eq!(table.tricks(Player::First), TRICKS);
}

#[test]
fn the_winner_draws_first_and_attacks_next() {
    let hands = ["W0W1W2W3W4W5W6W7W8", "X0X1X2X3X4X5X6X7X8"];
    let mut table = Table::new(&deal(hands, "Y0Y1", Some(Suit::X), Player::First));
    assert_eq!(table.take_text(Player::First), "W0W1W2W3W4W5W6W7W8:X");
    assert_eq!(table.take_text(Player::Second), "_");
    table.play(Some(cards("W3")[0]));
    assert_eq!(table.take_text(Player::Second), "X0X1X2X3X4X5X6X7X8:X>W3");
    assert_eq!(table.take_text(Player::First), "_");
    table.play(Some(cards("X4")[0]));
    assert_eq!(table.take_text(Player::First), "_");
    assert_eq!(table.take_text(Player::Second), "+Y0");
    table.play(Some(cards("Y0")[0]));
    assert_eq!(table.take_text(Player::First), ">X4-Y1>Y0");
    assert_eq!((table.pack(), table.hand(Player::First).len()), (16, HAND));
}

#[test]
fn tables_of_a_pair_exchange_hands_and_first_attack() {
    let mut game = start(200, "pairs");
    assert_eq!(game.tables().len(), 200);
    for pair in game.tables().chunks(2) {
        let [first, second] = pair else { panic!("an odd number of tables") };
        assert_eq!(first.trump(), second.trump());
        assert_eq!(first.turn().unwrap().other(), second.turn().unwrap());
        for player in Player::ALL {
            assert_eq!(first.hand(player), second.hand(player.other()));
        }
    }
    // The packs are equal too, so the same policy of play wins the same tricks.
    assert_eq!(advance(&mut game, 1000), None);
    for pair in game.tables().chunks(2) {
        assert_eq!(pair[0].tricks(Player::First), pair[1].tricks(Player::Second));
    }
}

#[test]
fn a_request_for_all_tables_omits_waiting_tables() {
    for client in Player::ALL {
        let mut turns = [TurnPolicy::AnyTable; 2];
        turns[client.index()] = TurnPolicy::AllTables;
        let mut game = start(20, "all tables").with_turn_policies(turns);
        let mut opponent_waits = false;
        loop {
            let message = next_message(&mut game);
            let player = Player::ALL[message.seat.index()];
            let waits = line(&message.text, "states").contains(&"_");
            assert!(player != client || !waits, "{}", message.text);
            opponent_waits |= waits;
            if message.expected_reply == ExpectedReply::None {
                break;
            }
            game.receive_reply(Ok(&first_cards(&game, player).join(" ")), Micros::ZERO).unwrap();
        }
        assert!(opponent_waits && game.is_over(), "the opponent is asked although tables wait");
    }
}

#[test]
fn equal_turn_policies_give_the_same_match() {
    let messages = |turns| {
        let mut game = start(20, "alike").with_turn_policies(turns);
        let mut sent = Vec::new();
        loop {
            let message = next_message(&mut game);
            let player = Player::ALL[message.seat.index()];
            sent.push(message.clone());
            if message.expected_reply == ExpectedReply::None {
                return sent;
            }
            game.receive_reply(Ok(&first_cards(&game, player).join(" ")), Micros::ZERO).unwrap();
        }
    };
    let any = messages([TurnPolicy::AnyTable; 2]);
    assert_eq!(any, messages([TurnPolicy::AllTables; 2]));
    assert_ne!(any, messages([TurnPolicy::AnyTable, TurnPolicy::AllTables]));
}

#[test]
fn the_rules_version_depends_on_the_turn_policies() {
    let params = GameParams::official(&tricks::game());
    let names = names(2);
    let seed = Seed::of_text("version");
    let first_seat = |rules, turns: [TurnPolicy; 2]| {
        let mut game = params.start_by(rules, &names, &turns, seed).map_err(|e| e.to_string())?;
        match game.step() {
            Step::Send(message) => Ok::<_, String>(message.seat.number()),
            step => panic!("{step:?}"),
        }
    };
    let mixed = [TurnPolicy::AllTables, TurnPolicy::AnyTable];
    assert_eq!(params.rules_version(&mixed), MIXED_TURNS_RULES_VERSION);
    assert_eq!(first_seat(MIXED_TURNS_RULES_VERSION, mixed), Ok(2));
    assert_eq!(first_seat(RULES_VERSION, mixed), Ok(1), "as in older records");
    for equal in [[TurnPolicy::AnyTable; 2], [TurnPolicy::AllTables; 2]] {
        assert_eq!(params.rules_version(&equal), RULES_VERSION);
        assert_eq!(first_seat(RULES_VERSION, equal), Ok(1));
        let error = first_seat(MIXED_TURNS_RULES_VERSION, equal).unwrap_err();
        assert_eq!(error, "rules version 2; this program knows 1");
    }
    let gomoku = GameParams::official(&gomoku::game());
    assert_eq!(gomoku.rules_version(&mixed), RULES_VERSION);
}

#[test]
fn deals_are_uniformly_random() {
    const DEALS: usize = 10_000;
    let mut dealer = Dealer::new(Seed::of_text("chance"));
    let deals: Vec<_> = (0..DEALS).map(|_| dealer.deal()).collect();
    let check = |count: usize, share: usize| {
        assert!(count.abs_diff(DEALS / share) < DEALS / share / 10, "{count} of {DEALS}");
    };
    for trump in Suit::ALL.into_iter().map(Some).chain([None]) {
        check(deals.iter().filter(|deal| deal.trump() == trump).count(), 5);
    }
    for player in Player::ALL {
        check(deals.iter().filter(|deal| deal.attacker() == player).count(), 2);
        for card in Card::all() {
            check(deals.iter().filter(|deal| deal.hand(player).contains(&card)).count(), 4);
        }
    }
    let twice = [cards("W0")[0]; DECK];
    let error = Deal::new(twice, None, Player::First).unwrap_err().to_string();
    assert_eq!(error, "W0 is dealt twice: a deck has each card once");
}

#[test]
fn every_reply_has_the_full_time_limit() {
    let params = read(r#"{"move_limit": "300ms"}"#).unwrap();
    let mut game = Match::start(&params, Seed::of_text("limit"));
    let message = next_message(&mut game);
    assert_eq!(message.allowance, Allowance::Move(Micros::from_millis(300)));
    assert_eq!((message.expected_reply, message.tells_time), (ExpectedReply::Move, false));
    assert_eq!(line(&message.text, "states").len(), 100);
    assert_eq!(line(&message.text, "scores"), ["0:0"; 100]);
}

#[test]
fn an_illegal_card_loses_only_its_table() {
    for bad in ["w0", "W9", "W", "WW", "W00", "0W", "A1", ".", "_", "-", "W\u{301}0", "🂡"] {
        let mut game = start(6, "bad card");
        let player = advance(&mut game, 4).unwrap();
        let index = game.tables().iter().position(|table| table.turn() == Some(player)).unwrap();
        let mut words = first_cards(&game, player);
        words[index] = bad.to_owned();
        let tricks = game.tables()[index].tricks(player);
        game.receive_reply(Ok(&words.join(" ")), Micros::ZERO).unwrap();
        let is_over = |table: &Table| table.turn().is_none();
        assert_eq!(game.tables().iter().position(is_over), Some(index), "{bad}");
        assert_eq!(game.tables().iter().filter(|table| is_over(table)).count(), 1, "{bad}");
        assert_eq!(game.tables()[index].tricks(player), tricks);
        assert_eq!(game.tables()[index].tricks(player.other()), TRICKS - tricks);
        assert_eq!(advance(&mut game, 1000), None);
    }
}

#[test]
fn white_space_and_prefixes_in_replies_are_accepted() {
    let forms = [
        |cards: &str| cards.to_owned(),
        |cards: &str| format!("move={cards}"),
        |cards: &str| format!("  move= {cards} \r"),
        |cards: &str| cards.replace(' ', " \t "),
        |cards: &str| cards.replace('.', "_"),
        |cards: &str| format!("move={}", cards.replace('.', "anything=goes")),
    ];
    for form in forms {
        let mut game = start(4, "forms");
        while let Some(player) = next_player(&mut game) {
            let reply = form(&first_cards(&game, player).join(" "));
            game.receive_reply(Ok(&reply), Micros::ZERO).unwrap();
        }
        let is_played_out = |table: &Table| table.hand(Player::First).is_empty();
        assert!(game.tables().iter().all(is_played_out));
    }
}

#[test]
fn a_bad_line_forfeits_all_unfinished_tables() {
    for (bad, reason) in [
        ("", "4 cards expected, one for each table, found 0: \"\""),
        ("move=", "4 cards expected, one for each table, found 0: \"move=\""),
        ("W0 W1 W2", "4 cards expected, one for each table, found 3: \"W0 W1 W2\""),
        ("move=W0 W1 W2 W3 W4", "4 cards expected, one for each table, found 5: \"move=W0 W1 W2"),
        ("W0,W1,W2,W3", "4 cards expected, one for each table, found 1"),
        ("MOVE=W0 W1 W2 W3", "an answer begins with move= or a card: \"MOVE=W0 W1 W2 W3\""),
        ("token=me W0 W1 W2", "an answer begins with move= or a card: \"token=me W0 W1 W2\""),
        ("W0 W1\nW2 W3", "an answer is one line of plain text, not \"W0 W1\\nW2 W3\""),
        ("W0 W1 W2 \u{fffd}", "an answer is one line of plain text, not \"W0 W1 W2 \u{fffd}\""),
    ] {
        let mut game = start(4, "bad line");
        let player = advance(&mut game, 20).unwrap();
        let player_tricks = game.tables().iter().map(|table| i64::from(table.tricks(player)));
        let player_tricks = player_tricks.sum::<i64>();
        assert!(player_tricks > 0);
        let illegal = game.receive_reply(Ok(bad), Micros::ZERO).unwrap_err().to_string();
        assert!(illegal.starts_with(reason), "{illegal}");
        let ending =
            dialogue::play(&mut game, |message| panic!("a request after the end: {message:?}"));
        let tricks = 2 * player_tricks - 4 * i64::from(TRICKS);
        assert_eq!(scores(&ending)[player.index()], [-4, tricks]);
        assert_eq!(scores(&ending)[player.other().index()], [4, -tricks]);
        assert_eq!(ending.standings[player.index()].forfeit, Some(Forfeit::Illegal));
        assert_eq!(ending.standings[player.other().index()].forfeit, None);
    }
}

#[test]
fn replies_after_the_end_have_no_effect() {
    let mut game = start(2, "after the end");
    next_player(&mut game).unwrap();
    game.receive_reply(Err(Forfeit::Flood), Micros::ZERO).unwrap();
    for seat in 0..2 {
        let farewell = next_message(&mut game);
        assert_eq!((farewell.seat.index(), farewell.expected_reply), (seat, ExpectedReply::None));
        assert_eq!(farewell.allowance, Allowance::Move(Micros::ZERO));
        game.receive_reply(Err(Forfeit::Gone), Micros::ZERO).unwrap();
        game.receive_reply(Ok("nonsense"), Micros::ZERO).unwrap();
    }
    let over = game.step();
    let Step::Over(standings) = &over else { panic!("{over:?}") };
    assert_eq!(standings[0].forfeit, Some(Forfeit::Flood));
    assert_eq!(standings[1].forfeit, None);
    assert_eq!(standings[1].score.0, [2, 36]);
    assert_eq!(game.step(), over);
}

#[test]
fn a_forfeit_does_not_change_finished_tables() {
    let mut game = start(2, "finished");
    let player = next_player(&mut game).unwrap();
    game.receive_reply(Ok("no card"), Micros::ZERO).unwrap();
    let other = next_player(&mut game).unwrap();
    assert_ne!(player, other);
    game.receive_reply(Err(Forfeit::Clock), Micros::ZERO).unwrap();
    let ending =
        dialogue::play(&mut game, |message| panic!("a request after the end: {message:?}"));
    assert_eq!(scores(&ending), [[0, 0], [0, 0]]);
}

#[test]
fn parameters_round_trip() {
    let official = read("{}").unwrap();
    assert_eq!(official, Params::default());
    let json = serde_json::to_string(&official.values()).unwrap();
    assert_eq!(json, r#"{"tables":100,"move_limit":"2s"}"#);
    for json in [json.as_str(), r#"{"tables":2,"move_limit":"50ms"}"#, r#"{"tables":200}"#] {
        let params = read(json).unwrap();
        let text = serde_json::to_string(&params.values()).unwrap();
        assert_eq!(read(&text).unwrap(), params);
    }
    let game = tricks::game();
    let keys = game.param_keys();
    let value = serde_json::to_value(official.values()).unwrap();
    assert_eq!(keys, value.as_object().unwrap().keys().collect::<Vec<_>>());
}

#[test]
fn invalid_parameters_are_errors() {
    for (json, reason) in [
        (r#"{"table": 2}"#, "unknown field `table`"),
        (r#"{"tables": 3}"#, "tables cannot be 3: each deal is played at two tables"),
        (r#"{"tables": 0}"#, "an even number from 2 to 200"),
        (r#"{"tables": 202}"#, "tables cannot be 202"),
        (r#"{"tables": -2}"#, "tables cannot be -2"),
        (r#"{"tables": 4294967298}"#, "tables cannot be 4294967298"),
        (r#"{"tables": "many"}"#, "tables cannot be `many`: write an even number from 2 to 200"),
        (r#"{"move_limit": "0ms"}"#, "move_limit cannot be 0ms: a bot needs some time"),
        (
            r#"{"move_limit": "soon"}"#,
            "move_limit cannot be `soon`: write a whole number and a unit, as in 2s",
        ),
    ] {
        let error = read(json).unwrap_err().to_string();
        assert!(error.contains(reason), "{json}: {error}");
    }
}

#[test]
fn a_match_needs_two_bots() {
    let params = GameParams::official(&tricks::game());
    assert!(params.start(&names(2), Seed::of_text("two")).is_ok());
    for count in [1, 3] {
        assert!(params.start(&names(count), Seed::of_text("two")).is_err());
    }
}
