//! Prints a page of a leaderboard as a table, JSON or CSV.

use std::io::{self, IsTerminal as _};

use arbiter_games::Forfeit;
use arbiter_proto::v1::{EditionProgress, GetRankingResponse, Standing};
use serde_json::{Value, json};

use super::Format;
use crate::failure::Failure;
use crate::output::eprint_line;
use crate::output::{self, Columns, Output, matches, merged};

/// Prints a page that starts after `offset` places; `done` says when the running edition will be
/// complete.
pub(super) fn page(
    out: &mut Output,
    page: &GetRankingResponse,
    done: Option<&str>,
    offset: u32,
    format: Format,
) -> Result<(), Failure> {
    match format {
        Format::Table => {
            out.line(&heading(page))?;
            provisional(page, done).map_or(Ok(()), |line| out.line(&line))?;
            out.table(&table(page.standings.iter(), &page.columns))?;
            extent(page, offset).map_or(Ok(()), |extent| out.line(&extent))
        }
        Format::Json => {
            page.standings.iter().try_for_each(|place| out.json(&line_json(page, place)))
        }
        Format::Csv => {
            eprint_line(&heading(page));
            out.csv(&csv_header(&page.columns))?;
            page.standings.iter().try_for_each(|place| out.csv(&csv_row(place, page.columns.len())))
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
    let official = if page.official { "official" } else { "not official" };
    let edition = page.edition;
    let counted = page.counted;
    format!("edition {edition}, {official}: {counted} of {} counted", matches(page.matches))
}

/// The progress of the running edition, if it is another one.
fn provisional(page: &GetRankingResponse, done: Option<&str>) -> Option<String> {
    let EditionProgress { edition, matches: all, counted } = page.running?;
    let all = matches(all);
    let done = done.map(|done| format!(", {done}")).unwrap_or_default();
    Some(format!(
        "edition {edition} is running, {counted} of {all} counted{done}; show it with --edition \
         {edition}"
    ))
}

/// Which places are shown, unless all are.
fn extent(page: &GetRankingResponse, offset: u32) -> Option<String> {
    let shown = u32::try_from(page.standings.len()).unwrap_or(u32::MAX);
    let last = offset.saturating_add(shown);
    (shown < page.bots).then(|| match shown {
        0 => format!("no places after the first {offset} of {}", page.bots),
        1 => format!("place {last} of {}", page.bots),
        _ => format!("places {} to {last} of {}", offset + 1, page.bots),
    })
}

/// Places as a table.
pub(super) fn table<'a>(
    places: impl Iterator<Item = &'a Standing> + Clone,
    columns: &[String],
) -> Columns {
    let bad = places.clone().any(|place| place.bad_answers > 0);
    let mut header: Vec<_> = ["#", "bot", "version", "matches"].map(str::to_owned).into();
    header.extend_from_slice(columns);
    header.extend(["mean ± 95 %", "forfeits"].map(str::to_owned));
    header.extend(bad.then(|| "bad answers".to_owned()));
    let mut table = Columns::new(header, &[1]);
    for place in places {
        let mut row = vec![
            rank(place),
            place.bot.clone(),
            place.version.to_string(),
            place.matches.to_string(),
        ];
        row.extend(score(place, columns.len()));
        row.push(output::mean(place.mean, place.margin));
        row.push(output::forfeits(&place.forfeits));
        row.extend(bad.then(|| place.bad_answers.to_string()));
        table.push(row);
    }
    table
}

/// The rank; a shared one starts with `=`.
pub(super) fn rank(place: &Standing) -> String {
    let shared = if place.tied { "=" } else { "" };
    format!("{shared}{}", place.rank)
}

/// One number per column; 0 for a bot that has not played.
fn score(place: &Standing, columns: usize) -> impl Iterator<Item = String> {
    (0..columns).map(|column| place.score.get(column).map_or("0", String::as_str).to_owned())
}

/// A place as JSON.
pub(crate) fn place_json(place: &Standing) -> Value {
    let number = |digits: &String| digits.parse::<i64>().map_or_else(|_| json!(digits), Into::into);
    json!({
        "rank": place.rank,
        "tied": place.tied,
        "bot": place.bot,
        "version": place.version,
        "matches": place.matches,
        "score": place.score.iter().map(number).collect::<Vec<_>>(),
        "mean": place.mean,
        "interval95": place.margin,
        "forfeits": output::forfeits_json(&place.forfeits),
        "bad_answers": place.bad_answers,
    })
}

/// A place as a self-contained JSON line.
fn line_json(page: &GetRankingResponse, place: &Standing) -> Value {
    let page = json!({
        "edition": page.edition,
        "official": page.official,
        "counted": page.counted,
        "planned": page.matches,
        "columns": page.columns,
    });
    merged(page, place_json(place))
}

fn csv_header(columns: &[String]) -> Vec<String> {
    let mut header: Vec<_> =
        ["rank", "tied", "bot", "version", "matches"].map(str::to_owned).into();
    header.extend_from_slice(columns);
    header.extend(["mean", "interval95"].map(str::to_owned));
    header.extend(Forfeit::ALL.map(|kind| kind.as_str().to_owned()));
    header.push("bad_answers".to_owned());
    header
}

fn csv_row(place: &Standing, columns: usize) -> Vec<String> {
    let mut row = vec![
        place.rank.to_string(),
        place.tied.to_string(),
        place.bot.clone(),
        place.version.to_string(),
        place.matches.to_string(),
    ];
    row.extend(score(place, columns));
    row.push(place.mean.to_string());
    row.push(place.margin.map(|margin| margin.to_string()).unwrap_or_default());
    let forfeits = (0..Forfeit::ALL.len()).map(|kind| place.forfeits.get(kind).unwrap_or(&0));
    row.extend(forfeits.map(i64::to_string));
    row.push(place.bad_answers.to_string());
    row
}
