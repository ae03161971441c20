//! Which matches are looked at a second time.
//!
//! Whether a match is among the settable share follows from the tournament's secret seed and the
//! match alone, so that no worker can know it beforehand and anybody can check it once the seed is
//! published. What is recounted besides follows from the result.

use std::collections::BTreeSet;

use arbiter_games::Seed;
use arbiter_proto::ids::{EditionId, MatchId, MatchNumber, WorkerId};
use sqlx::{Error, PgConnection, Result};
use time::OffsetDateTime;

use super::{Audit, Share};
use crate::db::match_audits::{self, AuditKind, Chosen};
use crate::db::results::Played;
use crate::db::tournaments;

/// How many results have to be counted together before one of them can be called odd.
const FEWEST: usize = 20;
/// Shares are counted in ten-thousandths.
const WHOLE: u64 = 10_000;

/// Whether a match is among this share of all matches of its tournament.
pub fn is_in_share(seed: Seed, kind: AuditKind, id: MatchId, share: Share) -> bool {
    if share.is_none() {
        return false;
    }
    let drawn = seed.derive_number(&format!("audit/{}/{id}", kind.as_str()));
    // 2^64 is no multiple of the whole: that favours some matches by less than one in 10^15.
    drawn % WHOLE < u64::from(share.of_ten_thousand())
}

/// Chooses matches of an edition that are to be looked at, of some that are counted together.
#[derive(Debug)]
pub struct Selection {
    seed: Seed,
    audit: Audit,
    edition: EditionId,
    seen: usize,
    greatest: Extreme,
    least: Extreme,
    chosen: BTreeSet<(MatchNumber, AuditKind)>,
}

impl Selection {
    /// Of matches of this edition, by the seed of its tournament.
    pub fn new(seed: Seed, audit: Audit, edition: EditionId) -> Self {
        let (greatest, least) = (Extreme::default(), Extreme::default());
        Self { seed, audit, edition, seen: 0, greatest, least, chosen: BTreeSet::new() }
    }

    /// Looks at a match that is counted.
    pub fn see(&mut self, played: &Played) {
        let Self { seed, audit, edition, .. } = *self;
        let number = played.number;
        let id = MatchId { edition, number };
        let drawn = |kind, share| is_in_share(seed, kind, id, share);
        if !audit.replay.is_none() {
            if is_irregular(played) || drawn(AuditKind::Recount, audit.replay) {
                self.chosen.insert((number, AuditKind::Recount));
            }
            self.seen += 1;
            self.greatest.see(number, played.scores.iter().copied().max());
            // The greatest of the negated, where the one number without a negative is the next.
            let negated = played.scores.iter().map(|number| number.saturating_neg());
            self.least.see(number, negated.max());
        }
        if drawn(AuditKind::Shadow, audit.shadow) {
            // Bots that play by chance differ from play to play, and both plays must be legal: the
            // record of the second one is recounted when it is reported.
            self.chosen.extend([(number, AuditKind::Shadow), (number, AuditKind::Recount)]);
        }
    }

    /// What is to be looked at.
    pub fn end(mut self) -> BTreeSet<(MatchNumber, AuditKind)> {
        if self.seen >= FEWEST {
            let odd = [self.greatest.alone, self.least.alone].into_iter().flatten();
            self.chosen.extend(odd.map(|number| (number, AuditKind::Recount)));
        }
        self.chosen
    }
}

/// What chooses the matches to be looked at of those that are being counted; nothing, if none is.
pub(super) async fn begin(db: &mut PgConnection, edition: EditionId) -> Result<Option<Selection>> {
    let tournament = match tournaments::of_edition(db, edition).await {
        // It was dropped.
        Err(Error::RowNotFound) => return Ok(None),
        found => found?,
    };
    // What cannot be read was written by a later version, whose leader looks after it.
    let audit = Audit::stored(&tournament.settings).ok();
    let audit = audit.filter(|audit| !(audit.replay.is_none() && audit.shadow.is_none()));
    Ok(audit.map(|audit| Selection::new(tournament.seed, audit, edition)))
}

/// Has those matches looked at that were chosen, in the transaction that counts them; `reported_by`
/// says which worker reported a match and when, unless it was taken over.
pub(super) async fn store(
    db: &mut PgConnection,
    edition: EditionId,
    selection: Selection,
    reported_by: impl Fn(MatchNumber) -> Option<(WorkerId, OffsetDateTime)>,
) -> Result<()> {
    let chosen = selection.end().into_iter().filter_map(|(number, kind)| {
        let (worker, reported_at) = reported_by(number)?;
        Some(Chosen { number, kind, worker, reported_at })
    });
    let chosen: Vec<_> = chosen.collect();
    if chosen.is_empty() {
        return Ok(());
    }
    match_audits::add(db, edition, &chosen).await
}

