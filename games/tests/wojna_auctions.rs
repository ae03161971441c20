//! The rules of wojna's auctions: bidding, wars, leaving, interruption.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use arbiter_games::wojna::{CannotPay, Card, Deal, DealResult, Deck, Move, Raise, points};
use arbiter_games::{Seat, Seed};

/// A deal of these piles with an open auction. Seat `first` has the first turn.
fn open_deal(piles: &[&[Card]], first: usize) -> Deal {
    let piles: Vec<_> = piles.iter().map(|pile| pile.to_vec()).collect();
    let deals = (0..1000).map(|number| {
        let mut deal = Deal::stacked(&piles, Seed::of_text(&format!("{number}")));
        assert!(deal.open());
        deal
    });
    deals.into_iter().find(|deal| deal.turn() == Some(seat(first))).unwrap()
}

fn seat(number: usize) -> Seat {
    Seat::from_index(number - 1)
}

fn read(text: &str) -> Move {
    match text {
        "pass" => Move::Pass,
        "check" => Move::Check,
        "raise 1" => Move::Raise(Raise::One),
        "raise 2" => Move::Raise(Raise::Two),
        "raise 3" => Move::Raise(Raise::Three),
        _ => panic!("not a move: {text}"),
    }
}

/// Plays moves such as `1 check, 2 raise 3`. Each seat must have the turn.
fn bid(deal: &mut Deal, moves: &str) {
    for text in moves.split(", ") {
        let (number, text) = text.split_once(' ').unwrap();
        assert_eq!(deal.turn(), Some(seat(number.parse().unwrap())), "before {number} {text}");
        deal.play(read(text)).unwrap();
    }
}

/// Ends the bidding: all seats check.
fn all_check(deal: &mut Deal) {
    while deal.turn().is_some() {
        deal.play(Move::Check).unwrap();
    }
}

/// The pot and the piles, in cards.
fn cards(deal: &Deal) -> (usize, Vec<usize>) {
    (deal.pot(), Seat::all(deal.seats()).map(|seat| deal.pile(seat)).collect())
}

/// The peeked or shown cards.
fn peeked(deal: &Deal) -> Vec<Option<Card>> {
    Seat::all(deal.seats()).map(|seat| deal.peeked(seat)).collect()
}

fn results(deal: &Deal) -> Vec<DealResult> {
    Seat::all(deal.seats()).map(|seat| deal.result(seat)).collect()
}

#[test]
fn the_highest_card_takes_the_pot() {
    let mut deal = open_deal(&[&[3, 9], &[7, 1], &[5, 9], &[2, 9]], 1);
    assert_eq!(cards(&deal), (4, vec![1; 4]));
    bid(&mut deal, "1 check, 2 check, 3 check, 4 check");
    assert_eq!(deal.turn(), None);
    assert_eq!(peeked(&deal), [Some(3), Some(7), Some(5), Some(2)]);
    deal.settle();
    assert_eq!(cards(&deal), (0, vec![1, 5, 1, 1]));
}

#[test]
fn seats_bid_in_order_from_the_first_bidder() {
    let mut deal = open_deal(&[&[1, 1], &[2, 1], &[3, 1]], 3);
    bid(&mut deal, "3 check, 1 check, 2 check");
    assert_eq!(deal.turn(), None);
}

#[test]
fn each_seat_bids_first_about_equally_often() {
    let piles = [vec![1, 2], vec![3, 4], vec![5, 6], vec![7, 8]];
    let mut first = [0; 4];
    for number in 0..4000 {
        let mut deal = Deal::stacked(&piles, Seed::of_text(&format!("{number}")));
        deal.open();
        first[deal.turn().unwrap().index()] += 1;
    }
    assert!(first.iter().all(|count| (900..1100).contains(count)), "{first:?}");
}

#[test]
fn the_first_to_check_ends_a_bidding_without_raises() {
    let mut deal = open_deal(&[&[1, 1], &[2, 1], &[3, 1], &[4, 1]], 1);
    bid(&mut deal, "1 pass, 2 check, 3 pass, 4 check");
    assert_eq!(deal.turn(), None);
}

#[test]
fn the_last_to_raise_ends_the_bidding() {
    let long: &[Card] = &[1; 20];
    let mut deal = open_deal(&[long, long, long, long], 2);
    bid(&mut deal, "2 check, 3 raise 1, 4 check, 1 pass, 2 raise 3, 3 check, 4 check");
    assert_eq!(deal.turn(), None);
    // Seat 1 has paid one card, and each other seat 1 + 1 + 3 cards.
    assert_eq!(cards(&deal), (16, vec![19, 15, 15, 15]));
    assert_eq!(peeked(&deal), [None, Some(1), Some(1), Some(1)]);
}

