//! What this machine can isolate and measure, found out by attacks and by nothing else.

use std::fs;
use std::io::{self, Read as _};
use std::net::TcpListener;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use arbiter_games::Micros;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Resource, Rlimit};
use thiserror::Error;

use super::canary::{Outcome, Plan};
use super::cgroup::{Groups, Hierarchies, Version};
use super::door::Network;
use super::limits::{Bytes, Limits, Terms};
use super::places::Place;
use super::process::Process;
use super::report::{Finding, Guarantee, Level, SandboxReport, State};
use super::scratch::Scratch;
use super::walls::Walls;
use super::{Home, Jail, Policy, Source, Stdin, canary};
use crate::fault::{Context as _, Fault};

/// What a canary may use: little, so that going beyond it is quick. Of memory it may use several times
/// what this program takes up, since the kernel kills the largest process of a group: that must be
/// the child that devours memory, not the canary that tells of it.
const CAGE: Limits = Limits {
    memory: Bytes(48 << 20),
    processes: 12,
    disk: Bytes(1 << 20),
    files: 64,
    ..Limits::OFFICIAL
};

/// How long all attacks together may take.
const ATTACKS: Duration = Duration::from_secs(20);

/// How long one wait for them takes at most.
const STEP: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// How long a stopped canary is watched.
const WATCH: Duration = Duration::from_millis(20);

/// The processor time that a stopped canary may seem to use: clocks of processes are late by a
/// tick.
const NOTHING: Micros = Micros(5000);

/// How long a canary spins before it is stopped, so that there is processor time to measure.
const SPIN: Duration = Duration::from_millis(10);

/// The machine gives less isolation than was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// Less than everything.
    #[error(
        "sandbox strict: this machine isolates at level {level} only: {lost}; `arbiter doctor` \
         tells the remedy; run programs you trust with --sandbox auto"
    )]
    NotStrict {
        /// What it gives.
        level: Level,
        /// What is lost, or why.
        lost: String,
    },
    /// No namespaces, which were asked for.
    #[error(
        "sandbox: this machine isolates at level {level} only, where bots run as the user of their \
         worker: {why}; `arbiter doctor` tells the remedy; to run all the same say --sandbox \
         landlock, or with programs you trust --sandbox off"
    )]
    NoNamespaces {
        /// What it gives.
        level: Level,
        /// Why it gives no more.
        why: String,
    },
    /// Nothing at all.
    #[error(
        "sandbox: this machine isolates nothing: {0}; run programs you trust with --sandbox off"
    )]
    Nothing(String),
}

/// What holds bots.
#[derive(Debug)]
pub(super) enum Hold {
    Walls(Arc<Walls>),
    Fence,
    Nothing,
}

/// What this machine can isolate and measure.
#[derive(Debug)]
pub struct Host {
    pub(super) hold: Hold,
    pub(super) groups: Groups,
    report: SandboxReport,
}

impl Host {
    /// Finds out what the machine gives, by running a jail and attacking it from within.
    pub fn prepare(policy: Policy) -> Result<Self, Refused> {
        Self::prepare_with(policy, Hierarchies::All)
    }

    /// The same as if the machine had these control groups alone.
    pub fn prepare_with(policy: Policy, hierarchies: Hierarchies) -> Result<Self, Refused> {
        // This kills what is left in groups of workers that are gone, which could still write into
        // the directories that are removed next.
        let groups = Groups::find(hierarchies);
        Scratch::sweep();
        if policy == Policy::Off {
            return Ok(Self::unguarded());
        }
        make_room();
        let mut warnings = Vec::new();
        let host = Self::walled(&groups, &mut warnings)
            .or_else(|| Self::fenced(&groups, &mut warnings))
            .ok_or_else(|| Refused::Nothing(warnings.join("; ")))?;
        if policy == Policy::Strict && !host.level().is_strict() {
            let lost = [&host.report.losses()[..], &[]].concat().join("; ");
            return Err(Refused::NotStrict { level: host.level(), lost });
        }
        if policy == Policy::Namespaces && host.level() > Level::B {
            let why = host.report.warnings.join("; ");
            return Err(Refused::NoNamespaces { level: host.level(), why });
        }
        Ok(host)
    }

