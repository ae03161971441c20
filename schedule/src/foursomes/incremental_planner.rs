//! Incremental plans: when bots join or leave, the tables planned for the other bots stay.
//!
//! # Theory of operation
//!
//! An incremental plan has the tables of the base's design, followed by added tables. The tables of
//! the base are streamed. Memory holds the bot with each number of the design, and the number of
//! meetings of every pair: O(n²).
//!
//! - *A bot joins.* If pairs of the base meet x times on average and there are n other bots, the
//!   planner adds ⌈x·n/3⌉ tables with the new bot. It spreads the other bots evenly over these
//!   tables, so the new bot meets each of them x times. Each table gets bots that have met least
//!   ([`annealing`]). All earlier tables stay.
//! - *A bot leaves.* Its tables are removed, and the other three bots of each table lose a meeting.
//!   If pairs now meet too rarely, the planner adds tables for them (`restore_meetings`).
//! - *A bot joins when another bot leaves.* It gets the tables of the other bot. Nothing else
//!   changes.
//! - *Seats.* At new tables each bot gets each seat about equally often. If the seat counts of a
//!   bot would differ by more than 3, bots exchange seats at a few new tables, or else at tables
//!   that were added before.
//! - *Owners are kept apart.* Tables of the base with two bots of one owner are removed. Their
//!   other pairs meet at added tables in the same way. The numbers of the design are assigned so
//!   that this affects few tables ([`same_owner`]).

use core::cmp::Reverse;

use arbiter_games::{Dice, Seed};

use super::annealing::Effort;
use super::meeting_counts::MeetingCounts;
use super::{Foursomes, SEATS, Table, annealing, same_owner, seat_balance, tables_of};
use crate::{Bot, Claim, Owner, RosterChange};

/// The maximum number of attempts to keep owners apart.
const MAX_ATTEMPTS: u64 = 6;

/// An incremental plan while changes are applied.
pub(super) struct IncrementalPlanner {
    bots: usize,
    /// The number of meetings of each pair in whole designs of the base, and the number of tables
    /// beyond them.
    parts: (u32, u64),
    seed: Seed,
    /// The place with each number of the base's design; `None` if its bot left.
    pub(super) holders: Vec<Option<Bot>>,
    owners: Vec<Option<Owner>>,
    present: Vec<bool>,
    meetings: MeetingCounts,
    /// The number of times that the bot at each place has each seat.
    seat_counts: Vec<[u32; SEATS]>,
    /// The number of tables of the base that remain.
    pub(super) kept_tables: u64,
    pub(super) added: Vec<Table>,
    /// The minimum number of meetings of each pair.
    min_meetings: u16,
    changes: u64,
    /// The number of tables that the last change added.
    pub(super) new_tables: u64,
}

impl IncrementalPlanner {
    /// The base plan, before any change. `owners` is empty, or has an entry for each place.
    pub(super) fn new(
        bots: usize,
        parts: (u32, u64),
        seed: Seed,
        owners: &[Option<Owner>],
    ) -> Self {
        let mut best = Self::attempt(bots, parts, seed, owners, 0);
        for number in 1..MAX_ATTEMPTS {
            if best.same_owner_meetings() == 0 {
                break;
            }
            let next = Self::attempt(bots, parts, seed, owners, number);
            if next.same_owner_meetings() < best.same_owner_meetings() {
                best = next;
            }
        }
        best
    }

    /// The base plan of the attempt with this number. Attempts keep owners apart more or less well.
    fn attempt(
        bots: usize,
        parts: (u32, u64),
        seed: Seed,
        owners: &[Option<Owner>],
        number: u64,
    ) -> Self {
        let mut planner = Self {
            bots,
            parts,
            seed,
            holders: (0..=Bot::MAX).take(bots).map(Some).collect(),
            owners: owners.to_vec(),
            present: vec![true; bots],
            meetings: MeetingCounts::with_owners(bots, owners.to_vec()),
            seat_counts: Vec::new(),
            kept_tables: 0,
            added: Vec::new(),
            min_meetings: 0,
            changes: 0,
            new_tables: 0,
        };
        if !owners.is_empty() {
            let tables: Vec<_> = planner.design().collect();
            let order = same_owner::assign_numbers(
                &tables,
                &owners[..bots],
                &mut seed.derive("kin").dice(number),
            );
            planner.holders = order.into_iter().map(Some).collect();
        }
        planner.recount();
        planner.separate_owners();
        planner.min_meetings = planner.min_meetings_of_base();
        planner
    }

