//! The page of the rounds of an edition: its stages, and the standings and meetings of a stage.

use arbiter_proto::v1::{
    GetRoundsRequest, GetRoundsResponse, MeetingBot, RoundsStage, StageMeeting, StageRound,
    StageStanding,
};
use arbiter_ranking::statistics::text;
use arbiter_replay::number_text;
use axum::extract::{Path, Query};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::data_links::{DataLink, data_links};
use super::error::WebError;
use super::session::Session;
use super::tournament_links::TournamentLinks;
use super::tournament_page::{Tab, TournamentPage};
use super::{bracket, download, layout, leaderboard};

/// The content type of a report in TRF16.
const TRF_CONTENT_TYPE: &str = "text/plain; charset=utf-8";

/// The query string of the page and of the report.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RoundsQuery {
    /// The edition's number. Default: the newest edition, or the official one while leaderboards
    /// are frozen.
    edition: Option<i32>,
    /// The stage's number. Default: the last one that has begun.
    stage: Option<u32>,
    /// The round's number. Default: the last one that is over, or the first.
    round: Option<u32>,
}

impl RoundsQuery {
    fn request(self, tournament: &str, trf: bool) -> GetRoundsRequest {
        let Self { edition, stage, round } = self;
        GetRoundsRequest { tournament: tournament.to_owned(), edition, stage, round, trf }
    }
}

/// The page.
pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
    Query(query): Query<RoundsQuery>,
) -> Result<Response, WebError> {
    let content = content(&session, &tournament, query).await;
    TournamentPage::new(&tournament, Tab::Rounds).respond(&session, content).await
}

async fn content(
    session: &Session,
    tournament: &str,
    query: RoundsQuery,
) -> Result<Markup, WebError> {
    let request = query.request(tournament, false);
    let (response, bracket) = session.service.rounds_with_bracket(&session.caller, request).await?;
    let mut stages = response.stages.iter();
    let stage = stages.find(|stage| stage.number == response.stage);
    let stage = stage.expect("the response describes one of its stages");
    let links = &TournamentLinks::of(&session.service, tournament).await?;
    let status = session.service.edition_status(&session.caller, tournament, response.edition);
    let status = status.await?;
    let data = format!(
        "tournaments/{tournament}/rounds?edition={}&stage={}",
        response.edition, stage.number
    );
    Ok(html! {
        p { "Results of " (layout::edition_label(response.edition, status)) ". " (summary(&response)) }
        @if response.stages.len() > 1 { (stage_links(&response)) }
        p { (stage_state(stage)) }
        (advanced(links, stage))
        h2 { (standings_title(stage, response.counted_rounds)) }
        (standings(links, stage, &response))
        @let note = note(stage);
        @if !note.is_empty() { p.quiet { (note) } }
        @match (&bracket, stage.kind.as_str()) {
            (Some(bracket), _) => (bracket::drawing(links, bracket)),
            (None, "swiss" | "ladder") => (selected_round(links, stage, &response)),
            (None, _) => (other_pages(tournament, response.edition)),
        }
        @if response.has_report {
            p {
                a href={ "/t/" (tournament) "/rounds.trf?edition=" (response.edition) "&stage=" (stage.number) } download {
                    "Download the FIDE tournament report (TRF16), to check the pairings"
                }
            }
        }
        (data_links("Data of this stage", &[DataLink::Json(data)]))
    })
}

/// The report of a Swiss stage in FIDE's format TRF16.
pub(super) async fn trf(
    session: Session,
    Path(tournament): Path<String>,
    Query(query): Query<RoundsQuery>,
) -> Result<Response, WebError> {
    let request = query.request(&tournament, true);
    let response = session.service.get_rounds(&session.caller, request).await?;
    let name = format!("{tournament}-{}-stage-{}.trf", response.edition, response.stage);
    Ok(download::file(&name, TRF_CONTENT_TYPE, response.trf))
}

/// How many stages there are, if there are several.
fn summary(response: &GetRoundsResponse) -> String {
    match response.stages.len() {
        0 | 1 => String::new(),
        stages => format!("It has {stages} stages."),
    }
}

