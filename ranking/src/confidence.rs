//! Means with confidence intervals, for people. They do not affect rankings.

use super::U256;

/// A mean over matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; `None` for a single match.
    pub margin: Option<f64>,
}

/// The 97.5 % quantiles of Student's distribution with 1 to 30 degrees of freedom (NIST/SEMATECH
/// e-Handbook of Statistical Methods, 1.3.6.7.2).
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The quantile of the normal distribution, for more degrees of freedom.
const NORMAL: f64 = 1.960;

impl Mean {
    /// The mean of `count` numbers with this sum and sum of squares; `None` if `count` is 0.
    #[expect(clippy::cast_precision_loss, reason = "a mean is shown with a few digits")]
    pub fn of(count: i64, sum: i128, squares: U256) -> Option<Self> {
        if count <= 0 {
            return None;
        }
        let n = count as f64;
        let mean = sum as f64 / n;
        let degrees = count - 1;
        // n Σx² − (Σx)² is computed exactly: the two terms are nearly equal, so rounding would
        // destroy the difference.
        let scatter = match squares.checked_mul(count.unsigned_abs()) {
            Some(product) => product.saturating_sub(U256::square(sum)).to_f64(),
            None => (squares.to_f64() * n - (sum as f64).powi(2)).max(0.0),
        };
        let margin = (degrees > 0).then(|| {
            let variance = scatter / n / degrees as f64;
            quantile(degrees) * (variance / n).sqrt()
        });
        Some(Self { mean, margin })
    }
}

/// The 97.5 % quantile of Student's distribution.
fn quantile(degrees: i64) -> f64 {
    let index = usize::try_from(degrees - 1).ok();
    index.and_then(|index| STUDENT.get(index)).copied().unwrap_or(NORMAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(scores: impl IntoIterator<Item = i128>) -> Mean {
        let mut count = 0;
        let mut sum = 0;
        let mut squares = U256::default();
        for score in scores {
            count += 1;
            sum += score;
            squares = squares.saturating_add(U256::square(score));
        }
        Mean::of(count, sum, squares).unwrap()
    }

    /// 1, 2, 3, 4 have mean 2.5 and variance 5/3, so the margin is 3.182 √(5/3/4) = 2.054.
    #[test]
    fn intervals_use_students_quantiles() {
        let Mean { mean, margin } = mean_of([1, 2, 3, 4]);
        assert!((mean - 2.5).abs() < 1e-9);
        assert!((margin.unwrap() - 2.054).abs() < 1e-3);
        assert_eq!(Mean::of(0, 0, U256::default()), None);
        assert_eq!(mean_of([7]), Mean { mean: 7.0, margin: None });
        assert_eq!(mean_of([7; 3]).margin, Some(0.0));
    }

    /// Scaling the scores scales the margin by the same factor.
    #[test]
    fn intervals_of_large_scores_are_exact() {
        let large = 2_000_000_000_000_000_000;
        let scores = || (0..1000).map(|number| [1, -1, 0][number % 3]);
        let small = mean_of(scores());
        let scaled = mean_of(scores().map(|score| score * large));
        let ratio = scaled.margin.unwrap() / small.margin.unwrap();
        assert!((ratio / 2e18 - 1.0).abs() < 1e-12, "{ratio}");
        // Large scores with small differences have the margin of the differences.
        let near = mean_of(scores().map(|score| large + score));
        assert!((near.margin.unwrap() / small.margin.unwrap() - 1.0).abs() < 1e-12, "{near:?}");
    }

    #[test]
    fn nothing_overflows() {
        for sum in [i128::MAX, i128::MIN, 0] {
            for squares in [U256::MAX, U256::default()] {
                let mean = Mean::of(i64::MAX, sum, squares).unwrap();
                assert!(mean.mean.is_finite() && mean.margin.unwrap().is_finite());
            }
        }
    }
}
