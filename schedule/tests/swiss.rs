//! Guarantees of Swiss pairings, on random tournaments.

mod simulated_swiss;

use std::collections::HashSet;

use arbiter_schedule::mix;
use arbiter_schedule::swiss::{
    Colour, Pairings, Player, Round, Swiss, SwissError, TrfError, Variant, trf,
};
use simulated_swiss::{Chance, Chances, Simulation};

/// What happens in an ordinary tournament.
const USUAL: Chances = Chances { absent: 30, leaves: 15, late: 30, forfeit: 10, draw: 250 };
/// Every player plays every game, without draws.
const CALM: Chances = Chances { absent: 0, leaves: 0, late: 0, forfeit: 0, draw: 0 };

/// A Swiss of single games without acceleration.
fn swiss(rounds: usize) -> Swiss {
    Swiss { rounds, initial: Colour::White, variant: Variant::Single, accelerated: 0 }
}

/// Random tournaments of many sizes, as far as they could be paired.
fn tournaments(count: usize) -> impl Iterator<Item = Simulation> {
    (0..count).map(|number| {
        let mut chance = Chance::new(&format!("tournament {number}"));
        let players = 5 + chance.place(if number.is_multiple_of(4) { 200 } else { 40 });
        let rounds = 3 + chance.place(7);
        let system = Swiss {
            variant: if number % 5 == 1 { Variant::Double } else { Variant::Single },
            accelerated: if number % 3 == 1 { Swiss::accelerated_group(players) } else { 0 },
            ..swiss(rounds.min(players - 2))
        };
        let mut simulation = Simulation::new(system, players, USUAL, chance);
        // A small field can run out of opponents; what was paired before still counts.
        if let Err(error) = simulation.run() {
            assert!(players < 20, "{error}");
        }
        simulation
    })
}

/// The colours of a player's games.
fn colours(player: &Player) -> Vec<Colour> {
    let colour = |round: &Round| match round {
        Round::Played { colour, .. } => Some(*colour),
        _ => None,
    };
    player.rounds.iter().filter_map(colour).collect()
}

#[test]
fn two_players_never_play_twice() {
    for simulation in tournaments(200) {
        for player in &simulation.players {
            let mut met = HashSet::new();
            for round in &player.rounds {
                if let Round::Played { opponent, .. } = round {
                    assert!(met.insert(*opponent));
                }
            }
        }
    }
}

#[test]
fn a_player_never_gets_a_second_bye() {
    for simulation in tournaments(200) {
        for player in &simulation.players {
            let byes = player.rounds.iter().filter(|round| **round == Round::PairingBye).count();
            assert!(byes <= 1);
        }
    }
}

/// C.04.1: a difference of at most 2, and never three times the same colour in a row, but for top
/// scorers and their opponents in the last round.
#[test]
fn colours_stay_balanced_as_far_as_the_rules_demand() {
    let single = |simulation: &Simulation| simulation.swiss.variant == Variant::Single;
    for simulation in tournaments(200).filter(single) {
        for player in &simulation.players {
            let all = colours(player);
            let last_played = matches!(player.rounds.last(), Some(Round::Played { .. }));
            let complete = player.rounds.len() == simulation.swiss.rounds;
            let free = usize::from(last_played && complete);
            let bound = &all[..all.len() - free];
            let mut difference = 0_i32;
            for colour in bound {
                difference += if *colour == Colour::White { 1 } else { -1 };
                assert!(difference.abs() <= 2, "{all:?}");
            }
            assert!(bound.windows(3).all(|three| three.iter().any(|c| *c != three[0])), "{all:?}");
        }
    }
}

#[test]
fn nearly_all_colours_differ_by_at_most_one_after_an_even_number_of_rounds() {
    let mut simulation = Simulation::new(swiss(6), 300, CALM, Chance::new("colours"));
    simulation.run().unwrap();
    let balanced = simulation.players.iter().filter(|player| {
        let whites = colours(player).iter().filter(|colour| **colour == Colour::White).count();
        (2..=4).contains(&whites)
    });
    assert_eq!(balanced.count(), 300);
}

