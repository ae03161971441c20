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
use crate::seat::pipes::{self, Buffer, ReadResult, Tail, WaitFor, micros};

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
    /// The last bytes of its standard output and error.
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
    options: &BuildOptions,
) -> Result<Result<Option<BuildOutcome>, BotError>, Fault> {
    let argv = match Bot::build_of(tree) {
        Ok(Some(argv)) => argv,
        Ok(None) => return Ok(Ok(None)),
        Err(error) => return Ok(Err(error)),
    };
    let parent = tree.parent().unwrap_or(tree);
    let scratch = tempfile::tempdir_in(parent).fault("cannot create a directory for a build")?;
    let output_dir = scratch.path().join("written");
    let source = BotSource::Directory(tree.to_owned());
    let result = run_in_jail(host, stop, &source, &output_dir, &argv, options);
    host.remove_copies(&source);
    let outcome = result?;
    if outcome.failure.is_none() {
        merge(&output_dir, tree).fault("cannot move the output of a build")?;
    }
    scratch.close().fault("cannot remove the directory of a build")?;
    Ok(Ok(Some(outcome)))
}

/// Runs the build. Afterwards its output files are in `output_dir`.
fn run_in_jail(
    host: &Host,
    stop: &StopSignal,
    source: &BotSource,
    output_dir: &Path,
    argv: &[String],
    options: &BuildOptions,
) -> Result<BuildOutcome, Fault> {
    let workdir = Workdir::with_state(source, output_dir.to_owned())?;
    let BuildOptions { limits, time, cores } = options.clone();
    let config = JailConfig { limits, ponder: Ponder::Allow, cores };
    let mut jail = Jail::open(host, workdir, &config)?;
    let start_time = Instant::now();
    let mut log = Tail::default();
    let failure = run(&mut jail, stop, argv, micros(time), &mut log)?;
    let elapsed = start_time.elapsed();
    let ClosedJail { skipped, lingers } = jail.close()?;
    let final_failure = failure.or_else(|| {
        lingers.then(|| format!("its build `{}` would not end when it was killed", argv.join(" ")))
    });
    let (bytes, dropped) = log.finish();
    let text = String::from_utf8_lossy(&bytes);
    let before = if dropped > 0 { format!("… {dropped} bytes before\n") } else { String::new() };
    let after = if final_failure.is_none() { note_on_skipped(&skipped) } else { String::new() };
    Ok(BuildOutcome { log: before + &text + &after, time: elapsed, failure: final_failure })
}

/// The note about skipped output files at the end of the log.
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
        "\narbiter: skipped output files: {names}; an output file must be readable, not too large, \
         not a link, and at most {MAX_STATE_DEPTH} directories deep\n"
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
    let command = argv.join(" ");
    let mut process = match jail.start(argv, Stdin::Null)? {
        Ok(process) => process,
        Err(why) => return Ok(Some(format!("its build cannot run: {why}"))),
    };
    let kill_reason = read_output(&mut process, stop, limit, log)?;
    let exit = jail.end_process(&mut process);
    if let Some(why) = kill_reason {
        return Ok(Some(format!("its build `{command}` {why}")));
    }
    Ok(match (jail.kill_cause()?, exit) {
        (_, Some(Exit::Code(0))) => None,
        (Some(cause), exit) => Some(format!("its build `{command}` {}", Exit::by(&cause, exit))),
        (None, Some(exit)) => Some(format!("its build `{command}` {exit}")),
        (None, None) => Some(format!("its build `{command}` was ended")),
    })
}

/// Reads the output until the build exits. If the build exceeds a limit, returns which one.
fn read_output(
    process: &mut Process,
    stop: &StopSignal,
    limit: Micros,
    log: &mut Tail,
) -> Result<Option<String>, Fault> {
    let start = Instant::now();
    let mut buffer = Buffer::new();
    let mut events = WaitFor::Output;
    loop {
        let ready = pipes::wait(process, events, stop, start, limit)?;
        if ready.stderr {
            log.drain(process, &mut buffer)?;
        }
        let mut read = ReadResult::Nothing;
        if ready.stdout {
            read = buffer.read(&process.stdout)?;
            match read {
                ReadResult::Bytes(count) => log.push(buffer.front(count)),
                ReadResult::Nothing => {}
                ReadResult::End => events = WaitFor::Exit,
            }
        }
        if log.total() > MAX_OUTPUT_LEN {
            return Ok(Some(format!("wrote more than {} MiB", MAX_OUTPUT_LEN >> 20)));
        }
        if ready.ended && !matches!(read, ReadResult::Bytes(_)) && !ready.stderr {
            return Ok(None);
        }
        if ready.waited > limit {
            return Ok(Some(format!("took longer than {limit}")));
        }
    }
}

/// Moves all files below `from` to the same path below `to`. Replaces links and never follows
/// them.
fn merge(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let source = entry.path();
        let target = to.join(entry.file_name());
        let existing = fs::symlink_metadata(&target).ok();
        if entry.file_type()?.is_dir() {
            if !existing.is_some_and(|existing| existing.is_dir()) {
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
