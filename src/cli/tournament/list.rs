//! `arbiter tournament list` and `show T`: what there is, and how it stands.

use arbiter_proto::v1::{
    Aside, Edition, GetTournamentRequest, ListAsideRequest, ListTournamentsRequest, LotCount,
    Tournament,
};
use clap::Args;
use serde_json::{Map, Value, json};

use super::beacon::{beacon_json, beacon_line};
use crate::cli::client::Client;
use crate::failure::Failure;
use crate::output::{Columns, Output, hex, matches, moment, moment_json};

/// List all tournaments, the newest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter tournament list
  arbiter tournament list --json")]
pub(super) struct List {
    /// Print one JSON object a tournament.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl List {
    pub(super) fn run(self) -> Result<(), Failure> {
        let found = self.client.run(async |server| {
            let request = ListTournamentsRequest {};
            Ok(server.tournaments().list_tournaments(request).await?.into_inner().tournaments)
        })?;
        let mut out = Output::new();
        let header = ["tournament", "game", "state", "made", "running"];
        let mut table = Columns::new(header, &[0, 1, 2, 3, 4]);
        for tournament in found {
            if self.json {
                let mut object = tournament_json(&tournament);
                object.remove("editions");
                let running = running(&tournament).map(edition_json);
                object.insert("running".to_owned(), json!(running));
                out.json(&object.into())?;
            } else {
                let running = running(&tournament).map_or_else(|| "-".to_owned(), progress);
                let Tournament { name, game, state, created_at_us, .. } = tournament;
                table.push(vec![name, game, state, moment(created_at_us), running]);
            }
        }
        if !self.json {
            out.table(&table)?;
        }
        out.flush()
    }
}

/// Show a tournament: its settings, its editions, and matches that were set aside.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter tournament show finals
  arbiter tournament show finals --json | jq .editions[0].lots")]
