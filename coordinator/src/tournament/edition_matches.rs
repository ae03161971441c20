//! The matches of a new edition: which ones it shares with earlier editions, and which ones it
//! adds.
//!
//! # How little is written
//!
//! A new edition begins with the matches of the edition before. Its plan and the plan before are
//! compared without the database ([`super::plan_difference`]): each is a function of its bots and
//! its history. Then only the difference is written: matches that leave become absent and lose
//! their lots, and each match that joins is looked up by its seed key and seats, in case an earlier
//! edition had it. If so, it comes back with its result, otherwise it is added. The standings begin
//! as those of the edition before, without the results that left and with those that came back.
//!
//! Some plans cannot be compared: the seed, the rules or nearly the whole plan changed, or the
//! matches depend on results. Then all matches leave, and those that the new plan needs come back.

use std::collections::{HashMap, HashSet};

use arbiter_games::Game;
use arbiter_proto::ids::MatchNumber;
use arbiter_ranking::{Entrant, Tallies};
use sqlx::{PgConnection, Result};

use super::{TournamentFile, lot_size};
use crate::db::editions::{Edition, EditionScope};
use crate::db::lots;
use crate::db::matches::{self, Match, MatchKey, StoredMatch};
use crate::db::{absences, editions, results, standings};
use crate::queue::{Extension, InitialLot, PlanError, extend};

/// Number of matches that are looked up at a time.
const CHUNK: usize = 20_000;

/// Adds the matches of a plan to an edition.
#[derive(Debug)]
pub(super) struct EditionMatches<'a> {
    file: &'a TournamentFile,
    edition: EditionScope,
    /// Whether an earlier edition may have some of the matches.
    may_be_stored: bool,
    /// The first match that this value adds, and the number of the next one.
    first: i64,
    next: i64,
    /// The added matches by their number of seats: seats, and how many consecutive matches.
    runs: Vec<(usize, u64)>,
    /// The edition has no match before this one.
    from: i64,
    /// Number of matches that the edition gets.
    members: i64,
    /// Results that came back.
    returned: Tallies,
}

impl<'a> EditionMatches<'a> {
    /// The edition gets `members` matches of the edition before, and no others yet.
    pub(super) async fn new(
        db: &mut PgConnection,
        file: &'a TournamentFile,
        edition: EditionScope,
        members: i64,
    ) -> Result<Self> {
        Ok(Self {
            file,
            edition,
            may_be_stored: editions::has_comparable(db, edition).await?,
            first: edition.end,
            next: edition.end,
            runs: Vec::new(),
            from: edition.from,
            members,
            returned: Tallies::new(file.game()),
        })
    }

    /// Adds matches that are not in the edition yet, in the order of their plan. Those that are
    /// stored come back.
    pub(super) async fn add(
        &mut self,
        db: &mut PgConnection,
        planned: impl Iterator<Item = Match>,
    ) -> Result<()> {
        let mut planned = planned.peekable();
        if !self.may_be_stored {
            let tournament = self.edition.tournament;
            let added = planned.map(|planned| self.number(planned));
            return matches::copy_in(db, tournament, added).await.map(drop);
        }
        while planned.peek().is_some() {
            let chunk: Vec<_> = planned.by_ref().take(CHUNK).collect();
            self.add_chunk(db, chunk).await?;
        }
        Ok(())
    }

    async fn add_chunk(&mut self, db: &mut PgConnection, chunk: Vec<Match>) -> Result<()> {
        let mut stored: HashMap<MatchKey, StoredMatch> = HashMap::new();
        for found in matches::find_stored(&mut *db, self.edition, &chunk).await? {
            stored.entry(found.planned.key()).or_insert(found);
        }
        let mut returning = Vec::new();
        let mut new = Vec::new();
        for planned in chunk {
            match stored.remove(&planned.key()) {
                Some(found) => returning.push(found),
                None => new.push(planned),
            }
        }
        self.bring_back(db, returning).await?;
        let added: Vec<_> = new.into_iter().map(|planned| self.number(planned)).collect();
        matches::copy_in(db, self.edition.tournament, added.into_iter()).await.map(drop)
    }

    /// Gives an added match its number.
    fn number(&mut self, planned: Match) -> Match {
        let number = MatchNumber(self.next);
        self.next += 1;
        self.members += 1;
        match self.runs.last_mut() {
            Some((seats, count)) if *seats == planned.seats.0.len() => *count += 1,
            _ => self.runs.push((planned.seats.0.len(), 1)),
        }
        Match { number, ..planned }
    }

    /// Brings stored matches back into the edition.
    async fn bring_back(
        &mut self,
        db: &mut PgConnection,
        mut returning: Vec<StoredMatch>,
    ) -> Result<()> {
        if returning.is_empty() {
            return Ok(());
        }
        returning.sort_unstable_by_key(|found| found.planned.number);
        self.from = self.from.min(returning[0].planned.number.0);
        self.members += i64::try_from(returning.len()).expect("it is a chunk");
        let all: Vec<_> = returning.iter().map(|found| found.planned.number).collect();
        absences::end(&mut *db, self.edition, &all).await?;
        let counted: Vec<_> = returning.iter().filter(|found| found.is_counted).collect();
        let counted: Vec<_> = counted.into_iter().map(|found| found.planned.number).collect();
        for played in results::of_matches(&mut *db, self.edition.tournament, &counted).await? {
            self.returned.add(&played.outcome());
        }
        let expected_ms = lot_size::of_lot(1, self.file.expected_ms());
        let unplayed = returning.iter().filter(|found| !found.is_played);
        let mut by_seats: HashMap<usize, Vec<MatchNumber>> = HashMap::new();
        for found in unplayed {
            by_seats.entry(found.planned.seats.0.len()).or_default().push(found.planned.number);
        }
        for (seats, numbers) in by_seats {
            let score_len = super::planner::score_len(self.file, seats);
            let tournament = self.edition.tournament;
            lots::enqueue(&mut *db, tournament, &numbers, expected_ms, score_len).await?;
        }
        Ok(())
    }

