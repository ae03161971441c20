//! The audit log and the audit of workers, for organisers.

use arbiter_proto::v1::audit_service_server::AuditService;
use arbiter_proto::v1::{
    Change, ListChangesRequest, ListChangesResponse, ListWorkersRequest, ListWorkersResponse,
    ReinstateWorkerRequest, ReinstateWorkerResponse, SuspendWorkerRequest, SuspendWorkerResponse,
};
use tonic::{Request, Response, Status};

use super::status::{database, time_of};
use super::{Shared, micros};
use crate::access::Role;
use crate::db::audit::{self, Wanted};

/// Lines where none are asked for, and at most.
const LINES: (u32, u32) = (100, 1000);

#[tonic::async_trait]
impl AuditService for Shared {
    async fn list_changes(
        &self,
        request: Request<ListChangesRequest>,
    ) -> Result<Response<ListChangesResponse>, Status> {
        self.admit(&request, Role::Organiser).await?;
        let ListChangesRequest { tournament, who, since_us, before, limit } = request.into_inner();
        let wanted = Wanted {
            tournament: Some(tournament).filter(|name| !name.is_empty()),
            who: Some(who).filter(|name| !name.is_empty()),
            since: Some(since_us).filter(|since| *since != 0).map(time_of).transpose()?,
            before: Some(before).filter(|before| *before != 0),
        };
        let mut changes = audit::find(&self.pool, &wanted).await.map_err(database)?;
        let limit = if limit == 0 { LINES.0 } else { limit.min(LINES.1) };
        changes.truncate(limit as usize);
        let changes = changes.into_iter().map(message).collect();
        Ok(Response::new(ListChangesResponse { changes }))
    }

    async fn list_workers(
        &self,
        request: Request<ListWorkersRequest>,
    ) -> Result<Response<ListWorkersResponse>, Status> {
        let who = self.admit(&request, Role::Organiser).await?;
        let ListWorkersRequest { tournament } = request.into_inner();
        Ok(Response::new(self.audited_workers(&who, &tournament).await?))
    }

    async fn suspend_worker(
        &self,
        request: Request<SuspendWorkerRequest>,
    ) -> Result<Response<SuspendWorkerResponse>, Status> {
        let who = self.admit(&request, Role::Organiser).await?;
        let SuspendWorkerRequest { worker, reason } = request.into_inner();
        self.suspend_worker_now(&who, &worker, &reason).await?;
        Ok(Response::new(SuspendWorkerResponse {}))
    }

    async fn reinstate_worker(
        &self,
        request: Request<ReinstateWorkerRequest>,
    ) -> Result<Response<ReinstateWorkerResponse>, Status> {
        let who = self.admit(&request, Role::Organiser).await?;
        self.reinstate_worker_now(&who, &request.into_inner().worker).await?;
        Ok(Response::new(ReinstateWorkerResponse {}))
    }
}

fn message(change: audit::Change) -> Change {
    Change {
        id: change.id,
        at_us: micros(change.at),
        token: change.token.unwrap_or_default(),
        name: change.name.unwrap_or_default(),
        role: change.role.map(|role| role.word().to_owned()).unwrap_or_default(),
        action: change.action,
        subject: change.subject,
        detail: change.detail.map(|detail| detail.to_string()).unwrap_or_default(),
    }
}
