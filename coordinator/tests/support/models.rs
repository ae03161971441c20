//! What many tests of a run need and copy: a model of a Postgres cluster, a compiled bot.
//!
//! The cluster's database `postgres` has the tables of this version. `initdb` and these tables take
//! ten times as long as a copy, and a run needs hundreds of clusters. `scripts/run-tests` names the
//! directory of the models. Without it, each test makes its own.

#![allow(clippy::disallowed_methods, reason = "cp keeps the owners of files")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use arbiter_coordinator::db;
use arbiter_coordinator::postgres::{Durability, Postgres};
use tokio::runtime::Builder;

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

/// Copies the model of a cluster to a data directory, which becomes that of a new cluster. Without
/// a directory of models, the new cluster will be empty.
pub(crate) fn copy_cluster_to(data: &Path) {
    let Some(model) = get_or_make("cluster", make_cluster) else { return };
    fs::create_dir_all(data).unwrap();
    let copied = Command::new("cp").arg("-a").arg(model.join(".")).arg(data).status().unwrap();
    assert!(copied.success(), "cp: {copied}");
}

fn make_cluster(new: &Path) {
    let postgres = Postgres::start(new, Durability::Unsynced).unwrap();
    let options = postgres.options("postgres");
    // On another thread, because the caller may run in a runtime, which cannot start another one.
    let migrating = thread::spawn(|| {
        let migrate = async {
            let pool = db::connect(options, 1).await.unwrap();
            db::migrate(&pool).await.unwrap();
            pool.close().await;
        };
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(migrate);
    });
    migrating.join().unwrap();
    postgres.stop();
}
