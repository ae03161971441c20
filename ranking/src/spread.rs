//! Means with their intervals. They are shown to people and decide nothing.

/// A mean over matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % interval; unknown after a single match.
    pub margin: Option<f64>,
}

/// The 97.5 % quantiles of Student's distribution with 1 to 30 degrees of freedom (NIST/SEMATECH
/// e-Handbook of Statistical Methods, 1.3.6.7.2).
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The same with more degrees of freedom: that of the normal distribution.
const NORMAL: f64 = 1.960;

impl Mean {
    /// The mean of so many numbers with this sum and this sum of squares; none of no numbers.
    #[expect(clippy::cast_precision_loss, reason = "a mean is shown with a few digits")]
    pub fn of(count: i64, sum: i128, squares: i128) -> Option<Self> {
        if count <= 0 {
            return None;
        }
        let n = count as f64;
        let mean = sum as f64 / n;
        let degrees = count - 1;
        // n Σx² − (Σx)² is exact where it fits, and never below 0 by a rounding error.
        let exact = || {
            let product = sum.checked_mul(sum)?;
            squares.checked_mul(i128::from(count))?.checked_sub(product)
        };
        let scatter =
            exact().map_or((squares as f64) * n - (sum as f64).powi(2), |exact| exact as f64);
        let margin = (degrees > 0).then(|| {
            let variance = scatter.max(0.0) / n / degrees as f64;
            quantile(degrees) * (variance / n).sqrt()
        });
        Some(Self { mean, margin })
    }
}

/// The 97.5 % quantile of Student's distribution.
fn quantile(degrees: i64) -> f64 {
    let place = usize::try_from(degrees - 1).ok();
    place.and_then(|place| STUDENT.get(place)).copied().unwrap_or(NORMAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand: 1, 2, 3, 4 have mean 2.5 and variance 5/3, so that the margin is
    /// 3.182 √(5/3/4) = 2.054.
    #[test]
    fn intervals_are_students() {
        let Mean { mean, margin } = Mean::of(4, 10, 30).unwrap();
        assert!((mean - 2.5).abs() < 1e-9);
        assert!((margin.unwrap() - 2.054).abs() < 1e-3);
        assert_eq!(Mean::of(0, 0, 0), None);
        assert_eq!(Mean::of(1, 7, 49), Some(Mean { mean: 7.0, margin: None }));
        assert_eq!(Mean::of(3, 21, 147).unwrap().margin, Some(0.0));
    }

    #[test]
    fn great_numbers_do_not_overflow() {
        let great = 1_000_000_000_000_000_000;
        let mean = Mean::of(100, 100 * great, i128::MAX).unwrap();
        assert!(mean.margin.unwrap().is_finite());
    }
}
