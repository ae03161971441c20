//! Prints a page of a leaderboard as a table, JSON or CSV.

use std::io::{self, IsTerminal as _};

use arbiter_games::Forfeit;
use arbiter_proto::edition_status::EditionStatus;
use arbiter_proto::v1::{EditionProgress, GetRankingResponse, Standing};
use arbiter_ranking::statistics::text;
use serde_json::{Value, json};

use super::Format;
use crate::failure::Failure;
use crate::output::eprint_line;
use crate::output::{self, Columns, Output, matches, merge, non_empty};

/// Prints a page that starts after `offset` standings; `estimate` says when the running edition
/// will be complete.
pub(super) fn page(
    out: &mut Output,
    page: &GetRankingResponse,
    estimate: Option<&str>,
    offset: u32,
    format: Format,
) -> Result<(), Failure> {
    match format {
        Format::Table => {
            out.line(&heading(page))?;
            provisional(page, estimate).map_or(Ok(()), |line| out.line(&line))?;
            out.table(&table(page.standings.iter(), &page.columns))?;
            extent(page, offset).map_or(Ok(()), |extent| out.line(&extent))
        }
        Format::Json => {
            page.standings.iter().try_for_each(|standing| out.json(&line_json(page, standing)))
        }
        Format::Csv => {
            eprint_line(&heading(page));
            out.csv(&csv_header(&page.columns))?;
            page.standings
                .iter()
                .try_for_each(|standing| out.csv(&csv_row(standing, page.columns.len())))
        }
    }
}

/// Clears a terminal: moves to the upper left and erases everything after it.
const CLEAR: &[u8] = b"\x1b[H\x1b[2J";

/// Prints a changed page: on a terminal in place of the previous one, otherwise after it.
pub(super) fn reprint(
    out: &mut Output,
    changed: &GetRankingResponse,
    offset: u32,
    format: Format,
) -> Result<(), Failure> {
    if format == Format::Table && io::stdout().is_terminal() {
        out.bytes(CLEAR)?;
    }
    page(out, changed, None, offset, format)?;
    out.flush()
}

/// The edition and how many of its matches are counted.
fn heading(page: &GetRankingResponse) -> String {
    let status = EditionStatus::of(page.official, &page.state, page.rehearsal);
    let edition = page.edition;
    let counted = page.counted;
    let planned = matches(page.matches);
    let frozen = non_empty(&page.freeze_notice).map(|text| format!("; {text}")).unwrap_or_default();
    let cancelled =
        non_empty(&page.cancel_notice).map(|text| format!("; {text}")).unwrap_or_default();
    format!("edition {edition}, {status}: {counted} of {planned} counted{frozen}{cancelled}")
}

/// The progress of the running edition, if it is another one.
fn provisional(page: &GetRankingResponse, estimate: Option<&str>) -> Option<String> {
    let EditionProgress { edition, matches: all, counted } = page.running?;
    let all = matches(all);
    let estimate = estimate.map(|estimate| format!(", {estimate}")).unwrap_or_default();
    // While leaderboards are frozen, the command would be refused.
    let is_frozen = !page.freeze_notice.is_empty();
    let hint =
        if is_frozen { String::new() } else { format!("; show it with --edition {edition}") };
    Some(format!("edition {edition} is running, {counted} of {all} counted{estimate}{hint}"))
}

/// The range of the shown places; `None` if all are shown.
fn extent(page: &GetRankingResponse, offset: u32) -> Option<String> {
    let count = u32::try_from(page.standings.len()).unwrap_or(u32::MAX);
    let last = offset.saturating_add(count);
    (count < page.bots).then(|| match count {
        0 => format!("no places after the first {offset} of {}", page.bots),
        1 => format!("place {last} of {}", page.bots),
        _ => format!("places {} to {last} of {}", offset + 1, page.bots),
    })
}

