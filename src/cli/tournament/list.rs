//! `arbiter tournament list` and `show T`.

use arbiter_coordinator::service::SetAsideGroup;
use arbiter_coordinator::tournament::file::readable_settings;
use arbiter_proto::edition_status::speed;
use arbiter_proto::state_words::match_state;
use arbiter_proto::v1::{
    Announcement, Edition, GetTournamentRequest, ListSetAsideRequest, ListTournamentsRequest,
    LotCount, SetAsideMatch, Tournament,
};
use clap::Args;
use serde_json::{Map, Value, json};

use super::announce::announcements_json;
use super::beacon::{beacon_json, beacon_line};
use crate::cli::client::{Client, TournamentArgs};
use crate::failure::Failure;
use crate::output::{
    Columns, Output, count, fields, hex, matches, merge, moment, moment_json, non_empty, print,
    printable,
};

/// List all tournaments, newest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter tournament list
  arbiter tournament list --json")]
pub(super) struct List {
    /// Print one JSON object per tournament.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl List {
    pub(super) fn run(self) -> Result<(), Failure> {
        let tournaments = self.client.send(ListTournamentsRequest {})?.tournaments;
        let header = ["tournament", "game", "state", "created", "running"];
        let table = Columns::new(header, &[0, 1, 2, 3, 4]);
        let object = |tournament: &Tournament| {
            let running = running(tournament).map(edition_json);
            merge(outline_json(tournament), json!({ "running": running }))
        };
        print(|out| out.list(self.json, &tournaments, object, table, row))
    }
}

fn row(tournament: &Tournament) -> Vec<String> {
    let running = running(tournament).map_or_else(|| "-".to_owned(), progress);
    let Tournament { name, game, state, created_at_us, rehearsal_of, .. } = tournament;
    let mut states = vec![state.clone()];
    if let Some(original) = non_empty(rehearsal_of) {
        states.push(format!("rehearsal of {original}"));
    } else if has_closed_entry(tournament) {
        states.push("entry closed".to_owned());
    }
    if !tournament.freeze_notice.is_empty() {
        states.push("frozen".to_owned());
    }
    vec![name.clone(), game.clone(), states.join(", "), moment(*created_at_us), running]
}

/// Whether a tournament goes on after its entry has closed.
fn has_closed_entry(tournament: &Tournament) -> bool {
    tournament.state == "open" && !tournament.entry_open && tournament.closes_at_us.is_some()
}

/// Show a tournament: settings, editions and matches that were set aside.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter tournament show finals
  arbiter tournament show finals --json | jq .editions[0].lots")]
pub(super) struct Show {
    #[command(flatten)]
    target: TournamentArgs,
}

