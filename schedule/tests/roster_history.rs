//! Foursomes with roster changes and with owners kept apart, checked by their certificates.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

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

/// A plan with roster changes, as for the editions of a tournament.
struct ChangingPlan {
    schedule: Schedule,
    seed: Seed,
    history: RosterHistory,
    /// The owner of each place, if owners are kept apart.
    owners: Vec<Option<Owner>>,
}

impl ChangingPlan {
    fn new(schedule: Schedule, bots: usize) -> Self {
        Self {
            schedule,
            seed: Seed::of_text("growing"),
            history: RosterHistory::new(bots),
            owners: Vec::new(),
        }
    }

    /// A plan that keeps owners apart. Each owner has this many bots, in the order of joining.
    fn with_owners(schedule: Schedule, bots: usize, bots_of_owner: usize) -> Self {
        let owner = |place: usize| Some(Owner(i32::try_from(place / bots_of_owner).unwrap()));
        Self { owners: (0..4 * bots).map(owner).collect(), ..Self::new(schedule, bots) }
    }

    fn participants(&self) -> Participants {
        let present = self.history.present();
        let members = (0..=Bot::MAX).take(self.history.places()).map(|place| Member {
            bot: present.binary_search(&place).ok().map(|bot| bot.try_into().unwrap()),
            owner: self.owners.get(usize::from(place)).copied().flatten(),
        });
        let members: Vec<_> = members.collect();
        self.schedule.participants(&self.history, &members, self.seed).unwrap()
    }

    fn matches(&self) -> (Participants, Matches) {
        let participants = self.participants();
        let plan = self.schedule.plan_for(&participants, self.seed).unwrap();
        let Plan::Matches(matches) = plan else { panic!("expected matches") };
        (participants, matches)
    }

    /// The tables, with places instead of bots, since places never change.
    fn tables(&self) -> Vec<Table> {
        let present = self.history.present();
        let place = |bot: &Bot| present[usize::from(*bot)];
        let tables = self.matches().1.map(|table| {
            let places: Vec<_> = table.seats().iter().map(place).collect();
            places.try_into().unwrap()
        });
        tables.collect()
    }

    /// The certificate of the plan. Checks that the plan meets its claim.
    fn prove(&self) -> Certificate {
        let (participants, matches) = self.matches();
        let claim = matches.claim();
        let certificate =
            Certificate::count(participants.bots(), 4, participants.owners(), matches).unwrap();
        assert_eq!(certificate.prove(&claim), Ok(()), "{:?}: {certificate}{claim:?}", self.history);
        certificate
    }

    fn join(&mut self, joined: usize) {
        self.history = self.history.after(RosterChange { left: Vec::new(), joined });
    }

    fn leave(&mut self, number: usize) -> Bot {
        let present = self.history.present();
        let left = present[number % present.len()];
        self.history = self.history.after(RosterChange { left: vec![left], joined: 0 });
        left
    }
}

/// The minimum and maximum number of meetings of a pair.
fn meetings(certificate: &Certificate) -> (u32, u32) {
    meeting_range(certificate).unwrap()
}

/// The minimum and maximum number of meetings of a pair. `None` if all bots have one owner, so that
/// no pair may meet.
fn meeting_range(certificate: &Certificate) -> Option<(u32, u32)> {
    let min = certificate.meetings.first()?;
    let max = certificate.meetings.last()?;
    Some((min.0, max.0))
}

/// The bots of each table in ascending order, without their seats.
fn sorted_tables(tables: &[Table]) -> Vec<Table> {
    let tables = tables.iter().map(|table| {
        let mut table = *table;
        table.sort_unstable();
        table
    });
    tables.collect()
}

/// The number of times that each table occurs.
fn multiset(tables: &[Table]) -> BTreeMap<Table, usize> {
    tables.iter().fold(BTreeMap::new(), |mut counts, table| {
        *counts.entry(*table).or_default() += 1;
        counts
    })
}

