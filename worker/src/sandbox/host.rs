//! What this machine can isolate and measure, as tested by attacks.

use std::ffi::OsString;
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

use super::cgroup::{CgroupHierarchies, CgroupParents, CgroupVersion};
use super::cgroup_root::CgroupRoot;
use super::guarantees::{Enforcement, Finding, Guarantee, Level, SandboxReport};
use super::jail_config::{Bytes, JailConfig, Limits};
use super::loopback_listener::NetworkAccess;
use super::process::Process;
use super::scratch_dir::ScratchDir;
use super::self_test::{AttackPlan, AttackResult};
use super::with_namespaces::JailFactory;
use super::{BotSource, Jail, Policy, Stdin, Workdir, init, search_path, self_test};
use crate::fault::{Context as _, Fault};

/// Limits of the self-test: small, so that it exceeds them quickly. Its memory is several times
/// that of this program: the kernel kills the largest process of a group, which must be the child
/// that allocates memory and not the process that reports the results.
const TEST_LIMITS: Limits = Limits {
    memory: Bytes(48 << 20),
    processes: 12,
    disk: Bytes(1 << 20),
    files: 64,
    ..Limits::OFFICIAL
};

/// The time limit of all attacks together.
const ATTACK_TIMEOUT: Duration = Duration::from_secs(20);

/// The time limit of one poll for the results of the attacks.
const POLL_TIMEOUT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// How long a frozen process is observed.
const FREEZE_TIME: Duration = Duration::from_millis(20);

/// The processor time that a frozen process may seem to use: process clocks lag by a tick.
const CPU_TOLERANCE: Micros = Micros(5000);

/// How long the process spins before it is frozen, so that it uses measurable processor time.
const SPIN_TIME: Duration = Duration::from_millis(10);

/// The machine gives less isolation than the policy requires.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SandboxError {
    /// Less than level A.
    #[error(
        "sandbox strict: this machine isolates at level {level} only: {lost}; `arbiter doctor` \
         shows remedies; run trusted programs with --sandbox auto"
    )]
    NotStrict {
        /// The level that it gives.
        level: Level,
        /// The missing guarantees, separated by semicolons.
        lost: String,
    },
    /// Less than level B.
    #[error(
        "sandbox: this machine isolates at level {level} only, where bots run as the worker's \
         user: {why}; `arbiter doctor` shows remedies; use --sandbox landlock to accept this \
         level, or --sandbox off with trusted programs"
    )]
    NoNamespaces {
        /// The level that it gives.
        level: Level,
        /// Why the level is not better.
        why: String,
    },
    /// Less than level C.
    #[error("sandbox: this machine isolates nothing: {0}; run trusted programs with --sandbox off")]
    Nothing(String),
}

/// What isolates bots.
#[derive(Debug)]
pub(super) enum Isolation {
    Namespaces(Arc<JailFactory>),
    Landlock,
    None,
}

/// What this machine can isolate and measure.
#[derive(Debug)]
pub struct Host {
    pub(super) isolation: Isolation,
    pub(super) groups: CgroupParents,
    report: SandboxReport,
}

impl Host {
    /// Tests what this machine can isolate: opens a jail and attacks it from within.
    pub fn prepare(policy: Policy) -> Result<Self, SandboxError> {
        Self::prepare_with_hierarchies(policy, CgroupHierarchies::All)
    }

    /// Like [`Self::prepare`], with these control groups only.
    pub fn prepare_with_hierarchies(
        policy: Policy,
        hierarchies: CgroupHierarchies,
    ) -> Result<Self, SandboxError> {
        // First kill processes that dead workers left in control groups. They could still write
        // into the directories that are removed next.
        let groups = CgroupParents::find(hierarchies);
        ScratchDir::sweep();
        if policy == Policy::Off {
            return Ok(Self::without_isolation());
        }
        raise_descriptor_limit();
        let mut warnings = Vec::new();
        let host = Self::try_namespaces(&groups, &mut warnings)
            .or_else(|| Self::try_landlock(&groups, &mut warnings))
            .ok_or_else(|| SandboxError::Nothing(warnings.join("; ")))?;
        if policy == Policy::Strict && !host.level().is_strict() {
            let lost = [&host.report.losses()[..], &[]].concat().join("; ");
            return Err(SandboxError::NotStrict { level: host.level(), lost });
        }
        if policy == Policy::Namespaces && host.level() > Level::B {
            let why = host.report.warnings.join("; ");
            return Err(SandboxError::NoNamespaces { level: host.level(), why });
        }
        Ok(host)
    }

