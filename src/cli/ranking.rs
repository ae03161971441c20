//! `arbiter ranking T`: leaderboards, and the standing of one bot.

mod bot;
mod print;

use std::convert::Infallible;
use std::ops::ControlFlow;

use arbiter_proto::v1::{
    GetRankingRequest, GetRankingResponse, GetTournamentRequest, LeaderboardRef,
};
use clap::{Args, ValueEnum};

use super::client::{Client, Server, interrupt};
use super::reconnecting_stream::follow;
use super::tournament::completion_estimate;
use crate::failure::Failure;
use crate::output::{Output, eprint_line, print};

pub(super) use print::place_json;

/// Show a leaderboard: the official one, or that of an edition.
#[derive(Debug, Args)]
#[command(
    after_help = "A rank with = is shared. In JSON, numbers that do not fit 64 bits are strings.

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
    /// The leaderboard of this edition, complete or not.
    #[arg(long, value_name = "E")]
    edition: Option<i32>,
    /// Output format: table, json (one object per line) or csv (RFC 4180).
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Skip this many places.
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u32,
    /// Maximum number of places.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Only bots whose name contains this text (case-insensitive).
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Show this bot's place, its results against each opponent and its places in other editions.
    #[arg(long, conflicts_with_all = ["offset", "limit", "name", "watch"])]
    bot: Option<String>,
    /// Show every change, until Ctrl-C.
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

/// Maximum number of places per request.
const PAGE: u32 = 1000;

/// How many times to read a leaderboard that changes while it is read.
const MAX_READS: usize = 5;

impl Ranking {
    pub(super) fn run(mut self) -> Result<(), Failure> {
        if self.json {
            self.format = Format::Json;
        }
        if let Some(bot) = &self.bot {
            return bot::run(&self, bot);
        }
        if self.watch {
            return self.client.run(async |server| self.follow(&server).await);
        }
        let (found, done) = self.client.run(async |server| {
            let limit = self.limit.unwrap_or(u32::MAX);
            let found = whole(&server, &self.request(0), limit).await?;
            let playing = found.running.filter(|_| self.format == Format::Table);
            let done = match playing {
                Some(playing) => self.completion_estimate(&server, playing.edition).await?,
                None => None,
            };
            Ok((found, done))
        })?;
        print(|out| print::page(out, &found, done.as_deref(), self.offset, self.format))
    }

    fn board(&self) -> LeaderboardRef {
        LeaderboardRef { tournament: self.tournament.clone(), edition: self.edition }
    }

    fn request(&self, limit: u32) -> GetRankingRequest {
        let offset = self.offset;
        let name = self.name.clone().unwrap_or_default();
        GetRankingRequest { leaderboard: Some(self.board()), offset, limit, name_contains: name }
    }

    /// When a running edition will be complete, if there is an estimate.
    async fn completion_estimate(
        &self,
        server: &Server,
        edition: i32,
    ) -> Result<Option<String>, Failure> {
        let found =
            server.send(GetTournamentRequest { tournament: self.tournament.clone() }).await?;
        let playing = found.editions.iter().find(|found| found.number == edition);
        Ok(playing.and_then(completion_estimate))
    }

    /// Shows every change of a page until the user interrupts.
    async fn follow(&self, server: &Server) -> Result<(), Failure> {
        let request = self.request(self.limit.unwrap_or(0).min(PAGE));
        let open = async || server.rankings().watch_ranking(request.clone()).await;
        let mut out = Output::new();
        let see = |page: GetRankingResponse| {
            print::reprint(&mut out, &page, self.offset, self.format)?;
            Ok(ControlFlow::<Infallible>::Continue(()))
        };
        tokio::select! {
            ended = follow(false, open, see, eprint_line) => match ended? {},
            () = interrupt() => Ok(()),
        }
    }
}

/// Reads at most `limit` places from one consistent state.
///
/// # Errors
/// If the coordinator refuses, or the leaderboard changes faster than it can be read.
pub(super) async fn whole(
    server: &Server,
    first: &GetRankingRequest,
    limit: u32,
) -> Result<GetRankingResponse, Failure> {
    for _ in 0..MAX_READS {
        if let Some(found) = read(server, first, limit).await? {
            return Ok(found);
        }
    }
    Err(Failure::Negative(format!(
        "the leaderboard keeps changing; read {PAGE} places at once with --limit {PAGE}, or wait \
         until the edition is complete"
    )))
}

/// Reads page after page; `None` if matches were counted meanwhile.
async fn read(
    server: &Server,
    first: &GetRankingRequest,
    limit: u32,
) -> Result<Option<GetRankingResponse>, Failure> {
    let mut request = GetRankingRequest { limit: limit.min(PAGE), ..first.clone() };
    let mut found = server.send(request.clone()).await?;
    loop {
        let count = u32::try_from(found.standings.len()).unwrap_or(u32::MAX);
        let total = found.bots.saturating_sub(first.offset).min(limit);
        if count >= total {
            return Ok(Some(found));
        }
        request.offset = first.offset.saturating_add(count);
        request.limit = (total - count).min(PAGE);
        let page = server.send(request.clone()).await?;
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
    print::page(out, found, None, 0, Format::Table)
}
