//! Selection of significant p-values among many (Benjamini and Hochberg 1995).
//!
//! The procedure controls the share of false discoveries for p-values that are independent or
//! positively dependent. The p-values of one bot's partners are slightly negatively dependent,
//! because the bot's residuals add up to 0. The simulations in the tests show that the rate holds.

use super::{TestedPair, float};

/// Sorts pairs by their p-values, and returns the q-value of each: the smallest share of false
/// discoveries at which the pair would be selected.
pub(super) fn q_values(tested: &mut [TestedPair]) -> Vec<f64> {
    let order = |left: &TestedPair, right: &TestedPair| {
        left.p.total_cmp(&right.p).then((left.bot, left.partner).cmp(&(right.bot, right.partner)))
    };
    tested.sort_unstable_by(order);
    let count = float(tested.len());
    let mut qs: Vec<f64> =
        tested.iter().zip(1..).map(|(pair, rank)| pair.p * count / float(rank)).collect();
    let mut min = 1.0_f64;
    for q in qs.iter_mut().rev() {
        min = min.min(*q);
        *q = min;
    }
    qs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Benjamini and Hochberg's own example: of these fifteen p-values four are selected at 5 %.
    #[test]
    fn the_example_of_benjamini_and_hochberg() {
        let ps = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let tested = |(bot, p): (u32, &f64)| TestedPair { bot, partner: 99, p: *p };
        let mut tested: Vec<_> = (0..).zip(&ps).map(tested).collect();
        tested.reverse();
        let qs = q_values(&mut tested);
        assert_eq!(tested[0].bot, 0, "the smallest p-value is first");
        assert_eq!(qs.iter().filter(|q| **q <= 0.05).count(), 4);
        assert!((qs[0] - 0.0015).abs() < 1e-12);
        assert!(qs.is_sorted() && qs.iter().all(|q| *q <= 1.0));
        assert!(q_values(&mut []).is_empty());
    }
}