    /// The best isolation without namespaces: the fallback of [`Self::prepare`].
    pub fn prepare_landlock() -> Result<Self, SandboxError> {
        let mut warnings = Vec::new();
        Self::try_landlock(&CgroupParents::find(CgroupHierarchies::All), &mut warnings)
            .ok_or_else(|| SandboxError::Nothing(warnings.join("; ")))
    }

    /// How well bots are isolated.
    pub fn level(&self) -> Level {
        self.report.level
    }

    /// The results of the self-test.
    pub fn report(&self) -> &SandboxReport {
        &self.report
    }

    /// The `PATH` in which bots find programs here.
    pub(crate) fn program_path(&self) -> OsString {
        match self.isolation {
            Isolation::Namespaces(_) => OsString::from(init::PATH),
            Isolation::Landlock | Isolation::None => search_path(),
        }
    }

    /// Whether bots that speak HTTP can be seated. It opens a jail with a listener to find out.
    pub(super) fn supports_http_bots(&self) -> bool {
        let Isolation::Namespaces(factory) = &self.isolation else {
            return matches!(self.isolation, Isolation::None);
        };
        let config = JailConfig::default();
        let group = self.groups.create(&TEST_LIMITS);
        let jail = group.and_then(|group| {
            Jail::open_in_namespaces(factory, None, &config, group, NetworkAccess::Loopback)
        });
        jail.is_ok_and(|mut jail| jail.listener().is_ok() && jail.close().is_ok())
    }

    /// Removes copies of the files of `source`. No jail may use them any more.
    pub fn remove_copies(&self, source: &BotSource) {
        if let Isolation::Namespaces(factory) = &self.isolation {
            factory.store.remove_copies(source);
        }
    }

    /// How well bots are isolated, in one line for operators.
    pub fn summary(&self) -> String {
        let level = self.level();
        match &self.report.losses()[..] {
            _ if matches!(self.isolation, Isolation::None) => {
                format!(
                    "sandbox level {level}: bots run as the user who started this program; play \
                     only trusted programs"
                )
            }
            [] => format!("sandbox level {level}: everything is enforced"),
            losses => format!("sandbox level {level}: {}", losses.join("; ")),
        }
    }

    /// No isolation: control groups measure and kill, and limit nothing.
    fn without_isolation() -> Self {
        let groups = CgroupParents {
            memory: None,
            processes: None,
            ..CgroupParents::find(CgroupHierarchies::All)
        };
        let findings = Guarantee::ALL.map(|guarantee| Finding {
            guarantee,
            state: Enforcement::None,
            by: "nothing".to_owned(),
            evidence: "switched off".to_owned(),
        });
        let report = SandboxReport::new(Level::D, findings.to_vec());
        Self { isolation: Isolation::None, groups, report }
    }

    /// The best isolation by namespaces, if the self-test confirms it.
    fn try_namespaces(groups: &CgroupParents, warnings: &mut Vec<String>) -> Option<Self> {
        if !super::can_reexec() {
            warnings.push("this program cannot start itself as a launcher".to_owned());
            return None;
        }
        let root = rustix::process::geteuid().is_root();
        for separate_users in [true, false] {
            if separate_users && !root {
                continue;
            }
            let test_result =
                JailFactory::start(separate_users).map(Arc::new).and_then(|factory| {
                    let report =
                        test_namespaces(&factory, groups).map_err(|fault| fault.to_string())?;
                    Ok((factory, report))
                });
            match test_result {
                Ok((factory, mut report)) if report.level <= Level::B => {
                    report.warnings.append(warnings);
                    let isolation = Isolation::Namespaces(factory);
                    let groups = groups.clone();
                    return Some(Self { isolation, groups, report });
                }
                Ok((_, report)) => warn(warnings, failed_guarantees(&report)),
                Err(why) => warn(warnings, vec![why]),
            }
        }
        None
    }

