//! `arbiter ranking T`: leaderboards, and the place of one bot in them.

mod place;
mod show;

use std::convert::Infallible;
use std::ops::ControlFlow;

use arbiter_proto::v1::{
    GetRankingRequest, GetRankingResponse, GetTournamentRequest, LeaderboardRef,
};
use clap::{Args, ValueEnum};

use super::client::{Client, Server, interrupt};
use super::follow::follow;
use super::tournament::forecast;
use crate::failure::Failure;
use crate::output::{Output, print, tell};

pub(super) use show::place_json;

/// Show the leaderboard of a tournament: the official one, unless an edition is named.
#[derive(Debug, Args)]
#[command(
    after_help = "A rank with = is shared. Numbers that do not fit 64 bits are texts in JSON.

Examples:
  arbiter ranking finals
  arbiter ranking finals --edition 3 --limit 20
  arbiter ranking finals --format csv > finals.csv
  arbiter ranking finals --bot mybot
  arbiter ranking finals --limit 10 --watch"
)]
pub(super) struct Ranking {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// The leaderboard of this edition, whether it is complete or not.
    #[arg(long, value_name = "E")]
    edition: Option<i32>,
    /// A table for people, one JSON object a line, or comma-separated values (RFC 4180).
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Places to leave out at the top.
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u32,
    /// Places to show at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Only bots whose name holds this text, capital or small.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// The place of this bot, how it fared against each other, and its places in other editions.
    #[arg(long, conflicts_with_all = ["offset", "limit", "name", "watch"])]
    bot: Option<String>,
    /// Show it again whenever it changes, until Ctrl-C.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    client: Client,
}

/// How a leaderboard is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    #[default]
    Table,
    Json,
    Csv,
}

/// The most places that come at a time.
const PAGE: u32 = 1000;

/// How often a leaderboard that changes while it is read is read again.
const READINGS: usize = 5;

impl Ranking {
    pub(super) fn run(mut self) -> Result<(), Failure> {
        if self.json {
            self.format = Format::Json;
        }
        if let Some(bot) = &self.bot {
            return place::run(&self, bot);
        }
        if self.watch {
            return self.client.run(async |server| self.follow(&server).await);
        }
        let (found, done) = self.client.run(async |server| {
            let limit = self.limit.unwrap_or(u32::MAX);
            let found = whole(&server, &self.request(0), limit).await?;
            let playing = found.running.filter(|_| self.format == Format::Table);
            let done = match playing {
                Some(playing) => self.forecast(&server, playing.edition).await?,
                None => None,
            };
            Ok((found, done))
        })?;
        print(|out| show::page(out, &found, done.as_deref(), self.offset, self.format))
    }

    fn board(&self) -> LeaderboardRef {
        LeaderboardRef { tournament: self.tournament.clone(), edition: self.edition }
    }

    fn request(&self, limit: u32) -> GetRankingRequest {
        let (offset, name) = (self.offset, self.name.clone().unwrap_or_default());
        GetRankingRequest { leaderboard: Some(self.board()), offset, limit, name_contains: name }
    }

    /// When an edition that is being played will be complete, if that can be said.
    async fn forecast(&self, server: &Server, edition: i32) -> Result<Option<String>, Failure> {
        let found =
            server.ask(GetTournamentRequest { tournament: self.tournament.clone() }).await?;
        let playing = found.editions.iter().find(|found| found.number == edition);
        Ok(playing.and_then(forecast))
    }

    /// Shows a page again whenever it changes, until the user has seen enough.
    async fn follow(&self, server: &Server) -> Result<(), Failure> {
        let request = self.request(self.limit.unwrap_or(0).min(PAGE));
        let open = async || server.rankings().watch_ranking(request.clone()).await;
        let mut out = Output::new();
        let see = |page: GetRankingResponse| {
            show::again(&mut out, &page, self.offset, self.format)?;
            Ok(ControlFlow::<Infallible>::Continue(()))
        };
        tokio::select! {
            ended = follow(false, open, see, tell) => match ended? {},
            () = interrupt() => Ok(()),
        }
    }
}

/// Reads at most `limit` places, all as they were at one moment.
///
/// # Errors
/// If the coordinator refuses, or the leaderboard changes faster than it can be read.
pub(super) async fn whole(
    server: &Server,
    first: &GetRankingRequest,
    limit: u32,
) -> Result<GetRankingResponse, Failure> {
    for _ in 0..READINGS {
        if let Some(found) = read(server, first, limit).await? {
            return Ok(found);
        }
    }
    Err(Failure::Negative(format!(
        "the leaderboard changes while it is read; ask for {PAGE} places with --limit, or wait \
         until the edition is complete"
    )))
}

/// Reads page after page; nothing if matches were counted meanwhile.
async fn read(
    server: &Server,
    first: &GetRankingRequest,
    limit: u32,
) -> Result<Option<GetRankingResponse>, Failure> {
    let mut request = GetRankingRequest { limit: limit.min(PAGE), ..first.clone() };
    let mut found = server.ask(request.clone()).await?;
    loop {
        let so_far = u32::try_from(found.standings.len()).unwrap_or(u32::MAX);
        let due = found.bots.saturating_sub(first.offset).min(limit);
        if so_far >= due {
            return Ok(Some(found));
        }
        request.offset = first.offset.saturating_add(so_far);
        request.limit = (due - so_far).min(PAGE);
        let page = server.ask(request.clone()).await?;
        if (page.edition, page.counted, page.bots) != (found.edition, found.counted, found.bots)
            || page.standings.is_empty()
        {
            return Ok(None);
        }
        found.standings.extend(page.standings);
    }
}

/// Shows a whole leaderboard as a table.
pub(super) fn show_table(out: &mut Output, found: &GetRankingResponse) -> Result<(), Failure> {
    show::page(out, found, None, 0, Format::Table)
}
