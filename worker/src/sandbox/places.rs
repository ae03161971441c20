//! Where in the machine's control groups this process may make its own.

use std::fs;
use std::path::{Path, PathBuf};

use super::cgroup::Version;

/// The group that a worker moves to when it must leave its own to its bots.
const WORKER: &str = "arbiter-worker";

/// A group below which groups can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) version: Version,
    pub(super) path: PathBuf,
    controllers: Vec<String>,
}

impl Place {
    pub(super) fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|own| own == controller)
    }
}

/// Where this process is, in every hierarchy.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) two: Option<Place>,
    /// The top of the v2 hierarchy, as far as it can be seen.
    top: Option<PathBuf>,
    pub(super) ones: Vec<Place>,
}

impl Places {
    /// The v1 hierarchy of `controller`.
    pub(super) fn one(&self, controller: &str) -> Option<Place> {
        self.ones.iter().find(|place| place.has(controller)).cloned()
    }
}

/// Finds the groups of this process.
pub(super) fn find() -> Places {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut places = locate(&mounts, &own);
    if let Some(two) = &mut places.two {
        two.controllers = delegate(&two.path);
        let top = places.top.take().filter(|_| rustix::process::geteuid().is_root());
        // Where a shell shares our group, root can still begin at the top.
        if let Some(top) = top
            && !(two.has("memory") && two.has("pids"))
        {
            let controllers = delegate(&top);
            let at_top = Place { version: Version::Two, path: top, controllers };
            if at_top.has("memory") && at_top.has("pids") {
                *two = at_top;
            }
        }
    }
    places
}

/// Matches the hierarchies that are mounted with this process's groups in them.
fn locate(mounts: &str, own: &str) -> Places {
    let mut places = Places::default();
    for line in mounts.lines() {
        let fields: Vec<_> = line.split(' ').collect();
        let [_, mount, kind, options, ..] = fields[..] else { continue };
        match kind {
            "cgroup2" if places.two.is_none() => {
                let group = own.lines().find_map(|line| line.strip_prefix("0::"));
                let path = below(Path::new(mount), group.unwrap_or("/"));
                let controllers = Vec::new();
                places.top = Some(PathBuf::from(mount));
                places.two = Some(Place { version: Version::Two, path, controllers });
            }
            "cgroup" => {
                let controllers: Vec<_> = options.split(',').map(str::to_owned).collect();
                let group = own.lines().find_map(|line| {
                    let mut fields = line.splitn(3, ':').skip(1);
                    let (names, path) = (fields.next()?, fields.next()?);
                    let here = |name: &str| controllers.iter().any(|own| own == name);
                    (!names.is_empty() && names.split(',').all(here)).then_some(path)
                });
                let path = below(Path::new(mount), group.unwrap_or("/"));
                places.ones.push(Place { version: Version::One, path, controllers });
            }
            _ => {}
        }
    }
    places
}

/// The group `own` below `mount`; a container may be shown its own group as the mount.
fn below(mount: &Path, own: &str) -> PathBuf {
    let path = mount.join(own.trim_start_matches('/'));
    if path.exists() { path } else { mount.to_owned() }
}

/// Hands the controllers of the group at `path` down to its children, and says which they have.
///
/// A group with processes in it hands nothing down. If this process is alone in its group, it
/// moves into a child for that; others' processes are not ours to move.
fn delegate(path: &Path) -> Vec<String> {
    let words = |file: &str| -> Vec<String> {
        let text = fs::read_to_string(path.join(file)).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    };
    let wanted = |name: &String| matches!(&**name, "memory" | "pids");
    let (offered, handed) = (words("cgroup.controllers"), words("cgroup.subtree_control"));
    let missing: Vec<_> = offered.into_iter().filter(wanted).collect();
    let missing: Vec<_> = missing.iter().filter(|name| !handed.contains(name)).collect();
    let order: Vec<_> = missing.iter().map(|name| format!("+{name}")).collect();
    if !order.is_empty() {
        let enable = || fs::write(path.join("cgroup.subtree_control"), order.join(" "));
        let alone = words("cgroup.procs") == [std::process::id().to_string()];
        if enable().is_err() && alone {
            let child = path.join(WORKER);
            // What fails here shows below: nothing is handed down then.
            drop(fs::create_dir(&child));
            drop(fs::write(child.join("cgroup.procs"), "0"));
            drop(enable());
        }
    }
    words("cgroup.subtree_control")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_with_both() {
        let mounts = "cgroup /cg/memory cgroup rw,relatime,memory 0 0\n\
                      cgroup /cg/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
                      cgroup /cg/systemd cgroup rw,name=systemd 0 0\n\
                      cgroup2 /cg/unified cgroup2 rw,relatime 0 0\n";
        let own = "5:name=systemd:/\n4:memory:/\n2:cpu,cpuacct:/\n0::/\n";
        let places = locate(mounts, own);
        assert_eq!(places.two.unwrap().path, Path::new("/cg/unified"));
        let one = |name: &str| places.ones.iter().find(|place| place.has(name)).unwrap();
        assert_eq!(one("memory").path, Path::new("/cg/memory"));
        assert_eq!(one("cpuacct").path, Path::new("/cg/cpu,cpuacct"));
        assert!(!places.ones.iter().any(|place| place.has("pids")));
    }

    #[test]
    fn a_machine_with_nothing() {
        let places = locate("proc /proc proc rw 0 0\n\n", "");
        assert!(places.two.is_none() && places.ones.is_empty());
    }
}
