//! `arbiter tournament void T`: declares matches void, so that they are played again.

use arbiter_proto::ids::MatchId;
use arbiter_proto::v1::{VoidMatchesRequest, VoidMatchesResponse, VoidStanding};
use clap::Args;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::cli::client::TournamentArgs;
use crate::cli::time_arg::{micros, moment};
use crate::failure::Failure;
use crate::output::{Columns, Output, fields, matches, merged};

/// Declare matches void, so that a new edition plays them again.
///
/// Without --apply, only show the matches and the leaderboard without them.
#[derive(Debug, Args)]
#[command(
    after_help = "The options select matches that fit all of them. The official leaderboard stays \
unchanged until the new
edition is complete; that edition reuses all other results. To stop a worker, suspend it (arbiter workers
suspend) or revoke its token (arbiter token revoke).

Examples:
  arbiter tournament void finals --worker cellar
  arbiter tournament void finals --worker cellar --from 2027-03-01T12:00:00Z --apply \\
      --reason \"its clock was wrong\"
  arbiter tournament void finals --match 3/1207 --match 3/1208 --json"
)]
pub(super) struct Void {
    /// Matches reported by this worker.
    #[arg(long, value_name = "NAME")]
    worker: Option<String>,
    /// Matches reported at or after this time, for example 2027-03-01T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Option<OffsetDateTime>,
    /// Matches reported before this time.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    to: Option<OffsetDateTime>,
    /// These matches, each as EDITION/NUMBER.
    #[arg(long = "match", value_name = "ID", num_args = 1..)]
    matches: Vec<MatchId>,
    /// The reason, for the audit log.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Declare them void.
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    which: TournamentArgs,
}

impl Void {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self { worker, from, to, matches: named, apply, .. } = self;
        let TournamentArgs { tournament, response } = self.which;
        if worker.is_none() && from.is_none() && to.is_none() && named.is_empty() {
            let error = "select matches with --worker, --from, --to or --match";
            return Err(Failure::usage(error));
        }
        let request = VoidMatchesRequest {
            tournament: tournament.clone(),
            worker: worker.unwrap_or_default(),
            from_us: from.map(micros),
            to_us: to.map(micros),
            matches: named.iter().map(ToString::to_string).collect(),
            reason: self.reason,
            apply,
        };
        let found = response.client.send(request)?;
        response.print(|| object(&found, apply), |out| show(out, &found, apply, &tournament))
    }
}

fn show(
    out: &mut Output,
    found: &VoidMatchesResponse,
    applied: bool,
    tournament: &str,
) -> Result<(), Failure> {
    let VoidMatchesResponse { matches: count, examples, edition, missing, columns, standings } =
        found;
    let more = usize::try_from(*count).is_ok_and(|count| count > examples.len());
    let more = if more { ", …" } else { "" };
    let named =
        if examples.is_empty() { String::new() } else { format!(": {}", examples.join(", ")) };
    let done = if applied { "declared void" } else { "selected" };
    out.line(&format!("{} {done}{named}{more}", matches(*count)))?;
    out.line(&format!("edition {edition} uses {missing} of them"))?;
    let score = columns.join(" ");
    let header = ["rank", "without", "", "bot", &score, "without"];
    let mut table = Columns::new(header, &[2, 3]);
    for VoidStanding { bot, rank, rank_without, score, score_without } in standings {
        let moved = i64::from(*rank) - i64::from(*rank_without);
        let moved = if moved == 0 { String::new() } else { format!("{moved:+}") };
        table.push(vec![
            rank.to_string(),
            rank_without.to_string(),
            moved,
            bot.clone(),
            score.join(" "),
            score_without.join(" "),
        ]);
    }
    out.table(&table)?;
    if *count > 0 {
        out.line(&if applied {
            format!(
                "a new edition plays them again; if rerun is manual, start it with arbiter \
                 tournament start {tournament}"
            )
        } else {
            "nothing changed; declare them void with --apply".to_owned()
        })?;
    }
    Ok(())
}

fn object(found: &VoidMatchesResponse, applied: bool) -> Value {
    let place =
        |place: &VoidStanding| fields!(place; bot, rank, rank_without, score, score_without);
    let places = json!({ "places": found.standings.iter().map(place).collect::<Vec<_>>() });
    let mut matches = fields!(found; matches, edition, missing, columns);
    matches["first"] = json!(found.examples);
    merged(merged(json!({ "applied": applied }), matches), places)
}