/// What people read about a number of meetings is true for the counted meetings.
#[test]
fn texts_about_meetings_are_true() {
    let schedule = |times| Schedule::Foursomes(FoursomesConfig::new(Some(times), None).unwrap());
    let expect = |plan: &ChangingPlan, counted: (u32, bool), text: Option<&str>| {
        let are_kept_apart = !plan.owners.is_empty();
        let adjustment = plan.schedule.adjustment_of(&plan.history, are_kept_apart);
        assert_eq!(adjustment.map(|adjustment| adjustment.to_string()).as_deref(), text);
        let (min, max) = meetings(&plan.prove());
        assert_eq!((min, min == max), counted, "{text:?}");
    };
    let more = |text: &str, cause: &str| {
        Some(format!("{text}, and some may meet more often because {cause}"))
    };
    let changes = "bots joined or left";
    let mut exact = ChangingPlan::new(schedule(1), 13);
    expect(&exact, (1, true), None);
    exact.join(1);
    let text = more("every pair of bots meets at least once, as requested", changes);
    expect(&exact, (1, false), text.as_deref());

    let mut rounded = ChangingPlan::new(schedule(4), 14);
    let text = "every pair of bots meets 6 times instead of 4, because 14 bots at tables of four \
        cannot all meet exactly 4 times";
    expect(&rounded, (6, true), Some(text));
    rounded.join(1);
    let text = more(
        "every pair of bots meets at least 6 times instead of 4, because the first 14 bots at tables \
         of four cannot all meet exactly 4 times",
        changes,
    );
    expect(&rounded, (6, false), text.as_deref());
    // If a new plan is made instead, the requested number is possible.
    let next = rounded.schedule.adjustment_of_next(&rounded.history, 16, false);
    let text = more("every pair of bots meets at least 4 times, as requested", changes);
    assert_eq!(next.map(|next| next.to_string()), text);

    let mut owners = ChangingPlan::with_owners(schedule(1), 37, 2);
    let pairs = "every pair of bots without a common owner meets at least once, as requested";
    expect(&owners, (1, false), more(pairs, "owners are kept apart").as_deref());
    owners.join(1);
    let both = "bots joined or left and owners are kept apart";
    expect(&owners, (1, false), more(pairs, both).as_deref());
}

/// The numbers are the results of the first run: bots, their matches, the new bot's tables, the
/// meetings of a pair afterwards, and the matches of a bot.
#[test]
fn a_new_bot_needs_few_tables() {
    for (bots, old_matches, new_tables, meeting_range, matches_of_bot) in [
        (10, 15, 7, (2, 3), 7..=9),
        (13, 13, 5, (1, 2), 5..=6),
        (37, 111, 13, (1, 2), 13..=14),
        (38, 703, 76, (6, 7), 76..=80),
        (100, 825, 34, (1, 2), 34..=35),
        (500, 62_375, 500, (3, 4), 500..=502),
    ] {
        let mut plan = ChangingPlan::new(LEAST, bots);
        assert_eq!(plan.prove().matches, old_matches);
        plan.join(1);
        let certificate = plan.prove();
        assert_eq!(certificate.matches - old_matches, new_tables, "{bots} bots");
        assert_eq!(meetings(&certificate), meeting_range, "{bots} bots");
        assert_eq!(certificate.uneven_pairs(), 0, "{certificate}");
        let min = certificate.matches_of_bot.start();
        let max = certificate.matches_of_bot.end();
        assert!(matches_of_bot.contains(min) && matches_of_bot.contains(max), "{certificate}");
    }
}

#[test]
fn a_new_bot_keeps_all_earlier_tables() {
    for bots in 5..=120 {
        let mut plan = ChangingPlan::new(LEAST, bots);
        let old_tables = plan.tables();
        plan.join(1);
        let tables = plan.tables();
        let certificate = plan.prove();
        let times = least_meetings(bots).unwrap();
        assert_eq!(tables[..old_tables.len()], old_tables, "{bots} bots");
        let new_tables = &tables[old_tables.len()..];
        assert_eq!(new_tables.len(), (times as usize * bots).div_ceil(3), "{bots} bots");
        assert!(new_tables.iter().all(|table| table.iter().any(|bot| usize::from(*bot) == bots)));
        // With few bots, some pairs must meet more often.
        let tolerance = if 2 * (times as usize) < bots { 1 } else { 3 };
        let (min, max) = meetings(&certificate);
        assert!(min == times && max <= times + tolerance, "{certificate}");
        assert!(certificate.seat_spread <= 2, "{certificate}");
    }
}

