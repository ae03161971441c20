//! tmp
use arbiter_games::{ExpectedReply, Games, Seed, wojna};
use std::time::Instant;

#[path = "../tests/support/mod.rs"]
#[expect(dead_code)]
mod support;

fn main() {
    let games = Games::built_in();
    let params = support::params(&wojna::game(), "{}");
    let names = support::names(4);
    for text in ["a", "b", "c"] {
        for kind in 0..3 {
            let mut dice = Seed::of_text(text).dice(5);
            let (record, _) = support::play(&params, Seed::of_text(text), &names, |message, _| {
                Ok(if message.expected_reply == ExpectedReply::Ack {
                    "=".to_owned()
                } else {
                    match kind {
                        0 => "= check",
                        1 => ["= pass", "= check", "= check", "= raise 1"][dice.index(4)],
                        _ => [
                            "= pass", "= check", "= check", "= check", "= check", "= check",
                            "= check",
                        ][dice.index(7)],
                    }
                    .to_owned()
                })
            });
            let lines = record.iter().filter(|b| **b == b'\n').count();
            let t = Instant::now();
            let v = arbiter_replay::verify(&games, &record[..]).unwrap();
            let verify = t.elapsed();
            let t = Instant::now();
            let s = arbiter_replay::steps(&games, &record[..], 0..250).unwrap();
            let steps = t.elapsed();
            let t = Instant::now();
            let packed = zstd::encode_all(&record[..], 3).unwrap();
            let enc = t.elapsed();
            let t = Instant::now();
            let un = zstd::decode_all(&packed[..]).unwrap();
            let dec = t.elapsed();
            let t = Instant::now();
            let n: usize = record
                .split(|b| *b == b'\n')
                .map(|l| {
                    serde_json::from_slice::<serde_json::Value>(l)
                        .map_or(0, |v| v.as_object().map_or(0, |o| o.len()))
                })
                .sum();
            let json = t.elapsed();
            let t = Instant::now();
            let d = arbiter_replay::steps(&games, &record[..], 10000..11000).unwrap();
            let html: usize = d.drawn.iter().map(|s| s.render(&names).into_string().len()).sum();
            let r = t.elapsed();
            println!(
                "{text} {kind}: {} bytes {lines} lines {} steps; verify {verify:?} steps {steps:?} zstd {} {enc:?} {dec:?} json {json:?} {n} {} {} draw1000 {r:?} {}",
                record.len(),
                s.overview.total,
                packed.len(),
                un.len(),
                v.lines,
                html
            );
        }
    }
}
