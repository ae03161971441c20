//! What many look at is worked out once for all of them, be they one or ten thousand: how a page of
//! a leaderboard changes, told to each who watches it; and how far a running edition is, which means
//! counting its lots.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arbiter_proto::v1::{GetRankingRequest, GetRankingResponse, GetTournamentRequest, Tournament};
use tokio::sync::{mpsc, watch};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use super::{Answers, Caller, Result, Service, ServiceError};

/// How old what is shown of a tournament is when it is renewed, while an edition runs.
const LATELY: Duration = Duration::from_millis(500);
/// How old it may be: whoever looks meanwhile does not wait.
const OLDEST: Duration = Duration::from_secs(1);
/// Tournaments that are remembered.
const REMEMBERED: usize = 64;

/// A page of a leaderboard as all who watch it are told of it.
#[derive(Debug)]
pub(crate) struct Told {
    /// How it stands.
    pub(crate) page: GetRankingResponse,
    /// No other page of this process has this number.
    pub(crate) id: u64,
}

impl Told {
    fn new(page: GetRankingResponse) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self { page, id: NEXT.fetch_add(1, Ordering::Relaxed) })
    }
}

/// How a page stands; nothing, until it has changed for the first time.
type State = Option<Result<Arc<Told>>>;

/// What is watched: a page, by those who may see everything or by all others.
type Page = (GetRankingRequest, bool);

/// A tournament's name, and whether it is seen by those who may see everything or by all others.
type Sight = (String, bool);

/// A tournament as it was seen.
#[derive(Debug)]
struct Seen {
    at: Instant,
    /// When somebody began to look again.
    renewed: Instant,
    tournament: Tournament,
}

/// The pages that are watched, and the tournaments that were looked at lately.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched {
    pages: Arc<Mutex<HashMap<Page, watch::Sender<State>>>>,
    tournaments: Arc<Mutex<HashMap<Sight, Seen>>>,
}

impl Service {
    /// A tournament as it was a moment ago, if an edition of it runs; otherwise as it is.
    pub(crate) async fn glance(
        &self,
        caller: &Caller,
        request: GetTournamentRequest,
    ) -> Result<Tournament> {
        let sight = (request.tournament, caller.organises());
        let Some((found, old)) = self.watched.seen(&sight) else {
            return self.look(sight, caller).await;
        };
        if old {
            let (service, caller) = (self.clone(), caller.clone());
            // Where it fails, the next who has to wait is told so.
            tokio::spawn(async move { drop(service.look(sight, &caller).await) });
        }
        Ok(found)
    }

    /// A page of a leaderboard as it stands, and again whenever it changes.
    pub(crate) async fn watch_ranking(
        &self,
        caller: &Caller,
        request: GetRankingRequest,
    ) -> Result<Answers<GetRankingResponse>> {
        let pages = self.watch_page(caller, request).await?;
        Ok(Box::pin(pages.map(|told| Ok(told?.page.clone()))))
    }

    /// The same, where all who watch the same page share one [`Told`], and again whenever it changes.
    pub(crate) async fn watch_page(
        &self,
        caller: &Caller,
        request: GetRankingRequest,
    ) -> Result<ReceiverStream<Result<Arc<Told>, ServiceError>>> {
        let states = self.watched.join(self, &request, caller);
        let page = self.get_ranking(caller, request.clone()).await?;
        let first = self.watched.begin(&(request, caller.organises()), page);
        let (sender, pages) = mpsc::channel(1);
        tokio::spawn(pass_on(first, states, sender));
        Ok(ReceiverStream::new(pages))
    }

    async fn look(&self, sight: Sight, caller: &Caller) -> Result<Tournament> {
        let at = Instant::now();
        let found = self.tournament(&sight.0).await?;
        let found = self.described(found, caller).await?;
        self.watched.remember(sight, at, &found);
        Ok(found)
    }
}

