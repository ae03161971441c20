//! What many tests of a run need and copy: a model of an empty Postgres cluster, a compiled bot.
//!
//! `initdb` takes ten times as long as a copy, and a run needs about a hundred clusters.
//! `scripts/run-tests` names the directory of the models. Without it, each test makes its own.

#![allow(clippy::disallowed_methods, reason = "cp keeps the owners of files")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use arbiter_coordinator::postgres::{Durability, Postgres};

/// The environment variable with the directory of the models.
const MODELS: &str = "ARBITER_TEST_MODELS";

/// The path of a model in the directory of the run; `None` if the run has none. The first of the
/// programs that run side by side calls `make`, which creates the file or directory at a path.
pub(crate) fn get_or_make(name: &str, make: impl FnOnce(&Path)) -> Option<PathBuf> {
    let models = std::env::var_os(MODELS)?;
    let model = Path::new(&models).join(name);
    let lock = File::create(model.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !model.exists() {
        let new = model.with_extension("new");
        make(&new);
        fs::rename(&new, &model).unwrap();
    }
    Some(model)
}

/// Copies the model of an empty cluster to a data directory, which becomes that of a new cluster.
pub(crate) fn copy_cluster_to(data: &Path) {
    let create = |new: &Path| Postgres::start(new, Durability::Unsynced).unwrap().stop();
    let Some(model) = get_or_make("cluster", create) else { return };
    fs::create_dir_all(data).unwrap();
    let copied = Command::new("cp").arg("-a").arg(model.join(".")).arg(data).status().unwrap();
    assert!(copied.success(), "cp: {copied}");
}
