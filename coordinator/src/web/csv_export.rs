//! CSV export of leaderboards and matches, for spreadsheets and scripts.
//!
//! Files are streamed in chunks, so a million matches are never in memory together.
//! Spreadsheets treat text that begins with `=`, `+`, `-` or `@` as a formula. Names of bots and
//! tournaments can begin with a dash, so such text gets an apostrophe in front, which spreadsheets
//! hide.

pub(super) mod columns;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use arbiter_games::Forfeit;
use arbiter_proto::ids::MatchName;
use arbiter_proto::state_words::state_of;
use arbiter_proto::v1::{
    self, BotStatistics, LeaderboardRef, ListMatchesRequest, MatchStatus, RankSet, Standing,
};
use arbiter_ranking::statistics::MAX_TOP;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query};
use axum::response::Response;
use csv::WriterBuilder;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};

use super::error::WebError;
use super::session::Session;
use super::{api, download, layout};
use crate::leaderboard_cache::Leaderboard;
use crate::service::{ServiceError, place};

const CONTENT_TYPE: &str = "text/csv; charset=utf-8; header=present";
/// Leaderboard rows a chunk.
const ROWS_PER_CHUNK: usize = 500;
/// A chunk is sent when it reaches this size, in bytes.
const CHUNK_BYTES: usize = 32 << 10;
/// Maximum number of chunks waiting to be sent.
const MAX_QUEUED_CHUNKS: usize = 2;

/// The query string of an export of a leaderboard or of statistics.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct EditionQuery {
    /// The edition's number. Default: the official edition.
    edition: Option<i32>,
}

/// The query string of an export of matches. Unknown parameters are refused, because a file with
/// all matches looks like one with those of a filter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MatchesExportQuery {
    /// The edition's number. Default: the official edition.
    edition: Option<i32>,
    /// Only matches of this bot.
    bot: String,
    /// Only matches of `bot` against this bot.
    opponent: String,
    /// Only matches that `bot` forfeited; without `bot`, those that any bot forfeited.
    forfeit: bool,
    /// Only matches of this version of `bot`; 0 stands for any version.
    version: i32,
}

/// A whole leaderboard in its current state.
pub(super) async fn ranking(
    session: Session,
    Path(tournament): Path<String>,
    Query(query): Query<EditionQuery>,
) -> Result<Response, WebError> {
    let request = LeaderboardRef { tournament: tournament.clone(), edition: query.edition };
    let (edition, board) = session.service.leaderboard(&session.caller, request).await?;
    let chunks = tokio_stream::iter(ranking_chunks(board).map(Ok::<_, ServiceError>));
    let name = format!("{tournament}-{}-ranking.csv", edition.number);
    Ok(download::file(&name, CONTENT_TYPE, Body::from_stream(chunks)))
}

/// A leaderboard as CSV, in chunks.
pub(super) fn ranking_chunks(board: Arc<Leaderboard>) -> impl Iterator<Item = Bytes> + Send {
    let components: Vec<_> = board.game.ranking_columns().into_iter().map(str::to_owned).collect();
    let header = ranking_text(&components, &[], true);
    let count = board.places.len();
    let rows = (0..count).step_by(ROWS_PER_CHUNK).map(move |first| {
        let places = board.places[first..].iter().take(ROWS_PER_CHUNK);
        let standings: Vec<_> = places.map(|row| place(&board, row)).collect();
        ranking_text(&components, &standings, false)
    });
    std::iter::once(header).chain(rows)
}

/// Standings as CSV, with or without the header. `components` are the names of those of scores.
pub fn ranking_text(components: &[String], standings: &[Standing], has_header: bool) -> Bytes {
    csv_text(|table| {
        if has_header {
            table.push(columns::names(&columns::ranking(components)));
        }
        for row in standings {
            table.push(place_row(row, components.len()));
        }
    })
}

/// The statistics of an edition, a row for each bot, all from one computation.
pub(super) async fn statistics(
    session: Session,
    Path(tournament): Path<String>,
    Query(EditionQuery { edition }): Query<EditionQuery>,
) -> Result<Response, WebError> {
    let request = LeaderboardRef { tournament: tournament.clone(), edition };
    let all = session.service.all_statistics(&session.caller, request).await?;
    let name = format!("{tournament}-{}-statistics.csv", all.edition);
    Ok(download::file(&name, CONTENT_TYPE, Body::from(statistics_text(&all.statistics))))
}

/// Statistics as CSV.
pub fn statistics_text(statistics: &[BotStatistics]) -> Bytes {
    csv_text(|table| {
        table.push(columns::names(&columns::statistics()));
        for row in statistics {
            table.push(statistics_row(row));
        }
    })
}

/// Bots as CSV.
pub fn bots_text(bots: &[v1::Bot]) -> Bytes {
    csv_text(|table| {
        table.push(columns::names(&columns::bots()));
        for bot in bots {
            table.push(bot_row(bot));
        }
    })
}