    /// The best that can be had without namespaces: what [`Self::prepare`] falls back on.
    pub fn prepare_fence() -> Result<Self, Refused> {
        let mut warnings = Vec::new();
        Self::fenced(&Groups::find(Hierarchies::All), &mut warnings)
            .ok_or_else(|| Refused::Nothing(warnings.join("; ")))
    }

    /// How well bots are held.
    pub fn level(&self) -> Level {
        self.report.level
    }

    /// Everything that is known about that.
    pub fn report(&self) -> &SandboxReport {
        &self.report
    }

    /// Whether bots that speak HTTP can be seated: made sure of with a jail that has a door.
    pub(super) fn opens_doors(&self) -> bool {
        let Hold::Walls(walls) = &self.hold else { return matches!(self.hold, Hold::Nothing) };
        let (terms, group) = (Terms::default(), self.groups.leaf(&CAGE));
        let jail = group.and_then(|group| Jail::wall_in(walls, None, &terms, group, Network::Door));
        jail.is_ok_and(|mut jail| jail.door().is_ok() && jail.close().is_ok())
    }

    /// Gives up what was copied of the files of `source`, which nobody plays any more.
    pub fn forget(&self, source: &Source) {
        if let Hold::Walls(walls) = &self.hold {
            walls.store.forget(source);
        }
    }

    /// How well bots are held, in one line for whoever runs them.
    pub fn announcement(&self) -> String {
        let level = self.level();
        match &self.report.losses()[..] {
            _ if matches!(self.hold, Hold::Nothing) => {
                format!(
                    "sandbox level {level}: bots run with your rights, play only what you trust"
                )
            }
            [] => format!("sandbox level {level}: everything is enforced"),
            losses => format!("sandbox level {level}: {}", losses.join("; ")),
        }
    }

    /// No isolation: groups measure and kill, and limit nothing.
    fn unguarded() -> Self {
        let groups = Groups { memory: None, processes: None, ..Groups::find(Hierarchies::All) };
        let findings = Guarantee::ALL.map(|guarantee| Finding {
            guarantee,
            state: State::None,
            by: "nothing".to_owned(),
            evidence: "switched off".to_owned(),
        });
        let report = SandboxReport::new(Level::D, findings.to_vec());
        Self { hold: Hold::Nothing, groups, report }
    }

    /// The best that namespaces give, if they hold.
    fn walled(groups: &Groups, warnings: &mut Vec<String>) -> Option<Self> {
        if !super::was_entered() {
            warnings.push("this program cannot be its own launcher".to_owned());
            return None;
        }
        let root = rustix::process::geteuid().is_root();
        for two_users in [true, false] {
            if two_users && !root {
                continue;
            }
            let proved = Walls::raise(two_users).map(Arc::new).and_then(|walls| {
                let report = prove(&walls, groups).map_err(|fault| fault.to_string())?;
                Ok((walls, report))
            });
            match proved {
                Ok((walls, mut report)) if report.level <= Level::B => {
                    report.warnings.append(warnings);
                    let (hold, groups) = (Hold::Walls(walls), groups.clone());
                    return Some(Self { hold, groups, report });
                }
                Ok((_, report)) => warn(warnings, breaches(&report)),
                Err(why) => warn(warnings, vec![why]),
            }
        }
        None
    }

    /// What Landlock and the filter give, if the kernel has them.
    fn fenced(groups: &Groups, warnings: &mut Vec<String>) -> Option<Self> {
        match prove_fence(groups) {
            Ok(findings) => {
                let mut report = SandboxReport::new(Level::C, findings);
                report.warnings.append(warnings);
                Some(Self { hold: Hold::Fence, groups: groups.clone(), report })
            }
            Err(fault) => {
                warnings.push(fault.to_string());
                None
            }
        }
    }
}

/// Allows this process as many descriptors as it may allow itself: each seat takes a dozen. What
/// cannot be had is missed when it is needed, and told then.
fn make_room() {
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    let all = Rlimit { current: maximum, maximum };
    let _as_far_as_it_goes = rustix::process::setrlimit(Resource::Nofile, all);
}