impl Show {
    pub(super) fn run(self) -> Result<(), Failure> {
        let TournamentArgs { tournament, response } = self.target;
        let (tournament, aside) = response.client.run(async |server| {
            let request = GetTournamentRequest { tournament: tournament.clone(), edition: None };
            let details = server.send(request).await?;
            let aside = server.send(ListSetAsideRequest { tournament }).await?.matches;
            Ok((details, aside))
        })?;
        let object = || {
            let aside: Value = aside
                .iter()
                .map(|aside| json!({"match": aside.r#match, "reasons": aside.reasons}))
                .collect();
            merge(tournament_json(&tournament), json!({ "aside": aside }))
        };
        response.print(object, |out| show(out, &tournament, &aside))
    }
}

/// The running edition of a tournament.
fn running(tournament: &Tournament) -> Option<&Edition> {
    tournament.editions.iter().find(|edition| edition.state == "running")
}

/// The progress of an edition, as text.
fn progress(edition: &Edition) -> String {
    let Edition { number, counted, matches: planned, .. } = edition;
    let estimate =
        completion_estimate(edition).map(|estimate| format!(", {estimate}")).unwrap_or_default();
    format!("edition {number}: {counted} of {planned}{estimate}")
}

/// When an edition will probably be complete, and at which rate.
pub(crate) fn completion_estimate(edition: &Edition) -> Option<String> {
    let eta = edition.eta_us?;
    Some(format!("complete about {} at {}", moment(eta), speed(edition.rate?)))
}

fn show(out: &mut Output, tournament: &Tournament, aside: &[SetAsideMatch]) -> Result<(), Failure> {
    let Tournament { name, game, state, seed_hash, seed, created_at_us, .. } = tournament;
    out.line(&format!("{name}: {game}, {state}, created {}", moment(*created_at_us)))?;
    if !tournament.title.is_empty() {
        out.line(&format!("title: {}", tournament.title))?;
    }
    show_rehearsals(out, tournament)?;
    out.line(&format!("seed hash {}", hex(seed_hash)))?;
    if !seed.is_empty() {
        out.line(&format!("seed {}", hex(seed)))?;
    }
    out.line(&beacon_line(tournament))?;
    if !tournament.entry.is_empty() {
        out.line(&tournament.entry)?;
    }
    if !tournament.freeze_notice.is_empty() {
        out.line(&format!("leaderboards {}", tournament.freeze_notice))?;
    }
    if !tournament.last_error.is_empty() {
        out.line(&format!("cannot start an edition: {}", tournament.last_error))?;
    }
    if tournament.next_edition_at_us > 0 {
        out.line(&format!("the next edition starts at {}", moment(tournament.next_edition_at_us)))?;
    }
    if !tournament.new_bot_outlook.is_empty() {
        out.line(&format!("with one more bot: {}", printable(&tournament.new_bot_outlook)))?;
    }
    for (key, value) in readable_settings(settings(tournament)) {
        match (key.as_str(), &value) {
            ("name" | "game", _) => {}
            ("package", Value::String(summary)) => out.line(&format!("package = {summary}"))?,
            _ => out.line(&format!("{key} = {}", shorten(&value)))?,
        }
    }
    show_presentation(out, tournament)?;
    let header = ["edition", "state", "counted", "matches", "lots"];
    let mut table = Columns::new(header, &[1, 4]);
    for edition in &tournament.editions {
        let official = if edition.official { ", official" } else { "" };
        let suffix = if edition.open_ended { "+" } else { "" };
        table.push(vec![
            edition.number.to_string(),
            format!("{}{official}", edition.state),
            edition.counted.to_string(),
            format!("{}{suffix}", edition.matches),
            lots(&edition.lots),
        ]);
    }
    if !table.is_empty() {
        out.line("")?;
        out.table(&table)?;
    }
    for edition in tournament.editions.iter().filter(|edition| !edition.plan.is_empty()) {
        out.line(&format!("edition {}: {}", edition.number, edition.plan))?;
    }
    for edition in &tournament.editions {
        if let Some(estimate) = completion_estimate(edition) {
            let number = edition.number;
            let slots = count(edition.slots, "slot", "slots");
            out.line(&format!("edition {number} will be {estimate}; {slots} connected"))?;
        }
    }
    if !aside.is_empty() {
        out.line("")?;
    }
    for group in SetAsideGroup::all(aside) {
        show_group(out, name, &group)?;
    }
    Ok(())
}

/// Prints what a tournament rehearses, and its rehearsals.
fn show_rehearsals(out: &mut Output, tournament: &Tournament) -> Result<(), Failure> {
    let original = &tournament.rehearsal_of;
    if !original.is_empty() {
        out.line(&format!("rehearsal of {original}: its leaderboard is never official"))?;
    }
    if !tournament.rehearsals.is_empty() {
        out.line(&format!("rehearsals: {}", tournament.rehearsals.join(", ")))?;
    }
    Ok(())
}

/// Prints what the organisers tell the public: the description and the announcements.
fn show_presentation(out: &mut Output, tournament: &Tournament) -> Result<(), Failure> {
    out.line(&format!("public.replays = {}", tournament.replays))?;
    if !tournament.description.is_empty() {
        out.line("")?;
        tournament.description.lines().try_for_each(|line| out.line(&format!("  {line}")))?;
    }
    for Announcement { number, at_us, text } in &tournament.announcements {
        out.line("")?;
        out.line(&format!("announcement {number}, {}:", moment(*at_us)))?;
        text.lines().try_for_each(|line| out.line(&format!("  {line}")))?;
    }
    Ok(())
}

/// Maximum number of matches of a group that are listed.
const MAX_NAMED: usize = 10;

/// Prints the matches that were set aside for the same causes, and the remedy.
fn show_group(out: &mut Output, tournament: &str, group: &SetAsideGroup) -> Result<(), Failure> {
    let SetAsideGroup { matches: names, reasons, .. } = group;
    let count = matches(i64::try_from(names.len()).unwrap_or(i64::MAX));
    let why = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
    if group.is_of_rules() {
        out.line(&format!("{count} set aside, first {}{why}", names[0]))?;
        return out.line(&format!(
            "  correct the rules and send them: arbiter tournament package {tournament} DIR"
        ));
    }
    let named = names[..names.len().min(MAX_NAMED)].join(", ");
    let more = names.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more (see --json)") } else { String::new() };
    out.line(&format!("{count} set aside{why}"))?;
    out.line(&format!("  retry with arbiter tournament retry MATCH: {named}{more}"))
}

/// Maximum length of a printed setting, in characters; a board is longer.
const MAX_SETTING: usize = 160;

/// A setting as text, shortened if it is long.
pub(super) fn shorten(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= MAX_SETTING {
        return text;
    }
    text.chars().take(MAX_SETTING).chain("… (see --json)".chars()).collect()
}

/// The number of lots in each state, as text.
pub(super) fn lots(counts: &[LotCount]) -> String {
    let counts = counts.iter().filter(|count| count.lots > 0);
    let parts: Vec<_> =
        counts.map(|count| format!("{} {}", count.lots, match_state(&count.state))).collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
}

/// The keys of the tournament file, in file order.
pub(in crate::cli) fn settings(tournament: &Tournament) -> Map<String, Value> {
    serde_json::from_str(&tournament.settings).unwrap_or_default()
}

/// A tournament with its editions as JSON.
pub(super) fn tournament_json(tournament: &Tournament) -> Value {
    let editions: Value = tournament.editions.iter().map(edition_json).collect();
    let announcements = announcements_json(tournament);
    let details = json!({
        "editions": editions,
        "announcements": announcements,
        "rehearsals": tournament.rehearsals,
    });
    merge(outline_json(tournament), details)
}

/// A tournament without its editions as JSON.
fn outline_json(tournament: &Tournament) -> Value {
    let next_edition_at = Some(tournament.next_edition_at_us).filter(|time| *time > 0);
    json!({
        "tournament": tournament.name,
        "title": non_empty(&tournament.title),
        "rehearsal_of": non_empty(&tournament.rehearsal_of),
        "description": non_empty(&tournament.description),
        "game": tournament.game,
        "state": tournament.state,
        "replays": tournament.replays,
        "entry": json!({
            "open": tournament.entry_open,
            "closes_at": tournament.closes_at_us.map(moment_json),
            "text": non_empty(&tournament.entry),
        }),
        "freeze_at": tournament.freeze_at_us.map(moment_json),
        "frozen": non_empty(&tournament.freeze_notice),
        "seed_hash": hex(&tournament.seed_hash),
        "seed": (!tournament.seed.is_empty()).then(|| hex(&tournament.seed)),
        "beacon": beacon_json(tournament.beacon.as_ref()),
        "created_at": moment_json(tournament.created_at_us),
        "ended_at": tournament.ended_at_us.map(moment_json),
        "last_error": non_empty(&tournament.last_error),
        "next_edition_at": next_edition_at.map(moment_json),
        "new_bot_outlook": non_empty(&tournament.new_bot_outlook),
        "settings": settings(tournament),
    })
}

/// An edition and its progress as JSON.
pub(super) fn edition_json(edition: &Edition) -> Value {
    let lots = edition.lots.iter().map(|count| {
        let state = match_state(&count.state);
        json!({"state": state, "lots": count.lots, "matches": count.matches})
    });
    let identity =
        json!({ "id": edition.id, "edition": edition.number, "open_ended": edition.open_ended });
    let counts = fields!(edition; state, official, matches, counted);
    let progress = json!({
        "lots": lots.collect::<Vec<_>>(),
        "plan": non_empty(&edition.plan),
        "eta": edition.eta_us.map(moment_json),
        "rate": edition.rate,
        "slots": edition.slots,
        "frozen": non_empty(&edition.freeze_notice),
    });
    merge(merge(identity, counts), progress)
}
