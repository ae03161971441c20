//! Tables of any number of seats, and solo matches, checked by their certificates.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use arbiter_games::Seed;
use arbiter_schedule::{
    Bot, Certificate, Matches, Member, Participants, Plan, Repetitions, RosterChange,
    RosterHistory, Schedule, ScheduleError, Solo, TableSeats, Tables,
};
use proptest::prelude::*;

fn tables(seats: usize, legs: i64) -> Schedule {
    let seats = TableSeats::try_from(i64::try_from(seats).unwrap()).unwrap();
    Schedule::Tables(Tables { seats, legs: Repetitions::try_from(legs).unwrap() })
}

/// The schedule of tables of this many seats; of solo matches for one.
fn schedule(seats: usize, legs: i64) -> Schedule {
    match seats {
        1 => Schedule::Solo(Solo { legs: Repetitions::try_from(legs).unwrap() }),
        _ => tables(seats, legs),
    }
}

fn matches(schedule: &Schedule, bots: usize, text: &str) -> Matches {
    match schedule.plan(bots, Seed::of_text(text)) {
        Ok(Plan::Matches(matches)) => matches,
        other => panic!("{other:?}"),
    }
}

/// The minimum and maximum number of meetings of a pair.
fn meetings(certificate: &Certificate) -> (u32, u32) {
    (certificate.meetings[0].0, certificate.meetings.last().unwrap().0)
}

/// The certificate of matches. Checks that they meet their claim.
fn prove(bots: usize, matches: Matches) -> Certificate {
    let seats = matches.seats();
    let claim = matches.claim();
    let certificate = Certificate::count(bots, seats, &[], matches).unwrap();
    assert_eq!(certificate.prove(&claim), Ok(()), "{certificate}{claim:?}");
    // The claim is exact: some pair meets that seldom, and some that often.
    if bots > 1 && seats > 1 {
        assert_eq!(meetings(&certificate), claim.meetings.into_inner());
    }
    certificate
}

/// For each bot, how often it has each seat, and how often each pair meets, without a certificate.
fn count(bots: usize, matches: Matches) -> (BTreeSet<u32>, Vec<Vec<u32>>) {
    let seats = matches.seats();
    let mut times = vec![vec![0; seats]; bots];
    let mut meetings = vec![vec![0; bots]; bots];
    for planned in matches {
        for (seat, bot) in planned.seats().iter().enumerate() {
            times[usize::from(*bot)][seat] += 1;
            for other in &planned.seats()[..seat] {
                meetings[usize::from(*bot)][usize::from(*other)] += 1;
                meetings[usize::from(*other)][usize::from(*bot)] += 1;
            }
        }
    }
    (times.into_iter().flatten().collect(), meetings)
}

#[test]
fn every_bot_has_each_seat_exactly_once_in_each_leg() {
    for bots in 1..=60 {
        for seats in 1..=16.min(bots) {
            for legs in [1, 3] {
                let plan = || matches(&schedule(seats, legs), bots, "seats");
                let certificate = prove(bots, plan());
                let legs = u32::try_from(legs).unwrap();
                let expected = legs * u32::try_from(seats).unwrap();
                assert_eq!(certificate.matches, u64::from(legs) * bots as u64);
                assert_eq!(certificate.matches_of_bot, expected..=expected);
                assert_eq!((certificate.times_in_seat, certificate.seat_spread), (legs..=legs, 0));
                let (times, meetings) = count(bots, plan());
                assert_eq!(times, BTreeSet::from([legs]));
                let claim = plan().claim();
                for (bot, others) in meetings.iter().enumerate() {
                    let others = others.iter().enumerate().filter(|(other, _)| *other != bot);
                    let counts: Vec<_> = others.map(|(_, count)| *count).collect();
                    assert!(counts.iter().all(|count| claim.meetings.contains(count)));
                    let total: u32 = counts.iter().sum();
                    assert_eq!(total, expected * (u32::try_from(seats).unwrap() - 1));
                }
            }
        }
    }
}

/// The numbers of plans by the difference between the pairs that meet most and least often, with an
/// odd and an even number of bots. They are the results of the first run.
#[test]
fn pairs_meet_almost_equally_often() {
    let mut plans = [BTreeMap::new(), BTreeMap::new()];
    for seats in 2..=16 {
        for bots in seats..=60 {
            let certificate = prove(bots, matches(&tables(seats, 10), bots, "balance"));
            let (min, max) = meetings(&certificate);
            let spread = max - min;
            *plans[(bots + 1) % 2].entry(spread).or_insert(0) += 1;
        }
    }
    let odd = [(0, 74), (1, 254), (2, 57), (3, 1)];
    let even = [(0, 33), (1, 295), (2, 63), (3, 3)];
    assert_eq!(plans, [odd, even].map(BTreeMap::from));
}

