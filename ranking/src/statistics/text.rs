//! Statistics as text, the same on pages and in the terminal.

/// Stands for an unknown figure.
pub const UNKNOWN: &str = "-";

/// The possible ranks: the best and the worst one.
pub fn rank_set(set: Option<(u32, u32)>) -> String {
    match set {
        Some((best, worst)) if best == worst => best.to_string(),
        Some((best, worst)) => format!("{best}–{worst}"),
        None => unknown(),
    }
}

/// A probability in percent. Estimates from replicates are never certain.
pub fn percent(probability: Option<f64>) -> String {
    match probability {
        None => unknown(),
        Some(probability) if probability < 0.0005 => "<0.1 %".to_owned(),
        Some(probability) if probability > 0.9995 => ">99.9 %".to_owned(),
        Some(probability) => format!("{:.1} %", 100.0 * probability),
    }
}

/// A mean, with half the width of its interval if it has one. In games for 0 to 2 points, bots of
/// large tournaments differ in the third decimal.
pub fn mean(mean: f64, margin: Option<f64>) -> String {
    match margin {
        Some(margin) => format!("{mean:.3} ± {margin:.3}"),
        None => format!("{mean:.3}"),
    }
}

/// The difference of two means, with its sign.
pub fn difference(difference: f64) -> String {
    format!("{difference:+.3}")
}

/// A rating, with half the width of its interval if it has one.
pub fn rating(rating: Option<f64>, margin: Option<f64>) -> String {
    match (rating, margin) {
        (Some(rating), Some(margin)) => format!("{rating:.0} ± {margin:.0}"),
        (Some(rating), None) => format!("{rating:.0}"),
        (None, _) => unknown(),
    }
}

/// How many more matches a bot needs until its rank is certain. `margin` is half the width of the
/// interval of its mean, which is 0 if the mean is exact.
pub fn needed(matches: Option<u64>, margin: Option<f64>) -> String {
    match (matches, margin) {
        (Some(0), Some(0.0)) => "exact".to_owned(),
        (Some(0), _) => "sure".to_owned(),
        (Some(more), _) => format!("{more} more"),
        (None, _) => unknown(),
    }
}

fn unknown() -> String {
    UNKNOWN.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_claim_no_certainty_that_replicates_do_not_give() {
        assert_eq!(percent(Some(1.0)), ">99.9 %");
        assert_eq!(percent(Some(0.0)), "<0.1 %");
        assert_eq!(percent(Some(0.25)), "25.0 %");
        assert_eq!(needed(Some(0), Some(1.5)), "sure");
        assert_eq!(needed(Some(0), Some(0.0)), "exact");
        assert_eq!(needed(Some(12), None), "12 more");
        assert_eq!((rank_set(Some((2, 2))), rank_set(Some((1, 3)))), ("2".into(), "1–3".into()));
        assert_eq!(
            (mean(-1.5, Some(0.25)), mean(2.0, None)),
            ("-1.500 ± 0.250".into(), "2.000".into())
        );
        assert_eq!(rating(Some(1499.6), Some(20.4)), "1500 ± 20");
        let unknown = [rank_set(None), percent(None), rating(None, None), needed(None, None)];
        assert_eq!(unknown, [UNKNOWN; 4]);
    }
}
