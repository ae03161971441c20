//! Rate limit for invalid tokens.
//!
//! A token cannot be guessed, but each attempt costs a database query. A program that repeats a
//! revoked token costs queries too. So invalid tokens are counted, by address and in total; over
//! the limit a token is refused without a query. Tokens that were valid recently are exempt, so one
//! revoked token does not lock out the other workers behind its address.
//!
//! The number of addresses and of valid tokens in memory is bounded.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use ipnet::{IpNet, Ipv6Net};
use thiserror::Error;

use super::Secret;
use crate::rate_limit::{Rate, TokenBucket};

/// Invalid tokens from one address: 30 at once, then one every two seconds.
const ADDRESS_RATE: Rate = Rate { burst: 30, interval: Duration::from_secs(2) };
/// Invalid tokens from all addresses together.
const TOTAL_RATE: Rate = Rate { burst: 600, interval: Duration::from_millis(50) };
/// Maximum number of addresses with separate limits. All others share one.
const MAX_ADDRESSES: usize = 4096;
/// Maximum number of valid tokens in memory.
const MAX_VALID: usize = 16_384;
/// How long a valid token stays in memory after its last use.
const VALID_LIFETIME: Duration = Duration::from_secs(3600);

/// Limits how often invalid tokens are tried. Clones share their counts.
#[derive(Clone, Debug, Default)]
pub struct TokenThrottle {
    /// Trusted proxies.
    proxies: Arc<[IpNet]>,
    attempts: Arc<Mutex<Attempts>>,
}

/// Recent tokens.
#[derive(Debug, Default)]
struct Attempts {
    /// The limit of all addresses together.
    total: Option<TokenBucket>,
    /// The limits of addresses with invalid tokens.
    by_address: HashMap<Key, TokenBucket>,
    /// When valid tokens were last used, by hash.
    valid: HashMap<[u8; 32], Instant>,
}

/// A limit: the limit of an address, or the limit that all addresses share.
type Key = Option<IpAddr>;

impl Attempts {
    /// The limit of an address. An unknown address counts only in the total.
    fn key(&self, from: Option<IpAddr>) -> Option<Key> {
        let has_limit =
            self.by_address.len() < MAX_ADDRESSES || self.by_address.contains_key(&from);
        from.map(|address| has_limit.then_some(address))
    }
}

/// The network origin of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The other end of the connection, if known.
    pub peer: Option<IpAddr>,
    /// The `X-Forwarded-For` header.
    pub forwarded: Option<String>,
}

impl Origin {
    /// The origin of a request. Proxies append to `X-Forwarded-For` or add another such header; all
    /// of them form one list.
    pub(crate) fn new(peer: Option<IpAddr>, headers: &HeaderMap) -> Self {
        let lines = headers.get_all("x-forwarded-for").into_iter();
        let lines: Vec<_> = lines.map(|line| line.to_str().unwrap_or("unreadable")).collect();
        Self { peer, forwarded: (!lines.is_empty()).then(|| lines.join(",")) }
    }
}

impl<S: Sync> FromRequestParts<S> for Origin {
    type Rejection = Infallible;

    /// Reads the peer that the server stored in the request.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
        Ok(Self::new(peer, &parts.headers))
    }
}

impl TokenThrottle {
    /// A throttle that trusts these proxies.
    pub fn new(proxies: Vec<IpNet>) -> Self {
        Self { proxies: proxies.into(), attempts: Arc::default() }
    }

    /// Whether a token may be looked up.
    ///
    /// # Errors
    /// If there were too many invalid ones: the time until the next attempt.
    pub(crate) fn check(
        &self,
        secret: &Secret,
        origin: &Origin,
        now: Instant,
    ) -> Result<(), Duration> {
        let from = self.address(origin);
        let mut attempts = self.attempts();
        if attempts.valid.get(&secret.hash()).is_some_and(|used| now < *used + VALID_LIFETIME) {
            return Ok(());
        }
        let attempts = &mut *attempts;
        let full = || TokenBucket::full(TOTAL_RATE, now);
        let total = attempts.total.get_or_insert_with(full).check(1, now);
        let bucket = attempts.key(from).and_then(|key| attempts.by_address.get_mut(&key));
        total.and(bucket.map_or(Ok(()), |bucket| bucket.check(1, now)))
    }

