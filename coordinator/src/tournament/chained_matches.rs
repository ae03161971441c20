//! The matches of a new edition where bots leave files for later matches.
//!
//! A match is still the one of the edition before if its bots are the same, and the matches that
//! leave it their files are. Every other match is added. Before it is leased it is compared with
//! the stored matches, whose files are known then ([`crate::db::lots::find_stored`]).

use std::collections::{BTreeSet, HashMap, HashSet};

use arbiter_proto::ids::{LotNumber, MatchNumber};
use sqlx::{PgConnection, Result};

use super::TournamentFile;
use super::lot_size;
use super::planner::score_len;
use crate::db::editions::EditionScope;
use crate::db::lots::{self, InitialLot, LotState, NewLot, Order};
use crate::db::matches::{self, Match, MatchKey};
use crate::queue::{Extension, PlanError, extend};

/// Number of matches that are read at a time.
const PAGE: u32 = 10_000;

/// A match of the edition before.
#[derive(Clone, Debug)]
struct Former {
    number: MatchNumber,
    state_from: Option<Vec<Option<i64>>>,
}

/// The matches of a new edition, by what happens to them.
#[derive(Clone, Debug, Default)]
pub(super) struct ChainedMatches {
    /// The matches to add, with their numbers.
    added: Vec<Match>,
    /// Matches of the edition before that stay, and that added matches wait for.
    awaited: BTreeSet<MatchNumber>,
    /// Matches of the edition before that leave, in order.
    pub(super) gone: Vec<MatchNumber>,
    /// How many matches the edition consists of.
    total: i64,
}

impl ChainedMatches {
    /// Compares a plan, whose matches refer to each other by their places, with the matches of the
    /// edition `before` that are not in `void`. The first added match gets the number `next`.
    pub(super) async fn new(
        db: &mut PgConnection,
        planned: impl Iterator<Item = Match>,
        before: Option<EditionScope>,
        void: &[MatchNumber],
        next: i64,
    ) -> Result<Self> {
        let void: HashSet<_> = void.iter().copied().collect();
        let mut former = match before {
            Some(before) => former_matches(db, before).await?,
            None => HashMap::new(),
        };
        let mut all = Self::default();
        let mut leaving: BTreeSet<_> = former.values().map(|row| row.number).collect();
        let mut numbers: Vec<MatchNumber> = Vec::new();
        let mut next = next;
        for planned in planned {
            let number_of = |place: i64| {
                let place = usize::try_from(place).expect("a place is not negative");
                numbers[place].0
            };
            let before = planned.state_from.iter().flatten();
            let state_from: Vec<_> = before.map(|place| place.map(number_of)).collect();
            let same = former.remove(&planned.key()).filter(|row| {
                row.state_from.as_ref() == Some(&state_from) && !void.contains(&row.number)
            });
            if let Some(row) = same {
                leaving.remove(&row.number);
                numbers.push(row.number);
                continue;
            }
            let number = MatchNumber(next);
            next += 1;
            numbers.push(number);
            all.added.push(Match { number, state_from: Some(state_from), ..planned });
        }
        let first = all.added.first().map_or(next, |planned| planned.number.0);
        let before = all.added.iter().flat_map(|planned| planned.state_from.iter().flatten());
        let earlier = before.flatten().copied().filter(|number| *number < first);
        all.awaited = earlier.map(MatchNumber).collect();
        all.gone = leaving.into_iter().collect();
        all.total = i64::try_from(numbers.len()).expect("no plan is that long");
        Ok(all)
    }

    /// Stores the added matches, their lots and the order of the lots, and extends the edition.
    /// With `checks`, earlier editions may have had the matches.
    pub(super) async fn store(
        self,
        db: &mut PgConnection,
        file: &TournamentFile,
        edition: EditionScope,
        checks: bool,
    ) -> Result<(), PlanError> {
        let tournament = edition.tournament;
        // The lots that are not reported stay so until the commit, which counts them as blockers.
        let awaited: Vec<_> = self.awaited.iter().copied().collect();
        let states = lots::lock_lots(&mut *db, tournament, &awaited).await?;
        let is_reported =
            |state: &LotState| matches!(state, LotState::Reported | LotState::Counted);
        let reported = states.iter().filter(|(_, state)| is_reported(state));
        let reported: HashSet<_> = reported.map(|(number, _)| number.0).collect();
        let expected_ms = lot_size::of_lot(1, file.expected_ms());
        let mut new_lots = Vec::new();
        let mut order = Vec::new();
        for planned in &self.added {
            let before: BTreeSet<_> =
                planned.state_from.iter().flatten().flatten().copied().collect();
            let after = LotNumber(planned.number.0);
            order.extend(before.iter().map(|before| Order { before: LotNumber(*before), after }));
            let blockers = before.iter().filter(|before| !reported.contains(before)).count();
            let mut lot = InitialLot::from(NewLot {
                number: after,
                count: 1,
                expected_ms,
                score_len: score_len(file, planned.seats.0.len()),
                blockers: i16::try_from(blockers).expect("at most one a seat"),
                has_dependents: true,
            });
            if checks && lot.state == LotState::Pending {
                lot.state = LotState::Checking;
            }
            new_lots.push(lot);
        }
        let added = matches::copy_in(&mut *db, tournament, self.added.into_iter()).await?;
        let extension = Extension {
            lots: new_lots.into_iter(),
            order: order.into_iter(),
            end: edition.end + added.cast_signed(),
            from: edition.from,
            matches: self.total,
            open_ended: false,
        };
        extend(db, edition, extension).await
    }
}

/// The matches of an edition by their keys, without the files that they begin with.
async fn former_matches(
    db: &mut PgConnection,
    edition: EditionScope,
) -> Result<HashMap<MatchKey, Former>> {
    let mut all = HashMap::new();
    let mut first = MatchNumber(0);
    loop {
        let page = matches::planned(&mut *db, edition, first, None, PAGE).await?;
        let Some(last) = page.last() else { return Ok(all) };
        first = MatchNumber(last.number.0 + 1);
        for planned in page {
            let key = planned.key();
            let Match { number, state_from, .. } = planned;
            all.insert(key, Former { number, state_from });
        }
    }
}
