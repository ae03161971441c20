//! A model of an empty Postgres cluster, which the tests of a run copy.
//!
//! `initdb` takes ten times as long as a copy, and a run needs about a hundred clusters.
//! `scripts/run-tests` names the directory of the model; without it each test creates its cluster.

#![allow(clippy::disallowed_methods, reason = "cp keeps the owners of files")]

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use arbiter_coordinator::postgres::{Durability, Postgres};

/// The environment variable with the directory of the model.
const MODEL: &str = "ARBITER_TEST_CLUSTER";

/// Copies the model to a data directory, which becomes that of a new cluster.
pub(crate) fn copy_to(data: &Path) {
    let Some(model) = std::env::var_os(MODEL) else { return };
    let model = Path::new(&model);
    // The first of the programs that run side by side creates the model.
    let lock = File::create(model.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !model.exists() {
        let new = model.with_extension("new");
        Postgres::start(&new, Durability::Unsynced).unwrap().stop();
        fs::rename(&new, model).unwrap();
    }
    drop(lock);
    fs::create_dir_all(data).unwrap();
    let copied = Command::new("cp").arg("-a").arg(model.join(".")).arg(data).status().unwrap();
    assert!(copied.success(), "cp: {copied}");
}
