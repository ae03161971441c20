//! Runs tests that share one host with jails, one after another.
//!
//! Such a program has its own `main`, because a program that opens jails must be able to start as
//! its launcher before anything else. Arguments select tests by parts of their names.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use super::lab::Lab;

/// A test: its name, and what it does.
pub(crate) type Test = (String, Box<dyn Fn(&Lab)>);

/// Runs the tests that the arguments select: without any, all but those named "measure …".
pub(crate) fn run(tests: impl IntoIterator<Item = Test>) -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let lab = Lab::open();
    println!("{}", lab.host.report());
    let is_named = |name: &str| words.iter().any(|word| name.contains(word));
    let is_selected =
        |name: &str| is_named(name) || words.is_empty() && !name.starts_with("measure ");
    let mut failed = Vec::new();
    let mut passed = 0;
    for (name, test) in tests.into_iter().filter(|(name, _)| is_selected(name)) {
        let started = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| test(&lab)));
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        println!("test {name} ... {word} ({} ms)", started.elapsed().as_millis());
        if result.is_ok() {
            passed += 1;
        } else {
            failed.push(name);
        }
    }
    println!("test result: {passed} passed; {} failed: {}", failed.len(), failed.join(", "));
    lab.close();
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
