//! The battles of bitwa: examples, and a comparison with a second implementation of the document's
//! rules.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use arbiter_games::Seat;
use arbiter_games::bitwa::{Battle, Board, Division, Ground, Order, Sign, Square};
use proptest::prelude::*;

/// A battle on a board with these rows. Every unit has this strength.
fn battle(strength: u32, rows: &str) -> Battle {
    Battle::new(&board(strength, rows))
}

fn board(strength: u32, rows: &str) -> Board {
    let columns = rows.split_whitespace().next().unwrap().len();
    let count = rows.split_whitespace().count();
    format!("{columns} {count} 10 {strength} {rows}").parse().unwrap()
}

/// An order from the words of the protocol.
fn order(words: &str) -> Order {
    let numbers: Vec<i16> = words.split(' ').map(|word| word.parse().unwrap()).collect();
    let &[attack, x, y, dx, dy, px_first] = &numbers[..] else { panic!("{words}") };
    let sign = |step| if step == 1 { Sign::Plus } else { Sign::Minus };
    Order {
        attack: attack == 1,
        target: Square { x: x.try_into().unwrap(), y: y.try_into().unwrap() },
        dx: sign(dx),
        dy: sign(dy),
        px_first: px_first == 1,
    }
}

fn division(letter: char) -> Division {
    Division::from_letter(letter).unwrap()
}

/// The rows of a board after one order to the division of a letter.
fn after(strength: u32, rows: &str, letter: char, words: &str) -> String {
    let mut battle = battle(strength, rows);
    battle.carry_out(division(letter), order(words));
    battle.to_string().trim_end().replace('\n', " ")
}

#[test]
fn divisions_move_by_letter_and_capitals_first() {
    let letters: String = Division::all().map(Division::letter).collect();
    assert_eq!(letters, "AaBbCcDdEeFfGgHhIiJjKkLlMmNnOoPpQqRrSsTtUuVvWwXxYyZz");
    for (index, division) in Division::all().enumerate() {
        assert_eq!(Division::from_letter(division.letter()), Some(division));
        assert_eq!((division.index(), division.seat().index()), (index, index % 2));
    }
    assert_eq!(Division::from_letter('ą'), None);
    assert_eq!(Division::from_letter('0'), None);
}

#[test]
fn the_nearest_unit_moves_first() {
    assert_eq!(after(1, "AAA..a", 'A', "0 5 0 1 1 1"), ".AAA.a");
    assert_eq!(after(1, "a..AAA", 'A', "0 0 0 1 1 1"), "a.AAA.");
}

/// The auxiliary points determine the first of two units with equal distances from the target.
#[test]
fn ties_are_broken_by_the_auxiliary_points() {
    assert_eq!(after(1, "A.A#a", 'A', "0 1 0 1 1 1"), "AA.#a");
    assert_eq!(after(1, "A.A#a", 'A', "0 1 0 -1 1 1"), ".AA#a");
    assert_eq!(
        after(1, "A.A#a", 'A', "0 1 0 1 1 0"),
        "AA.#a",
        "Py has the same distance from both"
    );
    let corner = "#A# A.# ##a";
    assert_eq!(after(1, corner, 'A', "0 1 1 -1 -1 1"), "#.# AA# ##a", "Px first");
    assert_eq!(after(1, corner, 'A', "0 1 1 -1 -1 0"), "#A# .A# ##a", "Py first");
}

#[test]
fn a_unit_stays_when_every_other_square_is_farther() {
    assert_eq!(after(1, "..A..a", 'A', "0 2 0 1 1 1"), "..A..a");
    assert_eq!(after(1, "... .A. ..a", 'A', "0 1 1 -1 -1 1"), "... .A. ..a");
}

#[test]
fn walls_and_the_edge_stop_units() {
    assert_eq!(after(1, "A#..a", 'A', "0 3 0 1 1 1"), "A#..a");
    assert_eq!(after(1, "A#..a .....", 'A', "0 3 0 1 1 1"), ".#..a .A...", "past the wall");
    assert_eq!(after(1, "A.#.a", 'A', "0 2 0 1 1 1"), ".A#.a", "the target itself is blocked");
    assert_eq!(after(1, "#A#a", 'A', "0 0 0 -1 -1 1"), "#A#a", "there is nothing beyond the edge");
}

#[test]
fn units_of_the_same_player_block_each_other() {
    assert_eq!(after(1, "AB..a", 'A', "1 4 0 1 1 1"), "AB..a");
    assert_eq!(after(1, "AB..a", 'B', "1 4 0 1 1 1"), "A.B.a");
    assert_eq!(after(1, "aab.A", 'a', "1 4 0 1 1 1"), "aab.A");
}

