//! Reply times of bots: read from records on request, and cached.

use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::MatchId;
use arbiter_proto::trial::ReplyTimeSummary;
use arbiter_proto::v1::{GetReplyTimesRequest, GetReplyTimesResponse, ReplyTimeBin};
use arbiter_ranking::Entrant;

use super::{Caller, DefaultEdition, Result, Service, ServiceError};
use crate::db::editions::{Edition, EditionState};
use crate::db::{played_matches, records, tournaments};
use crate::reply_times::{ReplyTimes, ReplyTimesReader};

/// Maximum number of matches of a bot that are read, newest first.
const MAX_MATCHES: i64 = 40;
/// Maximum age of a cached result about a running edition.
const MAX_AGE: Duration = Duration::from_secs(30);

impl Service {
    /// The reply times of a bot.
    pub(crate) async fn get_reply_times(
        &self,
        caller: &Caller,
        GetReplyTimesRequest { leaderboard: board, bot }: GetReplyTimesRequest,
    ) -> Result<GetReplyTimesResponse> {
        let (edition, _) = self.edition_of(board, DefaultEdition::Official, caller).await?;
        self.require_results(&edition, caller).await?;
        let board = self.boards.get(&edition).await?;
        let entrant = self.entrant(caller, edition.tournament, &board.roster, &bot).await?;
        let is_running = matches!(edition.state, EditionState::Planning | EditionState::Running);
        let key = (edition.id, entrant);
        // A result that was cached before the end of the edition is incomplete.
        let since_end = edition.ended_at.map(|ended| (self.now() - ended).unsigned_abs());
        let cached = self.reply_times.get(&key, if is_running { Some(MAX_AGE) } else { since_end });
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
        let tournament = tournaments::of_edition(&self.pool, edition.id).await?;
        let scope = edition.scope();
        let matches = played_matches::last_of(&self.pool, scope, entrant, MAX_MATCHES).await?;
        let mut reader = ReplyTimesReader::default();
        for (number, seats) in matches {
            let id = MatchId { tournament: tournament.id, number };
            let seat = seats.0.iter().position(|seat_entrant| *seat_entrant == entrant);
            let row = records::find(&self.pool, id).await?;
            let (Some(seat), Some(row)) = (seat, row) else { continue };
            let record = self.fetch_record(&tournament, number, row).await?;
            let result;
            (reader, result) = tokio::task::spawn_blocking(move || {
                let result = reader.read(&record, seat);
                (reader, result)
            })
            .await
            .map_err(|_| ServiceError::stopping())?;
            if let Err(error) = result {
                tracing::warn!(%id, %error, "cannot read a record");
            }
            if reader.is_full() {
                break;
            }
        }
        Ok(reader.finish())
    }
}

fn message(edition: &Edition, times: &Arc<ReplyTimes>) -> GetReplyTimesResponse {
    let ReplyTimes { matches, replies, bins } = &**times;
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
