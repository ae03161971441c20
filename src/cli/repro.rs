//! `arbiter repro MATCH --seat K --bot PATH`: replays a seat of a recorded match with a bot.

mod reply_printer;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _};
use std::path::PathBuf;
use std::slice;
use std::sync::Arc;

use arbiter_games::{ClockKind, ClockRules, Games, MAX_SEATS, Seat};
use arbiter_proto::ids::MatchName;
use arbiter_proto::settings::HexDigest;
use arbiter_proto::v1::GetTournamentRequest;
use arbiter_replay::{Header, MAX_LINE, RecordedPackage};
use arbiter_worker::bot::Bot;
use arbiter_worker::bounded_read::open_regular;
use arbiter_worker::package::Package;
use arbiter_worker::repro::{SeatReplay, SeatReplayError};
use arbiter_worker::sandbox::{Host, JailConfig, Policy};
use clap::Args;

use self::reply_printer::ReplyPrinter;
use super::client::{Client, Server, malformed_response, unless_interrupted};
use super::package_file::PackageFile;
use super::play::stop_on_signals;
use super::record_download;
use super::tournament::settings;
use crate::failure::Failure;
use crate::output::eprint_line;
use crate::output::printable;
use crate::play::{game, record_file, recorded_packages};

/// Replay a seat of a recorded match with a bot; exit code 1 if it fails or its replies differ.
#[derive(Debug, Args)]
#[command(
    after_help = "The bot receives exactly the messages that the seat received, with the same \
    clock and limits. The match continues as recorded, whatever the bot replies: after the first \
    difference the bot may receive moves that it did not make. Files from its earlier matches are \
    missing. If the seat forfeited in the match, the command says whether the bot forfeits again \
    at the same request. Exit code 0 if all replies are the same, or if the bot now replies where \
    it forfeited; 1 otherwise.

Examples:
  arbiter repro finals/1207 --seat 2 --bot mybot/
  arbiter repro finals/1207 --seat 2 --bot mybot.py --all --stderr
  arbiter repro --record match.jsonl --seat 1 --bot mybot/ --json
  arbiter repro --record match.jsonl --seat 1 --bot mybot/ --game games/connect4"
)]
pub(super) struct Repro {
    /// The match as TOURNAMENT/NUMBER, as shown by logs and web pages.
    #[arg(value_name = "MATCH", required_unless_present = "record", conflicts_with = "record")]
    name: Option<MatchName>,
    /// The seat to replay, from 1.
    #[arg(long, value_name = "K")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_SEATS)))]
    seat: u8,
    /// The bot: a directory with bot.toml or a KotH meta file, an executable file, or one source
    /// file (.py, .js, .c, .cpp, .rs, .java, …).
    #[arg(long, value_name = "PATH")]
    bot: PathBuf,
    /// Read the match from this record file (*.jsonl or *.jsonl.zst) instead of a coordinator; uses
    /// official limits.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// The game package with which the match was played: its folder or packed file. By default it
    /// is downloaded, or found in the export that holds the record.
    #[arg(long, value_name = "DIR|FILE")]
    game: Option<PathBuf>,
    /// Also show replies that are the same.
    #[arg(long)]
    all: bool,
    /// Show the bot's standard error.
    #[arg(long)]
    stderr: bool,
    /// Bot isolation: auto, strict, namespaces, landlock or off.
    #[arg(long, value_name = "POLICY", default_value = "auto")]
    sandbox: Policy,
    /// Print one JSON object per reply.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl Repro {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        if let Some(command) = Bot::build_due(&self.bot) {
            eprint_line(&format!("building {} with {command}", self.bot.display()));
        }
        let bot = Arc::new(Bot::load(&self.bot).map_err(Failure::usage)?);
        let Inputs { mut record, jail, packages } = self.inputs()?;
        let seat = Seat::from_index(usize::from(self.seat) - 1);
        let host = Arc::new(Host::prepare(self.sandbox)?);
        let stop = stop_on_signals()?;
        // The sandbox can be off for the own bot, but not for rules that came with a record.
        let rules_host = match &self.game {
            None if !packages.is_empty() => Arc::new(Host::prepare(Policy::Auto)?),
            _ => Arc::clone(&host),
        };
        let games = &game::with_packages(games, &packages, &rules_host, &stop)?;
        let header = header(games, &mut record)?;
        let seats = header.seats.len();
        if seat.index() >= seats {
            return Err(SeatReplayError::NoSeat(seats).into());
        }
        if !self.json {
            eprint_line(&introduction(&header, seat));
        }
        let mut printer = ReplyPrinter::new(header.game.clone(), Arc::clone(&bot), self.json);
        let replay = SeatReplay { seat, bot, jail };
        let mut print_result = Ok(());
        let result = replay.run(games, record, &host, &stop, |ply| {
            if print_result.is_ok() {
                print_result = printer.show(&ply, self.all);
            }
        });
        let usage = result?;
        print_result?;
        if self.stderr {
            for line in String::from_utf8_lossy(&usage.stderr).lines() {
                eprint_line(&printable(line));
            }
        }
        printer.finish()
    }

    fn inputs(&self) -> Result<Inputs, Failure> {
        let named = self.game.as_slice();
        if let Some(path) = &self.record {
            let failed = |error| Failure::usage(format!("{}: {error}", path.display()));
            let record = open_regular(path).and_then(record_file::unpacked).map_err(failed)?;
            let record = BufReader::new(record);
            let packages = recorded_packages::load_all(named, slice::from_ref(path))?;
            return Ok(Inputs { record, jail: JailConfig::default(), packages });
        }
        let name = self.name.as_ref().expect("clap asks for one of the two");
        let failed = |error| Failure::Negative(format!("cannot store the record: {error}"));
        let mut packages = recorded_packages::load_all(named, &[])?;
        let mut file = tempfile::tempfile().map_err(failed)?;
        let jail = self.client.run(async |server| {
            let record = record_download::open(&server, name).await??;
            unless_interrupted(record.copy(&file)).await?;
            file.rewind().map_err(failed)?;
            let needed = RecordedPackage::read(BufReader::new(&file)).map_err(failed)?;
            if let Some(needed) = needed.filter(|_| named.is_empty()) {
                let digest = HexDigest::try_from(needed.digest).map_err(malformed_response)?;
                let download = PackageFile::download(&server, &name.tournament, Some(digest));
                let PackageFile { package, .. } = unless_interrupted(download).await?;
                packages.push((package.path().to_owned(), package));
            }
            fetch_jail_config(&server, &name.tournament).await
        })?;
        file.rewind().map_err(failed)?;
        Ok(Inputs { record: BufReader::new(file), jail, packages })
    }
}

