//! The output of a local run: one JSON object per match, and the final table.

use serde_json::{Value, json};

use crate::output::{self, Columns};
use crate::play::plan::{Job, Plan};
use crate::play::run::PlayedMatch;
use crate::play::tally::{Row, Tally};

/// The JSON object of a match.
pub(crate) fn match_json(plan: &Plan, job: &Job, played: &PlayedMatch) -> Value {
    let outcome = &played.outcome;
    let names = played.seats.iter().map(|entry| json!(plan.entries[*entry].name));
    let results = outcome.results.iter();
    let mut line = json!({
        "match": job.number,
        "game": plan.params.game(),
        "seed": played.seed,
        "seats": names.collect::<Vec<_>>(),
        "scores": results.clone().map(|result| &result.score).collect::<Vec<_>>(),
        "forfeits": results.clone().map(|result| result.forfeit).collect::<Vec<_>>(),
        "details": outcome.seats.iter().map(|seat| &seat.detail).collect::<Vec<_>>(),
        "bad_answers": results.map(|result| result.bad_answers).collect::<Vec<_>>(),
        "transcript": outcome.transcript.to_string(),
        "sandbox": outcome.level,
        "wall_us": outcome.wall_time.0,
        "cpu_us": outcome.seats.iter().map(|seat| seat.usage.cpu.0).collect::<Vec<_>>(),
    });
    if let (Some((round, table)), Some(object)) = (played.round_table, line.as_object_mut()) {
        object.insert("round".to_owned(), json!(round));
        object.insert("table".to_owned(), json!(table));
    }
    line
}

/// The JSON object of the table.
pub(crate) fn table_json(plan: &Plan, tally: &Tally, seed: &str) -> Value {
    let rows = tally.ranking().into_iter().map(|(rank, entry)| {
        let row = &tally.0[entry];
        let (mean, interval) = row.mean();
        let times = row.reply_times();
        json!({
            "rank": rank,
            "bot": plan.entries[entry].name,
            "games": row.sums.matches,
            "score": row.sums.score.iter().map(|sum| output::sum_json(*sum)).collect::<Vec<_>>(),
            "mean": mean,
            "interval95": interval,
            "forfeits": output::forfeits_json(&row.sums.forfeits),
            "bad_answers": row.sums.bad_answers,
            "reply_us": times.map(|times| json!({
                "mean": times.mean.0, "p99": times.p99.0, "max": times.max.0
            })),
        })
    });
    json!({"seed": seed, "columns": plan.columns, "ranking": rows.collect::<Vec<_>>()})
}

/// The table for people.
pub(crate) fn table(plan: &Plan, tally: &Tally) -> Columns {
    let bad = tally.0.iter().any(|row| row.sums.bad_answers > 0);
    let mut header = vec!["#", "bot", "games"];
    header.extend(plan.columns.iter().map(String::as_str));
    header.extend(["mean ± 95 %", "forfeits"]);
    header.extend(bad.then_some("bad answers"));
    header.push("reply mean / p99 / max");
    let mut table = Columns::new(header, &[1]);
    for (rank, entry) in tally.ranking() {
        let row = &tally.0[entry];
        let (mean, interval) = row.mean();
        let mut cells = vec![rank.to_string(), plan.entries[entry].name.to_string()];
        cells.push(row.sums.matches.to_string());
        cells.extend(
            (0..plan.columns.len())
                .map(|column| row.sums.score.get(column).copied().unwrap_or(0).to_string()),
        );
        cells.push(output::mean(mean, interval));
        cells.push(output::forfeits(&row.sums.forfeits));
        cells.extend(bad.then(|| row.sums.bad_answers.to_string()));
        cells.push(times(row));
        table.push(cells);
    }
    table
}

fn times(row: &Row) -> String {
    let Some(times) = row.reply_times() else { return "-".to_owned() };
    [times.mean, times.p99, times.max].map(output::span).join(" / ")
}
