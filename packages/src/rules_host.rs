//! How the rules of a package are reached, wherever they run.

use std::fmt;

use arbiter_games::Seed;

/// Runs the rules of one package.
pub trait RulesHost: Send + Sync + fmt::Debug {
    /// Starts the rules for one match with this seed.
    ///
    /// # Errors
    /// Why they cannot run.
    fn begin(&self, seed: Seed) -> Result<Box<dyn RulesSession>, String>;
}

/// The rules while they run for one match.
pub trait RulesSession: Send + fmt::Debug {
    /// Asks one line, and returns the line that the rules answer.
    ///
    /// # Errors
    /// How the rules failed. They are not asked again.
    fn ask(&mut self, question: &str) -> Result<String, String>;
}