/// What a replay of a seat needs besides the bot.
struct Inputs {
    record: BufReader<File>,
    /// The limits of the match.
    jail: JailConfig,
    /// The game packages that the record may name, and where they are.
    packages: Vec<(PathBuf, Package)>,
}

/// Fetches the limits of a tournament's matches.
async fn fetch_jail_config(server: &Server, tournament: &str) -> Result<JailConfig, Failure> {
    let request = GetTournamentRequest { tournament: tournament.to_owned(), edition: None };
    let tournament = server.send(request).await?;
    let mut settings = settings(&tournament);
    let mut setting = |key: &str| settings.remove(key).unwrap_or_default();
    let settings_error = |error: serde_json::Error| {
        Failure::Negative(format!(
            "cannot read the settings of {}: {error}; use the same version of arbiter as the \
             coordinator",
            tournament.name
        ))
    };
    let limits = serde_json::from_value(setting("limits")).map_err(settings_error)?;
    let ponder = serde_json::from_value(setting("ponder")).map_err(settings_error)?;
    Ok(JailConfig { limits, ponder, cores: Vec::new() })
}

/// Reads the first line of a record and rewinds it.
fn header(games: &Games, record: &mut BufReader<File>) -> Result<Header, Failure> {
    let failed = |error: String| Failure::Negative(format!("the record: line 1: {error}"));
    let mut line = String::new();
    record
        .by_ref()
        .take(MAX_LINE)
        .read_line(&mut line)
        .map_err(|error| failed(error.to_string()))?;
    record.rewind().map_err(|error| failed(error.to_string()))?;
    Header::parse(games, &line).map_err(|error| failed(format!("not that of a record: {error}")))
}

/// Describes the replayed seat, which the match has, in one line.
fn introduction(header: &Header, seat: Seat) -> String {
    let Header { params, clock, seats, .. } = header;
    let bot = seats[seat.index()].bot.as_str();
    let others: Vec<_> = seats
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != seat.index())
        .map(|(_, seat)| seat.bot.as_str())
        .collect();
    let ClockRules { kind, .. } = clock;
    let game = params.game();
    let others = others.join(", ");
    let kind = match kind {
        ClockKind::Wall => "wall",
        ClockKind::Cpu => "cpu",
    };
    format!("{game}: replaying seat {seat} ({bot}) against {others}; clock {kind}")
}

impl From<SeatReplayError> for Failure {
    fn from(error: SeatReplayError) -> Self {
        match error {
            SeatReplayError::Record(_) => Self::Negative(format!("the record: {error}")),
            SeatReplayError::NoSeat(_) => Self::usage(format!("--seat: {error}")),
            SeatReplayError::Fault(_) => Self::Negative(error.to_string()),
        }
    }
}
