//! What happens on this worker, counted: for Prometheus, in the text of `OpenMetrics`.
//!
//! All of it begins at nothing when the worker starts. A match costs a few atomics.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arbiter_games::{Forfeit, GameName, Micros, string_enum};
use arbiter_proto::fault::FaultKind;
use arbiter_proto::v1;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::sandbox::Host;
use crate::spool::Spool;
use crate::table::Outcome;

/// Upper bounds of how long matches take, in seconds.
const MATCHES: [f64; 12] =
    [0.01, 0.05, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0];
/// Upper bounds of how long a bot's start takes, in seconds.
const STARTS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
/// Upper bounds of how much of the clock's margin is used, in seconds. The official one is 20 ms.
const MARGINS: [f64; 9] = [0.0, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.05];

/// A bot that used less of a processor than this part of the time that it lost by was waiting.
const BUSY: i64 = 2;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfGame {
    game: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Forfeited {
    game: &'static str,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TimeLoss {
    processor: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    of: &'static str,
    end: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Fate {
    fate: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
}

string_enum! {
    /// What a slot does, in the words of the figures.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum Doing {
        Idle = "idle",
        Pausing = "pausing",
        Fetching = "fetching",
        Playing = "playing",
        Recovering = "recovering",
    }
}

string_enum! {
    /// How a lot or a trial ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum End {
        /// Its report is in the spool.
        Reported = "reported",
        /// It was stopped.
        Stopped = "stopped",
        /// It failed.
        Failed = "failed",
    }
}

type Times = Family<OfGame, Histogram, fn() -> Histogram>;

/// What happens on a worker, counted.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    spool: Arc<Spool>,
    connected: AtomicBool,
    connections: Counter,
    slots: Family<State, Gauge>,
    matches: Family<OfGame, Counter>,
    match_time: Times,
    forfeits: Family<Forfeited, Counter>,
    time_losses: Family<TimeLoss, Counter>,
    starts: Histogram,
    margins: Histogram,
    ended: Family<Ended, Counter>,
    faults: Family<Kind, Counter>,
    verdicts: Family<Fate, Counter>,
    leases_lost: Counter,
    bundles: Counter,
}

impl Metrics {
    /// For a worker with this spool, whose machine gives what `host` says after it was looked at for
    /// so many seconds.
    pub(crate) fn new(spool: Arc<Spool>, host: &Host, looked: f64) -> Self {
        let level = host.level().as_str();
        let mut metrics = Self {
            registry: Registry::with_prefix("arbiter_worker"),
            spool,
            connected: AtomicBool::new(false),
            connections: Counter::default(),
            slots: Family::default(),
            matches: Family::default(),
            match_time: Family::new_with_constructor(|| Histogram::new(MATCHES)),
            forfeits: Family::default(),
            time_losses: Family::default(),
            starts: Histogram::new(STARTS),
            margins: Histogram::new(MARGINS),
            ended: Family::default(),
            faults: Family::default(),
            verdicts: Family::default(),
            leases_lost: Counter::default(),
            bundles: Counter::default(),
        };
        metrics.register_play();
        metrics.register_work();
        let info = Info::new([("level", level)]);
        metrics.registry.register("sandbox", "How well bots are held here", info);
        let strict: Gauge = Gauge::default();
        strict.set(i64::from(host.level().is_strict()));
        let text = "Whether everything that official matches ask for is guaranteed";
        metrics.registry.register("sandbox_strict", text, strict);
        let prepared: Gauge<f64, AtomicU64> = Gauge::default();
        prepared.set(looked);
        let text = "How long it took to find out what the machine isolates";
        metrics.registry.register_with_unit("sandbox_prepare", text, Unit::Seconds, prepared);
        metrics.begin();
        metrics
    }

    fn register_play(&mut self) {
        let registry = &mut self.registry;
        registry.register("matches", "Matches played to their ends", self.matches.clone());
        let text = "How long matches take";
        registry.register_with_unit("match", text, Unit::Seconds, self.match_time.clone());
        registry.register("forfeits", "Forfeits in these matches", self.forfeits.clone());
        let text = "Forfeits by the clock; the processor was idle where the bot used less than half \
            of the time: it waited, or this machine kept it waiting";
        registry.register("time_losses", text, self.time_losses.clone());
        let text = "From nothing to a started bot in its sandbox";
        registry.register_with_unit("bot_start", text, Unit::Seconds, self.starts.clone());
        let text = "The most of the clock's margin that an answer of a match needed";
        registry.register_with_unit("margin_used", text, Unit::Seconds, self.margins.clone());
    }

    fn register_work(&mut self) {
        let registry = &mut self.registry;
        registry.register("slots", "Slots by what they do", self.slots.clone());
        let text = "Lots and trials by how they ended here";
        registry.register("jobs", text, self.ended.clone());
        let text = "Attempts that failed here through no bot's fault";
        registry.register("faults", text, self.faults.clone());
        let text = "Reports by what the coordinator made of them";
        registry.register("verdicts", text, self.verdicts.clone());
        let text = "Leases that ran out while they were played";
        registry.register("leases_lost", text, self.leases_lost.clone());
        let text = "Lots and trials whose bundles were there, or fetched";
        registry.register("supplies", text, self.bundles.clone());
        let text = "Connections to the coordinator that were made";
        registry.register("connections", text, self.connections.clone());
    }

