//! Finds the programs of PostgreSQL.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{PostgresError, file, run};

/// Where distributions install the programs, with one subdirectory for each version.
const VERSIONED: [&str; 4] =
    ["/usr/lib/postgresql", "/usr/local/lib/postgresql", "/usr", "/opt/homebrew/opt"];

/// A server's programs.
#[derive(Clone, Debug)]
pub(super) struct Binaries {
    directory: PathBuf,
    /// The major version, in the format of `PG_VERSION` in a cluster.
    major: String,
}

impl Binaries {
    /// The programs of the version that wrote `cluster`, or the newest ones if there is no cluster.
    pub(super) fn find(cluster: &Path) -> Result<Self, PostgresError> {
        let directories = search_path();
        let mut installed: Vec<_> =
            directories.iter().filter_map(|directory| Self::at(directory)).collect();
        installed.sort_by_key(|binaries| binaries.major.parse::<u32>().unwrap_or(0));
        let Some(newest) = installed.last() else {
            let searched: Vec<_> =
                directories.iter().map(|directory| directory.display().to_string()).collect();
            return Err(PostgresError::Missing(searched.join(", ")));
        };
        let Some(written) = version_of(cluster)? else { return Ok(newest.clone()) };
        let matching = installed.iter().find(|binaries| binaries.major == written);
        matching.cloned().ok_or_else(|| {
            let versions: Vec<_> =
                installed.iter().map(|binaries| binaries.major.as_str()).collect();
            let data = cluster.to_owned();
            let installed = versions.join(", ");
            PostgresError::Version { data, written, installed }
        })
    }

    /// The programs in `directory`, if they exist and print their version.
    fn at(directory: &Path) -> Option<Self> {
        let has_initdb = directory.join("initdb").is_file();
        let postgres = directory.join("postgres");
        if !has_initdb || !postgres.is_file() {
            return None;
        }
        let output = run(&postgres).arg("--version").output().ok()?;
        let major = major(&String::from_utf8_lossy(&output.stdout))?;
        Some(Self { directory: directory.to_owned(), major })
    }

    /// The path of a program.
    pub(super) fn path(&self, program: &str) -> PathBuf {
        self.directory.join(program)
    }
}

/// The directories to search: only `PG_BIN` if it is set.
fn search_path() -> Vec<PathBuf> {
    if let Some(directory) = env::var_os("PG_BIN") {
        return vec![directory.into()];
    }
    let path = env::var_os("PATH").unwrap_or_default();
    // A link in PATH points into the directory that contains all programs.
    let linked = env::split_paths(&path).filter_map(|directory| {
        let initdb = fs::canonicalize(directory.join("initdb")).ok()?;
        initdb.parent().map(Path::to_owned)
    });
    let versioned = VERSIONED.into_iter().flat_map(versions_under);
    let mut directories: Vec<_> = linked.chain(versioned).collect();
    directories.dedup();
    directories
}

/// The `bin` directories of all versions under a directory.
fn versions_under(root: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().filter_map(Result::ok);
    let is_versioned = |name: &str| !root.ends_with("/usr") || name.starts_with("pgsql");
    let versions = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_versioned));
    let bins = versions.map(|entry| entry.path().join("bin"));
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

/// The major version in the output of `postgres --version`, for example
/// `postgres (PostgreSQL) 15.18 (Debian …)`.
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
        for (output, version) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", Some("15")),
            ("postgres (PostgreSQL) 18beta1\n", Some("18")),
            ("nonsense", None),
        ] {
            assert_eq!(major(output).as_deref(), version, "{output}");
        }
    }
}
