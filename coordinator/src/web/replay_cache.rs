//! A cache of rendered replays.
//!
//! To render one step, the whole record must be replayed through the rules. A viewer requests many
//! steps one after the other. So a replay renders many steps at once and caches them in compressed
//! parts; the next hundreds of requests need no replay. The key is the hash of the record as this
//! viewer may see it, so access is checked before, for every request. The least recently used
//! replay is evicted first.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use arbiter_games::{BotName, Games};
use arbiter_replay::{Difference, Stderr, Steps};
use blake3::Hash;
use maud::PreEscaped;

use crate::cache::Cache;

/// Steps in a part. The script fetches as many at a time.
const STEPS_PER_PART: usize = 25;
/// Steps rendered by one replay. A multiple of [`STEPS_PER_PART`].
const STEPS_PER_REPLAY: usize = 10 * STEPS_PER_PART;
/// The size of the cache, in bytes.
const MAX_CACHE_BYTES: usize = 64 << 20;
/// The Zstandard level. Steps resemble each other, so a low level is enough.
const COMPRESSION_LEVEL: i32 = 1;

static CACHE: LazyLock<ReplayCache> = LazyLock::new(|| ReplayCache::new(MAX_CACHE_BYTES));

/// The properties of a whole replay.
#[derive(Debug)]
pub(super) struct ReplayInfo {
    /// The bots, seat 1 first.
    pub(super) names: Vec<BotName>,
    /// The number of steps.
    pub(super) total: usize,
    /// The chapters of the match (deals, rounds, …): name and first step.
    pub(super) chapters: Vec<(String, usize)>,
    /// The end of each bot's standard error, if recorded and visible, seat 1 first.
    pub(super) stderr: Vec<Option<Stderr>>,
}

impl ReplayInfo {
    /// The approximate size in bytes.
    fn size(&self) -> usize {
        let chapters = self.chapters.iter().map(|(name, _)| name.len() + 32);
        let stderr = self.stderr.iter().flatten().map(|stderr| stderr.text.len());
        chapters.chain(stderr).sum::<usize>() + 1024
    }
}

/// Rendered steps of a replay.
#[derive(Debug)]
pub(super) struct RenderedSteps {
    pub(super) info: Arc<ReplayInfo>,
    /// The requested steps that exist.
    pub(super) steps: Vec<PreEscaped<String>>,
}

/// Renders steps of a compressed record. This may take long.
///
/// # Errors
/// The first difference between the record and the rules.
pub(super) fn render_steps(
    games: &Games,
    record: &[u8],
    from: usize,
    count: usize,
) -> Result<RenderedSteps, Difference> {
    CACHE.render_steps(games, record, from, count)
}

/// The markup of consecutive steps.
#[derive(Debug)]
struct Part {
    /// The concatenated markup, compressed.
    compressed: Vec<u8>,
    /// The end offset of each step.
    ends: Vec<usize>,
}

impl Part {
    fn compress(steps: &[String]) -> io::Result<Self> {
        let ends = steps.iter().scan(0, |end, step| {
            *end += step.len();
            Some(*end)
        });
        Ok(Self {
            ends: ends.collect(),
            compressed: zstd::encode_all(steps.concat().as_bytes(), COMPRESSION_LEVEL)?,
        })
    }

    fn decompress(&self) -> io::Result<Vec<PreEscaped<String>>> {
        let text = String::from_utf8(zstd::decode_all(&self.compressed[..])?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let begins = [0].iter().chain(&self.ends);
        let steps =
            begins.zip(&self.ends).map(|(begin, end)| PreEscaped(text[*begin..*end].to_owned()));
        Ok(steps.collect())
    }

    /// The approximate size in bytes.
    fn size(&self) -> usize {
        self.compressed.len() + self.ends.len() * size_of::<usize>()
    }
}

/// Parts by number. Part 0 begins with step 0.
type Parts = HashMap<usize, Arc<Part>>;

/// The numbers of the parts that contain the steps `from..end`, of a replay of `total` steps.
fn part_range(total: usize, from: usize, end: usize) -> Range<usize> {
    let end = end.min(total);
    if from < end { from / STEPS_PER_PART..end.div_ceil(STEPS_PER_PART) } else { 0..0 }
}

/// A cached replay: the parts rendered so far.
#[derive(Debug)]
struct CachedReplay {
    info: Arc<ReplayInfo>,
    parts: Parts,
}

impl CachedReplay {
    fn size(&self) -> usize {
        self.info.size() + self.parts.values().map(|part| part.size()).sum::<usize>()
    }

    /// The parts that contain these steps, or `None` if one of them is not cached.
    fn parts(&self, from: usize, end: usize) -> Option<Vec<&Part>> {
        let parts = part_range(self.info.total, from, end).map(|number| self.parts.get(&number));
        parts.map(|part| part.map(AsRef::as_ref)).collect()
    }
}

/// A bounded cache of replays.
#[derive(Debug)]
struct ReplayCache {
    replays: Cache<Hash, CachedReplay>,
    /// The number of times a record was replayed.
    replay_count: AtomicUsize,
}

impl ReplayCache {
    fn new(max_bytes: usize) -> Self {
        Self {
            replays: Cache::weighted(max_bytes, CachedReplay::size),
            replay_count: AtomicUsize::new(0),
        }
    }