    /// Counts the results that came back, stores the lots of the added matches, and extends the
    /// edition.
    pub(super) async fn finish(
        self,
        db: &mut PgConnection,
        open_ended: bool,
    ) -> Result<(), PlanError> {
        let edition = self.edition.id;
        standings::add(&mut *db, edition, self.returned.by_entrant()).await?;
        editions::count(&mut *db, edition, self.returned.matches(), 0).await?;
        let extension = Extension {
            lots: self.lots(),
            order: std::iter::empty(),
            end: self.next,
            from: self.from,
            matches: self.members,
            open_ended,
        };
        extend(db, self.edition, extension).await
    }

    fn lots(&self) -> impl Iterator<Item = InitialLot> {
        let total = (self.next - self.first).unsigned_abs();
        let expected_ms = self.file.expected_ms();
        let per_lot = lot_size::per_lot(total, expected_ms);
        let mut first = self.first;
        self.runs.iter().flat_map(move |(seats, count)| {
            let score_len = super::planner::score_len(self.file, *seats);
            let run = lot_size::lots(first, *count, per_lot, expected_ms, score_len);
            first += i64::try_from(*count).expect("no plan is that long");
            run.map(InitialLot::from)
        })
    }
}

/// Takes matches out of a new edition whose standings are still empty: all results but theirs are
/// those of the edition `before`. Returns how many matches stay. Returns none, without a change, if
/// one of the matches is not stored.
pub(super) async fn continue_from(
    db: &mut PgConnection,
    game: &Game,
    edition: EditionScope,
    before: &Edition,
    gone: &[Match],
    void: &[MatchNumber],
) -> Result<Option<i64>> {
    let Some(mut numbers) = numbers_of(db, before.scope(), gone).await? else { return Ok(None) };
    numbers.extend(void);
    numbers.sort_unstable();
    numbers.dedup();
    let removing = i64::try_from(numbers.len()).expect("they are in memory");
    continue_without(db, game, edition, before, &numbers, false).await?;
    Ok(Some(before.matches - removing))
}

/// The numbers of these matches of an edition. None if one is not stored.
async fn numbers_of(
    db: &mut PgConnection,
    edition: EditionScope,
    planned: &[Match],
) -> Result<Option<Vec<MatchNumber>>> {
    let mut numbers = Vec::with_capacity(planned.len());
    for chunk in planned.chunks(CHUNK) {
        let stored = matches::same_seats(&mut *db, edition, chunk).await?;
        let by_key: HashMap<_, _> =
            stored.iter().map(|stored| (stored.key(), stored.number)).collect();
        for planned in chunk {
            let Some(number) = by_key.get(&planned.key()) else { return Ok(None) };
            numbers.push(*number);
        }
    }
    Ok(Some(numbers))
}

/// Begins a new edition with the standings of the edition `before`, and takes these matches, which
/// are in order, out of it and their lots out of the queue. If some `may_return`, matches between
/// entrants of the edition that are being played go on.
pub(super) async fn continue_without(
    db: &mut PgConnection,
    game: &Game,
    edition: EditionScope,
    before: &Edition,
    numbers: &[MatchNumber],
    may_return: bool,
) -> Result<()> {
    let tournament = edition.tournament;
    absences::begin(&mut *db, edition, numbers).await?;
    let keeps = may_return.then_some(edition.id);
    lots::drop_matches(&mut *db, tournament, numbers, keeps).await?;
    let mut removed = Tallies::new(game);
    for chunk in numbers.chunks(CHUNK) {
        let counted = lots::counted(&mut *db, tournament, chunk).await?;
        for played in results::of_matches(&mut *db, tournament, &counted).await? {
            removed.add(&played.outcome());
        }
    }
    let entrants = editions::entrants(&mut *db, edition.id).await?;
    let staying: HashSet<Entrant> = entrants.into_iter().map(|row| row.entrant).collect();
    let mut sums = standings::of_edition(&mut *db, before.id).await?;
    for (entrant, tally) in removed.by_entrant() {
        if let Some(sum) = sums.get_mut(entrant) {
            sum.subtract(tally);
        }
    }
    sums.retain(|entrant, sum| sum.matches > 0 && staying.contains(entrant));
    standings::add(&mut *db, edition.id, &sums).await?;
    editions::count(db, edition.id, before.counted - removed.matches(), 0).await
}

/// Takes all matches that the newest edition does not have out of the queue. If the edition may
/// need some of them later, matches between its entrants that are being played go on.
pub(super) async fn drop_unneeded(
    db: &mut PgConnection,
    edition: EditionScope,
    is_open_ended: bool,
) -> Result<()> {
    let unneeded = lots::absent_in_queue(&mut *db, edition.tournament).await?;
    let keeps = is_open_ended.then_some(edition.id);
    lots::drop_matches(db, edition.tournament, &unneeded, keeps).await
}
