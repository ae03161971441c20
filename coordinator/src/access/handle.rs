//! Handles of players: the first part of the names of their bots, as `ada` in `ada/mybot`.
//!
//! A handle is made from the name of the token when the token is created, so that it does not
//! depend on who submits first: the seeds of matches derive from the names of bots. It stays for
//! ever, and no other token ever gets it.

use std::collections::HashSet;

use arbiter_proto::ids::TokenId;
use sqlx::{PgConnection, Result};

use crate::db::tokens;

/// Maximum length of a handle, in characters.
const MAX_LENGTH: usize = 24;
/// The handle of a token whose name has no letter and no digit.
const FALLBACK: &str = "player";

/// The handle of a token. A token from before there were handles gets one here.
pub async fn of_token(db: &mut PgConnection, id: TokenId, name: &str) -> Result<String> {
    if let Some(handle) = tokens::handle(&mut *db, id).await? {
        return Ok(handle);
    }
    // Others that choose a handle wait until this transaction ends.
    tokens::lock_names(&mut *db).await?;
    if let Some(handle) = tokens::handle(&mut *db, id).await? {
        return Ok(handle);
    }
    let base = from_name(name);
    let taken = tokens::handles_from(&mut *db, stem(&base)).await?;
    let handle = free(&base, &taken.into_iter().collect());
    tokens::set_handle(&mut *db, id, &handle).await?;
    Ok(handle)
}

/// The name of a token in lower-case ASCII letters, digits and single hyphens.
fn from_name(name: &str) -> String {
    let ascii = deunicode::deunicode(name).to_ascii_lowercase();
    let words = ascii.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let handle: String = words.join("-").chars().take(MAX_LENGTH).collect();
    match handle.trim_end_matches('-') {
        "" => FALLBACK.to_owned(),
        handle => handle.to_owned(),
    }
}

/// The start of a handle that stays when a number is added.
fn stem(handle: &str) -> &str {
    const LONGEST_NUMBER: usize = "-1000000".len();
    handle.get(..MAX_LENGTH - LONGEST_NUMBER).unwrap_or(handle)
}

/// The handle itself, or the first free one with a number from 2.
fn free(handle: &str, taken: &HashSet<String>) -> String {
    let numbered = (2..).map(|number: usize| {
        let suffix = format!("-{number}");
        let kept = handle.get(..MAX_LENGTH - suffix.len()).unwrap_or(handle);
        kept.to_owned() + &suffix
    });
    let mut candidates = std::iter::once(handle.to_owned()).chain(numbered);
    candidates.find(|candidate| !taken.contains(candidate)).expect("the numbers never end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_the_name_in_ascii_words() {
        for (name, handle) in [
            ("alice", "alice"),
            ("Jan  Kowalski, 2b", "jan-kowalski-2b"),
            ("Żółć Łukasz", "zolc-lukasz"),
            ("ada@example.org", "ada-example-org"),
            ("!!!", "player"),
            ("team twenty-three and more", "team-twenty-three-and-mo"),
            ("exactly twenty-four here -", "exactly-twenty-four-here"),
        ] {
            assert_eq!(from_name(name), handle, "{name}");
        }
    }

    #[test]
    fn a_taken_handle_gets_the_first_free_number() {
        let taken = |handles: &[&str]| handles.iter().map(ToString::to_string).collect();
        assert_eq!(free("ada", &taken(&[])), "ada");
        assert_eq!(free("ada", &taken(&["ada", "ada-2", "ada-4"])), "ada-3");
        let long = "x".repeat(MAX_LENGTH);
        let numbered = free(&long, &taken(&[&long]));
        assert_eq!((numbered.len(), &numbered[22..]), (MAX_LENGTH, "-2"));
        assert!(numbered.starts_with(stem(&long)));
    }
}