/// Adds what is not there yet: one user or two, often the same does not hold.
fn warn(warnings: &mut Vec<String>, new: Vec<String>) {
    for warning in new {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}

/// What did not hold, for a warning.
fn breaches(report: &SandboxReport) -> Vec<String> {
    let walls = report.findings.iter().filter(|finding| finding.guarantee.is_wall());
    let broken = walls.filter(|finding| finding.state != State::Enforced);
    broken.map(|finding| format!("{}: {}", finding.guarantee, finding.evidence)).collect()
}

/// What a canary is to attack, while a file and a port of ours are there to be found.
fn with_plan<T>(act: impl FnOnce(Plan) -> Result<T, Fault>) -> Result<T, Fault> {
    let scratch = Scratch::new().fault("cannot make a secret")?;
    let secret = scratch.path().join("secret");
    fs::write(&secret, "secret").fault("cannot make a secret")?;
    let (stream, datagrams) = (scratch.path().join("stream"), scratch.path().join("datagrams"));
    let _sockets = (
        UnixListener::bind(&stream).fault("cannot listen")?,
        UnixDatagram::bind(&datagrams).fault("cannot listen")?,
    );
    let listener = TcpListener::bind(("127.0.0.1", 0)).fault("cannot listen")?;
    let port = listener.local_addr().fault("cannot listen")?.port();
    act(Plan {
        secret,
        stream,
        datagrams,
        worker: i32::try_from(std::process::id()).expect("the kernel counts processes in a pid_t"),
        namespace: canary::namespace(),
        port,
        memory: 2 * usize::try_from(CAGE.memory.0).expect("small"),
        processes: 3 * CAGE.processes,
        disk: 3 * usize::try_from(CAGE.disk.0).expect("small"),
        files: 2 * u32::try_from(CAGE.files).expect("small"),
    })
}

/// Runs a canary in a jail with walls: every attack, then a spin that is stopped, then its death.
/// The jail is furnished as a bot's is, with a program of no files: where the kernel, or the file
/// system with the temporary files, cannot lay a directory over that, no bot could be seated.
fn prove(walls: &Arc<Walls>, groups: &Groups) -> Result<SandboxReport, Fault> {
    let terms = Terms { limits: CAGE, ..Terms::default() };
    let files = Scratch::new().fault("cannot make a program of no files")?;
    let program = Source::Directory(files.path().to_owned());
    let (home, group) = (Home::fresh(&program)?, groups.leaf(&CAGE)?);
    let mut jail = Jail::wall_in(walls, Some(home), &terms, group, Network::None)?;
    let mut canary = with_plan(|plan| jail.attack(plan))?;
    let outcomes = hear(&mut canary)?;
    let mut findings = outcome_findings(&outcomes, |guarantee| mechanism(guarantee, groups));
    findings.extend(stop_and_watch(&mut jail, groups)?);
    findings.push(bury(jail, &mut canary, State::Enforced, "process namespace"));
    walls.store.forget(&program);
    let level = level_of(&findings, groups);
    Ok(SandboxReport::new(level, findings))
}

/// The same behind a fence. What no attack of the canary can prove is best effort.
fn prove_fence(groups: &Groups) -> Result<Vec<Finding>, Fault> {
    let program = std::env::current_exe().fault("cannot find this program")?;
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let home = Home::fresh(&Source::File(program))?;
    let terms = Terms { limits: CAGE, ..Terms::default() };
    let mut jail = Jail::fence_in(home, &terms, groups.leaf(&CAGE)?)?;
    let (mut canary, outcomes) = with_plan(|plan| {
        let argv = canary::argv(&format!("./{name}"), &plan);
        let mut canary = jail.start(&argv, Stdin::Null)?.fault("cannot start a canary")?;
        let outcomes = hear(&mut canary)?;
        Ok((canary, outcomes))
    })?;
    let by = |guarantee| match guarantee {
        Guarantee::Files | Guarantee::Others => "Landlock".to_owned(),
        Guarantee::Network | Guarantee::Kernel => "Landlock, filter".to_owned(),
        Guarantee::Disk => "nothing but the length of a file".to_owned(),
        Guarantee::Memory if groups.memory.is_none() => "limit of each process".to_owned(),
        other => mechanism(other, groups),
    };
    let mut findings = outcome_findings(&outcomes, by);
    findings.extend(stop_and_watch(&mut jail, groups)?);
    let kill = if groups.freezer.is_some() { State::Enforced } else { State::BestEffort };
    findings.push(bury(jail, &mut canary, kill, "control group or process group"));
    match breach_of_fence(&findings, &outcomes) {
        None => Ok(findings),
        Some(evidence) => Err(Fault::new("Landlock does not hold", evidence)),
    }
}

/// Why a fence is not to be relied on, if it is not. Other processes can be seen behind any, but a
/// worker that its bots can end, trace or slow down would fault at their will.
fn breach_of_fence(findings: &[Finding], outcomes: &[Outcome]) -> Option<String> {
    let walls = [Guarantee::Files, Guarantee::Network, Guarantee::Kernel];
    let broken = findings
        .iter()
        .find(|finding| walls.contains(&finding.guarantee) && finding.state != State::Enforced);
    if let Some(finding) = broken {
        return Some(finding.evidence.clone());
    }
    let on_worker = [canary::SIGNAL, canary::TRACE, canary::RENICE];
    let missing = on_worker.iter().find_map(|attack| {
        match outcomes.iter().find(|outcome| outcome.attack == *attack) {
            Some(outcome) if outcome.held => None,
            Some(outcome) => Some(format!("a bot can {attack} ({})", outcome.met)),
            None => Some(format!("it is not known whether a bot can {attack}")),
        }
    });
    missing.map(|cause| {
        let remedy = "Landlock keeps signals in from Linux 6.12 on; use such a kernel, allow user \
                      namespaces, or run the worker as root, where bots are users of their own";
        format!("{cause}: {remedy}")
    })
}

/// Waits for the outcomes of a canary's attacks: one line.
fn hear(canary: &mut Process) -> Result<Vec<Outcome>, Fault> {
    let mut line = Vec::new();
    let started = Instant::now();
    while !line.ends_with(b"\n") {
        let mut ready = [PollFd::new(&canary.stdout, PollFlags::IN)];
        rustix::event::poll(&mut ready, Some(&STEP)).fault("cannot hear a canary")?;
        let mut buffer = [0; 4096];
        match canary.stdout.read(&mut buffer) {
            Ok(0) => {
                let _reaped = canary.wait();
                let exit = canary.exit().map_or_else(String::new, |exit| exit.to_string());
                return Err(Fault::new("cannot hear a canary", format!("it {exit}")));
            }
            Ok(count) => line.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                return Err(Fault::new("cannot hear a canary", error));
            }
            Err(_) if started.elapsed() > ATTACKS => {
                return Err(Fault::new("cannot hear a canary", "it takes too long"));
            }
            Err(_) => {}
        }
    }
    serde_json::from_slice(&line).fault("cannot understand a canary")
}