#[test]
fn a_bot_that_leaves_removes_only_its_tables() {
    for bots in [13, 14, 25, 37, 38, 61, 100] {
        let mut plan = ChangingPlan::new(LEAST, bots);
        let old_tables = plan.tables();
        let leaver = plan.leave(bots / 2);
        let tables = plan.tables();
        let certificate = plan.prove();
        let remaining: Vec<_> =
            old_tables.into_iter().filter(|table| !table.contains(&leaver)).collect();
        assert_eq!(tables[..remaining.len()], remaining, "{bots} bots");
        let times = least_meetings(bots).unwrap();
        let (min, max) = meetings(&certificate);
        assert!(min == times && max <= times + 1, "{certificate}");
        // There is at most one new table for each removed table.
        let removed_tables = times as usize * (bots - 1) / 3;
        assert!(tables.len() - remaining.len() <= removed_tables, "{certificate}");
        assert!(certificate.seat_spread <= 3, "{certificate}");
    }
}

#[test]
fn a_replacement_gets_the_tables() {
    for bots in [10, 37, 38] {
        let mut plan = ChangingPlan::new(LEAST, bots);
        let old_tables = plan.tables();
        let leaver = plan.history.present()[3];
        plan.history = plan.history.after(RosterChange { left: vec![leaver], joined: 1 });
        let successor = Bot::try_from(bots).unwrap();
        let replace = |bot| if bot == leaver { successor } else { bot };
        let expected: Vec<_> = old_tables.into_iter().map(|table| table.map(replace)).collect();
        assert_eq!(plan.tables(), expected);
        assert!(plan.prove().exact_meetings().is_some());
    }
}

#[test]
fn ten_bots_can_join_one_by_one() {
    for (bots, matches) in [(37, 253), (100, 1177)] {
        let mut plan = ChangingPlan::new(LEAST, bots);
        for _ in 0..10 {
            plan.join(1);
        }
        let certificate = plan.prove();
        assert_eq!(
            (certificate.matches, meetings(&certificate)),
            (matches, (1, 2)),
            "{certificate}"
        );
    }
}

/// If bots join and leave several times, new tables alone do not balance all seats.
#[test]
fn seats_differ_by_at_most_three() {
    for bots in [8, 14, 20, 26, 27, 33, 34, 38, 39, 50] {
        for number in 0..3 {
            let mut plan = ChangingPlan::new(LEAST, bots);
            plan.seed = Seed::of_text(&format!("seats {number}"));
            let mut dice = plan.seed.dice(bots as u64);
            for _ in 0..6 {
                let change = match dice.below(6) {
                    0..3 => Change::Join,
                    3..5 => Change::Leave(dice.index(100)),
                    _ => Change::Swap(dice.index(100)),
                };
                apply(&mut plan, least_meetings(bots).unwrap(), change);
                let certificate = plan.prove();
                assert!(certificate.seat_spread <= 3, "{bots} bots, seed {number}: {certificate}");
            }
        }
    }
}

#[test]
fn owners_are_kept_apart() {
    for (bots, bots_of_owner, max_matches) in [
        // Some tables of the design have four bots of one owner. They need no replacement.
        (16, 4, 16),
        (37, 2, 121),
        (40, 3, 140),
        (38, 2, 710),
        (100, 2, 860),
        (100, 5, 850),
    ] {
        let mut plan = ChangingPlan::with_owners(LEAST, bots, bots_of_owner);
        let certificate = plan.prove();
        assert!(certificate.matches <= max_matches, "{certificate}");
        let times = least_meetings(bots).unwrap();
        let (min, max) = meetings(&certificate);
        assert!(min == times && max <= times + 1, "{certificate}");
        assert_eq!(certificate.same_owner.unwrap().meetings, 0, "{certificate}");
        plan.join(1);
        plan.leave(5);
        let certificate = plan.prove();
        assert_eq!(
            (certificate.same_owner.unwrap().meetings, meetings(&certificate).0),
            (0, times),
            "{certificate}"
        );
    }
}

