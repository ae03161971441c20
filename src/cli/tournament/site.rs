//! `arbiter tournament export T --site DIR`: a copy of a tournament for any web server.
//!
//! A site is for everybody. So all requests are sent without the caller's token, and the
//! coordinator leaves out what is private or frozen: hidden results, standard error, evidence, and
//! records that are not published. The pages are made by [`arbiter_coordinator::web::static_site`].
//!
//! A site is written to a new folder beside its destination, which it replaces in one step; see
//! [`site_files`]. Two exports of the same state have the same bytes.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use arbiter_coordinator::web::static_site::{
    self, LinkedPages, MatchTable, Meetings, ReplayCount, StaticSite, bots_text, paths,
    ranking_text, statistics_text,
};
use arbiter_games::Games;
use arbiter_proto::ids::{MatchName, MatchNumber};
use arbiter_proto::v1::{
    Bot, Certificate, CertifyEditionRequest, GetRankingRequest, GetRankingResponse,
    GetStatisticsResponse, GetTournamentRequest, LeaderboardRef, ListBotsRequest,
    ListMatchesRequest, Standing, Tournament,
};
use tonic::Code;

use super::export::{Export, ExportedMatch, write_error};
use super::site_files;
use crate::cli::client::{Request as _, Server, malformed_response};
use crate::cli::ranking::{fetch_ranking, fetch_statistics};
use crate::cli::record_download;
use crate::failure::Failure;
use crate::output::eprint_line;
use crate::play::progress;
use crate::replay_page::replay_page;

/// The number of matches on a page.
const MATCHES_PER_PAGE: usize = 200;
/// No limit on the number of standings.
const ALL: u32 = u32::MAX;

/// What a site is written from.
pub(super) struct SiteExport<'a> {
    pub(super) games: &'a Games,
    /// The export of the edition's data, which a site contains.
    pub(super) data: &'a Export,
    /// Maximum number of replays. None: all.
    pub(super) max_replays: Option<usize>,
}

/// What is fetched before the pages are written.
struct Fetched {
    tournament: Tournament,
    ranking: GetRankingResponse,
    statistics: Option<GetStatisticsResponse>,
    certificate: Option<Certificate>,
    bots: Vec<Bot>,
}

