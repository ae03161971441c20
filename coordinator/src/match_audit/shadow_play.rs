//! Shadow matches: some matches are played again by another worker, and both plays are compared.
//!
//! A shadow match is leased by the same messages as a lot; the edition in its lease marks it
//! ([`arbiter_proto::ids::Lease::shadow`]). It is not in the queue of lots, so its result cannot
//! count, and a coordinator without support for shadow matches refuses its report as late.
//!
//! Deterministic bots reply the same both times. Which bots are deterministic is not known
//! beforehand: a bot is *steady* if it replied the same in matches that two other workers played, and
//! never differently with any two other workers. If only steady bots played and the transcripts
//! still differ, one of the two workers is dishonest: the one that differs from several others.

use std::collections::{BTreeMap, BTreeSet};

use arbiter_games::{Forfeit, MAX_SEATS};
use arbiter_proto::ids::{MatchId, TokenId, WorkerId};
use sqlx::PgPool;
use time::OffsetDateTime;

use super::recount::Finding;
use super::{AuditError, compare, planned};
use crate::db::match_audits::{AuditState, FALSE_TIME_LOSS};
use crate::db::played_matches;
use crate::db::results::MatchResult;
use crate::db::shadows::{self, ComparedMatch};
use crate::queue::{Report, ReportStatus};
use crate::tournament::lot_assignment::AssignmentBuilder;
use crate::worker_suspension;

/// Minimum number of differences between steady bots that make a worker suspect, ...
const MIN_DIFFERENCES: usize = 3;
/// ... and of other workers from which it differs.
const MIN_PARTNERS: usize = 2;

/// The most telling difference between the two plays, if there is one.
pub(crate) fn difference(first: &MatchResult, second: &MatchResult) -> Option<String> {
    let seats = || 0..usize::from(MAX_SEATS);
    let clock = Some(Forfeit::Clock);
    let late =
        seats().filter(|seat| first.forfeit(*seat) == clock && second.forfeit(*seat) != clock);
    let late: Vec<_> = late.map(|seat| (seat + 1).to_string()).collect();
    if !late.is_empty() {
        return Some(format!("seat {} {FALSE_TIME_LOSS}", late.join(", ")));
    }
    if first.scores != second.scores {
        let first = &first.scores;
        let second = &second.scores;
        return Some(format!("scores {first:?}, and {second:?} the second time"));
    }
    if let Some(seat) = seats().find(|seat| first.forfeit(*seat) != second.forfeit(*seat)) {
        return Some(format!("seat {} forfeited in another way the second time", seat + 1));
    }
    if let Some(seat) = seats().find(|seat| first.bad_answers(*seat) != second.bad_answers(*seat)) {
        return Some(format!("seat {} gave other bad answers the second time", seat + 1));
    }
    (first.transcript != second.transcript).then(|| "the transcripts differ".to_owned())
}

/// Compares the second play of a match with the first, and returns the status of its report. If the
/// record of the second play contradicts its report, its worker is suspended.
pub(crate) async fn judge(
    pool: &PgPool,
    assignments: &AssignmentBuilder,
    report: &Report,
    now: OffsetDateTime,
) -> Result<ReportStatus, AuditError> {
    let Report { lease, worker, .. } = report;
    let (Some(id), [second]) = (lease.shadow(), &report.results[..]) else {
        return Ok(ReportStatus::Malformed);
    };
    // Nothing is replayed for a worker without the lease.
    if !shadows::is_held(pool, *lease, *worker).await? {
        return Ok(ReportStatus::Late);
    }
    let Some(first) = played_matches::find(pool, id).await? else { return Ok(ReportStatus::Late) };
    let first = first.result;
    if second.number != id.number || second.scores.len() != first.scores.len() {
        return Ok(ReportStatus::Malformed);
    }
    let (state, reason) = match proven_false(pool, assignments, id, second, report).await? {
        Some(reason) => {
            let reason = format!("the record of the second play is false: {reason}");
            worker_suspension::suspend(pool, *worker, &format!("match {id}: {reason}"), now)
                .await?;
            (AuditState::Skipped, Some(reason))
        }
        None => match difference(&first, second) {
            Some(reason) => (AuditState::Disagreed, Some(reason)),
            None => (AuditState::Agreed, None),
        },
    };
    let ended = shadows::end(pool, *lease, *worker, (state, reason.as_deref())).await?;
    Ok(if ended { ReportStatus::Accepted } else { ReportStatus::Late })
}

/// The contradiction between a second play's report and its record, if it has one.
async fn proven_false(
    pool: &PgPool,
    assignments: &AssignmentBuilder,
    id: MatchId,
    second: &MatchResult,
    report: &Report,
) -> Result<Option<String>, AuditError> {
    let Some((_, record)) = report.records.first() else { return Ok(None) };
    let reported = (report.level.as_str().to_owned(), second.clone());
    let planned = planned(pool, assignments, id).await?;
    Ok(match compare(assignments.games().clone(), record.clone(), planned, reported).await {
        Finding::Disagreed(reason) => Some(reason),
        Finding::Agreed | Finding::Unreadable(_) => None,
    })
}