#[test]
fn owners_are_kept_apart_in_a_number_of_games() {
    for (bots, bots_of_owner, count) in [(40, 2, 100), (40, 2, 200), (40, 3, 1000), (100, 5, 2000)]
    {
        let certificate = ChangingPlan::with_owners(games(count), bots, bots_of_owner).prove();
        assert_eq!(
            (certificate.matches, certificate.same_owner.unwrap().meetings),
            (count, 0),
            "{certificate}"
        );
        let spread = certificate.matches_of_bot.end() - certificate.matches_of_bot.start();
        assert!(spread <= 1, "{certificate}");
    }
}

/// Two owners cannot fill a table of four.
#[test]
fn unavoidable_meetings_of_one_owner_are_certificate() {
    let certificate = ChangingPlan::with_owners(LEAST, 12, 6).prove();
    let pairs = certificate.same_owner.unwrap();
    assert_eq!((pairs.pairs, meetings(&certificate).0), (30, 3), "{certificate}");
    // The best table has two bots of each owner. Two of its pairs have one owner.
    assert!(
        (2 * certificate.matches..3 * certificate.matches).contains(&pairs.meetings),
        "{certificate}"
    );
    let text = certificate.to_string();
    assert!(text.contains("pairs of one owner: 30, which meet"), "{text}");
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

/// Applies a change if enough bots remain.
fn apply(plan: &mut ChangingPlan, times: u32, change: Change) {
    let present = plan.history.present().len();
    match change {
        Change::Join if present > 4 && 2 * (times as usize) < present => plan.join(1),
        Change::Leave(number) if present > 7 => drop(plan.leave(number)),
        Change::Swap(number) => {
            let left = vec![plan.history.present()[number % present]];
            plan.history = plan.history.after(RosterChange { left, joined: 1 });
        }
        Change::Join | Change::Leave(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn a_roster_change_keeps_the_other_tables(
        bots in 4_usize..60,
        changes in prop::collection::vec(change(), 1..7),
        bots_of_owner in prop::option::of(1_usize..5),
    ) {
        let times = least_meetings(bots).unwrap();
        let mut plan = match bots_of_owner {
            Some(count) => ChangingPlan::with_owners(LEAST, bots, count),
            None => ChangingPlan::new(LEAST, bots),
        };
        for change in changes {
            let old_tables = plan.tables();
            apply(&mut plan, times, change);
            let tables = plan.tables();
            let counts = multiset(&tables);
            let sorted_counts = multiset(&sorted_tables(&tables));
            prop_assert_eq!(&counts, &multiset(&plan.tables()));
            let present = plan.history.present();
            let remains = |table: &&Table| table.iter().all(|bot| present.contains(bot));
            let remaining: Vec<_> = old_tables.iter().filter(remains).copied().collect();
            for (table, count) in multiset(&sorted_tables(&remaining)) {
                prop_assert!(sorted_counts.get(&table).is_some_and(|actual| *actual >= count));
            }
            // Bots may exchange seats at a few tables, if their seats would be too uneven.
            let reseated = multiset(&remaining).into_iter().map(|(table, count)| {
                count.saturating_sub(counts.get(&table).copied().unwrap_or(0))
            });
            let reseated: usize = reseated.sum();
            prop_assert!(10 * reseated <= remaining.len(), "{reseated} of {}", remaining.len());
            let certificate = plan.prove();
            let Some((min, max)) = meeting_range(&certificate) else {
                prop_assert!(bots_of_owner.is_some_and(|count| count >= present.len()), "{certificate}");
                continue;
            };
            prop_assert!(min >= times, "{certificate}");
            prop_assert!(certificate.seat_spread <= 3, "{certificate}");
            // With few bots, or few owners, some pairs must meet more often.
            if present.len() >= 16 && bots_of_owner.is_none() {
                let pairs: u64 = certificate.meetings.iter().map(|(_, pairs)| pairs).sum();
                let total =
                    certificate.meetings.iter().map(|(times, pairs)| u64::from(*times) * pairs);
                let mean = total.sum::<u64>().div_ceil(pairs);
                prop_assert!(u64::from(max) <= mean + 1, "{certificate}");
            }
        }
    }

    #[test]
    fn a_plan_of_games_meets_its_claim_after_roster_changes(
        bots in 8_usize..40,
        count in 10_u64..300,
        changes in prop::collection::vec(change(), 1..4),
    ) {
        let mut plan = ChangingPlan::new(games(count), bots);
        for change in changes {
            apply(&mut plan, 1, change);
            plan.prove();
        }
    }
}