#[test]
fn an_attack_takes_one_point_and_then_the_square() {
    let mut battle = battle(2, "Aa.a");
    let enemy = Seat::from_index(1);
    let square = Square { x: 1, y: 0 };
    battle.carry_out(division('A'), order("0 3 0 1 1 1"));
    assert_eq!(battle.to_string(), "Aa.a\n");
    assert_eq!((battle.strength(square), battle.forces(enemy).units), (1, 2));
    assert_eq!(battle.forces(enemy).strength, 3);
    battle.carry_out(division('A'), order("0 3 0 1 1 1"));
    assert_eq!(battle.to_string(), ".A.a\n");
    assert_eq!((battle.strength(square), battle.forces(enemy).units), (2, 1));
    assert_eq!(battle.forces(enemy).strength, 2);
    assert_eq!(battle.units(division('a')), [Square { x: 3, y: 0 }]);
    assert_eq!(battle.units(division('A')), [square]);
}

#[test]
fn preferred_attacks_come_before_moves() {
    let rows = "a.... .A... .....";
    assert_eq!(after(1, rows, 'A', "0 4 2 1 1 1"), "a.... ..... ..A..");
    assert_eq!(after(2, rows, 'A', "1 4 2 1 1 1"), rows, "attacks and stays");
    assert_eq!(after(1, "a.... .A..a .....", 'A', "1 4 2 1 1 1"), "A.... ....a .....");
    assert_eq!(after(1, "..... .A..a .....", 'A', "1 4 2 1 1 1"), "..... ....a ..A..");
}

#[test]
fn the_nearest_of_several_enemies_is_attacked() {
    assert_eq!(after(1, "a.a .A.", 'A', "1 2 1 1 1 1"), "a.A ...");
    assert_eq!(after(1, "a.a .A.", 'A', "1 0 1 1 1 1"), "A.a ...");
    assert_eq!(after(1, "a.a .A.", 'A', "0 1 0 1 1 1"), "aAa ...", "the order prefers no attack");
}

#[test]
fn a_division_fights_in_order() {
    let rows = "AAa.a";
    assert_eq!(after(1, rows, 'A', "1 4 0 1 1 1"), ".AA.a", "the second unit follows the first");
    assert_eq!(after(2, rows, 'A', "1 4 0 1 1 1"), rows, "the second unit is behind the first");
    assert_eq!(after(2, "A.. AaA a..", 'A', "1 1 1 1 1 1").matches('A').count(), 3);
}

#[test]
fn the_game_stops_with_the_last_unit() {
    assert_eq!(after(1, "AAa", 'A', "1 2 0 1 1 1"), "A.A");
    assert_eq!(after(1, "AA.", 'A', "1 2 0 1 1 1"), "AA.", "there was no enemy from the start");
}

/// A second, slow implementation of the document's rules: the units are a list of (letter, x, y,
/// strength).
mod document {
    use super::{Board, Ground, Order};

    pub(crate) type Unit = (char, i32, i32, u32);

    #[derive(Clone, Debug)]
    pub(crate) struct Field {
        pub(crate) blocked: Vec<(i32, i32)>,
        pub(crate) size: (i32, i32),
        pub(crate) units: Vec<Unit>,
    }

    impl Field {
        pub(crate) fn new(board: &Board) -> Self {
            let size = (board.columns().try_into().unwrap(), board.rows().try_into().unwrap());
            let mut field = Self { blocked: vec![], size, units: vec![] };
            let squares = (0..size.1).flat_map(|y| (0..size.0).map(move |x| (x, y)));
            for ((x, y), ground) in squares.zip(board.ground()) {
                match ground {
                    Ground::Blocked => field.blocked.push((x, y)),
                    Ground::Free => {}
                    Ground::Unit(division) => {
                        field.units.push((division.letter(), x, y, board.strength()));
                    }
                }
            }
            field
        }

        fn unit_at(&self, x: i32, y: i32) -> Option<usize> {
            self.units.iter().position(|unit| (unit.1, unit.2) == (x, y))
        }

        fn is_decided(&self) -> bool {
            let capitals = self.units.iter().filter(|unit| unit.0.is_uppercase()).count();
            capitals == 0 || capitals == self.units.len()
        }

        pub(crate) fn carry_out(&mut self, letter: char, order: Order) {
            let mut units: Vec<_> = self.units.iter().filter(|unit| unit.0 == letter).collect();
            units.sort_by_key(|unit| distance(order, unit.1, unit.2));
            let starts: Vec<_> = units.iter().map(|unit| (unit.1, unit.2)).collect();
            for (x, y) in starts {
                if !self.is_decided() {
                    self.advance(self.unit_at(x, y).unwrap(), order);
                }
            }
        }

