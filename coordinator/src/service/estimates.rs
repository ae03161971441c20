//! What lies ahead: when an edition will be complete, what the next one would cost, and whether
//! schedules are balanced.

use crate::access::Role;
use arbiter_proto::v1::{self, CertifyEditionRequest, EditionEstimate, EstimateEditionRequest};
use arbiter_schedule::foursomes::MAX_COUNTED_BOTS;
use arbiter_schedule::{
    Certificate, CertificateBuilder, CertificateError, Claim, Plan, SameOwnerPairs,
};
use std::time::Duration;
use tokio::sync::Semaphore;

use super::beacon;
use super::{Caller, Result, Service, ServiceError, Which, micros};
use crate::db::editions::{self, EditionState};
use crate::db::lots::Census;
use crate::db::tournaments::{self, Tournament};
use crate::db::{matches, progress_samples, workers};
use crate::tournament::PlanMode;
use crate::tournament::estimate::{self, CompletionEstimate, NextEdition};

/// Certificates take a number for each pair of bots, so they are made one after another.
static ONE: Semaphore = Semaphore::const_new(1);

/// What was counted, and what was promised.
struct Counted {
    edition: i32,
    plan: Option<String>,
    certificate: Certificate,
    broken: Option<CertificateError>,
}

impl Service {
    /// What the next edition would come to.
    pub(crate) async fn estimate_edition(
        &self,
        caller: &Caller,
        request: EstimateEditionRequest,
    ) -> Result<EditionEstimate> {
        caller.require(Role::Organiser)?;
        let tournament = self.tournament(&request.tournament).await?;
        let mut db = self.pool.acquire().await?;
        let next =
            NextEdition::plan(&mut db, self.queue.games(), tournament, plan_mode(request.fresh))
                .await;
        let estimate = next?.estimate(&mut db).await?;
        let slots = self.slots().await?;
        let forecast =
            CompletionEstimate::new(estimate.to_play, None, slots, estimate.match_ms, self.now());
        Ok(EditionEstimate {
            bots: u32::try_from(estimate.bots).unwrap_or(u32::MAX),
            matches: i64::try_from(estimate.matches).unwrap_or(i64::MAX),
            to_play: i64::try_from(estimate.to_play).unwrap_or(i64::MAX),
            match_ms: estimate.match_ms,
            measured: estimate.measured,
            slots,
            eta_us: forecast.map(|forecast| micros(forecast.eta)),
            bytes: i64::try_from(estimate.bytes).unwrap_or(i64::MAX),
            plan: estimate.plan.unwrap_or_default(),
        })
    }

    /// Counts the matches of an edition, or of the next one.
    pub(crate) async fn certify_edition(
        &self,
        caller: &Caller,
        request: CertifyEditionRequest,
    ) -> Result<v1::Certificate> {
        let tournament = self.tournament(&request.tournament).await?;
        // What was counted may be kept from before the beacon's value was given.
        let beacon = tournament.beacon.as_ref().map(beacon::message);
        let counted = self.certify_matches(tournament, request, caller).await?;
        Ok(v1::Certificate { beacon, ..counted })
    }

    async fn certify_matches(
        &self,
        tournament: Tournament,
        request: CertifyEditionRequest,
        caller: &Caller,
    ) -> Result<v1::Certificate> {
        if request.next || request.fresh {
            if !caller.is_organiser() {
                let error = "the next edition is planned for organisers";
                return Err(ServiceError::permission_denied(error));
            }
            let _alone = ONE.acquire().await.map_err(|_| ServiceError::stopping())?;
            return self.certify_next(tournament, plan_mode(request.fresh)).await;
        }
        let all = editions::of_tournament(&self.pool, tournament.id).await?;
        if all.is_empty() {
            let _permit = self.permit(caller).await?;
            let _alone = ONE.acquire().await.map_err(|_| ServiceError::stopping())?;
            return self.certify_next(tournament, PlanMode::Incremental).await;
        }
        let board = v1::LeaderboardRef { tournament: request.tournament, edition: request.edition };
        let (edition, _) = self.edition_of(Some(board), Which::Newest, caller).await?;
        if let Some(counted) = self.certificates.get(edition.id, None) {
            return Ok(v1::Certificate::clone(&counted));
        }
        let _permit = self.permit(caller).await?;
        let _alone = ONE.acquire().await.map_err(|_| ServiceError::stopping())?;
        let counted = self.certify_stored(&tournament, &edition).await?;
        // Plans that are whole are never changed.
        if edition.state != EditionState::Planning && !edition.growing {
            self.certificates.insert(edition.id, counted.clone());
        }
        Ok(counted)
    }

