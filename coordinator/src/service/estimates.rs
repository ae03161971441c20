//! Estimates of the completion of an edition and of the cost of the next one, and certificates of
//! the balance of schedules.

use arbiter_proto::v1::{self, CertifyEditionRequest, EditionEstimate, EstimateEditionRequest};
use arbiter_ranking::Entrant;
use arbiter_schedule::foursomes::MAX_COUNTED_BOTS;
use arbiter_schedule::{
    Certificate, CertificateBuilder, CertificateError, Claim, Plan, SameOwnerPairs,
};
use std::time::Duration;
use tokio::sync::Semaphore;

use super::beacon;
use super::{Caller, DefaultEdition, Result, Service, ServiceError, micros};
use crate::access::Role;
use crate::db::editions::{self, EditionState};
use crate::db::entrants::Roster;
use crate::db::lots::{Census, LotState};
use crate::db::tournaments::{self, Tournament};
use crate::db::{matches, progress_samples, workers};
use crate::tournament::PlanMode;
use crate::tournament::estimate::{self, CompletionEstimate, EPISODES, NextEdition};

/// Only one certificate is counted at a time, because it has a number in memory for each pair of
/// bots.
static CERTIFICATE_PERMIT: Semaphore = Semaphore::const_new(1);

impl Service {
    /// Estimates the size, time and cost of the next edition.
    pub(crate) async fn estimate_edition(
        &self,
        caller: &Caller,
        request: EstimateEditionRequest,
    ) -> Result<EditionEstimate> {
        caller.require(Role::Organiser)?;
        let tournament = self.tournament(&request.tournament).await?;
        let mut db = self.pool.acquire().await?;
        let mode = plan_mode(request.fresh);
        let next = NextEdition::plan(&mut db, self.queue.games(), tournament, mode).await?;
        let estimate = next.estimate(&mut db).await?;
        // A request that waits for a second connection while it holds one can wait for ever.
        drop(db);
        let to_play = estimate.to_play.unsigned_abs();
        let slots = self.slots().await?;
        let completion =
            CompletionEstimate::new(to_play, None, slots, estimate.match_ms, self.now());
        let eta_us = completion.map(|completion| micros(completion.eta));
        Ok(EditionEstimate { slots, eta_us, ..estimate })
    }

    /// Counts the balance of an edition, or of the next one.
    pub(crate) async fn certify_edition(
        &self,
        caller: &Caller,
        request: CertifyEditionRequest,
    ) -> Result<v1::Certificate> {
        let tournament = self.tournament(&request.tournament).await?;
        // A cached certificate may be older than the beacon's value.
        let beacon = tournament.beacon.as_ref().map(beacon::message);
        let certificate = self.certify_matches(tournament, request, caller).await?;
        Ok(v1::Certificate { beacon, ..certificate })
    }

    async fn certify_matches(
        &self,
        tournament: Tournament,
        request: CertifyEditionRequest,
        caller: &Caller,
    ) -> Result<v1::Certificate> {
        if request.next || request.fresh {
            if !caller.is_organiser() {
                let error = "only organisers may plan the next edition";
                return Err(ServiceError::permission_denied(error));
            }
            return self.certify_next(tournament, plan_mode(request.fresh)).await;
        }
        let editions = editions::of_tournament(&self.pool, tournament.id).await?;
        if editions.is_empty() {
            let _permit = self.permit(caller).await?;
            return self.certify_next(tournament, PlanMode::Incremental).await;
        }
        let board = v1::LeaderboardRef { tournament: request.tournament, edition: request.edition };
        let (edition, _) = self.edition_of(Some(board), DefaultEdition::Newest, caller).await?;
        if let Some(cached) = self.certificates.get(&edition.id, None) {
            return Ok(v1::Certificate::clone(&cached));
        }
        let _permit = self.permit(caller).await?;
        let _certificate_permit =
            CERTIFICATE_PERMIT.acquire().await.map_err(|_| ServiceError::stopping())?;
        let certificate = self.certify_stored(&tournament, &edition).await?;
        // Complete plans never change.
        if edition.state != EditionState::Planning && !edition.open_ended {
            self.certificates.insert(edition.id, certificate.clone());
        }
        Ok(certificate)
    }

