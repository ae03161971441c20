//! Tokens, for administrators.

use arbiter_proto::ids::TokenId;
use arbiter_proto::v1::token_service_server::TokenService;
use arbiter_proto::v1::{
    CreateTokenRequest, CreateTokenResponse, ListTokensRequest, ListTokensResponse,
    RevokeTokenRequest, RevokeTokenResponse, Token,
};
use tonic::{Request, Response, Status};

use super::Shared;
use super::status::{database, missing};
use crate::access::{self, BadName, Role, UnknownRole};
use crate::db::tokens;

#[tonic::async_trait]
impl TokenService for Shared {
    async fn create_token(
        &self,
        request: Request<CreateTokenRequest>,
    ) -> Result<Response<CreateTokenResponse>, Status> {
        let who = self.admit(&request, Role::Admin).await?;
        let CreateTokenRequest { role, name } = request.into_inner();
        let unknown = |error: UnknownRole| Status::invalid_argument(error.to_string());
        let role: Role = role.parse().map_err(unknown)?;
        let name = if name.is_empty() { role.word().to_owned() } else { name };
        let unfit = |error: BadName| Status::invalid_argument(error.to_string());
        access::check_name(&name).map_err(unfit)?;
        let mut transaction = self.pool.begin().await.map_err(database)?;
        let made = access::create(&mut *transaction, role, &name, self.now()).await;
        let (id, secret) = made.map_err(database)?;
        let subject = format!("{id} {role} {name}");
        self.note_in(&mut *transaction, &who, "token create", &subject, None).await?;
        transaction.commit().await.map_err(database)?;
        Ok(Response::new(CreateTokenResponse { id: id.0, token: secret.text().to_owned() }))
    }

    async fn revoke_token(
        &self,
        request: Request<RevokeTokenRequest>,
    ) -> Result<Response<RevokeTokenResponse>, Status> {
        let who = self.admit(&request, Role::Admin).await?;
        let id = TokenId(request.into_inner().id);
        let mut transaction = self.pool.begin().await.map_err(database)?;
        if !tokens::revoke(&mut *transaction, id, self.now()).await.map_err(database)? {
            return Err(missing("valid token", id));
        }
        let subject = id.to_string();
        self.note_in(&mut *transaction, &who, "token revoke", &subject, None).await?;
        transaction.commit().await.map_err(database)?;
        Ok(Response::new(RevokeTokenResponse {}))
    }

    async fn list_tokens(
        &self,
        request: Request<ListTokensRequest>,
    ) -> Result<Response<ListTokensResponse>, Status> {
        self.admit(&request, Role::Admin).await?;
        let tokens = tokens::list(&self.pool).await.map_err(database)?;
        let message = |token: tokens::Token| Token {
            id: token.id.0,
            role: token.role.word().to_owned(),
            name: token.name,
            revoked: token.revoked_at.is_some(),
        };
        let tokens = tokens.into_iter().map(message).collect();
        Ok(Response::new(ListTokensResponse { tokens }))
    }
}
