//! `arbiter try GAME BOT…`: plays against bots in a browser, or talks to one on the terminal.

mod bot_console;

use std::fs;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arbiter_games::{Games, Micros, MicrosError};
use arbiter_worker::bot::Bot;
use arbiter_worker::record_writer::Recorder;
use arbiter_worker::sandbox::Host;
use clap::{ArgAction, Args};
use tokio::net::TcpListener;

use super::play::{SandboxArgs, scratch_dir, stop_on_signals};
use super::signals;
use crate::failure::Failure;
use crate::output::broken_pipe;
use crate::output::eprint_line;
use crate::play::game;
use crate::playground::session::Options;
use crate::playground::{Session, web};
use crate::random_seed::draw_seed;

/// How long shutdown waits for open page requests: a request may be building a bot.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Play against bots in a browser, watch them, or talk to one on the terminal.
#[derive(Debug, Args)]
#[command(
    after_help = "Keep the printed address secret: anyone who has it can play here. Each match \
    uses the bots as they are on disk, and rebuilds those with changed sources. Ctrl-C ends \
    everything.

A match with a person is short by default: one deal of wojna, two tables of tricks; change it \
    with --set. People have no clock unless --human-clock is given.

With --console, each line of standard input goes to the bot as one protocol unit (\\n stands \
    for a line break), and the reply is printed. Lines that start with : are commands: :help shows \
    the lines of the protocol, :restart restarts the bot, :quit ends. Exit code 1 if a reply was \
    missing, late or malformed.

Examples:
  arbiter try gomoku mybot/
  arbiter try wojna mybot/ bots/wojna/house bots/wojna/caller --record records
  arbiter try bitwa mybot/ --set board=przyklad --http 127.0.0.1:8000
  arbiter try gomoku mybot/ --console
  printf 'A []\\nEXIT TIE\\n' | arbiter try gomoku mybot/ --console --json"
)]
pub(super) struct Playground {
    game: String,
    /// Bots: directories with bot.toml or a KotH meta file, executable files, or source files (.py,
    /// .js, .c, .cpp, .rs, .java, …).
    #[arg(required = true, value_name = "BOT")]
    bots: Vec<PathBuf>,
    /// The address of the pages; by default a free port on 127.0.0.1.
    #[arg(long, value_name = "ADDR", conflicts_with = "console")]
    http: Option<SocketAddr>,
    /// A game parameter; may be repeated (see arbiter play --help).
    #[arg(long = "set", value_name = "KEY=VALUE", action = ArgAction::Append)]
    set: Vec<String>,
    /// Write a record of each match into this directory.
    #[arg(long, value_name = "DIR", conflicts_with = "console")]
    record: Option<PathBuf>,
    #[command(flatten)]
    sandbox: SandboxArgs,
    /// Give people the same clock as bots.
    #[arg(long, conflicts_with = "console")]
    human_clock: bool,
    /// Talk to one bot on the terminal instead of serving pages.
    #[arg(long)]
    console: bool,
    /// Maximum reply time of a bot in a console.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = positive_time)]
    limit: Micros,
    /// Print one JSON object per sent line.
    #[arg(long, requires = "console")]
    json: bool,
}

impl Playground {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let host = Arc::new(Host::prepare(self.sandbox.policy)?);
        let game = game::find(games, &self.game, &host, &stop_on_signals()?)?;
        if self.console && self.bots.len() > 1 {
            return Err(Failure::Usage("--console needs exactly one bot".to_owned()));
        }
        let options = Options {
            game,
            set: self.set.clone(),
            bots: self.bots.clone(),
            clock: self.sandbox.clock(),
            person_clock: self.human_clock,
            limit: self.limit,
            records: self.record.as_deref().map(prepare_record_dir).transpose()?,
        };
        for path in &self.bots {
            if let Some(command) = Bot::build_due(path) {
                eprint_line(&format!("building {} with {command}", path.display()));
            }
        }
        if !self.json {
            eprint_line(&host.summary());
        }
        let record_key = draw_seed()?[..8].to_owned();
        let session = Arc::new(Session::open(options, host, scratch_dir()?, record_key)?);
        if self.console {
            return bot_console::run(&session, self.json);
        }
        self.serve(&session)
    }

    /// Serves pages until Ctrl-C.
    fn serve(&self, session: &Arc<Session>) -> Result<(), Failure> {
        let secret = [draw_seed()?, draw_seed()?].concat();
        let address = self.http.unwrap_or((Ipv4Addr::LOCALHOST, 0).into());
        let runtime = super::runtime()?;
        let result = runtime.block_on(async {
            let mut signals = signals::ShutdownSignals::watch()?;
            let bind_error = |error: io::Error| {
                Failure::Refused(format!(
                    "--http {address}: {error}; choose another, or omit --http for a free port"
                ))
            };
            let listener = TcpListener::bind(address).await.map_err(bind_error)?;
            let address = listener.local_addr().map_err(bind_error)?;
            writeln!(io::stdout(), "http://{address}/{secret}/").or_else(broken_pipe)?;
            io::stdout().flush().or_else(broken_pipe)?;
            eprint_line("open this address in a browser; Ctrl-C ends everything");
            tokio::select! {
                () = signals.next() => Ok(()),
                result = web::serve(Arc::clone(session), &secret, listener) => {
                    let failed = |error| Failure::Negative(format!("cannot serve pages: {error}"));
                    result.map_err(failed)
                }
            }
        });
        session.close();
        // Open requests hold the session and its temporary directory.
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        result
    }
}

/// Parses a positive duration.
fn positive_time(text: &str) -> Result<Micros, String> {
    let time: Micros = text.parse().map_err(|error: MicrosError| error.to_string())?;
    let positive = (time > Micros::ZERO).then_some(time);
    positive.ok_or_else(|| "use a positive duration, such as 10s".to_owned())
}

/// Prepares the directory for records; creates it if missing.
fn prepare_record_dir(directory: &Path) -> Result<PathBuf, Failure> {
    let unusable = |error: io::Error| {
        let directory = directory.display();
        Failure::Refused(format!("--record {directory}: {error}; choose another directory"))
    };
    fs::create_dir_all(directory).map_err(unusable)?;
    let directory = fs::canonicalize(directory).map_err(unusable)?;
    Recorder::sweep(&directory);
    tempfile::tempfile_in(&directory).map_err(unusable)?;
    Ok(directory)
}