#[test]
fn a_raiser_gets_no_second_turn_after_checks() {
    let long: &[Card] = &[1; 20];
    let mut deal = open_deal(&[long, long], 1);
    bid(&mut deal, "1 raise 1, 2 check");
    assert_eq!(deal.turn(), None);
}

#[test]
fn the_last_bidder_need_not_act() {
    let mut deal = open_deal(&[&[9, 9], &[9, 9], &[9, 9], &[1, 9]], 1);
    bid(&mut deal, "1 pass, 2 pass, 3 pass");
    assert_eq!(deal.turn(), None);
    assert_eq!(peeked(&deal), [None, None, None, Some(1)]);
    deal.settle();
    assert_eq!(cards(&deal), (0, vec![1, 1, 1, 5]));
}

#[test]
fn a_raiser_wins_if_all_others_pass() {
    let mut deal = open_deal(&[&[1, 2, 3], &[9, 9], &[9, 9]], 1);
    bid(&mut deal, "1 raise 2, 2 pass, 3 pass");
    deal.settle();
    assert_eq!(cards(&deal), (0, vec![5, 1, 1]));
}

#[test]
fn a_raise_costs_the_check_plus_the_raise() {
    let long: &[Card] = &[1; 20];
    let mut deal = open_deal(&[long, long, long], 1);
    bid(&mut deal, "1 raise 2, 2 raise 3");
    assert_eq!(cards(&deal), (3 + 2 + 5, vec![17, 14, 19]));
    bid(&mut deal, "3 raise 1, 1 check, 2 check");
    assert_eq!(cards(&deal), (3 * 7, vec![13, 13, 13]));
}

#[test]
fn a_raise_that_cannot_be_paid_changes_nothing() {
    let mut deal = open_deal(&[&[1; 9], &[1; 4], &[1; 9]], 1);
    bid(&mut deal, "1 raise 2");
    let old_cards = cards(&deal);
    let error = deal.play(Move::Raise(Raise::Two)).unwrap_err();
    assert_eq!(error, CannotPay { raise: 2, cost: 4, pile: 3 });
    assert_eq!(error.to_string(), "raise 2 costs 4 cards, and the pile has 3");
    assert_eq!((cards(&deal), deal.turn()), (old_cards, Some(seat(2))));
    bid(&mut deal, "2 raise 1");
    assert_eq!(deal.pile(seat(2)), 0);
}

#[test]
fn seats_without_cards_bid_again_and_can_win_the_pot() {
    let mut deal = open_deal(&[&[1; 9], &[5, 5], &[2; 9]], 1);
    bid(&mut deal, "1 raise 3, 2 check, 3 raise 1");
    assert_eq!(deal.pile(seat(2)), 0);
    bid(&mut deal, "1 check");
    assert_eq!(deal.turn(), Some(seat(2)));
    assert_eq!(deal.play(Move::Raise(Raise::One)), Err(CannotPay { raise: 1, cost: 4, pile: 0 }));
    bid(&mut deal, "2 check");
    assert_eq!(deal.turn(), None);
    deal.settle();
    assert_eq!(cards(&deal), (0, vec![4, 12, 4]));
    assert_eq!(results(&deal), [DealResult::Stayed; 3]);
}

#[test]
fn seats_without_cards_may_pass() {
    let mut deal = open_deal(&[&[1; 9], &[5], &[2; 9]], 1);
    bid(&mut deal, "1 check, 2 pass, 3 check");
    deal.settle();
    assert_eq!(results(&deal), [DealResult::Stayed, DealResult::Left(1), DealResult::Stayed]);
    assert_eq!(cards(&deal), (0, vec![8, 0, 11]));
}

