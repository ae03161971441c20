//! Runs the program as users do.

#![allow(dead_code, reason = "each test file uses its own part of this module")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the program under test is started from outside")]

pub(crate) mod machine;
#[path = "../../coordinator/tests/support/models.rs"]
pub(crate) mod models;
pub(crate) mod presets;
pub(crate) mod service;
pub(crate) mod shown;
pub(crate) mod strength;
pub(crate) mod up;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

/// A program that is tested instead of `arbiter`: its path, and the variable that tells it so.
pub(crate) static PROGRAM: OnceLock<(PathBuf, &str)> = OnceLock::new();

/// The program under test.
pub(crate) fn arbiter() -> Command {
    let mut command = match PROGRAM.get() {
        Some((file, variable)) => {
            let mut command = Command::new(file);
            command.env(variable, "1");
            command
        }
        None => Command::new(env!("CARGO_BIN_EXE_arbiter")),
    };
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

/// Runs the program to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    arbiter().args(arguments).output().unwrap()
}

/// Runs the program, which must succeed, and returns its output.
pub(crate) fn succeed(arguments: &[&str]) -> String {
    let output = run(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// The JSON objects in what `arguments` prints.
pub(crate) fn json(arguments: &[&str]) -> Vec<Value> {
    let stdout = succeed(&[arguments, &["--json"]].concat());
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The source of the bot that misbehaves.
const RASCAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bots/rascal/rascal.c");

fn compile_rascal(program: &Path) {
    let status = Command::new("cc").arg("-o").arg(program).arg(RASCAL).status().unwrap();
    assert!(status.success(), "cc: {status}");
}

/// A temporary directory with the bots of a test.
pub(crate) struct Bots(TempDir);

impl Bots {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// A bot that misbehaves as `mode` says at its move number `at`, with more lines in its
    /// manifest.
    pub(crate) fn rascal(&self, name: &str, mode: &str, at: u32, manifest: &str) -> String {
        let build = format!("build = [\"cc\", \"-o\", \"bot\", \"rascal.c\"]\n{manifest}");
        let directory = self.rascal_directory(name, mode, at, &build);
        fs::copy(RASCAL, Path::new(&directory).join("rascal.c")).unwrap();
        directory
    }

    /// Like [`Self::rascal`], but built already: for tests that are not about builds.
    pub(crate) fn built_rascal(&self, name: &str, mode: &str, at: u32, manifest: &str) -> String {
        let directory = self.rascal_directory(name, mode, at, manifest);
        let program = Path::new(&directory).join("bot");
        match models::get_or_make("rascal", compile_rascal) {
            Some(model) => drop(fs::copy(model, program).unwrap()),
            None => compile_rascal(&program),
        }
        directory
    }

    fn rascal_directory(&self, name: &str, mode: &str, at: u32, manifest: &str) -> String {
        let directory = self.path().join(name);
        fs::create_dir(&directory).unwrap();
        let run = format!("name = \"{name}\"\nrun = [\"./bot\", \"{mode}\", \"{at}\"]\n");
        fs::write(directory.join("bot.toml"), run + manifest).unwrap();
        directory.to_str().unwrap().to_owned()
    }

    /// A bot with this Python code after its imports.
    pub(crate) fn python(&self, name: &str, code: &str) -> String {
        let directory = self.path().join(name);
        fs::create_dir(&directory).unwrap();
        let manifest = format!("name = \"{name}\"\nrun = [\"python3\", \"bot.py\"]\n");
        fs::write(directory.join("bot.toml"), manifest).unwrap();
        fs::write(directory.join("bot.py"), format!("import os, sys, time\n{code}\n")).unwrap();
        directory.to_str().unwrap().to_owned()
    }

    /// A path in this directory.
    pub(crate) fn file(&self, name: &str, contents: &str) -> String {
        let path = self.path().join(name);
        fs::write(&path, contents).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// Every file below `directory`, sorted.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}
