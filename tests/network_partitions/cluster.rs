//! A Postgres on a separate host, which takes connections over the network.

use std::env;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::PathBuf;

use rustix::process::Signal;
use tempfile::TempDir;

use super::support::service::Service;
use super::virtual_network::{User, VirtualNetwork};

/// The password of the role that owns the databases.
const PASSWORD: &str = "a-password";

/// A running server. Dropping it stops it and deletes its data.
pub(crate) struct Cluster {
    server: Service,
    address: String,
    _directory: TempDir,
}

impl Cluster {
    /// Creates a cluster on `host` with these databases and a role that owns them, and starts its
    /// server.
    pub(crate) fn start(lab: &VirtualNetwork, host: &str, databases: &[&str]) -> Self {
        let programs = programs();
        // Postgres refuses to run as root.
        let user = ["postgres", "nobody"].into_iter().find_map(User::named).unwrap();
        let directory = tempfile::tempdir().unwrap();
        // The server's user must be able to enter the directory and write to the data directory.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o711)).unwrap();
        let home = directory.path().join("postgres");
        fs::create_dir(&home).unwrap();
        chown(&home, Some(user.uid), Some(user.gid)).unwrap();
        let data = home.join("data");
        let program = |name: &str| {
            let mut command = lab.command(host, Some(user), &programs.join(name));
            command.current_dir(&home).env("LC_ALL", "C").env("PGDATA", &data);
            command
        };
        let mut initdb = program("initdb");
        initdb.args(["--auth-local=trust", "--auth-host=reject", "--encoding=UTF8"]);
        initdb.args(["--locale=C", "--no-sync", "--username=postgres"]);
        let output = initdb.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let access = data.join("pg_hba.conf");
        let mut rules = fs::read_to_string(&access).unwrap();
        rules.push_str("host all arbiter 10.77.0.0/24 scram-sha-256\n");
        fs::write(&access, rules).unwrap();
        let role = format!("CREATE ROLE arbiter LOGIN PASSWORD '{PASSWORD}'\n");
        let make = |name: &&str| format!("CREATE DATABASE {name} OWNER arbiter\n");
        let statements: String = [role].into_iter().chain(databases.iter().map(make)).collect();
        let script = home.join("script");
        let alone = &mut program("postgres");
        fs::write(&script, statements).unwrap();
        alone.args(["--single", "-c", "log_min_messages=fatal", "postgres"]);
        alone.stdin(File::open(&script).unwrap());
        assert!(alone.output().unwrap().status.success());
        let address = lab.address(host);
        let mut server = program("postgres");
        server.arg("-k").arg(&home).arg("-c").arg(format!("listen_addresses={address}"));
        server.args(["-c", "fsync=off", "-c", "full_page_writes=off"]);
        let mut server = Service::start(&mut server, &directory.path().join("postgres.log"));
        server.wait_for_log("ready to accept connections");
        Self { server, address, _directory: directory }
    }

    /// The address of a database, for the network.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://arbiter:{PASSWORD}@{}/{database}", self.address)
    }

    /// Stops it, even with open connections.
    pub(crate) fn stop(mut self) {
        self.server.signal(Signal::INT);
        assert_eq!(self.server.wait(), Some(0));
    }
}

/// The directory of the Postgres programs: `PG_BIN`, or that of the newest version.
fn programs() -> PathBuf {
    if let Some(named) = env::var_os("PG_BIN") {
        return named.into();
    }
    let path = env::var_os("PATH").unwrap();
    let version = |place: &PathBuf| -> Option<u32> { place.file_name()?.to_str()?.parse().ok() };
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut versions: Vec<_> = versions.map(|entry| entry.unwrap().path()).collect();
    versions.sort_by_key(version);
    let newest = versions.into_iter().rev().map(|place| place.join("bin"));
    let mut places = newest.chain(env::split_paths(&path));
    places.find(|place| place.join("initdb").is_file()).expect("PostgreSQL is installed")
}
