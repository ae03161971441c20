//! Reply times of bots: read from records on request, and cached.

use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::MatchId;
use arbiter_proto::trial::ReplyTimeSummary;
use arbiter_proto::v1::{GetReplyTimesRequest, GetReplyTimesResponse, ReplyTimeBin};
use arbiter_ranking::Entrant;

use super::{Caller, Result, Service, ServiceError, Which};
use crate::db::editions::{Edition, EditionState};
use crate::db::{played_matches, records};
use crate::reply_times::{ReplyTimes, ReplyTimesReader};

/// Matches of a bot that are read, the newest first.
const MAX_MATCHES: i64 = 40;
/// The age up to which a cached result about a running edition is used.
const MAX_AGE: Duration = Duration::from_secs(30);

impl Service {
    /// How long a bot takes to reply.
    pub(crate) async fn get_reply_times(
        &self,
        caller: &Caller,
        GetReplyTimesRequest { leaderboard: board, bot }: GetReplyTimesRequest,
    ) -> Result<GetReplyTimesResponse> {
        let (edition, _) = self.edition_of(board, Which::Official, caller).await?;
        let board = self.boards.get(&edition).await?;
        let entrant = board.roster.find(&bot).ok_or_else(|| ServiceError::missing("bot", &bot))?;
        let runs = matches!(edition.state, EditionState::Planning | EditionState::Running);
        let key = (edition.id, entrant);
        // A result from before the end of the edition is incomplete.
        let since_end = edition.ended_at.map(|ended| (self.now() - ended).unsigned_abs());
        let cached = self.reply_times.get(key, if runs { Some(MAX_AGE) } else { since_end });
        let times = if let Some(times) = cached {
            times
        } else {
            let _permit = self.permit(caller).await?;
            self.reply_times.insert(key, self.read_times(&edition, entrant).await?)
        };
        Ok(message(&edition, &times))
    }

    /// Reads the records of the last matches of an entrant.
    async fn read_times(&self, edition: &Edition, entrant: Entrant) -> Result<ReplyTimes> {
        let last = played_matches::last_of(&self.pool, edition.id, entrant, MAX_MATCHES).await;
        let mut reading = ReplyTimesReader::default();
        for (number, seats) in last? {
            let id = MatchId { edition: edition.id, number };
            let seat = seats.0.iter().position(|sitting| *sitting == entrant);
            let record = records::find(&self.pool, id).await?;
            let (Some(seat), Some(record)) = (seat, record) else { continue };
            let record = self.fetch_record(id, record).await?;
            let result;
            (reading, result) = tokio::task::spawn_blocking(move || {
                let result = reading.read(&record, seat);
                (reading, result)
            })
            .await
            .map_err(|_| ServiceError::stopping())?;
            if let Err(error) = result {
                tracing::warn!(%id, %error, "cannot read a record");
            }
            if reading.is_full() {
                break;
            }
        }
        Ok(reading.finish())
    }
}

fn message(edition: &Edition, found: &Arc<ReplyTimes>) -> GetReplyTimesResponse {
    let ReplyTimes { matches, replies, bins } = &**found;
    let ReplyTimeSummary { count, p50_us, p90_us, p99_us, max_us } = replies.unwrap_or_default();
    let bin = |(up_to_us, count): &(u64, u64)| ReplyTimeBin { up_to_us: *up_to_us, count: *count };
    GetReplyTimesResponse {
        edition: edition.number,
        matches: *matches,
        replies: count as u64,
        p50_us,
        p90_us,
        p99_us,
        max_us,
        bins: bins.iter().map(bin).collect(),
    }
}
