//! Streams of a leaderboard page. Each page is computed once for all its subscribers, so that
//! thousands of subscribers cost about as much as one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arbiter_proto::v1::{GetRankingRequest, GetRankingResponse};
use tokio::sync::{mpsc, watch};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

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

/// The newest state of a page, or why it cannot be read. None until its first change.
type PageState = Option<Result<Arc<PageSnapshot>>>;

/// A page, and whether the subscribers are organisers, who may see more than others.
type PageKey = (GetRankingRequest, bool);

/// The pages that have subscribers.
#[derive(Clone, Debug, Default)]
pub(super) struct RankingWatches(Arc<Mutex<HashMap<PageKey, watch::Sender<PageState>>>>);

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
        let states = self.ranking_watches.subscribe(self, &request, caller);
        let page = self.get_ranking(caller, request.clone()).await?;
        let first = self.ranking_watches.share_first(&(request, caller.is_organiser()), page);
        let (sender, pages) = mpsc::channel(1);
        tokio::spawn(forward_changes(first, states, sender));
        Ok(ReceiverStream::new(pages))
    }
}

impl RankingWatches {
    fn pages(&self) -> MutexGuard<'_, HashMap<PageKey, watch::Sender<PageState>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes to a page. A state that is replaced quickly may be skipped.
    fn subscribe(
        &self,
        service: &Service,
        request: &GetRankingRequest,
        caller: &Caller,
    ) -> watch::Receiver<PageState> {
        let key = (request.clone(), caller.is_organiser());
        let mut pages = self.pages();
        if let Some(subscribers) = pages.get(&key) {
            return subscribers.subscribe();
        }
        let (subscribers, states) = watch::channel(None);
        pages.insert(key.clone(), subscribers.clone());
        let watches = self.clone();
        let service = service.clone();
        let caller = caller.clone();
        tokio::spawn(async move { watches.publish(&service, key, &caller, &subscribers).await });
        states
    }

    /// The first state for a new subscriber. If the shared state has the same page, this is the
    /// shared state. If there is no shared state yet, the new state is shared.
    fn share_first(&self, key: &PageKey, page: GetRankingResponse) -> Arc<PageSnapshot> {
        let first = PageSnapshot::new(page);
        let mut shared = Arc::clone(&first);
        if let Some(subscribers) = self.pages().get(key) {
            subscribers.send_if_modified(|last| match last {
                Some(Ok(snapshot)) if snapshot.page == first.page => {
                    shared = Arc::clone(snapshot);
                    false
                }
                Some(_) => false,
                None => {
                    *last = Some(Ok(Arc::clone(&first)));
                    true
                }
            });
        }
        shared
    }

    /// Publishes each state of a page until it has no subscribers.
    async fn publish(
        &self,
        service: &Service,
        key: PageKey,
        caller: &Caller,
        subscribers: &watch::Sender<PageState>,
    ) {
        let mut changes = service.changes.subscribe();
        loop {
            let has_changed = changes.changed_unless(subscribers.closed()).await;
            if !has_changed && self.remove_unused(service, &key, subscribers) {
                return;
            }
            let state = service.get_ranking(caller, key.0.clone()).await;
            let has_failed = state.is_err();
            subscribers.send_if_modified(|last| {
                let is_same =
                    matches!((&*last, &state), (Some(Ok(last)), Ok(state)) if last.page == *state);
                if !is_same {
                    *last = Some(state.map(PageSnapshot::new));
                }
                !is_same
            });
            if has_failed {
                self.pages().remove(&key);
                return;
            }
        }
    }

    /// Removes a page if it has no subscribers or the coordinator stops. Returns whether it did.
    /// The next subscriber adds the page again.
    fn remove_unused(
        &self,
        service: &Service,
        key: &PageKey,
        subscribers: &watch::Sender<PageState>,
    ) -> bool {
        // Because of the lock, no subscriber can be added between the check and the removal.
        let mut pages = self.pages();
        let is_unused = subscribers.receiver_count() == 0 || service.changes.is_stopped();
        if is_unused {
            pages.remove(key);
        }
        is_unused
    }
}

/// Forwards the changes of a page to one subscriber until the subscriber leaves or reading fails.
async fn forward_changes(
    mut last: Arc<PageSnapshot>,
    mut states: watch::Receiver<PageState>,
    sender: mpsc::Sender<Result<Arc<PageSnapshot>>>,
) {
    let mut send_result = sender.send(Ok(Arc::clone(&last))).await;
    while send_result.is_ok() {
        tokio::select! {
            () = sender.closed() => return,
            result = states.changed() => if result.is_err() { return },
        }
        let state = states.borrow_and_update().clone();
        match state {
            Some(Ok(snapshot)) if snapshot.page != last.page => {
                last = Arc::clone(&snapshot);
                send_result = sender.send(Ok(snapshot)).await;
            }
            Some(Err(error)) => {
                // This fails if the subscriber has closed the stream.
                drop(sender.send(Err(error)).await);
                return;
            }
            Some(Ok(_)) | None => {}
        }
    }
}
