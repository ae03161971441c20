//! The table of openings.

/// An opening in each line: its name, and after two blanks or more its moves.
const TABLE: &str = include_str!("openings.txt");

/// The number of openings of the table.
const COUNT: u64 = 64;

/// A well-known opening.
pub struct Opening {
    /// Its name.
    pub name: &'static str,
    /// Its moves as UCI engines write them, with one blank between two of them.
    pub moves: &'static str,
}

/// All openings of the table.
pub fn all() -> impl Iterator<Item = Opening> {
    TABLE.lines().map(|line| {
        let (name, moves) = line.split_once("  ").expect("a name and moves");
        Opening { name, moves: moves.trim_start() }
    })
}

/// The opening of a seed, which is 64 hexadecimal digits.
///
/// The first 16 digits are a number below 2^64. It is multiplied by the number of openings, and the
/// upper 64 bits of the product choose the opening: all are equally likely.
pub fn choose(seed: &str) -> Opening {
    let digits = seed.get(..16).expect("a seed of 64 digits");
    let number = u64::from_str_radix(digits, 16).expect("hexadecimal digits");
    let index = (u128::from(number) * u128::from(COUNT)) >> 64;
    let index = usize::try_from(index).expect("a number below the number of openings");
    all().nth(index).expect("an opening of the table")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::game::Game;

    #[test]
    fn openings_are_legal_and_differ() {
        let mut names = BTreeSet::new();
        let mut positions = BTreeSet::new();
        for Opening { name, moves } in all() {
            let mut game = Game::new(400);
            for uci in moves.split(' ') {
                assert_eq!(game.play(uci), Ok(()), "{uci} in {name}");
            }
            assert!((4..=8).contains(&game.moves().len()), "{name}");
            assert!(names.insert(name), "{name}");
            assert!(positions.insert(game.board().to_string()), "{name}");
        }
        assert_eq!(names.len() as u64, COUNT);
    }

    #[test]
    fn the_first_digits_of_the_seed_choose_the_opening() {
        let opening = |digits: &str| choose(&format!("{digits:0<64}")).name;
        assert_eq!(opening("0"), "Ruy Lopez");
        assert_eq!(opening("03ffffffffffffff"), "Ruy Lopez");
        assert_eq!(opening("04"), "Ruy Lopez, Berlin Defence");
        assert_eq!(opening("ffffffffffffffff"), "King's Indian Attack");
    }
}
