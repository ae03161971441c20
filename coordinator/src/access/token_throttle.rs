//! Wrong tokens: how many somebody may try.
//!
//! Nobody can guess a token. But whoever tries costs us a question to the database each time, and a
//! program with an old token that asks again and again costs as much. So wrong tokens are counted,
//! by the address they come from and in all, and when there were too many the next is not looked
//! for at all. Who was let in lately is let in still: the workers behind an address do not suffer
//! from the one among them whose token was revoked.
//!
//! What is kept has a bound: so many addresses, and so many tokens that were good.

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

/// How many wrong tokens may come from an address in one go; later one every two seconds.
const FROM_ONE: Rate = Rate { burst: 30, interval: Duration::from_secs(2) };
/// The same from all addresses.
const FROM_ALL: Rate = Rate { burst: 600, interval: Duration::from_millis(50) };
/// So many addresses are told apart; those beyond are one.
const ADDRESSES: usize = 4096;
/// So many good tokens are remembered, and for so long after each use.
const GOOD: usize = 16_384;
const REMEMBERED: Duration = Duration::from_secs(3600);

/// Looks after those who show tokens.
#[derive(Clone, Debug, Default)]
pub struct TokenThrottle {
    /// Those whose word is taken for where a request comes from.
    proxies: Arc<[IpNet]>,
    seen: Arc<Mutex<Seen>>,
}

/// What was seen lately.
#[derive(Debug, Default)]
struct Seen {
    all: Option<TokenBucket>,
    /// What is left to each address that had wrong tokens.
    by: HashMap<Key, TokenBucket>,
    /// When good tokens were last used.
    good: HashMap<[u8; 32], Instant>,
}

/// What is counted together: an address, or all for which there is no room.
type Key = Option<IpAddr>;

impl Seen {
    /// Where an address is counted; nowhere, but with all others, if nothing is known of it.
    fn key(&self, from: Option<IpAddr>) -> Option<Key> {
        let known = self.by.len() < ADDRESSES || self.by.contains_key(&from);
        from.map(|address| known.then_some(address))
    }
}

/// Where a call comes from: who is connected, and for whom it says that it speaks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Who is connected, if that is known.
    pub peer: Option<IpAddr>,
    /// What it says in `X-Forwarded-For`.
    pub forwarded: Option<String>,
}

impl Origin {
    /// Who is connected, and what the head of the request says for whom. Proxies add themselves in
    /// the same line or in a further one: it is one list.
    pub(crate) fn new(peer: Option<IpAddr>, headers: &HeaderMap) -> Self {
        let lines = headers.get_all("x-forwarded-for").into_iter();
        let lines: Vec<_> = lines.map(|line| line.to_str().unwrap_or("unreadable")).collect();
        Self { peer, forwarded: (!lines.is_empty()).then(|| lines.join(",")) }
    }
}

impl<S: Sync> FromRequestParts<S> for Origin {
    type Rejection = Infallible;

    /// Where the server says who is connected.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
        Ok(Self::new(peer, &parts.headers))
    }
}

impl TokenThrottle {
    /// A guard who believes these proxies.
    pub fn new(proxies: Vec<IpNet>) -> Self {
        Self { proxies: proxies.into(), seen: Arc::default() }
    }

    /// Whether a token may be looked for.
    ///
    /// # Errors
    /// If there were too many wrong ones: how long until the next one may be tried.
    pub(crate) fn admits(
        &self,
        secret: &Secret,
        origin: &Origin,
        now: Instant,
    ) -> Result<(), Duration> {
        let from = self.address(origin);
        let mut seen = self.seen();
        if seen.good.get(&secret.hash()).is_some_and(|used| now < *used + REMEMBERED) {
            return Ok(());
        }
        let seen = &mut *seen;
        let all = seen.all.get_or_insert_with(|| TokenBucket::full(FROM_ALL, now)).check(1, now);
        let one = seen.key(from).and_then(|key| seen.by.get_mut(&key));
        all.and(one.map_or(Ok(()), |bucket| bucket.check(1, now)))
    }

    /// A token was wrong.
    pub(crate) fn wrong(&self, secret: &Secret, origin: &Origin, now: Instant) {
        let from = self.address(origin);
        let mut seen = self.seen();
        seen.good.remove(&secret.hash());
        // What was tried at the same moment may find less than it costs.
        let all = seen.all.get_or_insert_with(|| TokenBucket::full(FROM_ALL, now));
        all.try_take(1, now).ok();
        keep(&mut seen.by, ADDRESSES, |bucket| !bucket.is_full(now));
        if let Some(key) = seen.key(from) {
            let one = seen.by.entry(key).or_insert_with(|| TokenBucket::full(FROM_ONE, now));
            one.try_take(1, now).ok();
        }
    }

    /// A token was good.
    pub(crate) fn right(&self, secret: &Secret, now: Instant) {
        let mut seen = self.seen();
        keep(&mut seen.good, GOOD, |used| now < *used + REMEMBERED);
        if seen.good.len() < GOOD || seen.good.contains_key(&secret.hash()) {
            seen.good.insert(secret.hash(), now);
        }
    }

