//! Shadow matches: some matches are played again by another worker, and both plays are compared.
//!
//! A shadow match is leased by the same messages as a lot. The tournament in its lease marks it
//! ([`arbiter_proto::ids::Lease::shadow`]). It is not in the queue of lots, so its result cannot
//! count. A coordinator without support for shadow matches refuses its report as late.
//!
//! Deterministic bots reply the same both times, but it is unknown which bots are deterministic. In
//! the judgement of one worker, a bot is *steady* if all plays by pairs of other workers agree, and
//! there is at least one. If all bots of a match are steady and its two transcripts differ, one of
//! the two workers is dishonest: the worker that differs from several others.

use std::collections::{BTreeMap, BTreeSet};

use arbiter_games::{Forfeit, MAX_SEATS};
use arbiter_proto::ids::{MatchId, MatchName, TokenId, WorkerId};
use sqlx::PgPool;
use time::OffsetDateTime;

use super::record_replay::Finding;
use super::{AuditError, compare, planned_match};
use crate::db::match_audits::{AuditState, FALSE_TIME_LOSS};
use crate::db::results::MatchResult;
use crate::db::shadows::{self, ComparedMatch};
use crate::db::tournaments;
use crate::db::{editions, played_matches};
use crate::queue::{Report, ReportStatus};
use crate::tournament::lot_assignment::AssignmentBuilder;
use crate::worker_suspension;

/// Minimum number of different matches of steady bots that make a worker suspect, ...
const MIN_DIFFERENCES: usize = 3;
/// ... and minimum number of other parties from which the worker differs.
const MIN_PARTNERS: usize = 2;

/// The most important difference between the two plays, if there is one.
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
        return Some(format!("seat {} gave other bad replies the second time", seat + 1));
    }
    (first.transcript != second.transcript).then(|| "the transcripts differ".to_owned())
}

/// Compares the second play of a match with the first, and returns the status of its report. If the
/// record of the second play contradicts its report, its worker is suspended.
pub(crate) async fn check_report(
    pool: &PgPool,
    assignments: &AssignmentBuilder,
    report: &Report,
    now: OffsetDateTime,
) -> Result<ReportStatus, AuditError> {
    let Report { lease, worker, .. } = report;
    let (Some(id), [second]) = (lease.shadow(), &report.results[..]) else {
        return Ok(ReportStatus::Malformed);
    };
    // The record of a worker without the lease is not replayed.
    if !shadows::is_held(pool, *lease, *worker).await? {
        return Ok(ReportStatus::Late);
    }
    // The tournament may have been deleted meanwhile.
    let Some(tournament) = tournaments::get(pool, id.tournament).await? else {
        return Ok(ReportStatus::Late);
    };
    let Some(first) = played_matches::find(pool, id).await? else { return Ok(ReportStatus::Late) };
    let first = first.result;
    if second.number != id.number || second.scores.len() != first.scores.len() {
        return Ok(ReportStatus::Malformed);
    }
    let (state, reason) = match record_contradiction(pool, assignments, id, second, report).await? {
        Some(reason) => {
            let reason = format!("the record of the second play is false: {reason}");
            let name = MatchName { tournament: tournament.name, number: id.number };
            worker_suspension::suspend(pool, *worker, &format!("match {name}: {reason}"), now)
                .await?;
            (AuditState::Skipped, Some(reason))
        }
        None => match difference(&first, second) {
            Some(reason) => (AuditState::Disagreed, Some(reason)),
            None => (AuditState::Agreed, None),
        },
    };
    let has_ended = shadows::end(pool, *lease, *worker, (state, reason.as_deref())).await?;
    Ok(if has_ended { ReportStatus::Accepted } else { ReportStatus::Late })
}

