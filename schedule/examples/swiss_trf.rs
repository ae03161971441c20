//! Plays a random Swiss tournament and prints its report: `swiss_trf SEED PLAYERS ROUNDS`;
//! with a fourth word, half of the players start accelerated.
//! `scripts/swiss-check` gives such reports to an independent checker of pairings.

#[path = "../tests/simulated_swiss/mod.rs"]
mod simulated_swiss;

use arbiter_schedule::swiss::trf;
use simulated_swiss::Simulation;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seed, players, rounds, more @ ..] = arguments.as_slice() else {
        eprintln!("usage: swiss_trf SEED PLAYERS ROUNDS [accelerated]");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse().expect("a number");
    let accelerated = !more.is_empty();
    let mut simulation = Simulation::of_seed(seed, number(players), number(rounds), accelerated);
    if let Err(error) = simulation.run() {
        eprintln!("{error}");
    }
    let names: Vec<String> =
        (1..=simulation.players.len()).map(|n| format!("Player {n}")).collect();
    print!(
        "{}",
        trf(&simulation.swiss, seed, &simulation.players, &names).expect("at most 9999 players")
    );
}
