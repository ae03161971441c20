//! Creates tokens, each with a name that no other valid token has.
//!
//! Two requests could choose the same name at the same time, so the creation of tokens holds a lock
//! of the database until its transaction ends. A unique index cannot replace the lock: an expired
//! token frees its name, and an index does not know the time. Tokens from before this rule may
//! share a name; they stay as they are.

use std::collections::HashSet;
use std::fmt;

use arbiter_proto::ids::TokenId;
use serde_json::{Value, json};
use sqlx::{Error, PgConnection};
use thiserror::Error as ThisError;
use time::OffsetDateTime;

use super::{Role, Secret, Token, check_name, handle};
use crate::db::{audit_log, tokens};

/// Maximum number of tokens that one request creates.
pub const MAX_TOKENS: usize = 1000;
/// Maximum number of names in an error message.
const MAX_LISTED: usize = 40;

/// A new token. Its secret cannot be read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// Its identity.
    pub id: TokenId,
    /// Its name.
    pub name: String,
    /// Its secret.
    pub secret: Secret,
}

/// The name of a new token.
#[derive(Clone, Copy, Debug)]
pub enum Name<'a> {
    /// This name, which no valid token may have.
    Exact(&'a str),
    /// This name, with a number added if a valid token has it.
    Numbered(&'a str),
}

/// What new tokens have in common.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Their role.
    pub role: Role,
    /// When they expire; `None`: never.
    pub expires_at: Option<OffsetDateTime>,
    /// The token of the creator, for the audit log. `None`: an operator with access to the
    /// database.
    pub by: Option<TokenId>,
}

/// Why tokens cannot be created.
#[derive(Debug, ThisError)]
pub enum CreateTokenError {
    /// The database or the random number generator failed.
    #[error(transparent)]
    Database(#[from] Error),
    /// Names are invalid or taken.
    #[error(transparent)]
    Names(#[from] RefusedNames),
}

/// The names for which no tokens can be created, by reason. At least one list has a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedNames {
    /// They are not names of tokens.
    pub invalid: Vec<String>,
    /// The request has them twice.
    pub repeated: Vec<String>,
    /// Valid tokens have them.
    pub taken: Vec<TokenLabel>,
    /// The number of names, if it is more than [`MAX_TOKENS`].
    pub too_many: Option<usize>,
}

/// A token in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenLabel {
    /// Its identity.
    pub id: TokenId,
    /// Its role.
    pub role: Role,
    /// Its name.
    pub name: String,
}

impl From<Token> for TokenLabel {
    fn from(Token { id, role, name, .. }: Token) -> Self {
        Self { id, role, name }
    }
}

impl fmt::Display for TokenLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, role, name } = self;
        write!(f, "{name} (token {id}, {role})")
    }
}

impl RefusedNames {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl std::error::Error for RefusedNames {}

impl fmt::Display for RefusedNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reasons = Vec::new();
        if let Some(number) = self.too_many {
            reasons.push(format!(
                "{number} names are too many for one request: send at most {MAX_TOKENS}"
            ));
        }
        if !self.invalid.is_empty() {
            let names = listed(self.invalid.iter().map(|name| format!("{name:?}")));
            reasons.push(format!("{}: {names}", super::BadName));
        }
        if !self.repeated.is_empty() {
            let names = listed(self.repeated.iter().cloned());
            reasons.push(format!("these names are repeated: {names}"));
        }
        match &self.taken[..] {
            [] => {}
            [TokenLabel { id, role, name }] => reasons.push(format!(
                "token {id} of role {role} has the name {name}: choose another name, or give that \
                 token a new secret with `arbiter token rotate {id}`"
            )),
            taken => reasons.push(format!(
                "other tokens have these names: {}; choose other names, or give these tokens new \
                 secrets with `arbiter token rotate`",
                listed(taken.iter().map(ToString::to_string))
            )),
        }
        f.write_str(&reasons.join("; "))
    }
}

/// Names in a message, separated by commas.
fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(MAX_LISTED);
    let names: Vec<_> = names.take(MAX_LISTED).collect();
    let text = names.join(", ");
    if more == 0 { text } else { format!("{text} and {more} more") }
}

