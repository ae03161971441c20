//! Plays a random Swiss tournament and prints its report: `swiss_trf SEED PLAYERS ROUNDS`.
//! `scripts/swiss-check` gives such reports to an independent checker of pairings.

#[path = "../tests/simulated_swiss/mod.rs"]
mod simulated_swiss;

use arbiter_schedule::swiss::{Colour, Swiss, trf};
use simulated_swiss::{Chance, Chances, Simulation};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seed, players, rounds] = arguments.as_slice() else {
        eprintln!("usage: swiss_trf SEED PLAYERS ROUNDS");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse().expect("a number");
    let mut chance = Chance::new(seed);
    let initial = if chance.below(2) == 0 { Colour::White } else { Colour::Black };
    let swiss = Swiss { rounds: number(rounds), initial };
    let chances = Chances {
        absent: chance.below(60),
        leaves: chance.below(30),
        late: chance.below(60),
        forfeit: chance.below(30),
        draw: chance.below(500),
    };
    let mut simulation = Simulation::new(swiss, number(players), chances, chance);
    if let Err(error) = simulation.run() {
        eprintln!("{error}");
    }
    let names: Vec<String> =
        (1..=simulation.players.len()).map(|n| format!("Player {n}")).collect();
    print!("{}", trf(&swiss, seed, &simulation.players, &names).expect("few players"));
}
