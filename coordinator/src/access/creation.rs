//! Creates tokens, each with a name that no other valid token has. Names that differ only in upper
//! and lower case count as the same, because people confuse them.
//!
//! Two requests could choose the same name at the same time, so the creation of tokens holds a lock
//! of the database until its transaction ends. A unique index cannot replace the lock: an expired
//! token frees its name, and an index does not know the time. Tokens from before this rule may
//! share a name; they stay as they are. Names are compared here and not in a statement, because a
//! database with the locale C, such as the private one, knows the case of ASCII letters only.

use std::collections::{HashMap, HashSet};
use std::fmt;

use arbiter_proto::ids::TokenId;
use serde_json::{Value, json};
use sqlx::{Error, PgConnection};
use thiserror::Error as ThisError;
use time::OffsetDateTime;

use super::{BadName, Role, Secret, Token, check_name, handle};
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

/// Why no token is created: at least one name is refused, or there are too many names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedNames {
    /// The refused names, in the order of the request.
    pub names: Vec<RefusedName>,
    /// The number of names, if it is more than [`MAX_TOKENS`].
    pub too_many: Option<usize>,
}

/// A name for which no token can be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedName {
    /// Its line in the caller's list, from 1. `None`: the caller has no list.
    pub line: Option<u64>,
    /// The name.
    pub name: String,
    /// Why it is refused.
    pub reason: RefusalReason,
}

/// Why a name is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// It cannot be the name of a token.
    Invalid(BadName),
    /// The request has it before.
    Repeated {
        /// The earlier name, which may differ in case.
        earlier: String,
        /// Its line in the caller's list.
        line: Option<u64>,
    },
    /// This valid token has it.
    Taken(TokenLabel),
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

impl fmt::Display for RefusedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, name, reason } = self;
        if let Some(line) = line {
            write!(f, "line {line}: ")?;
        }
        match reason {
            RefusalReason::Invalid(_) if name.is_empty() && line.is_some() => {
                f.write_str("write a name or remove the line")
            }
            RefusalReason::Invalid(error) => write!(f, "{error}"),
            RefusalReason::Repeated { earlier, line } => {
                f.write_str(&correction(name, earlier))?;
                match line {
                    Some(line) => write!(f, ", which is also on line {line}"),
                    None => f.write_str(", which the request has before"),
                }
            }
            RefusalReason::Taken(TokenLabel { id, role, name: other }) if line.is_some() => {
                write!(f, "{}, the name of token {id} ({role})", correction(name, other))
            }
            RefusalReason::Taken(TokenLabel { id, role, name: other }) => {
                write!(f, "token {id} of role {role} has the name {other}")?;
                if other != name {
                    write!(f, ", which differs from {name} only in upper and lower case")?;
                }
                write!(
                    f,
                    ": choose another name, or give that token a new secret with `arbiter token \
                     rotate {id}`"
                )
            }
        }
    }
}

/// How to correct a list with this name, if there is another one that counts as the same.
fn correction(name: &str, other: &str) -> String {
    if name == other {
        format!("leave out {name}")
    } else {
        format!("change {name}, which differs only in upper and lower case from {other}")
    }
}

impl RefusedNames {
    /// Whether other tokens have some of the names.
    pub fn has_taken(&self) -> bool {
        self.names.iter().any(|name| matches!(name.reason, RefusalReason::Taken(_)))
    }

    /// The error messages, in the order of the request.
    pub fn problems(&self) -> Vec<String> {
        let too_many = self.too_many.map(|number| {
            format!("{number} names are too many for one request: send at most {MAX_TOKENS}")
        });
        too_many.into_iter().chain(self.names.iter().map(ToString::to_string)).collect()
    }
}

impl std::error::Error for RefusedNames {}

impl fmt::Display for RefusedNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems = self.problems();
        let more = problems.len().saturating_sub(MAX_LISTED);
        let shown: Vec<_> = problems.into_iter().take(MAX_LISTED).collect();
        f.write_str(&shown.join("; "))?;
        if more == 0 { Ok(()) } else { write!(f, "; and {more} more") }
    }
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
            check_names(&mut *db, &[name.to_owned()], &[], now).await?;
            name.to_owned()
        }
        Name::Numbered(name) => free_name(&mut *db, name, now).await?,
    };
    Ok(store(db, name, terms, now).await?)
}

/// Creates a token for each of these names in the caller's transaction, all or none, and records
/// them in the audit log. `lines` are the lines of the names in the caller's list, if it has one.
pub async fn create_all(
    db: &mut PgConnection,
    names: &[String],
    lines: &[u64],
    terms: Terms,
    now: OffsetDateTime,
) -> Result<Vec<NewToken>, CreateTokenError> {
    tokens::lock_names(&mut *db).await?;
    check_names(&mut *db, names, lines, now).await?;
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
    lines: &[u64],
    now: OffsetDateTime,
) -> Result<(), CreateTokenError> {
    if names.len() > MAX_TOKENS {
        let too_many = Some(names.len());
        return Err(RefusedNames { too_many, ..RefusedNames::default() }.into());
    }
    let others = tokens::valid(&mut *db, now).await?;
    let names = refused_names(names, lines, others);
    if names.is_empty() { Ok(()) } else { Err(RefusedNames { names, too_many: None }.into()) }
}