/// Links to the stages that have begun; the others are named.
fn stage_links(response: &GetRoundsResponse) -> Markup {
    html! {
        nav.tabs aria-label="Stages" {
            @for stage in &response.stages {
                @if stage.state != "planned" {
                    a href={ "?edition=" (response.edition) "&stage=" (stage.number) }
                        aria-current=[(stage.number == response.stage).then_some("page")] {
                        (stage_name(stage))
                    }
                } @else {
                    span.quiet { (stage_name(stage)) ", " (layout::count(stage.bots, "bot", "bots")) }
                }
            }
        }
    }
}

/// The name of a stage: `1. Swiss`.
fn stage_name(stage: &RoundsStage) -> String {
    format!("{}. {}", stage.number, kind_name(&stage.kind))
}

/// The name of a kind at the beginning of a text.
fn kind_name(kind: &str) -> String {
    layout::label(&kind.replace('_', " "))
}

/// The state of a stage in a sentence or two.
fn stage_state(stage: &RoundsStage) -> Markup {
    let bots = layout::count(stage.bots, "bot", "bots");
    let finished = stage.finished_rounds;
    html! {
        (kind_name(&stage.kind)) " stage with " (bots)
        @match stage.state.as_str() {
            "over" => { ", complete." }
            "cancelled" => { ", cancelled." }
            _ if stage.rounds == 1 => { ", being played." }
            _ => { ". Round " (finished + 1) " of " (stage.rounds) " is being played." }
        }
        @if let Some(advance) = stage.advance.filter(|_| stage.state == "running") {
            " The best " (advance) " advance to stage " (stage.number + 1) "."
        }
    }
}

/// The bots that advanced.
fn advanced(tournament: &TournamentLinks, stage: &RoundsStage) -> Markup {
    html! {
        @if !stage.advanced.is_empty() {
            p {
                "Advanced to stage " (stage.number + 1) ": "
                @for (index, bot) in stage.advanced.iter().enumerate() {
                    @if index > 0 { ", " }
                    (tournament.bot(bot))
                }
                "."
            }
        }
    }
}

fn standings_title(stage: &RoundsStage, counted: u32) -> String {
    match (stage.kind.as_str(), counted) {
        ("swiss" | "ladder", 0) => "Standings before round 1".to_owned(),
        ("swiss" | "ladder", _) => format!("Standings after round {counted} of {}", stage.rounds),
        _ => "Standings".to_owned(),
    }
}

/// What the columns of the standings mean, and which of equal bots advance. Empty if there is
/// nothing to say.
fn note(stage: &RoundsStage) -> String {
    let columns = match stage.kind.as_str() {
        "swiss" => {
            "A won match counts 1 point, a drawn one ½, whatever its score. Points decide, then \
             Buchholz (the sum of the opponents' points), then Sonneborn–Berger (each opponent's \
             points times those won against it). A bye counts like an opponent with as many points \
             as the bot. Bots with equal points are paired by their pairing numbers."
        }
        "ladder" => "Ratings are on the scale of Elo, with 0 for the mean bot.",
        "gauntlet" => {
            "Candidates meet the bots of the panel only. The mean score in a match decides, since \
             they play different numbers of matches."
        }
        "knockout" if stage.state != "over" => "Bots that are still in share the first rank.",
        _ => "",
    };
    let equal =
        stage.advance.map(|_| "Bots with the same rank are ordered by a draw from the seed.");
    let notes = Some(columns).filter(|columns| !columns.is_empty()).into_iter().chain(equal);
    notes.collect::<Vec<_>>().join(" ")
}

/// The table of the standings. Its columns are what decides the ranks.
fn standings(
    tournament: &TournamentLinks,
    stage: &RoundsStage,
    response: &GetRoundsResponse,
) -> Markup {
    let mean = leaderboard::mean_heading("match");
    let mut heads = vec!["Rank", "Bot"];
    heads.extend(match stage.kind.as_str() {
        "swiss" => vec!["Points", "Buchholz", "Sonneborn–Berger", "Pairing number"],
        "ladder" => vec!["Rating"],
        "knockout" => vec!["Bracket number"],
        "gauntlet" => vec!["Group", &mean, "Matches"],
        _ => vec!["Matches"],
    });
    let has_scores = response.standings.iter().any(|row| !row.score.is_empty());
    heads.extend(response.columns.iter().map(String::as_str).filter(|_| has_scores));
    // Who advances is known after the last round.
    let is_last = response.counted_rounds == stage.rounds;
    let marks = is_last && !stage.advanced.is_empty();
    if marks {
        heads.push("Advanced");
    }
    let row = |row: &StageStanding| {
        html! {
            td.number { (leaderboard::rank(row.rank, row.tied)) }
            td { (tournament.bot(&row.bot)) }
            @if !row.group.is_empty() { td { (row.group) } }
            @for number in numbers(row) { td.number { (number_text(number)) } }
            @for number in &row.score { td.number { (number_text(number)) } }
            @if marks { td { @if row.advanced { "yes" } } }
        }
    };
    layout::table("Standings", "standings", &heads, response.standings.iter().map(row))
}