impl Watched {
    fn pages(&self) -> MutexGuard<'_, HashMap<Page, watch::Sender<State>>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was seen of a tournament, unless that is too long ago; and whether whoever asks is to
    /// renew it.
    fn seen(&self, sight: &Sight) -> Option<(Tournament, bool)> {
        let mut seen = self.tournaments();
        let seen = seen.get_mut(sight).filter(|seen| seen.at.elapsed() < OLDEST)?;
        let old = seen.renewed.elapsed() >= LATELY;
        if old {
            seen.renewed = Instant::now();
        }
        Some((seen.tournament.clone(), old))
    }

    /// Remembers a tournament of which an edition runs.
    fn remember(&self, sight: Sight, at: Instant, found: &Tournament) {
        let mut seen = self.tournaments();
        if !found.editions.iter().any(|edition| edition.state == "running") {
            seen.remove(&sight);
            return;
        }
        if seen.len() >= REMEMBERED {
            seen.retain(|_, seen| seen.at.elapsed() < OLDEST);
        }
        seen.insert(sight, Seen { at, renewed: at, tournament: found.clone() });
    }

    fn tournaments(&self) -> MutexGuard<'_, HashMap<Sight, Seen>> {
        self.tournaments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who watch a page. A state that is followed by another at once may be left out.
    fn join(
        &self,
        service: &Service,
        asked: &GetRankingRequest,
        caller: &Caller,
    ) -> watch::Receiver<State> {
        let page = (asked.clone(), caller.organises());
        let mut pages = self.pages();
        if let Some(watchers) = pages.get(&page) {
            return watchers.subscribe();
        }
        let (watchers, joined) = watch::channel(None);
        pages.insert(page.clone(), watchers.clone());
        let (watched, service, caller) = (self.clone(), service.clone(), caller.clone());
        tokio::spawn(async move { watched.tell(&service, page, &caller, &watchers).await });
        joined
    }

    /// What somebody who has joined is told at first: what others are, if they see the same. Nobody
    /// may have been told anything yet, and then all who join are.
    fn begin(&self, page: &Page, now: GetRankingResponse) -> Arc<Told> {
        let first = Told::new(now);
        let mut shared = Arc::clone(&first);
        if let Some(watchers) = self.pages().get(page) {
            watchers.send_if_modified(|last| match last {
                Some(Ok(told)) if told.page == first.page => {
                    shared = Arc::clone(told);
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

    /// Tells those who watch a page how it stands, until nobody does.
    async fn tell(
        &self,
        service: &Service,
        page: Page,
        caller: &Caller,
        watchers: &watch::Sender<State>,
    ) {
        let mut changes = service.changes.watch();
        loop {
            let goes_on = changes.next_unless(watchers.closed()).await;
            if !goes_on && self.is_left(service, &page, watchers) {
                return;
            }
            let now = service.get_ranking(caller, page.0.clone()).await;
            let failed = now.is_err();
            watchers.send_if_modified(|last| {
                let same = matches!((&*last, &now), (Some(Ok(last)), Ok(now)) if last.page == *now);
                if !same {
                    *last = Some(now.map(Told::new));
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
    fn is_left(&self, service: &Service, page: &Page, watchers: &watch::Sender<State>) -> bool {
        // Nobody joins while this is looked at.
        let mut pages = self.pages();
        let left = watchers.receiver_count() == 0 || service.changes.have_ended();
        if left {
            pages.remove(page);
        }
        left
    }
}

/// Passes on how a page stands to one who watches it, until he leaves or it fails.
async fn pass_on(
    mut last: Arc<Told>,
    mut states: watch::Receiver<State>,
    sender: mpsc::Sender<Result<Arc<Told>>>,
) {
    let mut sent = sender.send(Ok(Arc::clone(&last))).await;
    while sent.is_ok() {
        tokio::select! {
            () = sender.closed() => return,
            changed = states.changed() => if changed.is_err() { return },
        }
        let state = states.borrow_and_update().clone();
        match state {
            Some(Ok(told)) if told.page != last.page => {
                last = Arc::clone(&told);
                sent = sender.send(Ok(told)).await;
            }
            Some(Err(status)) => {
                // Whoever has left needs no reason.
                drop(sender.send(Err(status)).await);
                return;
            }
            Some(Ok(_)) | None => {}
        }
    }
}