/// Creates a token in the caller's transaction, and records it in the audit log.
pub async fn create_one(
    db: &mut PgConnection,
    name: Name<'_>,
    terms: Terms,
    now: OffsetDateTime,
) -> Result<NewToken, CreateTokenError> {
    tokens::lock_names(&mut *db).await?;
    let name = match name {
        Name::Exact(name) => {
            check_names(&mut *db, &[name.to_owned()], now).await?;
            name.to_owned()
        }
        Name::Numbered(name) => free_name(&mut *db, name, now).await?,
    };
    Ok(store(db, name, terms, now).await?)
}

/// Creates a token for each of these names in the caller's transaction, all or none, and records
/// them in the audit log.
pub async fn create_all(
    db: &mut PgConnection,
    names: &[String],
    terms: Terms,
    now: OffsetDateTime,
) -> Result<Vec<NewToken>, CreateTokenError> {
    tokens::lock_names(&mut *db).await?;
    check_names(&mut *db, names, now).await?;
    let mut created = Vec::with_capacity(names.len());
    for name in names {
        created.push(store(&mut *db, name.clone(), terms, now).await?);
    }
    Ok(created)
}

/// Stores a token whose name is free, and records it in the audit log.
async fn store(
    db: &mut PgConnection,
    name: String,
    Terms { role, expires_at, by }: Terms,
    now: OffsetDateTime,
) -> Result<NewToken, Error> {
    let (id, secret) = super::create_until(&mut *db, role, &name, expires_at, now).await?;
    if role == Role::Player {
        handle::of_token(&mut *db, id, &name).await?;
    }
    let subject = format!("{id} {role} {name}");
    let detail = detail(role, &name, expires_at);
    audit_log::write(&mut *db, by, "token create", &subject, Some(&detail), now).await?;
    Ok(NewToken { id, name, secret })
}

/// The audit log's detail of a new token.
fn detail(role: Role, name: &str, expires_at: Option<OffsetDateTime>) -> Value {
    let expires = expires_at.map(OffsetDateTime::unix_timestamp);
    json!({"before": null, "after": {"role": role.as_str(), "name": name, "expires": expires}})
}

/// Refuses names that are invalid, repeated or taken, all at once.
async fn check_names(
    db: &mut PgConnection,
    names: &[String],
    now: OffsetDateTime,
) -> Result<(), CreateTokenError> {
    if names.len() > MAX_TOKENS {
        let too_many = Some(names.len());
        return Err(RefusedNames { too_many, ..RefusedNames::default() }.into());
    }
    let mut refused = RefusedNames::default();
    let mut seen = HashSet::new();
    for name in names {
        if check_name(name).is_err() {
            refused.invalid.push(name.clone());
        } else if !seen.insert(name) && !refused.repeated.contains(name) {
            refused.repeated.push(name.clone());
        }
    }
    // The database accepts no text with a zero byte, so it is not asked about invalid names.
    let valid: Vec<_> = seen.into_iter().cloned().collect();
    let taken = tokens::valid_with_names(&mut *db, &valid, now).await?;
    refused.taken = taken.into_iter().map(TokenLabel::from).collect();
    if refused.is_empty() { Ok(()) } else { Err(refused.into()) }
}

/// This name, with the least number from 2 that makes it free if a valid token has it.
async fn free_name(
    db: &mut PgConnection,
    name: &str,
    now: OffsetDateTime,
) -> Result<String, CreateTokenError> {
    let mut candidate = name.to_owned();
    let mut number = 2;
    while !tokens::valid_with_names(&mut *db, &[candidate.clone()], now).await?.is_empty() {
        candidate = format!("{name}-{number}");
        number += 1;
    }
    Ok(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_lists_all_names_that_are_refused() {
        let taken = |id| TokenLabel { id: TokenId(id), role: Role::Player, name: "ada".into() };
        let mut refused = RefusedNames { taken: vec![taken(7)], ..RefusedNames::default() };
        assert_eq!(
            refused.to_string(),
            "token 7 of role player has the name ada: choose another name, or give that token a \
             new secret with `arbiter token rotate 7`"
        );
        refused.taken.push(taken(8));
        refused.repeated = (0..50).map(|number| format!("bob{number}")).collect();
        refused.invalid.push("a\nb".into());
        let text = refused.to_string();
        for part in ["\"a\\nb\"", "bob0, bob1, ", "bob39 and 10 more", "ada (token 8, player)"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