    async fn certify_next(
        &self,
        tournament: Tournament,
        mode: PlanMode,
    ) -> Result<v1::Certificate> {
        let mut db = self.pool.acquire().await?;
        let next = NextEdition::plan(&mut db, self.queue.games(), tournament, mode).await?;
        drop(db);
        let bots = next.field().bots();
        if let Some(reason) = uncountable(bots) {
            return Ok(not_counted((0, next.summary()), (bots, 0, 0), reason));
        }
        let count = move || -> Result<v1::Certificate> {
            let field = next.field();
            let Plan::Matches(planned) = next.matches()? else {
                return Ok(not_counted((0, next.summary()), (bots, 0, 0), EPISODES.to_owned()));
            };
            let (claim, seats) = (planned.claim(), planned.seats());
            let counted = Certificate::count(field.bots(), seats, field.owners(), planned);
            let certificate = counted.map_err(|broken| impossible(&broken))?;
            let broken = certificate.prove(&claim).err();
            Ok(Counted { edition: 0, plan: next.summary(), certificate, broken }.message())
        };
        let counted = tokio::task::spawn_blocking(count).await;
        counted.map_err(|_| ServiceError::stopping())?
    }

    async fn certify_stored(
        &self,
        tournament: &Tournament,
        edition: &editions::Edition,
    ) -> Result<v1::Certificate> {
        let mut db = self.pool.acquire().await?;
        let games = self.queue.games();
        let guarantees = estimate::plan_guarantees(&mut db, games, tournament, edition.id).await?;
        let field = &guarantees.field;
        let size = (field.bots(), guarantees.seats, edition.matches.unsigned_abs());
        let claim: Claim = match (guarantees.claim, uncountable(field.bots())) {
            (Some(claim), None) => claim,
            (None, _) => {
                let reason = EPISODES.to_owned();
                return Ok(not_counted((edition.number, guarantees.plan), size, reason));
            }
            (Some(_), Some(reason)) => {
                return Ok(not_counted((edition.number, guarantees.plan), size, reason));
            }
        };
        let mut counter = CertificateBuilder::new(field.bots(), guarantees.seats, field.owners());
        let seen = matches::each_seats(&mut *db, edition.id, |seats| counter.add(seats)).await;
        seen?.map_err(|broken| impossible(&broken))?;
        let certificate = counter.finish();
        let broken = certificate.prove(&claim).err();
        let (edition, plan) = (edition.number, guarantees.plan);
        Ok(Counted { edition, plan, certificate, broken }.message())
    }

    /// How many matches the connected workers can play at the same time.
    async fn slots(&self) -> Result<u32> {
        // A worker that is connected is seen several times in the time of a lease.
        let since = self.now() - self.lease;
        Ok(workers::slots(&self.pool, since).await?)
    }

    /// When an edition that runs will be complete, how fast it is played, and by how many slots.
    pub(super) async fn completion_estimate(
        &self,
        edition: &editions::Edition,
        census: &[Census],
    ) -> Result<(Option<CompletionEstimate>, u32)> {
        if edition.state != EditionState::Running {
            return Ok((None, 0));
        }
        let slots = self.slots().await?;
        let found = tournaments::get(&self.pool, edition.tournament).await?;
        let Some(tournament) = found else { return Ok((None, slots)) };
        let mut db = self.pool.acquire().await?;
        let bots = editions::entrants(&mut *db, edition.id).await?.len();
        let typical = estimate::typical(&mut db, self.queue.games(), &tournament, bots).await;
        let (match_ms, most) = typical?;
        let pace = progress_samples::of_edition(&mut *db, edition.id).await?;
        let planned = u64::try_from(edition.matches).unwrap_or(0);
        let total = if edition.growing { most.unwrap_or(planned).max(planned) } else { planned };
        // What is set aside waits for the organiser.
        let done = ["counted", "reported", "aside", "cancelled"];
        let done = census.iter().filter(|count| done.contains(&count.state.as_str()));
        let done: i64 = done.map(|count| count.matches).sum();
        let left = total.saturating_sub(u64::try_from(done).unwrap_or(0));
        Ok((CompletionEstimate::new(left, pace, slots, match_ms, self.now()), slots))
    }
}

