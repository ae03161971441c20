//! The attacks, and their submissions.

use std::fs::{self, Permissions};
use std::io::{Cursor, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// If `all`, the test runs every program of the directory.
const CHOICE: &str = "ARBITER_ATTACKS";
/// The directory of the hostile programs.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/worker/tests/attacks");
/// A program that takes seconds to die. An honest match must wait for it.
const SLOW_DEATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/attacks/slow_death.c");
/// Files in the directory that are no attacks.
const NO_ATTACKS: [&str; 3] = ["attack.py", "honest.py", "rival.py"];
/// Programs whose output goes to the referee. The output of other programs goes to standard error,
/// because its first line would end the match.
const TALKING: [&str; 2] = ["reopening.py", "stdout_flood.py"];
/// A program that reports other processes in its jail as a breach. Here that is its shell.
pub(crate) const ALONE: &str = "proc_walk.py";

/// The programs that run by default: every class of attacks, by target. The worker's `sandbox`
/// tests run all of them, but not against a running system.
const CHOSEN: [&str; 24] = [
    // Private memory, shared, in files without a name, in the kernel.
    "memory_alone.py",
    "memory_memfd.py",
    "buffers_tcp.py",
    "flight.py",
    // Processes and threads.
    "daemon.py",
    "fork_bomb.py",
    "thread_bomb.py",
    "zombies.py",
    // Disk and files.
    "inodes.py",
    "locked_out.py",
    "nested.py",
    "special_files.py",
    "unlinked_files.py",
    // Effects on a later execution of the same bot.
    "again_disk.py",
    "again_home_locked.py",
    "again_text_busy.py",
    // Programs that do not read, stop, or die slowly.
    "deaf.py",
    "vfork_stall.c",
    // Others: processes, signals, files, channels.
    "files_of_others.py",
    "proc_walk.py",
    "worker_process.py",
    // Output and crashes.
    "crash_storm.c",
    "stderr_flood.py",
    "stdout_flood.py",
];

/// Hostile builds: scripts for `sh`.
const BUILDS: [(&str, &str); 4] = [
    ("a build that leaves a daemon", "sleep 1000 & (setsid sleep 1000 >&- 2>&- &)"),
    ("a build that fills the disk", "cat /dev/zero > big"),
    (
        "a build that uses too much memory",
        "exec python3 -c 'b = [bytearray(1 << 20) for _ in range(4096)]'",
    ),
    ("a build that writes without end", "exec yes"),
];

/// Hostile archives.
const ARCHIVES: [(&str, Archive); 4] = [
    ("an archive with a huge bot.toml", huge_manifest),
    ("an archive that is a bomb", bomb),
    ("an archive of too many files", too_many_files),
    ("an archive whose names climb", climbing_names),
];

/// The first attacks: one of each kind, before memory is measured.
const WARM_UP: [&str; 5] = [
    "stdout_flood.py",
    "again_text_busy.py",
    "buffers_tcp.py",
    "a build that writes without end",
    "an archive with a huge bot.toml",
];

type Archive = fn() -> Vec<u8>;

/// An attack, by the name of its program or in words.
pub(crate) struct Attack {
    pub(crate) name: String,
    kind: Kind,
}

enum Kind {
    /// A program, in this file.
    Program(PathBuf),
    /// A bot that attacks when it is built.
    Build(&'static str),
    /// An upload that attacks when it is unpacked.
    Archive(Archive),
}

/// A submission.
pub(crate) enum Submission {
    /// A directory, to a tournament of this game.
    Directory(&'static str, PathBuf),
    /// An archive, to a tournament of gomoku.
    Archive(Vec<u8>),
}

/// Targets of attacks: a secret file, the worker, and a port of this machine.
pub(crate) struct Targets {
    pub(crate) secret: PathBuf,
    pub(crate) worker: i32,
    pub(crate) port: u16,
}

/// The attacks to make, and the warm-up.
pub(crate) fn chosen() -> (Vec<Attack>, Vec<Attack>) {
    let programs = match std::env::var(CHOICE).as_deref() {
        Err(_) => CHOSEN.map(str::to_owned).to_vec(),
        Ok("all") => programs(),
        Ok(other) => panic!("{CHOICE}={other}: write all, or leave it out"),
    };
    let attacks = || {
        let files = programs.iter().map(|name| Path::new(FOLDER).join(name));
        let files = files.chain([PathBuf::from(SLOW_DEATH)]);
        let programs = files.map(|file| {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            Attack { name, kind: Kind::Program(file) }
        });
        let builds = BUILDS.map(|(name, script)| (name, Kind::Build(script)));
        let archives = ARCHIVES.map(|(name, make)| (name, Kind::Archive(make)));
        let others = builds.into_iter().chain(archives);
        programs.chain(others.map(|(name, kind)| Attack { name: name.to_owned(), kind }))
    };
    let first = attacks().filter(|attack| WARM_UP.contains(&&*attack.name)).collect();
    (attacks().collect(), first)
}

/// The names of all programs in the folder.
fn programs() -> Vec<String> {
    let names = fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    let mut names: Vec<_> = names
        .filter(|name| !NO_ATTACKS.contains(&&**name))
        .filter(|name| [".py", ".c"].iter().any(|ending| name.ends_with(ending)))
        .collect();
    names.sort();
    assert!(names.len() >= 110, "{}", names.len());
    names
}

impl Attack {
    /// Creates the submission; `directory` is for a program or build.
    pub(crate) fn submission(&self, directory: PathBuf, targets: &Targets) -> Submission {
        let (game, manifest) = match &self.kind {
            Kind::Archive(make) => return Submission::Archive(make()),
            Kind::Build(script) => {
                fs::create_dir(&directory).unwrap();
                let build = ["sh", "-c", script];
                ("gomoku", format!("run = [\"true\"]\nbuild = {build:?}\n"))
            }
            Kind::Program(source) => {
                fs::create_dir(&directory).unwrap();
                self.program(source, &directory, targets)
            }
        };
        fs::write(directory.join("bot.toml"), format!("name = \"attack\"\n{manifest}")).unwrap();
        Submission::Directory(game, directory)
    }

    /// Writes the program into a directory. Returns the game to submit it to, and its manifest.
    fn program(
        &self,
        source: &Path,
        directory: &Path,
        targets: &Targets,
    ) -> (&'static str, String) {
        let name = &*self.name;
        let text = fs::read_to_string(source).unwrap();
        fs::copy(Path::new(FOLDER).join("attack.py"), directory.join("attack.py")).unwrap();
        let heading = text.lines().next().unwrap();
        if heading.ends_with("ends: again") || heading.ends_with("ends: as a forfeit") {
            let program = directory.join("program");
            // Hide the arguments of a decision from attack.py.
            let text = format!("#!/usr/bin/python3\nimport sys\ndel sys.argv[1:]\n{text}");
            fs::write(&program, text).unwrap();
            fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
            return ("blackjack", "run = [\"./program\"]\n".to_owned());
        }
        let program = if let Some(stem) = name.strip_suffix(".c") {
            compile(source, &directory.join(stem));
            format!("./{stem}")
        } else {
            fs::copy(source, directory.join(name)).unwrap();
            format!("python3 {name}")
        };
        let Targets { secret, worker, port } = targets;
        let silence = if TALKING.contains(&name) { "" } else { ">&2" };
        // The shell stays alive, and keeps the output open that the program does not use.
        let script = format!("{program} {} {worker} {port} {silence}; exit", secret.display());
        let run = format!("run = {:?}\n", ["sh", "-c", &script]);
        if heading.contains("with a listener") {
            return ("tricks", format!("{run}protocol = \"http\"\n"));
        }
        ("gomoku", run)
    }
}

#[expect(clippy::disallowed_methods, reason = "a compiler is run, not a bot")]
fn compile(source: &Path, program: &Path) {
    let mut cc = Command::new("cc");
    cc.args(["-w", "-O0", "-o"]).arg(program).arg(source);
    assert!(cc.status().unwrap().success(), "{} does not compile", source.display());
}

/// A zip archive of these files.
fn zipped<'a>(files: impl IntoIterator<Item = (String, &'a [u8])>) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, contents) in files {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(contents).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A manifest of an honest bot.
const MANIFEST: &str = "name = \"attack\"\nrun = [\"true\"]\n";

/// A manifest that is too long, of text that compresses less than a bomb.
fn huge_manifest() -> Vec<u8> {
    let lines = (0..200_000).map(|number| format!("k{number} = [[[{number}]], \"a\"]\n"));
    let manifest: String = std::iter::once(MANIFEST.to_owned()).chain(lines).collect();
    zipped([("bot.toml".to_owned(), manifest.as_bytes())])
}

/// Many bytes that compress extremely well.
fn bomb() -> Vec<u8> {
    let zeros = vec![0; 100 << 20];
    zipped([("bot.toml".to_owned(), MANIFEST.as_bytes()), ("data".to_owned(), &zeros)])
}

fn too_many_files() -> Vec<u8> {
    let files = (0..10_001).map(|number| (format!("files/{number}"), &b""[..]));
    zipped(files.chain([("bot.toml".to_owned(), MANIFEST.as_bytes())]))
}

fn climbing_names() -> Vec<u8> {
    let files = (1..=6).map(|levels| (format!("{}climbed", "../".repeat(levels)), &b""[..]));
    zipped(files.chain([("bot.toml".to_owned(), MANIFEST.as_bytes())]))
}
