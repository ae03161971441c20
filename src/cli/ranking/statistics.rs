//! `arbiter ranking T --stats`: what can be concluded from the results.

use std::time::Duration;

use arbiter_proto::edition_status::EditionStatus;
use arbiter_proto::v1::{
    BotStatistics, GetStatisticsRequest, GetStatisticsResponse, LeaderboardRef, PairStatistics,
    RankSet,
};
use arbiter_ranking::statistics::text;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use tonic::Code;

use super::{Format, PAGE, Ranking};
use crate::cli::client::{Request as _, Server};
use crate::failure::Failure;
use crate::output::{self, Columns, Output, eprint_line, matches, merge, print};

/// Up to this number of bots, the table of probabilities is printed.
const MAX_PAIRS: u32 = 12;
/// Up to this number of bots, each two are compared in JSON.
const MAX_JSON_PAIRS: u32 = 20;
/// The pause before the statistics are requested again while they are being computed.
const PAUSE: Duration = Duration::from_millis(500);

/// Prints the statistics of an edition.
pub(super) fn run(args: &Ranking) -> Result<(), Failure> {
    let all = args.client.run(async |server| fetch(&server, args).await)?;
    print(|out| match args.format {
        Format::Table => show(out, &all),
        Format::Json => print_json(out, &all),
        Format::Csv => print_csv(out, &all),
    })
}

async fn fetch(server: &Server, args: &Ranking) -> Result<GetStatisticsResponse, Failure> {
    let limit = args.limit.unwrap_or(u32::MAX);
    let mut request = GetStatisticsRequest {
        leaderboard: Some(args.leaderboard()),
        offset: args.offset,
        limit: limit.min(PAGE),
        name_contains: args.name.clone().unwrap_or_default(),
        pairs: false,
    };
    let mut all = first(server, &request).await?;
    let total = all.bots.saturating_sub(args.offset).min(limit);
    let max_pairs = if args.format == Format::Json { MAX_JSON_PAIRS } else { MAX_PAIRS };
    if total <= max_pairs && args.format != Format::Csv {
        all = server.send(GetStatisticsRequest { pairs: true, ..request.clone() }).await?;
    }
    // All pages are of the same edition, even if another one becomes official meanwhile.
    if let Some(board) = &mut request.leaderboard {
        board.edition = Some(all.edition);
    }
    fetch_rest(server, request, all, total).await
}

/// The statistics of all bots. `None` if none are computed for this edition.
pub(in crate::cli) async fn fetch_statistics(
    server: &Server,
    leaderboard: LeaderboardRef,
) -> Result<Option<GetStatisticsResponse>, Failure> {
    let leaderboard = Some(leaderboard);
    let request =
        GetStatisticsRequest { leaderboard, limit: PAGE, ..GetStatisticsRequest::default() };
    let all = match first(server, &request).await {
        Ok(all) => all,
        Err(status) if status.code() == Code::FailedPrecondition => return Ok(None),
        Err(status) => return Err(status.into()),
    };
    let total = all.bots;
    fetch_rest(server, request, all, total).await.map(Some)
}

/// Adds the pages that follow the first one, until there are `total` bots.
async fn fetch_rest(
    server: &Server,
    mut request: GetStatisticsRequest,
    mut all: GetStatisticsResponse,
    total: u32,
) -> Result<GetStatisticsResponse, Failure> {
    let offset = request.offset;
    loop {
        let count = u32::try_from(all.statistics.len()).unwrap_or(u32::MAX);
        if count >= total {
            return Ok(all);
        }
        request.offset = offset.saturating_add(count);
        request.limit = (total - count).min(PAGE);
        let page = server.send(request.clone()).await?;
        let is_same = (page.matches, &page.computation) == (all.matches, &all.computation);
        if !is_same || page.statistics.is_empty() {
            return Err(Failure::Negative(
                "the statistics changed while they were read; try again, or wait until the \
                 edition is complete"
                    .to_owned(),
            ));
        }
        all.statistics.extend(page.statistics);
    }
}

