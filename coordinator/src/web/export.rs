//! Leaderboards and matches as comma-separated values, for spreadsheets and scripts.
//!
//! They are written as they are read, a piece at a time: a million matches are never in memory.
//! A spreadsheet takes what begins with `=`, `+`, `-` or `@` for a formula. Names may begin with a
//! dash, so such a text is written with an apostrophe before it, which spreadsheets do not show.

use arbiter_games::{Forfeit, Game};
use arbiter_proto::v1::{LeaderboardRef, ListMatchesRequest, MatchStatus, Standing};
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use csv::WriterBuilder;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};

use super::error::WebError;
use super::page;
use super::session::Session;
use crate::service::{ServiceError, place};

/// The type of the text.
const KIND: &str = "text/csv; charset=utf-8; header=present";
/// Places that are written at a time.
const PLACES: usize = 500;
/// A piece of a file is sent when it is as long as this, in bytes.
const PIECE: usize = 32 << 10;
/// Pieces that may wait to be sent.
const AHEAD: usize = 2;

/// What is exported.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Look {
    /// The edition's number; that of the official leaderboard if it is not given.
    edition: Option<i32>,
    /// Only matches of this bot.
    bot: String,
}

/// A whole leaderboard, as it is at this moment.
pub(super) async fn ranking(
    session: Session,
    Path(tournament): Path<String>,
    Query(look): Query<Look>,
) -> Result<Response, WebError> {
    let asked = LeaderboardRef { tournament: tournament.clone(), edition: look.edition };
    let (edition, board) = session.service.leaderboard(&session.caller, asked).await?;
    let columns = board.game.ranking_columns();
    let mut header = vec!["rank", "tied", "bot", "version", "matches"];
    header.extend(&columns);
    header.extend(["mean", "interval95"]);
    header.extend(Forfeit::ALL.map(Forfeit::as_str));
    header.push("bad_answers");
    let begun = table(|table| table.push(header));
    let (count, columns) = (board.places.len(), columns.len());
    let rest = (0..count).step_by(PLACES).map(move |first| {
        table(|table| {
            let places = board.places[first..].iter().take(PLACES);
            places.for_each(|found| table.push(place_row(&place(&board, found), columns)));
        })
    });
    let pieces = tokio_stream::iter(std::iter::once(begun).chain(rest).map(Ok::<_, ServiceError>));
    let name = format!("{tournament}-{}-ranking.csv", edition.number);
    Ok(file(&name, Body::from_stream(pieces)))
}

/// All matches of an edition that were played, a row for each seat.
pub(super) async fn matches(
    session: Session,
    Path(tournament): Path<String>,
    Query(Look { edition, bot }): Query<Look>,
) -> Result<Response, WebError> {
    let asked = LeaderboardRef { tournament: tournament.clone(), edition };
    let (found, board) = session.service.leaderboard(&session.caller, asked).await?;
    let edition = Some(found.number);
    let asked =
        ListMatchesRequest { tournament: tournament.clone(), edition, bot, after: None, limit: 0 };
    let answers = session.service.list_matches(&session.caller, asked).await?;
    let (pieces, sent) = mpsc::channel(AHEAD);
    let game = board.game.clone();
    tokio::spawn(write(answers, game, pieces));
    let name = format!("{tournament}-{}-matches.csv", found.number);
    Ok(file(&name, Body::from_stream(ReceiverStream::new(sent))))
}

/// Writes matches as fast as they are read.
async fn write(
    mut answers: impl Stream<Item = Result<MatchStatus, ServiceError>> + Unpin,
    game: Game,
    pieces: mpsc::Sender<Result<Bytes, ServiceError>>,
) {
    let columns = game.ranking_columns();
    let mut header = vec!["match", "seat", "bot", "version"];
    header.extend(&columns);
    header.extend(["forfeit", "bad_answers", "wall_ms", "level", "transcript", "taken_from"]);
    let mut table = Table::new();
    table.push(header);
    while let Some(answer) = answers.next().await {
        match answer {
            Ok(found) => match_rows(&mut table, &found, columns.len()),
            // The file breaks off, so that nobody takes it for whole.
            Err(status) => return drop(pieces.send(Err(status)).await),
        }
        if table.written() >= PIECE && pieces.send(Ok(table.take())).await.is_err() {
            return;
        }
    }
    // Whoever has left needs no end.
    drop(pieces.send(Ok(table.take())).await);
}

/// A file to be kept.
fn file(name: &str, body: Body) -> Response {
    let kept = format!("attachment; filename=\"{name}\"");
    ([(header::CONTENT_TYPE, KIND.to_owned()), (header::CONTENT_DISPOSITION, kept)], body)
        .into_response()
}

fn place_row(place: &Standing, columns: usize) -> Vec<String> {
    let mut row = vec![
        place.rank.to_string(),
        place.tied.to_string(),
        text(&place.bot),
        place.version.to_string(),
        place.matches.to_string(),
    ];
    let part = |column: usize| place.score.get(column).map_or("0", String::as_str).to_owned();
    row.extend((0..columns).map(part));
    row.push(place.mean.to_string());
    row.push(place.margin.map(|margin| margin.to_string()).unwrap_or_default());
    let forfeits = (0..Forfeit::ALL.len()).map(|kind| place.forfeits.get(kind).unwrap_or(&0));
    row.extend(forfeits.map(i64::to_string));
    row.push(place.bad_answers.to_string());
    row
}

fn match_rows(table: &mut Table, found: &MatchStatus, columns: usize) {
    for (number, seat) in (1_usize..).zip(&found.seats) {
        let mut row = vec![
            found.r#match.clone(),
            number.to_string(),
            text(&seat.bot),
            seat.version.to_string(),
        ];
        let part = |column: usize| seat.score.get(column).unwrap_or(&0).to_string();
        row.extend((0..columns).map(part));
        row.extend([
            seat.forfeit.clone(),
            seat.bad_answers.to_string(),
            found.wall_ms.to_string(),
            found.level.clone(),
            page::hex(&found.transcript),
            found.reused_from.clone(),
        ]);
        table.push(row);
    }
}

/// A text that no spreadsheet takes for a formula.
fn text(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if formula { format!("'{text}") } else { text.to_owned() }
}

/// Rows on their way.
#[derive(Debug)]
struct Table(csv::Writer<Vec<u8>>);

impl Table {
    fn new() -> Self {
        Self(WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new()))
    }

    /// Adds a row.
    fn push<C: AsRef<[u8]>>(&mut self, row: impl IntoIterator<Item = C>) {
        self.0.write_record(row).expect("memory takes every row, and all have the same length");
    }

    /// How many bytes have come together, but for the last few.
    fn written(&self) -> usize {
        self.0.get_ref().len()
    }

    /// What has come together.
    fn take(&mut self) -> Bytes {
        let former = std::mem::replace(self, Self::new());
        former.0.into_inner().expect("memory takes every byte").into()
    }
}

/// Rows as text.
fn table(fill: impl FnOnce(&mut Table)) -> Bytes {
    let mut table = Table::new();
    fill(&mut table);
    table.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_formulas() {
        for (name, written) in [("ada", "ada"), ("-1+2", "'-1+2"), ("=x", "'=x"), ("@x", "'@x")] {
            assert_eq!(text(name), written);
        }
        let rows = table(|table| {
            table.push(["a", "b"]);
            table.push(["1,5", "say \"so\""]);
        });
        assert_eq!(&rows[..], b"a,b\r\n\"1,5\",\"say \"\"so\"\"\"\r\n");
    }
}
