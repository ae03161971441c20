//! A bot that is one source file. The ending of its name tells the language, and so the commands
//! that build and run it. Submissions and local runs turn the file into the same directory with a
//! manifest.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use arbiter_games::BotName;
use arbiter_packages::{MAX_SOURCE_FILE, SourceFile, SourceFileError};
use thiserror::Error;

use crate::bounded_read::{open_regular, read_at_most};
use crate::sandbox::ScratchDir;

/// Number of bytes at the beginning of a file that tell a program from other files.
const BEGINNING: u64 = 4 << 10;

/// How the bot in a file is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// An executable file, which is run as it is.
    Program,
    /// A file that becomes a [`SourceDir`].
    Source,
    /// A file that is neither.
    Unknown,
}

/// How the bot in the file at `path` is run. Linux gives an executable text without a `#!` line to
/// a shell, so the language of its ending goes before its permission.
pub(crate) fn kind(path: &Path) -> io::Result<FileKind> {
    let file = open_regular(path)?;
    let is_executable = file.metadata()?.permissions().mode() & 0o111 != 0;
    let mut beginning = Vec::new();
    file.take(BEGINNING).read_to_end(&mut beginning)?;
    let is_source = if SourceFile::is_program(&beginning) {
        !is_executable
    } else {
        SourceFile::has_known_ending(&name(path))
    };
    Ok(if is_source {
        FileKind::Source
    } else if is_executable {
        FileKind::Program
    } else {
        FileKind::Unknown
    })
}

/// The command that builds the bot in the source file at `path`, if it needs one.
pub(crate) fn build_command(path: &Path) -> Option<String> {
    let is_source = kind(path).is_ok_and(|kind| kind == FileKind::Source);
    if is_source { read(path).ok()?.bot.build() } else { None }
}

/// Why no bot can be made of a file.
#[derive(Debug, Error)]
pub(crate) enum SourceDirError {
    /// Its name or its contents cannot be those of a bot.
    #[error(transparent)]
    Unsuitable(#[from] SourceFileError),
    /// The manifest cannot have its name.
    #[error("its name cannot be a bot's name; rename the file")]
    Name,
    /// There is no temporary directory.
    #[error("cannot create a temporary directory: {0}")]
    TempDir(io::Error),
    /// The file cannot be read or copied.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl SourceDirError {
    /// The cause in a message that begins with the path of the file.
    pub(super) fn cause(&self) -> String {
        match self {
            Self::Unsuitable(SourceFileError::Unsuitable { cause, .. }) => format!("it {cause}"),
            error => error.to_string(),
        }
    }
}

/// The directory of a bot that was one file. It is removed on drop.
#[derive(Debug)]
pub(crate) struct SourceDir {
    /// The name in the manifest.
    pub(crate) name: BotName,
    scratch: ScratchDir,
}

impl SourceDir {
    /// Copies the file at `path` into a new directory and adds a manifest. Builds nothing.
    pub(crate) fn new(path: &Path) -> Result<Self, SourceDirError> {
        let source = read(path)?;
        let bot_name = source.name.ok_or(SourceDirError::Name)?;
        let scratch = ScratchDir::new().map_err(SourceDirError::TempDir)?;
        let directory = Self { name: bot_name, scratch };
        fs::create_dir(directory.path())?;
        for file in source.bot.files(directory.name.as_str()) {
            let copy = directory.path().join(file.path);
            fs::write(&copy, file.contents)?;
            if file.is_executable {
                fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
            }
        }
        Ok(directory)
    }

    /// The path of the bot's directory. A scratch directory is locked, but a build locks the bot's
    /// directory, so they are two.
    pub(crate) fn path(&self) -> PathBuf {
        self.scratch.path().join("bot")
    }
}

/// Reads a source file.
fn read(path: &Path) -> Result<SourceFile, SourceDirError> {
    let contents = read_at_most(path, MAX_SOURCE_FILE as u64)?;
    Ok(SourceFile::new(&name(path), contents)?)
}

/// The name of the file. One that is not UTF-8 is refused like one with other wrong characters.
fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_run_as_it_is_and_a_source_file_in_its_language() {
        let directory = tempfile::tempdir().unwrap();
        for (file, contents, mode, expected) in [
            ("a.py", "print()", 0o644, FileKind::Source),
            ("b.py", "print()", 0o755, FileKind::Source),
            ("c.py", "#!/usr/bin/env python3\nprint()", 0o644, FileKind::Source),
            ("d.py", "#!/usr/bin/env python3\nprint()", 0o755, FileKind::Program),
            ("e.py", "#!/usr/bin/env python3\r\nprint()", 0o755, FileKind::Source),
            ("f.c", "\x7fELF\x02", 0o755, FileKind::Program),
            ("g", "echo", 0o755, FileKind::Program),
            ("h", "#!/bin/sh\n", 0o644, FileKind::Source),
            ("i.zip", "PK", 0o644, FileKind::Unknown),
        ] {
            let path = directory.path().join(file);
            fs::write(&path, contents).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(kind(&path).unwrap(), expected, "{file}");
        }
        assert!(kind(directory.path()).is_err());
    }
}