pub(super) struct Show {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl Show {
    pub(super) fn run(self) -> Result<(), Failure> {
        let tournament = self.tournament;
        let (found, aside) = self.client.run(async |server| {
            let mut tournaments = server.tournaments();
            let request = GetTournamentRequest { tournament: tournament.clone() };
            let found = tournaments.get_tournament(request).await?.into_inner();
            let request = ListAsideRequest { tournament };
            Ok((found, tournaments.list_aside(request).await?.into_inner().aside))
        })?;
        let mut out = Output::new();
        if self.json {
            let mut object = tournament_json(&found);
            object.insert("aside".to_owned(), aside.iter().map(aside_json).collect());
            out.json(&object.into())?;
        } else {
            print(&mut out, &found, &aside)?;
        }
        out.flush()
    }
}

/// The edition of a tournament that runs.
fn running(tournament: &Tournament) -> Option<&Edition> {
    tournament.editions.iter().find(|edition| edition.state == "running")
}

/// How far an edition is, in a few words.
fn progress(edition: &Edition) -> String {
    let Edition { number, counted, matches: planned, .. } = edition;
    let done = forecast(edition).map(|done| format!(", {done}")).unwrap_or_default();
    format!("edition {number}: {counted} of {planned}{done}")
}

/// When an edition will be complete as things stand, and why.
pub(crate) fn forecast(edition: &Edition) -> Option<String> {
    let (eta, rate) = (edition.eta_us?, edition.rate?);
    let rate = if rate < 1.0 {
        format!("{:.1} matches a minute", rate * 60.0)
    } else {
        format!("{rate:.1} matches a second")
    };
    Some(format!("done about {} at {rate}", moment(eta)))
}

/// How the plan of an edition came to be, after what else is said of it.
pub(super) fn plan(edition: &Edition) -> String {
    if edition.plan.is_empty() { String::new() } else { format!("; {}", edition.plan) }
}

fn print(out: &mut Output, found: &Tournament, aside: &[Aside]) -> Result<(), Failure> {
    let Tournament { name, game, state, seed_hash, seed, created_at_us, .. } = found;
    out.line(&format!("{name}: {game}, {state}, made {}", moment(*created_at_us)))?;
    out.line(&format!("hash of the seed {}", hex(seed_hash)))?;
    if !seed.is_empty() {
        out.line(&format!("seed {}", hex(seed)))?;
    }
    out.line(&beacon_line(found))?;
    if !found.trouble.is_empty() {
        out.line(&format!("no edition could be opened: {}", found.trouble))?;
    }
    if found.due_us > 0 {
        out.line(&format!("something changed: an edition is opened at {}", moment(found.due_us)))?;
    }
    for (key, value) in settings(found) {
        if !["name", "game"].contains(&key.as_str()) {
            out.line(&format!("{key} = {}", short(&value)))?;
        }
    }
    let header = ["edition", "state", "counted", "matches", "lots"];
    let mut table = Columns::new(header, &[1, 4]);
    for edition in &found.editions {
        let official = if edition.official { ", official" } else { "" };
        let more = if edition.growing { "+" } else { "" };
        table.push(vec![
            edition.number.to_string(),
            format!("{}{official}", edition.state),
            edition.counted.to_string(),
            format!("{}{more}", edition.matches),
            lots(&edition.lots),
        ]);
    }
    if !table.is_empty() {
        out.line("")?;
        out.table(&table)?;
    }
    for edition in &found.editions {
        let Edition { number, id, .. } = edition;
        out.line(&format!("matches of edition {number} are named {id}/0, …{}", plan(edition)))?;
    }
    for edition in &found.editions {
        if let Some(done) = forecast(edition) {
            let Edition { number, slots, .. } = edition;
            out.line(&format!("edition {number} will be {done}; {slots} slots are connected"))?;
        }
    }
    if !aside.is_empty() {
        let set = matches(i64::try_from(aside.len()).unwrap_or(i64::MAX));
        out.line("")?;
        out.line(&format!("{set} set aside; arbiter tournament retry MATCH plays one again"))?;
    }
    for Aside { r#match, reasons } in aside {
        out.line(&format!("{}: {}", r#match, reasons.join("; ")))?;
    }
    Ok(())
}

/// The longest setting that is shown to people whole, in characters: a board is longer.
const LONGEST: usize = 160;

/// A setting for people.
fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST).chain("… (whole with --json)".chars()).collect()
}

/// How many lots there are in each state, for people.
pub(super) fn lots(counts: &[LotCount]) -> String {
    let counts = counts.iter().filter(|count| count.lots > 0);
    let words: Vec<_> = counts.map(|count| format!("{} {}", count.lots, count.state)).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

/// The tournament file's keys, in its order.
pub(in crate::cli) fn settings(tournament: &Tournament) -> Map<String, Value> {
    serde_json::from_str(&tournament.settings).unwrap_or_default()
}

/// A tournament with its editions.
pub(super) fn tournament_json(found: &Tournament) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| drop(object.insert(key.to_owned(), value));
    put("tournament", json!(found.name));
    put("game", json!(found.game));
    put("state", json!(found.state));
    put("seed_hash", json!(hex(&found.seed_hash)));
    put("seed", json!((!found.seed.is_empty()).then(|| hex(&found.seed))));
    put("beacon", beacon_json(found.beacon.as_ref()));
    put("created_at", moment_json(found.created_at_us));
    put("trouble", json!((!found.trouble.is_empty()).then_some(&found.trouble)));
    put("due_at", if found.due_us > 0 { moment_json(found.due_us) } else { Value::Null });
    put("settings", settings(found).into());
    put("editions", found.editions.iter().map(edition_json).collect());
    object
}

/// An edition and how far it is.
pub(super) fn edition_json(edition: &Edition) -> Value {
    let lots = edition.lots.iter().map(|count| {
        let LotCount { state, lots, matches } = count;
        json!({"state": state, "lots": lots, "matches": matches})
    });
    json!({
        "id": edition.id,
        "edition": edition.number,
        "state": edition.state,
        "official": edition.official,
        "matches": edition.matches,
        "growing": edition.growing,
        "counted": edition.counted,
        "lots": lots.collect::<Vec<_>>(),
        "plan": (!edition.plan.is_empty()).then_some(&edition.plan),
        "eta": edition.eta_us.map(moment_json),
        "rate": edition.rate,
        "slots": edition.slots,
    })
}

fn aside_json(aside: &Aside) -> Value {
    json!({"match": aside.r#match, "reasons": aside.reasons})
}