/// The first page, as soon as statistics are computed.
async fn first(
    server: &Server,
    request: &GetStatisticsRequest,
) -> Result<GetStatisticsResponse, tonic::Status> {
    let spinner = ProgressBar::new_spinner().with_message("the statistics are being computed");
    spinner.set_style(
        ProgressStyle::with_template("{spinner} {msg}, {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    loop {
        match request.clone().send(server).await {
            Ok(response) => return Ok(response),
            Err(status) if is_computing(&status) => {
                spinner.tick();
                tokio::time::sleep(PAUSE).await;
            }
            Err(status) => return Err(status),
        }
    }
}

/// Whether the coordinator still computes the statistics, rather than being down.
fn is_computing(status: &tonic::Status) -> bool {
    status.code() == Code::Unavailable && status.message().contains("are being computed")
}

/// What the figures answer, and from how much.
fn heading(all: &GetStatisticsResponse) -> Vec<String> {
    let status = EditionStatus::of(all.official, &all.state, all.rehearsal);
    let different = if all.distinct_matches < all.matches {
        format!(" ({} different)", all.distinct_matches)
    } else {
        String::new()
    };
    let planned = matches(all.planned);
    let fresh = if all.basis == "tables" { "seeds and tables" } else { "seeds" };
    let has_ranks = all.statistics.iter().any(|row| row.rank_set.is_some());
    let ranks = if has_ranks { "; all possible ranks hold together with 95 %" } else { "" };
    let mut lines = vec![
        format!(
            "edition {}, {status}: {} of {planned}{different}, {} seeds",
            all.edition, all.matches, all.blocks
        ),
        format!(
            "with fresh {fresh} and the same field: mean {} per {} in the long run{ranks}",
            all.column, all.unit
        ),
    ];
    let has = |reason: &str| all.statistics.iter().any(|row| row.no_interval == reason);
    if has("one_seed") {
        lines.push(
            "a bot that met an opponent with one seed only has no interval (play more seeds)"
                .to_owned(),
        );
    }
    if has("equal_outcomes") {
        lines.push(
            "a bot that scored the same in total with every seed, against the same opponents, has \
             no interval (play more seeds)"
                .to_owned(),
        );
    }
    lines
}

fn show(out: &mut Output, all: &GetStatisticsResponse) -> Result<(), Failure> {
    heading(all).iter().try_for_each(|line| out.line(line))?;
    let mean_heading = format!("mean per {}", all.unit);
    let header =
        ["#", "possible", "bot", &mean_heading, "first", "best 3", "rating", "matches to be sure"];
    let mut table = Columns::new(header, &[2]);
    for row in &all.statistics {
        table.push(vec![
            rank(row),
            text::rank_set(row.rank_set.map(|RankSet { best, worst }| (best, worst))),
            row.bot.clone(),
            text::mean(row.mean, row.margin),
            text::percent(row.top.first().copied()),
            text::percent(row.top.get(2).copied()),
            text::rating(row.rating, row.rating_margin),
            text::needed(row.matches_needed, row.margin),
        ]);
    }
    out.table(&table)?;
    if all.pairs.iter().any(|pair| pair.probability.is_some()) {
        out.line("")?;
        out.line("probability that the row's bot is above the column's bot, by rank")?;
        out.table(&probabilities(all))?;
    }
    Ok(())
}

fn rank(row: &BotStatistics) -> String {
    output::rank(row.rank, row.tied)
}

/// The probabilities as a table. Columns are bots by their ranks.
fn probabilities(all: &GetStatisticsResponse) -> Columns {
    let rows = &all.statistics;
    let header = ["#".to_owned(), "bot".to_owned()].into_iter().chain(rows.iter().map(rank));
    let mut table = Columns::new(header, &[1]);
    for row in rows {
        let mut cells = vec![rank(row), row.bot.clone()];
        let of = |column: &BotStatistics| text::percent(probability(all, &row.bot, &column.bot));
        cells.extend(rows.iter().map(of));
        table.push(cells);
    }
    table
}

/// The probability that one bot is above another one.
fn probability(all: &GetStatisticsResponse, row: &str, column: &str) -> Option<f64> {
    all.pairs.iter().find_map(|pair| match (&pair.bot[..], &pair.other[..]) {
        (bot, other) if bot == row && other == column => pair.probability,
        (bot, other) if bot == column && other == row => {
            pair.probability.map(|probability| 1.0 - probability)
        }
        _ => None,
    })
}

fn print_json(out: &mut Output, all: &GetStatisticsResponse) -> Result<(), Failure> {
    let page = json!({
        "edition": all.edition,
        "official": all.official,
        "planned": all.planned,
        "counted": all.matches,
        "distinct": all.distinct_matches,
        "blocks": all.blocks,
        "basis": all.basis,
        "unit": all.unit,
        "column": all.column,
    });
    all.statistics.iter().try_for_each(|row| out.json(&merge(page.clone(), row_json(row))))?;
    all.pairs.iter().try_for_each(|pair| out.json(&json!({ "pair": pair_json(pair) })))
}

fn row_json(row: &BotStatistics) -> Value {
    json!({
        "rank": output::known_rank(row.rank),
        "tied": row.tied,
        "bot": row.bot,
        "version": row.version,
        "matches": row.matches,
        "distinct_matches": row.distinct_matches,
        "mean": row.mean,
        "interval95": row.margin,
        "no_interval": row.no_interval,
        "best_rank": row.rank_set.map(|set| set.best),
        "worst_rank": row.rank_set.map(|set| set.worst),
        "top": row.top,
        "matches_needed": row.matches_needed,
        "rating": row.rating,
        "rating_interval95": row.rating_margin,
    })
}

fn pair_json(pair: &PairStatistics) -> Value {
    json!({
        "bot": pair.bot,
        "other": pair.other,
        "difference": pair.difference,
        "interval95": pair.margin,
        "probability": pair.probability,
        "matches_needed": pair.matches_needed,
    })
}

fn print_csv(out: &mut Output, all: &GetStatisticsResponse) -> Result<(), Failure> {
    for line in heading(all) {
        eprint_line(&line);
    }
    // The keys of the JSON form, without the list of probabilities.
    let cells = |row: &Value| -> Vec<String> {
        let text = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let fields = row.as_object().into_iter().flatten();
        fields.filter(|(key, _)| *key != "top").map(|(_, value)| text(value)).collect()
    };
    let first_row = row_json(&BotStatistics::default());
    let keys = first_row.as_object().into_iter().flatten();
    let header: Vec<_> =
        keys.filter(|(key, _)| *key != "top").map(|(key, _)| key.clone()).collect();
    let tops = [1, 3];
    let top_header = tops.map(|top| format!("top_{top}"));
    out.csv(&header.into_iter().chain(top_header).collect::<Vec<_>>())?;
    all.statistics.iter().try_for_each(|row| {
        let top = tops.map(|top| row.top.get(top - 1).map(f64::to_string).unwrap_or_default());
        out.csv(&cells(&row_json(row)).into_iter().chain(top).collect::<Vec<_>>())
    })
}
