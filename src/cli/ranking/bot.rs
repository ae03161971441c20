//! `arbiter ranking T --bot BOT`: one bot's place, head-to-head results and history.

use arbiter_proto::v1::{
    GetHeadToHeadRequest, GetHistoryRequest, GetRankingRequest, GetStandingRequest,
    GetStandingResponse, HeadToHead, LeaderboardRef,
};
use serde_json::{Value, json};
use tonic::Code;

use super::print::{place_json, rank, table};
use super::{Format, Ranking};
use crate::cli::client::{Request as _, Server};
use crate::failure::Failure;
use crate::output::{Columns, Output, mean, merged, print};

/// All ranking data of a bot.
struct BotRanking {
    edition: i32,
    columns: Vec<String>,
    place: GetStandingResponse,
    /// The head-to-head results, or why there are none.
    meetings: Result<Vec<HeadToHead>, String>,
    history: Vec<GetStandingResponse>,
}

/// Prints the ranking data of a bot.
pub(super) fn run(ranking: &Ranking, bot: &str) -> Result<(), Failure> {
    if ranking.format == Format::Csv {
        return Err(Failure::usage("--bot shows several tables; use --format table or json"));
    }
    let found = ranking.client.run(async |server| fetch(&server, ranking.board(), bot).await)?;
    let json = ranking.format == Format::Json;
    print(|out| if json { print_json(out, &found) } else { show(out, bot, &found) })
}

async fn fetch(server: &Server, board: LeaderboardRef, bot: &str) -> Result<BotRanking, Failure> {
    let tournament = board.tournament.clone();
    let bot = bot.to_owned();
    let place = server
        .send(GetStandingRequest { leaderboard: Some(board.clone()), bot: bot.clone() })
        .await?;
    // Stay in the edition of this place, even if another one becomes official meanwhile.
    let board = LeaderboardRef { edition: Some(place.edition), ..board };
    let request =
        GetRankingRequest { leaderboard: Some(board.clone()), limit: 1, ..Default::default() };
    let columns = server.send(request).await?.columns;
    let request = GetHeadToHeadRequest { leaderboard: Some(board), bot: bot.clone() };
    let meetings = match request.send(server).await {
        Ok(found) => Ok(found.results),
        Err(status) if status.code() == Code::FailedPrecondition => {
            Err(status.message().to_owned())
        }
        Err(status) => return Err(status.into()),
    };
    let history = server.send(GetHistoryRequest { tournament, bot }).await?.standings;
    Ok(BotRanking { edition: place.edition, columns, place, meetings, history })
}

fn show(out: &mut Output, bot: &str, found: &BotRanking) -> Result<(), Failure> {
    out.line(&format!("{bot} in edition {}", found.edition))?;
    out.table(&table(found.place.standing.iter(), &found.columns))?;
    let mut meetings = Columns::new(["against", "matches", "won", "drawn", "lost"], &[0]);
    for HeadToHead { opponent: other, matches, won, drawn, lost } in found.meetings.iter().flatten()
    {
        let counts = [matches, won, drawn, lost].map(i64::to_string);
        meetings.push([other.clone()].into_iter().chain(counts).collect());
    }
    if !meetings.is_empty() {
        out.line("")?;
        out.table(&meetings)?;
    }
    if let Err(why) = &found.meetings {
        out.line("")?;
        out.line(&format!("warning: {why}"))?;
    }
    let header = ["edition", "#", "version", "matches", "score", "mean ± 95 %"];
    let mut history = Columns::new(header, &[4]);
    for GetStandingResponse { edition, standing: place } in &found.history {
        let place = place.clone().unwrap_or_default();
        history.push(vec![
            edition.to_string(),
            rank(&place),
            place.version.to_string(),
            place.matches.to_string(),
            place.score.join(" "),
            mean(place.mean, place.margin),
        ]);
    }
    if !history.is_empty() {
        out.line("")?;
        out.table(&history)?;
    }
    Ok(())
}

fn print_json(out: &mut Output, found: &BotRanking) -> Result<(), Failure> {
    let mut place = placed_json(&found.place);
    place["columns"] = json!(found.columns);
    out.json(&json!({ "place": place }))?;
    if let Err(why) = &found.meetings {
        out.json(&json!({ "warning": why }))?;
    }
    for HeadToHead { opponent: other, matches, won, drawn, lost } in found.meetings.iter().flatten()
    {
        let meeting = json!({"against": other, "matches": matches, "won": won, "drawn": drawn,
            "lost": lost});
        out.json(&json!({ "meeting": meeting }))?;
    }
    found.history.iter().try_for_each(|former| out.json(&json!({ "history": placed_json(former) })))
}

/// A place with its edition.
fn placed_json(placed: &GetStandingResponse) -> Value {
    let place = placed.standing.as_ref().map_or(Value::Null, place_json);
    merged(json!({ "edition": placed.edition }), place)
}