    async fn certify_next(
        &self,
        tournament: Tournament,
        mode: PlanMode,
    ) -> Result<v1::Certificate> {
        let _certificate_permit =
            CERTIFICATE_PERMIT.acquire().await.map_err(|_| ServiceError::stopping())?;
        let mut db = self.pool.acquire().await?;
        let next = NextEdition::plan(&mut db, self.queue.games(), tournament, mode).await?;
        drop(db);
        let plan = EditionPlan { edition: 0, summary: next.summary() };
        let bots = next.field().bots();
        let count = move || -> Result<v1::Certificate> {
            let field = next.field();
            let planned = match next.matches()? {
                Plan::Matches(planned) => planned,
                Plan::Episodes(_) => {
                    return Ok(plan.not_counted((bots, 0, 0), EPISODES.to_owned()));
                }
                Plan::Rounds(rounds) => {
                    let reason = estimate::not_certified(&rounds);
                    return Ok(plan.not_counted((bots, rounds.seats(), 0), reason));
                }
            };
            let claim = planned.claim();
            let seats = planned.seats();
            if let Some(reason) = not_countable(&claim, bots, seats) {
                return Ok(plan.not_counted((bots, 0, 0), reason));
            }
            let mut counter = CertificateBuilder::for_claim(&claim, bots, seats, field.owners());
            for planned in planned {
                counter.add(planned.seats()).map_err(|error| impossible(&error))?;
            }
            Ok(plan.counted(counter.finish(), &claim))
        };
        tokio::task::spawn_blocking(count).await.map_err(|_| ServiceError::stopping())?
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
        let plan = EditionPlan { edition: edition.number, summary: guarantees.plan };
        let claim = match guarantees.claim {
            Ok(claim) => claim,
            Err(reason) => return Ok(plan.not_counted(size, reason)),
        };
        let (bots, seats, _) = size;
        if let Some(reason) = not_countable(&claim, bots, seats) {
            return Ok(plan.not_counted(size, reason));
        }
        let mut counter = CertificateBuilder::for_claim(&claim, bots, seats, field.owners());
        let roster = Roster::of(&mut *db, edition.id).await?;
        // `u16::MAX` is no place in a schedule.
        let place = |entrant: &i32| {
            let index = roster.place(Entrant(*entrant));
            index.and_then(|index| u16::try_from(index).ok()).unwrap_or(u16::MAX)
        };
        let mut places = Vec::new();
        let result = matches::each_seats(&mut *db, edition.scope(), |seats| {
            places.clear();
            places.extend(seats.iter().map(place));
            counter.add(&places)
        });
        result.await?.map_err(|error| impossible(&error))?;
        Ok(plan.counted(counter.finish(), &claim))
    }

    /// Matches that the connected workers can play at the same time.
    async fn slots(&self) -> Result<u32> {
        // A connected worker sends several signs of life during a lease.
        let since = self.now() - self.lease();
        Ok(workers::slots(&self.pool, since).await?)
    }

    /// The estimated completion of a running edition, and the number of slots.
    pub(super) async fn completion_estimate(
        &self,
        edition: &editions::Edition,
        census: &[Census],
    ) -> Result<(Option<CompletionEstimate>, u32)> {
        if edition.state != EditionState::Running {
            return Ok((None, 0));
        }
        let slots = self.slots().await?;
        let row = tournaments::get(&self.pool, edition.tournament).await?;
        let Some(tournament) = row else { return Ok((None, slots)) };
        let mut db = self.pool.acquire().await?;
        let bots = editions::count_entrants(&mut *db, edition.id).await?;
        let (match_ms, max_matches) =
            estimate::typical(&mut db, self.queue.games(), &tournament, bots).await?;
        let pace = progress_samples::of_edition(&mut *db, edition.id).await?;
        let planned_matches = u64::try_from(edition.matches).unwrap_or(0);
        let total = match max_matches {
            Some(max_matches) if edition.open_ended => max_matches.max(planned_matches),
            _ => planned_matches,
        };
        let queued: i64 =
            census.iter().filter(|count| is_queued(count.state)).map(|count| count.matches).sum();
        let unplanned = total - planned_matches;
        let remaining = u64::try_from(queued).unwrap_or(0).saturating_add(unplanned);
        Ok((CompletionEstimate::new(remaining, pace, slots, match_ms, self.now()), slots))
    }
}