    /// Counts an invalid token.
    pub(crate) fn record_invalid(&self, secret: &Secret, origin: &Origin, now: Instant) {
        let from = self.address(origin);
        let mut attempts = self.attempts();
        attempts.valid.remove(&secret.hash());
        // Concurrent attempts may find the bucket empty.
        let total = attempts.total.get_or_insert_with(|| TokenBucket::full(TOTAL_RATE, now));
        total.try_take(1, now).ok();
        make_room(&mut attempts.by_address, MAX_ADDRESSES, |bucket| !bucket.is_full(now));
        if let Some(key) = attempts.key(from) {
            let full = || TokenBucket::full(ADDRESS_RATE, now);
            attempts.by_address.entry(key).or_insert_with(full).try_take(1, now).ok();
        }
    }

    /// Records the use of a valid token.
    pub(crate) fn record_valid(&self, secret: &Secret, now: Instant) {
        let mut attempts = self.attempts();
        make_room(&mut attempts.valid, MAX_VALID, |used| now < *used + VALID_LIFETIME);
        if attempts.valid.len() < MAX_VALID || attempts.valid.contains_key(&secret.hash()) {
            attempts.valid.insert(secret.hash(), now);
        }
    }

    /// The address that a call is counted for. The addresses of an IPv6 /64 network count as one.
    pub(crate) fn address(&self, origin: &Origin) -> Option<IpAddr> {
        let is_trusted =
            |address: IpAddr| self.proxies.iter().any(|proxy| proxy.contains(&address));
        let mut address = origin.peer?.to_canonical();
        let forwarded = origin.forwarded.as_deref().unwrap_or_default();
        for entry in forwarded.rsplit(',').map(str::trim) {
            if !is_trusted(address) {
                break;
            }
            // If an entry is unreadable, the call counts for the proxy.
            let Ok(parsed) = entry.parse::<IpAddr>() else { break };
            address = parsed.to_canonical();
        }
        Some(match address {
            IpAddr::V6(address) => Ipv6Net::new_assert(address, 64).network().into(),
            IpAddr::V4(_) => address,
        })
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the entries that are no longer needed from a full map.
fn make_room<K: Eq + Hash, V>(
    map: &mut HashMap<K, V>,
    max: usize,
    mut is_needed: impl FnMut(&mut V) -> bool,
) {
    if map.len() >= max {
        map.retain(|_, value| is_needed(value));
    }
}

/// A text that is not a network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not an address; write one such as 10.0.0.7, or a network such as 10.0.0.0/8")]
pub struct NetworkError(String);

/// Parses a network or a single address.
pub fn network(text: &str) -> Result<IpNet, NetworkError> {
    let single = |_| text.parse().map(|address: IpAddr| address.into());
    text.parse().or_else(single).map_err(|_| NetworkError(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(peer: &str) -> Origin {
        Origin { peer: Some(peer.parse().unwrap()), forwarded: None }
    }

    fn through(peer: &str, forwarded: &str) -> Origin {
        Origin { forwarded: Some(forwarded.to_owned()), ..at(peer) }
    }

    fn secret(text: &str) -> Secret {
        Secret::from(text.to_owned())
    }

    #[test]
    fn only_an_address_with_too_many_invalid_tokens_is_limited() {
        let throttle = TokenThrottle::default();
        let now = Instant::now();
        let good = secret("good");
        let bad = secret("bad");
        let eve = at("10.0.0.1");
        let ada = at("10.0.0.2");
        throttle.record_valid(&good, now);
        for _ in 0..ADDRESS_RATE.burst {
            assert_eq!(throttle.check(&bad, &eve, now), Ok(()));
            throttle.record_invalid(&bad, &eve, now);
        }
        assert_eq!(throttle.check(&bad, &eve, now), Err(ADDRESS_RATE.interval));
        assert_eq!(throttle.check(&bad, &ada, now), Ok(()));
        assert_eq!(throttle.check(&good, &eve, now), Ok(()), "a valid token is exempt");
        assert_eq!(throttle.check(&bad, &eve, now + ADDRESS_RATE.interval), Ok(()));
        throttle.record_invalid(&good, &eve, now);
        assert!(throttle.check(&good, &eve, now).is_err(), "the token was revoked");
    }

    #[test]
    fn all_addresses_share_a_limit_and_memory_is_bounded() {
        let throttle = TokenThrottle::default();
        let now = Instant::now();
        for number in 0..10_000_u32 {
            let from =
                Origin { peer: Some(std::net::Ipv4Addr::from(number).into()), forwarded: None };
            throttle.record_invalid(&secret("wrong"), &from, now);
            throttle.record_valid(&secret(&number.to_string()), now);
            throttle.record_valid(&secret(&format!("more {number}")), now);
        }
        assert!(throttle.check(&secret("x"), &at("192.0.2.1"), now).is_err());
        let attempts = throttle.attempts();
        assert!(attempts.by_address.len() <= MAX_ADDRESSES + 1);
        assert!(attempts.valid.len() <= MAX_VALID);
    }

    #[test]
    fn forwarded_addresses_count_only_from_trusted_proxies() {
        let proxies = ["10.0.0.0/8", "fd00::1"].map(|text| network(text).unwrap());
        let throttle = TokenThrottle::new(proxies.to_vec());
        let origin = |origin: &Origin| throttle.address(origin).unwrap().to_string();
        assert_eq!(origin(&through("192.0.2.7", "198.51.100.1")), "192.0.2.7");
        assert_eq!(origin(&through("10.1.2.3", "198.51.100.1")), "198.51.100.1");
        assert_eq!(origin(&through("::ffff:10.1.2.3", "198.51.100.1")), "198.51.100.1");
        // An entry that the client invented comes before those of the proxies.
        assert_eq!(origin(&through("10.1.2.3", "1.1.1.1, 198.51.100.1, 10.9.9.9")), "198.51.100.1");
        assert_eq!(origin(&through("10.1.2.3", "1.1.1.1, nonsense")), "10.1.2.3");
        assert_eq!(origin(&at("10.1.2.3")), "10.1.2.3");
        assert_eq!(origin(&through("fd00::1", "2001:db8:1:2:3::4")), "2001:db8:1:2::");
        assert_eq!(throttle.address(&Origin::default()), None);
    }

    #[test]
    fn lines_of_several_proxies_are_one_list() {
        let mut headers = HeaderMap::new();
        assert_eq!(Origin::new(None, &headers), Origin::default());
        for line in ["1.1.1.1", "198.51.100.1, 10.9.9.9"] {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        let throttle = TokenThrottle::new(vec![network("10.0.0.0/8").unwrap()]);
        let origin = Origin::new(at("10.1.2.3").peer, &headers);
        assert_eq!(throttle.address(&origin).unwrap().to_string(), "198.51.100.1");
    }

    #[test]
    fn networks_are_parsed() {
        for good in ["0.0.0.0/0", "10.0.0.0/8", "10.0.0.7/32", "::/0", "fd00::/8"] {
            assert_eq!(network(good).unwrap().to_string(), good);
        }
        assert_eq!(network("10.0.0.7").unwrap().to_string(), "10.0.0.7/32");
        for bad in ["", "localhost", "10.0.0.0/33", "10.0.0.0/x", "::/129"] {
            assert!(network(bad).is_err(), "{bad}");
        }
    }
}