/// The evidence against a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accused {
    /// The worker.
    pub worker: WorkerId,
    /// Matches of steady bots in which it differs from others.
    pub differences: usize,
    /// The number of others; workers with the same token count as one.
    pub others: usize,
}

/// The dishonest workers by these comparisons, without those that are suspended already.
pub fn accuse(compared: &[ComparedMatch], suspended: &BTreeSet<WorkerId>) -> Vec<Accused> {
    let parties = Parties::of(compared);
    let mut out = suspended.clone();
    let mut accused = Vec::new();
    // One after the other: differences with a dishonest worker are no evidence against others.
    while let Some(found) = most_suspect(compared, &parties, &out) {
        out.insert(found.worker);
        accused.push(found);
    }
    accused
}

/// Workers that may act together: those with the same token. If all workers have the same token,
/// its owner trusts them all, and each counts as a separate party.
#[derive(Debug)]
struct Parties(BTreeMap<WorkerId, i32>);

impl Parties {
    fn of(compared: &[ComparedMatch]) -> Self {
        let tokens: BTreeSet<_> = compared.iter().flat_map(|one| one.tokens).collect();
        let all = compared.iter().flat_map(|one| one.workers.into_iter().zip(one.tokens));
        let party = |(worker, token): (WorkerId, Option<TokenId>)| match token {
            Some(token) if tokens.len() > 1 => (worker, token.0),
            // Tokens have positive numbers.
            _ => (worker, -worker.0),
        };
        Self(all.map(party).collect())
    }

    fn party(&self, worker: WorkerId) -> Option<i32> {
        self.0.get(&worker).copied()
    }

    /// Whether two workers of different parties played a match.
    fn is_between(&self, [one, other]: [WorkerId; 2]) -> bool {
        self.party(one) != self.party(other)
    }
}

fn most_suspect(
    compared: &[ComparedMatch],
    parties: &Parties,
    out: &BTreeSet<WorkerId>,
) -> Option<Accused> {
    let trusted: Vec<_> = compared
        .iter()
        .filter(|one| parties.is_between(one.workers))
        .filter(|one| one.workers.iter().all(|who| !out.contains(who)))
        .collect();
    let workers: BTreeSet<_> = trusted.iter().flat_map(|one| one.workers).collect();
    let weighed = workers.into_iter().map(|worker| {
        let steady = steady_without(&trusted, parties, worker);
        let against = trusted.iter().filter(|one| {
            !one.agreed
                && one.workers.contains(&worker)
                && one.bots.iter().all(|bot| steady.contains(bot))
        });
        let with: Vec<_> =
            against.flat_map(|one| one.workers.into_iter().filter(|who| *who != worker)).collect();
        let others: BTreeSet<_> = with.iter().map(|other| parties.party(*other)).collect();
        Accused { worker, differences: with.len(), others: others.len() }
    });
    let weight = |found: &Accused| (found.others, found.differences);
    let mut most: Vec<_> = weighed
        .filter(|found| found.differences >= MIN_DIFFERENCES && found.others >= MIN_PARTNERS)
        .collect();
    most.sort_by_key(|found| std::cmp::Reverse(weight(found)));
    match &most[..] {
        // Of two equally suspect workers either may be honest.
        [first, second, ..] if weight(first) == weight(second) => None,
        [first, ..] => Some(first.clone()),
        [] => None,
    }
}

/// The bots that always replied the same when two workers of other parties played them, at least
/// once.
fn steady_without(
    compared: &[&ComparedMatch],
    parties: &Parties,
    worker: WorkerId,
) -> BTreeSet<i32> {
    let mut bots: BTreeMap<i32, bool> = BTreeMap::new();
    let own = parties.party(worker);
    let without = |one: &&&ComparedMatch| one.workers.iter().all(|who| parties.party(*who) != own);
    for one in compared.iter().filter(without) {
        for bot in &one.bots {
            *bots.entry(*bot).or_insert(true) &= one.agreed;
        }
    }
    bots.into_iter().filter_map(|(bot, steady)| steady.then_some(bot)).collect()
}

#[cfg(test)]
mod tests {
    use arbiter_games::Seed;
    use arbiter_proto::ids::MatchNumber;

    use super::*;

    const ANN: WorkerId = WorkerId(1);
    const BEN: WorkerId = WorkerId(2);
    const EVE: WorkerId = WorkerId(3);

    fn played(first: WorkerId, second: WorkerId, agreed: bool, bots: [i32; 2]) -> ComparedMatch {
        let token = |worker: WorkerId| Some(TokenId(worker.0));
        let tokens = [token(first), token(second)];
        ComparedMatch { workers: [first, second], tokens, agreed, bots: bots.to_vec() }
    }

