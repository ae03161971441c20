//! Finds the programs of PostgreSQL.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{PostgresError, file, run};

/// Where distributions install them, with one subdirectory a version.
const VERSIONED: [&str; 4] =
    ["/usr/lib/postgresql", "/usr/local/lib/postgresql", "/usr", "/opt/homebrew/opt"];

/// A server's programs.
#[derive(Clone, Debug)]
pub(super) struct Binaries {
    directory: PathBuf,
    /// The major version, as `PG_VERSION` in a cluster has it.
    major: String,
}

impl Binaries {
    /// The programs of the version that wrote `cluster`, or the newest ones if there is no cluster.
    pub(super) fn find(cluster: &Path) -> Result<Self, PostgresError> {
        let places = places();
        let mut found: Vec<_> = places.iter().filter_map(|place| Self::at(place)).collect();
        found.sort_by_key(|binaries| binaries.major.parse::<u32>().unwrap_or(0));
        let Some(newest) = found.last() else {
            let looked: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
            return Err(PostgresError::Missing(looked.join(", ")));
        };
        let Some(written) = version_of(cluster)? else { return Ok(newest.clone()) };
        let same = found.iter().find(|binaries| binaries.major == written);
        same.cloned().ok_or_else(|| {
            let installed: Vec<_> = found.iter().map(|found| found.major.as_str()).collect();
            let data = cluster.to_owned();
            let installed = installed.join(", ");
            PostgresError::Version { data, written, installed }
        })
    }

    /// The programs in `directory`, if they exist and print their version.
    fn at(directory: &Path) -> Option<Self> {
        let initdb = directory.join("initdb").is_file();
        let postgres = directory.join("postgres");
        if !initdb || !postgres.is_file() {
            return None;
        }
        let output = run(&postgres).arg("--version").output().ok()?;
        let major = major(&String::from_utf8_lossy(&output.stdout))?;
        Some(Self { directory: directory.to_owned(), major })
    }

    /// The path of one of them.
    pub(super) fn path(&self, program: &str) -> PathBuf {
        self.directory.join(program)
    }
}

/// The directories to search: only `PG_BIN` if it is set.
fn places() -> Vec<PathBuf> {
    if let Some(named) = env::var_os("PG_BIN") {
        return vec![named.into()];
    }
    let path = env::var_os("PATH").unwrap_or_default();
    // A link in PATH leads to the directory that holds all of them.
    let linked = env::split_paths(&path).filter_map(|directory| {
        let initdb = fs::canonicalize(directory.join("initdb")).ok()?;
        initdb.parent().map(Path::to_owned)
    });
    let versioned = VERSIONED.into_iter().flat_map(versions_under);
    let mut places: Vec<_> = linked.chain(versioned).collect();
    places.dedup();
    places
}

/// The `bin` directories of all versions under a directory.
fn versions_under(root: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().filter_map(Result::ok);
    let own = |name: &str| !root.ends_with("/usr") || name.starts_with("pgsql");
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(own));
    let bins = named.map(|entry| entry.path().join("bin"));
    bins.filter(|bin| bin.join("initdb").is_file()).collect()
}

/// The version that wrote a cluster, if there is one.
fn version_of(cluster: &Path) -> Result<Option<String>, PostgresError> {
    let path = cluster.join("PG_VERSION");
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file("read", &path)(error)),
    }
}

/// The major version in the output of `postgres --version`: `postgres (PostgreSQL) 15.18 (Debian …)`.
fn major(output: &str) -> Option<String> {
    let version =
        output.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    Some(digits.to_owned())
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn versions_are_read() {
        for (said, read) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", Some("15")),
            ("postgres (PostgreSQL) 18beta1\n", Some("18")),
            ("nonsense", None),
        ] {
            assert_eq!(major(said).as_deref(), read, "{said}");
        }
    }
}
