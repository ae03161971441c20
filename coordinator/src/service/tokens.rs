//! Tokens. Administrators manage all of them, organisers those of players.

use arbiter_proto::ids::TokenId;
use arbiter_proto::v1::{
    CreateTokenRequest, CreateTokenResponse, CreateTokensRequest, CreateTokensResponse,
    ListTokensRequest, ListTokensResponse, RevokeTokenRequest, RevokeTokenResponse,
    RotateTokenRequest, RotateTokenResponse, Token,
};
use serde_json::json;
use time::{Duration, OffsetDateTime};

use super::{
    Caller, Principal, Result, Service, ServiceError, change, format_time, micros, parse_micros,
};
use crate::access::creation::{self, CreateTokenError, Name, NewToken, RefusedNames, Terms};
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
        let terms = self.terms(caller, &role, expires_at_us)?;
        let name = match name.trim() {
            "" => Name::Numbered(terms.role.as_str()),
            name => Name::Exact(name),
        };
        let mut transaction = self.pool.begin().await?;
        let created = creation::create_one(&mut transaction, name, terms, self.now()).await?;
        transaction.commit().await?;
        Ok(created_message(terms, created))
    }

    pub(crate) async fn create_tokens(
        &self,
        caller: &Caller,
        request: CreateTokensRequest,
    ) -> Result<CreateTokensResponse> {
        Ok(self.create_tokens_or_list_problems(caller, request).await??)
    }

    /// Creates a token for each name, or none. The inner error has all names that are refused.
    pub(crate) async fn create_tokens_or_list_problems(
        &self,
        caller: &Caller,
        CreateTokensRequest { role, names, expires_at_us, lines }: CreateTokensRequest,
    ) -> Result<Result<CreateTokensResponse, RefusedNames>> {
        let terms = self.terms(caller, &role, expires_at_us)?;
        let mut transaction = self.pool.begin().await?;
        let now = self.now();
        let created = match creation::create_all(&mut transaction, &names, &lines, terms, now).await
        {
            Ok(created) => created,
            Err(CreateTokenError::Names(names)) => return Ok(Err(names)),
            Err(CreateTokenError::Database(error)) => return Err(error.into()),
        };
        transaction.commit().await?;
        let tokens = created.into_iter().map(|token| created_message(terms, token)).collect();
        Ok(Ok(CreateTokensResponse { tokens }))
    }

    /// The terms of new tokens, which the caller may create.
    fn terms(&self, caller: &Caller, role: &str, expires_at_us: i64) -> Result<Terms> {
        let role = role.parse()?;
        let by = Some(manager(caller, role)?.id);
        let expires_at = Some(expires_at_us).filter(|end| *end != 0).map(parse_micros);
        let expires_at = expires_at.transpose()?;
        if expires_at.is_some_and(|end| end <= self.now()) {
            return Err(ServiceError::invalid_argument(
                "the expiry of a token must be in the future",
            ));
        }
        Ok(Terms { role, expires_at, by })
    }

    pub(crate) async fn rotate_token(
        &self,
        caller: &Caller,
        RotateTokenRequest { token, overlap_us }: RotateTokenRequest,
    ) -> Result<RotateTokenResponse> {
        caller.require(Role::Organiser)?;
        let overlap = Duration::microseconds(overlap_us);
        if overlap.is_negative() || overlap > MAX_OVERLAP {
            let max_days = MAX_OVERLAP.whole_days();
            let error = format!("a replaced secret may stay valid for at most {max_days} days");
            return Err(ServiceError::invalid_argument(error));
        }
        let token = self.named_token(&token).await?;
        let principal = manager(caller, token.role)?;
        let now = self.now();
        if !token.is_valid(now) {
            return Err(ServiceError::missing("valid token", &token.name));
        }
        let until = Some(now + overlap).filter(|_| overlap.is_positive());
        let mut transaction = self.pool.begin().await?;
        let secret = access::rotate(&mut *transaction, token.id, until).await?;
        let secret = secret.ok_or_else(|| ServiceError::missing("valid token", token.id))?;
        let former_until =
            |until: Option<OffsetDateTime>| json!({"former_until": until.map(format_time)});
        let detail = change(former_until(token.previous_valid_until), former_until(until));
        let subject = subject(&token);
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
        RevokeTokenRequest { id, token }: RevokeTokenRequest,
    ) -> Result<RevokeTokenResponse> {
        caller.require(Role::Organiser)?;
        let name = if token.is_empty() { id.to_string() } else { token };
        let token = self.named_token(&name).await?;
        let principal = manager(caller, token.role)?;
        let mut transaction = self.pool.begin().await?;
        if !tokens::revoke(&mut transaction, token.id, self.now()).await? {
            return Err(ServiceError::missing("valid token", token.id));
        }
        let subject = subject(&token);
        let detail = change(json!({"revoked": false}), json!({"revoked": true}));
        self.commit_change(transaction, principal, "token revoke", &subject, Some(detail)).await?;
        let role = token.role.as_str().to_owned();
        Ok(RevokeTokenResponse { id: token.id.0, role, name: token.name })
    }

    pub(crate) async fn list_tokens(
        &self,
        caller: &Caller,
        ListTokensRequest { role, token: name }: ListTokensRequest,
    ) -> Result<ListTokensResponse> {
        let principal = caller.require(Role::Organiser)?;
        let only = Some(role).filter(|role| !role.is_empty());
        let only = only.map(|role| role.parse::<Role>()).transpose()?;
        if let Some(role) = only {
            manager(caller, role)?;
        }
        let mut tokens = tokens::list(&self.pool).await?;
        let is_visible = |role: Role| role == Role::Player || principal.role == Role::Admin;
        tokens.retain(|token| is_visible(token.role) && only.is_none_or(|role| role == token.role));
        let name = name.trim();
        if !name.is_empty() {
            tokens.retain(|token| token.name == name || token.id.to_string() == name);
        }
        let now = self.now();
        Ok(ListTokensResponse {
            tokens: tokens.into_iter().map(|token| listed_message(token, now)).collect(),
        })
    }

    /// Checks that the caller's token is still valid, during a long response.
    pub(crate) async fn check_still_valid(&self, caller: &Caller) -> Result<()> {
        let principal = caller.require(Role::Player)?;
        if tokens::is_valid(&self.pool, principal.id).await? {
            return Ok(());
        }
        Err(ServiceError::unauthenticated("the token is no longer valid"))
    }

    /// The token with this number. If no token ever had the number: the one with this name. It is
    /// not revoked. A token that expired is found by its name if no valid one has the name.
    async fn named_token(&self, name: &str) -> Result<tokens::Token> {
        let name = name.trim();
        let now = self.now();
        let mut tokens = tokens::list(&self.pool).await?;
        if let Ok(id) = name.parse()
            && let Some(token) = tokens.iter().find(|token| token.id == TokenId(id))
        {
            let token = Some(token).filter(|token| token.revoked_at.is_none());
            return token.cloned().ok_or_else(|| ServiceError::missing("valid token", name));
        }
        tokens.retain(|token| token.revoked_at.is_none() && token.name == name);
        if tokens.iter().any(|token| token.is_valid(now)) {
            tokens.retain(|token| token.is_valid(now));
        }
        if tokens.len() > 1 {
            let ids: Vec<_> = tokens.iter().map(|token| token.id.to_string()).collect();
            let error = format!(
                "several tokens are named {name}; use the number of one of them: {}",
                ids.join(", ")
            );
            return Err(ServiceError::invalid_argument(error));
        }
        tokens.pop().ok_or_else(|| ServiceError::missing("valid token", name))
    }
}