/// The refused ones of these names. `others` are valid tokens, oldest first.
fn refused_names(names: &[String], lines: &[u64], others: Vec<Token>) -> Vec<RefusedName> {
    let mut taken = HashMap::<String, TokenLabel>::new();
    for token in others {
        taken.entry(folded(&token.name)).or_insert_with(|| token.into());
    }
    let line = |index: usize| lines.get(index).copied();
    let mut indices = HashMap::<String, usize>::new();
    let mut refused = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let first = *indices.entry(folded(name)).or_insert(index);
        let reason = if let Err(error) = check_name(name) {
            RefusalReason::Invalid(error)
        } else if first != index {
            RefusalReason::Repeated { earlier: names[first].clone(), line: line(first) }
        } else if let Some(label) = taken.get(&folded(name)) {
            RefusalReason::Taken(label.clone())
        } else {
            continue;
        };
        refused.push(RefusedName { line: line(index), name: name.clone(), reason });
    }
    refused
}

/// This name, with the least number from 2 that makes it free if a valid token has it.
async fn free_name(
    db: &mut PgConnection,
    name: &str,
    now: OffsetDateTime,
) -> Result<String, CreateTokenError> {
    let others = tokens::valid(&mut *db, now).await?;
    let taken: HashSet<_> = others.iter().map(|token| folded(&token.name)).collect();
    let mut candidate = name.to_owned();
    let mut number = 2;
    while taken.contains(&folded(&candidate)) {
        candidate = format!("{name}-{number}");
        number += 1;
    }
    Ok(candidate)
}

/// A name without the difference of upper and lower case.
fn folded(name: &str) -> String {
    name.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A valid token with this name.
    fn token(id: i32, name: &str) -> Token {
        Token {
            id: TokenId(id),
            role: Role::Player,
            name: name.to_owned(),
            created_at: OffsetDateTime::UNIX_EPOCH,
            revoked_at: None,
            expires_at: None,
            used_at: None,
            previous_valid_until: None,
            handle: None,
        }
    }

    /// The error messages for the names of a request.
    fn problems(names: &[&str], lines: &[u64], others: Vec<Token>) -> Vec<String> {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let names = refused_names(&names, lines, others);
        RefusedNames { names, too_many: None }.problems()
    }

    #[test]
    fn all_names_that_are_refused_are_reported_with_their_lines() {
        let names = ["bob", "ada", "", "bob", "a\nb", "eve", "ada"];
        let lines = [2, 3, 5, 6, 7, 8, 9];
        let reported = problems(&names, &lines, vec![token(7, "ada"), token(8, "ada")]);
        assert_eq!(
            reported[..3],
            [
                "line 3: leave out ada, the name of token 7 (player)",
                "line 5: write a name or remove the line",
                "line 6: leave out bob, which is also on line 2",
            ]
        );
        assert!(reported[3].starts_with("line 7: \"a\\nb\" cannot be the name"), "{reported:?}");
        assert_eq!(reported[4..], ["line 9: leave out ada, which is also on line 3"]);
    }

    #[test]
    fn names_without_lines_are_reported_too() {
        assert_eq!(
            problems(&["ada"], &[], vec![token(7, "ada")]),
            ["token 7 of role player has the name ada: choose another name, or give that token a \
             new secret with `arbiter token rotate 7`",]
        );
        let repeated = problems(&["bob", "bob"], &[], Vec::new());
        assert_eq!(repeated, ["leave out bob, which the request has before"]);
    }

    #[test]
    fn names_that_differ_only_in_case_count_as_the_same() {
        let names = ["Ada", "bob", "BOB", "\u{17b}aneta"];
        let others = || vec![token(7, "ada"), token(8, "\u{17c}aneta"), token(9, "Zaneta")];
        let case = "which differs only in upper and lower case from";
        assert_eq!(
            problems(&names, &[1, 2, 3, 4], others()),
            [
                format!("line 1: change Ada, {case} ada, the name of token 7 (player)"),
                format!("line 3: change BOB, {case} bob, which is also on line 2"),
                format!(
                    "line 4: change \u{17b}aneta, {case} \u{17c}aneta, the name of token 8 (player)"
                ),
            ]
        );
        let single = problems(&["Ada"], &[], others());
        let text = "token 7 of role player has the name ada, which differs from Ada only in upper";
        assert!(single[0].starts_with(text), "{single:?}");
    }

    #[test]
    fn a_message_has_a_limited_number_of_names() {
        let names = vec!["bob".to_owned(); 52];
        let names = refused_names(&names, &[], Vec::new());
        let text = RefusedNames { names, too_many: None }.to_string();
        assert_eq!(text.matches("leave out bob").count(), MAX_LISTED);
        assert!(text.ends_with("; and 11 more"), "{text}");
    }
}