/// All played matches of an edition, a row for each seat.
pub(super) async fn matches(
    session: Session,
    Path(tournament): Path<String>,
    Query(query): Query<MatchesExportQuery>,
) -> Result<Response, WebError> {
    let mut request = ListMatchesRequest {
        tournament: tournament.clone(),
        edition: query.edition,
        bot: query.bot,
        opponent: query.opponent,
        forfeits_only: query.forfeit,
        version: query.version,
        ..ListMatchesRequest::default()
    };
    let number = session.service.listed_edition(&session.caller, &request).await?.number;
    request.edition = Some(number);
    let chunks = match_chunks(&session, request).await?;
    let name = format!("{tournament}-{number}-matches.csv");
    Ok(download::file(&name, CONTENT_TYPE, Body::from_stream(chunks)))
}

/// The matches of a request as CSV, in chunks that are written as fast as they are read. The
/// request names its edition.
pub(super) async fn match_chunks(
    session: &Session,
    request: ListMatchesRequest,
) -> Result<ReceiverStream<Result<Bytes, ServiceError>>, ServiceError> {
    let board = LeaderboardRef { tournament: request.tournament.clone(), edition: request.edition };
    let (_, board) = session.service.leaderboard(&session.caller, board).await?;
    let table = MatchTable::new(&board.game.ranking_columns(), !request.forfeits_only);
    let request = ListMatchesRequest { rounds: true, ..request };
    let matches = session.service.list_matches(&session.caller, request).await?;
    let (sender, chunks) = mpsc::channel(MAX_QUEUED_CHUNKS);
    tokio::spawn(write_matches(matches, table, sender));
    Ok(ReceiverStream::new(chunks))
}

/// Writes matches in chunks, as fast as the client reads them.
async fn write_matches(
    mut matches: impl Stream<Item = Result<MatchStatus, ServiceError>> + Unpin,
    mut table: MatchTable,
    sender: mpsc::Sender<Result<Bytes, ServiceError>>,
) {
    while let Some(result) = matches.next().await {
        match result {
            Ok(status) => table.push(&status),
            // An error aborts the download, so that the client sees that the file is incomplete.
            Err(error) => return drop(sender.send(Err(error)).await),
        }
        if table.len() >= CHUNK_BYTES && sender.send(Ok(table.take())).await.is_err() {
            return;
        }
    }
    // Sending fails if the client has disconnected.
    drop(sender.send(Ok(table.take())).await);
}

/// Matches as CSV, a row for each seat.
#[derive(Debug)]
pub struct MatchTable {
    rows: CsvBuffer,
    /// The number of components of a score.
    components: usize,
    /// Empty if some matches of the bots are left out.
    legs: Option<Legs>,
}

impl MatchTable {
    /// A table with a header. `components` are the names of those of scores. `is_whole` says that
    /// no match of the listed bots is left out, so that legs can be counted.
    pub fn new(components: &[impl AsRef<str>], is_whole: bool) -> Self {
        let mut rows = CsvBuffer::new();
        rows.push(columns::names(&columns::matches(components)));
        Self { rows, components: components.len(), legs: is_whole.then(Legs::default) }
    }

    /// Adds a match.
    pub fn push(&mut self, status: &MatchStatus) {
        let leg = self.legs.as_mut().map(|legs| legs.of(status));
        match_rows(&mut self.rows, status, leg, self.components);
    }

    /// The length in bytes, without the last few that are still buffered.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the text so far.
    pub fn take(&mut self) -> Bytes {
        self.rows.take()
    }
}

fn bot_row(bot: &v1::Bot) -> Vec<String> {
    let newest = bot.newest.as_ref();
    let submitted_at = newest.and_then(|version| api::rfc3339_from_micros(version.submitted_at_us));
    vec![
        escape_formula(&bot.name),
        escape_formula(&bot.owner),
        optional(newest.map(|version| version.number)),
        newest.map(|version| layout::hex(&version.digest)).unwrap_or_default(),
        submitted_at.unwrap_or_default(),
        bot.withdrawn.to_string(),
        bot.suspended.to_string(),
    ]
}

fn place_row(place: &Standing, columns: usize) -> Vec<String> {
    let mut row = vec![
        rank(place.rank),
        place.tied.to_string(),
        escape_formula(&place.bot),
        place.version.to_string(),
        place.matches.to_string(),
    ];
    let part = |column: usize| place.score.get(column).map_or("0", String::as_str).to_owned();
    row.extend((0..columns).map(part));
    row.push(place.mean.to_string());
    let forfeits = (0..Forfeit::ALL.len()).map(|kind| place.forfeits.get(kind).unwrap_or(&0));
    row.extend(forfeits.map(i64::to_string));
    row.extend([place.bad_answers.to_string(), escape_formula(&place.owner)]);
    row
}

/// A rank; nothing for a house bot without a rank.
fn rank(rank: u32) -> String {
    optional((rank > 0).then_some(rank))
}

/// The best and the worst possible rank.
fn rank_set(set: Option<RankSet>) -> [String; 2] {
    set.map_or_else(Default::default, |RankSet { best, worst }| {
        [best, worst].map(|rank| rank.to_string())
    })
}

