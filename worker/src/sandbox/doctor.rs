//! The report of `arbiter doctor`: what this machine can isolate and measure, and remedies.

use std::fs;
use std::path::Path;

use rustix::time::ClockId;
use serde::Serialize;

use super::cgroup_root::{self, CgroupRoot};
use super::cpu_affinity::RefereePriority;
use super::guarantees::{self, Enforcement, Level, SandboxReport};
use super::host::{Host, SandboxError};
use super::{Policy, landlock};

/// One row of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoctorRow {
    /// The feature that was checked.
    pub what: String,
    /// The result.
    pub state: String,
    /// The consequence if the feature is missing.
    pub lost: Option<String>,
    /// How an operator can provide a missing feature.
    pub remedy: Option<String>,
}

/// All results on this machine.
#[derive(Clone, Debug)]
pub struct DoctorReport {
    /// The guarantees, or why the sandbox gives none.
    pub report: Result<SandboxReport, SandboxError>,
    /// Everything that was checked.
    pub rows: Vec<DoctorRow>,
}

impl DoctorReport {
    /// Checks the machine, and runs the self-test.
    pub fn collect() -> Self {
        let host_result = Host::prepare(Policy::Auto);
        let seats_http_bots = host_result.as_ref().is_ok_and(Host::supports_http_bots);
        let report = host_result.map(|host| host.report().clone());
        let mut rows = Vec::new();
        match &report {
            Ok(report) => {
                let losses = report.losses().join("; ");
                rows.push(DoctorRow {
                    what: "sandbox level".to_owned(),
                    state: report.level.to_string(),
                    lost: (!losses.is_empty()).then_some(losses),
                    remedy: None,
                });
                rows.extend(why_no_namespaces(report));
                rows.extend(guarantees(report));
            }
            Err(error) => rows.push(DoctorRow {
                what: "sandbox level".to_owned(),
                state: "D".to_owned(),
                lost: Some(error.to_string()),
                remedy: Some(NAMESPACES_REMEDY.to_owned()),
            }),
        }
        rows.push(present_or_missing(
            "bots that speak http",
            seats_http_bots.then(|| "allowed, each in its own network".to_owned()),
            "they cannot be seated: their matches fail here, and other workers play them",
            "let the worker use namespaces: see above",
        ));
        rows.extend(machine());
        Self { report, rows }
    }

    /// Whether `--sandbox strict` works here.
    pub fn is_strict(&self) -> bool {
        self.report.as_ref().is_ok_and(|report| report.level.is_strict())
    }
}

/// How an operator can enable namespaces.
const NAMESPACES_REMEDY: &str = "allow user namespaces (see below); if a bot's directory cannot be \
    mounted over its program, use a kernel with overlayfs, and a TMPDIR on a volume or in memory, \
    not on a container's overlay";

/// Why bots have Landlock instead of namespaces, if they do.
fn why_no_namespaces(report: &SandboxReport) -> Option<DoctorRow> {
    (report.level == Level::C).then(|| DoctorRow {
        what: "namespaces".to_owned(),
        state: format!("unusable: {}", report.warnings.join("; ")),
        lost: Some("bots are isolated by Landlock only".to_owned()),
        remedy: Some(NAMESPACES_REMEDY.to_owned()),
    })
}

fn guarantees(report: &SandboxReport) -> impl Iterator<Item = DoctorRow> {
    report.findings.iter().map(|finding| {
        let is_lost = finding.state != Enforcement::Enforced;
        DoctorRow {
            what: finding.guarantee.to_string(),
            state: format!("{}, by {}", finding.state, finding.by),
            lost: is_lost.then(|| format!("{} ({})", finding.guarantee.loss(), finding.evidence)),
            remedy: is_lost.then(|| finding.guarantee.remedy().to_owned()),
        }
    })
}

