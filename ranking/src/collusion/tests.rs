//! Simulated fields of bots: honest bots are rarely flagged, planted pairs are found.

use arbiter_games::Dice;

use super::*;
use crate::ScoredMatch;

/// The properties of a simulated field.
#[derive(Clone, Copy)]
struct Field {
    bots: u32,
    /// Each bot sits at one table a round.
    rounds: u32,
    /// The score that one bot of a planted pair gives to the other in each meeting.
    dumped: f64,
    /// The number of colluding pairs: bots 0 and 1, 2 and 3, and so on. The first bot gains.
    planted: u32,
    /// Whether the random parts of the scores at a table add up to 0.
    zero_sum: bool,
    /// The number of strata, each of consecutive rounds.
    strata: u16,
    /// Additional randomness of all scores at tables with bot 0.
    wild: f64,
}

const HONEST: Field =
    Field { bots: 16, rounds: 60, dumped: 0.0, planted: 0, zero_sum: false, strata: 1, wild: 1.0 };

/// A nearly normal random number with mean 0 and variance 1.
fn normal(dice: &mut Dice) -> f64 {
    let sum: f64 = (0..12).map(|_| f64::from(dice.below(1 << 30)) / f64::from(1 << 30)).sum();
    sum - 6.0
}

#[expect(clippy::cast_possible_truncation, reason = "scores are thousands")]
fn whole(score: f64) -> i64 {
    score.round() as i64
}

fn count<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap()
}

/// A random number with a long right tail, mean 0 and variance 1.
fn skewed(dice: &mut Dice) -> f64 {
    -(f64::from(dice.below(1 << 30) + 1) / f64::from(1 << 30)).ln() - 1.0
}

impl Field {
    /// Plays the field's tables.
    fn play(self, seed: Seed) -> Tables {
        let mut dice = seed.dice(0);
        let mut tables = Tables::new();
        // The differences in strength, in effects on other bots and in randomness are all far
        // larger than the gain of a pair.
        let own: Vec<_> = (0..self.bots).map(|_| 200.0 * normal(&mut dice)).collect();
        let given: Vec<_> = (0..self.bots).map(|_| 100.0 * normal(&mut dice)).collect();
        let spread = |bot: usize| [50.0, 100.0, 200.0][bot % 3];
        let mut order: Vec<u32> = (0..self.bots).collect();
        for round in 0..self.rounds {
            dice.shuffle(&mut order);
            let stratum = u16::try_from(round % u32::from(self.strata)).unwrap();
            let louder = 1.0 + f64::from(stratum);
            for table in order.chunks_exact(4) {
                let bots: Vec<_> = table.iter().map(|bot| *bot as usize).collect();
                let wild = if bots.contains(&0) { self.wild } else { 1.0 };
                let mut noise: Vec<_> = bots
                    .iter()
                    .map(|bot| {
                        let one = if bot % 2 == 0 { normal(&mut dice) } else { skewed(&mut dice) };
                        louder * wild * spread(*bot) * one
                    })
                    .collect();
                if self.zero_sum {
                    let mean = noise.iter().sum::<f64>() / 4.0;
                    for noise in &mut noise {
                        *noise -= mean;
                    }
                }
                let all: f64 = bots.iter().map(|bot| given[*bot]).sum();
                let scores: Vec<_> = (0..4)
                    .map(|seat| {
                        let bot = bots[seat];
                        let additive = own[bot] + all - given[bot] + [0.0, 5.0, 40.0, 9.0][seat];
                        whole(additive + noise[seat] + self.moved(&bots, bot))
                    })
                    .collect();
                let seats: Vec<_> =
                    table.iter().map(|bot| Entrant(i32::try_from(*bot).unwrap())).collect();
                tables.add(&outcome(&seats, &scores), stratum).unwrap();
            }
        }
        tables
    }

    /// The gain or loss of a bot by a partner at its table.
    fn moved(self, table: &[usize], bot: usize) -> f64 {
        let partner = bot ^ 1;
        if bot >= 2 * self.planted as usize || !table.contains(&partner) {
            return 0.0;
        }
        if bot.is_multiple_of(2) { self.dumped } else { -self.dumped }
    }

    /// Whether a pair is planted.
    fn colludes(self, pair: &Pair) -> bool {
        let bot = u32::try_from(pair.bot.0).unwrap();
        bot < 2 * self.planted && bot.is_multiple_of(2) && pair.partner == Entrant(pair.bot.0 + 1)
    }
}

fn outcome<'a>(seats: &'a [Entrant], scores: &'a [i64]) -> ScoredMatch<'a> {
    ScoredMatch { seats, scores, carried: &[], forfeits: &[], bad_answers: &[] }
}

fn seed(number: u32) -> Seed {
    Seed::of_text(&format!("simulation {number}"))
}

/// The number of fields without colluders in which a pair is flagged.
fn false_alarms(field: Field, fields: u32) -> u32 {
    let alarm = |number: &u32| analyze(&field.play(seed(*number)), seed(*number), 0).flagged > 0;
    u32::try_from((0..fields).filter(alarm).count()).unwrap()
}

/// The maximum number of flagged fields if each is flagged with probability [`FALSE_DISCOVERIES`]:
/// three standard deviations above the mean.
fn tolerated(fields: u32) -> f64 {
    let mean = f64::from(fields) * FALSE_DISCOVERIES;
    mean + 3.0 * (mean * (1.0 - FALSE_DISCOVERIES)).sqrt()
}

