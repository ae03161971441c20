//! `arbiter tournament export T`: writes an edition to files. Apart from the records, which contain
//! times, two runs of the same tournament give the same bytes.
//!
//! An edition shares matches with earlier editions, so the numbers of its matches depend on these.
//! An export counts matches by their positions in the schedule of its edition instead: two editions
//! with the same bots and results have the same export, whatever was played before.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use arbiter_coordinator::tournament::plan_derivation::EditionSource;
use arbiter_games::Games;
use arbiter_proto::convert::required;
use arbiter_proto::ids::{MatchName, MatchNumber};
use arbiter_proto::settings::GamePackage;
use arbiter_proto::v1::{
    GetEditionSourceRequest, GetRankingRequest, GetRankingResponse, GetTournamentRequest,
    LeaderboardRef, ListMatchesRequest, MatchStatus, Tournament,
};
use clap::Args;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tonic::Code;

use super::beacon::beacon_json;
use super::list::settings;
use super::site::SiteExport;
use super::site_files;
use crate::cli::client::{Client, Request as _, Server, malformed_response, unless_interrupted};
use crate::cli::package_file::PackageFile;
use crate::cli::ranking::{fetch_ranking, standing_json};
use crate::cli::record_download;
use crate::cli::show_match::result_json;
use crate::failure::{Failure, without_temporary_path};
use crate::output::{eprint_line, fields, hex, merge, print_line};
use crate::play::progress;
use crate::play::recorded_packages::PACKAGES;

/// Export an edition to files: settings, leaderboard, matches, records.
#[derive(Debug, Args)]
#[command(
    after_help = "Writes tournament.json, ranking.json, matches.jsonl (one line per match) and, \
    with --records, records/NNNNNN.jsonl. If the game is a package, packages/ has its packed file, \
    with which `arbiter verify` replays the records. Matches are counted from 0 in the order of \
    the edition's schedule. Only the records contain times: two runs of the same tournament give \
    the same bytes in all other files. After the tournament is closed the export contains its seed \
    and the inputs of its plan, and `arbiter verify DIR` derives all matches again.

With --site, writes a web site instead: leaderboards, statistics, bots, matches, replays, seed, \
    certificate, and the files above in data/. Its links are relative: copy the directory to any web \
    server, or open index.html. It contains only what everybody may see, also if an organiser exports it. In the \
    directory of a former site, the files of that site are replaced and all other files are kept.

Examples:
  arbiter tournament export finals
  arbiter tournament export finals --out archive/finals --records
  arbiter verify archive/finals
  arbiter tournament export finals --site public --matches 500"
)]
pub(super) struct Export {
    /// The tournament.
    #[arg(value_name = "T")]
    pub(super) tournament: String,
    /// The edition; by default the official one.
    #[arg(long, value_name = "E")]
    pub(super) edition: Option<i32>,
    /// The output directory, empty or not yet existing; by default named after the tournament.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also write the record of each match.
    #[arg(long)]
    records: bool,
    /// Write a web site to this directory: missing, empty, or a former site.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "records"])]
    site: Option<PathBuf>,
    /// Write the replays of at most N matches, those with the greatest numbers; by default all.
    #[arg(long, value_name = "N", requires = "site")]
    matches: Option<usize>,
    #[command(flatten)]
    client: Client,
}

/// Maximum number of parallel record downloads.
const MAX_DOWNLOADS: usize = 16;

/// No limit on the number of standings.
const ALL: u32 = u32::MAX;