    /// The address that a call is counted for. A whole network of version 6 belongs to one origin.
    pub(crate) fn address(&self, origin: &Origin) -> Option<IpAddr> {
        let trusted = |address: IpAddr| self.proxies.iter().any(|proxy| proxy.contains(&address));
        let mut address = origin.peer?.to_canonical();
        let forwarded = origin.forwarded.as_deref().unwrap_or_default();
        for named in forwarded.rsplit(',').map(str::trim) {
            if !trusted(address) {
                break;
            }
            // What a proxy cannot say properly nobody has said.
            let Ok(named) = named.parse::<IpAddr>() else { break };
            address = named.to_canonical();
        }
        Some(match address {
            IpAddr::V6(address) => Ipv6Net::new_assert(address, 64).network().into(),
            IpAddr::V4(_) => address,
        })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Throws away what is not needed any more, when there is no room for more.
fn keep<K: Eq + Hash, V>(
    map: &mut HashMap<K, V>,
    most: usize,
    mut needed: impl FnMut(&mut V) -> bool,
) {
    if map.len() >= most {
        map.retain(|_, value| needed(value));
    }
}

/// A text that is no network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no address; write one such as 10.0.0.7, or a network such as 10.0.0.0/8")]
pub struct NetworkError(String);

/// Reads a network, or a single address.
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
    fn an_address_may_be_wrong_so_often_and_the_others_do_not_suffer() {
        let (guard, now) = (TokenThrottle::default(), Instant::now());
        let (good, bad) = (secret("good"), secret("bad"));
        let (eve, ada) = (at("10.0.0.1"), at("10.0.0.2"));
        guard.right(&good, now);
        for _ in 0..FROM_ONE.burst {
            assert_eq!(guard.admits(&bad, &eve, now), Ok(()));
            guard.wrong(&bad, &eve, now);
        }
        assert_eq!(guard.admits(&bad, &eve, now), Err(FROM_ONE.interval));
        assert_eq!(guard.admits(&bad, &ada, now), Ok(()));
        assert_eq!(guard.admits(&good, &eve, now), Ok(()), "who was let in is let in");
        assert_eq!(guard.admits(&bad, &eve, now + FROM_ONE.interval), Ok(()));
        guard.wrong(&good, &eve, now);
        assert!(guard.admits(&good, &eve, now).is_err(), "it was revoked");
    }

    #[test]
    fn all_addresses_together_have_a_bound_and_so_has_what_is_kept() {
        let (guard, now) = (TokenThrottle::default(), Instant::now());
        for number in 0..10_000_u32 {
            let from =
                Origin { peer: Some(std::net::Ipv4Addr::from(number).into()), forwarded: None };
            guard.wrong(&secret("wrong"), &from, now);
            guard.right(&secret(&number.to_string()), now);
            guard.right(&secret(&format!("more {number}")), now);
        }
        assert!(guard.admits(&secret("x"), &at("192.0.2.1"), now).is_err());
        let seen = guard.seen();
        assert!(seen.by.len() <= ADDRESSES + 1 && seen.good.len() <= GOOD);
    }

    #[test]
    fn proxies_are_believed_if_they_are_known() {
        let known = ["10.0.0.0/8", "fd00::1"].map(|text| network(text).unwrap());
        let guard = TokenThrottle::new(known.to_vec());
        let origin = |origin: &Origin| guard.address(origin).unwrap().to_string();
        assert_eq!(origin(&through("192.0.2.7", "198.51.100.1")), "192.0.2.7");
        assert_eq!(origin(&through("10.1.2.3", "198.51.100.1")), "198.51.100.1");
        assert_eq!(origin(&through("::ffff:10.1.2.3", "198.51.100.1")), "198.51.100.1");
        // What a client has made up stands before what the proxies say.
        assert_eq!(origin(&through("10.1.2.3", "1.1.1.1, 198.51.100.1, 10.9.9.9")), "198.51.100.1");
        assert_eq!(origin(&through("10.1.2.3", "1.1.1.1, nonsense")), "10.1.2.3");
        assert_eq!(origin(&at("10.1.2.3")), "10.1.2.3");
        assert_eq!(origin(&through("fd00::1", "2001:db8:1:2:3::4")), "2001:db8:1:2::");
        assert_eq!(guard.address(&Origin::default()), None);
    }

    #[test]
    fn lines_of_several_proxies_are_one_list() {
        let mut headers = HeaderMap::new();
        assert_eq!(Origin::new(None, &headers), Origin::default());
        for line in ["1.1.1.1", "198.51.100.1, 10.9.9.9"] {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        let guard = TokenThrottle::new(vec![network("10.0.0.0/8").unwrap()]);
        let origin = Origin::new(at("10.1.2.3").peer, &headers);
        assert_eq!(guard.address(&origin).unwrap().to_string(), "198.51.100.1");
    }

    #[test]
    fn networks_are_read() {
        for good in ["0.0.0.0/0", "10.0.0.0/8", "10.0.0.7/32", "::/0", "fd00::/8"] {
            assert_eq!(network(good).unwrap().to_string(), good);
        }
        assert_eq!(network("10.0.0.7").unwrap().to_string(), "10.0.0.7/32");
        for bad in ["", "localhost", "10.0.0.0/33", "10.0.0.0/x", "::/129"] {
            assert!(network(bad).is_err(), "{bad}");
        }
    }
}