/// Features of the machine on which the guarantees depend.
fn machine() -> Vec<DoctorRow> {
    let mut rows = vec![
        fact("kernel", guarantees::kernel()),
        fact("processors", std::thread::available_parallelism().map_or(1, Into::into).to_string()),
        clock(),
        namespaces(),
    ];
    rows.extend(groups());
    let actions = read("/proc/sys/kernel/seccomp/actions_avail");
    rows.push(present_or_missing(
        "seccomp filters",
        actions.map(|_| "available".to_owned()),
        "dangerous system calls cannot be refused",
        "use a kernel with CONFIG_SECCOMP_FILTER, and a container that allows seccomp filters",
    ));
    rows.push(present_or_missing(
        "Landlock",
        landlock::version().map(|version| format!("version {version}")),
        "bots cannot be isolated where namespaces are forbidden",
        "use Linux 5.13 or later with `landlock` among the kernel's `lsm=`",
    ));
    rows.push(present_or_missing(
        "referee priority",
        RefereePriority::is_allowed().then(|| "allowed".to_owned()),
        "a spinning bot can delay a referee on the same processor by up to three milliseconds",
        "run the worker as root, or with the capability SYS_NICE",
    ));
    rows
}

fn fact(what: &str, state: String) -> DoctorRow {
    DoctorRow { what: what.to_owned(), state, lost: None, remedy: None }
}

/// A row about a feature that is present or missing.
fn present_or_missing(what: &str, state: Option<String>, lost: &str, remedy: &str) -> DoctorRow {
    match state {
        Some(state) => fact(what, state),
        None => DoctorRow {
            what: what.to_owned(),
            state: "missing".to_owned(),
            lost: Some(lost.to_owned()),
            remedy: Some(remedy.to_owned()),
        },
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn clock() -> DoctorRow {
    let resolution = rustix::time::clock_getres(ClockId::Monotonic);
    let nanos = resolution.tv_sec * 1_000_000_000 + resolution.tv_nsec;
    let state = (nanos <= 1000).then(|| format!("{nanos} ns"));
    let lost = "times are coarser than the microseconds that bots are charged";
    present_or_missing("clock resolution", state, lost, "use a kernel with high-resolution timers")
}

/// Settings that forbid user namespaces to ordinary users: path, forbidding value and remedy.
const NAMESPACE_SWITCHES: [(&str, &str, &str); 3] = [
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "sysctl user.max_user_namespaces=10000, or run the worker as root",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "sysctl kernel.unprivileged_userns_clone=1, or run the worker as root",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "install an AppArmor profile with `userns,` for this program, or run the worker as root",
    ),
];

fn namespaces() -> DoctorRow {
    let forbidden = NAMESPACE_SWITCHES
        .into_iter()
        .find(|(path, forbids, _)| read(path).is_some_and(|value| value == *forbids));
    let root = rustix::process::geteuid().is_root();
    match forbidden {
        Some((path, value, remedy)) if !root => DoctorRow {
            what: "user namespaces".to_owned(),
            state: format!("{path} is {value}"),
            lost: Some("bots are isolated by Landlock only".to_owned()),
            remedy: Some(remedy.to_owned()),
        },
        _ if root => fact("user namespaces", "allowed, bots have their own users".to_owned()),
        _ => fact("user namespaces", "allowed, bots run as this user".to_owned()),
    }
}

/// The control groups, and whether this process may use them.
fn groups() -> Vec<DoctorRow> {
    let roots = cgroup_root::find();
    let lost = "limits of memory and processes, processor time and freezing are best effort";
    let remedy = "systemd: Delegate=cpu memory pids and DelegateSubgroup=worker; containers: a \
                  writable cgroup; otherwise run the worker as root";
    let row = |what: &str, root: Option<CgroupRoot>| {
        let usable = root.filter(|root| is_writable(&root.path));
        present_or_missing(what, usable.map(|root| root.path.display().to_string()), lost, remedy)
    };
    let mut rows = Vec::new();
    let v2 = roots.v2.clone();
    let is_complete = v2.as_ref().is_some_and(|v2| v2.has("memory") && v2.has("pids"));
    rows.push(row("control groups v2", v2));
    if !is_complete {
        for controller in ["memory", "pids"] {
            rows.push(row(&format!("control group v1 {controller}"), roots.v1_with(controller)));
        }
    }
    rows
}

fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}
