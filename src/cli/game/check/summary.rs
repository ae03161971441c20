//! What the random matches show: scores by seat, pictures, speed.

use std::collections::BTreeMap;
use std::time::Duration;

use arbiter_games::Micros;
use arbiter_packages::Descriptor;
use arbiter_ranking::statistics::text;
use serde_json::{Map, Value as Json, json};

use super::playouts::Sample;
use super::problem::Problem;
use crate::output;

/// The number of matches and of their replies.
pub(super) fn matches(samples: &[Sample]) -> (String, Json) {
    let trials = samples.iter().filter(|sample| sample.is_trial).count();
    let replies: Vec<_> = samples.iter().map(|sample| sample.replies.len()).collect();
    let least = replies.iter().min().copied().unwrap_or_default();
    let most = replies.iter().max().copied().unwrap_or_default();
    let count = samples.len();
    let with_trials = match trials {
        0 => String::new(),
        trials => format!(", {trials} of them with the trial values"),
    };
    let text = format!("{count} matches of {least} to {most} replies{with_trials}");
    (text, json!({"matches": count, "trials": trials, "replies": [least, most]}))
}

/// Whether all answers were the same in another environment.
pub(super) fn determinism(samples: &[Sample]) -> Result<(String, Json), Problem> {
    if let Some(problem) = samples.iter().find_map(|sample| sample.difference.clone()) {
        return Err(problem);
    }
    let questions: usize = samples.iter().map(|sample| sample.questions).sum();
    let count = samples.len();
    let text = format!("{questions} answers of {count} matches are the same again elsewhere");
    Ok((text, json!({"matches": count, "answers": questions})))
}

/// The mean score of each seat with its interval, for each number of seats.
pub(super) fn scores(samples: &[Sample], descriptor: &Descriptor) -> (String, Json) {
    let mut by_seats: BTreeMap<usize, Vec<&Sample>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| !sample.is_trial) {
        by_seats.entry(sample.plan.seats).or_default().push(sample);
    }
    let mut texts = Vec::new();
    let mut object = Map::new();
    for (seats, samples) in &by_seats {
        let means: Vec<_> = (0..*seats).map(|seat| mean(samples, seat)).collect();
        let text: Vec<_> = means.iter().map(|(mean, margin)| text::mean(*mean, *margin)).collect();
        let prefix = if by_seats.len() > 1 { format!("{seats} seats ") } else { String::new() };
        texts.push(prefix + &text.join(", "));
        let means = means.iter().map(|(mean, margin)| json!({"mean": mean, "margin": margin}));
        object.insert(seats.to_string(), means.collect());
    }
    let column = &descriptor.columns[0];
    let text = format!("mean {column} by seat: {}", texts.join("; "));
    (text, json!({"column": column, "seats": object}))
}

/// The mean of a seat's scores, and half the width of its 95 % interval.
fn mean(samples: &[&Sample], seat: usize) -> (f64, Option<f64>) {
    #[expect(clippy::cast_precision_loss, reason = "the mean is for people")]
    let points: Vec<_> = samples.iter().map(|sample| sample.points[seat] as f64).collect();
    #[expect(clippy::cast_precision_loss, reason = "there are few matches")]
    let count = points.len() as f64;
    let mean = points.iter().sum::<f64>() / count;
    let squares: f64 = points.iter().map(|point| (point - mean).powi(2)).sum();
    let margin = (count > 1.0).then(|| 1.96 * (squares / (count - 1.0) / count).sqrt());
    (mean, margin)
}

/// Whether the pictures are as they should be.
pub(super) fn frames(samples: &[Sample], draws: bool) -> Result<(String, Json), Problem> {
    if let Some(problem) = samples.iter().find_map(|sample| sample.frame_problem.clone()) {
        return Err(problem);
    }
    let count: usize = samples.iter().map(|sample| sample.frames).sum();
    let largest = samples.iter().map(|sample| sample.largest_frame).max().unwrap_or_default();
    if draws && count == 0 {
        return Err(Problem::new("`frames = true` in game.toml, but the rules draw nothing"));
    }
    if !draws && count > 0 {
        let cause = "the rules draw, but game.toml does not say `frames = true`";
        return Err(Problem::new(cause));
    }
    let text = if draws {
        format!("{count} pictures, the largest of {largest} bytes")
    } else {
        "the rules draw nothing".to_owned()
    };
    Ok((text, json!({"frames": count, "largest_bytes": largest})))
}

/// How long the rules take.
pub(super) fn speed(samples: &[Sample]) -> (String, Json) {
    let micros = |total: Duration, count: usize| {
        total.as_micros() / u128::try_from(count.max(1)).unwrap_or(1)
    };
    let answers: usize = samples.iter().map(|sample| sample.questions - 1).sum();
    let thinking: Duration = samples.iter().map(|sample| sample.thinking).sum();
    let start: Duration = samples.iter().map(|sample| sample.start).sum();
    let step = micros(thinking, answers);
    let start_each = micros(start, samples.len());
    #[expect(clippy::cast_precision_loss, reason = "there are few matches")]
    let rate = samples.len() as f64 / (thinking + start).as_secs_f64();
    let text = format!(
        "{step} µs a step, {} to start, {rate:.0} matches/s on one processor",
        output::span(Micros(i64::try_from(start_each).unwrap_or(i64::MAX)))
    );
    let object = json!({"step_us": u64::try_from(step).ok(),
        "start_us": u64::try_from(start_each).ok(), "matches_per_s": rate});
    (text, object)
}
