//! Incremental plans: when bots join or leave, the tables planned for the other bots stay.
//!
//! # Theory of operation
//!
//! An incremental plan is the tables of the base's design, in their order, followed by added tables,
//! in theirs. The tables of the base are streamed as usual; memory holds the bot with each number of
//! the design, and how often every pair meets, O(n²).
//!
//! - *A bot joins.* If pairs of the base meet x times on average and there are n other bots, ⌈x·n/3⌉
//!   tables are added, all with the new bot. The others have equally many of them, so the new bot
//!   meets each of them x times. At each table sit bots that have met least ([`annealing`]), so at
//!   first no pair meets more than once more. All earlier tables stay.
//! - *A bot leaves.* Its tables are removed. At each of them the three others lose a meeting. Where
//!   they now meet too rarely, tables are added at which they meet again (`restore_meetings`).
//! - *A bot joins as another leaves.* It takes over the other's tables: nothing else changes.
//! - *Seats.* New tables are seated so that each bot has each seat about equally often. Where a bot's
//!   seats would differ by more than 3, bots of a few tables exchange seats: at new tables, or else
//!   at tables that were added before.
//! - *Owners are kept apart.* Tables of the base with two bots of one owner are removed, and their
//!   other pairs meet at added tables in the same way. The numbers of the design are assigned so that
//!   few tables are affected ([`same_owner`]).

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
    /// How often each pair meets in whole designs of the base, and the number of tables beyond them.
    parts: (u32, u64),
    seed: Seed,
    /// The place with each number of the base's design; `None` if its bot left.
    pub(super) holders: Vec<Option<Bot>>,
    owners: Vec<Option<Owner>>,
    present: Vec<bool>,
    meetings: MeetingCounts,
    /// How often the bot at each place has each seat.
    times: Vec<[u32; SEATS]>,
    /// The number of tables of the base that remain.
    pub(super) kept: u64,
    pub(super) added: Vec<Table>,
    /// The minimum number of meetings of each pair.
    floor: u16,
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

    /// One attempt at the base plan; another attempt may keep owners apart better.
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
            times: Vec::new(),
            kept: 0,
            added: Vec::new(),
            floor: 0,
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
        planner.floor = planner.floor_of_base();
        planner
    }

    /// The tables of the base as its design numbers its bots.
    fn design(&self) -> Foursomes {
        Foursomes::new(self.bots, self.parts.0, self.parts.1, self.seed)
    }

    /// The number of tables of the base.
    fn base_tables(&self) -> u64 {
        tables_of(self.bots, self.parts.0) + self.parts.1
    }

    /// Keeps owners apart in the base: replaces the tables with two bots of one owner.
    fn separate_owners(&mut self) {
        let gone = usize::try_from(self.base_tables() - self.kept).expect("kept tables are few");
        if gone == 0 {
            return;
        }
        if self.parts.1 == 0 {
            self.floor = u16::try_from(self.parts.0).expect("meetings are few");
            self.restore_meetings();
            return;
        }
        // The number of matches is given: as many tables are added as were removed, with as many of
        // each bot. Then all tables may change, so that none of them is forced.
        let mut quotas = vec![0; self.bots];
        let mut tables = Vec::new();
        for table in seated(self.design(), &self.holders) {
            if same_owner::has_pair(&self.owners, table) {
                for bot in table {
                    quotas[usize::from(bot)] += 1;
                }
            } else {
                tables.push(table);
            }
        }
        let mut dice = self.dice();
        tables.extend(annealing::seat(&mut quotas, gone, &mut self.meetings, &mut dice));
        annealing::improve(&mut tables, &mut self.meetings, 0, Effort::GREAT, &mut dice);
        seat_balance::balance(&mut tables, self.bots);
        self.holders.fill(None);
        self.added = tables;
        self.recount();
    }

    /// The minimum number of meetings after a bot leaves: as in whole designs, or the mean of the base
    /// rounded down.
    fn floor_of_base(&self) -> u16 {
        let (met, pairs) = self.met(self.strangers());
        let floor = if self.parts.1 == 0 { self.parts.0.into() } else { met / pairs.max(1) };
        u16::try_from(floor).expect("meetings are few")
    }

    /// The claim of the plan as it is: its targets, and what was reached.
    pub(super) fn claim(&self) -> Claim {
        let met = self.strangers().map(|(one, other)| self.meetings.of(one, other).into());
        let (least, most) =
            met.fold((u32::MAX, 0), |(least, most), met: u32| (least.min(met), most.max(met)));
        let whole = self.parts.1 == 0;
        let least = if whole { u32::from(self.floor) } else { least };
        let there = || self.present.iter().zip(&self.times).filter(|(present, _)| **present);
        let spread = |numbers: &mut dyn Iterator<Item = u32>| {
            let first = numbers.next().unwrap_or(0);
            let ends = numbers.fold((first, first), |(low, high), n| (low.min(n), high.max(n)));
            ends.1 - ends.0
        };
        let seats = there().map(|(_, times)| spread(&mut times.iter().copied()));
        Claim {
            matches: self.kept + self.added.len() as u64,
            meetings: least..=most.max(self.ceiling().into()),
            same_owner_meetings: (!self.owners.is_empty()).then(|| self.same_owner_meetings()),
            match_spread: Some(spread(&mut there().map(|(_, times)| times.iter().sum()))),
            seat_spread: seats.max(),
            side_spread: None,
        }
    }

    /// The sum of the meetings of pairs of one owner.
    fn same_owner_meetings(&self) -> u64 {
        self.met(self.pairs().filter(|(one, other)| self.meetings.have_same_owner(*one, *other))).0
    }

    /// The sum of these pairs' meetings, and the number of pairs.
    fn met(&self, pairs: impl Iterator<Item = (Bot, Bot)>) -> (u64, u64) {
        let met = pairs.map(|(one, other)| u64::from(self.meetings.of(one, other)));
        met.fold((0, 0), |(met, pairs), one| (met + one, pairs + 1))
    }

    /// The target maximum of a pair's meetings: the mean rounded up, plus one.
    fn ceiling(&self) -> u16 {
        let (met, pairs) = self.met(self.strangers());
        u16::try_from(met.div_ceil(pairs.max(1)) + 1).expect("meetings are few")
    }

    /// All pairs of present bots that may meet.
    fn strangers(&self) -> impl Iterator<Item = (Bot, Bot)> {
        self.pairs().filter(|(one, other)| !self.meetings.have_same_owner(*one, *other))
    }

    /// All pairs of present bots.
    fn pairs(&self) -> impl Iterator<Item = (Bot, Bot)> {
        let there = |place: &Bot| self.present[usize::from(*place)];
        let all = (0..=Bot::MAX).take(self.present.len());
        let all = all.filter(there);
        all.flat_map(move |high| (0..high).filter(there).map(move |low| (high, low)))
    }

    /// The dice of the next change.
    fn dice(&mut self) -> Dice {
        self.changes += 1;
        self.seed.derive("change").dice(self.changes)
    }

    /// Counts all tables anew.
    fn recount(&mut self) {
        self.meetings.clear();
        self.times = vec![[0; SEATS]; self.present.len()];
        self.kept = 0;
        let base = seated(self.design(), &self.holders);
        for table in base.filter(|table| !same_owner::has_pair(&self.owners, *table)) {
            self.kept += 1;
            count(table, &mut self.meetings, &mut self.times);
        }
        for table in &self.added {
            count(*table, &mut self.meetings, &mut self.times);
        }
    }

    /// Applies a change.
    pub(super) fn apply(&mut self, step: &RosterChange) {
        let first = self.present.len();
        let heirs = step.left.len().min(step.joined);
        for _ in 0..heirs {
            self.enter();
        }
        for (leaver, heir) in step.left.iter().zip(first..first + heirs) {
            self.succeed(*leaver, Bot::try_from(heir).expect("places are counted"));
        }
        for leaver in &step.left {
            self.leave(*leaver);
        }
        if !step.left.is_empty() {
            self.recount();
        }
        self.new_tables = 0;
        let stayed = self.added.len();
        let inherited = self.times[first..].iter().flatten().map(|times| u64::from(*times));
        let inherited: u64 = inherited.sum();
        if !step.left.is_empty() {
            self.restore_meetings();
        }
        for _ in heirs..step.joined {
            self.join();
        }
        self.new_tables += inherited + (self.added.len() - stayed) as u64;
    }

    /// Gives a new bot the next place.
    fn enter(&mut self) -> Bot {
        let place = self.present.len();
        self.meetings.enter(place);
        self.present.push(true);
        self.times.push([0; SEATS]);
        Bot::try_from(place).expect("places are counted")
    }

    /// Gives the tables of one bot to another.
    fn succeed(&mut self, leaver: Bot, heir: Bot) {
        let change = |place: &mut Bot| {
            if *place == leaver {
                *place = heir;
            }
        };
        self.holders.iter_mut().flatten().for_each(change);
        self.added.iter_mut().flatten().for_each(change);
        let owners = &self.owners;
        self.added.retain(|table| !table.contains(&heir) || !same_owner::has_pair(owners, *table));
    }

    /// Removes the tables of a bot.
    fn leave(&mut self, leaver: Bot) {
        self.present[usize::from(leaver)] = false;
        let holds = |holder: &&mut Option<Bot>| **holder == Some(leaver);
        self.holders.iter_mut().filter(holds).for_each(|holder| *holder = None);
        self.added.retain(|table| !table.contains(&leaver));
    }

    /// Adds tables at which a new bot meets all others.
    fn join(&mut self) {
        let new = self.enter();
        let there = |place: &Bot| self.present[usize::from(*place)] && *place != new;
        let others: Vec<Bot> = (0..new).filter(there).collect();
        let strangers: Vec<_> = others
            .iter()
            .copied()
            .filter(|other| !self.meetings.have_same_owner(new, *other))
            .collect();
        let others = if strangers.len() < SEATS - 1 { others } else { strangers };
        let pairs = (self.bots * (self.bots - 1) / 2) as u64;
        let count = (2 * self.base_tables() * others.len() as u64).div_ceil(pairs);
        let count = usize::try_from(count).expect("meetings are few");
        let mut dice = self.dice();
        self.meetings.bound(0, self.ceiling());
        let mut quotas = vec![0; self.present.len()];
        let each = (SEATS - 1) * count / others.len();
        let more = (SEATS - 1) * count % others.len();
        let mut given = vec![each; others.len()];
        given[..more].fill(each + 1);
        dice.shuffle(&mut given);
        for (other, quota) in others.iter().zip(given) {
            quotas[usize::from(*other)] = quota;
        }
        quotas[usize::from(new)] = count;
        let mut tables = annealing::seat(&mut quotas, count, &mut self.meetings, &mut dice);
        for table in &mut tables {
            let found = table.iter().position(|bot| *bot == new);
            table.swap(0, found.expect("its quota is all tables"));
        }
        self.add(tables, 1, &mut dice);
    }

    /// Adds tables at which pairs with too few meetings meet again.
    fn restore_meetings(&mut self) {
        self.meetings.bound(self.floor, self.ceiling());
        let mut missing = vec![0_u32; self.present.len()];
        for (one, other) in self.pairs().collect::<Vec<_>>() {
            let short = u32::from(self.meetings.missing(one, other));
            missing[usize::from(one)] += short;
            missing[usize::from(other)] += short;
        }
        let mut dice = self.dice();
        let mut games: Vec<u32> = self.times.iter().map(|times| times.iter().sum()).collect();
        let mut tables = Vec::new();
        while let Some(first) = neediest(&missing, &mut dice) {
            let mut seated = vec![first];
            while seated.len() < SEATS {
                let next = self.best_companion(&seated, &games, &mut dice);
                for other in &seated {
                    let met = u32::from(self.meetings.missing(next, *other) > 0);
                    missing[usize::from(next)] -= met;
                    missing[usize::from(*other)] -= met;
                }
                self.meetings.join(next, &seated);
                seated.push(next);
            }
            for bot in &seated {
                games[usize::from(*bot)] += 1;
            }
            tables.push(seated.try_into().expect("four are seated"));
        }
        self.meetings.insist();
        self.add(tables, 0, &mut dice);
    }

    /// The best bot to seat with these: it lacks most meetings with them, and has the fewest matches.
    fn best_companion(&self, seated: &[Bot], games: &[u32], dice: &mut Dice) -> Bot {
        let all = annealing::from_random_start(games.len(), dice);
        let free = all.filter(|bot| self.present[usize::from(*bot)] && !seated.contains(bot));
        let price = |bot: &Bot| -> i64 {
            seated.iter().map(|other| self.meetings.price(*bot, *other)).sum()
        };
        free.min_by_key(|bot| (price(bot), games[usize::from(*bot)])).expect("there are four")
    }

    /// Improves new tables, whose meetings are already counted, and adds them. Where they leave a
    /// bot's seats too uneven, tables that were added before are reordered too.
    fn add(&mut self, mut tables: Vec<Table>, fixed: usize, dice: &mut Dice) {
        annealing::improve(&mut tables, &mut self.meetings, fixed, Effort::SMALL, dice);
        seat_balance::settle(&mut tables, &self.times);
        for (seat, bot) in tables.iter().flat_map(|table| table.iter().enumerate()) {
            self.times[usize::from(*bot)][seat] += 1;
        }
        seat_balance::limit_spread(&mut tables, &mut self.times);
        let stayed = self.added.clone();
        self.added.append(&mut tables);
        seat_balance::limit_spread(&mut self.added, &mut self.times);
        let reseated = stayed.iter().zip(&self.added).filter(|(before, now)| before != now);
        self.new_tables += reseated.count() as u64;
    }
}

/// The tables of a design with the bots that hold its numbers, without the tables of bots that left.
pub(super) fn seated<T: Iterator<Item = Table>>(
    design: T,
    holders: &[Option<Bot>],
) -> impl Iterator<Item = Table> + use<'_, T> {
    design.filter_map(|table| {
        let seated = table.map(|number| holders[usize::from(number)]);
        let [Some(one), Some(two), Some(three), Some(four)] = seated else { return None };
        Some([one, two, three, four])
    })
}

/// Counts a table.
fn count(table: Table, meetings: &mut MeetingCounts, times: &mut [[u32; SEATS]]) {
    meetings.seat(table);
    for (seat, bot) in table.into_iter().enumerate() {
        times[usize::from(bot)][seat] += 1;
    }
}

/// The bot that lacks the most meetings.
fn neediest(missing: &[u32], dice: &mut Dice) -> Option<Bot> {
    let all = annealing::from_random_start(missing.len(), dice);
    let lacking = all.filter(|bot| missing[usize::from(*bot)] > 0);
    lacking.min_by_key(|bot| Reverse(missing[usize::from(*bot)]))
}
