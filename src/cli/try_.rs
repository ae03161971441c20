//! `arbiter try GAME BOT…`: a table on this machine, in a browser; or a console, on the terminal.

mod console;

use std::fs;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arbiter_games::{Games, Micros, MicrosError};
use arbiter_worker::bot::Bot;
use arbiter_worker::record::Recorder;
use arbiter_worker::sandbox::Host;
use clap::{ArgAction, Args};
use tokio::net::TcpListener;

use super::play::{WayArgs, scratch};
use super::signals;
use crate::failure::Failure;
use crate::output::broken_pipe;
use crate::output::tell;
use crate::seed::draw_seed;
use crate::trying::house::Wish;
use crate::trying::{House, web};

/// How long pages that are being made may take when everything ends: a bot may be being built.
const LAST_PAGES: Duration = Duration::from_secs(10);

/// Play against bots in a browser, watch them play, or talk to one in the words of its protocol.
#[derive(Debug, Args)]
#[command(
    after_help = "The address that is printed is for you: whoever has it can play here. A bot is \
taken as it is on
disk when a match begins, and built where its sources have changed. Ctrl-C ends everything.

A match with a person in it is short unless --set says otherwise: one deal of wojna, two tables of
tricks. People have no clock unless --human-clock gives them the bots'.

On the terminal, --console sends each line of standard input to the bot as one protocol unit, \\n in
it being the end of a line, and prints the answer. A line that begins with : is for the console:
:help shows the lines of the protocol, :restart starts the bot anew, :quit ends. Exit code 1 if an
answer was missing, late, or not in its frame.

Examples:
  arbiter try gomoku mybot/
  arbiter try wojna mybot/ bots/wojna/house bots/wojna/caller --record records
  arbiter try bitwa mybot/ --set board=przyklad --http 127.0.0.1:8000
  arbiter try gomoku mybot/ --console
  printf 'A []\\nEXIT TIE\\n' | arbiter try gomoku mybot/ --console --json"
)]
pub(super) struct Try {
    game: String,
    /// A directory with bot.toml or a KotH meta file, or an executable file.
    #[arg(required = true, value_name = "BOT")]
    bots: Vec<PathBuf>,
    /// Where the pages are; by default a free port of 127.0.0.1.
    #[arg(long, value_name = "ADDR", conflicts_with = "console")]
    http: Option<SocketAddr>,
    /// A parameter of the game; may be given again for others (see arbiter play --help).
    #[arg(long = "set", value_name = "KEY=VALUE", action = ArgAction::Append)]
    set: Vec<String>,
    /// Keep a record of each match in this directory.
    #[arg(long, value_name = "DIR", conflicts_with = "console")]
    record: Option<PathBuf>,
    #[command(flatten)]
    ways: WayArgs,
    /// Let people have the clock that bots have.
    #[arg(long, conflicts_with = "console")]
    human_clock: bool,
    /// Talk to one bot on the terminal, instead of opening a table.
    #[arg(long)]
    console: bool,
    /// How long a bot that is talked to may take to answer.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = some_time)]
    limit: Micros,
    /// Print one JSON object a line that was sent.
    #[arg(long, requires = "console")]
    json: bool,
}

impl Try {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let game = games.find(&self.game).map_err(Failure::usage)?;
        if self.console && self.bots.len() > 1 {
            return Err(Failure::Usage("--console talks to one bot; name one".to_owned()));
        }
        let wish = Wish {
            game,
            set: self.set.clone(),
            bots: self.bots.clone(),
            clock: self.ways.clock(),
            person_clock: self.human_clock,
            limit: self.limit,
            records: self.record.as_deref().map(records).transpose()?,
        };
        for path in &self.bots {
            if let Some(command) = Bot::build_due(path) {
                tell(&format!("{}: building it with {command}", path.display()));
            }
        }
        let host = Host::prepare(self.ways.sandbox)?;
        if !self.json {
            tell(&host.summary());
        }
        let mark = draw_seed()?[..8].to_owned();
        let house = Arc::new(House::open(wish, host, scratch()?, mark)?);
        if self.console {
            return console::run(&house, self.json);
        }
        self.serve(&house)
    }

    /// Serves pages until Ctrl-C.
    fn serve(&self, house: &Arc<House>) -> Result<(), Failure> {
        let secret = [draw_seed()?, draw_seed()?].concat();
        let address = self.http.unwrap_or((Ipv4Addr::LOCALHOST, 0).into());
        let runtime = super::runtime()?;
        let served = runtime.block_on(async {
            let mut signals = signals::Endings::watch()?;
            let taken = |error: io::Error| {
                Failure::Refused(format!(
                    "--http {address}: {error}; choose another, or leave --http out for a free port"
                ))
            };
            let listener = TcpListener::bind(address).await.map_err(taken)?;
            let address = listener.local_addr().map_err(taken)?;
            writeln!(io::stdout(), "http://{address}/{secret}/").or_else(broken_pipe)?;
            io::stdout().flush().or_else(broken_pipe)?;
            tell("open this address in a browser; Ctrl-C ends everything");
            tokio::select! {
                () = signals.next() => Ok(()),
                served = web::serve(Arc::clone(house), &secret, listener) => {
                    served.map_err(|error| Failure::Negative(format!("the pages: {error}")))
                }
            }
        });
        house.close();
        // Pages that are still open hold on to the house, and to what is removed with it.
        runtime.shutdown_timeout(LAST_PAGES);
        served
    }
}

/// Reads how long something may take.
fn some_time(text: &str) -> Result<Micros, String> {
    let time: Micros = text.parse().map_err(|error: MicrosError| error.to_string())?;
    let some = (time > Micros::ZERO).then_some(time);
    some.ok_or_else(|| "leave some time, such as 10s".to_owned())
}

/// The directory of records, which is made if need be.
fn records(directory: &Path) -> Result<PathBuf, Failure> {
    let unusable = |error: io::Error| {
        let place = directory.display();
        Failure::Refused(format!("--record {place}: {error}; choose another directory"))
    };
    fs::create_dir_all(directory).map_err(unusable)?;
    let directory = fs::canonicalize(directory).map_err(unusable)?;
    Recorder::sweep(&directory);
    tempfile::tempfile_in(&directory).map_err(unusable)?;
    Ok(directory)
}