    /// Isolation by Landlock and seccomp, if the self-test confirms it.
    fn try_landlock(groups: &CgroupParents, warnings: &mut Vec<String>) -> Option<Self> {
        match test_landlock(groups) {
            Ok(findings) => {
                let mut report = SandboxReport::new(Level::C, findings);
                report.warnings.append(warnings);
                Some(Self { isolation: Isolation::Landlock, groups: groups.clone(), report })
            }
            Err(fault) => {
                warnings.push(fault.to_string());
                None
            }
        }
    }
}

/// Raises the limit of descriptors as far as allowed: each seat needs a dozen. After a failure
/// here, a later attempt to open too many descriptors reports an error.
fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    let all = Rlimit { current: maximum, maximum };
    let _best_effort = rustix::process::setrlimit(Resource::Nofile, all);
}

/// Adds warnings that are new. The attempts with and without users for bots often fail in the same
/// way.
fn warn(warnings: &mut Vec<String>, new: Vec<String>) {
    for warning in new {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}

/// The isolation guarantees that failed, for a warning.
fn failed_guarantees(report: &SandboxReport) -> Vec<String> {
    let isolation = report.findings.iter().filter(|finding| finding.guarantee.is_isolation());
    let failed = isolation.filter(|finding| finding.state != Enforcement::Enforced);
    failed.map(|finding| format!("{}: {}", finding.guarantee, finding.evidence)).collect()
}

/// Calls `act` with targets to attack. They exist until it returns.
fn with_plan<T>(act: impl FnOnce(AttackPlan) -> Result<T, Fault>) -> Result<T, Fault> {
    let scratch = ScratchDir::new().fault("cannot create a directory for the self-test")?;
    let secret = scratch.path().join("secret");
    fs::write(&secret, "secret").fault("cannot write a file for the self-test")?;
    let stream = scratch.path().join("stream");
    let datagrams = scratch.path().join("datagrams");
    let what = "cannot open a socket for the self-test";
    let _sockets =
        (UnixListener::bind(&stream).fault(what)?, UnixDatagram::bind(&datagrams).fault(what)?);
    let listener = TcpListener::bind(("127.0.0.1", 0)).fault(what)?;
    let port = listener.local_addr().fault(what)?.port();
    act(AttackPlan {
        secret,
        stream,
        datagrams,
        worker: i32::try_from(std::process::id()).expect("the kernel counts processes in a pid_t"),
        namespace: self_test::pid_namespace(),
        port,
        memory: 2 * usize::try_from(TEST_LIMITS.memory.0).expect("small"),
        processes: 3 * TEST_LIMITS.processes,
        disk: 3 * usize::try_from(TEST_LIMITS.disk.0).expect("small"),
        files: 2 * u32::try_from(TEST_LIMITS.files).expect("small"),
    })
}

/// Runs the self-test in a jail with namespaces: every attack, then freezing and killing a spinning
/// process. The jail is built like a bot's, with an empty program. This also tests whether the
/// kernel and the file system of temporary files support overlays. Without overlays no bot can be
/// seated.
fn test_namespaces(
    factory: &Arc<JailFactory>,
    groups: &CgroupParents,
) -> Result<SandboxReport, Fault> {
    let config = JailConfig { limits: TEST_LIMITS, ..JailConfig::default() };
    let files = ScratchDir::new().fault("cannot create an empty program")?;
    let program = BotSource::Directory(files.path().to_owned());
    let workdir = Workdir::new(&program)?;
    let group = groups.create(&TEST_LIMITS)?;
    let mut jail =
        Jail::open_in_namespaces(factory, Some(workdir), &config, group, NetworkAccess::None)?;
    let mut attacker = with_plan(|plan| jail.run_self_test(plan))?;
    let results = read_results(&mut attacker)?;
    let mut findings = findings_of(&results, |guarantee| mechanism(guarantee, groups));
    findings.extend(test_freeze(&mut jail, groups)?);
    findings.push(test_kill(jail, &mut attacker, Enforcement::Enforced, "process namespace"));
    factory.store.remove_copies(&program);
    let level = level_from(&findings, groups);
    Ok(SandboxReport::new(level, findings))
}

/// Runs the self-test with Landlock. Guarantees that no attack can prove are best effort.
fn test_landlock(groups: &CgroupParents) -> Result<Vec<Finding>, Fault> {
    let program = std::env::current_exe().fault("cannot find this program")?;
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let workdir = Workdir::new(&BotSource::File(program))?;
    let config = JailConfig { limits: TEST_LIMITS, ..JailConfig::default() };
    let mut jail = Jail::open_with_landlock(workdir, &config, groups.create(&TEST_LIMITS)?)?;
    let (mut attacker, results) = with_plan(|plan| {
        let argv = self_test::command_line(&format!("./{name}"), &plan);
        let mut attacker = jail.start(&argv, Stdin::Null)?.fault("cannot start the self-test")?;
        let results = read_results(&mut attacker)?;
        Ok((attacker, results))
    })?;
    let by = |guarantee| match guarantee {
        Guarantee::Files | Guarantee::Others => "Landlock".to_owned(),
        Guarantee::Network | Guarantee::Kernel => "Landlock, filter".to_owned(),
        Guarantee::Disk => "limit of a file's length only".to_owned(),
        Guarantee::Memory if groups.memory.is_none() => "limit of each process".to_owned(),
        other => mechanism(other, groups),
    };
    let mut findings = findings_of(&results, by);
    findings.extend(test_freeze(&mut jail, groups)?);
    let kill =
        if groups.freezer.is_some() { Enforcement::Enforced } else { Enforcement::BestEffort };
    findings.push(test_kill(jail, &mut attacker, kill, "control group or process group"));
    match landlock_breach(&findings, &results) {
        None => Ok(findings),
        Some(evidence) => Err(Fault::new("Landlock does not isolate bots", evidence)),
    }
}

/// Why Landlock does not isolate enough, if it does not. With Landlock, bots always see other
/// processes. But if they could end, trace or slow down the worker, they could cause a fault at any
/// time.
fn landlock_breach(findings: &[Finding], results: &[AttackResult]) -> Option<String> {
    let required = [Guarantee::Files, Guarantee::Network, Guarantee::Kernel];
    let broken = findings.iter().find(|finding| {
        required.contains(&finding.guarantee) && finding.state != Enforcement::Enforced
    });
    if let Some(finding) = broken {
        return Some(finding.evidence.clone());
    }
    let worker_attacks = [self_test::SIGNAL, self_test::TRACE, self_test::RENICE];
    let breach = worker_attacks.iter().find_map(|attack| {
        match results.iter().find(|result| result.attack == *attack) {
            Some(result) if result.was_blocked => None,
            Some(result) => Some(format!("a bot can {attack} ({})", result.detail)),
            None => Some(format!("the self-test did not try to {attack}")),
        }
    });
    breach.map(|cause| {
        let remedy = "Landlock blocks signals since Linux 6.12; use a newer kernel, allow user \
                      namespaces, or run the worker as root, which gives bots their own users";
        format!("{cause}: {remedy}")
    })
}

/// Waits for the results of the attacks: one line.
fn read_results(attacker: &mut Process) -> Result<Vec<AttackResult>, Fault> {
    let mut line = Vec::new();
    let start_time = Instant::now();
    while !line.ends_with(b"\n") {
        let mut ready = [PollFd::new(&attacker.stdout, PollFlags::IN)];
        rustix::event::poll(&mut ready, Some(&POLL_TIMEOUT)).fault("cannot read the self-test")?;
        let mut buffer = [0; 4096];
        match attacker.stdout.read(&mut buffer) {
            Ok(0) => {
                let _reaped = attacker.wait();
                let exit = attacker.exit().map_or_else(String::new, |exit| exit.to_string());
                return Err(Fault::new(
                    "cannot read the self-test",
                    format!("the self-test {exit}"),
                ));
            }
            Ok(count) => line.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                return Err(Fault::new("cannot read the self-test", error));
            }
            Err(_) if start_time.elapsed() > ATTACK_TIMEOUT => {
                return Err(Fault::new(
                    "cannot read the self-test",
                    "the self-test takes too long",
                ));
            }
            Err(_) => {}
        }
    }
    serde_json::from_slice(&line).fault("cannot parse the self-test")
}