/// Whether a bot forfeited or answered badly.
fn is_irregular(played: &Played) -> bool {
    played.forfeits.0.iter().any(Option::is_some)
        || played.bad_answers.iter().flatten().any(|count| *count > 0)
}

/// Of many matches the one whose score stands alone: no other one has so great a number in it.
#[derive(Debug, Default)]
struct Extreme {
    most: Option<i64>,
    alone: Option<MatchNumber>,
}

impl Extreme {
    fn see(&mut self, number: MatchNumber, greatest: Option<i64>) {
        if greatest > self.most {
            (self.most, self.alone) = (greatest, Some(number));
        } else if greatest == self.most {
            self.alone = None;
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

    const EDITION: EditionId = EditionId(7);

    fn played(number: i64, scores: [i64; 2]) -> Played {
        Played {
            number: MatchNumber(number),
            seats: Seats(vec![Entrant(0), Entrant(1)]),
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
    fn shares_are_kept_and_secret() {
        let count = |text, kind, percent| {
            let share = Share::percent(percent);
            let id = |number| MatchId { edition: EDITION, number: MatchNumber(number) };
            let drawn = |number: &i64| is_in_share(Seed::of_text(text), kind, id(*number), share);
            (0..20_000).filter(drawn).collect::<Vec<_>>()
        };
        let found = count("spring", AuditKind::Recount, 5);
        // A thousand are expected; the standard deviation is 31.
        assert!((870..1130).contains(&found.len()), "{}", found.len());
        assert_eq!(found, count("spring", AuditKind::Recount, 5));
        assert_ne!(found, count("autumn", AuditKind::Recount, 5));
        assert_ne!(found, count("spring", AuditKind::Shadow, 5));
        assert!(count("spring", AuditKind::Shadow, 0).is_empty());
        assert_eq!(count("spring", AuditKind::Shadow, 100).len(), 20_000);
        // More of them are chosen where the share is greater, and none of them is left out.
        let more = count("spring", AuditKind::Recount, 6);
        assert!(found.iter().all(|number| more.contains(number)));
    }

    fn choose(seed: Seed, audit: Audit, counted: &[Played]) -> Vec<(i64, AuditKind)> {
        let mut selection = Selection::new(seed, audit, EDITION);
        for played in counted {
            selection.see(played);
        }
        selection.end().into_iter().map(|(number, kind)| (number.0, kind)).collect()
    }

    #[test]
    fn what_is_irregular_is_recounted_unless_nothing_is() {
        let mut counted: Vec<_> = (0..3).map(|number| played(number, [2, 0])).collect();
        counted[1].forfeits = Forfeits(vec![None, Some(Forfeit::Clock)]);
        counted[2].bad_answers = Some(vec![0, 1]);
        let few = Audit { replay: "0.01%".parse().unwrap(), shadow: Share::percent(0) };
        let seed = Seed::of_text("spring");
        let recounts = [(1, AuditKind::Recount), (2, AuditKind::Recount)];
        assert_eq!(choose(seed, few, &counted), recounts);
        assert_eq!(choose(seed, audit(0, 0), &counted), []);
        // What is played again is recounted as well.
        for audit in [audit(100, 100), audit(0, 100)] {
            assert_eq!(choose(seed, audit, &counted).len(), 6);
        }
    }

    #[test]
    fn a_score_that_stands_alone_is_odd() {
        let seed = Seed::of_text("spring");
        let few = Audit { replay: "0.01%".parse().unwrap(), shadow: Share::percent(0) };
        let mut counted: Vec<_> = (0..20).map(|number| played(number, [5, -5])).collect();
        assert_eq!(choose(seed, few, &counted), []);
        counted[3].scores = vec![900, -5];
        counted[8].scores = vec![5, i64::MIN];
        let odd = [(3, AuditKind::Recount), (8, AuditKind::Recount)];
        assert_eq!(choose(seed, few, &counted), odd);
        // Two with the same score are no oddity, and neither is one of a few.
        counted[4].scores = vec![900, -5];
        assert_eq!(choose(seed, few, &counted), odd[1..]);
        assert_eq!(choose(seed, few, &counted[..10]), []);
    }
}