    fn blamed(compared: &[ComparedMatch]) -> Vec<WorkerId> {
        let accused = accuse(compared, &BTreeSet::new());
        accused.into_iter().map(|found| found.worker).collect()
    }

    #[test]
    fn a_worker_that_differs_from_several_others_is_accused() {
        let honest = played(ANN, BEN, true, [1, 2]);
        let with_ann = played(EVE, ANN, false, [1, 2]);
        let with_ben = played(BEN, EVE, false, [1, 2]);
        let differences = [with_ann.clone(), with_ann.clone(), with_ben.clone()];
        let all: Vec<_> = [&[honest.clone()][..], &differences].concat();
        assert_eq!(blamed(&all), [EVE]);
        // Two are too few, and three with the same other worker could be that one's fault.
        assert_eq!(blamed(&[honest.clone(), with_ann.clone(), with_ben]), []);
        let same = [honest, with_ann.clone(), with_ann.clone(), with_ann];
        assert_eq!(blamed(&same), []);
        // Of a worker that is suspended already nothing follows.
        assert_eq!(accuse(&all, &BTreeSet::from([EVE])), []);
    }

    #[test]
    fn bots_that_are_not_steady_accuse_no_worker() {
        let differences = [
            played(EVE, ANN, false, [1, 2]),
            played(EVE, BEN, false, [1, 2]),
            played(EVE, ANN, false, [2, 1]),
        ];
        // It is unknown whether they are steady.
        assert_eq!(blamed(&differences), []);
        let with = |other: ComparedMatch| [&differences[..], &[other]].concat();
        assert_eq!(blamed(&with(played(ANN, BEN, false, [1, 2]))), []);
        assert_eq!(blamed(&with(played(ANN, BEN, true, [1, 3]))), [], "bot 2 is not known");
        assert_eq!(blamed(&with(played(ANN, BEN, true, [1, 2]))), [EVE]);
    }

    #[test]
    fn workers_of_one_token_are_one_witness() {
        const TWIN: WorkerId = WorkerId(4);
        // What Eve and her twin say of each other's matches, and of Ann's.
        let mut compared = vec![
            played(EVE, TWIN, true, [1, 2]),
            played(EVE, ANN, false, [1, 2]),
            played(TWIN, ANN, false, [1, 2]),
            played(ANN, TWIN, false, [1, 2]),
        ];
        assert_eq!(blamed(&compared), [ANN], "as if they were two");
        let own = |worker: WorkerId| Some(TokenId(if worker == TWIN { EVE.0 } else { worker.0 }));
        for one in &mut compared {
            one.tokens = one.workers.map(own);
        }
        assert_eq!(blamed(&compared), []);
        // With one more who is honest both of them are found.
        let honest = played(ANN, BEN, true, [1, 2]);
        let with_ben = [EVE, TWIN].map(|worker| played(worker, BEN, false, [1, 2]));
        compared.extend([honest, with_ben[0].clone(), with_ben[1].clone()]);
        compared.extend([played(EVE, ANN, false, [1, 2]), with_ben[0].clone()]);
        for one in &mut compared {
            one.tokens = one.workers.map(own);
        }
        assert_eq!(blamed(&compared), [EVE, TWIN]);
    }

    #[test]
    fn workers_with_one_common_token_are_separate_witnesses() {
        let mut compared = vec![
            played(ANN, BEN, true, [1, 2]),
            played(EVE, ANN, false, [1, 2]),
            played(EVE, ANN, false, [1, 2]),
            played(BEN, EVE, false, [1, 2]),
        ];
        for one in &mut compared {
            one.tokens = [Some(TokenId(1)); 2];
        }
        assert_eq!(blamed(&compared), [EVE]);
    }

    #[test]
    fn two_plays_are_compared_in_all_that_is_reported() {
        let first = MatchResult {
            number: MatchNumber(0),
            wall_ms: 1,
            scores: vec![2, 0],
            transcript: Seed::of_text("what was said").0,
            forfeits: vec![None, Some(Forfeit::Clock)],
            bad_answers: vec![0, 1],
        };
        let same = MatchResult { wall_ms: 900, ..first.clone() };
        assert_eq!(difference(&first, &same), None);
        let differs = |second: MatchResult, how: &str| {
            let found = difference(&first, &second).unwrap();
            assert!(found.contains(how), "{found}");
        };
        let in_time = MatchResult { forfeits: Vec::new(), ..same.clone() };
        differs(in_time, &format!("seat 2 {FALSE_TIME_LOSS}"));
        let also_gone = vec![Some(Forfeit::Gone), Some(Forfeit::Clock)];
        differs(MatchResult { forfeits: also_gone, ..same.clone() }, "seat 1 forfeited");
        differs(MatchResult { scores: vec![0, 2], ..same.clone() }, "scores [2, 0], and [0, 2]");
        differs(MatchResult { bad_answers: Vec::new(), ..same.clone() }, "seat 2 gave other bad");
        let transcript = Seed::of_text("something else").0;
        differs(MatchResult { transcript, ..same }, "the transcripts differ");
    }
}