        fn advance(&mut self, mover: usize, order: Order) {
            let (letter, x0, y0, _) = self.units[mover];
            let neighbours = (-1..=1).flat_map(|y| (-1..=1).map(move |x| (x0 + x, y0 + y)));
            let mut candidates: Vec<_> = neighbours
                .filter(|(x, y)| *x >= 0 && *y >= 0 && *x < self.size.0 && *y < self.size.1)
                .filter(|square| !self.blocked.contains(square))
                .collect();
            let is_enemy = |x, y| {
                let unit = self.unit_at(x, y).map(|unit| self.units[unit].0);
                unit.is_some_and(|other| other.is_uppercase() != letter.is_uppercase())
            };
            candidates.retain(|(x, y)| {
                let unit = self.unit_at(*x, *y);
                unit.is_none_or(|unit| unit == mover) || is_enemy(*x, *y)
            });
            let enemies: Vec<_> =
                candidates.iter().copied().filter(|(x, y)| is_enemy(*x, *y)).collect();
            let candidates = if order.attack && !enemies.is_empty() { enemies } else { candidates };
            let nearest = candidates.into_iter().min_by_key(|(x, y)| distance(order, *x, *y));
            let (x, y) = nearest.unwrap();
            self.go(mover, x, y);
        }

        fn go(&mut self, mover: usize, x: i32, y: i32) {
            let enemy = self.unit_at(x, y).filter(|unit| *unit != mover);
            if let Some(enemy) = enemy {
                self.units[enemy].3 -= 1;
                if self.units[enemy].3 > 0 {
                    return;
                }
            }
            (self.units[mover].1, self.units[mover].2) = (x, y);
            if let Some(enemy) = enemy {
                self.units.remove(enemy);
            }
        }
    }

    fn distance(order: Order, x: i32, y: i32) -> [i32; 3] {
        let xd = i32::from(order.target.x);
        let yd = i32::from(order.target.y);
        let distance_to = |(a, b): (i32, i32)| (x - a).pow(2) + (y - b).pow(2);
        let px = (xd + order.dx.step(), yd);
        let py = (xd, yd + order.dy.step());
        let (first, second) = if order.px_first { (px, py) } else { (py, px) };
        [distance_to((xd, yd)), distance_to(first), distance_to(second)]
    }
}

/// Boards of up to 7 x 7 squares with two divisions for each player.
fn any_board() -> impl Strategy<Value = Board> {
    (1usize..=7, 1usize..=7, 1u32..=3).prop_flat_map(|(columns, rows, strength)| {
        let letters = proptest::sample::select(vec!['#', '.', '.', '.', 'A', 'a', 'B', 'b']);
        proptest::collection::vec(letters, columns * rows).prop_map(move |squares| {
            let rows: Vec<String> =
                squares.chunks(columns).map(|row| row.iter().collect()).collect();
            board(strength, &rows.join(" "))
        })
    })
}

fn any_order(columns: usize, rows: usize) -> impl Strategy<Value = Order> {
    let columns = u8::try_from(columns).unwrap();
    let rows = u8::try_from(rows).unwrap();
    let sign = || proptest::sample::select(vec![Sign::Minus, Sign::Plus]);
    (any::<bool>(), 0..columns, 0..rows, sign(), sign(), any::<bool>()).prop_map(
        |(attack, x, y, dx, dy, px_first)| Order {
            attack,
            target: Square { x, y },
            dx,
            dy,
            px_first,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// No two squares have the same distances, for any order.
    #[test]
    fn distances_order_all_squares_strictly(order in any_order(100, 100), side in 1u8..=100) {
        let squares = (0..side).flat_map(|y| (0..side).map(move |x| Square { x, y }));
        let mut distances: Vec<_> = squares.map(|square| order.distance(square)).collect();
        distances.sort_unstable();
        prop_assert!(distances.windows(2).all(|pair| pair[0] < pair[1]));
    }

    /// Both implementations have the same state after each order.
    #[test]
    fn battles_follow_the_document(
        board in any_board(),
        orders in proptest::collection::vec((any_order(7, 7), 0usize..4), 1..20),
    ) {
        let mut battle = Battle::new(&board);
        let mut field = document::Field::new(&board);
        for (order, index) in orders {
            let letter = ['A', 'a', 'B', 'b'][index];
            battle.carry_out(division(letter), order);
            field.carry_out(letter, order);
            compare(&battle, &field);
        }
    }
}

/// Compares the state of a battle with that of the second implementation.
fn compare(battle: &Battle, field: &document::Field) {
    for seat in Seat::all(2) {
        let units = field.units.iter().filter(|unit| division(unit.0).seat() == seat);
        let strength: u64 = units.clone().map(|unit| u64::from(unit.3)).sum();
        let forces = battle.forces(seat);
        assert_eq!((forces.units as usize, forces.strength), (units.count(), strength));
    }
    let mut unit_count = 0;
    for letter in ['A', 'a', 'B', 'b'] {
        unit_count += battle.units(division(letter)).len();
    }
    assert_eq!(unit_count, field.units.len());
    for &(letter, x, y, strength) in &field.units {
        let square = Square { x: x.try_into().unwrap(), y: y.try_into().unwrap() };
        assert!(battle.units(division(letter)).contains(&square), "{letter} at {x} {y}\n{battle}");
        assert_eq!(battle.strength(square), strength);
    }
}
