//! Where in the machine's control group hierarchies this process may create groups.

use std::fs;
use std::path::{Path, PathBuf};

use super::cgroup::CgroupVersion;

/// The child group that a worker moves into if its own group must not have processes.
const WORKER_GROUP: &str = "arbiter-worker";

/// A group in which groups can be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CgroupRoot {
    pub(super) version: CgroupVersion,
    pub(super) path: PathBuf,
    controllers: Vec<String>,
}

impl CgroupRoot {
    pub(super) fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|name| name == controller)
    }
}

/// The group of this process in every hierarchy.
#[derive(Debug, Default)]
pub(super) struct CgroupRoots {
    pub(super) v2: Option<CgroupRoot>,
    /// The visible top of the v2 hierarchy.
    top: Option<PathBuf>,
    pub(super) v1: Vec<CgroupRoot>,
}

impl CgroupRoots {
    /// The v1 hierarchy of `controller`.
    pub(super) fn v1_with(&self, controller: &str) -> Option<CgroupRoot> {
        self.v1.iter().find(|root| root.has(controller)).cloned()
    }
}

/// Finds the groups of this process.
pub(super) fn find() -> CgroupRoots {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut roots = parse_hierarchies(&mounts, &cgroups);
    if let Some(v2) = &mut roots.v2 {
        v2.controllers = delegate_controllers(&v2.path);
        let top = roots.top.take().filter(|_| rustix::process::geteuid().is_root());
        // If another process, such as a shell, shares our group, root can still use the top group.
        if let Some(top) = top
            && !(v2.has("memory") && v2.has("pids"))
        {
            let controllers = delegate_controllers(&top);
            let top_root = CgroupRoot { version: CgroupVersion::V2, path: top, controllers };
            if top_root.has("memory") && top_root.has("pids") {
                *v2 = top_root;
            }
        }
    }
    roots
}

/// Combines the mounted hierarchies (`/proc/self/mounts`) with this process's groups in them
/// (`/proc/self/cgroup`).
fn parse_hierarchies(mounts: &str, cgroups: &str) -> CgroupRoots {
    let mut roots = CgroupRoots::default();
    for line in mounts.lines() {
        let fields: Vec<_> = line.split(' ').collect();
        let [_, mount, kind, options, ..] = fields[..] else { continue };
        match kind {
            "cgroup2" if roots.v2.is_none() => {
                let group = cgroups.lines().find_map(|line| line.strip_prefix("0::"));
                let path = below(Path::new(mount), group.unwrap_or("/"));
                let controllers = Vec::new();
                roots.top = Some(PathBuf::from(mount));
                roots.v2 = Some(CgroupRoot { version: CgroupVersion::V2, path, controllers });
            }
            "cgroup" => {
                let controllers: Vec<_> = options.split(',').map(str::to_owned).collect();
                let group = cgroups.lines().find_map(|line| {
                    let mut fields = line.splitn(3, ':').skip(1);
                    let names = fields.next()?;
                    let path = fields.next()?;
                    let is_mounted = |name: &str| controllers.iter().any(|mounted| mounted == name);
                    (!names.is_empty() && names.split(',').all(is_mounted)).then_some(path)
                });
                let path = below(Path::new(mount), group.unwrap_or("/"));
                roots.v1.push(CgroupRoot { version: CgroupVersion::V1, path, controllers });
            }
            _ => {}
        }
    }
    roots
}

/// The path of `group` below `mount`. In a container the mount may be the group itself.
fn below(mount: &Path, group: &str) -> PathBuf {
    let path = mount.join(group.trim_start_matches('/'));
    if path.exists() { path } else { mount.to_owned() }
}

/// Enables the controllers of the group at `path` for its children, and returns the enabled ones.
///
/// The kernel refuses to enable them for a group with processes. If this process is alone in the
/// group, it moves into a child group first. It does not move other processes.
fn delegate_controllers(path: &Path) -> Vec<String> {
    let words = |file: &str| -> Vec<String> {
        let text = fs::read_to_string(path.join(file)).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    };
    let is_required = |name: &String| matches!(&**name, "memory" | "pids");
    let enabled = words("cgroup.subtree_control");
    let required = words("cgroup.controllers").into_iter().filter(is_required);
    let missing = required.filter(|name| !enabled.contains(name));
    let changes: Vec<_> = missing.map(|name| format!("+{name}")).collect();
    if !changes.is_empty() {
        let enable = || fs::write(path.join("cgroup.subtree_control"), changes.join(" "));
        let is_alone = words("cgroup.procs") == [std::process::id().to_string()];
        if enable().is_err() && is_alone {
            let child = path.join(WORKER_GROUP);
            // After a failure no controllers are enabled, which the result below shows.
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
    fn both_hierarchies_are_found() {
        let mounts = "cgroup /cg/memory cgroup rw,relatime,memory 0 0\n\
                      cgroup /cg/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
                      cgroup /cg/systemd cgroup rw,name=systemd 0 0\n\
                      cgroup2 /cg/unified cgroup2 rw,relatime 0 0\n";
        let cgroups = "5:name=systemd:/\n4:memory:/\n2:cpu,cpuacct:/\n0::/\n";
        let roots = parse_hierarchies(mounts, cgroups);
        assert_eq!(roots.v2.unwrap().path, Path::new("/cg/unified"));
        let v1 = |name: &str| roots.v1.iter().find(|root| root.has(name)).unwrap();
        assert_eq!(v1("memory").path, Path::new("/cg/memory"));
        assert_eq!(v1("cpuacct").path, Path::new("/cg/cpu,cpuacct"));
        assert!(!roots.v1.iter().any(|root| root.has("pids")));
    }

    #[test]
    fn a_machine_without_hierarchies_has_no_roots() {
        let roots = parse_hierarchies("proc /proc proc rw 0 0\n\n", "");
        assert!(roots.v2.is_none() && roots.v1.is_empty());
    }
}