impl Counted {
    fn message(self) -> v1::Certificate {
        let Self { edition, plan, certificate, broken } = self;
        let pair_count = |(times, pairs)| v1::PairCount { times, pairs };
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let SameOwnerPairs { pairs, meetings } =
            certificate.same_owner.unwrap_or(SameOwnerPairs { pairs: 0, meetings: 0 });
        v1::Certificate {
            edition,
            plan: plan.unwrap_or_default(),
            bots: small(certificate.bots),
            seats: small(certificate.seats),
            matches: certificate.matches,
            meetings: certificate.meetings.into_iter().map(pair_count).collect(),
            same_owner_pairs: certificate.same_owner.map(|_| pairs),
            same_owner_meetings: meetings,
            fewest_matches: *certificate.matches_of_bot.start(),
            most_matches: *certificate.matches_of_bot.end(),
            fewest_in_seat: *certificate.times_in_seat.start(),
            most_in_seat: *certificate.times_in_seat.end(),
            seat_spread: certificate.seat_spread,
            side_spread: certificate.side_spread,
            broken_promise: broken.map(|broken| broken.to_string()).unwrap_or_default(),
            beacon: None,
            not_counted: String::new(),
        }
    }
}

/// The certificate of a plan whose balance is not counted: it says where the seed comes from, as that
/// of any plan does. `size` is bots, seats and matches, as far as they are known.
fn not_counted(
    (edition, plan): (i32, Option<String>),
    size: (usize, usize, u64),
    reason: String,
) -> v1::Certificate {
    let (bots, seats, matches) = size;
    v1::Certificate {
        edition,
        plan: plan.unwrap_or_default(),
        bots: u32::try_from(bots).unwrap_or(u32::MAX),
        seats: u32::try_from(seats).unwrap_or(u32::MAX),
        matches,
        not_counted: reason,
        ..v1::Certificate::default()
    }
}

/// What was counted, as the schedule's own code says it.
pub fn counted_certificate(told: &v1::Certificate) -> Certificate {
    let meetings = told.meetings.iter().map(|count| (count.times, count.pairs));
    Certificate {
        bots: told.bots as usize,
        seats: told.seats as usize,
        matches: told.matches,
        meetings: meetings.collect(),
        same_owner: told
            .same_owner_pairs
            .map(|pairs| SameOwnerPairs { pairs, meetings: told.same_owner_meetings }),
        matches_of_bot: told.fewest_matches..=told.most_matches,
        times_in_seat: told.fewest_in_seat..=told.most_in_seat,
        seat_spread: told.seat_spread,
        side_spread: told.side_spread,
    }
}

fn plan_mode(fresh: bool) -> PlanMode {
    if fresh { PlanMode::Fresh } else { PlanMode::Incremental }
}

/// Why nothing is counted of episodes.
const EPISODES: &str = "each round of an episode follows from the results of the one before, so its \
    plan promises nothing about how often pairs meet";

/// Why the meetings of so many bots are not counted for anybody who asks, if they are too many.
fn uncountable(bots: usize) -> Option<String> {
    (bots > MAX_COUNTED_BOTS).then(|| {
        format!(
            "the meetings of {bots} bots are not counted here, at most {MAX_COUNTED_BOTS}; count them \
             with arbiter tournament schedule --dry-run --certificate"
        )
    })
}

fn impossible(broken: &CertificateError) -> ServiceError {
    ServiceError::internal(format!("the schedule is impossible: {broken}"))
}

/// How often it is looked whether the pace of an edition is to be noted.
const LOOK_AT_PACE: Duration = Duration::from_secs(5);

impl Service {
    /// Notes how fast editions are played, for ever.
    pub(crate) async fn keep_pace(&self) {
        loop {
            if let Err(error) = progress_samples::mark(&self.pool, self.now()).await {
                tracing::debug!(%error, "the pace of editions is not noted");
            }
            tokio::time::sleep(LOOK_AT_PACE).await;
        }
    }
}
