//! The newest matches of an edition, for pages that many people watch.

use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::v1::{ListMatchesRequest, MatchStatus};
use tokio_stream::StreamExt as _;

use super::refreshed_cache::RefreshedCache;
use super::{Caller, Result, Service};

/// Maximum age of a list.
pub(super) const MAX_AGE: Duration = Duration::from_secs(1);
/// The number of matches in a list.
const LENGTH: u32 = 8;
/// Maximum number of lists in memory.
pub(super) const MAX_LISTS: usize = 64;

/// Lists by tournament and edition, for organisers (true) and for others (false).
pub(super) type NewestMatches = RefreshedCache<(String, i32, bool), Vec<MatchStatus>>;

impl Service {
    /// The newest played matches of an edition, newest first. They may be a second old. Private
    /// details of forfeits are left out.
    pub(crate) async fn newest_matches(
        &self,
        caller: &Caller,
        tournament: &str,
        edition: i32,
    ) -> Result<Arc<Vec<MatchStatus>>> {
        let key = (tournament.to_owned(), edition, caller.is_organiser());
        let service = self.clone();
        let caller = caller.clone();
        let tournament = tournament.to_owned();
        let read =
            Box::pin(
                async move { service.read_newest_matches(&caller, &tournament, edition).await },
            );
        self.newest_matches.get(key, read).await
    }

    async fn read_newest_matches(
        &self,
        caller: &Caller,
        tournament: &str,
        edition: i32,
    ) -> Result<Vec<MatchStatus>> {
        let anonymous = Caller::Anonymous;
        let reader = if caller.is_organiser() { caller } else { &anonymous };
        let request = ListMatchesRequest {
            tournament: tournament.to_owned(),
            edition: Some(edition),
            newest_first: true,
            limit: LENGTH,
            ..ListMatchesRequest::default()
        };
        self.collect_matches(reader, request).await
    }

    /// The matches of a list with a limit.
    pub(crate) async fn collect_matches(
        &self,
        caller: &Caller,
        request: ListMatchesRequest,
    ) -> Result<Vec<MatchStatus>> {
        let mut stream = self.list_matches(caller, request).await?;
        let mut list = Vec::new();
        while let Some(status) = stream.next().await {
            list.push(status?);
        }
        Ok(list)
    }
}
