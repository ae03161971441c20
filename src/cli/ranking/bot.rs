//! `arbiter ranking T --bot BOT`: one bot's standing, head-to-head results and history.

use arbiter_proto::edition_status::EditionStatus;
use arbiter_proto::v1::{
    GetHeadToHeadRequest, GetHistoryRequest, GetRankingRequest, GetRankingResponse,
    GetStandingRequest, GetStandingResponse, HeadToHead, LeaderboardRef,
};
use arbiter_ranking::statistics::text;
use serde_json::{Value, json};
use tonic::Code;

use super::print::{rank, standing_json, table};
use super::{Format, Ranking};
use crate::cli::client::{Request as _, Server};
use crate::failure::Failure;
use crate::output::{Columns, Output, merge, print, score_heading};

/// All ranking data of a bot.
struct BotRanking {
    edition: i32,
    status: EditionStatus,
    columns: Vec<String>,
    standing: GetStandingResponse,
    /// The head-to-head results, or why there are none.
    head_to_head: Result<Vec<HeadToHead>, String>,
    history: Vec<GetStandingResponse>,
}

/// Prints the ranking data of a bot.
pub(super) fn run(args: &Ranking, bot: &str) -> Result<(), Failure> {
    if args.format == Format::Csv {
        return Err(Failure::usage("--bot shows several tables; use --format table or json"));
    }
    let ranking = args.client.run(async |server| fetch(&server, args.leaderboard(), bot).await)?;
    let json = args.format == Format::Json;
    print(|out| if json { print_json(out, &ranking) } else { show(out, bot, &ranking) })
}

async fn fetch(
    server: &Server,
    leaderboard: LeaderboardRef,
    bot: &str,
) -> Result<BotRanking, Failure> {
    let tournament = leaderboard.tournament.clone();
    let request =
        GetStandingRequest { leaderboard: Some(leaderboard.clone()), bot: bot.to_owned() };
    let standing = server.send(request).await?;
    // The request may have left out the owner.
    let bot = standing.standing.as_ref().map_or_else(|| bot.to_owned(), |found| found.bot.clone());
    // Use the edition of this standing, even if another one becomes official meanwhile.
    let leaderboard = LeaderboardRef { edition: Some(standing.edition), ..leaderboard };
    let request = GetRankingRequest {
        leaderboard: Some(leaderboard.clone()),
        limit: 1,
        ..Default::default()
    };
    let GetRankingResponse { columns, official, state, rehearsal, .. } =
        server.send(request).await?;
    let status = EditionStatus::of(official, &state, rehearsal);
    let request = GetHeadToHeadRequest { leaderboard: Some(leaderboard), bot: bot.clone() };
    let head_to_head = match request.send(server).await {
        Ok(response) => Ok(response.results),
        Err(status) if status.code() == Code::FailedPrecondition => {
            Err(status.message().to_owned())
        }
        Err(status) => return Err(status.into()),
    };
    let history = server.send(GetHistoryRequest { tournament, bot }).await?.standings;
    Ok(BotRanking { edition: standing.edition, status, columns, standing, head_to_head, history })
}

fn show(out: &mut Output, bot: &str, ranking: &BotRanking) -> Result<(), Failure> {
    out.line(&format!("{bot} in edition {}, {}", ranking.edition, ranking.status))?;
    out.table(&table(ranking.standing.standing.iter(), &ranking.columns))?;
    let mut head_to_head = Columns::new(["against", "matches", "won", "drawn", "lost"], &[0]);
    for HeadToHead { opponent: other, matches, won, drawn, lost } in
        ranking.head_to_head.iter().flatten()
    {
        let counts = [matches, won, drawn, lost].map(i64::to_string);
        head_to_head.push([other.clone()].into_iter().chain(counts).collect());
    }
    if !head_to_head.is_empty() {
        out.line("")?;
        out.table(&head_to_head)?;
    }
    if let Err(why) = &ranking.head_to_head {
        out.line("")?;
        out.line(&format!("warning: {why}"))?;
    }
    let score = score_heading(&ranking.columns);
    let header = ["edition", "#", "version", "matches", &score, "mean"];
    let mut history = Columns::new(header, &[4]);
    for GetStandingResponse { edition, standing, .. } in &ranking.history {
        let standing = standing.clone().unwrap_or_default();
        history.push(vec![
            edition.to_string(),
            rank(&standing),
            standing.version.to_string(),
            standing.matches.to_string(),
            standing.score.join(" "),
            text::mean(standing.mean, None),
        ]);
    }
    if !history.is_empty() {
        out.line("")?;
        out.table(&history)?;
    }
    Ok(())
}

fn print_json(out: &mut Output, ranking: &BotRanking) -> Result<(), Failure> {
    let mut standing = edition_standing_json(&ranking.standing);
    standing["columns"] = json!(ranking.columns);
    out.json(&json!({ "standing": standing }))?;
    if let Err(why) = &ranking.head_to_head {
        out.json(&json!({ "warning": why }))?;
    }
    for HeadToHead { opponent: other, matches, won, drawn, lost } in
        ranking.head_to_head.iter().flatten()
    {
        let results = json!({"against": other, "matches": matches, "won": won, "drawn": drawn,
            "lost": lost});
        out.json(&json!({ "meeting": results }))?;
    }
    ranking
        .history
        .iter()
        .try_for_each(|former| out.json(&json!({ "history": edition_standing_json(former) })))
}

/// A standing with its edition.
fn edition_standing_json(edition_standing: &GetStandingResponse) -> Value {
    let standing = edition_standing.standing.as_ref().map_or(Value::Null, standing_json);
    merge(json!({ "edition": edition_standing.edition }), standing)
}
