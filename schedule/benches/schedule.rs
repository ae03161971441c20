//! How fast schedules are made, and in how much memory: `cargo bench -p arbiter-schedule`.
//!
//! Every table is looked at, so that none can be left out, and nothing is kept. Time is processor
//! time, so that other programs' work on the machine does not count. Memory is the process's
//! high-water mark, taken after the largest plan with nothing else having run before.

use std::fs;
use std::hint::black_box;

use arbiter_games::Seed;
use arbiter_schedule::FoursomesConfig;

/// Plans are made again until there are so many tables: the kernel counts processor time in steps
/// of a few milliseconds.
const TABLES: u64 = 50_000_000;
/// Millions of tables a second that plans are to be made at.
const TARGET: u32 = 20;
/// Groups with λ = 1, a progression, groups with λ = 3, and two small plans. The largest comes
/// first, for its memory.
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

/// Makes a plan; how many tables it has.
fn stream(bots: usize) -> u64 {
    let plan =
        FoursomesConfig::Least.plan(bots, Seed::of_text("bench")).expect("there is such a plan");
    let promised = plan.matches();
    let mut tables = 0;
    for table in plan {
        black_box(table);
        tables += 1;
    }
    assert_eq!(tables, promised, "the plan is complete");
    tables
}

/// The most memory this process has had, in kB.
fn high_water() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let words = line.and_then(|line| line.split_whitespace().next());
    words.and_then(|kilobytes| kilobytes.parse().ok()).expect("a number of kB")
}

/// How long this process has run so far, in nanoseconds.
fn processor_time() -> u64 {
    let status = fs::read_to_string("/proc/self/schedstat").expect("Linux");
    let nanoseconds = status.split_whitespace().next().and_then(|word| word.parse().ok());
    nanoseconds.expect("a number of nanoseconds")
}
