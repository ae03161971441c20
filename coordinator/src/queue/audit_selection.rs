//! Selects matches for audits.
//!
//! The configured share is drawn from the tournament's secret seed and the match's number, so no
//! worker can predict it. Everyone can verify it after the seed is published. Other matches are
//! selected by their results.

use std::collections::BTreeSet;

use arbiter_games::Seed;
use arbiter_proto::ids::{MatchId, MatchNumber, TournamentId, WorkerId};
use sqlx::{PgConnection, Result};
use time::OffsetDateTime;

use super::{Audit, Share};
use crate::db::match_audits::{self, AuditKind, SelectedMatch};
use crate::db::results::SeatedResult;
use crate::db::tournaments;

/// Outliers are selected only among at least this many results.
const MIN_RESULTS: usize = 20;
/// Shares are in ten-thousandths.
const WHOLE: u64 = 10_000;

/// Whether a match is in this share of all matches of its tournament, whose committed seed is
/// `seed`.
pub fn is_in_share(seed: Seed, kind: AuditKind, id: MatchId, share: Share) -> bool {
    if share.is_none() {
        return false;
    }
    let number = seed.derive_number(&format!("audit/{}/{}", kind.as_str(), id.number));
    // 2^64 is not a multiple of `WHOLE`. This favours some matches by less than one in 10^15.
    number % WHOLE < u64::from(share.of_ten_thousand())
}

/// Selects matches for audits among those of a tournament that are counted together.
#[derive(Debug)]
pub struct Selection {
    seed: Seed,
    audit: Audit,
    tournament: TournamentId,
    results: usize,
    greatest: Extreme,
    least: Extreme,
    selected: BTreeSet<(MatchNumber, AuditKind)>,
}

impl Selection {
    /// A selection in this tournament, by its committed seed.
    pub fn new(seed: Seed, audit: Audit, tournament: TournamentId) -> Self {
        let greatest = Extreme::default();
        let least = Extreme::default();
        Self { seed, audit, tournament, results: 0, greatest, least, selected: BTreeSet::new() }
    }

    /// Adds a counted match.
    pub fn add(&mut self, played: &SeatedResult) {
        let Self { seed, audit, tournament, .. } = *self;
        let number = played.number;
        let id = MatchId { tournament, number };
        let is_drawn = |kind, share| is_in_share(seed, kind, id, share);
        if !audit.replay.is_none() {
            if is_irregular(played) || is_drawn(AuditKind::Recount, audit.replay) {
                self.selected.insert((number, AuditKind::Recount));
            }
            self.results += 1;
            self.greatest.add(number, played.scores.iter().copied().max());
            // The least number is found as the greatest negated number. `i64::MIN` saturates.
            let negated = played.scores.iter().map(|number| number.saturating_neg());
            self.least.add(number, negated.max());
        }
        if is_drawn(AuditKind::Shadow, audit.shadow) {
            // Random bots play differently in both plays, but both plays must be legal. The record
            // of the second play is recounted when it is reported.
            self.selected.extend([(number, AuditKind::Shadow), (number, AuditKind::Recount)]);
        }
    }

    /// The selected matches.
    pub fn end(mut self) -> BTreeSet<(MatchNumber, AuditKind)> {
        if self.results >= MIN_RESULTS {
            let outliers = [self.greatest.unique, self.least.unique].into_iter().flatten();
            self.selected.extend(outliers.map(|number| (number, AuditKind::Recount)));
        }
        self.selected
    }
}

/// The selection in a tournament; `None` if it has no audits or was deleted.
pub(super) async fn begin(db: &mut PgConnection, id: TournamentId) -> Result<Option<Selection>> {
    let Some(tournament) = tournaments::get(db, id).await? else { return Ok(None) };
    // Unreadable settings are from a later version. A leader of that version runs its audits.
    let audit = Audit::stored(&tournament.settings).ok();
    let audit = audit.filter(|audit| !(audit.replay.is_none() && audit.shadow.is_none()));
    Ok(audit.map(|audit| Selection::new(tournament.seed, audit, id)))
}

/// Stores the selected matches, in the transaction that counts them. `reported_by` returns the
/// worker and the time of a report.
pub(super) async fn store(
    db: &mut PgConnection,
    tournament: TournamentId,
    selection: Selection,
    reported_by: impl Fn(MatchNumber) -> Option<(WorkerId, OffsetDateTime)>,
) -> Result<()> {
    let selected = selection.end().into_iter().filter_map(|(number, kind)| {
        let (worker, reported_at) = reported_by(number)?;
        Some(SelectedMatch { number, kind, worker, reported_at })
    });
    let selected: Vec<_> = selected.collect();
    if selected.is_empty() {
        return Ok(());
    }
    match_audits::add(db, tournament, &selected).await
}

