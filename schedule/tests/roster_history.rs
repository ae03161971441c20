//! Foursomes with roster changes and with owners kept apart, checked by their certificates.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use arbiter_games::Seed;
use arbiter_schedule::foursomes::{Table, least_meetings};
use arbiter_schedule::{
    Bot, Certificate, FoursomesConfig, Matches, Member, Owner, Participants, Plan, RosterChange,
    RosterHistory, Schedule,
};
use proptest::prelude::*;

const LEAST: Schedule = Schedule::Foursomes(FoursomesConfig::Least);

fn games(count: u64) -> Schedule {
    Schedule::Foursomes(FoursomesConfig::Games(NonZeroU64::new(count).unwrap()))
}

/// A plan that is extended step by step, as for editions.
struct Growing {
    schedule: Schedule,
    seed: Seed,
    lineage: RosterHistory,
    /// The owner of each place, if owners are kept apart.
    owners: Vec<Option<Owner>>,
}

impl Growing {
    fn new(schedule: Schedule, bots: usize) -> Self {
        Self {
            schedule,
            seed: Seed::of_text("growing"),
            lineage: RosterHistory::new(bots),
            owners: Vec::new(),
        }
    }

    /// Each owner has this many bots, in the order of entry.
    fn owned(schedule: Schedule, bots: usize, each: usize) -> Self {
        let owner = |place: usize| Some(Owner(i32::try_from(place / each).unwrap()));
        Self { owners: (0..4 * bots).map(owner).collect(), ..Self::new(schedule, bots) }
    }

    fn field(&self) -> Participants {
        let present = self.lineage.present();
        let members = (0..=Bot::MAX).take(self.lineage.places()).map(|place| Member {
            bot: present.binary_search(&place).ok().map(|bot| bot.try_into().unwrap()),
            owner: self.owners.get(usize::from(place)).copied().flatten(),
        });
        let members: Vec<_> = members.collect();
        self.schedule.participants(&self.lineage, &members, self.seed).unwrap()
    }

    fn both(&self) -> (Participants, Matches) {
        let field = self.field();
        let plan = self.schedule.plan_for(&field, self.seed).unwrap();
        let Plan::Matches(matches) = plan else { panic!("foursomes are listed") };
        (field, matches)
    }

    /// The tables, by places, which do not change.
    fn tables(&self) -> Vec<Table> {
        let present = self.lineage.present();
        let place = |bot: &Bot| present[usize::from(*bot)];
        let tables = self.both().1.map(|planned| {
            let places: Vec<_> = planned.seats().iter().map(place).collect();
            places.try_into().unwrap()
        });
        tables.collect()
    }

    /// The certificate of the plan, which must meet its guarantees.
    fn prove(&self) -> Certificate {
        let (field, matches) = self.both();
        let claim = matches.claim();
        let counted = Certificate::count(field.bots(), 4, field.owners(), matches).unwrap();
        assert_eq!(counted.prove(&claim), Ok(()), "{:?}: {counted}{claim:?}", self.lineage);
        counted
    }

    fn join(&mut self, joined: usize) {
        self.lineage = self.lineage.after(RosterChange { left: Vec::new(), joined });
    }

    fn leave(&mut self, number: usize) -> Bot {
        let present = self.lineage.present();
        let left = present[number % present.len()];
        self.lineage = self.lineage.after(RosterChange { left: vec![left], joined: 0 });
        left
    }
}

/// The least and the largest number of meetings of a pair.
fn meetings(certificate: &Certificate) -> (u32, u32) {
    spread(certificate).unwrap()
}

/// The same; `None` if all bots have one owner, so that no pair counts.
fn spread(certificate: &Certificate) -> Option<(u32, u32)> {
    let least = certificate.meetings.first()?;
    let most = certificate.meetings.last()?;
    Some((least.0, most.0))
}

/// The bots at each table, without their seats.
fn companies(tables: &[Table]) -> Vec<Table> {
    let sorted = tables.iter().map(|table| {
        let mut table = *table;
        table.sort_unstable();
        table
    });
    sorted.collect()
}

/// The number of equal tables.
fn multiset(tables: &[Table]) -> BTreeMap<Table, usize> {
    tables.iter().fold(BTreeMap::new(), |mut all, table| {
        *all.entry(*table).or_default() += 1;
        all
    })
}

/// Numbers of bots, the new bot's tables, the meetings of pairs then, and the matches of a bot:
/// results of the first run.
#[test]
fn a_new_bot_needs_few_tables() {
    for (bots, played, new, meet, each) in [
        (10, 15, 7, (2, 3), 7..=9),
        (13, 13, 5, (1, 2), 5..=6),
        (37, 111, 13, (1, 2), 13..=14),
        (38, 703, 76, (6, 7), 76..=80),
        (100, 825, 34, (1, 2), 34..=35),
        (500, 62_375, 500, (3, 4), 500..=502),
    ] {
        let mut growing = Growing::new(LEAST, bots);
        assert_eq!(growing.prove().matches, played);
        growing.join(1);
        let joined = growing.prove();
        assert_eq!((joined.matches - played, meetings(&joined)), (new, meet), "{bots} bots");
        assert_eq!(joined.uneven_pairs(), 0, "{joined}");
        let least = joined.matches_of_bot.start();
        let most = joined.matches_of_bot.end();
        assert!(each.contains(least) && each.contains(most), "{joined}");
    }
}

