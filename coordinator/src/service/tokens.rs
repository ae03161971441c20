//! Tokens, for administrators.

use arbiter_proto::ids::TokenId;
use arbiter_proto::v1::{
    CreateTokenRequest, CreateTokenResponse, ListTokensRequest, ListTokensResponse,
    RevokeTokenRequest, RevokeTokenResponse, RotateTokenRequest, RotateTokenResponse, Token,
};
use serde_json::json;
use time::{Duration, OffsetDateTime};

use super::{Caller, Result, Service, ServiceError, change, format_time, micros, parse_micros};
use crate::access::{self, Role};
use crate::db::tokens;

/// The longest time for which a replaced secret may stay valid.
const MAX_OVERLAP: Duration = Duration::days(30);

impl Service {
    pub(crate) async fn create_token(
        &self,
        caller: &Caller,
        CreateTokenRequest { role, name, expires_at_us }: CreateTokenRequest,
    ) -> Result<CreateTokenResponse> {
        let principal = caller.require(Role::Admin)?;
        let role: Role = role.parse()?;
        access::check_name(&name)?;
        let now = self.now();
        let expires = Some(expires_at_us).filter(|end| *end != 0).map(parse_micros).transpose()?;
        if expires.is_some_and(|end| end <= now) {
            return Err(ServiceError::invalid_argument(
                "the expiry of a token must be in the future",
            ));
        }
        let mut transaction = self.pool.begin().await?;
        let (id, secret) =
            access::create_until(&mut *transaction, role, &name, expires, now).await?;
        let subject = format!("{id} {role} {name}");
        let detail = access::token_detail(role, &name, expires);
        self.commit_change(transaction, principal, "token create", &subject, Some(detail)).await?;
        Ok(CreateTokenResponse { id: id.0, token: secret.text().to_owned() })
    }

    pub(crate) async fn rotate_token(
        &self,
        caller: &Caller,
        RotateTokenRequest { token, overlap_us }: RotateTokenRequest,
    ) -> Result<RotateTokenResponse> {
        let principal = caller.require(Role::Admin)?;
        let overlap = Duration::microseconds(overlap_us);
        if overlap.is_negative() || overlap > MAX_OVERLAP {
            let max_days = MAX_OVERLAP.whole_days();
            let error = format!("a replaced secret may stay valid for at most {max_days} days");
            return Err(ServiceError::invalid_argument(error));
        }
        let token = self.valid_token(&token).await?;
        let until = Some(self.now() + overlap).filter(|_| overlap.is_positive());
        let mut transaction = self.pool.begin().await?;
        let secret = access::rotate(&mut *transaction, token.id, until).await?;
        let secret = secret.ok_or_else(|| ServiceError::missing("valid token", token.id))?;
        let subject = format!("{} {} {}", token.id, token.role, token.name);
        let former_until =
            |until: Option<OffsetDateTime>| json!({"former_until": until.map(format_time)});
        let detail = change(former_until(token.previous_valid_until), former_until(until));
        self.commit_change(transaction, principal, "token rotate", &subject, Some(detail)).await?;
        Ok(RotateTokenResponse {
            id: token.id.0,
            role: token.role.as_str().to_owned(),
            name: token.name,
            token: secret.text().to_owned(),
            previous_valid_until_us: until.map_or(0, micros),
        })
    }

    pub(crate) async fn revoke_token(
        &self,
        caller: &Caller,
        request: RevokeTokenRequest,
    ) -> Result<RevokeTokenResponse> {
        let principal = caller.require(Role::Admin)?;
        let id = TokenId(request.id);
        let mut transaction = self.pool.begin().await?;
        if !tokens::revoke(&mut transaction, id, self.now()).await? {
            return Err(ServiceError::missing("valid token", id));
        }
        let token = tokens::get(&mut *transaction, id).await?;
        let token = token.ok_or_else(|| ServiceError::missing("token", id))?;
        let subject = format!("{id} {} {}", token.role, token.name);
        let detail = change(json!({"revoked": false}), json!({"revoked": true}));
        self.commit_change(transaction, principal, "token revoke", &subject, Some(detail)).await?;
        Ok(RevokeTokenResponse {})
    }

    pub(crate) async fn list_tokens(
        &self,
        caller: &Caller,
        _: ListTokensRequest,
    ) -> Result<ListTokensResponse> {
        caller.require(Role::Admin)?;
        let tokens = tokens::list(&self.pool).await?;
        let now = self.now();
        let message = |token: tokens::Token| Token {
            id: token.id.0,
            role: token.role.as_str().to_owned(),
            name: token.name,
            revoked: token.revoked_at.is_some(),
            created_at_us: micros(token.created_at),
            expires_at_us: token.expires_at.map_or(0, micros),
            last_used_at_us: token.used_at.map_or(0, micros),
            previous_valid_until_us: token
                .previous_valid_until
                .filter(|until| now < *until)
                .map_or(0, micros),
        };
        let tokens = tokens.into_iter().map(message).collect();
        Ok(ListTokensResponse { tokens })
    }
}

impl Service {
    /// The valid token with this number, or with this name if it is the only one.
    async fn valid_token(&self, token_name: &str) -> Result<tokens::Token> {
        let now = self.now();
        let all_tokens = tokens::list(&self.pool).await?;
        let mut valid_tokens = all_tokens.into_iter().filter(|token| token.is_valid(now));
        if let Ok(id) = token_name.parse() {
            let token = valid_tokens.find(|token| token.id == TokenId(id));
            return token.ok_or_else(|| ServiceError::missing("valid token", token_name));
        }
        let mut tokens: Vec<_> = valid_tokens.filter(|token| token.name == token_name).collect();
        if tokens.len() > 1 {
            let ids: Vec<_> = tokens.iter().map(|token| token.id.to_string()).collect();
            let error = format!(
                "several tokens are named {token_name}; use the number of one of them: {}",
                ids.join(", ")
            );
            return Err(ServiceError::invalid_argument(error));
        }
        tokens.pop().ok_or_else(|| ServiceError::missing("valid token", token_name))
    }
}
