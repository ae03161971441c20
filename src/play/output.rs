//! The output of a local run: one JSON object per match, and the final table.

use arbiter_ranking::statistics::text;
use arbiter_worker::match_runner::SeatSummary;
use serde_json::{Value, json};

use crate::output::{self, Columns};
use crate::play::author_hints;
use crate::play::distinct_games::DistinctGames;
use crate::play::plan::{Job, Plan};
use crate::play::run::PlayedMatch;
use crate::play::tally::{Finishes, Row, Tally};

/// The JSON object of a match.
pub(crate) fn match_json(plan: &Plan, job: &Job, played: &PlayedMatch) -> Value {
    let outcome = &played.outcome;
    let labels = played.seats.iter().map(|entry| &plan.labels[*entry]);
    let results = outcome.results.iter();
    let mut line = json!({
        "match": job.number,
        "game": plan.params.game(),
        "seed": played.seed,
        "seats": labels.collect::<Vec<_>>(),
        "scores": results.clone().map(|result| &result.score).collect::<Vec<_>>(),
        "forfeits": results.clone().map(|result| result.forfeit).collect::<Vec<_>>(),
        "hints": (0..played.seats.len())
            .map(|seat| author_hints::hint(plan, played, seat))
            .collect::<Vec<_>>(),
        "details": outcome.seats.iter().map(SeatSummary::detail).collect::<Vec<_>>(),
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
pub(crate) fn table_json(plan: &Plan, tally: &Tally, games: &DistinctGames, seed: &str) -> Value {
    let rows = tally.ranking().into_iter().map(|(rank, entry)| {
        let row = &tally.rows[entry];
        let times = row.reply_times();
        let mut object = json!({
            "rank": rank,
            "bot": plan.labels[entry],
            "name": plan.entries[entry].name,
            "path": plan.entries[entry].path.display().to_string(),
            "games": row.games,
            "score": row.sums.score.iter().map(|sum| output::sum_json(*sum)).collect::<Vec<_>>(),
            "mean": row.mean(),
            "forfeits": output::forfeits_json(&row.sums.forfeits),
            "bad_answers": row.sums.bad_answers,
            "reply_us": times.map(|times| json!({
                "mean": times.mean.0, "p99": times.p99.0, "max": times.max.0
            })),
        });
        for (finish, count) in finishes(plan, row) {
            object[finish.replace(' ', "_")] = json!(count);
        }
        object
    });
    let rows: Vec<_> = rows.collect();
    json!({
        "seed": seed,
        "unit": plan.unit(),
        "games": games.games,
        "distinct_games": games.distinct(),
        "columns": plan.columns(),
        "ranking": rows,
    })
}

/// How often a bot finished in which place: games won, drawn and lost if two bots meet, games as
/// the first at larger tables, nothing for a bot that plays alone.
fn finishes(plan: &Plan, row: &Row) -> Vec<(&'static str, u64)> {
    let Finishes { first, shared_first, behind } = row.finishes;
    match plan.bots_per_job() {
        ..=1 => Vec::new(),
        2 => vec![("won", first), ("drawn", shared_first), ("lost", behind)],
        _ => vec![("first", first), ("shared first", shared_first)],
    }
}

/// The table for people.
pub(crate) fn table(plan: &Plan, tally: &Tally) -> Columns {
    let bad = tally.rows.iter().any(|row| row.sums.bad_answers > 0);
    let columns = plan.columns();
    let mean = format!("mean per {}", plan.unit());
    let games = format!("{}s", plan.unit());
    let mut header = vec!["#", "bot", games.as_str()];
    header.extend(finishes(plan, &tally.rows[0]).iter().map(|(finish, _)| *finish));
    header.extend(&columns);
    header.extend([mean.as_str(), "forfeits"]);
    header.extend(bad.then_some("bad replies"));
    header.push("reply mean / p99 / max");
    let mut table = Columns::new(header, &[1]);
    for (rank, entry) in tally.ranking() {
        let row = &tally.rows[entry];
        let mut cells = vec![rank.to_string(), plan.labels[entry].clone(), row.games.to_string()];
        cells.extend(finishes(plan, row).iter().map(|(_, count)| count.to_string()));
        cells.extend(
            (0..columns.len())
                .map(|column| row.sums.score.get(column).copied().unwrap_or(0).to_string()),
        );
        cells.push(row.mean().map_or_else(|| "-".to_owned(), |mean| text::mean(mean, None)));
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