/// Whether a bot forfeited or answered badly.
fn is_irregular(played: &SeatedResult) -> bool {
    played.forfeits.0.iter().any(Option::is_some)
        || played.bad_answers.iter().flatten().any(|count| *count > 0)
}

/// Finds the match with the greatest number in its score, if no other match has this number.
#[derive(Debug, Default)]
struct Extreme {
    most: Option<i64>,
    unique: Option<MatchNumber>,
}

impl Extreme {
    fn add(&mut self, number: MatchNumber, greatest: Option<i64>) {
        if greatest > self.most {
            self.most = greatest;
            self.unique = Some(number);
        } else if greatest == self.most {
            self.unique = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use arbiter_games::Forfeit;
    use arbiter_ranking::Entrant;

    use super::*;
    use crate::db::matches::Seats;
    use crate::db::results::Forfeits;

    const TOURNAMENT: TournamentId = TournamentId(7);

    fn played(number: i64, scores: [i64; 2]) -> SeatedResult {
        SeatedResult {
            number: MatchNumber(number),
            seats: Seats(vec![Entrant(1), Entrant(2)]),
            carried: None,
            scores: scores.to_vec(),
            forfeits: Forfeits::default(),
            bad_answers: None,
        }
    }

    fn audit(replay: u8, shadow: u8) -> Audit {
        Audit { replay: Share::percent(replay), shadow: Share::percent(shadow) }
    }

    #[test]
    fn shares_are_exact_and_depend_on_the_seed() {
        let count = |text, kind, percent| {
            let share = Share::percent(percent);
            let id = |number| MatchId { tournament: TOURNAMENT, number: MatchNumber(number) };
            let is_drawn =
                |number: &i64| is_in_share(Seed::of_text(text), kind, id(*number), share);
            (0..20_000).filter(is_drawn).collect::<Vec<_>>()
        };
        let five_percent = count("spring", AuditKind::Recount, 5);
        // A thousand are expected; the standard deviation is 31.
        assert!((870..1130).contains(&five_percent.len()), "{}", five_percent.len());
        assert_eq!(five_percent, count("spring", AuditKind::Recount, 5));
        assert_ne!(five_percent, count("autumn", AuditKind::Recount, 5));
        assert_ne!(five_percent, count("spring", AuditKind::Shadow, 5));
        assert!(count("spring", AuditKind::Shadow, 0).is_empty());
        assert_eq!(count("spring", AuditKind::Shadow, 100).len(), 20_000);
        // A greater share selects the same matches and some more.
        let six_percent = count("spring", AuditKind::Recount, 6);
        assert!(five_percent.iter().all(|number| six_percent.contains(number)));
    }

    fn choose(seed: Seed, audit: Audit, counted: &[SeatedResult]) -> Vec<(i64, AuditKind)> {
        let mut selection = Selection::new(seed, audit, TOURNAMENT);
        for played in counted {
            selection.add(played);
        }
        selection.end().into_iter().map(|(number, kind)| (number.0, kind)).collect()
    }

    #[test]
    fn irregular_matches_are_recounted_unless_audits_are_off() {
        let mut counted: Vec<_> = (0..3).map(|number| played(number, [2, 0])).collect();
        counted[1].forfeits = Forfeits(vec![None, Some(Forfeit::Clock)]);
        counted[2].bad_answers = Some(vec![0, 1]);
        let few = Audit { replay: "0.01%".parse().unwrap(), shadow: Share::percent(0) };
        let seed = Seed::of_text("spring");
        let recounts = [(1, AuditKind::Recount), (2, AuditKind::Recount)];
        assert_eq!(choose(seed, few, &counted), recounts);
        assert_eq!(choose(seed, audit(0, 0), &counted), []);
        // Shadow matches are recounted as well.
        for audit in [audit(100, 100), audit(0, 100)] {
            assert_eq!(choose(seed, audit, &counted).len(), 6);
        }
    }

    #[test]
    fn a_unique_extreme_score_is_an_outlier() {
        let seed = Seed::of_text("spring");
        let few = Audit { replay: "0.01%".parse().unwrap(), shadow: Share::percent(0) };
        let mut counted: Vec<_> = (0..20).map(|number| played(number, [5, -5])).collect();
        assert_eq!(choose(seed, few, &counted), []);
        counted[3].scores = vec![900, -5];
        counted[8].scores = vec![5, i64::MIN];
        let outliers = [(3, AuditKind::Recount), (8, AuditKind::Recount)];
        assert_eq!(choose(seed, few, &counted), outliers);
        // Two matches with the same score are not outliers, and neither is a match among few.
        counted[4].scores = vec![900, -5];
        assert_eq!(choose(seed, few, &counted), outliers[1..]);
        assert_eq!(choose(seed, few, &counted[..10]), []);
    }
}
