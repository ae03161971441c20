//! A cache of rendered replays.
//!
//! To render one step, the whole record must be replayed through the rules. A viewer needs many
//! steps, one after the other. So a replay renders several chunks of steps at once and caches them
//! as the browser receives them ([`arbiter_replay::ChunkEncoder`]); the next thousand steps need no
//! replay. The key is the hash of the record, of whose private lines the viewer may see, and of the
//! shown names. Access is checked before, for every request. The least recently used replay is
//! evicted first.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::LazyLock;
#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};

use arbiter_games::{EntrantName, Games};
use arbiter_replay::{ChunkEncoder, Difference, Overview, STEPS_PER_CHUNK, ShownNames, Step};
use blake3::{Hash, Hasher};
use maud::PreEscaped;

use crate::cache::Cache;
use crate::service::ReplayRecord;

/// Chunks rendered by one replay.
const CHUNKS_PER_REPLAY: usize = 32;
/// Steps rendered by one replay.
const STEPS_PER_REPLAY: usize = CHUNKS_PER_REPLAY * STEPS_PER_CHUNK;
/// The size of the cache, in bytes.
const MAX_CACHE_BYTES: usize = 64 << 20;

static CACHE: LazyLock<ReplayCache> = LazyLock::new(|| ReplayCache::new(MAX_CACHE_BYTES));

/// What is replayed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replayed<'a> {
    pub(super) games: &'a Games,
    /// The record, as its reader may see it.
    pub(super) record: &'a ReplayRecord,
    /// The names to show instead of those in the record.
    pub(super) names: &'a ShownNames,
}

impl Replayed<'_> {
    /// The key of its chunks, which contain the shown names.
    fn key(&self) -> Hash {
        let names: BTreeMap<_, _> = self.names.iter().collect();
        let mut hasher = Hasher::new();
        hasher.update(self.record.key().as_bytes()).update(format!("{names:?}").as_bytes());
        hasher.finalize()
    }
}

/// A chunk of a replay.
#[derive(Debug)]
pub(super) struct ReplayChunk {
    /// The whole replay.
    pub(super) overview: Arc<Overview>,
    /// The steps; `None` if the replay has no such chunk.
    pub(super) chunk: Option<Arc<Vec<u8>>>,
}

impl ReplayChunk {
    /// The HTML of a step of this chunk; `None` if there is no such step.
    ///
    /// # Errors
    /// If the chunk cannot be decompressed.
    pub(super) fn step(&self, step: usize) -> io::Result<Option<PreEscaped<String>>> {
        let Some(chunk) = &self.chunk else { return Ok(None) };
        let steps = arbiter_replay::decode_chunk(chunk)?;
        Ok(steps.into_iter().nth(step % STEPS_PER_CHUNK).map(PreEscaped))
    }
}

/// Renders the chunk of a compressed record with this number. This may take long.
///
/// # Errors
/// The first difference between the record and the rules.
pub(super) fn render_chunk(
    replayed: Replayed<'_>,
    number: usize,
) -> Result<ReplayChunk, Difference> {
    CACHE.render_chunk(replayed, number)
}

/// A cached replay: the chunks rendered so far, by number.
#[derive(Debug)]
struct CachedReplay {
    overview: Arc<Overview>,
    chunks: HashMap<usize, Arc<Vec<u8>>>,
}

impl CachedReplay {
    /// The approximate size in bytes.
    fn size(&self) -> usize {
        let Overview { chapters, stderr, .. } = &*self.overview;
        let chapters = chapters.iter().map(|(name, _)| name.len() + 32);
        let stderr = stderr.iter().flatten().map(|stderr| stderr.text.len());
        let chunks = self.chunks.values().map(|chunk| chunk.len());
        chapters.chain(stderr).chain(chunks).sum::<usize>() + 1024
    }

    /// The chunk with this number. `None` if it exists, but was not rendered.
    fn chunk(&self, number: usize) -> Option<ReplayChunk> {
        let chunk = self.chunks.get(&number).cloned();
        let is_beyond = number >= self.overview.total.div_ceil(STEPS_PER_CHUNK);
        let overview = Arc::clone(&self.overview);
        (chunk.is_some() || is_beyond).then_some(ReplayChunk { overview, chunk })
    }
}

