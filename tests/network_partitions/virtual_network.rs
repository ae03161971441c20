//! A small network on one machine: each host is a network namespace with an address. All are
//! connected to one switch, a bridge in another namespace. The network is isolated from that of the
//! machine, and dropping it removes all of it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// How a host loses its link. Its peers are not notified in either case.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// The cable is pulled: the host itself sees that its link is down.
    Unplugged,
    /// The switch forgets the port: the link is up, but packets are lost.
    Silent,
}

/// A user who is not root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl User {
    /// The user of this name, if there is one.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let id = |which| {
            let output = Command::new("id").args([which, name]).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse().ok()
        };
        Some(Self { uid: id("-u")?, gid: id("-g")? })
    }
}

/// The name of a host's namespace.
fn namespace(host: &str) -> String {
    format!("arbiter-{}-{host}", std::process::id())
}

/// The hosts and their switch.
pub(crate) struct VirtualNetwork {
    hosts: &'static [&'static str],
    namespaces: Vec<String>,
}

/// Runs a system program, and returns its error output if it fails.
fn system(words: &[&str]) -> Result<(), String> {
    let Output { status, stderr, .. } = Command::new(words[0])
        .args(&words[1..])
        .output()
        .map_err(|error| format!("{}: {error}", words[0]))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", words.join(" "), String::from_utf8_lossy(&stderr).trim()))
}

/// Runs `ip`, which must succeed.
fn ip(command: &str) {
    let words: Vec<_> = ["ip"].into_iter().chain(command.split_whitespace()).collect();
    system(&words).unwrap();
}

/// Removes the namespaces of killed tests. Their programs are dead already.
fn clear_away() {
    for entry in fs::read_dir("/run/netns").into_iter().flatten() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let maker = name.strip_prefix("arbiter-").and_then(|rest| rest.split_once('-'));
        if maker.is_some_and(|(pid, _)| !Path::new("/proc").join(pid).exists()) {
            ip(&format!("netns delete {name}"));
        }
    }
}

impl VirtualNetwork {
    /// Creates the network, or returns why that is impossible here.
    pub(crate) fn build(hosts: &'static [&'static str]) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root makes network namespaces".to_owned());
        }
        clear_away();
        let mut lab = Self { hosts, namespaces: Vec::new() };
        lab.add("switch")?;
        let switch = namespace("switch");
        ip(&format!("-n {switch} link add switch type bridge"));
        ip(&format!("-n {switch} link set switch up"));
        for host in hosts {
            lab.add(host)?;
            let there = namespace(host);
            ip(&format!("-n {switch} link add {host} type veth peer name eth0 netns {there}"));
            ip(&format!("-n {switch} link set {host} master switch up"));
            ip(&format!("-n {there} address add {}/24 dev eth0", lab.address(host)));
            ip(&format!("-n {there} link set eth0 up"));
            ip(&format!("-n {there} link set lo up"));
        }
        Ok(lab)
    }

    fn add(&mut self, host: &str) -> Result<(), String> {
        let name = namespace(host);
        system(&["ip", "netns", "add", &name])?;
        self.namespaces.push(name);
        Ok(())
    }

    /// The address of a host.
    pub(crate) fn address(&self, host: &str) -> String {
        let place = self.hosts.iter().position(|other| *other == host).unwrap();
        format!("10.77.0.{}", place + 2)
    }

    /// A program on a host, as root or as another user. It dies with the test.
    #[expect(clippy::unused_self, reason = "a receiver proves that the network exists")]
    pub(crate) fn command(&self, host: &str, user: Option<User>, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", namespace(host)));
        command.args(["setpriv", "--pdeathsig=KILL"]);
        if let Some(User { uid, gid }) = user {
            command.args([format!("--reuid={uid}"), format!("--regid={gid}")]);
            command.arg("--clear-groups");
        }
        command.arg("--").arg(program);
        command
    }

    /// Cuts a host off from all others.
    #[expect(clippy::unused_self, reason = "a receiver proves that the network exists")]
    pub(crate) fn cut(&self, host: &str, how: Cut) {
        let what = match how {
            Cut::Unplugged => "down",
            Cut::Silent => "nomaster",
        };
        ip(&format!("-n {} link set {host} {what}", namespace("switch")));
    }

    /// Connects it again.
    #[expect(clippy::unused_self, reason = "a receiver proves that the network exists")]
    pub(crate) fn heal(&self, host: &str) {
        ip(&format!("-n {} link set {host} master switch up", namespace("switch")));
    }
}

impl Drop for VirtualNetwork {
    fn drop(&mut self) {
        for name in &self.namespaces {
            if let Err(error) = system(&["ip", "netns", "delete", name]) {
                eprintln!("{error}");
            }
        }
    }
}
