//! Simulated tournaments: honest bots are rarely flagged, and colluding pairs are found.

use arbiter_games::Dice;

use super::*;
use crate::ScoredMatch;

/// The properties of a simulated tournament.
#[derive(Clone, Copy)]
struct Simulation {
    bots: u32,
    /// Each bot is at one table in each round.
    rounds: u32,
    /// The points that one bot of a colluding pair gives to the other bot in each meeting.
    transfer: f64,
    /// The number of colluding pairs: bots 0 and 1, 2 and 3, and so on. The first bot gains.
    colluding_pairs: u32,
    /// Whether the random parts of the scores at a table add up to 0.
    zero_sum: bool,
    /// The number of strata, each of consecutive rounds.
    strata: u16,
    /// The factor of the randomness of all scores at tables with bot 0.
    noise_factor: f64,
}

const HONEST: Simulation = Simulation {
    bots: 16,
    rounds: 60,
    transfer: 0.0,
    colluding_pairs: 0,
    zero_sum: false,
    strata: 1,
    noise_factor: 1.0,
};

/// A nearly normal random number with mean 0 and variance 1.
fn normal(dice: &mut Dice) -> f64 {
    let sum: f64 = (0..12).map(|_| f64::from(dice.below(1 << 30)) / f64::from(1 << 30)).sum();
    sum - 6.0
}

#[expect(clippy::cast_possible_truncation, reason = "scores are thousands")]
fn to_integer(score: f64) -> i64 {
    score.round() as i64
}

fn count<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap()
}

/// A random number with a long right tail, mean 0 and variance 1.
fn skewed(dice: &mut Dice) -> f64 {
    -(f64::from(dice.below(1 << 30) + 1) / f64::from(1 << 30)).ln() - 1.0
}

impl Simulation {
    /// Plays all tables.
    fn play(self, seed: Seed) -> Tables {
        let mut dice = seed.dice(0);
        let mut tables = Tables::new();
        // The differences in strength, in effects on other bots and in randomness are all far
        // larger than the gain of a pair.
        let strengths: Vec<_> = (0..self.bots).map(|_| 200.0 * normal(&mut dice)).collect();
        let table_effects: Vec<_> = (0..self.bots).map(|_| 100.0 * normal(&mut dice)).collect();
        let spread = |bot: usize| [50.0, 100.0, 200.0][bot % 3];
        let mut order: Vec<u32> = (0..self.bots).collect();
        for round in 0..self.rounds {
            dice.shuffle(&mut order);
            let stratum = u16::try_from(round % u32::from(self.strata)).unwrap();
            let stratum_noise = 1.0 + f64::from(stratum);
            for table in order.chunks_exact(4) {
                let bots: Vec<_> = table.iter().map(|bot| *bot as usize).collect();
                let table_noise = if bots.contains(&0) { self.noise_factor } else { 1.0 };
                let mut noise: Vec<_> = bots
                    .iter()
                    .map(|bot| {
                        let random =
                            if bot % 2 == 0 { normal(&mut dice) } else { skewed(&mut dice) };
                        stratum_noise * table_noise * spread(*bot) * random
                    })
                    .collect();
                if self.zero_sum {
                    let mean = noise.iter().sum::<f64>() / 4.0;
                    for noise in &mut noise {
                        *noise -= mean;
                    }
                }
                let all: f64 = bots.iter().map(|bot| table_effects[*bot]).sum();
                let scores: Vec<_> = (0..4)
                    .map(|seat| {
                        let bot = bots[seat];
                        let additive =
                            strengths[bot] + all - table_effects[bot] + [0.0, 5.0, 40.0, 9.0][seat];
                        to_integer(additive + noise[seat] + self.transferred(&bots, bot))
                    })
                    .collect();
                let seats: Vec<_> =
                    table.iter().map(|bot| Entrant(i32::try_from(*bot).unwrap())).collect();
                tables.add(&outcome(&seats, &scores), stratum).unwrap();
            }
        }
        tables
    }

    /// The gain or loss of a bot by collusion at this table.
    fn transferred(self, table: &[usize], bot: usize) -> f64 {
        let partner = bot ^ 1;
        if bot >= 2 * self.colluding_pairs as usize || !table.contains(&partner) {
            return 0.0;
        }
        if bot.is_multiple_of(2) { self.transfer } else { -self.transfer }
    }

    /// Whether the first bot of a pair gains by collusion with the second bot.
    fn colludes(self, pair: &Pair) -> bool {
        let bot = u32::try_from(pair.bot.0).unwrap();
        bot < 2 * self.colluding_pairs
            && bot.is_multiple_of(2)
            && pair.partner == Entrant(pair.bot.0 + 1)
    }
}

fn outcome<'a>(seats: &'a [Entrant], scores: &'a [i64]) -> ScoredMatch<'a> {
    ScoredMatch { seats, scores, carried: &[], forfeits: &[], bad_answers: &[] }
}

fn seed(number: u32) -> Seed {
    Seed::of_text(&format!("simulation {number}"))
}

/// The number of honest tournaments in which a pair is flagged.
fn false_alarms(simulation: Simulation, count: u32) -> u32 {
    let has_alarm =
        |number: &u32| analyze(&simulation.play(seed(*number)), seed(*number), 0).flagged > 0;
    u32::try_from((0..count).filter(has_alarm).count()).unwrap()
}