#[test]
fn a_war_costs_two_cards_and_counts_contributions_from_zero() {
    let mut deal = open_deal(&[&[9, 1, 3, 2, 2, 2], &[9, 1, 4, 2, 2], &[5, 8, 8], &[9; 4]], 1);
    bid(&mut deal, "1 raise 1, 2 check, 3 check, 4 pass");
    assert_eq!(cards(&deal), (7, vec![4, 3, 1, 3]));
    deal.settle();
    assert_eq!(cards(&deal), (7, vec![4, 3, 1, 3]), "the pot stays for the war");
    assert!(deal.open());
    assert_eq!(deal.auction(), 2, "a war is an auction with its own number");
    assert_eq!(cards(&deal), (11, vec![2, 1, 1, 3]));
    // The cards of the raise were in front of the cards of the war.
    assert_eq!(peeked(&deal), [Some(3), Some(4), None, None]);
    let first = deal.turn().unwrap();
    deal.play(Move::Raise(Raise::One)).unwrap();
    assert_ne!(deal.turn(), Some(first));
    deal.play(Move::Check).unwrap();
    assert_eq!(deal.turn(), None);
    assert_eq!(cards(&deal), (13, vec![1, 0, 1, 3]));
    deal.settle();
    assert_eq!(cards(&deal), (0, vec![1, 13, 1, 3]));
}

#[test]
fn a_war_can_follow_a_war() {
    let mut deal = open_deal(&[&[9, 7, 1, 6, 1, 1], &[9, 7, 1, 5, 1, 1], &[1, 1]], 1);
    for (number, pot) in [(1, 3), (2, 7), (3, 11)] {
        assert_eq!((deal.auction(), deal.pot()), (number, pot));
        all_check(&mut deal);
        deal.settle();
        assert!(deal.open());
    }
    assert_eq!(
        cards(&deal),
        (3, vec![11, 0, 0]),
        "seat 1 has won the wars, and a regular auction begins"
    );
}

#[test]
fn in_a_war_a_single_card_is_enough() {
    let mut deal = open_deal(&[&[9, 8], &[9, 1, 3, 2, 2], &[1, 1, 1]], 1);
    bid(&mut deal, "1 check, 2 check, 3 check");
    deal.settle();
    assert!(deal.open());
    assert_eq!(cards(&deal), (6, vec![0, 2, 2]));
    assert_eq!(peeked(&deal), [Some(8), Some(1), None]);
    // A seat with fewer than two cards pays only these. The other seats pay nothing instead.
    while let Some(bidder) = deal.turn() {
        let bid = if bidder == seat(2) { Move::Raise(Raise::One) } else { Move::Check };
        deal.play(bid).unwrap();
    }
    deal.settle();
    assert_eq!(cards(&deal), (0, vec![7, 1, 2]));
}

#[test]
fn a_seat_without_cards_loses_the_tie() {
    let mut deal = open_deal(&[&[9], &[9, 1, 1], &[9, 1, 1], &[1, 1]], 1);
    all_check(&mut deal);
    deal.settle();
    assert_eq!(deal.result(seat(1)), DealResult::Left(1), "it leaves before the war");
    assert!(deal.open());
    assert_eq!(peeked(&deal), [None, Some(1), Some(1), None]);
    all_check(&mut deal);
    deal.settle();
    // Both seats have paid their last cards in the war, so the pot stays.
    assert_eq!(
        results(&deal),
        [DealResult::Left(1), DealResult::Left(2), DealResult::Left(2), DealResult::Stayed]
    );
    assert_eq!(cards(&deal), (8, vec![0, 0, 0, 1]));
    assert!(!deal.open());
}

#[test]
fn the_only_tied_seat_with_cards_wins_without_a_war() {
    let mut deal = open_deal(&[&[9], &[9, 1], &[1, 1], &[9]], 1);
    all_check(&mut deal);
    deal.settle();
    assert_eq!(cards(&deal), (0, vec![0, 5, 1, 0]));
    assert_eq!(
        results(&deal),
        [DealResult::Left(1), DealResult::Stayed, DealResult::Stayed, DealResult::Left(1)]
    );
}

#[test]
fn a_pot_stays_if_no_tied_seat_has_cards() {
    let mut deal = open_deal(&[&[9], &[9], &[1, 5, 1], &[1, 4]], 1);
    all_check(&mut deal);
    deal.settle();
    assert_eq!(cards(&deal), (4, vec![0, 0, 2, 1]));
    assert!(deal.open());
    assert_eq!(cards(&deal), (6, vec![0, 0, 1, 0]), "a regular auction: one card each");
    assert_eq!(peeked(&deal), [None, None, Some(5), Some(4)]);
    all_check(&mut deal);
    deal.settle();
    assert_eq!(cards(&deal), (0, vec![0, 0, 7, 0]));
    assert!(!deal.open(), "only one seat remains");
    assert_eq!(
        results(&deal),
        [DealResult::Left(1), DealResult::Left(1), DealResult::Stayed, DealResult::Left(2)]
    );
}

