//! What happens on this worker, counted: for Prometheus, in the text of `OpenMetrics`.
//!
//! All of it begins at nothing when the worker starts. A match costs a few atomics.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arbiter_games::{Forfeit, Game, Micros, string_enum};
use arbiter_proto::fault::FaultKind;
use arbiter_proto::level::Level;
use arbiter_proto::{labels, metrics, v1};
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::match_runner::Outcome;
use crate::sandbox::Host;
use crate::spool::Spool;

/// Upper bounds of how long matches take, in seconds.
const MATCHES: [f64; 12] =
    [0.01, 0.05, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0];
/// Upper bounds of how long a bot's start takes, in seconds.
const STARTS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
/// Upper bounds of how much of the clock's margin is used, in seconds. The official one is 20 ms.
const MARGINS: [f64; 9] = [0.0, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.05];

/// A bot that used less of a processor than this part of the time that it lost by was waiting.
const BUSY: i64 = 2;

labels! {
    OfGame { game: String }
    Forfeited { game: String, kind: &'static str }
    TimeLoss { processor: &'static str }
    Ended { of: &'static str, end: &'static str }
    Kind { kind: &'static str }
    Fate { fate: &'static str }
    State { state: &'static str }
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

metrics! {
    /// What happens, counted.
    struct Events {
        matches: Family<OfGame, Counter> => "matches", "Matches played to their ends";
        match_time: Times = Times::new_with_constructor(|| Histogram::new(MATCHES))
            => "match" in Seconds, "How long matches take";
        forfeits: Family<Forfeited, Counter> => "forfeits", "Forfeits in these matches";
        time_losses: Family<TimeLoss, Counter> => "time_losses",
            "Forfeits by the clock; the processor was idle where the bot used less than half \
            of the time: it waited, or this machine kept it waiting";
        starts: Histogram = Histogram::new(STARTS) => "bot_start" in Seconds,
            "From nothing to a started bot in its sandbox";
        margins: Histogram = Histogram::new(MARGINS) => "margin_used" in Seconds,
            "The most of the clock's margin that an answer of a match needed";
        slots: Family<State, Gauge> => "slots", "Slots by what they do";
        ended: Family<Ended, Counter> => "jobs", "Lots and trials by how they ended here";
        faults: Family<Kind, Counter> => "faults",
            "Attempts that failed here through no bot's fault";
        verdicts: Family<Fate, Counter> => "verdicts",
            "Reports by what the coordinator made of them";
        leases_lost: Counter => "leases_lost", "Leases that ran out while they were played";
        bundles: Counter => "supplies", "Lots and trials whose bundles were there, or fetched";
        connections: Counter => "connections", "Connections to the coordinator that were made";
    }
}

metrics! {
    /// How the worker is.
    struct Condition {
        strict: Gauge => "sandbox_strict",
            "Whether everything that official matches ask for is guaranteed";
        prepared: Gauge<f64, AtomicU64> => "sandbox_prepare" in Seconds,
            "How long it took to find out what the machine isolates";
        connected: Gauge => "connected", "Whether there is a line to the coordinator";
        reports: Gauge => "spool_reports", "Reports that the coordinator has not acknowledged";
        bytes: Gauge => "spool" in Bytes, "What they take up";
        refused: Gauge => "refused_reports",
            "Reports that the coordinator refused, kept in the spool's folder refused";
    }
}

/// What happens on a worker, and how it is.
#[derive(Debug)]
pub struct Metrics {
    spool: Arc<Spool>,
    level: Level,
    events: Events,
    condition: Condition,
}

impl Metrics {
    /// For a worker with this spool, whose machine gives what `host` says after it was looked at for
    /// so many seconds.
    pub(crate) fn new(spool: Arc<Spool>, host: &Host, looked: f64) -> Self {
        let level = host.level();
        let condition = Condition::default();
        condition.strict.set(level.is_strict().into());
        condition.prepared.set(looked);
        let metrics = Self { spool, level, events: Events::default(), condition };
        metrics.begin();
        metrics
    }

    /// Lets every series begin at nothing.
    fn begin(&self) {
        for of in ["lot", "trial"] {
            for end in [End::Reported, End::Stopped, End::Failed] {
                drop(self.events.ended.get_or_create(&Ended { of, end: end.as_str() }));
            }
        }
        for kind in [FaultKind::System, FaultKind::Unclean, FaultKind::Panic, FaultKind::Inputs] {
            drop(self.events.faults.get_or_create(&Kind { kind: kind.as_str() }));
        }
        for processor in ["idle", "busy"] {
            drop(self.events.time_losses.get_or_create(&TimeLoss { processor }));
        }
        for fate in ["accepted", "repeated", "late", "malformed"] {
            drop(self.events.verdicts.get_or_create(&Fate { fate }));
        }
        self.slots([]);
    }

    /// A match came to its end.
    pub(crate) fn played(&self, game: &Game, outcome: &Outcome) {
        let of = OfGame { game: game.to_string() };
        self.events.matches.get_or_create(&of).inc();
        self.events.match_time.get_or_create(&of).observe(seconds(outcome.wall));
        self.events.margins.observe(seconds(outcome.margin));
        outcome.starts.iter().for_each(|start| self.events.starts.observe(seconds(*start)));
        for (standing, report) in outcome.standings.iter().zip(&outcome.seats) {
            let Some(forfeit) = standing.forfeit else { continue };
            let kind = forfeit.as_str();
            let game = of.game.clone();
            self.events.forfeits.get_or_create(&Forfeited { game, kind }).inc();
            if forfeit == Forfeit::Clock {
                let idle = report.spent.cpu.0.saturating_mul(BUSY) < report.spent.wall.0;
                let processor = if idle { "idle" } else { "busy" };
                self.events.time_losses.get_or_create(&TimeLoss { processor }).inc();
            }
        }
    }

    /// A lot or a trial ended.
    pub(crate) fn ended(&self, is_trial: bool, end: End) {
        let of = if is_trial { "trial" } else { "lot" };
        self.events.ended.get_or_create(&Ended { of, end: end.as_str() }).inc();
    }

    /// An attempt failed.
    pub(crate) fn failed(&self, kind: v1::FaultKind) {
        self.events.faults.get_or_create(&Kind { kind: FaultKind::from(kind).as_str() }).inc();
    }

    /// The coordinator judged a report.
    pub(crate) fn judged(&self, fate: v1::ReportStatus) {
        let fate = match fate {
            v1::ReportStatus::Unspecified => "unknown",
            v1::ReportStatus::Accepted => "accepted",
            v1::ReportStatus::Duplicate => "repeated",
            v1::ReportStatus::Late => "late",
            v1::ReportStatus::Refused => "malformed",
            v1::ReportStatus::Postponed => "postponed",
        };
        self.events.verdicts.get_or_create(&Fate { fate }).inc();
    }

    /// A lease was lost.
    pub(crate) fn lost(&self) {
        self.events.leases_lost.inc();
    }

    /// What a job takes is here.
    pub(crate) fn supplied(&self) {
        self.events.bundles.inc();
    }

    /// What the slots do now.
    pub(crate) fn slots(&self, slots: impl IntoIterator<Item = Doing>) {
        let mut doing: BTreeMap<Doing, i64> = Doing::ALL.map(|doing| (doing, 0)).into();
        for slot in slots {
            *doing.entry(slot).or_default() += 1;
        }
        for (doing, count) in doing {
            self.events.slots.get_or_create(&State { state: doing.as_str() }).set(count);
        }
    }

    /// Whether there is a line to the coordinator.
    pub(crate) fn connected(&self, connected: bool) {
        if connected {
            self.events.connections.inc();
        }
        self.condition.connected.set(connected.into());
    }

    /// Whether there is a line to the coordinator: then it can be given something to play.
    pub fn is_connected(&self) -> bool {
        self.condition.connected.get() == 1
    }

    /// Adds all figures to a text.
    pub fn figures(&self, text: &mut String) -> fmt::Result {
        let Condition { reports, bytes, refused, .. } = &self.condition;
        let (count, size) = self.spool.size();
        for (gauge, value) in
            [(reports, count), (bytes, size), (refused, self.spool.count_refused())]
        {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        let mut registry = Registry::with_prefix("arbiter_worker");
        self.events.register(&mut registry);
        let level = Info::new([("level", self.level.as_str())]);
        registry.register("sandbox", "How well bots are held here", level);
        self.condition.register(&mut registry);
        encode_registry(text, &registry)
    }
}

fn seconds(time: Micros) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "no match takes hundreds of years")]
    let micros = time.0.max(0) as f64;
    micros / 1e6
}