    /// Returns steps from the cache, or replays the record.
    fn render_steps(
        &self,
        games: &Games,
        record: &[u8],
        from: usize,
        count: usize,
    ) -> Result<RenderedSteps, Difference> {
        let hash = blake3::hash(record);
        let end = from.saturating_add(count);
        let cached = self.replays.get(&hash, None);
        let replay = match cached.filter(|replay| replay.parts(from, end).is_some()) {
            Some(replay) => replay,
            None => self.replay_and_insert(games, hash, record, from, end)?,
        };
        let mut steps = Vec::new();
        for part in replay.parts(from, end).unwrap_or_default() {
            steps.extend(part.decompress()?);
        }
        let steps = steps.into_iter().skip(from % STEPS_PER_PART).take(count).collect();
        Ok(RenderedSteps { info: Arc::clone(&replay.info), steps })
    }

    /// Replays a record and adds the new parts to those cached before. The cache is not locked
    /// during the replay.
    fn replay_and_insert(
        &self,
        games: &Games,
        hash: Hash,
        record: &[u8],
        from: usize,
        end: usize,
    ) -> Result<Arc<CachedReplay>, Difference> {
        let mut replay = replay_parts(games, record, from, end)?;
        self.replay_count.fetch_add(1, Ordering::Relaxed);
        if let Some(earlier) = self.replays.get(&hash, None) {
            replay.parts.extend(earlier.parts.clone());
        }
        Ok(self.replays.insert(hash, replay))
    }
}

/// Replays a record and renders the parts around the steps `from..end`.
fn replay_parts(
    games: &Games,
    record: &[u8],
    from: usize,
    end: usize,
) -> Result<CachedReplay, Difference> {
    let begin = from - from % STEPS_PER_REPLAY;
    let end = end.checked_next_multiple_of(STEPS_PER_REPLAY).unwrap_or(usize::MAX);
    let replay = arbiter_replay::steps(games, arbiter_replay::unpack(record)?, begin..end)?;
    let names = replay.names.clone();
    let Steps { total, chapters, stderr, drawn, .. } = replay;
    let steps: Vec<String> = drawn.iter().map(|step| step.render(&names).into_string()).collect();
    let compressed = (begin / STEPS_PER_PART..)
        .zip(steps.chunks(STEPS_PER_PART).map(Part::compress))
        .map(|(number, part)| Ok((number, Arc::new(part?))));
    let parts = compressed.collect::<io::Result<_>>()?;
    Ok(CachedReplay { info: Arc::new(ReplayInfo { names, total, chapters, stderr }), parts })
}

#[cfg(test)]
#[expect(dead_code, reason = "the tests of replays use more of it")]
#[path = "../../../replay/tests/support/mod.rs"]
mod matches;

#[cfg(test)]
mod tests {
    use arbiter_games::{ExpectedReply, MatchView, Message, Seed, wojna};

    use super::*;

    /// A long match: its compressed record and its rendered steps.
    fn long_match(text: &str) -> (Vec<u8>, Vec<String>) {
        let params = matches::params(&wojna::game(), r#"{"deals":1}"#);
        let names = matches::names(4);
        let seed = Seed::of_text(text);
        let player = |message: &Message, _: &dyn MatchView| {
            Ok(if message.expected_reply == ExpectedReply::Ack { "=" } else { "= check" }
                .to_owned())
        };
        let (record, _) = matches::play(&params, seed, &names, player);
        let steps =
            arbiter_replay::steps(&Games::built_in(), &record[..], 0..usize::MAX).unwrap().drawn;
        let steps = steps.iter().map(|step| step.render(&names).into_string()).collect();
        (zstd::encode_all(&record[..], 3).unwrap(), steps)
    }

    fn render(cache: &ReplayCache, record: &[u8], from: usize, count: usize) -> Vec<String> {
        let rendered = cache.render_steps(&Games::built_in(), record, from, count).unwrap();
        rendered.steps.into_iter().map(|step| step.0).collect()
    }

    #[test]
    fn stepping_through_a_match_replays_it_rarely() {
        let (record, expected) = long_match("seldom");
        let total = expected.len();
        assert!(total > STEPS_PER_REPLAY, "{total} steps");
        let cache = ReplayCache::new(MAX_CACHE_BYTES);
        for step in (0..total).step_by(7) {
            assert_eq!(render(&cache, &record, step, 1), expected[step..=step]);
        }
        let ranges =
            [(0, 50), (13, 25), (STEPS_PER_REPLAY - 7, 50), (total - 3, 50), (total - 1, 1)];
        for (from, count) in ranges {
            let end = total.min(from + count);
            assert_eq!(render(&cache, &record, from, count), expected[from..end]);
        }
        assert!(render(&cache, &record, total, 1).is_empty());
        assert!(render(&cache, &record, usize::MAX, usize::MAX).is_empty());
        assert_eq!(cache.replay_count.into_inner(), total.div_ceil(STEPS_PER_REPLAY));
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_the_latest_replays() {
        let matches = ["one", "two", "three"].map(long_match);
        let unbounded = ReplayCache::new(usize::MAX);
        render(&unbounded, &matches[0].0, 0, 1);
        let two_replays = 2 * unbounded.replays.weight();
        let max_bytes = two_replays + two_replays / 4;
        let cache = ReplayCache::new(max_bytes);
        for (record, expected) in matches.iter().chain(&matches).chain(&matches[1..]) {
            assert_eq!(render(&cache, record, 0, 3), expected[..3]);
            assert!(cache.replays.weight() <= max_bytes);
            assert!(cache.replays.get(&blake3::hash(record), None).is_some(), "the latest stays");
        }
        let empty = ReplayCache::new(0);
        assert_eq!(render(&empty, &matches[0].0, 5, 3), matches[0].1[5..8]);
        assert_eq!(empty.replays.weight(), 0);
    }
}
