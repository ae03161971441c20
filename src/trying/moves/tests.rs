use arbiter_games::{Game, GameName, Params, Seed, Step};

use super::*;

/// A match at its first question for a move, and whose it is.
fn start(game: GameName, seats: usize) -> (Box<dyn Game>, Seat) {
    let names: Vec<_> = (1..=seats).map(|seat| format!("bot{seat}").parse().unwrap()).collect();
    let mut game = Params::official(game).start(&names, Seed::of_text("moves")).unwrap();
    loop {
        if let Step::Say(say) = game.step() {
            match say.owes {
                arbiter_games::Owes::Move => return (game, say.seat),
                arbiter_games::Owes::Ack => game.heard(Ok("="), Micros::ZERO).unwrap(),
                arbiter_games::Owes::Nothing => {}
            }
        }
    }
}

fn fields(fields: &[(&str, &str)]) -> Fields {
    Fields(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

fn refused(game: &dyn Game, seat: Seat, answer: &str) -> String {
    check(game.view(), seat, answer).unwrap_err()
}

#[test]
fn every_bid_that_is_offered_is_legal() {
    let (game, seat) = start(GameName::Wojna, 4);
    let form = offer(game.view(), seat, &Fields::default()).form.into_string();
    for bid in ["= pass", "= check", "= raise 3"] {
        assert!(form.contains(bid), "{form}");
    }
    assert!(refused(game.as_ref(), seat, "= fold").contains("the moves are pass, check"));
    assert!(refused(game.as_ref(), seat, "pass").contains('='));
}

#[test]
fn a_card_that_would_lose_its_table_is_refused() {
    let (game, seat) = start(GameName::Tricks, 2);
    let View::Tricks(match_) = game.view() else { unreachable!() };
    let held = match_.tables()[0].hand(arbiter_games::tricks::Player::First)[0];
    let missing = answer(game.view(), seat, &Fields::default());
    let waits = match_.tables()[0].turn() == Some(arbiter_games::tricks::Player::First);
    let first = if waits { 1 } else { 2 };
    assert_eq!(missing, Err(format!("choose a card at table {first}")));
    let words = vec!["W9"; 100].join(" ");
    assert!(refused(game.as_ref(), seat, &words).contains("table"));
    let foreign = vec![held.to_string(); 100].join(" ");
    assert!(refused(game.as_ref(), seat, &foreign).contains("may not be played"));
}

#[test]
fn an_action_that_is_not_possible_is_refused() {
    let (game, seat) = start(GameName::Blackjack, 2);
    assert_eq!(check(game.view(), seat, "D"), Ok(()));
    assert_eq!(check(game.view(), seat, "B 190"), Ok(()));
    assert!(refused(game.as_ref(), seat, "B 191").contains("1 to 190"));
    assert!(refused(game.as_ref(), seat, "B 0").contains("1 to 190"));
    assert!(refused(game.as_ref(), seat, "HIT").contains("not one of H, S, D"));
    let mut game = game;
    game.heard(Ok("B 190"), Micros::ZERO).unwrap();
    let (mut next, mut last) = (seat, None);
    while next != seat || last.is_none() {
        let Step::Say(say) = game.step() else { unreachable!() };
        next = say.seat;
        if next != seat {
            game.heard(Ok("S"), Micros::ZERO).unwrap();
        }
        last = Some(next);
    }
    assert!(refused(game.as_ref(), seat, "D").contains("first action"));
    assert!(refused(game.as_ref(), seat, "B 1").contains("nothing left"));
}

#[test]
fn an_opening_takes_three_squares() {
    let (game, seat) = start(GameName::Gomoku, 2);
    let two = fields(&[("pick", "(0,0)"), ("pick", "(1,1)")]);
    let offered = offer(game.view(), seat, &two);
    assert!(offered.task.contains("white stone (3 of 3)"));
    let squares = offered.squares.unwrap().into_string();
    assert!(!squares.contains("value=\"(0,0)\"") && squares.contains("value=\"(14,14)\""));
    assert!(!squares.contains("formmethod"), "the third one sends the move");
    let three = fields(&[("pick", "(0,0)"), ("pick", "(1,1)"), ("pick", "(2,2)")]);
    let said = answer(game.view(), seat, &three).unwrap();
    assert_eq!(said, "(0,0)(1,1)(2,2)");
    assert_eq!(check(game.view(), seat, &said), Ok(()));
    assert!(refused(game.as_ref(), seat, "(0,0)").contains("three squares expected"));
    assert!(refused(game.as_ref(), seat, "(0,0)(0,0)(1,1)").contains("(0,0)"));
}

#[test]
fn an_order_is_a_square_and_what_breaks_ties() {
    let (game, seat) = start(GameName::Bitwa, 2);
    let said = answer(game.view(), seat, &fields(&[("at", "3 4"), ("dy", "-1")])).unwrap();
    assert_eq!(said, "= 1 3 4 1 -1 1");
    assert_eq!(check(game.view(), seat, &said), Ok(()));
    assert!(refused(game.as_ref(), seat, "= 1 99 4 1 1 1").contains("off the board"));
    assert!(answer(game.view(), seat, &Fields::default()).is_err());
    assert!(offer(game.view(), seat, &Fields::default()).task.contains("division A"));
}