    /// The tables of the base's design, with its numbers instead of bots.
    fn design(&self) -> Foursomes {
        Foursomes::new(self.bots, self.parts.0, self.parts.1, self.seed)
    }

    /// The number of tables of the base.
    fn base_tables(&self) -> u64 {
        tables_of(self.bots, self.parts.0) + self.parts.1
    }

    /// Replaces the tables of the base with two bots of one owner.
    fn separate_owners(&mut self) {
        let removed_tables = self.base_tables() - self.kept_tables;
        let removed_tables = usize::try_from(removed_tables).expect("tables are few");
        if removed_tables == 0 {
            return;
        }
        if self.parts.1 == 0 {
            self.min_meetings = u16::try_from(self.parts.0).expect("meetings are few");
            self.restore_meetings();
            return;
        }
        // The number of matches is fixed, so each removed table needs a new table, and each bot
        // keeps its number of matches. All tables may then change, which gives the search enough
        // freedom.
        let mut quotas = vec![0; self.bots];
        let mut tables = Vec::new();
        for table in tables_with_holders(self.design(), &self.holders) {
            if same_owner::has_pair(&self.owners, table) {
                for bot in table {
                    quotas[usize::from(bot)] += 1;
                }
            } else {
                tables.push(table);
            }
        }
        let mut dice = self.dice();
        tables.extend(annealing::fill_tables(
            &mut quotas,
            removed_tables,
            &mut self.meetings,
            &mut dice,
        ));
        annealing::improve(&mut tables, &mut self.meetings, 0, Effort::GREAT, &mut dice);
        seat_balance::balance(&mut tables, self.bots);
        self.holders.fill(None);
        self.added = tables;
        self.recount();
    }

    /// The minimum number of meetings after a bot leaves: the number in whole designs, or the mean
    /// of the base rounded down.
    fn min_meetings_of_base(&self) -> u16 {
        let (total, pairs) = self.total_meetings(self.allowed_pairs());
        let min = if self.parts.1 == 0 { self.parts.0.into() } else { total / pairs.max(1) };
        u16::try_from(min).expect("meetings are few")
    }

    /// The claim of the present plan.
    pub(super) fn claim(&self) -> Claim {
        let meetings =
            self.allowed_pairs().map(|(first, second)| self.meetings.of(first, second).into());
        let (min, max) =
            meetings.fold((u32::MAX, 0), |(min, max), count: u32| (min.min(count), max.max(count)));
        let has_remainder = self.parts.1 > 0;
        let min = if has_remainder { min } else { u32::from(self.min_meetings) };
        let present_bots =
            || self.present.iter().zip(&self.seat_counts).filter(|(present, _)| **present);
        let spread = |numbers: &mut dyn Iterator<Item = u32>| {
            let first = numbers.next().unwrap_or(0);
            let ends = numbers.fold((first, first), |(low, high), n| (low.min(n), high.max(n)));
            ends.1 - ends.0
        };
        let seats = present_bots().map(|(_, counts)| spread(&mut counts.iter().copied()));
        Claim {
            matches: self.kept_tables + self.added.len() as u64,
            opponents: None,
            meetings: min..=max.max(self.target_max().into()),
            same_owner_meetings: (!self.owners.is_empty()).then(|| self.same_owner_meetings()),
            match_spread: Some(spread(&mut present_bots().map(|(_, counts)| counts.iter().sum()))),
            seat_spread: seats.max(),
            side_spread: None,
        }
    }

    /// The sum of the meetings of pairs of one owner.
    fn same_owner_meetings(&self) -> u64 {
        let is_same_owner =
            |(first, second): &(Bot, Bot)| self.meetings.have_same_owner(*first, *second);
        self.total_meetings(self.pairs().filter(is_same_owner)).0
    }

    /// The sum of these pairs' meetings, and the number of pairs.
    fn total_meetings(&self, pairs: impl Iterator<Item = (Bot, Bot)>) -> (u64, u64) {
        let meetings = pairs.map(|(first, second)| u64::from(self.meetings.of(first, second)));
        meetings.fold((0, 0), |(total, pairs), count| (total + count, pairs + 1))
    }

    /// The target maximum of a pair's meetings: the mean rounded up, plus one.
    fn target_max(&self) -> u16 {
        let (total, pairs) = self.total_meetings(self.allowed_pairs());
        u16::try_from(total.div_ceil(pairs.max(1)) + 1).expect("meetings are few")
    }

    /// All pairs of present bots that may meet.
    fn allowed_pairs(&self) -> impl Iterator<Item = (Bot, Bot)> {
        self.pairs().filter(|(first, second)| !self.meetings.have_same_owner(*first, *second))
    }

