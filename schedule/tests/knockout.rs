//! Knockouts: brackets, meetings, ranks and certificates.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use arbiter_games::{Score, Seed};
use arbiter_schedule::{
    Bot, Bracket, BracketCertificate, DecidedBy, Fixture, Knockout, MatchBounds, NameKey,
    ResultsError, RoundPlan, Schedule, ScheduleError,
};
use proptest::prelude::*;

fn rules(text: &str) -> Knockout {
    match toml::from_str(&format!("kind = \"knockout\"\n{text}")).unwrap() {
        Schedule::Knockout(rules) => rules,
        other => panic!("{other:?}"),
    }
}

fn names(bots: usize) -> Vec<NameKey> {
    NameKey::of_numbers(Seed::of_text("cup"), bots)
}

fn bracket(plan: &RoundPlan) -> &Bracket {
    match plan {
        RoundPlan::Knockout(bracket) => bracket,
        other => panic!("{other:?}"),
    }
}

fn plan(text: &str, bots: usize) -> RoundPlan {
    Schedule::Knockout(rules(text)).rounds(&names(bots), Seed::of_text("cup")).unwrap().unwrap()
}

/// The scores of a game between two bots.
type Scores<'a> = &'a dyn Fn(&RoundPlan, Bot, Bot) -> [i64; 2];

/// Plays the planned matches.
fn play_round(plan: &mut RoundPlan, scores: Scores<'_>) {
    let results: Vec<_> = plan
        .matches()
        .iter()
        .map(|planned| {
            let [first, second] = planned.seats().try_into().unwrap();
            scores(plan, first, second).map(|score| Score(vec![score])).to_vec()
        })
        .collect();
    plan.finish(&results).unwrap();
}

/// Plays all matches and returns their seats.
fn play(plan: &mut RoundPlan, scores: Scores<'_>) -> Vec<(u32, Vec<Bot>)> {
    let mut played = Vec::new();
    while !plan.is_over() {
        played.extend(plan.matches().iter().map(|planned| (planned.leg, planned.seats().to_vec())));
        play_round(plan, scores);
    }
    played
}

/// The bot with the better number wins.
fn by_number(plan: &RoundPlan, first: Bot, second: Bot) -> [i64; 2] {
    let numbered = bracket(plan).numbered();
    let number = |bot: Bot| numbered.iter().position(|numbered| *numbered == bot).unwrap();
    if number(first) < number(second) { [2, 0] } else { [0, 2] }
}

/// The bot with the lower index wins.
fn by_index(_: &RoundPlan, first: Bot, second: Bot) -> [i64; 2] {
    if first < second { [2, 0] } else { [0, 2] }
}

#[test]
fn the_best_numbers_meet_last_and_get_the_byes() {
    let plan = plan("seeding = \"entry\"\nbest_of = 1", 6);
    let fixtures = &bracket(&plan).rounds()[0];
    let pairs: Vec<_> = fixtures
        .iter()
        .map(|fixture| match fixture {
            Fixture::Bye(bot) => vec![*bot],
            Fixture::Meeting(meeting) => meeting.bots.to_vec(),
        })
        .collect();
    assert_eq!(pairs, [vec![0], vec![3, 4], vec![1], vec![2, 5]]);
}

/// The winner has rank 1, the finalist 2, both losers of semi-finals 3, and so on.
#[test]
fn ranks_follow_from_the_round_reached() {
    let mut six = plan("seeding = \"entry\"", 6);
    assert_eq!(six.ranks(), [1; 6]);
    play_round(&mut six, &by_number);
    assert_eq!(six.ranks(), [1, 1, 1, 1, 5, 5]);
    play_round(&mut six, &by_number);
    assert_eq!(six.ranks(), [1, 1, 3, 3, 5, 5]);
    assert!(!six.is_over());
    play_round(&mut six, &by_number);
    assert_eq!(six.ranks(), [1, 2, 3, 3, 5, 5]);
    assert!(six.is_over());
}

