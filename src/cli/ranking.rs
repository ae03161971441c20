//! `arbiter ranking T`: leaderboards, and the standing of one bot.

mod bot;
mod print;
mod statistics;

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

pub(super) use print::standing_json;

/// Show a leaderboard: the official one, or that of an edition.
#[derive(Debug, Args)]
#[command(
    after_help = "A rank with = is shared. In JSON, numbers that do not fit 64 bits are strings.

Examples:
  arbiter ranking finals
  arbiter ranking finals --edition 3 --limit 20
  arbiter ranking finals --format csv > finals.csv
  arbiter ranking finals --bot mybot
  arbiter ranking finals --stats
  arbiter ranking finals --limit 10 --watch"
)]
pub(super) struct Ranking {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// The edition, complete or running; by default the official one.
    #[arg(long, value_name = "E")]
    edition: Option<i32>,
    /// Output format: table, json (one object per line) or csv (RFC 4180).
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Skip this many bots at the top.
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u32,
    /// Maximum number of bots.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Only bots whose name contains this text (case-insensitive).
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Show this bot's standing, its results against each opponent, and its standings in other
    /// editions.
    #[arg(long, conflicts_with_all = ["offset", "limit", "name", "watch"])]
    bot: Option<String>,
    /// Show what can be concluded: possible ranks, intervals, probabilities, ratings, and how many
    /// more matches are needed. docs/statistics.md explains the figures.
    #[arg(long, conflicts_with_all = ["bot", "watch"])]
    stats: bool,
    /// Show every change, until Ctrl-C.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    client: Client,
}

pub(super) use statistics::fetch_statistics;

/// How a leaderboard is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    #[default]
    Table,
    Json,
    Csv,
}

/// Maximum number of standings per request.
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
        if self.stats {
            return statistics::run(&self);
        }
        if self.watch {
            return self.client.run(async |server| self.follow(&server).await);
        }
        let (ranking, estimate) = self.client.run(async |server| {
            let limit = self.limit.unwrap_or(u32::MAX);
            let ranking = fetch_ranking(&server, &self.request(0), limit).await?;
            let playing = ranking.running.filter(|_| self.format == Format::Table);
            let estimate = match playing {
                Some(playing) => self.completion_estimate(&server, playing.edition).await?,
                None => None,
            };
            Ok((ranking, estimate))
        })?;
        print(|out| print::page(out, &ranking, estimate.as_deref(), self.offset, self.format))
    }

    fn leaderboard(&self) -> LeaderboardRef {
        LeaderboardRef { tournament: self.tournament.clone(), edition: self.edition }
    }

    fn request(&self, limit: u32) -> GetRankingRequest {
        let offset = self.offset;
        let name = self.name.clone().unwrap_or_default();
        GetRankingRequest {
            leaderboard: Some(self.leaderboard()),
            offset,
            limit,
            name_contains: name,
            rank_sets: false,
        }
    }

    /// When a running edition will be complete, if there is an estimate.
    async fn completion_estimate(
        &self,
        server: &Server,
        edition: i32,
    ) -> Result<Option<String>, Failure> {
        let tournament = server
            .send(GetTournamentRequest { tournament: self.tournament.clone(), edition: None })
            .await?;
        let edition_progress = tournament.editions.iter().find(|other| other.number == edition);
        Ok(edition_progress.and_then(completion_estimate))
    }

    /// Shows every change of a page until the user interrupts.
    async fn follow(&self, server: &Server) -> Result<(), Failure> {
        let request = self.request(self.limit.unwrap_or(0).min(PAGE));
        let open = async || server.rankings().watch_ranking(request.clone()).await;
        let mut out = Output::new();
        let show_page = |page: GetRankingResponse| {
            print::reprint(&mut out, &page, self.offset, self.format)?;
            Ok(ControlFlow::<Infallible>::Continue(()))
        };
        tokio::select! {
            result = follow(false, open, show_page, eprint_line) => match result? {},
            () = interrupt() => Ok(()),
        }
    }
}

/// Fetches at most `limit` standings from one consistent state.
///
/// # Errors
/// If the coordinator refuses, or the leaderboard changes faster than it can be read.
pub(super) async fn fetch_ranking(
    server: &Server,
    first: &GetRankingRequest,
    limit: u32,
) -> Result<GetRankingResponse, Failure> {
    for _ in 0..MAX_READS {
        if let Some(ranking) = try_fetch_ranking(server, first, limit).await? {
            return Ok(ranking);
        }
    }
    Err(Failure::Negative(format!(
        "the leaderboard keeps changing; fetch one page with --limit {PAGE}, or wait \
         until the edition is complete"
    )))
}

/// Fetches page after page; `None` if the leaderboard changed meanwhile.
async fn try_fetch_ranking(
    server: &Server,
    first: &GetRankingRequest,
    limit: u32,
) -> Result<Option<GetRankingResponse>, Failure> {
    let mut request = GetRankingRequest { limit: limit.min(PAGE), ..first.clone() };
    let mut ranking = server.send(request.clone()).await?;
    loop {
        let count = u32::try_from(ranking.standings.len()).unwrap_or(u32::MAX);
        let total = ranking.bots.saturating_sub(first.offset).min(limit);
        if count >= total {
            return Ok(Some(ranking));
        }
        request.offset = first.offset.saturating_add(count);
        request.limit = (total - count).min(PAGE);
        let page = server.send(request.clone()).await?;
        if (page.edition, page.counted, page.bots)
            != (ranking.edition, ranking.counted, ranking.bots)
            || page.standings.is_empty()
        {
            return Ok(None);
        }
        ranking.standings.extend(page.standings);
    }
}

/// Shows a whole leaderboard as a table.
pub(super) fn show_table(out: &mut Output, ranking: &GetRankingResponse) -> Result<(), Failure> {
    print::page(out, ranking, None, 0, Format::Table)
}