    /// All pairs of present bots.
    fn pairs(&self) -> impl Iterator<Item = (Bot, Bot)> {
        let is_present = |place: &Bot| self.present[usize::from(*place)];
        let places = (0..=Bot::MAX).take(self.present.len()).filter(is_present);
        places.flat_map(move |high| (0..high).filter(is_present).map(move |low| (high, low)))
    }

    /// The dice of the next change.
    fn dice(&mut self) -> Dice {
        self.changes += 1;
        self.seed.derive("change").dice(self.changes)
    }

    /// Counts all tables from zero.
    fn recount(&mut self) {
        self.meetings.clear();
        self.seat_counts = vec![[0; SEATS]; self.present.len()];
        self.kept_tables = 0;
        let base = tables_with_holders(self.design(), &self.holders);
        for table in base.filter(|table| !same_owner::has_pair(&self.owners, *table)) {
            self.kept_tables += 1;
            count_table(table, &mut self.meetings, &mut self.seat_counts);
        }
        for table in &self.added {
            count_table(*table, &mut self.meetings, &mut self.seat_counts);
        }
    }

    /// Applies a change.
    pub(super) fn apply(&mut self, step: &RosterChange) {
        let first = self.present.len();
        let successors = step.left.len().min(step.joined);
        for _ in 0..successors {
            self.add_bot();
        }
        for (leaver, successor) in step.left.iter().zip(first..first + successors) {
            let successor = Bot::try_from(successor).expect("places are counted");
            self.transfer_tables(*leaver, successor);
        }
        for leaver in &step.left {
            self.remove_bot(*leaver);
        }
        if !step.left.is_empty() {
            self.recount();
        }
        self.new_tables = 0;
        let old_tables = self.added.len();
        let transferred = self.seat_counts[first..].iter().flatten();
        let transferred: u64 = transferred.map(|count| u64::from(*count)).sum();
        if !step.left.is_empty() {
            self.restore_meetings();
        }
        for _ in successors..step.joined {
            self.join();
        }
        self.new_tables += transferred + (self.added.len() - old_tables) as u64;
    }

    /// Gives a new bot the next place.
    fn add_bot(&mut self) -> Bot {
        let place = self.present.len();
        self.meetings.add_place(place);
        self.present.push(true);
        self.seat_counts.push([0; SEATS]);
        Bot::try_from(place).expect("places are counted")
    }

    /// Gives the tables of one bot to another bot.
    fn transfer_tables(&mut self, leaver: Bot, successor: Bot) {
        let change = |place: &mut Bot| {
            if *place == leaver {
                *place = successor;
            }
        };
        self.holders.iter_mut().flatten().for_each(change);
        self.added.iter_mut().flatten().for_each(change);
        let owners = &self.owners;
        self.added
            .retain(|table| !table.contains(&successor) || !same_owner::has_pair(owners, *table));
    }

    /// Removes a bot and its tables.
    fn remove_bot(&mut self, leaver: Bot) {
        self.present[usize::from(leaver)] = false;
        let is_leaver = |holder: &&mut Option<Bot>| **holder == Some(leaver);
        self.holders.iter_mut().filter(is_leaver).for_each(|holder| *holder = None);
        self.added.retain(|table| !table.contains(&leaver));
    }

    /// Adds a bot, and tables at which it meets all other bots.
    fn join(&mut self) {
        let new = self.add_bot();
        let is_present = |place: &Bot| self.present[usize::from(*place)];
        let present: Vec<Bot> = (0..new).filter(is_present).collect();
        let allowed: Vec<_> = present
            .iter()
            .copied()
            .filter(|other| !self.meetings.have_same_owner(new, *other))
            .collect();
        let others = if allowed.len() < SEATS - 1 { present } else { allowed };
        let pairs = (self.bots * (self.bots - 1) / 2) as u64;
        let count = (2 * self.base_tables() * others.len() as u64).div_ceil(pairs);
        let count = usize::try_from(count).expect("meetings are few");
        let mut dice = self.dice();
        self.meetings.set_limits(0, self.target_max());
        let mut quotas = vec![0; self.present.len()];
        let quota = (SEATS - 1) * count / others.len();
        let larger_quotas = (SEATS - 1) * count % others.len();
        let mut other_quotas = vec![quota; others.len()];
        other_quotas[..larger_quotas].fill(quota + 1);
        dice.shuffle(&mut other_quotas);
        for (other, quota) in others.iter().zip(other_quotas) {
            quotas[usize::from(*other)] = quota;
        }
        quotas[usize::from(new)] = count;
        let mut tables = annealing::fill_tables(&mut quotas, count, &mut self.meetings, &mut dice);
        for table in &mut tables {
            let seat = table.iter().position(|bot| *bot == new);
            table.swap(0, seat.expect("the new bot is at all these tables"));
        }
        self.add_tables(tables, 1, &mut dice);
    }