#[test]
fn the_third_place_is_played_out_on_request() {
    let mut six = plan("seeding = \"entry\"\nthird_place = true", 6);
    let played = play(&mut six, &by_number);
    assert_eq!(six.ranks(), [1, 2, 3, 4, 5, 5]);
    assert_eq!(played.len(), 2 * 6);
    // With three bots only one loses a semi-final.
    let mut three = plan("seeding = \"entry\"\nthird_place = true", 3);
    assert_eq!(play(&mut three, &by_number).len(), 2 * 2);
    assert_eq!(three.ranks(), [1, 2, 3]);
}

/// After a tie pairs of games follow, then the better number in the bracket advances.
#[test]
fn ties_bring_extra_games_and_then_the_number_decides() {
    let mut two = plan("seeding = \"entry\"\nbest_of = 3\nextra_pairs = 2", 2);
    let played = play(&mut two, &|_, _, _| [1, 1]);
    let legs: Vec<_> = played.iter().map(|(leg, _)| *leg).collect();
    assert_eq!(legs, [0, 0, 1, 2, 2, 3, 3]);
    for pair in played.windows(2) {
        let mut swapped = pair[1].1.clone();
        swapped.reverse();
        assert_eq!(pair[0].1, swapped, "sides are swapped from game to game");
    }
    let decision = |plan: &RoundPlan| match &bracket(plan).rounds()[0][0] {
        Fixture::Meeting(meeting) => meeting.decision.unwrap(),
        Fixture::Bye(_) => panic!("two bots meet"),
    };
    assert_eq!((decision(&two).winner, decision(&two).by), (0, DecidedBy::Number));
    // Bot 1 wins one of the first two extra games.
    let mut two = plan("seeding = \"entry\"\nbest_of = 2\nextra_pairs = 2", 2);
    play_round(&mut two, &|_, _, _| [1, 1]);
    play_round(&mut two, &|_, first, _| if first == 1 { [2, 0] } else { [1, 1] });
    assert!(two.is_over());
    assert_eq!((decision(&two).winner, decision(&two).by), (1, DecidedBy::ExtraGames));
    // Without extra games the number decides at once.
    let mut two = plan("extra_pairs = 0", 2);
    assert_eq!(play(&mut two, &|_, _, _| [1, 1]).len(), 2);
}

/// Scores are compared from the left, as in the ranking of a game.
#[test]
fn later_components_of_a_score_break_ties() {
    let mut two = plan("seeding = \"entry\"\nbest_of = 1", 2);
    let is_first = two.matches()[0].seats()[0] == 0;
    let better = Score(vec![1, 5]);
    let worse = Score(vec![1, 3]);
    let scores = if is_first { vec![worse, better] } else { vec![better, worse] };
    two.finish(&[scores]).unwrap();
    assert_eq!(two.ranks(), [2, 1]);
}

#[test]
fn results_of_other_matches_are_refused() {
    let mut two = plan("best_of = 2", 2);
    let before = two.matches();
    let count = ResultsError::Count { matches: 2, results: 1 };
    assert_eq!(two.finish(&[vec![Score(vec![1]); 2]]), Err(count));
    let seats = ResultsError::Seats { number: 2, actual: 1, expected: 2 };
    let results = [vec![Score(vec![1]); 2], vec![Score(vec![1])]];
    assert_eq!(two.finish(&results), Err(seats));
    assert_eq!(two.matches(), before, "nothing was counted");
}

#[test]
fn options_are_checked() {
    let error = |text: &str| {
        toml::from_str::<Schedule>(&format!("kind = \"knockout\"\n{text}")).unwrap_err().to_string()
    };
    assert!(error("best_of = 0").contains("choose a number from 1 to 1000"));
    assert!(error("extra_pairs = 101").contains("choose a number from 0 to 100"));
    assert!(error("seeding = \"rating\"").contains("draw or entry"));
    assert!(error("legs = 2").contains("unknown field"));
    let none = Schedule::Knockout(Knockout::default())
        .rounds(&names(1), Seed::of_text("cup"))
        .unwrap_err();
    assert_eq!(none, ScheduleError::TooFew { bots: 1, min: 2, plan: "a knockout" });
}