/// The numbers that decide the rank of a row, in the order of the headings.
fn numbers(row: &StageStanding) -> Vec<String> {
    let number = row.number.map(|number| number.to_string());
    let points = [row.points, row.buchholz, row.sonneborn_berger]
        .map(|points| points.map(|points| points.to_string()));
    let rating = row.rating.map(|rating| format!("{rating:+.0}"));
    let is_gauntlet = !row.group.is_empty();
    let mean = row.mean.map(|mean| text::mean(mean, None));
    let mean = is_gauntlet.then(|| mean.unwrap_or_default());
    let matches = row.matches.map(|matches| matches.to_string());
    points.into_iter().chain([rating, mean, matches, number]).flatten().collect()
}

/// The pairings of the selected round, with links to the rounds beside it.
fn selected_round(
    tournament: &TournamentLinks,
    stage: &RoundsStage,
    response: &GetRoundsResponse,
) -> Markup {
    let Some(round) = response.rounds.iter().find(|round| round.number == response.round) else {
        return html! {};
    };
    let link =
        |round: u32| format!("?edition={}&stage={}&round={round}", response.edition, stage.number);
    let has_next = round.number < stage.begun_rounds;
    html! {
        h2 { "Round " (round.number) @if !round.over { ", not over" } }
        (pairings(tournament, round))
        nav.paging aria-label="Rounds" {
            @if round.number > 1 { a rel="prev" href=(link(round.number - 1)) { "Round " (round.number - 1) } }
            @if has_next { a rel="next" href=(link(round.number + 1)) { "Round " (round.number + 1) } }
        }
    }
}

/// The pairings of a round.
fn pairings(tournament: &TournamentLinks, round: &StageRound) -> Markup {
    let bot = |bot: Option<&MeetingBot>| {
        html! {
            td { @if let Some(bot) = bot { (tournament.bot(&bot.bot)) } @else { "bye" } }
            td.number { @if let Some(points) = bot.and_then(|bot| bot.points) { (number_text(points)) } }
        }
    };
    let row = |meeting: &StageMeeting| {
        html! {
            (bot(meeting.bots.first()))
            (bot(meeting.bots.get(1)))
            td { (layout::match_numbers(&meeting.matches)) }
        }
    };
    let heads = ["Seat 1", "Points", "Seat 2", "Points", "Matches"];
    layout::table("Pairings", "pairings", &heads, round.meetings.iter().map(row))
}

/// Links to the results of stages without meetings.
fn other_pages(tournament: &str, edition: i32) -> Markup {
    html! {
        p {
            "All results of the edition: "
            a href={ "/t/" (tournament) "/matrix?edition=" (edition) } { "head to head" } ", "
            a href={ "/t/" (tournament) "/matches?edition=" (edition) } { "matches" } "."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_says_its_state_and_who_of_equal_bots_advances() {
        let stage = |kind: &str, state: &str, advance| RoundsStage {
            number: 1,
            kind: kind.to_owned(),
            state: state.to_owned(),
            bots: 3,
            rounds: 2,
            finished_rounds: 1,
            advance,
            ..RoundsStage::default()
        };
        let draw = "Bots with the same rank are ordered by a draw from the seed.";
        for (one, text) in [
            (stage("swiss", "over", Some(2)), "Swiss stage with 3 bots, complete."),
            (stage("round_robin", "cancelled", None), "Round robin stage with 3 bots, cancelled."),
            (
                stage("knockout", "running", Some(2)),
                "Knockout stage with 3 bots. Round 2 of 2 is being played. The best 2 advance to \
                 stage 2.",
            ),
        ] {
            assert_eq!(stage_state(&one).into_string(), text);
            assert_eq!(note(&one).ends_with(draw), one.advance.is_some(), "{one:?}");
        }
        assert_eq!(note(&stage("round_robin", "over", Some(2))), draw);
        assert_eq!(note(&stage("round_robin", "over", None)), "");
    }
}
