//! Changes of a plan when bots join or leave: bots exchange places at a few tables.
//!
//! - *A bot joins.* For each leg it takes one seat of each kind, at s different tables of s seats.
//!   The s bots that it replaces sit at one new table, each in the seat that it had. So all of them
//!   have the same seats as before, and the new bot has each seat once more.
//! - *A bot leaves.* The reverse: for each leg one table is removed, whose bots take the places of
//!   the bot that leaves, each in the seat that it had.
//! - *A bot joins when another bot leaves.* It gets the tables of the other bot.
//!
//! So every bot keeps exactly as many matches as the others, and exactly as many in each seat. A
//! bot that joins costs l · (s + 1) tables in l legs, and one that leaves l · s. Which tables these
//! are is a search: among some tables drawn at random, it takes those with which the squares of all
//! pairs' meetings grow least. Memory holds the changed tables, and a counter for each pair.

use arbiter_games::{Dice, Seed};

use super::{MAX_SEATS, SeatedBots, TablePlan, Tables};
use crate::bot::MAX_COUNTED_BOTS;
use crate::error::check_bots;
use crate::foursomes::MeetingCounts;
use crate::{Bot, Claim, Member, RosterChange, RosterHistory, ScheduleError};

/// The number of tables that are compared for each exchange.
const CANDIDATES: usize = 256;
/// The number of places of the leaving bot that are compared for each bot.
const MAX_PLACES: usize = 8;

/// A plan while changes are applied. Its tables have places of the history instead of bots.
struct Exchanger {
    plan: TablePlan,
    seed: Seed,
    present: Vec<bool>,
    meetings: MeetingCounts,
    changes: u64,
}

impl Tables {
    /// The plan after a history of changes; `members` has one member for each place.
    ///
    /// # Errors
    /// As for [`Tables::plan`] with the bots of the base, or if too few bots remain, there are too
    /// many places, or the tables leave no room for an exchange.
    pub(crate) fn plan_after(
        self,
        history: &RosterHistory,
        members: &[Member],
        seed: Seed,
    ) -> Result<TablePlan, ScheduleError> {
        let bots = members.iter().filter(|member| member.bot.is_some()).count();
        check_bots(bots, self.seats.get(), "one table")?;
        let mut plan = self.plan(history.base, seed)?;
        if !history.steps.is_empty() {
            let places = history.places();
            if places > MAX_COUNTED_BOTS {
                return Err(ScheduleError::TooManyKnown { bots: places });
            }
            let mut exchanger = Exchanger::new(plan, seed.derive("exchanges"));
            history.steps.iter().try_for_each(|step| exchanger.apply(step))?;
            plan = exchanger.finish();
        }
        // A bot that left has no tables.
        let bot = |place: Bot| members[usize::from(place)].bot.unwrap_or_default();
        let tables = plan.changed.values_mut().flatten();
        let places = tables.flat_map(|table| &mut table[..self.seats.get()]);
        for place in places.chain(&mut plan.holders) {
            *place = bot(*place);
        }
        Ok(plan)
    }
}

impl Exchanger {
    fn new(plan: TablePlan, seed: Seed) -> Self {
        let present = vec![true; plan.bots];
        let mut meetings = MeetingCounts::new(plan.bots);
        for table in (0..plan.indices).filter_map(|index| plan.table(index)) {
            for (seat, bot) in table[..plan.seats].iter().enumerate() {
                meetings.add_bot(*bot, table[..seat].iter().copied());
            }
        }
        Self { plan, seed, present, meetings, changes: 0 }
    }

    fn apply(&mut self, step: &RosterChange) -> Result<(), ScheduleError> {
        let successors = step.left.len().min(step.joined);
        for leaver in &step.left[..successors] {
            let successor = self.add_place();
            self.transfer(*leaver, successor);
        }
        for leaver in &step.left[successors..] {
            self.leave(*leaver)?;
        }
        for _ in successors..step.joined {
            self.join()?;
        }
        let changed =
            step.left.len() * self.plan.seats + (step.joined - successors) * (self.plan.seats + 1);
        self.plan.new_tables = (changed * self.plan.legs) as u64;
        Ok(())
    }

    /// The plan with the claim that its counts prove.
    fn finish(self) -> TablePlan {
        let Self { mut plan, present, meetings, .. } = self;
        let present: Vec<Bot> =
            (0..).zip(present).filter_map(|(place, is)| is.then_some(place)).collect();
        let pairs = present.iter().enumerate().flat_map(|(number, bot)| {
            present[..number].iter().map(|other| u32::from(meetings.of(*bot, *other)))
        });
        let (min, max) =
            pairs.fold((u32::MAX, 0), |(min, max), count| (count.min(min), count.max(max)));
        plan.bots = present.len();
        let matches = (plan.legs * plan.bots) as u64;
        plan.claim = Claim { matches, meetings: min..=max, ..plan.claim };
        plan
    }

    /// Gives a new bot the next place.
    fn add_place(&mut self) -> Bot {
        let place = self.present.len();
        self.meetings.add_place(place);
        self.present.push(true);
        Bot::try_from(place).expect("places are counted")
    }

    /// Gives the tables of one bot to another bot.
    fn transfer(&mut self, leaver: Bot, successor: Bot) {
        let seats = self.plan.seats;
        let tables = self.plan.changed.values_mut().flatten();
        let places = tables.flat_map(|table| &mut table[..seats]);
        for place in places.chain(&mut self.plan.holders).filter(|place| **place == leaver) {
            *place = successor;
        }
        self.meetings.swap(leaver, successor, self.present.len());
        self.present[usize::from(leaver)] = false;
    }