/// What the attacks of one kind met, all together.
fn outcome_findings(outcomes: &[Outcome], by: impl Fn(Guarantee) -> String) -> Vec<Finding> {
    let attacked = Guarantee::ALL
        .into_iter()
        .filter(|guarantee| outcomes.iter().any(|outcome| outcome.guarantee == *guarantee));
    let finding = |guarantee| {
        let made = outcomes.iter().filter(|outcome| outcome.guarantee == guarantee);
        let broken: Vec<_> = made.clone().filter(|outcome| !outcome.held).collect();
        let shown = |outcome: &Outcome| format!("{}: {}", outcome.attack, outcome.met);
        let (state, evidence) = match broken.first() {
            None => (State::Enforced, made.map(shown).collect::<Vec<_>>().join("; ")),
            Some(first) if guarantee == Guarantee::Memory => (State::BestEffort, shown(first)),
            Some(first) => (State::None, shown(first)),
        };
        Finding { guarantee, state, by: by(guarantee), evidence }
    };
    attacked.map(finding).collect()
}

/// What a guarantee rests on where there are walls.
fn mechanism(guarantee: Guarantee, groups: &Groups) -> String {
    let group = |place: &Option<Place>, otherwise: &str| match place {
        Some(Place { version: Version::Two, .. }) => "control group v2".to_owned(),
        Some(Place { version: Version::One, .. }) => "control group v1".to_owned(),
        None => otherwise.to_owned(),
    };
    match guarantee {
        Guarantee::Files => "mount namespace".to_owned(),
        Guarantee::Network => "network namespace, filter".to_owned(),
        Guarantee::Others | Guarantee::Kill => "process namespace".to_owned(),
        Guarantee::Kernel => "no capabilities, filter".to_owned(),
        Guarantee::Disk => "file system in memory with a size".to_owned(),
        Guarantee::Processes => group(&groups.processes, "limit of the user"),
        Guarantee::Memory => group(&groups.memory, "looks at the tree, limit of each process"),
        Guarantee::Cpu => group(&groups.cpu, "clocks of processes"),
        Guarantee::Freeze => group(&groups.freezer, "signals"),
    }
}