#[test]
fn every_player_has_one_place_in_each_round() {
    for mut simulation in tournaments(60) {
        simulation.swiss.rounds += 1;
        simulation.prepare();
        let Ok(pairings) = simulation.swiss.next_round(&simulation.players) else { continue };
        let both = pairings.pairs.iter().flat_map(|pairing| [pairing.white, pairing.black]);
        let mut placed: Vec<usize> = both.chain(pairings.bye).collect();
        placed.sort_unstable();
        let playing = |index: &usize| simulation.players[*index].plays;
        let expected: Vec<usize> = (0..simulation.players.len()).filter(playing).collect();
        assert_eq!(placed, expected);
    }
}

#[test]
fn without_surprises_the_best_of_many_players_is_alone_at_the_top() {
    let mut players = vec![Player { rounds: Vec::new(), plays: true }; 256];
    let system = swiss(8);
    for _ in 0..8 {
        let pairings = system.next_round(&players).unwrap();
        for pairing in &pairings.pairs {
            let both = [
                (pairing.white, pairing.black, Colour::White),
                (pairing.black, pairing.white, Colour::Black),
            ];
            for (player, opponent, colour) in both {
                let points = if player < opponent { 2 } else { 0 };
                players[player].rounds.push(Round::Played { opponent, colour, points });
            }
        }
    }
    let total = |player: &Player| -> u32 {
        player.rounds.iter().map(|round| round.points(Variant::Single)).sum()
    };
    assert_eq!(total(&players[0]), 16);
    assert!(players[1..].iter().all(|player| total(player) < 16));
}

#[test]
fn the_first_round_pairs_the_upper_half_with_the_lower_half() {
    let players = vec![Player { rounds: Vec::new(), plays: true }; 7];
    let pairings = swiss(3).next_round(&players).unwrap();
    let pairs: Vec<_> = pairings.pairs.iter().map(|pair| (pair.white, pair.black)).collect();
    assert_eq!(pairs, [(0, 3), (4, 1), (2, 5)]);
    assert_eq!(pairings.bye, Some(6));
}

#[test]
fn an_accelerated_start_keeps_the_halves_apart() {
    let players = vec![Player { rounds: Vec::new(), plays: true }; 10];
    let accelerated = Swiss::accelerated_group(10);
    assert_eq!(accelerated, 6);
    let pairings = Swiss { accelerated, ..swiss(9) }.next_round(&players).unwrap();
    for pair in pairings.pairs {
        assert_eq!(pair.white < 6, pair.black < 6);
    }
    let system = Swiss { accelerated, ..swiss(9) };
    let extra: Vec<u32> = (0..9).map(|round| system.extra(5, round)).collect();
    assert_eq!(extra, [2, 2, 2, 1, 1, 0, 0, 0, 0]);
    assert_eq!(system.extra(6, 0), 0);
}

#[test]
fn a_round_without_a_legal_pairing_is_refused() {
    let mut players = vec![Player { rounds: Vec::new(), plays: true }; 2];
    let system = swiss(2);
    let pairings = system.next_round(&players).unwrap();
    assert_eq!(pairings.pairs.len(), 1);
    for (player, colour) in [(0, Colour::White), (1, Colour::Black)] {
        players[player].rounds.push(Round::Played { opponent: 1 - player, colour, points: 1 });
    }
    let error = system.next_round(&players).unwrap_err();
    assert_eq!(error, SwissError::NoPairing { round: 2, players: 2 });
    assert!(error.to_string().contains("play fewer rounds"));
}

#[test]
fn histories_that_contradict_each_other_are_refused() {
    let mut players = vec![Player { rounds: Vec::new(), plays: true }; 2];
    players[1].rounds.push(Round::Absent { points: 0 });
    let error = swiss(3).next_round(&players).unwrap_err();
    assert_eq!(error, SwissError::UnequalRounds { player: 1, rounds: 1, expected: 0 });
    players[0].rounds.push(Round::Forfeit { opponent: 7, colour: Colour::White, won: true });
    let error = swiss(3).next_round(&players).unwrap_err();
    assert_eq!(
        error.to_string(),
        "player 1 met player 8, but there are 2 players; correct the history"
    );
}