/// Standings as a table.
pub(super) fn table<'a>(
    standings: impl Iterator<Item = &'a Standing> + Clone,
    columns: &[String],
) -> Columns {
    let bad = standings.clone().any(|standing| standing.bad_answers > 0);
    // As on the page: some bots have an owner, or a house bot has no rank.
    let has_owners =
        standings.clone().any(|standing| !standing.owner.is_empty() || standing.rank == 0);
    let mut header: Vec<_> = ["#", "bot"].map(str::to_owned).into();
    header.extend(has_owners.then(|| "owner".to_owned()));
    header.extend(["version", "matches"].map(str::to_owned));
    header.extend_from_slice(columns);
    header.extend(["mean", "forfeits"].map(str::to_owned));
    header.extend(bad.then(|| "bad replies".to_owned()));
    let mut table = Columns::new(header, if has_owners { &[1, 2] } else { &[1] });
    for standing in standings {
        let mut row = vec![rank(standing), standing.bot.clone()];
        let owner = non_empty(&standing.owner).unwrap_or("house bot");
        row.extend(has_owners.then(|| owner.to_owned()));
        row.extend([standing.version.to_string(), standing.matches.to_string()]);
        row.extend(score(standing, columns.len()));
        row.push(text::mean(standing.mean, None));
        row.push(output::forfeits(&standing.forfeits));
        row.extend(bad.then(|| standing.bad_answers.to_string()));
        table.push(row);
    }
    table
}

/// The rank of a standing.
pub(super) fn rank(standing: &Standing) -> String {
    output::rank(standing.rank, standing.tied)
}

/// One number per column; 0 for a bot that has not played.
fn score(standing: &Standing, columns: usize) -> impl Iterator<Item = String> {
    (0..columns).map(|column| standing.score.get(column).map_or("0", String::as_str).to_owned())
}

/// A standing as JSON.
pub(crate) fn standing_json(standing: &Standing) -> Value {
    let number = |digits: &String| digits.parse::<i64>().map_or_else(|_| json!(digits), Into::into);
    json!({
        "rank": output::known_rank(standing.rank),
        "tied": standing.tied,
        "bot": standing.bot,
        "house": standing.owner.is_empty(),
        "version": standing.version,
        "matches": standing.matches,
        "score": standing.score.iter().map(number).collect::<Vec<_>>(),
        "mean": standing.mean,
        "forfeits": output::forfeits_json(&standing.forfeits),
        "bad_answers": standing.bad_answers,
    })
}

/// A standing as a JSON line, with the properties of its leaderboard.
fn line_json(page: &GetRankingResponse, standing: &Standing) -> Value {
    let page = json!({
        "edition": page.edition,
        "official": page.official,
        "counted": page.counted,
        "planned": page.matches,
        "columns": page.columns,
        "owner": non_empty(&standing.owner),
    });
    merge(page, standing_json(standing))
}

fn csv_header(columns: &[String]) -> Vec<String> {
    let mut header: Vec<_> =
        ["rank", "tied", "bot", "version", "matches"].map(str::to_owned).into();
    header.extend_from_slice(columns);
    header.push("mean".to_owned());
    header.extend(Forfeit::ALL.map(|kind| kind.as_str().to_owned()));
    header.extend(["bad_answers", "owner"].map(str::to_owned));
    header
}

fn csv_row(standing: &Standing, columns: usize) -> Vec<String> {
    let mut row = vec![
        output::known_rank(standing.rank).map(|rank| rank.to_string()).unwrap_or_default(),
        standing.tied.to_string(),
        standing.bot.clone(),
        standing.version.to_string(),
        standing.matches.to_string(),
    ];
    row.extend(score(standing, columns));
    row.push(standing.mean.to_string());
    let forfeits = (0..Forfeit::ALL.len()).map(|kind| standing.forfeits.get(kind).unwrap_or(&0));
    row.extend(forfeits.map(i64::to_string));
    row.extend([standing.bad_answers.to_string(), standing.owner.clone()]);
    row
}