/// Stops a spinning canary, and looks whether it stands.
fn stop_and_watch(jail: &mut Jail, groups: &Groups) -> Result<[Finding; 2], Fault> {
    thread::sleep(SPIN);
    let _seen_below = jail.freeze()?;
    let stopped = jail.cpu();
    thread::sleep(WATCH);
    let later = jail.cpu();
    jail.thaw()?;
    let used = later - stopped;
    let best = |place: &Option<Place>, held: bool| match (held, place) {
        (true, Some(_)) => State::Enforced,
        (true, None) => State::BestEffort,
        (false, _) => State::None,
    };
    let cpu = Finding {
        guarantee: Guarantee::Cpu,
        state: best(&groups.cpu, stopped > Micros::ZERO),
        by: mechanism(Guarantee::Cpu, groups),
        evidence: format!("{stopped} counted of a canary that spins"),
    };
    let freeze = Finding {
        guarantee: Guarantee::Freeze,
        state: best(&groups.freezer, used <= NOTHING),
        by: mechanism(Guarantee::Freeze, groups),
        evidence: format!("{used} used in {} ms of rest", WATCH.as_millis()),
    };
    Ok([cpu, freeze])
}

/// Closes a jail while its canary spins.
fn bury(jail: Jail, canary: &mut Process, best: State, by: &str) -> Finding {
    let started = Instant::now();
    let closed = jail.close();
    let _reaped = canary.wait();
    let (state, evidence) = match closed {
        Ok(closed) if closed.lingers => (State::None, "its processes live on".to_owned()),
        Ok(_) => (best, format!("gone in {} µs", started.elapsed().as_micros())),
        Err(fault) => (State::None, fault.to_string()),
    };
    Finding { guarantee: Guarantee::Kill, state, by: by.to_owned(), evidence }
}

/// All findings in one word.
fn level_of(findings: &[Finding], groups: &Groups) -> Level {
    let lost = |wall: bool| {
        let of_kind = findings.iter().filter(|finding| finding.guarantee.is_wall() == wall);
        of_kind.clone().any(|finding| finding.state != State::Enforced)
    };
    let version = |place: &Option<Place>| place.as_ref().map(|place| place.version);
    if lost(true) {
        Level::C
    } else if lost(false) {
        Level::B
    } else if version(&groups.freezer) == Some(Version::One) {
        Level::A2
    } else if version(&groups.memory) == Some(Version::One) {
        Level::A1
    } else {
        Level::A
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a canary behind a fence found: other processes to be seen, and `broken` to work.
    fn breach(broken: &[&str]) -> Option<String> {
        let attacks = [
            (Guarantee::Files, "read a file of the worker"),
            (Guarantee::Network, "connect to a path"),
            (Guarantee::Others, canary::SIGNAL),
            (Guarantee::Others, canary::TRACE),
            (Guarantee::Others, canary::RENICE),
            (Guarantee::Others, "see other processes"),
            (Guarantee::Kernel, "use io_uring"),
        ];
        let outcomes = attacks.map(|(guarantee, attack)| {
            let held = attack != "see other processes" && !broken.contains(&attack);
            let met = if held { "refused" } else { "it succeeded" }.to_owned();
            Outcome { guarantee, attack: attack.to_owned(), held, met }
        });
        let findings = outcome_findings(&outcomes, |_| "Landlock".to_owned());
        breach_of_fence(&findings, &outcomes)
    }

    #[test]
    fn a_fence_holds_though_processes_can_be_seen() {
        assert_eq!(breach(&[]), None);
    }

    #[test]
    fn a_fence_from_which_bots_reach_their_worker_is_none() {
        for attack in [canary::SIGNAL, canary::TRACE, canary::RENICE] {
            let why = breach(&[attack]).unwrap();
            assert!(why.starts_with(&format!("a bot can {attack} (it succeeded)")), "{why}");
            assert!(why.contains("Linux 6.12"), "{why}");
        }
        let unknown = breach_of_fence(&[], &[]).unwrap();
        assert!(unknown.starts_with("it is not known whether a bot can signal"), "{unknown}");
    }

    #[test]
    fn a_fence_that_lets_files_be_read_is_none() {
        let why = breach(&["read a file of the worker"]).unwrap();
        assert_eq!(why, "read a file of the worker: it succeeded");
    }
}