#[test]
fn no_players_need_no_pairing() {
    assert_eq!(swiss(3).next_round(&[]), Ok(Pairings::default()));
    let alone = [Player { rounds: Vec::new(), plays: true }];
    let expected = Pairings { pairs: Vec::new(), bye: Some(0) };
    assert_eq!(swiss(3).next_round(&alone), Ok(expected));
}

/// An independent checker accepts all these tournaments, see `scripts/swiss-check`.
#[test]
fn pairings_that_a_checker_accepts_never_change() {
    let tournaments = [
        ("swiss-a", 7, 5, false),
        ("swiss-b", 12, 7, false),
        ("swiss-c", 33, 9, true),
        ("swiss-d", 120, 9, false),
        ("swiss-e", 301, 11, false),
    ];
    let sums = tournaments.map(|(seed, players, rounds, accelerated)| {
        let mut simulation = Simulation::of_seed(seed, players, rounds, accelerated);
        simulation.run().unwrap();
        mix(simulation.players.iter().flat_map(|player| player.rounds.iter().map(number)))
    });
    let accepted = [
        8_679_334_636_235_337_592,
        567_927_331_862_215_295,
        12_825_847_688_928_397_681,
        2_527_891_660_737_295_980,
        4_935_044_935_877_364_619,
    ];
    assert_eq!(sums, accepted);
}

/// The opponent and the colour of a player in a round, as a number.
fn number(round: &Round) -> u64 {
    match round {
        Round::Played { opponent, colour, .. } | Round::Forfeit { opponent, colour, .. } => {
            2 + 2 * *opponent as u64 + u64::from(*colour == Colour::White)
        }
        Round::PairingBye => 1,
        Round::Absent { .. } => 0,
    }
}

#[test]
fn places_in_a_report_are_in_the_order_of_the_standings() {
    let played = |opponent, points| Round::Played { opponent, colour: Colour::White, points };
    // Players 2 and 3 have a point each. Player 3 met the stronger opponents.
    let rounds = [[(3, 2), (2, 2)], [(2, 0), (3, 2)], [(1, 2), (0, 0)], [(0, 0), (1, 0)]];
    let players = rounds.map(|rounds| Player {
        rounds: rounds.map(|(opponent, points)| played(opponent, points)).into(),
        plays: true,
    });
    let report = trf(&swiss(2), "cup", &players, &[]).unwrap();
    let lines = report.lines().filter(|line| line.starts_with("001 "));
    let places: Vec<_> = lines.map(|line| line[85..89].trim()).collect();
    assert_eq!(places, ["1", "3", "2", "4"]);
}

#[test]
fn a_report_has_the_columns_of_the_format() {
    let played = |opponent, colour, points| Round::Played { opponent, colour, points };
    let players = [
        Player { rounds: vec![played(1, Colour::White, 1), Round::PairingBye], plays: true },
        Player {
            rounds: vec![played(0, Colour::Black, 1), Round::Absent { points: 1 }],
            plays: true,
        },
    ];
    let names = ["A name that is much longer than the column\n".to_owned(), "b".to_owned()];
    let report = trf(&Swiss { accelerated: 1, ..swiss(3) }, "A\nB", &players, &names).unwrap();
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(lines[0], "012 A B");
    assert_eq!(&lines[3][..14 + 33], "001    1      A name that is much longer than t");
    assert_eq!(&lines[3][80..], " 1.5    1     2 w =  0000 - U");
    assert_eq!(&lines[4][80..], " 1.0    2     1 b =  0000 - H");
    assert_eq!(lines[5..], ["XXA    1  1.0  0.5  0.0", "XXR 3", "XXC white1"]);
    let double = Swiss { variant: Variant::Double, ..swiss(3) };
    assert_eq!(trf(&double, "", &players, &names), Err(TrfError::TwoGames));
}