/// A number, or nothing.
fn optional<T: ToString>(number: Option<T>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

fn statistics_row(row: &BotStatistics) -> Vec<String> {
    let mut cells = vec![
        rank(row.rank),
        row.tied.to_string(),
        escape_formula(&row.bot),
        row.version.to_string(),
        row.matches.to_string(),
        row.distinct_matches.to_string(),
        row.mean.to_string(),
        optional(row.margin),
        row.no_interval.clone(),
    ];
    cells.extend(rank_set(row.rank_set));
    cells.extend((0..MAX_TOP).map(|top| optional(row.top.get(top))));
    cells.extend([optional(row.matches_needed), optional(row.rating), optional(row.rating_margin)]);
    cells
}

/// Counts the legs: how often the bots of a match have met before on its board.
#[derive(Debug, Default)]
struct Legs(HashMap<u64, u32>);

impl Legs {
    fn of(&mut self, status: &MatchStatus) -> u32 {
        let mut bots: Vec<_> = status.seats.iter().map(|seat| &seat.bot[..]).collect();
        bots.sort_unstable();
        // A hash, because a large edition has millions of tables.
        let mut hasher = DefaultHasher::new();
        (status.board, bots).hash(&mut hasher);
        let met = self.0.entry(hasher.finish()).or_default();
        *met += 1;
        *met - 1
    }
}

fn match_rows(table: &mut CsvBuffer, status: &MatchStatus, leg: Option<u32>, columns: usize) {
    for (number, seat) in (1_usize..).zip(&status.seats) {
        let mut row = vec![
            escape_formula(&status.r#match),
            optional(status.block),
            optional(leg),
            optional(status.board),
            number.to_string(),
            escape_formula(&seat.bot),
            seat.version.to_string(),
            escape_formula(&seat.owner),
        ];
        let part = |column: usize| seat.score.get(column).unwrap_or(&0).to_string();
        row.extend((0..columns).map(part));
        row.extend([
            seat.forfeit.clone(),
            seat.bad_answers.to_string(),
            status.wall_ms.to_string(),
            status.level.clone(),
            layout::hex(&status.transcript),
            match_number(&status.r#match),
            status.edition.to_string(),
            optional(status.stage),
            optional(status.round),
            status.params.clone(),
            layout::hex(&seat.digest),
            status.reported_us.and_then(api::rfc3339_from_micros).unwrap_or_default(),
            state_of(status).to_owned(),
        ]);
        table.push(row);
    }
}

/// The number in the name of a match.
fn match_number(name: &str) -> String {
    name.parse::<MatchName>().map(|name| name.number.to_string()).unwrap_or_default()
}

/// Escapes text that a spreadsheet would treat as a formula.
pub(super) fn escape_formula(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if is_formula { format!("'{text}") } else { text.to_owned() }
}

/// CSV rows in memory.
#[derive(Debug)]
pub(super) struct CsvBuffer(csv::Writer<Vec<u8>>);

impl CsvBuffer {
    fn new() -> Self {
        Self(WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new()))
    }

    /// Adds a row.
    pub(super) fn push<C: AsRef<[u8]>>(&mut self, row: impl IntoIterator<Item = C>) {
        self.0.write_record(row).expect("writing to memory, with rows of one length");
    }

    /// The length in bytes, without the last few that the writer still buffers.
    fn len(&self) -> usize {
        self.0.get_ref().len()
    }

    /// Takes all rows and leaves the buffer empty.
    fn take(&mut self) -> Bytes {
        let full = std::mem::replace(self, Self::new());
        full.0.into_inner().expect("writing to memory").into()
    }
}

/// Rows as CSV text.
pub(super) fn csv_text(fill: impl FnOnce(&mut CsvBuffer)) -> Bytes {
    let mut table = CsvBuffer::new();
    fill(&mut table);
    table.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_so_that_they_are_not_formulas() {
        for (name, escaped) in [("ada", "ada"), ("-1+2", "'-1+2"), ("=x", "'=x"), ("@x", "'@x")] {
            assert_eq!(escape_formula(name), escaped);
        }
        let rows = csv_text(|table| {
            table.push(["a", "b"]);
            table.push(["1,5", "say \"so\""]);
        });
        assert_eq!(&rows[..], b"a,b\r\n\"1,5\",\"say \"\"so\"\"\"\r\n");
    }

    #[test]
    fn a_match_with_a_result_that_is_not_counted_is_played() {
        let seats = vec![v1::MatchSeat::default()];
        let played = MatchStatus { state: "reported".to_owned(), seats, ..MatchStatus::default() };
        let mut table = MatchTable::new(&["points"], true);
        table.push(&played);
        table.push(&MatchStatus { counted: true, ..played });
        let text = String::from_utf8(table.take().to_vec()).unwrap();
        let states: Vec<_> = text.lines().filter_map(|row| row.rsplit(',').next()).collect();
        assert_eq!(states, ["state", "played", "counted"]);
    }
}