#[test]
fn a_deal_can_end_without_a_survivor() {
    let mut deal = open_deal(&[&[9], &[9]], 1);
    all_check(&mut deal);
    deal.settle();
    assert!(!deal.open());
    assert_eq!(results(&deal), [DealResult::Left(1); 2]);
    assert_eq!(points(&results(&deal))[..2], [36, 36]);
}

#[test]
fn cards_are_dealt_in_turn_from_seat_one() {
    let deal = Deal::new(&"1-10".parse().unwrap(), 4, Seed([1; 32]));
    assert_eq!(cards(&deal), (0, vec![3, 3, 2, 2]));
    let official = Deal::new(&Deck::default(), 4, Seed([1; 32]));
    assert_eq!(cards(&official), (0, vec![26; 4]));
}

#[test]
fn seats_that_leave_in_the_same_auction_share_places() {
    use DealResult::{Forfeited, Left, Stayed};
    let table: &[(&[DealResult], &[i64])] = &[
        (&[Left(9), Stayed, Left(4), Left(7)], &[24, 48, 0, 12]),
        (&[Left(4), Stayed, Left(4), Left(7)], &[6, 48, 6, 24]),
        (&[Left(3), Left(5), Left(5), Stayed], &[0, 18, 18, 48]),
        (&[Left(3), Left(5), Left(6), Left(6)], &[0, 12, 36, 36]),
        (&[Left(3), Left(3), Left(3), Stayed], &[12, 12, 12, 48]),
        (&[Stayed, Left(3), Stayed, Stayed], &[28, 0, 28, 28]),
        (&[Stayed; 4], &[21; 4]),
        (&[Left(2), Stayed, Left(1)], &[24, 48, 12]),
        (&[Stayed; 3], &[28; 3]),
        (&[Left(2), Left(2), Stayed], &[18, 18, 48]),
        (&[Left(2), Stayed], &[24, 48]),
        (&[Stayed; 2], &[36; 2]),
        (&[Forfeited, Left(1), Left(2), Stayed], &[0, 12, 24, 48]),
        (&[Stayed, Forfeited, Left(2), Stayed], &[36, 0, 12, 36]),
        (&[Forfeited, Left(2), Forfeited, Left(3)], &[0, 24, 0, 48]),
        (&[Forfeited, Left(2), Left(3)], &[0, 24, 48]),
        (&[Forfeited, Forfeited, Forfeited, Left(2)], &[0, 0, 0, 48]),
    ];
    for (results, expected) in table {
        assert_eq!(points(results)[..results.len()], **expected, "{results:?}");
    }
}

#[test]
fn deals_are_interrupted_after_two_hundred_auctions_once_in_two_hundred() {
    let mut deal = Deal::new(&Deck::default(), 4, Seed([2; 32]));
    let mut possible = 0;
    let mut interruptions = 0;
    for _ in 0..500 {
        while deal.open() {
            possible += u32::from(deal.auction() > 200);
            while deal.turn().is_some() {
                deal.play(Move::Pass).unwrap();
            }
            deal.settle();
        }
        if Seat::all(4).filter(|seat| deal.is_in(*seat)).count() > 1 {
            assert!(deal.auction() >= 200);
            interruptions += 1;
            possible += 1;
        }
        deal.redeal();
    }
    let expected = f64::from(possible) / 200.0;
    let tolerance = 3.0 * expected.sqrt();
    assert!(interruptions > 300, "passing bots play long deals");
    assert!((f64::from(interruptions) - expected).abs() < tolerance, "{interruptions} {expected}");
}

#[test]
fn a_war_may_be_interrupted() {
    let mut deal = Deal::new(&"1-2*60".parse().unwrap(), 3, Seed([3; 32]));
    let is_interrupted = (0..2000).any(|_| {
        while deal.open() {
            while deal.turn().is_some() {
                // The seats take turns in passing, so that piles stay about equal.
                let passes = u32::from(deal.turn().unwrap().number()) == deal.auction() % 3 + 1;
                deal.play(if passes { Move::Pass } else { Move::Check }).unwrap();
            }
            deal.settle();
        }
        let in_war = deal.pot() > 0 && Seat::all(3).filter(|seat| deal.is_in(*seat)).count() > 1;
        deal.redeal();
        in_war
    });
    assert!(is_interrupted);
}
