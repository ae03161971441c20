//! `arbiter tournament rounds T`: the stages of an edition, and the standings and meetings of one
//! of them.

use arbiter_proto::v1::{
    GetRoundsRequest, GetRoundsResponse, MeetingBot, RoundsStage, StageMeeting, StageRound,
    StageStanding,
};
use arbiter_ranking::statistics::text;
use clap::Args;
use serde_json::{Value, json};

use crate::cli::client::{Client, malformed_response};
use crate::failure::Failure;
use crate::output::{self, Columns, Output, fields, merge, non_empty, print};

/// Show the rounds of a swiss, ladder, gauntlet, knockout or tournament with stages.
#[derive(Debug, Args)]
#[command(after_help = "Shows all stages, and the standings and meetings of one of them. Without \
    --stage it is the last one that has begun, without --round the last round that is over. Of a \
    knockout all rounds are shown.

--json prints the stages, then what is selected, then the standings, then the rounds, one object \
    per line.
--trf prints the report of a swiss of single games in FIDE's format TRF16, which programs of chess \
    arbiters and checkers of pairings read.

Examples:
  arbiter tournament rounds finals
  arbiter tournament rounds finals --stage 1 --round 3
  arbiter tournament rounds finals --edition 2 --json
  arbiter tournament rounds finals --stage 1 --trf > finals.trf")]
pub(super) struct ShowRounds {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// The edition; by default the newest, or the official one while leaderboards are frozen.
    #[arg(long, value_name = "E")]
    edition: Option<i32>,
    /// The stage, from 1; by default the last one that has begun.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..))]
    stage: Option<u32>,
    /// The round of a swiss or ladder, from 1; by default the last one that is over, or the first.
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u32).range(1..))]
    round: Option<u32>,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
    /// Print the report of a swiss in TRF16.
    #[arg(long, conflicts_with = "json")]
    trf: bool,
    #[command(flatten)]
    client: Client,
}

impl ShowRounds {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self { tournament, edition, stage, round, json, trf, client } = self;
        let title = tournament.clone();
        let response = client.send(GetRoundsRequest { tournament, edition, stage, round, trf })?;
        if trf {
            return print(|out| out.bytes(response.trf.as_bytes()));
        }
        let shown = response.stages.iter().find(|stage| stage.number == response.stage);
        let stage = shown.ok_or_else(|| malformed_response("the shown stage is missing"))?;
        print(|out| {
            if json {
                print_json(out, &response)
            } else {
                out.line(&format!("edition {} of {title}", response.edition))?;
                show(out, &response, stage)
            }
        })
    }
}

fn show(
    out: &mut Output,
    response: &GetRoundsResponse,
    stage: &RoundsStage,
) -> Result<(), Failure> {
    let header = ["stage", "kind", "state", "bots", "advance", "rounds over"];
    let mut stages = Columns::new(header, &[1, 2]);
    for stage in &response.stages {
        stages.push(vec![
            stage.number.to_string(),
            stage.kind.clone(),
            stage.state.clone(),
            stage.bots.to_string(),
            stage.advance.map_or("-".to_owned(), |advance| advance.to_string()),
            format!("{} of {}", stage.finished_rounds, stage.rounds),
        ]);
    }
    out.table(&stages)?;
    if !stage.advanced.is_empty() {
        out.line(&format!("advanced from stage {}: {}", stage.number, stage.advanced.join(", ")))?;
    }
    out.line("")?;
    let after = match (stage.kind.as_str(), response.counted_rounds) {
        ("swiss" | "ladder", 0) => " before round 1".to_owned(),
        ("swiss" | "ladder", counted) => format!(" after round {counted}"),
        _ => String::new(),
    };
    out.line(&format!("standings of stage {}{after}", stage.number))?;
    out.table(&standings(response, stage))?;
    let is_shown = |round: &&StageRound| stage.kind == "knockout" || round.number == response.round;
    response.rounds.iter().filter(is_shown).try_for_each(|round| show_round(out, stage, round))
}

/// The table of the standings. Its columns are what decides the ranks.
fn standings(response: &GetRoundsResponse, stage: &RoundsStage) -> Columns {
    let mut header = vec!["#", "bot"];
    header.extend(match stage.kind.as_str() {
        "swiss" => vec!["number", "points", "Buchholz", "Sonneborn-Berger"],
        "ladder" => vec!["rating"],
        "knockout" => vec!["number"],
        "gauntlet" => vec!["group", "mean", "matches"],
        _ => vec!["matches"],
    });
    let has_scores = response.standings.iter().any(|row| !row.score.is_empty());
    header.extend(response.columns.iter().map(String::as_str).filter(|_| has_scores));
    let text: &[usize] = if stage.kind == "gauntlet" { &[1, 2] } else { &[1] };
    let mut table = Columns::new(header, text);
    for row in &response.standings {
        let mut cells = vec![rank(row), row.bot.clone()];
        cells.extend(numbers(row, &stage.kind));
        cells.extend(row.score.iter().cloned());
        table.push(cells);
    }
    table
}