impl Export {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let directory = match (&self.site, &self.out) {
            (Some(directory), _) | (None, Some(directory)) => directory.clone(),
            (None, None) => PathBuf::from(&self.tournament),
        };
        let refused = |cause: String| Failure::usage(format!("{}: {cause}", directory.display()));
        let target = match self.site {
            Some(_) => site_files::target(&directory),
            None => directory.clone(),
        };
        match self.site {
            Some(_) => site_files::check_target(&target),
            None => check_empty(&target),
        }
        .map_err(refused)?;
        let parent = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let scratch = tempfile::Builder::new()
            .prefix(".arbiter-export-")
            .tempdir_in(parent.unwrap_or(Path::new(".")))
            .map_err(|error| refused(without_temporary_path(&error)))?;
        let export_dir = scratch.path().join("export");
        let client =
            if self.site.is_some() { self.client.anonymous() } else { self.client.clone() };
        let summary = client.run(async |server| {
            unless_interrupted(async {
                if self.site.is_none() {
                    return self.write(&server, &export_dir).await;
                }
                let export = SiteExport { games, data: &self, max_replays: self.matches };
                export.write(&server, &export_dir).await
            })
            .await
        })?;
        // Renaming makes the whole export appear at once.
        match self.site {
            Some(_) => site_files::install(&export_dir, &target),
            None => fs::rename(&export_dir, &target).map_err(|error| error.to_string()),
        }
        .map_err(refused)?;
        print_line(&format!("{summary} to {}", directory.display()))
    }

    /// Writes everything to the new directory `directory` and returns a description.
    async fn write(&self, server: &Server, directory: &Path) -> Result<String, Failure> {
        let (number, exported) = self.write_edition(server, directory).await?;
        if self.records {
            self.write_records(server, &exported, &directory.join("records")).await?;
        }
        let name = &self.tournament;
        let count = exported.len();
        Ok(format!("exported edition {number} of {name} with {count} matches"))
    }

    /// Writes everything but the records to the new directory `directory`. Returns the number of
    /// the edition and its matches.
    pub(super) async fn write_edition(
        &self,
        server: &Server,
        directory: &Path,
    ) -> Result<(i32, Vec<ExportedMatch>), Failure> {
        fs::create_dir(directory).map_err(|error| write_error(directory, &error))?;
        let board = LeaderboardRef { tournament: self.tournament.clone(), edition: self.edition };
        let request = GetRankingRequest { leaderboard: Some(board), ..Default::default() };
        let ranking = fetch_ranking(server, &request, ALL).await?;
        let number = ranking.edition;
        let name = self.tournament.clone();
        let request = GetTournamentRequest { tournament: name, edition: Some(number) };
        let tournament = server.send(request).await?;
        let edition_state = tournament
            .editions
            .iter()
            .find(|edition| edition.number == number)
            .map_or("unknown", |edition| edition.state.as_str());
        let source = fetch_source(server, &tournament, Some(number)).await?;
        if edition_state != "complete" {
            eprint_line(&format!("edition {number} is {edition_state}: the export is not final"));
        }
        write_json(
            &directory.join("tournament.json"),
            &tournament_json(&tournament, (number, edition_state), source),
        )?;
        write_json(&directory.join("ranking.json"), &ranking_json(&ranking))?;
        self.write_package(server, &tournament, &directory.join(PACKAGES)).await?;
        Ok((number, self.write_matches(server, number, directory).await?))
    }

    /// Writes the game package of an edition, if its game is one, to the new directory `directory`.
    /// All matches of an edition are played by one package.
    async fn write_package(
        &self,
        server: &Server,
        tournament: &Tournament,
        directory: &Path,
    ) -> Result<(), Failure> {
        let Some(package) = settings(tournament).remove("package") else { return Ok(()) };
        let package = GamePackage::deserialize(package).map_err(malformed_response)?;
        let file = PackageFile::download(server, &self.tournament, Some(package.digest)).await?;
        fs::create_dir(directory).map_err(|error| write_error(directory, &error))?;
        file.save(&directory.join(file.name()))
    }

    /// Writes one line per match of an edition and returns the matches, in the order of their
    /// positions.
    async fn write_matches(
        &self,
        server: &Server,
        edition: i32,
        directory: &Path,
    ) -> Result<Vec<ExportedMatch>, Failure> {
        let path = directory.join("matches.jsonl");
        let failed = |error: io::Error| write_error(&path, &error);
        let request = ListMatchesRequest {
            tournament: self.tournament.clone(),
            edition: Some(edition),
            positions: true,
            ..Default::default()
        };
        let mut matches = server.tournaments().list_matches(request).await?.into_inner();
        // The coordinator sends the matches in the order of their numbers. They are sorted in a
        // file, because there may be millions.
        let mut writer = BufWriter::new(tempfile::tempfile_in(directory).map_err(failed)?);
        let mut exported = Vec::new();
        let mut start = 0;
        let bar = progress::bar(0, "matches");
        while let Some(played) = matches.message().await? {
            let name: MatchName = played.r#match.parse().map_err(malformed_response)?;
            let number = name.number;
            let position = required("position", played.position).map_err(malformed_response)?;
            let line = format!("{}\n", match_json(position, &played));
            writer.write_all(line.as_bytes()).map_err(failed)?;
            exported.push(ExportedMatch { position, number, start, length: line.len() });
            start += line.len() as u64;
            bar.inc(1);
        }
        bar.finish_and_clear();
        exported.sort_unstable_by_key(|played| played.position);
        let unsorted = writer.into_inner().map_err(|error| failed(error.into_error()))?;
        let mut file = BufWriter::new(File::create(&path).map_err(failed)?);
        let mut bytes = Vec::new();
        for sorted in &exported {
            bytes.resize(sorted.length, 0);
            unsorted.read_exact_at(&mut bytes, sorted.start).map_err(failed)?;
            file.write_all(&bytes).map_err(failed)?;
        }
        file.flush().map_err(failed)?;
        Ok(exported)
    }

    /// Writes the records of matches to the new directory `directory`.
    async fn write_records(
        &self,
        server: &Server,
        exported: &[ExportedMatch],
        directory: &Path,
    ) -> Result<(), Failure> {
        fs::create_dir(directory).map_err(|error| write_error(directory, &error))?;
        let bar = progress::bar(exported.len(), "records");
        let mut missing = 0;
        let mut downloads = JoinSet::new();
        let mut remaining = exported.iter();
        loop {
            while downloads.len() < MAX_DOWNLOADS
                && let Some(ExportedMatch { position, number, .. }) = remaining.next()
            {
                let server = server.clone();
                let name = MatchName { tournament: self.tournament.clone(), number: *number };
                let path = directory.join(format!("{position:06}.jsonl"));
                downloads.spawn(async move { write_record(&server, &name, &path).await });
            }
            let Some(result) = downloads.join_next().await else { break };
            let has_record = result.map_err(|error| {
                Failure::Negative(format!("a record could not be written: {error}"))
            })??;
            missing += usize::from(!has_record);
            bar.inc(1);
        }
        bar.finish_and_clear();
        if missing > 0 {
            eprint_line(&format!("{missing} of {} matches have no record", exported.len()));
        }
        Ok(())
    }
}