    /// Lets every series begin at nothing.
    fn begin(&self) {
        for of in ["lot", "trial"] {
            for end in [End::Reported, End::Stopped, End::Failed] {
                drop(self.ended.get_or_create(&Ended { of, end: end.as_str() }));
            }
        }
        for kind in [FaultKind::System, FaultKind::Unclean, FaultKind::Panic, FaultKind::Supplies] {
            drop(self.faults.get_or_create(&Kind { kind: kind.as_str() }));
        }
        for processor in ["idle", "busy"] {
            drop(self.time_losses.get_or_create(&TimeLoss { processor }));
        }
        for fate in ["accepted", "repeated", "late", "malformed"] {
            drop(self.verdicts.get_or_create(&Fate { fate }));
        }
        self.slots([]);
    }

    /// A match came to its end.
    pub(crate) fn played(&self, game: GameName, outcome: &Outcome) {
        let of = OfGame { game: game.word() };
        self.matches.get_or_create(&of).inc();
        self.match_time.get_or_create(&of).observe(seconds(outcome.wall));
        self.margins.observe(seconds(outcome.margin));
        outcome.starts.iter().for_each(|start| self.starts.observe(seconds(*start)));
        for (standing, report) in outcome.standings.iter().zip(&outcome.seats) {
            let Some(forfeit) = standing.forfeit else { continue };
            let kind = forfeit.as_str();
            self.forfeits.get_or_create(&Forfeited { game: of.game, kind }).inc();
            if forfeit == Forfeit::Clock {
                let idle = report.spent.cpu.0.saturating_mul(BUSY) < report.spent.wall.0;
                let processor = if idle { "idle" } else { "busy" };
                self.time_losses.get_or_create(&TimeLoss { processor }).inc();
            }
        }
    }

    /// A lot or a trial ended.
    pub(crate) fn ended(&self, is_trial: bool, end: End) {
        let of = if is_trial { "trial" } else { "lot" };
        self.ended.get_or_create(&Ended { of, end: end.as_str() }).inc();
    }

    /// An attempt failed.
    pub(crate) fn failed(&self, kind: v1::FaultKind) {
        self.faults.get_or_create(&Kind { kind: FaultKind::from(kind).as_str() }).inc();
    }

    /// The coordinator judged a report.
    pub(crate) fn judged(&self, fate: v1::Fate) {
        let fate = match fate {
            v1::Fate::Unspecified => "unknown",
            v1::Fate::Accepted => "accepted",
            v1::Fate::Repeated => "repeated",
            v1::Fate::Late => "late",
            v1::Fate::Malformed => "malformed",
            v1::Fate::Postponed => "postponed",
        };
        self.verdicts.get_or_create(&Fate { fate }).inc();
    }

    /// A lease was lost.
    pub(crate) fn lost(&self) {
        self.leases_lost.inc();
    }

    /// What a job takes is here.
    pub(crate) fn supplied(&self) {
        self.bundles.inc();
    }

    /// What the slots do now.
    pub(crate) fn slots(&self, slots: impl IntoIterator<Item = Doing>) {
        let mut doing: BTreeMap<Doing, i64> = Doing::ALL.map(|doing| (doing, 0)).into();
        for slot in slots {
            *doing.entry(slot).or_default() += 1;
        }
        for (doing, count) in doing {
            self.slots.get_or_create(&State { state: doing.as_str() }).set(count);
        }
    }

    /// Whether there is a line to the coordinator.
    pub(crate) fn connected(&self, connected: bool) {
        if connected {
            self.connections.inc();
        }
        self.connected.store(connected, Ordering::Relaxed);
    }

    /// Whether there is a line to the coordinator: then it can be given something to play.
    pub fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// Adds all figures to a text.
    ///
    /// # Errors
    /// Never, as long as there is memory.
    pub fn figures(&self, text: &mut String) -> fmt::Result {
        encode_registry(text, &self.registry)?;
        let mut now = Registry::with_prefix("arbiter_worker");
        let gauge = |value: u64| {
            let gauge: Gauge = Gauge::default();
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
            gauge
        };
        let connected = gauge(u64::from(self.is_connected()));
        now.register("connected", "Whether there is a line to the coordinator", connected);
        let (reports, bytes) = self.spool.size();
        let text_of = "Reports that the coordinator has not acknowledged";
        now.register("spool_reports", text_of, gauge(reports));
        now.register_with_unit("spool", "What they take up", Unit::Bytes, gauge(bytes));
        let text_of = "Reports that the coordinator refused, kept in the spool's folder refused";
        now.register("refused_reports", text_of, gauge(self.spool.count_refused()));
        encode_registry(text, &now)
    }
}

fn seconds(time: Micros) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "no match takes hundreds of years")]
    let micros = time.0.max(0) as f64;
    micros / 1e6
}
