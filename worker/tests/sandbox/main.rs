//! Runs hostile and honest programs in real jails, and checks what they leave.
//!
//! This test has its own `main`, because a program that opens jails must be able to start as its
//! launcher before anything else. Arguments select tests by parts of their names.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod builds;
mod covert_channels;
mod guarantees;
mod lab;
mod languages;
mod memory;
#[path = "../support/memory_seat.rs"]
mod memory_seat;
mod slow_deaths;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use arbiter_worker::sandbox;
use lab::Lab;

/// A test: its name, and what it does.
type Test = (String, Box<dyn Fn(&Lab)>);

fn main() -> ExitCode {
    sandbox::handle_reexec();
    if std::env::args().any(|word| word == guarantees::KILLED) {
        guarantees::be_a_worker_to_be_killed();
    }
    let wanted: Vec<_> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let lab = Lab::open();
    println!("{}", lab.host.report());
    let tests = [
        attacks::all(),
        guarantees::all(),
        slow_deaths::all(),
        memory::all(),
        languages::all(),
        builds::all(),
        covert_channels::all(),
    ];
    let tests = tests.into_iter().flatten();
    let is_named = |name: &str| wanted.iter().any(|word| name.contains(word));
    let chosen = |name: &str| is_named(name) || wanted.is_empty() && !name.starts_with("measure ");
    let mut failed = Vec::new();
    let mut passed = 0;
    for (name, test) in tests.filter(|(name, _)| chosen(name)) {
        let started = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| test(&lab)));
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("test {name} ... {word} ({} ms)", started.elapsed().as_millis());
        if outcome.is_ok() {
            passed += 1;
        } else {
            failed.push(name);
        }
    }
    println!("test result: {passed} passed; {} failed: {}", failed.len(), failed.join(", "));
    lab.close();
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