#[test]
fn known_designs_are_found() {
    // Projective planes, and all bots but one at each table.
    for (bots, seats, meetings) in
        [(7, 3, 1), (13, 4, 1), (21, 5, 1), (31, 6, 1), (6, 5, 4), (5, 5, 5)]
    {
        let certificate = prove(bots, matches(&tables(seats, 1), bots, "planes"));
        assert_eq!(certificate.exact_meetings(), Some(meetings), "{certificate}");
    }
}

#[test]
fn plans_depend_on_the_seed_alone() {
    for (bots, seats) in [(5, 5), (12, 5), (40, 3), (200, 16)] {
        let list = |text| matches(&tables(seats, 2), bots, text).collect::<Vec<_>>();
        assert_eq!(list("one"), list("one"));
        assert_ne!(list("one"), list("two"), "{bots} bots at tables of {seats}");
    }
}

/// The first digits of a digest of all tables.
fn digest(matches: Matches) -> String {
    let places: Vec<_> = matches.flat_map(|table| table.seats().to_vec()).collect();
    let text: Vec<_> = places.iter().map(ToString::to_string).collect();
    Seed::of_text(&text.join(" ")).to_string()[..16].to_owned()
}

/// A change of a digest would change running tournaments. It needs a new kind of schedule.
#[test]
fn plans_never_change() {
    let digests = [(12, 5), (40, 3), (16, 16), (500, 6)]
        .map(|(bots, seats)| digest(matches(&tables(seats, 3), bots, "fixed")));
    assert_eq!(
        digests,
        ["a50b8d17fca18149", "7bedebfb03b3fdaa", "424a29ab6375e3fd", "7360decaf8d2d628"]
    );
    // A bot joins, one leaves, and one replaces another. Among 100 bots the search draws tables.
    for (bots, expected) in [
        (12, ["d2589c841b37c795", "8e0eefff995662f7", "7ef7265757649912"]),
        (100, ["f17ba7e0dafe67e1", "f260ea7c804a94f3", "43df8afd8de1506d"]),
    ] {
        let mut plan = ChangingPlan::new(5, 3, bots);
        let changes: [(&[usize], usize); 3] = [(&[], 1), (&[7], 0), (&[3], 1)];
        let digests = changes.map(|(left, joined)| {
            plan.change(left, joined).unwrap();
            digest(plan.matches())
        });
        assert_eq!(digests, expected, "{bots} bots");
    }
}

#[test]
fn large_plans_are_planned_and_proved() {
    for (bots, seats, most_uneven) in [(1000, 16, 11_000), (3000, 5, 0), (5000, 3, 0)] {
        let certificate = prove(bots, matches(&tables(seats, 10), bots, "large"));
        assert!(certificate.uneven_pairs() <= most_uneven, "{certificate}");
    }
    assert_eq!(matches(&tables(5, 1), 65_536, "largest").count(), 65_536);
}

#[test]
fn impossible_tables_are_errors() {
    let plan = |schedule: Schedule, bots| schedule.plan(bots, Seed::of_text("")).unwrap_err();
    assert_eq!(plan(tables(5, 1), 4), ScheduleError::TooFew { bots: 4, min: 5, plan: "one table" });
    assert_eq!(plan(tables(5, 1), 70_000), ScheduleError::TooMany { bots: 70_000 });
    assert!(matches!(plan(schedule(1, 1), 0), ScheduleError::TooFew { .. }));
    for (seats, text) in [(-1, "-1 seats"), (0, "0 seats"), (1, "1 seat"), (17, "17 seats")] {
        let error = TableSeats::try_from(seats).unwrap_err().to_string();
        assert!(error.starts_with(&format!("a table cannot have {text}; ")), "{error}");
    }
}

/// A plan with roster changes, as for the editions of a tournament.
struct ChangingPlan {
    schedule: Schedule,
    history: RosterHistory,
}

impl ChangingPlan {
    fn new(seats: usize, legs: i64, bots: usize) -> Self {
        Self { schedule: tables(seats, legs), history: RosterHistory::new(bots) }
    }

    fn participants(&self) -> Result<Participants, ScheduleError> {
        let present = self.history.present();
        let members = (0..=Bot::MAX).take(self.history.places()).map(|place| Member {
            bot: present.binary_search(&place).ok().map(|bot| bot.try_into().unwrap()),
            owner: None,
        });
        let members: Vec<_> = members.collect();
        self.schedule.participants(&self.history, &members, Seed::of_text("changing"))
    }