impl SiteExport<'_> {
    /// Writes a site to the new directory `directory` and returns a description.
    pub(super) async fn write(&self, server: &Server, directory: &Path) -> Result<String, Failure> {
        let fetched = self.fetch(server).await?;
        let writer = SiteWriter::new(directory)?;
        let data = directory.join(paths::DATA_FOLDER);
        let (edition, matches) = self.data.write_edition(server, &data).await?;
        if edition != fetched.ranking.edition {
            return Err(Failure::Negative(
                "another edition became official meanwhile; export again".to_owned(),
            ));
        }
        let has_statistics = fetched.statistics.is_some();
        let tournament = fetched.tournament.clone();
        let site = StaticSite::new(self.games, tournament, &fetched.bots, has_statistics);
        let rankings = Self::write_pages(server, &writer, &site, &fetched).await?;
        let replays = self.write_replays(server, &writer, &site, &matches).await?;
        let pages = LinkedPages::new(edition, &rankings, &replays);
        self.write_texts(&writer, &site, &fetched, &pages)?;
        let total = ReplayCount { replays: replays.len(), matches: matches.len() };
        self.write_matches(server, &writer, &site, &fetched, &replays, total).await?;
        site_files::write_list(directory).map_err(|error| write_error(directory, &error))?;
        let name = &fetched.tournament.name;
        let replay_count = total.replays;
        let count = total.matches;
        Ok(format!(
            "exported a site of edition {edition} of {name} with {count} matches and \
             {replay_count} replays"
        ))
    }

    async fn fetch(&self, server: &Server) -> Result<Fetched, Failure> {
        let name = self.data.tournament.clone();
        let request = GetTournamentRequest { tournament: name.clone(), edition: None };
        let tournament = server.send(request).await?;
        let ranking = match board(server, &name, self.data.edition).await {
            Err(Failure::Refused(_)) if !tournament.freeze_notice.is_empty() => {
                return Err(Failure::Negative(format!(
                    "the leaderboards of {name} are {}, and this edition was not complete before; \
                     a site shows only what everyone sees, so export it then",
                    tournament.freeze_notice
                )));
            }
            ranking => ranking?,
        };
        let edition = Some(ranking.edition);
        let request = ListBotsRequest { tournament: name.clone() };
        let bots = server.send(request).await?.bots;
        let request = CertifyEditionRequest {
            tournament: name.clone(),
            edition,
            ..CertifyEditionRequest::default()
        };
        let certificate = unless_refused(request.send(server).await)?;
        let reference = LeaderboardRef { tournament: name, edition };
        let statistics = fetch_statistics(server, reference).await?;
        Ok(Fetched { tournament, ranking, statistics, certificate, bots })
    }

    /// Writes all pages but those of matches, replays and texts. Returns the editions whose
    /// leaderboards have a page.
    async fn write_pages(
        server: &Server,
        writer: &SiteWriter,
        site: &StaticSite,
        fetched: &Fetched,
    ) -> Result<Vec<i32>, Failure> {
        let Fetched { tournament, ranking, statistics, certificate, bots } = fetched;
        let mut shown_editions = Vec::new();
        for edition in &tournament.editions {
            let number = edition.number;
            let is_main = number == ranking.edition;
            if !is_main && edition.state != "complete" {
                continue;
            }
            let request = board(server, &tournament.name, Some(number)).await;
            let ranking = match request {
                Ok(ranking) => ranking,
                // A freeze hides it.
                Err(Failure::Refused(_)) => continue,
                Err(failure) => return Err(failure),
            };
            writer.write(&paths::ranking(number), site.ranking(&ranking))?;
            let file = data_file(&format!("rankings/edition-{number}.csv"));
            writer.write(&file, ranking_text(&ranking.columns, &ranking.standings, true))?;
            shown_editions.push(number);
        }
        let standing = |bot: &Bot| -> Option<&Standing> {
            ranking.standings.iter().find(|place| place.bot == bot.name)
        };
        writer.write(paths::BOTS, site.bots(bots.iter().map(|bot| (bot, standing(bot)))))?;
        writer.write(&data_file("bots.csv"), bots_text(bots))?;
        let ranking_csv = ranking_text(&ranking.columns, &ranking.standings, true);
        writer.write(&data_file("ranking.csv"), ranking_csv)?;
        if let Some(all) = statistics {
            writer.write(paths::STATISTICS, site.statistics(all))?;
            writer.write(&data_file("statistics.csv"), statistics_text(&all.statistics))?;
        }
        writer.write(paths::ABOUT, site.about(certificate.as_ref()))?;
        writer.write(paths::STYLE, static_site::style())?;
        writer.write(paths::ICON, static_site::icon())?;
        Ok(shown_editions)
    }

    /// Writes the pages with texts, whose links lead to pages that the site has.
    fn write_texts(
        &self,
        writer: &SiteWriter,
        site: &StaticSite,
        fetched: &Fetched,
        pages: &LinkedPages,
    ) -> Result<(), Failure> {
        writer.write(paths::INDEX, site.index(&fetched.ranking, pages))?;
        let game = self.games.iter().find(|game| game.name == fetched.tournament.game);
        let guide = game.map(|game| game.guide.text).unwrap_or_default();
        writer.write(paths::HOW_TO_PLAY, site.how_to_play(guide, pages))
    }

    /// Writes the replays that everybody may see, and returns the numbers of their matches. With a
    /// limit, those of the matches with the greatest numbers.
    async fn write_replays(
        &self,
        server: &Server,
        writer: &SiteWriter,
        site: &StaticSite,
        matches: &[ExportedMatch],
    ) -> Result<HashSet<MatchNumber>, Failure> {
        let mut numbers: Vec<_> = matches.iter().map(|played| played.number).collect();
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        numbers.truncate(self.max_replays.unwrap_or(usize::MAX));
        let bar = progress::bar(numbers.len(), "replays");
        let names = site.shown_names();
        let mut written = HashSet::new();
        for number in numbers {
            let name = MatchName { tournament: self.data.tournament.clone(), number };
            bar.inc(1);
            let Some(record) = record_download::open_if_visible(server, &name).await? else {
                // If no replay is published, none of the others is.
                if written.is_empty() {
                    break;
                }
                continue;
            };
            let mut text = Vec::new();
            record.copy(&mut text).await?;
            let title = format!("{}: match {number}", site.title());
            let path = paths::replay(number.0);
            let list = format!("{}{}", paths::up(&path), paths::FIRST_MATCHES);
            let back = Some(("Matches", &list[..]));
            let page = replay_page(self.games, &text[..], Some(&title), back, &names);
            let page = page.map_err(|difference| {
                Failure::Negative(format!("the record of {name} cannot be replayed: {difference}"))
            })?;
            writer.write(&path, page)?;
            written.insert(number);
        }
        bar.finish_and_clear();
        if written.is_empty() && self.max_replays != Some(0) {
            eprint_line(
                "the site has no replays: this tournament does not show them to everybody; see \
                 [public] in docs/tournaments.md",
            );
        }
        Ok(written)
    }

    /// Writes the pages of matches, the head-to-head results and the files with matches.
    async fn write_matches(
        &self,
        server: &Server,
        writer: &SiteWriter,
        site: &StaticSite,
        fetched: &Fetched,
        replays: &HashSet<MatchNumber>,
        total: ReplayCount,
    ) -> Result<(), Failure> {
        let ranking = &fetched.ranking;
        let request = ListMatchesRequest {
            tournament: self.data.tournament.clone(),
            edition: Some(ranking.edition),
            rounds: true,
            ..ListMatchesRequest::default()
        };
        let mut stream = server.tournaments().list_matches(request).await?.into_inner();
        let mut meetings = Meetings::default();
        let mut table = MatchTable::new(&ranking.columns, true);
        let mut file = writer.create(&data_file("matches.csv"))?;
        let mut page = Vec::new();
        let mut page_number = 1;
        while let Some(played) = stream.message().await? {
            if page.len() == MATCHES_PER_PAGE {
                let text = site.matches(page_number, &page, &ranking.columns, total, true);
                writer.write(&paths::matches(page_number), text)?;
                page.clear();
                page_number += 1;
            }
            meetings.add(&played);
            table.push(&played);
            file.write(&table.take())?;
            let name: MatchName = played.r#match.parse().map_err(malformed_response)?;
            page.push((played, replays.contains(&name.number)));
        }
        file.write(&table.take())?;
        file.finish()?;
        let text = site.matches(page_number, &page, &ranking.columns, total, false);
        writer.write(&paths::matches(page_number), text)?;
        writer.write(paths::HEAD_TO_HEAD, site.head_to_head(ranking, &meetings))?;
        writer.write(paths::DATA, site.data(&writer.data_files()?))
    }
}