/// One finding for each guarantee that was attacked.
fn findings_of(results: &[AttackResult], by: impl Fn(Guarantee) -> String) -> Vec<Finding> {
    let attacked = Guarantee::ALL
        .into_iter()
        .filter(|guarantee| results.iter().any(|result| result.guarantee == *guarantee));
    let finding = |guarantee| {
        let attacks = results.iter().filter(|result| result.guarantee == guarantee);
        let success = attacks.clone().find(|result| !result.was_blocked);
        let describe = |result: &AttackResult| format!("{}: {}", result.attack, result.detail);
        let (state, evidence) = match success {
            None => (Enforcement::Enforced, attacks.map(describe).collect::<Vec<_>>().join("; ")),
            Some(attack) if guarantee == Guarantee::Memory => {
                (Enforcement::BestEffort, describe(attack))
            }
            Some(attack) => (Enforcement::None, describe(attack)),
        };
        Finding { guarantee, state, by: by(guarantee), evidence }
    };
    attacked.map(finding).collect()
}

/// What provides a guarantee in a jail with namespaces.
fn mechanism(guarantee: Guarantee, groups: &CgroupParents) -> String {
    let group = |root: &Option<CgroupRoot>, otherwise: &str| match root {
        Some(CgroupRoot { version: CgroupVersion::V2, .. }) => "control group v2".to_owned(),
        Some(CgroupRoot { version: CgroupVersion::V1, .. }) => "control group v1".to_owned(),
        None => otherwise.to_owned(),
    };
    match guarantee {
        Guarantee::Files => "mount namespace".to_owned(),
        Guarantee::Network => "network namespace, filter".to_owned(),
        Guarantee::Others | Guarantee::Kill => "process namespace".to_owned(),
        Guarantee::Kernel => "no capabilities, filter".to_owned(),
        Guarantee::Disk => "file system in memory with a size".to_owned(),
        Guarantee::Processes => group(&groups.processes, "limit of the user"),
        Guarantee::Memory => group(&groups.memory, "polling of the tree, limit of each process"),
        Guarantee::Cpu => group(&groups.cpu, "clocks of processes"),
        Guarantee::Freeze => group(&groups.freezer, "signals"),
    }
}