    /// Adds tables at which pairs with too few meetings meet again.
    fn restore_meetings(&mut self) {
        self.meetings.set_limits(self.min_meetings, self.target_max());
        let mut missing = vec![0_u32; self.present.len()];
        for (first, second) in self.pairs().collect::<Vec<_>>() {
            let count = u32::from(self.meetings.missing(first, second));
            missing[usize::from(first)] += count;
            missing[usize::from(second)] += count;
        }
        let mut dice = self.dice();
        let mut match_counts: Vec<u32> =
            self.seat_counts.iter().map(|counts| counts.iter().sum()).collect();
        let mut tables = Vec::new();
        while let Some(first) = bot_with_most_missing(&missing, &mut dice) {
            let mut seated = vec![first];
            while seated.len() < SEATS {
                let next = self.best_companion(&seated, &match_counts, &mut dice);
                for other in &seated {
                    let is_needed = u32::from(self.meetings.missing(next, *other) > 0);
                    missing[usize::from(next)] -= is_needed;
                    missing[usize::from(*other)] -= is_needed;
                }
                self.meetings.add_bot(next, seated.iter().copied());
                seated.push(next);
            }
            for bot in &seated {
                match_counts[usize::from(*bot)] += 1;
            }
            tables.push(seated.try_into().expect("a table has four bots"));
        }
        self.meetings.prioritize_min();
        self.add_tables(tables, 0, &mut dice);
    }

    /// The best bot for a table with these bots: the bot with the lowest cost of meetings. Ties go
    /// to the bot with the fewest matches.
    fn best_companion(&self, seated: &[Bot], match_counts: &[u32], dice: &mut Dice) -> Bot {
        let all = annealing::from_random_start(match_counts.len(), dice);
        let free = all.filter(|bot| self.present[usize::from(*bot)] && !seated.contains(bot));
        let cost = |bot: &Bot| -> i64 {
            seated.iter().map(|other| self.meetings.cost(*bot, *other)).sum()
        };
        free.min_by_key(|bot| (cost(bot), match_counts[usize::from(*bot)]))
            .expect("there are at least four bots")
    }

    /// Improves new tables, whose meetings are already counted, and adds them. If the seats of a
    /// bot are still too uneven, bots exchange seats at earlier added tables too.
    fn add_tables(&mut self, mut tables: Vec<Table>, fixed: usize, dice: &mut Dice) {
        annealing::improve(&mut tables, &mut self.meetings, fixed, Effort::SMALL, dice);
        seat_balance::balance_with(&mut tables, &self.seat_counts);
        for (seat, bot) in tables.iter().flat_map(|table| table.iter().enumerate()) {
            self.seat_counts[usize::from(*bot)][seat] += 1;
        }
        seat_balance::limit_spread(&mut tables, &mut self.seat_counts);
        let old_tables = self.added.clone();
        self.added.append(&mut tables);
        seat_balance::limit_spread(&mut self.added, &mut self.seat_counts);
        let reseated = old_tables.iter().zip(&self.added).filter(|(before, now)| before != now);
        self.new_tables += reseated.count() as u64;
    }
}

/// The tables of a design with the bots that have its numbers, without the tables of bots that
/// left.
pub(super) fn tables_with_holders<T: Iterator<Item = Table>>(
    design: T,
    holders: &[Option<Bot>],
) -> impl Iterator<Item = Table> + use<'_, T> {
    design.filter_map(|table| {
        let bots = table.map(|number| holders[usize::from(number)]);
        let [Some(first), Some(second), Some(third), Some(fourth)] = bots else { return None };
        Some([first, second, third, fourth])
    })
}

/// Counts the meetings and seats of a table.
fn count_table(table: Table, meetings: &mut MeetingCounts, seat_counts: &mut [[u32; SEATS]]) {
    meetings.add_table(table);
    for (seat, bot) in table.into_iter().enumerate() {
        seat_counts[usize::from(bot)][seat] += 1;
    }
}

/// The bot with the most missing meetings; `None` if no bot has any.
fn bot_with_most_missing(missing: &[u32], dice: &mut Dice) -> Option<Bot> {
    let all = annealing::from_random_start(missing.len(), dice);
    let lacking = all.filter(|bot| missing[usize::from(*bot)] > 0);
    lacking.min_by_key(|bot| Reverse(missing[usize::from(*bot)]))
}
