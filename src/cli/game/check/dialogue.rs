//! The dialogue with the rules of a match, written down while it is held.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arbiter_games::Seed;
use arbiter_packages::{RulesHost, RulesSession};

/// One question with its answer.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) question: String,
    /// The answer, or how the rules failed.
    pub(super) answer: Result<String, String>,
    pub(super) time: Duration,
}

impl Exchange {
    /// Whether the question is `legal`, which changes nothing.
    pub(super) fn is_legal(&self) -> bool {
        self.question.starts_with("{\"legal\"")
    }
}

/// What was asked and answered in one match.
#[derive(Clone, Debug, Default)]
pub(super) struct Dialogue(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
pub(super) struct Held {
    /// How long the rules took to start.
    pub(super) start: Duration,
    pub(super) exchanges: Vec<Exchange>,
}

impl Dialogue {
    pub(super) fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last question and its answer.
    pub(super) fn last(&self) -> Option<Exchange> {
        self.lock().exchanges.last().cloned()
    }
}

/// Starts the rules, or lets a program that has ended a match begin another one. Programs that
/// cannot do that are always started.
pub(super) struct RulesSupply {
    host: Arc<dyn RulesHost>,
    idle: Mutex<Vec<Box<dyn RulesSession>>>,
    reuses: AtomicBool,
}

impl fmt::Debug for RulesSupply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RulesSupply")
    }
}

impl RulesSupply {
    pub(super) fn new(host: Arc<dyn RulesHost>, reuses: bool) -> Arc<Self> {
        Arc::new(Self { host, idle: Mutex::default(), reuses: AtomicBool::new(reuses) })
    }

    /// Whether a program may play several matches.
    pub(super) fn reuses(&self) -> bool {
        self.reuses.load(Ordering::Relaxed)
    }

    /// From now on, starts a program for each match.
    pub(super) fn stop_reuse(&self) {
        self.reuses.store(false, Ordering::Relaxed);
        self.idle().clear();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Box<dyn RulesSession>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rules for a match that writes down its dialogue.
    pub(super) fn tapped(self: &Arc<Self>, dialogue: &Dialogue) -> Arc<dyn RulesHost> {
        Arc::new(TappedHost { supply: Arc::clone(self), dialogue: dialogue.clone() })
    }
}

#[derive(Debug)]
struct TappedHost {
    supply: Arc<RulesSupply>,
    dialogue: Dialogue,
}

impl RulesHost for TappedHost {
    fn begin(&self, seed: Seed) -> Result<Box<dyn RulesSession>, String> {
        let begin = Instant::now();
        let idle = self.supply.idle().pop();
        let rules = match idle {
            Some(rules) => rules,
            None => self.supply.host.begin(seed)?,
        };
        self.dialogue.lock().start = begin.elapsed();
        let supply = Arc::clone(&self.supply);
        let dialogue = self.dialogue.clone();
        Ok(Box::new(TappedSession { rules: Some(rules), supply, dialogue }))
    }
}

#[derive(Debug)]
struct TappedSession {
    /// The rules, until they fail.
    rules: Option<Box<dyn RulesSession>>,
    supply: Arc<RulesSupply>,
    dialogue: Dialogue,
}

impl RulesSession for TappedSession {
    fn ask(&mut self, question: &str) -> Result<String, String> {
        let Some(rules) = &mut self.rules else { return Err("they failed before".to_owned()) };
        let begin = Instant::now();
        let answer = rules.ask(question);
        let time = begin.elapsed();
        if answer.is_err() {
            self.rules = None;
        }
        let exchange = Exchange { question: question.to_owned(), answer: answer.clone(), time };
        self.dialogue.lock().exchanges.push(exchange);
        answer
    }
}

/// Keeps the program for another match.
impl Drop for TappedSession {
    fn drop(&mut self) {
        if self.supply.reuses()
            && let Some(rules) = self.rules.take()
        {
            self.supply.idle().push(rules);
        }
    }
}