    fn matches(&self) -> Matches {
        let participants = self.participants().unwrap();
        match self.schedule.plan_for(&participants, Seed::of_text("changing")) {
            Ok(Plan::Matches(matches)) => matches,
            other => panic!("{other:?}"),
        }
    }

    /// The tables, with places instead of bots, since places never change.
    fn tables(&self) -> Vec<Vec<Bot>> {
        let present = self.history.present();
        let place = |bot: &Bot| present[usize::from(*bot)];
        self.matches().map(|table| table.seats().iter().map(place).collect()).collect()
    }

    /// Applies a change. Returns the number of new tables, or `None` if there is no room for it.
    fn change(&mut self, left: &[usize], joined: usize) -> Option<usize> {
        let before = self.tables();
        let present = self.history.present();
        let left: BTreeSet<_> = left.iter().map(|number| present[number % present.len()]).collect();
        let step = RosterChange { left: left.into_iter().collect(), joined };
        let history = std::mem::replace(&mut self.history, RosterHistory::new(0));
        self.history = history.after(step);
        if let Err(error) = self.participants() {
            assert!(matches!(error, ScheduleError::NoRoom { .. }), "{error}");
            self.history = history;
            return None;
        }
        let mut before = before.into_iter().fold(BTreeMap::new(), |mut counts, table| {
            *counts.entry(table).or_insert(0) += 1;
            counts
        });
        let new = self.tables().into_iter().filter(|table| match before.get_mut(table) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        });
        Some(new.count())
    }

    /// The certificate of the plan. Checks that seats and matches are exact.
    fn prove(&self) -> Certificate {
        let bots = self.history.present().len();
        let certificate = prove(bots, self.matches());
        let Schedule::Tables(Tables { seats, legs }) = self.schedule else { unreachable!() };
        let matches = legs.get() * u32::try_from(seats.get()).unwrap();
        assert_eq!(certificate.matches_of_bot, matches..=matches, "{certificate}");
        assert_eq!(certificate.times_in_seat, legs.get()..=legs.get(), "{certificate}");
        certificate
    }
}

#[test]
fn a_new_bot_changes_few_tables() {
    for (seats, legs, bots) in [(3, 10, 12), (5, 10, 12), (5, 10, 40), (5, 4, 500), (16, 2, 100)] {
        let mut plan = ChangingPlan::new(seats, legs, bots);
        let legs = usize::try_from(legs).unwrap();
        plan.prove();
        // A table that changes twice needs one match less.
        assert!(plan.change(&[], 1).unwrap() <= legs * (seats + 1));
        plan.prove();
        assert_eq!(plan.change(&[3], 1), Some(legs * seats));
        plan.prove();
        assert!(plan.change(&[7], 0).unwrap() <= legs * seats);
        plan.prove();
    }
}

/// Bots join one by one until there are twice as many, and then leave one by one. The meetings of a
/// pair are the results of the first run.
#[test]
fn many_changes_keep_pairs_balanced() {
    for (seats, bots, after_joins, after_leaves) in
        [(5, 12, (7, 10), (17, 20)), (4, 20, (2, 5), (5, 8)), (8, 20, (12, 16), (27, 32))]
    {
        let mut plan = ChangingPlan::new(seats, 10, bots);
        for _ in 0..bots {
            plan.change(&[], 1).unwrap();
        }
        assert_eq!(meetings(&plan.prove()), after_joins, "{bots} bots at tables of {seats}");
        for number in 0..bots {
            plan.change(&[number * 7], 0).unwrap();
        }
        assert_eq!(meetings(&plan.prove()), after_leaves, "{bots} bots at tables of {seats}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_meets_its_claim_after_roster_changes(
        seats in 2_usize..=16,
        more in 0_usize..40,
        legs in 1_i64..4,
        changes in prop::collection::vec((prop::collection::vec(0_usize..100, 0..3), 0_usize..3), 1..6),
    ) {
        let mut plan = ChangingPlan::new(seats, legs, seats + more);
        for (left, joined) in changes {
            let present = plan.history.present().len();
            if present + joined < seats + left.len() {
                continue;
            }
            let leavers = left.len();
            let most = leavers.max(joined) * usize::try_from(legs).unwrap() * (seats + 1);
            match plan.change(&left, joined) {
                Some(new) => prop_assert!(new <= most, "{new} new tables, not {most}"),
                // Few bots at large tables have met nearly everywhere.
                None => prop_assert!(present <= seats * seats, "{present} bots at tables of {seats}"),
            }
            plan.prove();
        }
    }
}