/// Refuses a directory with files.
fn check_empty(directory: &Path) -> Result<(), String> {
    match fs::read_dir(directory).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err("not empty; choose another directory with --out".to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
        Ok(false) | Err(_) => Ok(()),
    }
}

/// A match of an export, and where its line is in the file of unsorted lines.
pub(super) struct ExportedMatch {
    /// Its position in the schedule of the edition.
    position: i64,
    /// Its number in the tournament.
    pub(super) number: MatchNumber,
    /// Where its line begins, in bytes.
    start: u64,
    /// The length of its line, in bytes.
    length: usize,
}

pub(super) fn write_error(path: &Path, error: &io::Error) -> Failure {
    Failure::Negative(format!("cannot write {}: {error}", path.display()))
}

/// Writes one indented JSON object.
fn write_json(path: &Path, object: &Value) -> Result<(), Failure> {
    fs::write(path, format!("{object:#}\n")).map_err(|error| write_error(path, &error))
}

/// Fetches the inputs of the plan of an edition, by default of the official one, if they are
/// published.
pub(super) async fn fetch_source(
    server: &Server,
    tournament: &Tournament,
    edition: Option<i32>,
) -> Result<Option<EditionSource>, Failure> {
    if tournament.seed.is_empty() {
        return Ok(None);
    }
    let tournament = tournament.name.clone();
    let request = GetEditionSourceRequest { tournament, edition };
    let source = match request.send(server).await {
        Ok(source) => source,
        Err(status) if status.code() == Code::Unimplemented => return Ok(None),
        Err(status) => return Err(status.into()),
    };
    EditionSource::try_from(source).map(Some).map_err(malformed_response)
}

fn tournament_json(
    tournament: &Tournament,
    (edition, state): (i32, &str),
    source: Option<EditionSource>,
) -> Value {
    let mut object = json!({
        "tournament": tournament.name,
        "game": tournament.game,
        "edition": edition,
        "state": state,
        "tournament_state": tournament.state,
        "seed_hash": hex(&tournament.seed_hash),
        "seed": (!tournament.seed.is_empty()).then(|| hex(&tournament.seed)),
        "beacon": beacon_json(tournament.beacon.as_ref()),
        "settings": settings(tournament),
    });
    // The coordinator stores the beacon's name separately; in a tournament file it is a key.
    if let Some(beacon) = &tournament.beacon {
        object["settings"]["beacon"] = json!(beacon.name);
    }
    // The time of the value differs from run to run.
    if let Some(beacon) = object["beacon"].as_object_mut() {
        beacon.shift_remove("set_at");
    }
    if let Some(source) = source {
        object["source"] = json!(source);
    }
    object
}

fn ranking_json(ranking: &GetRankingResponse) -> Value {
    let places: Value = ranking.standings.iter().map(standing_json).collect();
    merge(fields!(ranking; edition, matches, counted, columns), json!({ "places": places }))
}

/// A match by its position in the schedule of its edition.
fn match_json(position: i64, played: &MatchStatus) -> Value {
    let line = merge(json!({ "match": position }), result_json(played));
    let seed = played.seed_key.map(|deal| json!({ "deal": deal, "seed": hex(&played.seed) }));
    merge(line, seed.unwrap_or_default())
}

/// Writes the record of a match; returns whether there is one.
async fn write_record(server: &Server, name: &MatchName, path: &Path) -> Result<bool, Failure> {
    match record_download::open(server, name).await? {
        Ok(record) => record.save(path).await.map(|()| true),
        Err(_) => Ok(false),
    }
}