/// A bounded cache of replays.
#[derive(Debug)]
struct ReplayCache {
    replays: Cache<Hash, CachedReplay>,
    /// The number of times a record was replayed.
    #[cfg(test)]
    replay_count: AtomicUsize,
}

impl ReplayCache {
    fn new(max_bytes: usize) -> Self {
        Self {
            replays: Cache::weighted(max_bytes, CachedReplay::size),
            #[cfg(test)]
            replay_count: AtomicUsize::new(0),
        }
    }

    /// Returns a chunk from the cache, or replays the record.
    fn render_chunk(
        &self,
        replayed: Replayed<'_>,
        number: usize,
    ) -> Result<ReplayChunk, Difference> {
        let key = replayed.key();
        let cached = self.replays.get(&key, None).and_then(|replay| replay.chunk(number));
        if let Some(chunk) = cached {
            return Ok(chunk);
        }
        let replay = self.replay_and_insert(replayed, key, number)?;
        let overview = Arc::clone(&replay.overview);
        Ok(ReplayChunk { overview, chunk: replay.chunks.get(&number).cloned() })
    }

    /// Replays a record and adds the new chunks to those cached before. The cache is not locked
    /// during the replay.
    fn replay_and_insert(
        &self,
        replayed: Replayed<'_>,
        key: Hash,
        number: usize,
    ) -> Result<Arc<CachedReplay>, Difference> {
        let mut replay = replay_chunks(replayed, number)?;
        #[cfg(test)]
        self.replay_count.fetch_add(1, Ordering::Relaxed);
        if let Some(earlier) = self.replays.get(&key, None) {
            replay.chunks.extend(earlier.chunks.clone());
        }
        Ok(self.replays.insert(key, replay))
    }
}

/// Replays a record and renders the chunk with this number and its neighbours.
fn replay_chunks(replayed: Replayed<'_>, number: usize) -> Result<CachedReplay, Difference> {
    let first_chunk = number - number % CHUNKS_PER_REPLAY;
    let begin = first_chunk.saturating_mul(STEPS_PER_CHUNK);
    let steps = begin..begin.saturating_add(STEPS_PER_REPLAY);
    let mut encoder = ChunkEncoder::default();
    let mut chunks = Vec::new();
    let visit = |names: &[EntrantName], step: Step| {
        encoder.push(step.render(names).into_string());
        if encoder.steps() == STEPS_PER_CHUNK {
            chunks.push(encoder.finish());
        }
    };
    let Replayed { games, record, names } = replayed;
    let overview = arbiter_replay::read_ahead(record.text()?, |text| {
        arbiter_replay::visit_steps(games, text, (steps, names), visit)
    })??;
    if encoder.steps() > 0 {
        chunks.push(encoder.finish());
    }
    let chunks = (first_chunk..).zip(chunks).map(|(number, chunk)| Ok((number, Arc::new(chunk?))));
    let chunks = chunks.collect::<io::Result<_>>()?;
    Ok(CachedReplay { overview: Arc::new(overview), chunks })
}

#[cfg(test)]
#[expect(dead_code, reason = "the tests of replays use more of it")]
#[path = "../../../replay/tests/support/mod.rs"]
mod matches;

#[cfg(test)]
mod tests {
    use arbiter_games::{BotName, ExpectedReply, MatchView, Message, Seed, wojna};
    use arbiter_replay::Footer;

    use super::*;

    /// A long match: its record and its rendered steps.
    fn long_match(text: &str) -> (ReplayRecord, Vec<String>) {
        let (record, names) = long_record(text);
        let steps =
            arbiter_replay::steps(&Games::built_in(), &record[..], 0..usize::MAX).unwrap().drawn;
        let shown: Vec<_> = names.into_iter().map(EntrantName::from).collect();
        let steps = steps.iter().map(|step| step.render(&shown).into_string()).collect();
        (ReplayRecord::of(zstd::encode_all(&record[..], 3).unwrap(), &[true; 4]), steps)
    }