/// The path of a file with data.
fn data_file(name: &str) -> String {
    format!("{}/{name}", paths::DATA_FOLDER)
}

async fn board(
    server: &Server,
    tournament: &str,
    edition: Option<i32>,
) -> Result<GetRankingResponse, Failure> {
    let board = LeaderboardRef { tournament: tournament.to_owned(), edition };
    let request = GetRankingRequest { leaderboard: Some(board), ..Default::default() };
    fetch_ranking(server, &request, ALL).await
}

/// Turns a refusal into `None`: what is asked for is not there, or is not public.
fn unless_refused<T>(result: Result<T, tonic::Status>) -> Result<Option<T>, Failure> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(status)
            if matches!(status.code(), Code::FailedPrecondition | Code::PermissionDenied) =>
        {
            Ok(None)
        }
        Err(status) => Err(status.into()),
    }
}

/// Writes the files of a site.
struct SiteWriter {
    directory: PathBuf,
}

impl SiteWriter {
    fn new(directory: &Path) -> Result<Self, Failure> {
        for folder in ["", "assets", "matches", "rankings", "replays"] {
            let folder = directory.join(folder);
            fs::create_dir_all(&folder).map_err(|error| write_error(&folder, &error))?;
        }
        Ok(Self { directory: directory.to_owned() })
    }

    /// Writes a file at this path in the site.
    fn write(&self, path: &str, contents: impl AsRef<[u8]>) -> Result<(), Failure> {
        let mut file = self.create(path)?;
        file.write(contents.as_ref())?;
        file.finish()
    }

    fn create(&self, path: &str) -> Result<SiteFile, Failure> {
        let path = self.directory.join(path);
        let failed = |error| write_error(&path, &error);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let file = File::create(&path).map_err(failed)?;
        Ok(SiteFile { file: BufWriter::new(file), path })
    }

    /// The files with data in this site, and what they contain.
    fn data_files(&self) -> Result<Vec<(String, &'static str)>, Failure> {
        const FILES: [(&str, &str); 7] = [
            ("matches.csv", "the matches, a line for each seat"),
            ("ranking.csv", "the leaderboard"),
            ("statistics.csv", "means, ratings and possible ranks"),
            ("bots.csv", "all bots"),
            ("tournament.json", "settings, seed, and the inputs of the schedule"),
            ("ranking.json", "the leaderboard, with all numbers"),
            ("matches.jsonl", "the matches, by their position in the schedule"),
        ];
        let mut files: Vec<_> =
            FILES.map(|(name, meaning)| (data_file(name), meaning)).into_iter().collect();
        for (folder, meaning) in
            [("rankings", "the leaderboard of an edition"), ("packages", "the game package")]
        {
            let below = self.directory.join(paths::DATA_FOLDER).join(folder);
            let Ok(entries) = fs::read_dir(&below) else { continue };
            let mut names: Vec<_> = entries
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                .collect::<std::io::Result<_>>()
                .map_err(|error| write_error(&below, &error))?;
            names.sort_unstable();
            files.extend(
                names.into_iter().map(|name| (data_file(&format!("{folder}/{name}")), meaning)),
            );
        }
        files.retain(|(path, _)| self.directory.join(path).is_file());
        Ok(files)
    }
}

/// A file of a site that is being written.
struct SiteFile {
    file: BufWriter<File>,
    path: PathBuf,
}

impl SiteFile {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|error| write_error(&self.path, &error))
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.file.flush().map_err(|error| write_error(&self.path, &error))
    }
}
