//! What many look at is worked out once for all of them, be they one or ten thousand: how a page of
//! a leaderboard changes, told to each who watches it; and how far a running edition is, which means
//! counting its lots.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arbiter_proto::v1::tournament_service_server::TournamentService as _;
use arbiter_proto::v1::{GetRankingRequest, GetRankingResponse, GetTournamentRequest, Tournament};
use tokio::sync::watch;
use tonic::{Request, Status};

use super::{Shared, Viewer};

/// How old it may be what is shown of a tournament of which an edition runs: as old as its
/// leaderboard.
const LATELY: Duration = Duration::from_millis(500);
/// Tournaments that are remembered.
const REMEMBERED: usize = 64;

/// How a page stands; nothing, until it has changed for the first time.
type State = Option<Result<GetRankingResponse, Status>>;

/// What is watched: a page, by those who may see everything or by all others.
type Page = (GetRankingRequest, bool);

/// Tournaments by name, as those see them who may see everything or all others, and since when.
type Tournaments = HashMap<(String, bool), (Instant, Tournament)>;

/// The pages that are watched, and the tournaments that were looked at lately.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    pages: Arc<Mutex<HashMap<Page, watch::Sender<State>>>>,
    tournaments: Arc<Mutex<Tournaments>>,
}

impl Shared {
    /// A tournament as it was a moment ago, if an edition of it runs; otherwise as it is.
    pub(crate) async fn glance(
        &self,
        request: Request<GetTournamentRequest>,
    ) -> Result<Tournament, Status> {
        let seen = || self.watched.tournaments.lock().unwrap_or_else(PoisonError::into_inner);
        let viewer = self.viewer(&request).await?;
        let key = (request.get_ref().tournament.clone(), viewer.organises());
        let now = Instant::now();
        if let Some((since, found)) = seen().get(&key)
            && now - *since < LATELY
        {
            return Ok(found.clone());
        }
        let found = self.get_tournament(request).await?.into_inner();
        if found.editions.iter().any(|edition| edition.state == "running") {
            let mut seen = seen();
            if seen.len() >= REMEMBERED {
                seen.retain(|_, (since, _)| now - *since < LATELY);
            }
            seen.insert(key, (now, found.clone()));
        }
        Ok(found)
    }
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
