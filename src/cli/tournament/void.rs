//! `arbiter tournament void T`: declares matches void, so that they are played again.

use arbiter_proto::ids::MatchName;
use arbiter_proto::v1::{VoidMatchesRequest, VoidMatchesResponse, VoidStanding};
use clap::Args;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::cli::client::TournamentArgs;
use crate::cli::time_arg::{micros, moment};
use crate::failure::Failure;
use crate::output::{self, Columns, Output, fields, matches, merge, non_empty};

/// Declare matches void, so that a new edition plays them again.
///
/// Without --apply, only show the matches and the leaderboard without them.
#[derive(Debug, Args)]
#[command(
    after_help = "The options select matches that fit all of them. The official leaderboard stays \
    unchanged until the new edition is complete; that edition keeps all other results. To stop a \
    worker, suspend it (arbiter workers suspend) or revoke its token (arbiter token revoke).

Examples:
  arbiter tournament void finals --worker cellar
  arbiter tournament void finals --worker cellar --from 2027-03-01T12:00:00Z \\
      --apply --reason \"its clock was wrong\"
  arbiter tournament void finals --match finals/1207 --match finals/1208 --json"
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
    /// These matches, each as TOURNAMENT/NUMBER.
    #[arg(long = "match", value_name = "ID", num_args = 1..)]
    matches: Vec<MatchName>,
    /// The reason, for the audit log.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Declare them void.
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    target: TournamentArgs,
}

impl Void {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self { worker, from, to, matches: match_names, apply, .. } = self;
        let TournamentArgs { tournament, response } = self.target;
        if worker.is_none() && from.is_none() && to.is_none() && match_names.is_empty() {
            let error = "select matches with --worker, --from, --to or --match";
            return Err(Failure::usage(error));
        }
        let request = VoidMatchesRequest {
            tournament: tournament.clone(),
            worker: worker.unwrap_or_default(),
            from_us: from.map(micros),
            to_us: to.map(micros),
            matches: match_names.iter().map(ToString::to_string).collect(),
            reason: self.reason,
            apply,
        };
        let result = response.client.send(request)?;
        response.print(|| object(&result, apply), |out| show(out, &result, apply, &tournament))
    }
}

fn show(
    out: &mut Output,
    response: &VoidMatchesResponse,
    applied: bool,
    tournament: &str,
) -> Result<(), Failure> {
    let VoidMatchesResponse { matches: count, examples, edition, missing, columns, .. } = response;
    let has_more = usize::try_from(*count).is_ok_and(|count| count > examples.len());
    let suffix = if has_more { ", …" } else { "" };
    let example_list =
        if examples.is_empty() { String::new() } else { format!(": {}", examples.join(", ")) };
    let verb = if applied { "declared void" } else { "selected" };
    out.line(&format!("{} {verb}{example_list}{suffix}", matches(*count)))?;
    out.line(&format!("edition {edition} uses {missing} of them"))?;
    let score = columns.join(" ");
    let header = ["rank", "without", "", "bot", &score, "without"];
    let mut table = Columns::new(header, &[2, 3]);
    for VoidStanding { bot, rank, rank_without, score, score_without } in &response.standings {
        let change = i64::from(*rank) - i64::from(*rank_without);
        let change = if change == 0 { String::new() } else { format!("{change:+}") };
        table.push(vec![
            output::rank(*rank, false),
            output::rank(*rank_without, false),
            change,
            bot.clone(),
            score.join(" "),
            score_without.join(" "),
        ]);
    }
    out.table(&table)?;
    if !response.note.is_empty() {
        out.line(&response.note)?;
    }
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

fn object(response: &VoidMatchesResponse, applied: bool) -> Value {
    let standing_json = |standing: &VoidStanding| {
        let ranks = json!({
            "rank": output::known_rank(standing.rank),
            "rank_without": output::known_rank(standing.rank_without),
        });
        merge(fields!(standing; bot, rank, rank_without, score, score_without), ranks)
    };
    let standings =
        json!({ "places": response.standings.iter().map(standing_json).collect::<Vec<_>>() });
    let mut matches = fields!(response; matches, edition, missing, columns);
    matches["first"] = json!(response.examples);
    matches["note"] = json!(non_empty(&response.note));
    merge(merge(json!({ "applied": applied }), matches), standings)
}