#[test]
fn a_new_bot_keeps_all_earlier_tables() {
    for bots in 5..=120 {
        let mut growing = Growing::new(LEAST, bots);
        let before = growing.tables();
        growing.join(1);
        let after = growing.tables();
        let joined = growing.prove();
        let times = least_meetings(bots).unwrap();
        assert_eq!(after[..before.len()], before, "{bots} bots");
        let new = &after[before.len()..];
        assert_eq!(new.len(), (times as usize * bots).div_ceil(3), "{bots} bots");
        assert!(new.iter().all(|table| table.iter().any(|bot| usize::from(*bot) == bots)));
        // So few bots cannot avoid one another.
        let more = if 2 * (times as usize) < bots { 1 } else { 3 };
        let (least, most) = meetings(&joined);
        assert!(least == times && most <= times + more, "{joined}");
        assert!(joined.seat_spread <= 2, "{joined}");
    }
}

#[test]
fn a_leaving_bot_removes_only_its_own_tables() {
    for bots in [13, 14, 25, 37, 38, 61, 100] {
        let mut growing = Growing::new(LEAST, bots);
        let before = growing.tables();
        let left = growing.leave(bots / 2);
        let after = growing.tables();
        let counted = growing.prove();
        let stayed: Vec<_> = before.into_iter().filter(|table| !table.contains(&left)).collect();
        assert_eq!(after[..stayed.len()], stayed, "{bots} bots");
        let times = least_meetings(bots).unwrap();
        let (least, most) = meetings(&counted);
        assert!(least == times && most <= times + 1, "{counted}");
        // One table more at most for each that is gone.
        let gone = times as usize * (bots - 1) / 3;
        assert!(after.len() - stayed.len() <= gone, "{counted}");
        assert!(counted.seat_spread <= 3, "{counted}");
    }
}

#[test]
fn a_replacement_takes_over_the_tables() {
    for bots in [10, 37, 38] {
        let mut growing = Growing::new(LEAST, bots);
        let before = growing.tables();
        let left = growing.lineage.present()[3];
        growing.lineage = growing.lineage.after(RosterChange { left: vec![left], joined: 1 });
        let heir = Bot::try_from(bots).unwrap();
        let expected = before.into_iter();
        let expected = expected.map(|table| table.map(|bot| if bot == left { heir } else { bot }));
        assert_eq!(growing.tables(), expected.collect::<Vec<_>>());
        assert!(growing.prove().exact_meetings().is_some());
    }
}

#[test]
fn ten_bots_can_join_one_by_one() {
    for (bots, matches) in [(37, 253), (100, 1177)] {
        let mut growing = Growing::new(LEAST, bots);
        for _ in 0..10 {
            growing.join(1);
        }
        let counted = growing.prove();
        assert_eq!((counted.matches, meetings(&counted)), (matches, (1, 2)), "{counted}");
    }
}

/// If bots join and leave several times, new tables alone do not balance all seats.
#[test]
fn seats_differ_by_at_most_three() {
    for bots in [8, 14, 20, 26, 27, 33, 34, 38, 39, 50] {
        for number in 0..3 {
            let mut growing = Growing::new(LEAST, bots);
            growing.seed = Seed::of_text(&format!("seats {number}"));
            let mut dice = growing.seed.dice(bots as u64);
            for _ in 0..6 {
                let change = match dice.below(6) {
                    0..3 => Change::Join,
                    3..5 => Change::Leave(dice.index(100)),
                    _ => Change::Swap(dice.index(100)),
                };
                apply(&mut growing, least_meetings(bots).unwrap(), change);
                let counted = growing.prove();
                assert!(counted.seat_spread <= 3, "{bots} bots, seed {number}: {counted}");
            }
        }
    }
}

#[test]
fn owners_are_kept_apart() {
    for (bots, each, matches) in [
        // Four of one owner are a table of the design, which is left out.
        (16, 4, 16),
        (37, 2, 121),
        (40, 3, 140),
        (38, 2, 710),
        (100, 2, 860),
        (100, 5, 850),
    ] {
        let mut growing = Growing::owned(LEAST, bots, each);
        let counted = growing.prove();
        assert!(counted.matches <= matches, "{counted}");
        let times = least_meetings(bots).unwrap();
        let (least, most) = meetings(&counted);
        assert!(least == times && most <= times + 1, "{counted}");
        assert_eq!(counted.same_owner.unwrap().meetings, 0, "{counted}");
        growing.join(1);
        growing.leave(5);
        let counted = growing.prove();
        assert_eq!(
            (counted.same_owner.unwrap().meetings, meetings(&counted).0),
            (0, times),
            "{counted}"
        );
    }
}