/// The contradiction between the report of the second play and its record, if there is one.
async fn record_contradiction(
    pool: &PgPool,
    assignments: &AssignmentBuilder,
    id: MatchId,
    second: &MatchResult,
    report: &Report,
) -> Result<Option<String>, AuditError> {
    let Some((_, record)) = report.records.first() else { return Ok(None) };
    let reported = (report.level.as_str().to_owned(), second.clone());
    let edition = editions::adding(pool, id).await?;
    let planned = planned_match(pool, assignments, edition, id).await?;
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

/// The workers that these comparisons show to be dishonest, without suspended ones.
pub fn accuse(compared: &[ComparedMatch], suspended: &BTreeSet<WorkerId>) -> Vec<Accused> {
    let parties = Parties::of(compared);
    let mut excluded = suspended.clone();
    let mut accused = Vec::new();
    // Differences from a dishonest worker are no evidence against others, so each accused worker is
    // excluded before the next search.
    while let Some(suspect) = strongest_suspect(compared, &parties, &excluded) {
        excluded.insert(suspect.worker);
        accused.push(suspect);
    }
    accused
}

/// The party of each worker. Workers with the same token may act together, so they are one party.
/// If all workers have the same token, its owner trusts them all, and each is a separate party.
#[derive(Debug)]
struct Parties(BTreeMap<WorkerId, i32>);

impl Parties {
    fn of(compared: &[ComparedMatch]) -> Self {
        let tokens: BTreeSet<_> = compared.iter().flat_map(|play| play.tokens).collect();
        let workers = compared.iter().flat_map(|play| play.workers.into_iter().zip(play.tokens));
        let party = |(worker, token): (WorkerId, Option<TokenId>)| match token {
            Some(token) if tokens.len() > 1 => (worker, token.0),
            // The numbers of tokens are positive, so negative numbers identify workers.
            _ => (worker, -worker.0),
        };
        Self(workers.map(party).collect())
    }

    fn party(&self, worker: WorkerId) -> Option<i32> {
        self.0.get(&worker).copied()
    }

    /// Whether two workers belong to different parties.
    fn is_between(&self, [first, second]: [WorkerId; 2]) -> bool {
        self.party(first) != self.party(second)
    }
}

/// The worker with the most evidence against it, if there is enough and no other worker has as
/// much. Plays of `excluded` workers are no evidence.
fn strongest_suspect(
    compared: &[ComparedMatch],
    parties: &Parties,
    excluded: &BTreeSet<WorkerId>,
) -> Option<Accused> {
    let plays: Vec<_> = compared
        .iter()
        .filter(|play| parties.is_between(play.workers))
        .filter(|play| play.workers.iter().all(|worker| !excluded.contains(worker)))
        .collect();
    let workers: BTreeSet<_> = plays.iter().flat_map(|play| play.workers).collect();
    let evidence = workers.into_iter().map(|worker| {
        let steady = steady_bots(&plays, parties, worker);
        let differing = plays.iter().filter(|play| {
            !play.agreed
                && play.workers.contains(&worker)
                && play.bots.iter().all(|bot| steady.contains(bot))
        });
        let partners: Vec<_> = differing
            .flat_map(|play| play.workers.into_iter().filter(|partner| *partner != worker))
            .collect();
        let others: BTreeSet<_> = partners.iter().map(|other| parties.party(*other)).collect();
        Accused { worker, differences: partners.len(), others: others.len() }
    });
    let weight = |accused: &Accused| (accused.others, accused.differences);
    let mut suspects: Vec<_> = evidence
        .filter(|accused| accused.differences >= MIN_DIFFERENCES && accused.others >= MIN_PARTNERS)
        .collect();
    suspects.sort_by_key(|accused| std::cmp::Reverse(weight(accused)));
    match &suspects[..] {
        // If two workers are equally suspect, either may be honest.
        [first, second, ..] if weight(first) == weight(second) => None,
        [first, ..] => Some(first.clone()),
        [] => None,
    }
}

/// The bots whose plays by other parties than the worker's always agreed, at least one play each.
fn steady_bots(plays: &[&ComparedMatch], parties: &Parties, worker: WorkerId) -> BTreeSet<i32> {
    let mut bots: BTreeMap<i32, bool> = BTreeMap::new();
    let party = parties.party(worker);
    let by_others =
        |play: &&&ComparedMatch| play.workers.iter().all(|other| parties.party(*other) != party);
    for play in plays.iter().filter(by_others) {
        for bot in &play.bots {
            *bots.entry(*bot).or_insert(true) &= play.agreed;
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

    fn accused_workers(compared: &[ComparedMatch]) -> Vec<WorkerId> {
        let accused = accuse(compared, &BTreeSet::new());
        accused.into_iter().map(|accused| accused.worker).collect()
    }

    #[test]
    fn a_worker_that_differs_from_several_others_is_accused() {
        let honest = played(ANN, BEN, true, [1, 2]);
        let with_ann = played(EVE, ANN, false, [1, 2]);
        let with_ben = played(BEN, EVE, false, [1, 2]);
        let differences = [with_ann.clone(), with_ann.clone(), with_ben.clone()];
        let all: Vec<_> = [&[honest.clone()][..], &differences].concat();
        assert_eq!(accused_workers(&all), [EVE]);
        // Two differences are too few. Three differences from one worker may be that worker's
        // fault.
        assert_eq!(accused_workers(&[honest.clone(), with_ann.clone(), with_ben]), []);
        let same = [honest, with_ann.clone(), with_ann.clone(), with_ann];
        assert_eq!(accused_workers(&same), []);
        // Plays of a suspended worker are no evidence.
        assert_eq!(accuse(&all, &BTreeSet::from([EVE])), []);
    }

    #[test]
    fn matches_of_bots_that_are_not_steady_are_no_evidence() {
        let differences = [
            played(EVE, ANN, false, [1, 2]),
            played(EVE, BEN, false, [1, 2]),
            played(EVE, ANN, false, [2, 1]),
        ];
        // No play of other workers shows that the bots are steady.
        assert_eq!(accused_workers(&differences), []);
        let with = |other: ComparedMatch| [&differences[..], &[other]].concat();
        assert_eq!(accused_workers(&with(played(ANN, BEN, false, [1, 2]))), []);
        assert_eq!(
            accused_workers(&with(played(ANN, BEN, true, [1, 3]))),
            [],
            "nothing shows that bot 2 is steady"
        );
        assert_eq!(accused_workers(&with(played(ANN, BEN, true, [1, 2]))), [EVE]);
    }

    #[test]
    fn workers_of_one_token_are_one_witness() {
        const TWIN: WorkerId = WorkerId(4);
        // Eve and her twin agree with each other, and both differ from Ann.
        let mut compared = vec![
            played(EVE, TWIN, true, [1, 2]),
            played(EVE, ANN, false, [1, 2]),
            played(TWIN, ANN, false, [1, 2]),
            played(ANN, TWIN, false, [1, 2]),
        ];
        assert_eq!(accused_workers(&compared), [ANN], "Eve and her twin count as two witnesses");
        let token = |worker: WorkerId| Some(TokenId(if worker == TWIN { EVE.0 } else { worker.0 }));
        for play in &mut compared {
            play.tokens = play.workers.map(token);
        }
        assert_eq!(accused_workers(&compared), []);
        // Another honest worker gives enough evidence against both.
        let honest = played(ANN, BEN, true, [1, 2]);
        let with_ben = [EVE, TWIN].map(|worker| played(worker, BEN, false, [1, 2]));
        compared.extend([honest, with_ben[0].clone(), with_ben[1].clone()]);
        compared.extend([played(EVE, ANN, false, [1, 2]), with_ben[0].clone()]);
        for play in &mut compared {
            play.tokens = play.workers.map(token);
        }
        assert_eq!(accused_workers(&compared), [EVE, TWIN]);
    }

    #[test]
    fn workers_with_one_common_token_are_separate_witnesses() {
        let mut compared = vec![
            played(ANN, BEN, true, [1, 2]),
            played(EVE, ANN, false, [1, 2]),
            played(EVE, ANN, false, [1, 2]),
            played(BEN, EVE, false, [1, 2]),
        ];
        for play in &mut compared {
            play.tokens = [Some(TokenId(1)); 2];
        }
        assert_eq!(accused_workers(&compared), [EVE]);
    }

    #[test]
    fn two_plays_are_compared_in_all_reported_fields() {
        let first = MatchResult {
            number: MatchNumber(0),
            wall_ms: 1,
            scores: vec![2, 0],
            transcript: Seed::of_text("replies").0,
            forfeits: vec![None, Some(Forfeit::Clock)],
            bad_answers: vec![0, 1],
        };
        let same = MatchResult { wall_ms: 900, ..first.clone() };
        assert_eq!(difference(&first, &same), None);
        let differs = |second: MatchResult, expected: &str| {
            let difference = difference(&first, &second).unwrap();
            assert!(difference.contains(expected), "{difference}");
        };
        let in_time = MatchResult { forfeits: Vec::new(), ..same.clone() };
        differs(in_time, &format!("seat 2 {FALSE_TIME_LOSS}"));
        let also_gone = vec![Some(Forfeit::Gone), Some(Forfeit::Clock)];
        differs(MatchResult { forfeits: also_gone, ..same.clone() }, "seat 1 forfeited");
        differs(MatchResult { scores: vec![0, 2], ..same.clone() }, "scores [2, 0], and [0, 2]");
        differs(MatchResult { bad_answers: Vec::new(), ..same.clone() }, "seat 2 gave other bad");
        let transcript = Seed::of_text("other replies").0;
        differs(MatchResult { transcript, ..same }, "the transcripts differ");
    }
}
