//! Kills random processes at random times, repeatable with the same seed.

use std::thread;
use std::time::{Duration, Instant};

use arbiter_games::{Dice, Seed};

use crate::deployment::Deployment;

/// The interval of progress checks.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The longest time between kills if no match is counted.
const CALM: Duration = Duration::from_secs(10);
/// One in this number of kills hits two processes at once.
const DOUBLE: u32 = 4;

/// The kinds of processes that are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Worker,
    Coordinator,
    Postgres,
}

/// The remaining kills.
pub(crate) struct Kills {
    dice: Dice,
    left: usize,
    /// The next victims in reverse order. All kinds appear equally often.
    deck: Vec<Victim>,
}

impl Kills {
    pub(crate) fn new(seed: &str, kills: usize) -> Self {
        Self { dice: Seed::of_text(seed).dice(0), left: kills, deck: Vec::new() }
    }

    /// Makes all remaining kills. They must end before the tournaments do.
    pub(crate) fn kill_all(&mut self, deployment: &mut Deployment) {
        let began = Instant::now();
        while self.left > 0 {
            let done = self.wait(deployment);
            let mut victims = vec![self.draw()];
            if self.left > 1 && self.dice.below(DOUBLE) == 0 {
                let other = self.draw();
                if victims.contains(&other) { self.deck.push(other) } else { victims.push(other) }
            }
            eprintln!("{:6.1} s, {done} matches: {victims:?}", began.elapsed().as_secs_f64());
            self.strike(deployment, &victims);
            self.left -= victims.len();
        }
    }

    /// Waits for the moment of the next kill, and returns the number of matches with results.
    fn wait(&mut self, deployment: &mut Deployment) -> i64 {
        let results =
            |deployment: &Deployment| deployment.checks.number("SELECT count(*) FROM results");
        // Kills are spread at random over the remaining matches. None is at the very end, because
        // the tournaments could end before this loop notices that the time has come.
        let planned = deployment.checks.number("SELECT sum(matches)::bigint FROM editions");
        let begin = results(deployment);
        let rest = usize::try_from(planned - begin).unwrap();
        let after = self.dice.index(2 * rest / (self.left + 1) + 1).min(rest * 3 / 4);
        let target = begin + i64::try_from(after).unwrap();
        let since = Instant::now();
        loop {
            deployment.expect_alive();
            let running =
                deployment.checks.number("SELECT count(*) FROM editions WHERE ended_at IS NULL");
            assert!(running > 0, "the tournaments are over, and {} kills remain", self.left);
            let done = results(deployment);
            let playing =
                deployment.checks.number("SELECT count(*) FROM lots WHERE state = 'leased'");
            if (done >= target && playing > 0) || since.elapsed() > CALM {
                return done;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// The next victim.
    fn draw(&mut self) -> Victim {
        if self.deck.is_empty() {
            self.deck = vec![Victim::Worker, Victim::Coordinator, Victim::Postgres];
            self.dice.shuffle(&mut self.deck);
        }
        self.deck.pop().expect("a victim was drawn")
    }

    /// Kills the victims, and then restarts them.
    fn strike(&mut self, deployment: &mut Deployment, victims: &[Victim]) {
        for victim in victims {
            match victim {
                Victim::Postgres => deployment.kill_postgres(),
                Victim::Coordinator => deployment.kill_coordinator(),
                Victim::Worker => deployment.kill_worker(self.dice.index(deployment.workers.len())),
            }
        }
        if victims.contains(&Victim::Postgres) {
            deployment.restart_postgres();
        }
        if victims.contains(&Victim::Coordinator) {
            deployment.restart_coordinator();
        }
    }
}
