//! Runs hostile and honest programs in real jails, and checks what they leave.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod builds;
mod covert_channels;
mod guarantees;
#[path = "../support/jail_tests.rs"]
mod jail_tests;
#[path = "../support/lab.rs"]
mod lab;
mod languages;
mod memory;

use std::process::ExitCode;

use arbiter_worker::sandbox;

fn main() -> ExitCode {
    sandbox::handle_reexec();
    if std::env::args().any(|word| word == guarantees::KILLED) {
        guarantees::be_a_worker_to_be_killed();
    }
    let tests = [
        attacks::all(),
        guarantees::all(),
        memory::all(),
        languages::all(),
        builds::all(),
        covert_channels::all(),
    ];
    jail_tests::run(tests.into_iter().flatten())
}