    /// The record of a long match, and the names of its bots.
    fn long_record(text: &str) -> (Vec<u8>, Vec<BotName>) {
        let params = matches::params(&wojna::game(), r#"{"deals":1}"#);
        let names = matches::names(4);
        let seed = Seed::of_text(text);
        let player = |message: &Message, _: &dyn MatchView| {
            Ok(if message.expected_reply == ExpectedReply::Ack { "=" } else { "= check" }
                .to_owned())
        };
        (matches::play(&params, seed, &names, player).0, names)
    }

    fn render(cache: &ReplayCache, record: &ReplayRecord, step: usize) -> Option<String> {
        let number = step / STEPS_PER_CHUNK;
        let replayed = Replayed { record, games: &Games::built_in(), names: &ShownNames::new() };
        let chunk = cache.render_chunk(replayed, number).unwrap();
        chunk.step(step).unwrap().map(|step| step.0)
    }

    #[test]
    fn stepping_through_a_match_replays_it_rarely() {
        let (record, expected) = long_match("seldom");
        let total = expected.len();
        assert!(total > STEPS_PER_REPLAY, "{total} steps");
        let cache = ReplayCache::new(MAX_CACHE_BYTES);
        for step in (0..total).step_by(7).chain([STEPS_PER_REPLAY - 1, total - 1]) {
            assert_eq!(render(&cache, &record, step).as_ref(), Some(&expected[step]));
        }
        assert_eq!(render(&cache, &record, total), None);
        assert_eq!(render(&cache, &record, total + STEPS_PER_CHUNK), None);
        assert_eq!(render(&cache, &record, usize::MAX), None);
        assert_eq!(cache.replay_count.into_inner(), total.div_ceil(STEPS_PER_REPLAY));
        let empty = ReplayCache::new(MAX_CACHE_BYTES);
        assert_eq!(render(&empty, &record, usize::MAX), None);
    }

    #[test]
    fn a_viewer_gets_no_private_lines_from_the_replay_of_another() {
        let stderr = r#"{"seat":2,"stderr":"my secret book\n","dropped":0}"#;
        let packed = with_line_at_the_end(&long_record("secret").0, stderr);
        let cache = ReplayCache::new(MAX_CACHE_BYTES);
        for visible in
            [[true; 4], [false; 4], [true, false, true, true], [false, true, false, false]]
        {
            let record = &ReplayRecord::of(packed.clone(), &visible);
            let replayed =
                Replayed { record, games: &Games::built_in(), names: &ShownNames::new() };
            let overview = cache.render_chunk(replayed, 0).unwrap().overview;
            let shown: Vec<_> = overview.stderr.iter().map(Option::is_some).collect();
            assert_eq!(shown, [false, visible[1], false, false], "{visible:?}");
        }
    }

    /// A compressed record with a line more after the match.
    fn with_line_at_the_end(record: &[u8], line: &str) -> Vec<u8> {
        let text = str::from_utf8(record).unwrap().trim_end();
        let (before, last) = text.rsplit_once('\n').unwrap();
        let before = format!("{before}\n{line}\n");
        let mut footer: Footer = serde_json::from_str(last).unwrap();
        footer.seal = blake3::hash(before.as_bytes()).to_string();
        let text = format!("{before}{}\n", serde_json::to_string(&footer).unwrap());
        zstd::encode_all(text.as_bytes(), 3).unwrap()
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_the_latest_replays() {
        let matches = ["one", "two", "three"].map(long_match);
        let unbounded = ReplayCache::new(usize::MAX);
        render(&unbounded, &matches[0].0, 0);
        let two_replays = 2 * unbounded.replays.weight();
        let max_bytes = two_replays + two_replays / 4;
        let cache = ReplayCache::new(max_bytes);
        for (record, expected) in matches.iter().chain(&matches).chain(&matches[1..]) {
            assert_eq!(render(&cache, record, 2).as_ref(), Some(&expected[2]));
            assert!(cache.replays.weight() <= max_bytes);
            let replayed =
                Replayed { record, games: &Games::built_in(), names: &ShownNames::new() };
            assert!(cache.replays.get(&replayed.key(), None).is_some(), "the latest stays");
        }
        let empty = ReplayCache::new(0);
        assert_eq!(render(&empty, &matches[0].0, 5).as_ref(), Some(&matches[0].1[5]));
        assert_eq!(empty.replays.weight(), 0);
    }
}