/// Freezes a spinning process, and checks that it uses no more processor time.
fn test_freeze(jail: &mut Jail, groups: &CgroupParents) -> Result<[Finding; 2], Fault> {
    thread::sleep(SPIN_TIME);
    // The processor time below shows whether the freeze worked.
    let _is_frozen = jail.freeze()?;
    let cpu_before = jail.cpu_time();
    thread::sleep(FREEZE_TIME);
    let cpu_after = jail.cpu_time();
    jail.thaw()?;
    let frozen_cpu = cpu_after - cpu_before;
    let enforcement = |root: &Option<CgroupRoot>, passed: bool| match (passed, root) {
        (true, Some(_)) => Enforcement::Enforced,
        (true, None) => Enforcement::BestEffort,
        (false, _) => Enforcement::None,
    };
    let cpu = Finding {
        guarantee: Guarantee::Cpu,
        state: enforcement(&groups.cpu, cpu_before > Micros::ZERO),
        by: mechanism(Guarantee::Cpu, groups),
        evidence: format!("{cpu_before} counted of a spinning process"),
    };
    let freeze = Finding {
        guarantee: Guarantee::Freeze,
        state: enforcement(&groups.freezer, frozen_cpu <= CPU_TOLERANCE),
        by: mechanism(Guarantee::Freeze, groups),
        evidence: format!("{frozen_cpu} used while frozen for {} ms", FREEZE_TIME.as_millis()),
    };
    Ok([cpu, freeze])
}

