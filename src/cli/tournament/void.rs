//! `arbiter tournament void T`: matches that an organiser does not trust are played again.

use arbiter_proto::ids::MatchId;
use arbiter_proto::v1::{VoidMatchesRequest, VoidMatchesResponse, VoidStanding};
use clap::Args;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::cli::client::TournamentArgs;
use crate::cli::moments::{micros, moment};
use crate::failure::Failure;
use crate::output::{Columns, Output, fields, matches, merged};

/// Declare matches void, so that they are played again in a new edition; without --apply only show
/// which they are and what the leaderboard is without them.
#[derive(Debug, Args)]
#[command(
    after_help = "Which matches: those that fit all that is given. The official leaderboard stays \
what it is until the new
edition is complete, which takes over everything else. A worker that is not to play any more needs
its token revoked: arbiter token revoke.

Examples:
  arbiter tournament void finals --worker cellar
  arbiter tournament void finals --worker cellar --from 2027-03-01T12:00:00Z --apply \\
      --reason \"its clock was wrong\"
  arbiter tournament void finals --match 3/1207 --match 3/1208 --json"
)]
pub(super) struct Void {
    /// Matches that this worker reported.
    #[arg(long, value_name = "NAME")]
    worker: Option<String>,
    /// Matches that were reported then or later, as in 2027-03-01T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Option<OffsetDateTime>,
    /// Matches that were reported before then.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    to: Option<OffsetDateTime>,
    /// These matches, as EDITION/NUMBER.
    #[arg(long = "match", value_name = "ID", num_args = 1..)]
    matches: Vec<MatchId>,
    /// Why, for the audit log.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Do it.
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    which: TournamentArgs,
}

impl Void {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self { worker, from, to, matches: named, apply, .. } = self;
        let TournamentArgs { tournament, answer } = self.which;
        if worker.is_none() && from.is_none() && to.is_none() && named.is_empty() {
            let error = "say which matches: --worker, --from, --to or --match";
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
        let found = answer.client.ask(request)?;
        answer.print(|| object(&found, apply), |out| show(out, &found, apply, &tournament))
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
    let done = if applied { "now void" } else { "to be void" };
    out.line(&format!("{} {done}{named}{more}", matches(*count)))?;
    out.line(&format!("edition {edition} rests on {missing} of them"))?;
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
                "a new edition plays them again; where rerun is manual: arbiter tournament start \
                 {tournament}"
            )
        } else {
            "nothing was changed; --apply declares them void".to_owned()
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
