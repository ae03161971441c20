//! The Elo scale: the logarithm of the odds of a result, 400 points for odds of 10 to 1.

/// The expected result of a match, from 0 (lost) to 1 (won), at this difference in Elo.
pub fn result_of_elo(elo: f64) -> f64 {
    1.0 / (1.0 + 10_f64.powf(-elo / 400.0))
}

/// The difference in Elo at which a match has this expected result. Infinite at 0 and 1.
pub fn elo_of_result(result: f64) -> f64 {
    -400.0 * (1.0 / result.clamp(0.0, 1.0) - 1.0).log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_hundred_points_are_odds_of_ten_to_one() {
        assert!((result_of_elo(400.0) - 10.0 / 11.0).abs() < 1e-12);
        assert!((elo_of_result(result_of_elo(-35.0)) + 35.0).abs() < 1e-9);
        assert_eq!((elo_of_result(1.0), elo_of_result(0.0)), (f64::INFINITY, f64::NEG_INFINITY));
    }
}
