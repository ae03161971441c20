//! `arbiter tournament edit T`: changes the settings of a tournament.

use std::fmt::Write as _;
use std::path::PathBuf;

use arbiter_games::Games;
use arbiter_proto::v1::edit_tournament_request::Source;
use arbiter_proto::v1::{
    EditTournamentRequest, EditTournamentResponse, GetTournamentRequest, KeyChanges, SettingChange,
};
use clap::Args;
use serde_json::{Value, json};

use super::create;
use super::list::shorten;
use crate::cli::client::TournamentArgs;
use crate::failure::Failure;
use crate::output::Output;

/// Change the settings of a tournament.
#[derive(Debug, Args)]
#[command(
    after_help = "Title, description, replays, entry times and audits change until the tournament \
    is over; the game's parameters, clock, limits, state, ponder and separate_owners until the \
    first edition is opened; the name, the game, the schedule, the seed, the beacon and the house \
    bots never. docs/tournaments.md lists the rules. The audit log shows old and new values.

Examples:
  arbiter tournament edit finals --set title=\"Spring finals\" replays=after_close
  arbiter tournament edit finals --set closes=2027-03-02T12:00:00Z --dry-run
  arbiter tournament edit finals --set freeze=
  arbiter tournament edit finals --file finals.toml"
)]
pub(super) struct Edit {
    #[command(flatten)]
    target: TournamentArgs,
    /// New values of keys of the tournament file, such as limits.memory=1GB. A key without a value
    /// returns to its default.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., required_unless_present = "file")]
    set: Vec<String>,
    /// The changed tournament file. Keys that it leaves out return to their defaults.
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    file: Option<PathBuf>,
    /// Only show what would change.
    #[arg(long)]
    dry_run: bool,
}

impl Edit {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let Self { target, set, file, dry_run } = self;
        let TournamentArgs { tournament, response } = target;
        let source = match &file {
            Some(path) => Source::File(create::read(games, path)?.0),
            None => Source::Keys(key_changes(&set)?),
        };
        let edited = response.client.run(async |server| {
            let request = GetTournamentRequest { tournament: tournament.clone(), edition: None };
            let revision = server.send(request).await?.revision;
            let source = Some(source);
            let apply = !dry_run;
            let sent =
                server.send(EditTournamentRequest { tournament, source, revision, apply }).await;
            sent.map_err(|failure| match &file {
                Some(path) => failure.with_context(&path.display().to_string()),
                None => failure,
            })
        })?;
        response.print(|| object(&edited, dry_run), |out| show(out, &edited, dry_run))
    }
}

/// The changes of `--set KEY=VALUE …` as lines of a tournament file.
fn key_changes(pairs: &[String]) -> Result<KeyChanges, Failure> {
    let mut changes = KeyChanges::default();
    for pair in pairs {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let split =
            pair.split_once('=').filter(|(key, _)| !key.is_empty() && key.chars().all(is_name));
        let Some((key, value)) = split else {
            return Err(Failure::usage(format!("--set {pair}: write KEY=VALUE, such as closes=…")));
        };
        if value.is_empty() {
            changes.unset.push(key.to_owned());
        } else {
            let value = toml_value(value);
            writeln!(changes.set, "{key} = {value}").expect("writing to a string");
        }
    }
    Ok(changes)
}

/// A value as TOML. Other values are text, and so are times, which the file has in quotes.
fn toml_value(text: &str) -> String {
    let parsed = toml::from_str::<toml::Table>(&format!("value = {text}"));
    match parsed.ok().and_then(|mut table| table.remove("value")) {
        None | Some(toml::Value::Datetime(_)) => toml::Value::from(text).to_string(),
        Some(value) => value.to_string(),
    }
}

fn show(out: &mut Output, edited: &EditTournamentResponse, dry_run: bool) -> Result<(), Failure> {
    let value = |text: &str| match serde_json::from_str::<Value>(text) {
        Ok(value) => shorten(&value),
        Err(_) => "none".to_owned(),
    };
    for SettingChange { key, before, after, effect } in &edited.changes {
        out.line(&format!("{key}: {} → {}", value(before), value(after)))?;
        out.line(&format!("  {effect}"))?;
    }
    if edited.changes.is_empty() {
        return out.line("nothing differs from the present settings");
    }
    out.line(if dry_run { "nothing changed yet; apply it without --dry-run" } else { "changed" })
}

fn object(edited: &EditTournamentResponse, dry_run: bool) -> Value {
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let change = |change: &SettingChange| {
        json!({
            "key": change.key,
            "before": value(&change.before),
            "after": value(&change.after),
            "effect": change.effect,
        })
    };
    let changes: Vec<_> = edited.changes.iter().map(change).collect();
    json!({ "applied": !dry_run && !changes.is_empty(), "changes": changes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_toml_or_text() {
        let set = |pair: &str| key_changes(&[pair.to_owned()]).map(|changes| changes.set);
        for (pair, line) in [
            ("per_hour=5", "per_hour = 5\n"),
            ("submissions.preflight=false", "submissions.preflight = false\n"),
            ("title=Spring Cup", "title = \"Spring Cup\"\n"),
            ("title=a \"b\" = c", "title = 'a \"b\" = c'\n"),
            ("closes=2027-03-01T12:00:00Z", "closes = \"2027-03-01T12:00:00Z\"\n"),
            ("limits.memory=\"1GB\"", "limits.memory = \"1GB\"\n"),
            ("audit.replay=5%", "audit.replay = \"5%\"\n"),
        ] {
            assert_eq!(set(pair).ok().as_deref(), Some(line), "{pair}");
        }
        for wrong in ["title", "=x", "a b=c"] {
            assert!(set(wrong).is_err(), "{wrong}");
        }
        let unset = key_changes(&["freeze=".to_owned()]).ok().map(|changes| changes.unset);
        assert_eq!(unset, Some(vec!["freeze".to_owned()]));
    }
}
