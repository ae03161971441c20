//! Builds of submitted bots, in a sandbox.
//!
//! A build runs the command of the manifest in its own jail, without a network, with the limits of
//! [`Limits::BUILD`] and within [`MAX_TIME`]. Its output files are added to the sources, and its
//! remaining processes are killed. A failed build is the author's fault; a jail that does not open
//! is a fault of the system.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use arbiter_games::Micros;

use crate::bot::{Bot, BotError};
use crate::fault::{Context as _, Fault};
use crate::sandbox::{
    BotSource, ClosedJail, Exit, Host, Jail, JailConfig, Limits, MAX_STATE_DEPTH, Ponder, Process,
    SkippedFiles, Stdin, Workdir, remove_tree,
};
use crate::seat::StopSignal;
use crate::seat::pipes::{self, Buffer, Drained, For, Tail, micros};

/// Time limit of a build.
pub const MAX_TIME: Duration = Duration::from_secs(300);

/// Maximum standard output and error of a build, in bytes. The log keeps the last 64 KiB.
pub const MAX_OUTPUT_LEN: usize = 16 << 20;

/// Limits and processors of a build.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Resource limits.
    pub limits: Limits,
    /// Time limit.
    pub time: Duration,
    /// Processors by number. Empty: any.
    pub cores: Vec<usize>,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self { limits: Limits::BUILD, time: MAX_TIME, cores: Vec::new() }
    }
}

/// The outcome of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildOutcome {
    /// The end of its standard output and error.
    pub log: String,
    /// Its duration.
    pub time: Duration,
    /// Why it failed, in one line for the bot's author.
    pub failure: Option<String>,
}

/// Builds the bot in the directory `tree`. Returns `None` if its manifest has no build command.
pub fn build(
    host: &Host,
    stop: &StopSignal,
    tree: &Path,
    rules: &BuildOptions,
) -> Result<Result<Option<BuildOutcome>, BotError>, Fault> {
    let argv = match Bot::build_of(tree) {
        Ok(Some(argv)) => argv,
        Ok(None) => return Ok(Ok(None)),
        Err(error) => return Ok(Err(error)),
    };
    let parent = tree.parent().unwrap_or(tree);
    let scratch = tempfile::tempdir_in(parent).fault("cannot create a directory for a build")?;
    let written = scratch.path().join("written");
    let source = BotSource::Directory(tree.to_owned());
    let built = in_jail(host, stop, &source, &written, &argv, rules);
    host.remove_copies(&source);
    let built = built?;
    if built.failure.is_none() {
        merge(&written, tree).fault("cannot move the output of a build")?;
    }
    scratch.close().fault("cannot remove the directory of a build")?;
    Ok(Ok(Some(built)))
}

/// Runs the build. Its output files are in the directory `written` afterwards.
fn in_jail(
    host: &Host,
    stop: &StopSignal,
    source: &BotSource,
    written: &Path,
    argv: &[String],
    rules: &BuildOptions,
) -> Result<BuildOutcome, Fault> {
    let home = Workdir::with_state(source, written.to_owned())?;
    let BuildOptions { limits, time, cores } = rules.clone();
    let terms = JailConfig { limits, ponder: Ponder::Allow, cores };
    let mut jail = Jail::open(host, home, &terms)?;
    let begun = Instant::now();
    let mut log = Tail::default();
    let failure = run(&mut jail, stop, argv, micros(time), &mut log)?;
    let time = begun.elapsed();
    let ClosedJail { skipped, lingers } = jail.close()?;
    let failure = failure.or_else(|| {
        lingers.then(|| format!("its build `{}` would not end when it was killed", argv.join(" ")))
    });
    let (bytes, dropped) = log.finish();
    let text = String::from_utf8_lossy(&bytes);
    let before = if dropped > 0 { format!("… {dropped} bytes before\n") } else { String::new() };
    let after = if failure.is_none() { note_on_skipped(&skipped) } else { String::new() };
    Ok(BuildOutcome { log: before + &text + &after, time, failure })
}

/// A note at the end of the log about output files that were left out.
fn note_on_skipped(SkippedFiles { paths, omitted }: &SkippedFiles) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let mut names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    if *omitted > 0 {
        names.push(format!("and {omitted} more"));
    }
    let names = names.join(", ");
    format!(
        "\narbiter: left out of what was built: {names}; links are, what cannot be read, and what is \
         too deep ({MAX_STATE_DEPTH} directories) or too large\n"
    )
}

/// Runs the build to its end. Returns why it failed, if it did.
fn run(
    jail: &mut Jail,
    stop: &StopSignal,
    argv: &[String],
    limit: Micros,
    log: &mut Tail,
) -> Result<Option<String>, Fault> {
    let shown = argv.join(" ");
    let mut process = match jail.start(argv, Stdin::Null)? {
        Ok(process) => process,
        Err(why) => return Ok(Some(format!("its build cannot run: {why}"))),
    };
    let cut_short = listen(&mut process, stop, limit, log)?;
    let exit = jail.end_process(&mut process);
    if let Some(why) = cut_short {
        return Ok(Some(format!("its build `{shown}` {why}")));
    }
    Ok(match (jail.kill_cause()?, exit) {
        (_, Some(Exit::Code(0))) => None,
        (Some(cause), exit) => Some(format!("its build `{shown}` {}", Exit::by(&cause, exit))),
        (None, Some(exit)) => Some(format!("its build `{shown}` {exit}")),
        (None, None) => Some(format!("its build `{shown}` was ended")),
    })
}

/// Reads the output until the build exits. Returns why it has to be killed, if it has.
fn listen(
    process: &mut Process,
    stop: &StopSignal,
    limit: Micros,
    log: &mut Tail,
) -> Result<Option<String>, Fault> {
    let start = Instant::now();
    let mut buffer = Buffer::new();
    let mut what = For::Output;
    loop {
        let ready = pipes::wait(process, what, stop, start, limit)?;
        if ready.stderr {
            log.drain(process, &mut buffer)?;
        }
        let mut drained = Drained::Nothing;
        if ready.stdout {
            drained = buffer.read(&process.stdout)?;
            match drained {
                Drained::Bytes(count) => log.push(buffer.front(count)),
                Drained::Nothing => {}
                Drained::End => what = For::End,
            }
        }
        if log.total() > MAX_OUTPUT_LEN {
            return Ok(Some(format!("wrote more than {} MiB", MAX_OUTPUT_LEN >> 20)));
        }
        if ready.ended && !matches!(drained, Drained::Bytes(_)) && !ready.stderr {
            return Ok(None);
        }
        if ready.waited > limit {
            return Ok(Some(format!("took longer than {limit}")));
        }
    }
}

/// Moves everything below `from` to the same path below `to`. Replaces links and never follows them.
fn merge(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let source = entry.path();
        let target = to.join(entry.file_name());
        let there = fs::symlink_metadata(&target).ok();
        if entry.file_type()?.is_dir() {
            if !there.is_some_and(|there| there.is_dir()) {
                remove_tree(&target)?;
                fs::create_dir(&target)?;
            }
            merge(&source, &target)?;
        } else {
            remove_tree(&target)?;
            fs::rename(&source, &target)?;
        }
    }
    Ok(())
}