#[test]
fn owners_are_kept_apart_within_a_budget() {
    for (bots, each, count) in [(40, 2, 100), (40, 2, 200), (40, 3, 1000), (100, 5, 2000)] {
        let counted = Growing::owned(games(count), bots, each).prove();
        assert_eq!(
            (counted.matches, counted.same_owner.unwrap().meetings),
            (count, 0),
            "{counted}"
        );
        let spread = counted.matches_of_bot.end() - counted.matches_of_bot.start();
        assert!(spread <= 1, "{counted}");
    }
}

/// Two owners cannot fill a table of four.
#[test]
fn unavoidable_meetings_of_one_owner_are_counted() {
    let counted = Growing::owned(LEAST, 12, 6).prove();
    let pairs = counted.same_owner.unwrap();
    assert_eq!((pairs.pairs, meetings(&counted).0), (30, 3), "{counted}");
    // Two and two at each table is the best there is: two pairs of one owner, four of both.
    assert!((2 * counted.matches..3 * counted.matches).contains(&pairs.meetings), "{counted}");
    let told = counted.to_string();
    assert!(told.contains("pairs of one owner: 30, which meet"), "{told}");
}

/// A roster change.
#[derive(Clone, Copy, Debug)]
enum Change {
    Join,
    Leave(usize),
    Swap(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => Just(Change::Join),
        2 => (0_usize..100).prop_map(Change::Leave),
        1 => (0_usize..100).prop_map(Change::Swap),
    ]
}

/// Applies a change if the plan can be extended: too few bots need a new plan.
fn apply(growing: &mut Growing, times: u32, change: Change) {
    let there = growing.lineage.present().len();
    match change {
        Change::Join if there > 4 && 2 * (times as usize) < there => growing.join(1),
        Change::Leave(number) if there > 7 => drop(growing.leave(number)),
        Change::Swap(number) => {
            let left = vec![growing.lineage.present()[number % there]];
            growing.lineage = growing.lineage.after(RosterChange { left, joined: 1 });
        }
        Change::Join | Change::Leave(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn every_roster_change_keeps_the_tables(
        bots in 4_usize..60,
        changes in prop::collection::vec(change(), 1..7),
        owned in prop::option::of(1_usize..5),
    ) {
        let times = least_meetings(bots).unwrap();
        let mut growing = match owned {
            Some(each) => Growing::owned(LEAST, bots, each),
            None => Growing::new(LEAST, bots),
        };
        for change in changes {
            let before = growing.tables();
            apply(&mut growing, times, change);
            let tables = growing.tables();
            let after = multiset(&tables);
            let beside = multiset(&companies(&tables));
            prop_assert_eq!(&after, &multiset(&growing.tables()));
            let present = growing.lineage.present();
            let stays = |table: &&Table| table.iter().all(|bot| present.contains(bot));
            let stayed: Vec<_> = before.iter().filter(stays).copied().collect();
            for (company, count) in multiset(&companies(&stayed)) {
                prop_assert!(beside.get(&company).is_some_and(|found| *found >= count));
            }
            // At a few of them bots change seats, if their seats would be too uneven.
            let reseated = multiset(&stayed).into_iter().map(|(table, count)| {
                count.saturating_sub(after.get(&table).copied().unwrap_or(0))
            });
            let reseated: usize = reseated.sum();
            prop_assert!(10 * reseated <= stayed.len(), "{reseated} of {}", stayed.len());
            let counted = growing.prove();
            let Some((least, most)) = spread(&counted) else {
                prop_assert!(owned.is_some_and(|each| each >= present.len()), "{counted}");
                continue;
            };
            prop_assert!(least >= times, "{counted}");
            prop_assert!(counted.seat_spread <= 3, "{counted}");
            // Few bots cannot avoid one another, nor can those of a few large owners.
            if present.len() >= 16 && owned.is_none() {
                let pairs: u64 = counted.meetings.iter().map(|(_, pairs)| pairs).sum();
                let met = counted.meetings.iter().map(|(met, pairs)| u64::from(*met) * pairs);
                let mean = met.sum::<u64>().div_ceil(pairs);
                prop_assert!(u64::from(most) <= mean + 1, "{counted}");
            }
        }
    }

    #[test]
    fn every_roster_change_within_a_budget_keeps_the_tables(
        bots in 8_usize..40,
        count in 10_u64..300,
        changes in prop::collection::vec(change(), 1..4),
    ) {
        let mut growing = Growing::new(games(count), bots);
        for change in changes {
            apply(&mut growing, 1, change);
            growing.prove();
        }
    }
}
