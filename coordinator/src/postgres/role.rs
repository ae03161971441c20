//! The role that uses a cluster. It has a password, owns its database, and is not a superuser.
//!
//! Programs of the same user as the server can reach its socket. Bots at sandbox level C are such
//! programs, so connections need the password. The superuser cannot connect at all: its statements
//! run in Postgres' single-user mode while the server is stopped. So even with the password a
//! program can neither start other programs (`COPY … TO PROGRAM`) nor read files through the
//! server.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use super::binaries::Binaries;
use super::cluster_dir::{ClusterDir, UNSYNCED, is_occupied, last_lines};
use super::{Durability, POLL_INTERVAL, PostgresError, START_LIMIT, file, scram};
use crate::access::{self, Secret};

/// The role.
pub(super) const ROLE: &str = "arbiter";
/// The default database of every cluster.
const DATABASE: &str = "postgres";

/// The rules for connections (`pg_hba.conf` in PostgreSQL's documentation). They replace those of
/// the cluster.
const RULES: &str = "# Written by arbiter at each start.\nlocal all arbiter scram-sha-256\n";

/// Creates the role, if necessary. Single-user mode reads one statement per line.
const CREATE_ROLE: &str = "DO $$ BEGIN \
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'arbiter') THEN CREATE ROLE arbiter; \
    END IF; \
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'pg_checkpoint') THEN \
        GRANT pg_checkpoint TO arbiter; \
    END IF; END $$";

/// Makes the role the owner of the database and its contents. In clusters of earlier versions they
/// belong to the superuser.
const CHANGE_OWNERS: [&str; 4] = [
    "ALTER DATABASE postgres OWNER TO arbiter",
    "ALTER SCHEMA public OWNER TO arbiter",
    "GRANT EXECUTE ON FUNCTION pg_switch_wal() TO arbiter",
    "DO $$ DECLARE statement text; BEGIN FOR statement IN \
     SELECT format('ALTER %s %s OWNER TO arbiter', CASE relkind WHEN 'S' THEN 'SEQUENCE' \
            WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END, oid::regclass) \
       FROM pg_class WHERE relnamespace = 'public'::regnamespace \
        AND relkind IN ('r', 'p', 'v', 'm', 'S') AND NOT EXISTS (SELECT FROM pg_depend \
            WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND relkind = 'S' \
              AND refclassid = 'pg_class'::regclass AND deptype IN ('a', 'i')) \
     UNION ALL SELECT format('ALTER ROUTINE %s OWNER TO arbiter', oid::regprocedure) \
       FROM pg_proc WHERE pronamespace = 'public'::regnamespace \
     UNION ALL SELECT format('ALTER TYPE %s OWNER TO arbiter', oid::regtype) \
       FROM pg_type WHERE typnamespace = 'public'::regnamespace AND (typtype IN ('d', 'e', 'r') \
         OR EXISTS (SELECT FROM pg_class WHERE pg_class.oid = typrelid AND relkind = 'c')) \
     LOOP EXECUTE statement; END LOOP; END $$",
];

/// The credentials for the server.
#[derive(Clone, Debug)]
pub(super) struct Credentials {
    /// The password of [`ROLE`].
    pub(super) password: Secret,
    /// The file with [`RULES`].
    pub(super) rules: PathBuf,
}

impl Credentials {
    /// The credentials of a cluster whose server does not run. Creates the role if necessary.
    pub(super) fn prepare(
        cluster_dir: &ClusterDir,
        binaries: &Binaries,
        durability: Durability,
    ) -> Result<Self, PostgresError> {
        let rules = cluster_dir.directory.join("pg_hba.conf");
        replace(&rules, RULES, 0o644, durability).map_err(file("write", &rules))?;
        let path = password_file(&cluster_dir.directory);
        let password = match fs::read_to_string(&path) {
            Ok(text) => Secret::from(text.trim().to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let password = Secret::draw().map_err(file("draw a password for", &path))?;
                create_role(cluster_dir, binaries, durability, &password)?;
                // The file is written last, so it always contains the role's password.
                let text = format!("{}\n", password.text());
                replace(&path, &text, 0o600, durability).map_err(file("write", &path))?;
                password
            }
            Err(error) => return Err(file("read", &path)(error)),
        };
        Ok(Self { password, rules })
    }
}

/// The file with the password. Only this process's user can read it.
pub(super) fn password_file(directory: &Path) -> PathBuf {
    directory.join("postgres.password")
}

/// Replaces a file atomically.
fn replace(path: &Path, text: &str, mode: u32, durability: Durability) -> io::Result<()> {
    let temporary = path.with_extension("new");
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(&temporary)?;
    // Sets the mode again, because the process's umask may have reduced it.
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    if durability == Durability::Synced {
        file.sync_all()?;
    }
    fs::rename(&temporary, path)
}

/// Creates the role with this password, in a cluster whose server does not run.
fn create_role(
    cluster_dir: &ClusterDir,
    binaries: &Binaries,
    durability: Durability,
    password: &Secret,
) -> Result<(), PostgresError> {
    // Only tests use unsynced data. Tests create further roles.
    let roles = if durability == Durability::Unsynced { "CREATEROLE" } else { "NOCREATEROLE" };
    let salt = access::draw().map_err(file("draw a salt for", &cluster_dir.directory))?;
    let verifier = scram::verifier(password.text(), &salt, scram::ROUNDS);
    let role = format!(
        "ALTER ROLE {ROLE} LOGIN CREATEDB NOSUPERUSER {roles} NOREPLICATION PASSWORD '{verifier}'"
    );
    let statements = [&[CREATE_ROLE, &*role], &CHANGE_OWNERS[..]].concat().join("\n");
    let deadline = Instant::now() + START_LIMIT;
    while !run_single_user(cluster_dir, binaries, durability, &statements, deadline)? {
        // The server of an earlier process may still be stopping.
        thread::sleep(POLL_INTERVAL * 10);
    }
    Ok(())
}

/// Runs statements as the superuser, one per line. Returns `false` if a server still uses the data.
fn run_single_user(
    cluster_dir: &ClusterDir,
    binaries: &Binaries,
    durability: Durability,
    statements: &str,
    deadline: Instant,
) -> Result<bool, PostgresError> {
    let program = binaries.path("postgres");
    let mut command = cluster_dir.command(&program);
    // With the verifier of the password one can pass for the server, so statements are not logged.
    let settings = ["exit_on_error=on", "log_min_error_statement=panic", "log_statement=none"];
    command.arg("--single").arg("-D").arg(&cluster_dir.cluster);
    let unsynced: &[&str] = if durability == Durability::Unsynced { &UNSYNCED } else { &[] };
    for setting in settings.iter().chain(unsynced) {
        command.arg("-c").arg(setting);
    }
    let output = script(statements)
        .and_then(|script| command.arg(DATABASE).stdin(script).output())
        .map_err(file("run", &program))?;
    if output.status.success() {
        return Ok(true);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    if is_occupied(&stderr) && Instant::now() < deadline {
        return Ok(false);
    }
    let status = output.status;
    let output = last_lines(&stderr);
    Err(PostgresError::Failed { program: "postgres --single", status, output })
}

/// An unnamed file with statements.
fn script(statements: &str) -> io::Result<File> {
    let mut script = tempfile::tempfile()?;
    writeln!(script, "{statements}")?;
    script.rewind()?;
    Ok(script)
}