/// The maximum number of flagged tournaments if each one is flagged with probability
/// [`FALSE_DISCOVERIES`]: three standard deviations above the mean.
fn max_alarms(count: u32) -> f64 {
    let mean = f64::from(count) * FALSE_DISCOVERIES;
    mean + 3.0 * (mean * (1.0 - FALSE_DISCOVERIES)).sqrt()
}

#[test]
fn honest_pairs_are_rarely_flagged() {
    let small = Simulation { bots: 8, rounds: 40, ..HONEST };
    let settings = [
        ("the standard tournament", 200, HONEST),
        ("zero-sum scores", 100, Simulation { zero_sum: true, ..HONEST }),
        ("strata with different noise", 100, Simulation { strata: 5, ..HONEST }),
        ("few bots", 100, small),
        ("few meetings", 100, Simulation { bots: 24, rounds: 24, ..HONEST }),
        ("a bot with much noise", 100, Simulation { noise_factor: 1.5, ..HONEST }),
    ];
    for (name, count, simulation) in settings {
        let alarms = false_alarms(simulation, count);
        println!("{name}: {alarms} of {count} flagged");
        assert!(f64::from(alarms) <= max_alarms(count), "{name}: {alarms} of {count}");
    }
}

#[test]
fn colluding_pairs_are_flagged() {
    let tournaments = 60;
    let simulation = Simulation { transfer: 300.0, colluding_pairs: 2, zero_sum: true, ..HONEST };
    let mut found_pairs = 0_u32;
    let mut shares = 0.0;
    for number in 0..tournaments {
        let result = analyze(&simulation.play(seed(number)), seed(number), usize::MAX);
        let flagged: Vec<_> = result.pairs.iter().filter(|pair| pair.flagged).collect();
        let (colluding, honest): (Vec<&Pair>, Vec<&Pair>) =
            flagged.iter().partition(|pair| simulation.colludes(pair));
        found_pairs += count(&colluding);
        shares += f64::from(count(&honest)) / f64::from(count(&flagged).max(1));
        for pair in colluding {
            assert!(pair.difference > 0.0 && pair.partner_difference < 0.0, "{pair:?}");
        }
    }
    let share = shares / f64::from(tournaments);
    println!(
        "{found_pairs} of {} colluding pairs, {share:.3} of the flagged are honest",
        2 * tournaments
    );
    assert!(f64::from(found_pairs) > 0.8 * 2.0 * f64::from(tournaments), "{found_pairs}");
    assert!(share <= 2.0 * FALSE_DISCOVERIES, "{share}");
}

/// A weak bot raises the scores of all other bots. Without a model it would look like a partner of
/// each of them.
#[test]
fn a_weak_bot_is_not_flagged_as_a_partner() {
    let simulation = Simulation { transfer: 0.0, ..HONEST };
    let tables = simulation.play(seed(7));
    let result = analyze(&tables, seed(7), usize::MAX);
    assert_eq!(result.tested, 16 * 15);
    assert_eq!(result.flagged, 0);
    let raw_difference = |pair: &Pair| (pair.mean_with - pair.mean_without).abs();
    let max_raw = result.pairs.iter().map(raw_difference).fold(0.0, f64::max);
    let max_difference = result.pairs.iter().map(|pair| pair.difference.abs()).fold(0.0, f64::max);
    assert!(max_raw > 1.5 * max_difference, "{max_raw} {max_difference}");
}

#[test]
fn the_same_tables_give_the_same_result() {
    let simulation = Simulation { transfer: 150.0, colluding_pairs: 1, ..HONEST };
    let tables = simulation.play(seed(1));
    let first = analyze(&tables, seed(1), 10);
    assert_eq!(first, analyze(&tables, seed(1), 10));
    assert_eq!(first.pairs.len(), 10);
    let second = analyze(&tables, seed(2), 10);
    assert_ne!(first.pairs, second.pairs, "another seed gives other draws");
    assert_eq!(first.flagged, second.flagged);
}

/// Scores that follow the additive model exactly have no residuals.
#[test]
fn additive_scores_have_no_residuals() {
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
    let max = residuals.iter().fold(0.0_f64, |max, residual| max.max(residual.abs()));
    assert!(max < 1e-6, "{max}");
}

#[test]
fn pairs_without_a_comparison_are_not_tested() {
    let mut tables = Tables::new();
    assert_eq!(analyze(&tables, seed(0), 10).tested, 0);
    // Tables of two, and a pair that is always together.
    tables.add(&outcome(&[Entrant(0), Entrant(1)], &[5, 6]), 0).unwrap();
    assert!(tables.is_empty());
    for score in 0..20 {
        let seats = [Entrant(0), Entrant(1), Entrant(2 + score % 3)];
        tables.add(&outcome(&seats, &[i64::from(score * score % 7), 3, 1]), 0).unwrap();
    }
    let result = analyze(&tables, seed(0), 100);
    let pairs: Vec<_> = result.pairs.iter().map(|pair| (pair.bot.0, pair.partner.0)).collect();
    assert!(!pairs.contains(&(0, 1)) && !pairs.contains(&(1, 0)), "{pairs:?}");
    assert!(pairs.contains(&(0, 2)), "{pairs:?}");
    assert!(!pairs.contains(&(2, 0)), "bot 2 has no table without bot 0");
}

/// Chips from earlier matches do not count as a gain.
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
