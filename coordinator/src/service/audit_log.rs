//! The audit log, for organisers.

use arbiter_proto::v1::{AuditEntry, ListAuditEntriesRequest, ListAuditEntriesResponse};

use super::{Caller, Result, Service, micros, parse_micros};
use crate::access::Role;
use crate::db::audit_log::{self, ChangeFilter};

/// The number of entries if the request has no limit.
const DEFAULT_ENTRIES: u32 = 100;
/// Maximum number of entries in a response.
const MAX_ENTRIES: u32 = 1000;

impl Service {
    pub(crate) async fn list_audit_entries(
        &self,
        caller: &Caller,
        request: ListAuditEntriesRequest,
    ) -> Result<ListAuditEntriesResponse> {
        caller.require(Role::Organiser)?;
        let ListAuditEntriesRequest { tournament, actor, since_us, before, limit } = request;
        let filter = ChangeFilter {
            tournament: Some(tournament).filter(|name| !name.is_empty()),
            who: Some(actor).filter(|name| !name.is_empty()),
            since: Some(since_us).filter(|since| *since != 0).map(parse_micros).transpose()?,
            before: Some(before).filter(|before| *before != 0),
        };
        let mut changes = audit_log::find(&self.pool, &filter).await?;
        let limit = if limit == 0 { DEFAULT_ENTRIES } else { limit.min(MAX_ENTRIES) };
        changes.truncate(limit as usize);
        let changes = changes.into_iter().map(message).collect();
        Ok(ListAuditEntriesResponse { entries: changes })
    }
}

fn message(change: audit_log::Change) -> AuditEntry {
    AuditEntry {
        id: change.id,
        at_us: micros(change.at),
        token: change.token.unwrap_or_default(),
        token_name: change.name.unwrap_or_default(),
        role: change.role.map(|role| role.as_str().to_owned()).unwrap_or_default(),
        action: change.action,
        subject: change.subject,
        detail: change.detail.map(|detail| detail.to_string()).unwrap_or_default(),
    }
}