/// The caller, who must be allowed to manage tokens of this role.
fn manager(caller: &Caller, role: Role) -> Result<&Principal> {
    caller.require(if role == Role::Player { Role::Organiser } else { Role::Admin })
}

/// A token as the subject of an audit log entry.
fn subject(token: &tokens::Token) -> String {
    format!("{} {} {}", token.id, token.role, token.name)
}

/// A token that was created and stored.
fn created_message(
    Terms { role, by, .. }: Terms,
    NewToken { id, name, secret }: NewToken,
) -> CreateTokenResponse {
    tracing::info!(token = ?by, created = %id, %role, name, "token created");
    CreateTokenResponse { id: id.0, token: secret.text().to_owned(), name }
}

fn listed_message(token: tokens::Token, now: OffsetDateTime) -> Token {
    Token {
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
        handle: token.handle.unwrap_or_default(),
    }
}

impl From<CreateTokenError> for ServiceError {
    fn from(error: CreateTokenError) -> Self {
        match error {
            CreateTokenError::Database(error) => error.into(),
            CreateTokenError::Names(names) => names.into(),
        }
    }
}

impl From<RefusedNames> for ServiceError {
    fn from(names: RefusedNames) -> Self {
        if names.has_taken() {
            Self::already_exists(names.to_string())
        } else {
            Self::invalid_argument(names.to_string())
        }
    }
}
