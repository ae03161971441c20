//! The speed of Swiss pairings: `cargo bench -p arbiter-schedule --bench swiss`.
//!
//! Ten thousand players play nine rounds. The time of a round is processor time, so that other
//! programs on the machine do not count.

#[path = "../tests/simulated_swiss/mod.rs"]
#[expect(dead_code, reason = "tests use all of it")]
mod simulated_swiss;

use std::fs;

use arbiter_schedule::swiss::{Colour, Swiss, Variant};
use simulated_swiss::{Chance, Chances, Simulation};

/// The number of players.
const PLAYERS: usize = 10_000;
/// The most time for a round, in milliseconds.
const TARGET: u64 = 2000;

fn main() {
    let usual = Chances { absent: 10, leaves: 5, late: 10, forfeit: 5, draw: 250 };
    let no_draws = Chances { draw: 0, ..usual };
    let many_draws = Chances { draw: 600, ..usual };
    let nearly_all_drawn = Chances { draw: 900, ..usual };
    let many_absences = Chances { absent: 250, leaves: 20, late: 200, forfeit: 50, draw: 250 };
    let kinds = [
        ("a quarter of draws", usual),
        ("no draws", no_draws),
        ("mostly draws", many_draws),
        ("nine of ten games drawn", nearly_all_drawn),
        ("many absences", many_absences),
    ];
    for (name, chances) in kinds {
        for accelerated in [0, Swiss::accelerated_group(PLAYERS)] {
            for variant in [Variant::Single, Variant::Double] {
                let swiss = Swiss { rounds: 9, initial: Colour::White, variant, accelerated };
                play(swiss, name, chances);
            }
        }
    }
}

/// Plays a tournament and prints the time of each pairing.
fn play(swiss: Swiss, name: &str, chances: Chances) {
    let mut simulation = Simulation::new(swiss, PLAYERS, chances, Chance::new(name));
    let mut times = Vec::new();
    for _ in 0..swiss.rounds {
        simulation.prepare();
        let began = processor_time();
        let pairings = swiss.next_round(&simulation.players).expect("there is a pairing");
        times.push((processor_time() - began) / 1_000_000);
        simulation.play(&pairings);
    }
    let slowest = times.iter().max().expect("there are rounds");
    let Swiss { variant, accelerated, .. } = swiss;
    println!("{PLAYERS} players, {variant:?}, {name}, {accelerated} accelerated: {times:?} ms");
    println!("  slowest round: {slowest} ms (target {TARGET})");
}

/// The processor time of this process so far, in nanoseconds.
fn processor_time() -> u64 {
    let status = fs::read_to_string("/proc/self/schedstat").expect("Linux");
    let nanoseconds = status.split_whitespace().next().and_then(|word| word.parse().ok());
    nanoseconds.expect("a number of nanoseconds")
}
