//! Victory tokens: the winner, the result and the time, with a proof.
//!
//! A token consists of hexadecimal digits: eight for the player, two for the result, ten for the
//! time in seconds, and 32 of a keyed hash over the hash of the player's secret token, the result
//! and the time. It cannot be forged without the server's key, and another player cannot use it.

use arbiter_proto::ids::TokenId;
use time::OffsetDateTime;

/// The minimum result of a victory.
pub(super) const MIN_RESULT: i32 = 35;

/// The lengths of its parts, in hexadecimal digits.
const PLAYER: usize = 8;
const RESULT: usize = 2;
const TIME: usize = 10;
const PROOF: usize = 32;

/// A victory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Victory {
    /// The winner.
    pub(super) player: TokenId,
    /// Tables won minus tables lost, at most 200.
    pub(super) result: u8,
    /// The time of the victory, to the second.
    pub(super) at: OffsetDateTime,
}

impl Victory {
    /// The victory of a session with this result, if it is one.
    pub(super) fn of(player: TokenId, result: i32, at: OffsetDateTime) -> Option<Self> {
        let result = u8::try_from(result).ok().filter(|_| result >= MIN_RESULT)?;
        Some(Self { player, result, at: at.replace_nanosecond(0).unwrap_or(at) })
    }

    /// The token of the player whose first secret has this hash.
    pub(super) fn token(&self, key: &[u8; 32], hash: &[u8]) -> String {
        let Self { player, result, at } = self;
        let payload = format!("{:08x}{result:02x}{:010x}", player.0, at.unix_timestamp());
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(hash).update(payload.as_bytes());
        format!("{payload}{}", &hasher.finalize().to_hex()[..PROOF])
    }

    /// Parses a token without checking its proof; compare [`Victory::token`].
    pub(super) fn parse(token: &str) -> Option<Self> {
        let digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if token.len() != PLAYER + RESULT + TIME + PROOF || !token.bytes().all(digits) {
            return None;
        }
        let (player, rest) = token.split_at(PLAYER);
        let (result, rest) = rest.split_at(RESULT);
        let seconds = i64::from_str_radix(&rest[..TIME], 16).ok()?;
        Some(Self {
            player: TokenId(i32::from_str_radix(player, 16).ok()?),
            result: u8::from_str_radix(result, 16).ok()?,
            at: OffsetDateTime::from_unix_timestamp(seconds).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn tokens_are_parsed_and_cannot_be_forged() {
        let at = datetime!(2026-01-01 12:00:00.5 UTC);
        let key = [7; 32];
        let hash = [8; 32];
        let victory = Victory::of(TokenId(41), 200, at).unwrap();
        let token = victory.token(&key, &hash);
        assert!(token.len() == 52 && token.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_eq!(Victory::parse(&token), Some(victory));
        assert_ne!(victory.token(&[6; 32], &hash), token);
        assert_ne!(victory.token(&key, &[9; 32]), token);
        for other in [Victory { player: TokenId(42), ..victory }, Victory { result: 36, ..victory }]
        {
            assert_ne!(other.token(&key, &hash)[20..], token[20..]);
        }
        assert_eq!(Victory::of(TokenId(1), 34, at), None);
        for wrong in ["", "x", &token[1..], &token.to_uppercase(), &"é".repeat(26)] {
            assert_eq!(Victory::parse(wrong), None, "{wrong}");
        }
    }
}