fn rank(row: &StageStanding) -> String {
    output::rank(row.rank, row.tied)
}

/// The numbers that decide the rank of a row of a stage of this kind, in the order of the header.
fn numbers(row: &StageStanding, kind: &str) -> Vec<String> {
    let number = |number: Option<f64>| number.map_or("-".to_owned(), |number| number.to_string());
    let count = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
    let seed = count(row.number.map(u64::from));
    match kind {
        "swiss" => {
            vec![seed, number(row.points), number(row.buchholz), number(row.sonneborn_berger)]
        }
        "ladder" => vec![row.rating.map_or("-".to_owned(), |rating| format!("{rating:+.0}"))],
        "knockout" => vec![seed],
        "gauntlet" => {
            let mean = row.mean.map_or("-".to_owned(), |mean| text::mean(mean, None));
            vec![row.group.clone(), mean, count(row.matches)]
        }
        _ => vec![count(row.matches)],
    }
}

fn show_round(out: &mut Output, stage: &RoundsStage, round: &StageRound) -> Result<(), Failure> {
    let StageRound { number, over, meetings } = round;
    out.line("")?;
    out.line(&format!("round {number}{}", if *over { "" } else { ", not over" }))?;
    let is_knockout = stage.kind == "knockout";
    let header = if is_knockout {
        ["bot", "score", "bot", "score", "winner", "matches"]
    } else {
        ["seat 1", "points", "seat 2", "points", "", "matches"]
    };
    let mut table = Columns::new(header, &[0, 2, 4, 5]);
    for meeting in meetings {
        let mut cells = Vec::new();
        for bot in [meeting.bots.first(), meeting.bots.get(1)] {
            cells.push(bot.map_or("bye".to_owned(), |bot| bot.bot.clone()));
            cells.push(bot.map(result).unwrap_or_default());
        }
        cells.push(winner(meeting));
        cells.push(meeting.matches.join(" "));
        table.push(cells);
    }
    out.table(&table)
}

/// The points or the score of a bot in a meeting.
fn result(bot: &MeetingBot) -> String {
    match bot.points {
        Some(points) => points.to_string(),
        None => bot.score.join(" "),
    }
}

/// The winner of a meeting of a knockout, and why it won if not by its games; and whether the
/// meeting decides the third place.
fn winner(meeting: &StageMeeting) -> String {
    let reason = match meeting.decided_by.as_str() {
        "extra_games" => " (extra games)",
        "number" => " (better number)",
        _ => "",
    };
    let winner = format!("{}{reason}", meeting.winner);
    let place = if meeting.third_place { "third place" } else { "" };
    [winner.as_str(), place]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

fn print_json(out: &mut Output, response: &GetRoundsResponse) -> Result<(), Failure> {
    for stage in &response.stages {
        let about = fields!(stage; kind, state, bots, advance, advanced, rounds, finished_rounds,
            begun_rounds);
        let number = json!({ "edition": response.edition, "stage": stage.number });
        out.json(&json!({ "stage": merge(number, about) }))?;
    }
    let selected = fields!(response; edition, stage, round, counted_rounds, columns);
    out.json(&json!({ "selected": selected }))?;
    for row in &response.standings {
        let about = fields!(row; rank, tied, bot, advanced, points, buchholz, sonneborn_berger,
            rating, mean, matches, score, number);
        let more = json!({
            "rank": output::known_rank(row.rank),
            "group": non_empty(&row.group),
        });
        out.json(&json!({ "standing": merge(about, more) }))?;
    }
    for round in &response.rounds {
        let meetings: Vec<_> = round.meetings.iter().map(meeting_json).collect();
        let about = json!({ "round": round.number, "over": round.over, "meetings": meetings });
        out.json(&json!({ "round": about }))?;
    }
    Ok(())
}

fn meeting_json(meeting: &StageMeeting) -> Value {
    let bot = |bot: &MeetingBot| fields!(bot; bot, points, score, number);
    let bots: Vec<_> = meeting.bots.iter().map(bot).collect();
    json!({
        "bots": bots,
        "winner": non_empty(&meeting.winner),
        "decided_by": non_empty(&meeting.decided_by),
        "third_place": meeting.third_place,
        "matches": meeting.matches,
    })
}
