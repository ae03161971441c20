//! Plays a random Swiss tournament and prints its report: `swiss_trf SEED PLAYERS ROUNDS`;
//! with the word `accelerated`, half of the players start accelerated, and with the word `drawn`,
//! nine of ten games are drawn.
//! `scripts/swiss-check` gives such reports to an independent checker of pairings.

#[path = "../tests/simulated_swiss/mod.rs"]
mod simulated_swiss;

use arbiter_schedule::swiss::trf;
use simulated_swiss::Simulation;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seed, players, rounds, more @ ..] = arguments.as_slice() else {
        eprintln!("usage: swiss_trf SEED PLAYERS ROUNDS [accelerated] [drawn]");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse().expect("a number");
    let has = |word: &str| more.iter().any(|other| other == word);
    let accelerated = has("accelerated");
    let mut simulation = Simulation::of_seed(seed, number(players), number(rounds), accelerated);
    if has("drawn") {
        simulation.chances.draw = 900;
    }
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
