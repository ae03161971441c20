//! Quantiles and probabilities of the normal distribution and of Student's distribution.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// From here on Student's distribution is taken for normal.
const MANY: f64 = 1e4;

/// The probability that a standard normal variable is at most `x`.
pub(crate) fn normal_cdf(x: f64) -> f64 {
    Normal::standard().cdf(x)
}

/// The number that a standard normal variable is at most, with this probability.
pub(super) fn normal_quantile(probability: f64) -> f64 {
    Normal::standard().inverse_cdf(probability)
}

/// The probability that a variable of Student's distribution is at most `x`.
pub(super) fn student_cdf(degrees: f64, x: f64) -> f64 {
    match student(degrees) {
        Some(student) => student.cdf(x),
        None => normal_cdf(x),
    }
}

/// The number that a variable of Student's distribution is at most, with this probability.
pub(crate) fn student_quantile(degrees: f64, probability: f64) -> f64 {
    match student(degrees) {
        Some(student) => student.inverse_cdf(probability),
        None => normal_quantile(probability),
    }
}

fn student(degrees: f64) -> Option<StudentsT> {
    (degrees < MANY).then(|| {
        StudentsT::new(0.0, 1.0, degrees.max(1.0)).expect("the degrees of freedom are positive")
    })
}
