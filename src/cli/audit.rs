//! `arbiter audit`: shows the audit log.

use arbiter_proto::v1::{AuditEntry, ListAuditEntriesRequest};
use clap::Args;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::client::{Client, Server};
use super::time_arg::{TimeArg, micros, time_arg};
use crate::failure::Failure;
use crate::output::{Columns, moment, moment_json, print};

/// Maximum number of lines in a response.
const PAGE: u32 = 1000;

/// Show the audit log: changes and the tokens that made them (for organisers).
#[derive(Debug, Args)]
#[command(after_help = "Each line is written in the transaction of its change and never edited. \
    With --json, lines contain the values before and after the change.

Examples:
  arbiter audit
  arbiter audit finals --since 7d
  arbiter audit --who ada --json")]
pub(super) struct Audit {
    /// Only changes to this tournament.
    #[arg(value_name = "T")]
    tournament: Option<String>,
    /// Only changes since this time, or this long ago (for example 7d).
    #[arg(long, value_name = "TIME", value_parser = time_arg)]
    since: Option<TimeArg>,
    /// Only changes made with a token of this name or number.
    #[arg(long, value_name = "WHO")]
    who: Option<String>,
    /// Maximum number of changes, newest first.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Print one JSON object per change.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl Audit {
    pub(super) fn run(self) -> Result<(), Failure> {
        let now = OffsetDateTime::now_utc();
        let request = ListAuditEntriesRequest {
            tournament: self.tournament.unwrap_or_default(),
            actor: self.who.unwrap_or_default(),
            since_us: self.since.map_or(0, |since| micros(since.before(now))),
            before: 0,
            limit: 0,
        };
        let changes = self.client.run(async |server| latest(&server, request, self.limit).await)?;
        let table = Columns::new(["time", "who", "action", "subject"], &[0, 1, 2, 3]);
        print(|out| out.list(self.json, &changes, object, table, row))
    }
}

/// Fetches the latest changes page by page.
async fn latest(
    server: &Server,
    mut request: ListAuditEntriesRequest,
    limit: usize,
) -> Result<Vec<AuditEntry>, Failure> {
    let mut entries = Vec::new();
    while entries.len() < limit {
        request.limit = u32::try_from(limit - entries.len()).unwrap_or(PAGE).min(PAGE);
        let page = server.send(request.clone()).await?.entries;
        let Some(last) = page.last() else { break };
        request.before = last.id;
        entries.extend(page);
    }
    Ok(entries)
}

fn row(change: &AuditEntry) -> Vec<String> {
    let actor = match change.token {
        0 => "arbiter".to_owned(),
        token => format!("{} ({} {token})", change.token_name, change.role),
    };
    vec![moment(change.at_us), actor, change.action.clone(), change.subject.clone()]
}

fn object(change: &AuditEntry) -> Value {
    let detail: Value = serde_json::from_str(&change.detail).unwrap_or_default();
    let actor = (change.token != 0)
        .then(|| json!({"token": change.token, "name": change.token_name, "role": change.role}));
    json!({
        "id": change.id, "at": moment_json(change.at_us), "who": actor, "action": change.action,
        "subject": change.subject, "detail": detail,
    })
}