/// Closes a jail while a process in it spins.
fn test_kill(jail: Jail, attacker: &mut Process, best: Enforcement, by: &str) -> Finding {
    let start_time = Instant::now();
    let result = jail.close();
    let _reaped = attacker.wait();
    let (state, evidence) = match result {
        Ok(closed) if closed.lingers => {
            (Enforcement::None, "its processes are still alive".to_owned())
        }
        Ok(_) => (best, format!("gone in {} µs", start_time.elapsed().as_micros())),
        Err(fault) => (Enforcement::None, fault.to_string()),
    };
    Finding { guarantee: Guarantee::Kill, state, by: by.to_owned(), evidence }
}

/// The sandbox level that these findings allow.
fn level_from(findings: &[Finding], groups: &CgroupParents) -> Level {
    let is_lost = |isolation: bool| {
        let of_kind =
            findings.iter().filter(|finding| finding.guarantee.is_isolation() == isolation);
        of_kind.clone().any(|finding| finding.state != Enforcement::Enforced)
    };
    let version = |root: &Option<CgroupRoot>| root.as_ref().map(|root| root.version);
    if is_lost(true) {
        Level::C
    } else if is_lost(false) {
        Level::B
    } else if version(&groups.freezer) == Some(CgroupVersion::V1) {
        Level::A2
    } else if version(&groups.memory) == Some(CgroupVersion::V1) {
        Level::A1
    } else {
        Level::A
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The breach if other processes are visible and the attacks in `successes` succeed.
    fn breach(successes: &[&str]) -> Option<String> {
        let attacks = [
            (Guarantee::Files, "read a file of the worker"),
            (Guarantee::Network, "connect to a path"),
            (Guarantee::Others, self_test::SIGNAL),
            (Guarantee::Others, self_test::TRACE),
            (Guarantee::Others, self_test::RENICE),
            (Guarantee::Others, "see other processes"),
            (Guarantee::Kernel, "use io_uring"),
        ];
        let results = attacks.map(|(guarantee, attack)| {
            let was_blocked = attack != "see other processes" && !successes.contains(&attack);
            let detail = if was_blocked { "refused" } else { "it succeeded" }.to_owned();
            AttackResult { guarantee, attack: attack.to_owned(), was_blocked, detail }
        });
        let findings = findings_of(&results, |_| "Landlock".to_owned());
        landlock_breach(&findings, &results)
    }

    #[test]
    fn landlock_is_enough_although_processes_are_visible() {
        assert_eq!(breach(&[]), None);
    }

    #[test]
    fn landlock_is_refused_if_bots_reach_their_worker() {
        for attack in [self_test::SIGNAL, self_test::TRACE, self_test::RENICE] {
            let why = breach(&[attack]).unwrap();
            assert!(why.starts_with(&format!("a bot can {attack} (it succeeded)")), "{why}");
            assert!(why.contains("Linux 6.12"), "{why}");
        }
        let unknown = landlock_breach(&[], &[]).unwrap();
        assert!(unknown.starts_with("the self-test did not try to signal"), "{unknown}");
    }

    #[test]
    fn landlock_is_refused_if_bots_read_files_of_the_worker() {
        let why = breach(&["read a file of the worker"]).unwrap();
        assert_eq!(why, "read a file of the worker: it succeeded");
    }
}
