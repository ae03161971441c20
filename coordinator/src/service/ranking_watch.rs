//! Streams of a leaderboard page.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arbiter_proto::v1::{GetRankingRequest, GetRankingResponse};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use super::watches::{Watched, Watches};
use super::{Caller, ResponseStream, Result, Service, ServiceError};

/// One state of a leaderboard page, shared by all its subscribers.
#[derive(Debug)]
pub(crate) struct PageSnapshot {
    pub(crate) page: GetRankingResponse,
    /// Unique in this process.
    pub(crate) id: u64,
}

impl PageSnapshot {
    fn new(page: GetRankingResponse) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self { page, id: NEXT.fetch_add(1, Ordering::Relaxed) })
    }
}

impl Watched for Arc<PageSnapshot> {
    fn is_same(&self, other: &Self) -> bool {
        self.page == other.page
    }

    fn is_last(&self) -> bool {
        false
    }
}

/// The pages that have subscribers, and whether the subscribers are organisers, who may see more
/// than others.
pub(super) type RankingWatches = Watches<(GetRankingRequest, bool), Arc<PageSnapshot>>;

impl Service {
    /// Streams a leaderboard page: its present state, then every change.
    pub(crate) async fn watch_ranking(
        &self,
        caller: &Caller,
        request: GetRankingRequest,
    ) -> Result<ResponseStream<GetRankingResponse>> {
        let pages = self.watch_page(caller, request).await?;
        Ok(Box::pin(pages.map(|snapshot| Ok(snapshot?.page.clone()))))
    }

    /// Streams a leaderboard page as [`PageSnapshot`]s, which all its subscribers share.
    pub(crate) async fn watch_page(
        &self,
        caller: &Caller,
        request: GetRankingRequest,
    ) -> Result<ReceiverStream<Result<Arc<PageSnapshot>, ServiceError>>> {
        let key = (request.clone(), caller.is_organiser());
        let service = self.clone();
        let caller = caller.clone();
        let read = move || {
            let service = service.clone();
            let caller = caller.clone();
            let request = request.clone();
            async move { service.get_ranking(&caller, request).await.map(PageSnapshot::new) }
        };
        self.ranking_watches.subscribe(&self.changes, key, read).await
    }
}
