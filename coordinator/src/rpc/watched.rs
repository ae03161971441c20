//! Leaderboards that are watched: what changes is worked out once for all who watch the same page,
//! be they one or ten thousand, and told to each of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arbiter_proto::v1::{GetRankingRequest, GetRankingResponse};
use tokio::sync::watch;
use tonic::Status;

use super::{Shared, Viewer};

/// How a page stands; nothing, until it has changed for the first time.
type State = Option<Result<GetRankingResponse, Status>>;

/// What is watched: a page, by those who may see everything or by all others.
type Page = (GetRankingRequest, bool);

/// The pages that are watched.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    pages: Arc<Mutex<HashMap<Page, watch::Sender<State>>>>,
}

impl Watched {
    fn pages(&self) -> MutexGuard<'_, HashMap<Page, watch::Sender<State>>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who watch a page. A state that is followed by another at once may be left out.
    pub(super) fn join(
        &self,
        shared: &Shared,
        asked: &GetRankingRequest,
        viewer: &Viewer,
    ) -> watch::Receiver<State> {
        let page = (asked.clone(), viewer.organises());
        let mut pages = self.pages();
        if let Some(watchers) = pages.get(&page) {
            return watchers.subscribe();
        }
        let (watchers, joined) = watch::channel(None);
        pages.insert(page.clone(), watchers.clone());
        let (watched, shared, viewer) = (self.clone(), shared.clone(), viewer.clone());
        tokio::spawn(async move { watched.tell(&shared, page, &viewer, &watchers).await });
        joined
    }

    /// Tells those who watch a page how it stands, until nobody does.
    async fn tell(
        &self,
        shared: &Shared,
        page: Page,
        viewer: &Viewer,
        watchers: &watch::Sender<State>,
    ) {
        let mut changes = shared.changes.watch();
        loop {
            let goes_on = changes.next_unless(watchers.closed()).await;
            if !goes_on && self.is_left(shared, &page, watchers) {
                return;
            }
            let now = shared.page(&page.0, viewer).await;
            let failed = now.is_err();
            watchers.send_if_modified(|last| {
                let same = matches!((&*last, &now), (Some(Ok(last)), Ok(now)) if last == now);
                if !same {
                    *last = Some(now);
                }
                !same
            });
            if failed {
                self.pages().remove(&page);
                return;
            }
        }
    }

    /// Whether nobody watches a page any more, or nobody is to; then whoever comes next begins anew.
    fn is_left(&self, shared: &Shared, page: &Page, watchers: &watch::Sender<State>) -> bool {
        // Nobody joins while this is looked at.
        let mut pages = self.pages();
        let left = watchers.receiver_count() == 0 || *shared.changes.over.borrow();
        if left {
            pages.remove(page);
        }
        left
    }
}