    /// The random numbers of the next change.
    fn dice(&mut self) -> Dice {
        self.changes += 1;
        self.seed.dice(self.changes)
    }

    /// The index of the table with the lowest cost. `cost` is `None` for tables that cannot be
    /// used.
    fn cheapest(
        &self,
        dice: &mut Dice,
        cost: impl Fn(&SeatedBots) -> Option<i64>,
    ) -> Result<u64, ScheduleError> {
        let all = usize::try_from(self.plan.indices).expect("a plan has at most 2³² tables");
        let cost = |index: usize| Some((cost(&self.plan.table(index as u64)?)?, index as u64));
        let drawn = if all > CANDIDATES { CANDIDATES } else { 0 };
        let cheapest = (0..drawn).filter_map(|_| cost(dice.index(all))).min();
        let cheapest = cheapest.or_else(|| (0..all).filter_map(cost).min());
        let bots = self.present.iter().filter(|present| **present).count();
        cheapest.map(|(_, index)| index).ok_or(ScheduleError::NoRoom { bots })
    }

    /// Adds a bot.
    fn join(&mut self) -> Result<(), ScheduleError> {
        let new = self.add_place();
        let mut dice = self.dice();
        let seats = self.plan.seats;
        for _ in 0..self.plan.legs {
            let mut replaced = [0; MAX_SEATS];
            for seat in 0..seats {
                let cost =
                    |table: &SeatedBots| self.cost_of_join(table, seat, new, &replaced[..seat]);
                let index = self.cheapest(&mut dice, cost)?;
                let mut table = self.plan.table(index).expect("it has a cost");
                let old = table[seat];
                self.meetings.remove_bot(old, others(&table[..seats], seat));
                self.meetings.add_bot(old, replaced[..seat].iter().copied());
                table[seat] = new;
                self.meetings.add_bot(new, others(&table[..seats], seat));
                self.plan.changed.insert(index, Some(table));
                replaced[seat] = old;
            }
            self.plan.changed.insert(self.plan.indices, Some(replaced));
            self.plan.indices += 1;
        }
        Ok(())
    }

    /// The cost if a new bot takes a seat of this table, and its bot joins those that were
    /// `replaced` before.
    fn cost_of_join(
        &self,
        table: &SeatedBots,
        seat: usize,
        new: Bot,
        replaced: &[Bot],
    ) -> Option<i64> {
        let table = &table[..self.plan.seats];
        let old = table[seat];
        if table.contains(&new) || replaced.contains(&old) {
            return None;
        }
        let exchanged = others(table, seat)
            .map(|other| self.meetings.cost(new, other) - self.meetings.gain(old, other));
        let joined = replaced.iter().map(|other| self.meetings.cost(old, *other));
        Some(exchanged.chain(joined).sum())
    }

    /// Removes a bot.
    fn leave(&mut self, leaver: Bot) -> Result<(), ScheduleError> {
        self.present[usize::from(leaver)] = false;
        let mut dice = self.dice();
        let seats = self.plan.seats;
        let mut places = vec![Vec::new(); seats];
        for index in 0..self.plan.indices {
            let Some(table) = self.plan.table(index) else { continue };
            if let Some(seat) = table[..seats].iter().position(|bot| *bot == leaver) {
                self.meetings.remove_bot(leaver, others(&table[..seats], seat));
                places[seat].push(index);
            }
        }
        for places in &mut places {
            dice.shuffle(places);
        }
        for _ in 0..self.plan.legs {
            let cost =
                |table: &SeatedBots| self.best_places(table, leaver, &places).map(|(cost, _)| cost);
            let index = self.cheapest(&mut dice, cost)?;
            let removed = self.plan.table(index).expect("it has a cost");
            let (_, chosen) = self.best_places(&removed, leaver, &places).expect("it has a cost");
            for (seat, bot) in removed[..seats].iter().enumerate() {
                self.meetings.remove_bot(*bot, removed[..seat].iter().copied());
                let place = places[seat].swap_remove(chosen[seat]);
                let mut table = self.plan.table(place).expect("the bot that leaves sits there");
                table[seat] = *bot;
                self.meetings.add_bot(*bot, others(&table[..seats], seat));
                self.plan.changed.insert(place, Some(table));
            }
            self.plan.changed.insert(index, None);
        }
        Ok(())
    }

    /// The best places of the leaving bot for the bots of a table that is removed: for each seat an
    /// index into its `places`. `None` if a bot can take none of them.
    fn best_places(
        &self,
        removed: &SeatedBots,
        leaver: Bot,
        places: &[Vec<u64>],
    ) -> Option<(i64, [usize; MAX_SEATS])> {
        let removed = &removed[..self.plan.seats];
        if removed.contains(&leaver) {
            return None;
        }
        let mut total = 0;
        let mut chosen = [0; MAX_SEATS];
        for (seat, bot) in removed.iter().enumerate() {
            let gains = removed[..seat].iter().map(|other| self.meetings.gain(*bot, *other));
            total -= gains.sum::<i64>();
            let costs = places[seat].iter().enumerate().filter_map(|(number, place)| {
                let table = self.plan.table(*place)?;
                let table = &table[..self.plan.seats];
                let cost =
                    || others(table, seat).map(|other| self.meetings.cost(*bot, other)).sum();
                (!table.contains(bot)).then(|| (cost(), number))
            });
            let (cost, number): (i64, usize) = costs.take(MAX_PLACES).min()?;
            total += cost;
            chosen[seat] = number;
        }
        Some((total, chosen))
    }
}

/// The bots of a table besides the one in this seat.
fn others(table: &[Bot], seat: usize) -> impl Iterator<Item = Bot> {
    table[..seat].iter().chain(&table[seat + 1..]).copied()
}