#[test]
fn honest_fields_raise_few_flags() {
    let small = Field { bots: 8, rounds: 40, ..HONEST };
    let settings = [
        ("a plain field", 200, HONEST),
        ("one whose scores add up to nothing", 100, Field { zero_sum: true, ..HONEST }),
        ("one with louder rounds", 100, Field { strata: 5, ..HONEST }),
        ("a small one", 100, small),
        ("one with few meetings", 100, Field { bots: 24, rounds: 24, ..HONEST }),
        ("one with a wild bot", 100, Field { wild: 1.5, ..HONEST }),
    ];
    for (name, fields, field) in settings {
        let alarms = false_alarms(field, fields);
        println!("{name}: {alarms} of {fields} flagged");
        assert!(f64::from(alarms) <= tolerated(fields), "{name}: {alarms} of {fields}");
    }
}

#[test]
fn planted_pairs_are_flagged() {
    let fields = 60;
    let field = Field { dumped: 300.0, planted: 2, zero_sum: true, ..HONEST };
    let mut found = 0_u32;
    let mut shares = 0.0;
    for number in 0..fields {
        let answer = analyze(&field.play(seed(number)), seed(number), usize::MAX);
        let flagged: Vec<_> = answer.pairs.iter().filter(|pair| pair.flagged).collect();
        let (right, wrong): (Vec<&Pair>, Vec<&Pair>) =
            flagged.iter().partition(|pair| field.colludes(pair));
        found += count(&right);
        shares += f64::from(count(&wrong)) / f64::from(count(&flagged).max(1));
        for pair in right {
            assert!(pair.difference > 0.0 && pair.partner_difference < 0.0, "{pair:?}");
        }
    }
    let share = shares / f64::from(fields);
    println!("{found} of {} planted pairs, {share:.3} of the flagged are honest", 2 * fields);
    assert!(f64::from(found) > 0.8 * 2.0 * f64::from(fields), "{found}");
    assert!(share <= 2.0 * FALSE_DISCOVERIES, "{share}");
}

/// A weak bot raises the scores of all other bots. Without a model it would look like a partner of
/// each of them.
#[test]
fn a_weak_bot_is_not_flagged_as_a_partner() {
    let field = Field { dumped: 0.0, ..HONEST };
    let tables = field.play(seed(7));
    let answer = analyze(&tables, seed(7), usize::MAX);
    assert_eq!(answer.tested, 16 * 15);
    assert_eq!(answer.flagged, 0);
    let greatest = |pair: &Pair| (pair.mean_with - pair.mean_without).abs();
    let raw = answer.pairs.iter().map(greatest).fold(0.0, f64::max);
    let left = answer.pairs.iter().map(|pair| pair.difference.abs()).fold(0.0, f64::max);
    assert!(raw > 1.5 * left, "{raw} {left}");
}

#[test]
fn the_same_tables_give_the_same_result() {
    let field = Field { dumped: 150.0, planted: 1, ..HONEST };
    let tables = field.play(seed(1));
    let once = analyze(&tables, seed(1), 10);
    assert_eq!(once, analyze(&tables, seed(1), 10));
    assert_eq!(once.pairs.len(), 10);
    let other = analyze(&tables, seed(2), 10);
    assert_ne!(once.pairs, other.pairs, "other draws");
    assert_eq!(once.flagged, other.flagged);
}

/// Scores that are exactly strength plus effects of others plus seat leave no residuals.
#[test]
fn additive_scores_leave_no_residuals() {
    let mut tables = Tables::new();
    let mut dice = seed(3).dice(0);
    let mut order: Vec<i32> = (0..9).collect();
    for _ in 0..50 {
        dice.shuffle(&mut order);
        let seats: Vec<_> = order[..4].iter().map(|bot| Entrant(*bot)).collect();
        let all: i32 = order[..4].iter().map(|bot| bot * bot).sum();
        let score = |(seat, bot): (i64, &i32)| i64::from(7 * bot + all - bot * bot) + 10 * seat;
        let scores: Vec<_> = (0..).zip(&order[..4]).map(score).collect();
        tables.add(&outcome(&seats, &scores), 0).unwrap();
    }
    let residuals = fit::residuals(&tables);
    assert_eq!(residuals.len(), 200);
    let greatest = residuals.iter().fold(0.0_f64, |most, residual| most.max(residual.abs()));
    assert!(greatest < 1e-6, "{greatest}");
}

#[test]
fn pairs_without_a_comparison_are_left_out() {
    let mut tables = Tables::new();
    assert_eq!(analyze(&tables, seed(0), 10).tested, 0);
    // Tables of two, and a pair that is always together.
    tables.add(&outcome(&[Entrant(0), Entrant(1)], &[5, 6]), 0).unwrap();
    assert!(tables.is_empty());
    for score in 0..20 {
        let seats = [Entrant(0), Entrant(1), Entrant(2 + score % 3)];
        tables.add(&outcome(&seats, &[i64::from(score * score % 7), 3, 1]), 0).unwrap();
    }
    let answer = analyze(&tables, seed(0), 100);
    let pairs: Vec<_> = answer.pairs.iter().map(|pair| (pair.bot.0, pair.partner.0)).collect();
    assert!(!pairs.contains(&(0, 1)) && !pairs.contains(&(1, 0)), "{pairs:?}");
    assert!(pairs.contains(&(0, 2)), "{pairs:?}");
    assert!(!pairs.contains(&(2, 0)), "bot 2 has no table without bot 0");
}

/// Chips carried from earlier matches are no gain.
#[test]
fn carried_scores_are_subtracted() {
    let mut tables = Tables::new();
    let seats = [Entrant(4), Entrant(2), Entrant(9)];
    let carried = [200, 100, 50];
    let outcome = ScoredMatch { carried: &carried, ..outcome(&seats, &[250, 60, 50]) };
    tables.add(&outcome, 3).unwrap();
    assert_eq!(tables.scores(), [50.0, -40.0, 0.0]);
    assert_eq!(tables.strata(), 4);
}
