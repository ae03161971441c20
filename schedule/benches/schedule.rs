//! The speed and the memory of planning: `cargo bench -p arbiter-schedule`.
//!
//! The benchmark consumes every table, so that the compiler cannot remove any, and stores none.
//! Time is processor time, so that other programs on the machine do not count. Memory is the
//! high-water mark of the process after the largest plan, which runs first.

use std::fs;
use std::hint::black_box;

use arbiter_games::Seed;
use arbiter_schedule::FoursomesConfig;

/// The minimum number of tables of a measurement. The kernel counts processor time in steps of a
/// few milliseconds, so short plans are repeated.
const TABLES: u64 = 50_000_000;
/// The target speed, in millions of tables a second.
const TARGET: u32 = 20;
/// The numbers of bots: groups with λ = 1, a progression, groups with λ = 3, and two small plans.
/// The largest comes first, for the measurement of memory.
const BOTS: [usize; 5] = [10_000, 9_998, 9_996, 1_000, 1_001];

fn main() {
    let before = high_water();
    for (index, bots) in BOTS.into_iter().enumerate() {
        let began = processor_time();
        let mut tables = 0;
        let mut plans = 0;
        while tables < TABLES {
            tables += stream(bots);
            plans += 1;
        }
        let tenths = tables * 10_000 / (processor_time() - began);
        let millions = tenths / 10;
        let tenths = tenths % 10;
        print!("{bots} bots, {} tables: {millions}.{tenths} million tables/s", tables / plans);
        println!(" (target {TARGET}; {plans} plans)");
        if index == 0 {
            println!("  memory: {} kB more than the {before} kB before", high_water() - before);
        }
    }
}

/// Makes a plan and returns its number of tables.
fn stream(bots: usize) -> u64 {
    let plan =
        FoursomesConfig::Least.plan(bots, Seed::of_text("bench")).expect("there is such a plan");
    let expected = plan.matches();
    let mut tables = 0;
    for table in plan {
        black_box(table);
        tables += 1;
    }
    assert_eq!(tables, expected, "the plan is complete");
    tables
}

/// The maximum memory of this process so far, in kB.
fn high_water() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let words = line.and_then(|line| line.split_whitespace().next());
    words.and_then(|kilobytes| kilobytes.parse().ok()).expect("a number of kB")
}

/// The processor time of this process so far, in nanoseconds.
fn processor_time() -> u64 {
    let status = fs::read_to_string("/proc/self/schedstat").expect("Linux");
    let nanoseconds = status.split_whitespace().next().and_then(|word| word.parse().ok());
    nanoseconds.expect("a number of nanoseconds")
}