/// Whether the matches of a lot in this state will be played. Those that are set aside wait for an
/// organiser.
fn is_queued(state: LotState) -> bool {
    use LotState::{Aside, Cancelled, Counted, Reported};
    !matches!(state, Reported | Counted | Aside | Cancelled)
}

/// The number of an edition, or 0 for the next one, and a summary of its plan's history.
struct EditionPlan {
    edition: i32,
    summary: Option<String>,
}

impl EditionPlan {
    /// The counted certificate, with the guarantee of the schedule that it breaks, if any.
    fn counted(self, certificate: Certificate, claim: &Claim) -> v1::Certificate {
        let broken = certificate.prove(claim).err();
        let pair_count = |(times, pairs)| v1::PairCount { times, pairs };
        let to_u32 = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let SameOwnerPairs { pairs, meetings } =
            certificate.same_owner.unwrap_or(SameOwnerPairs { pairs: 0, meetings: 0 });
        v1::Certificate {
            edition: self.edition,
            plan: self.summary.unwrap_or_default(),
            bots: to_u32(certificate.bots),
            seats: to_u32(certificate.seats),
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
            fewest_opponents: certificate.opponents_of_bot.as_ref().map(|range| *range.start()),
            most_opponents: certificate.opponents_of_bot.map(|range| *range.end()),
        }
    }

    /// The certificate of a plan whose balance is not counted. It has only the plan, its size and
    /// the origin of the seed. The size is the numbers of bots, seats and matches, or 0 if unknown.
    fn not_counted(
        self,
        (bots, seats, matches): (usize, usize, u64),
        reason: String,
    ) -> v1::Certificate {
        v1::Certificate {
            edition: self.edition,
            plan: self.summary.unwrap_or_default(),
            bots: u32::try_from(bots).unwrap_or(u32::MAX),
            seats: u32::try_from(seats).unwrap_or(u32::MAX),
            matches,
            not_counted: reason,
            ..v1::Certificate::default()
        }
    }
}

/// Converts a certificate message to the type of the schedule crate.
pub fn counted_certificate(message: &v1::Certificate) -> Certificate {
    let meetings = message.meetings.iter().map(|count| (count.times, count.pairs));
    Certificate {
        bots: message.bots as usize,
        seats: message.seats as usize,
        matches: message.matches,
        meetings: meetings.collect(),
        same_owner: message
            .same_owner_pairs
            .map(|pairs| SameOwnerPairs { pairs, meetings: message.same_owner_meetings }),
        opponents_of_bot: message
            .fewest_opponents
            .zip(message.most_opponents)
            .map(|(fewest, most)| fewest..=most),
        matches_of_bot: message.fewest_matches..=message.most_matches,
        times_in_seat: message.fewest_in_seat..=message.most_in_seat,
        seat_spread: message.seat_spread,
        side_spread: message.side_spread,
    }
}

fn plan_mode(fresh: bool) -> PlanMode {
    if fresh { PlanMode::Fresh } else { PlanMode::Incremental }
}

/// Why the meetings of this many bots are not counted on request. None if they are counted: those
/// of few bots, and those of a plan in which few pairs meet.
fn not_countable(claim: &Claim, bots: usize, seats: usize) -> Option<String> {
    let few_meet = claim.opponents.is_some()
        && CertificateBuilder::memory(claim, bots, seats) <= MAX_COUNTED_BOTS * MAX_COUNTED_BOTS;
    (bots > MAX_COUNTED_BOTS && !few_meet).then(|| {
        format!(
            "the meetings of {bots} bots are not counted here (at most {MAX_COUNTED_BOTS}); count \
             them with `arbiter tournament schedule --dry-run --certificate`"
        )
    })
}

fn impossible(error: &CertificateError) -> ServiceError {
    ServiceError::internal(format!("the schedule is impossible: {error}"))
}

/// How often the progress of editions is sampled.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

impl Service {
    /// Samples the progress of editions repeatedly, without end.
    pub(crate) async fn sample_progress(&self) {
        loop {
            if let Err(error) = progress_samples::mark(&self.pool, self.now()).await {
                tracing::debug!(%error, "cannot sample the progress of editions");
            }
            tokio::time::sleep(PROGRESS_INTERVAL).await;
        }
    }
}
