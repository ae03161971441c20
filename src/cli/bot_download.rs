//! `arbiter log T BOT --download DIR`: all records of a bot, its trials and its forfeits as files.

use std::fs;
use std::io;
use std::path::Path;

use arbiter_proto::ids::MatchName;
use arbiter_proto::v1::{GetBotLogRequest, GetBotRequest, LogEntry};

use super::client::{Server, malformed_response, unless_interrupted};
use super::{record_download, trial_output};
use crate::failure::Failure;
use crate::output::{count, csv_cell, eprint_line, printable};
use crate::play::progress;

/// The matches of a page of the log, and of a download by default.
const PAGE: u32 = 1000;

/// What to download.
#[derive(Debug)]
pub(super) struct BotDownload<'a> {
    pub(super) tournament: &'a str,
    pub(super) bot: &'a str,
    /// The folder to write. Records that it has already are not downloaded again.
    pub(super) folder: &'a Path,
    /// All matches, not only the newest.
    pub(super) all: bool,
}

/// How many records were downloaded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DownloadCounts {
    pub(super) records: usize,
    /// Matches without a record for the caller.
    pub(super) missing: usize,
    /// Whether there are older matches.
    pub(super) is_cut: bool,
}

impl BotDownload<'_> {
    /// Downloads everything.
    pub(super) async fn run(&self, server: &Server) -> Result<DownloadCounts, Failure> {
        let records = self.folder.join("records");
        fs::create_dir_all(&records).map_err(|error| self.failed(&error))?;
        // The first page shows whether the caller may read the log, before anything is written.
        let mut page = self.page(server, 0).await?;
        self.save_trials(server).await?;
        let mut counts = DownloadCounts::default();
        let mut forfeits = vec!["match,seat,bots,forfeit,reason,wall_us,cpu_us".to_owned()];
        while !page.is_empty() {
            let is_full = page.len() == PAGE as usize;
            let bar = progress::bar(page.len(), "records");
            let mut before = 0;
            for entry in &page {
                let name: MatchName = entry.r#match.parse().map_err(malformed_response)?;
                before = name.number.0.unsigned_abs();
                let file = records.join(format!("{}-{}.jsonl", self.tournament, name.number));
                let is_saved = file.exists() || save_record(server, &name, &file).await?;
                counts.records += usize::from(is_saved);
                counts.missing += usize::from(!is_saved);
                bar.inc(1);
            }
            bar.finish_and_clear();
            forfeits.extend(page.iter().filter_map(forfeit_row));
            counts.is_cut = is_full && !self.all && before > 0;
            // Match 0 is the oldest, and a request for those before 0 would return the newest.
            let is_next = is_full && self.all && before > 0;
            page = if is_next { self.page(server, before).await? } else { Vec::new() };
        }
        self.write("forfeits.csv", &(forfeits.join("\r\n") + "\r\n"))?;
        Ok(counts)
    }

    /// The log from the match before this one; 0 stands for the newest match.
    async fn page(&self, server: &Server, before: u64) -> Result<Vec<LogEntry>, Failure> {
        let tournament = self.tournament.to_owned();
        let bot = self.bot.to_owned();
        let request = GetBotLogRequest { tournament, bot, limit: PAGE, forfeits: false, before };
        Ok(unless_interrupted(server.send(request)).await?.entries)
    }

    async fn save_trials(&self, server: &Server) -> Result<(), Failure> {
        let Self { tournament, bot, .. } = self;
        let request =
            GetBotRequest { tournament: (*tournament).to_owned(), bot: (*bot).to_owned() };
        for version in server.send(request).await?.versions {
            let status = trial_output::get(server, tournament, bot, version.number).await?;
            let folder = format!("versions/{}", version.number);
            let path = self.folder.join(&folder);
            fs::create_dir_all(path).map_err(|error| self.failed(&error))?;
            let text = trial_output::text(tournament, &status).join("\n") + "\n";
            self.write(&format!("{folder}/trial.txt"), &text)?;
            if !status.log.is_empty() {
                self.write(&format!("{folder}/build.log"), &status.log)?;
            }
        }
        Ok(())
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Failure> {
        fs::write(self.folder.join(file), text).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::usage(format!("--download {}: {error}", self.folder.display()))
    }
}

/// Saves a record. Returns whether there is one that the caller may read now.
async fn save_record(server: &Server, name: &MatchName, file: &Path) -> Result<bool, Failure> {
    let Some(record) = record_download::open_if_visible(server, name).await? else {
        return Ok(false);
    };
    unless_interrupted(record.save(file)).await?;
    Ok(true)
}

/// The row of a forfeit or bad reply.
fn forfeit_row(entry: &LogEntry) -> Option<String> {
    let evidence = entry.evidence.as_ref()?;
    let cells = [
        entry.r#match.clone(),
        entry.seat.to_string(),
        entry.bots.join(" "),
        entry.forfeit.clone(),
        evidence.detail.clone(),
        evidence.wall_us.to_string(),
        evidence.cpu_us.to_string(),
    ];
    Some(cells.map(|cell| csv_cell(&cell)).join(","))
}

/// Reports a finished download.
pub(super) fn report(folder: &Path, counts: DownloadCounts) {
    let DownloadCounts { records, missing, is_cut } = counts;
    let folder = folder.display();
    let records = count(records, "record", "records");
    let mut parts = vec![format!("{folder}: {records}, versions, forfeits.csv")];
    if missing > 0 {
        let matches = count(missing, "match has", "matches have");
        parts.push(format!("{matches} no record for you now"));
    }
    if is_cut {
        parts.push("--all also downloads older matches".to_owned());
    }
    eprint_line(&printable(&parts.join("; ")));
}