#[test]
fn the_certificate_states_the_form_and_the_bounds() {
    let six = plan("seeding = \"entry\"\nbest_of = 3\nthird_place = true", 6);
    let certificate = BracketCertificate::prove(bracket(&six)).unwrap();
    assert_eq!(certificate.byes, [0, 1]);
    assert_eq!((certificate.rounds, certificate.first_round), (3, 6));
    assert_eq!(certificate.matches, MatchBounds { fewest: 18, most: 30 });
    assert_eq!((certificate.most_of_bot, certificate.side_spread), (15, 1));
    let text = certificate.to_string();
    assert!(text.contains("byes:               2 (bots 1, 2), for the best numbers"), "{text}");
}

/// The tournament's seed and the names decide the bracket, and the order of entry does not.
#[test]
fn a_draw_depends_on_names_and_not_on_the_order_of_entry() {
    let all = names(9);
    let reversed: Vec<_> = all.iter().rev().copied().collect();
    let drawn = |names: &[NameKey]| -> Vec<_> {
        let plan = Schedule::Knockout(Knockout::default())
            .rounds(names, Seed::of_text("cup"))
            .unwrap()
            .unwrap();
        bracket(&plan).numbered().iter().map(|bot| names[usize::from(*bot)]).collect()
    };
    assert_eq!(drawn(&all), drawn(&reversed));
    assert_ne!(drawn(&all), all);
}

/// Otherwise a pair that meets in an earlier round of the next edition would play other games.
#[test]
fn two_bots_play_the_same_games_in_every_round() {
    let all = names(8);
    let games = |names: &[NameKey], bots: [NameKey; 2]| {
        let mut plan = Schedule::Knockout(rules("seeding = \"entry\""))
            .rounds(names, Seed::of_text("cup"))
            .unwrap();
        let plan = plan.as_mut().unwrap();
        let first = |bot: Bot| names[usize::from(bot)];
        let wins = |_: &RoundPlan, a: Bot, b: Bot| {
            let is_out = |bot: Bot| !bots.contains(&first(bot));
            [is_out(b), is_out(a)].map(i64::from)
        };
        let played = play(plan, &wins).into_iter();
        let named = played.map(|(leg, seats)| (leg, seats.into_iter().map(first).collect()));
        let of_pair = |(_, seats): &(u32, Vec<NameKey>)| seats.iter().all(|bot| bots.contains(bot));
        named.filter(of_pair).take(2).collect::<Vec<_>>()
    };
    let pair = [all[0], all[7]];
    let mut moved = all.clone();
    moved.swap(6, 7);
    assert_eq!(games(&all, pair).len(), 2);
    assert_eq!(games(&all, pair), games(&moved, pair));
}

proptest! {
    /// Every bot plays until it has lost, the best bot wins, and the ranks are those of a knockout.
    #[test]
    fn every_bot_but_the_winner_loses_once(
        bots in 2_usize..70, best_of in 1_i64..4, third_place: bool, seed: u64,
    ) {
        let names = NameKey::of_numbers(Seed::of_text(&seed.to_string()), bots);
        let rules = Knockout { best_of: best_of.try_into().unwrap(), third_place, ..Knockout::default() };
        let mut plan = Schedule::Knockout(rules).rounds(&names, Seed::of_text("cup")).unwrap().unwrap();
        let certificate = BracketCertificate::prove(bracket(&plan)).unwrap();
        let played = play(&mut plan, &by_index);
        prop_assert_eq!(played.len() as u64, plan.bounds().fewest);
        prop_assert_eq!(plan.bounds(), certificate.matches);
        let ranks = plan.ranks();
        prop_assert_eq!(ranks[0], 1, "the best bot wins");
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        // A rank is one more than the number of better bots.
        for rank in &sorted {
            let better = sorted.iter().filter(|other| *other < rank).count();
            prop_assert_eq!(*rank as usize, better + 1);
        }
        let losses = |bot: Bot| {
            let fixtures = bracket(&plan).rounds().iter().flatten();
            fixtures.filter(|fixture| fixture.loser() == Some(bot)).count()
        };
        let played_for_third = usize::from(third_place && bots >= 4);
        let lost = (0..bots).map(|bot| losses(bot.try_into().unwrap())).sum::<usize>();
        prop_assert_eq!(lost, bots - 1 + played_for_third);
        // The same results give the same bracket.
        let mut again = Schedule::Knockout(rules).rounds(&names, Seed::of_text("cup")).unwrap().unwrap();
        prop_assert_eq!(play(&mut again, &by_index), played);
    }
}
