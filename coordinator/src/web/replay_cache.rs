//! A cache of rendered replays.
//!
//! To render one step, the whole record must be replayed through the rules. A viewer needs many
//! steps, one after the other. So a replay renders several chunks of steps at once and caches them
//! as the browser receives them ([`arbiter_replay::render_chunks()`]); the steps after it need no
//! replay and do not read the record. Access is checked before, for every request. The least
//! recently used replay is evicted first.

use std::collections::{BTreeMap, HashMap};
use std::io;
#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use arbiter_games::{BotName, EntrantName, Games};
use arbiter_replay::{Overview, RenderedChunks, STEPS_PER_CHUNK, ShownNames};
use maud::PreEscaped;

use crate::cache::Cache;
use crate::service::{RecordKey, ReplayRecord, ServiceError};

/// Chunks rendered when a replay is opened: fewer than later, because a page waits for them.
const FIRST_CHUNKS: usize = 4;
/// Chunks rendered by each later replay.
const CHUNKS_PER_REPLAY: usize = 32;
/// Replays that may be under way: more than there are permits.
const MAX_TURNS: usize = 64;
/// The size of the cache, in bytes.
const MAX_CACHE_BYTES: usize = 64 << 20;

static CACHE: LazyLock<ReplayCache> = LazyLock::new(|| ReplayCache::new(MAX_CACHE_BYTES));

/// What tells replays apart: the record, whose private lines the viewer may see, and the names to
/// show instead of those in the record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ReplayKey {
    record: RecordKey,
    names: BTreeMap<BotName, EntrantName>,
}

impl ReplayKey {
    /// The key of the replay of a record with these names.
    pub(super) fn new(record: RecordKey, names: &ShownNames) -> Self {
        let names = names.iter().map(|(name, shown)| (name.clone(), shown.clone())).collect();
        Self { record, names }
    }
}

/// What is replayed.
#[derive(Debug)]
pub(super) struct Replayed<'a> {
    pub(super) games: &'a Games,
    /// The record, which shows only what its reader may see.
    pub(super) record: ReplayRecord,
    /// The names to show instead of those in the record.
    pub(super) names: &'a ShownNames,
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

/// The chunk with this number of the replay with this key. `None` if it is not cached.
pub(super) fn cached_chunk(key: &ReplayKey, number: usize) -> Option<ReplayChunk> {
    CACHE.chunk(key, number)
}

/// Renders the chunk with this number of the replay with this key. This may take long.
///
/// # Errors
/// Why the record cannot be read or replayed.
pub(super) fn render_chunk(
    key: ReplayKey,
    replayed: Replayed<'_>,
    number: usize,
) -> Result<ReplayChunk, ServiceError> {
    CACHE.render_chunk(key, replayed, number)
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
    replays: Cache<ReplayKey, CachedReplay>,
    /// Locks, so that one thread at a time replays a record: a viewer requests several chunks at
    /// once, and one replay renders them all.
    turns: Cache<ReplayKey, Mutex<()>>,
    /// The number of times a record was replayed.
    #[cfg(test)]
    replay_count: AtomicUsize,
}

impl ReplayCache {
    fn new(max_bytes: usize) -> Self {
        Self {
            replays: Cache::weighted(max_bytes, CachedReplay::size),
            turns: Cache::new(MAX_TURNS),
            #[cfg(test)]
            replay_count: AtomicUsize::new(0),
        }
    }

    fn chunk(&self, key: &ReplayKey, number: usize) -> Option<ReplayChunk> {
        self.replays.get(key, None).and_then(|replay| replay.chunk(number))
    }

    /// Returns a chunk that was rendered meanwhile, or replays the record and adds the new chunks
    /// to those cached before. The cache is not locked during the replay.
    fn render_chunk(
        &self,
        key: ReplayKey,
        replayed: Replayed<'_>,
        number: usize,
    ) -> Result<ReplayChunk, ServiceError> {
        let turn = self.turns.get_or_insert_with(key.clone(), Mutex::default);
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chunk) = self.chunk(&key, number) {
            return Ok(chunk);
        }
        let replay = self.replays.get(&key, None);
        // One without chunks was opened beyond its last step.
        let is_open = replay.is_some_and(|replay| !replay.chunks.is_empty());
        let count = if is_open { CHUNKS_PER_REPLAY } else { FIRST_CHUNKS };
        let mut replay = replay_chunks(replayed, number, count)?;
        #[cfg(test)]
        self.replay_count.fetch_add(1, Ordering::Relaxed);
        if let Some(earlier) = self.replays.get(&key, None) {
            replay.chunks.extend(earlier.chunks.clone());
        }
        let replay = self.replays.insert(key, replay);
        let overview = Arc::clone(&replay.overview);
        Ok(ReplayChunk { overview, chunk: replay.chunks.get(&number).cloned() })
    }
}

/// Replays a record and renders the chunk with this number and its neighbours: `count` chunks.
fn replay_chunks(
    replayed: Replayed<'_>,
    number: usize,
    count: usize,
) -> Result<CachedReplay, ServiceError> {
    let Replayed { games, record, names } = replayed;
    let first = number - number % count;
    let requested = first..first.saturating_add(count);
    let RenderedChunks { overview, chunks } = record.render_chunks(games, (requested, names))?;
    let chunks = (first..).zip(chunks.into_iter().map(Arc::new)).collect();
    Ok(CachedReplay { overview: Arc::new(overview), chunks })
}

#[cfg(test)]
#[expect(dead_code, reason = "the tests of replays use more of it")]
#[path = "../../../replay/tests/support/mod.rs"]
mod matches;

#[cfg(test)]
mod tests {
    use arbiter_games::{ExpectedReply, Forfeit, MatchView, Message, Seat, Seed, wojna};
    use arbiter_proto::ids::{MatchId, MatchNumber, TournamentId};
    use arbiter_replay::{Footer, LineBlocks, Reader};

    use super::*;
    use crate::record_redaction;

    /// Steps rendered by each replay but the first one.
    const STEPS_PER_REPLAY: usize = CHUNKS_PER_REPLAY * STEPS_PER_CHUNK;

    /// A long match with a number.
    struct LongMatch {
        number: i64,
        /// Its compressed record.
        packed: Vec<u8>,
        /// Its rendered steps.
        steps: Vec<String>,
    }

    fn long_match(number: i64) -> LongMatch {
        let (record, names) = long_record(number);
        let lines = LineBlocks::new(&record[..]);
        let steps =
            arbiter_replay::steps(&Games::built_in(), lines, 0..usize::MAX, Reader::default())
                .unwrap()
                .drawn;
        let shown: Vec<_> = names.into_iter().map(EntrantName::from).collect();
        let steps = steps.iter().map(|step| step.render(&shown).into_string()).collect();
        LongMatch { number, packed: zstd::encode_all(&record[..], 3).unwrap(), steps }
    }

    /// The record of a long match, and the names of its bots.
    fn long_record(number: i64) -> (Vec<u8>, Vec<BotName>) {
        play(number, |message| {
            let is_ack = message.expected_reply == ExpectedReply::Ack;
            Ok(if is_ack { "=" } else { "= check" }.to_owned())
        })
    }

    /// The record of a match whose bots reply like this, and their names.
    fn play(
        number: i64,
        mut reply: impl FnMut(&Message) -> Result<String, Forfeit>,
    ) -> (Vec<u8>, Vec<BotName>) {
        let params = matches::params(&wojna::game(), r#"{"deals":1}"#);
        let names = matches::names(4);
        let seed = Seed::of_text(&number.to_string());
        let player = |message: &Message, _: &dyn MatchView| reply(message);
        (matches::play(&params, seed, &names, player).0, names)
    }

    /// The key of the replay of a match for a viewer who sees the private lines of these seats.
    fn key(number: i64, visible: &[bool]) -> ReplayKey {
        let id = MatchId { tournament: TournamentId(1), number: MatchNumber(number) };
        let record = RecordKey { id, visible: visible.to_vec() };
        ReplayKey::new(record, &ShownNames::new())
    }

    fn chunk(
        cache: &ReplayCache,
        key: &ReplayKey,
        record: ReplayRecord,
        number: usize,
    ) -> ReplayChunk {
        let replayed = Replayed { record, games: &Games::built_in(), names: &ShownNames::new() };
        let cached = cache.chunk(key, number);
        cached.unwrap_or_else(|| cache.render_chunk(key.clone(), replayed, number).unwrap())
    }

    fn render(cache: &ReplayCache, long: &LongMatch, step: usize) -> Option<String> {
        let number = step / STEPS_PER_CHUNK;
        let record = ReplayRecord::of(long.packed.clone(), &[true; 4]);
        let chunk = chunk(cache, &key(long.number, &[true; 4]), record, number);
        chunk.step(step).unwrap().map(|step| step.0)
    }

    #[test]
    fn stepping_through_a_match_replays_it_rarely() {
        let long = long_match(1);
        let total = long.steps.len();
        assert!(total > STEPS_PER_REPLAY, "{total} steps");
        let cache = ReplayCache::new(MAX_CACHE_BYTES);
        for step in (0..total).step_by(7).chain([STEPS_PER_REPLAY - 1, total - 1]) {
            assert_eq!(render(&cache, &long, step).as_ref(), Some(&long.steps[step]));
        }
        assert_eq!(render(&cache, &long, total), None);
        assert_eq!(render(&cache, &long, total + STEPS_PER_CHUNK), None);
        assert_eq!(render(&cache, &long, usize::MAX), None);
        assert_eq!(cache.replay_count.into_inner(), 1 + total.div_ceil(STEPS_PER_REPLAY));
        let empty = ReplayCache::new(MAX_CACHE_BYTES);
        assert_eq!(render(&empty, &long, usize::MAX), None);
    }

    #[test]
    fn chunks_that_are_requested_at_once_need_one_replay() {
        let long = long_match(1);
        let cache = ReplayCache::new(MAX_CACHE_BYTES);
        std::thread::scope(|scope| {
            for step in (0..FIRST_CHUNKS).map(|chunk| chunk * STEPS_PER_CHUNK) {
                let cache = &cache;
                let long = &long;
                scope.spawn(move || {
                    assert_eq!(render(cache, long, step).as_ref(), Some(&long.steps[step]));
                });
            }
        });
        assert_eq!(cache.replay_count.into_inner(), 1);
    }

    #[test]
    fn a_viewer_gets_no_private_lines_from_the_replay_of_another() {
        let stderr = r#"{"seat":2,"stderr":"my secret book\n","dropped":0}"#;
        let packed = with_line_at_the_end(&long_record(1).0, stderr);
        let cache = ReplayCache::new(MAX_CACHE_BYTES);
        for visible in
            [[true; 4], [false; 4], [true, false, true, true], [false, true, false, false]]
        {
            let record = ReplayRecord::of(packed.clone(), &visible);
            let overview = chunk(&cache, &key(1, &visible), record, 0).overview;
            let shown: Vec<_> = overview.stderr.iter().map(Option::is_some).collect();
            assert_eq!(shown, [false, visible[1], false, false], "{visible:?}");
        }
    }

    #[test]
    fn a_replay_shows_what_the_download_has() {
        let (record, _) = play(1, |message| match message.expected_reply {
            ExpectedReply::Ack => Ok("=".to_owned()),
            _ if message.seat == Seat::from_index(2) => Err(Forfeit::Gone),
            _ => Ok("= pass".to_owned()),
        });
        let stderr = r#"{"seat":2,"stderr":"my secret book\n","dropped":0}"#;
        let packed = with_line_at_the_end(&record, stderr);
        let replay = |packed: Vec<u8>, visible: &[bool]| {
            let steps = ReplayRecord::of(packed, visible).steps(&Games::built_in(), 0..usize::MAX);
            format!("{:?}", steps.unwrap())
        };
        for visible in
            [[true; 4], [false; 4], [true, false, true, true], [false, true, false, false]]
        {
            let shown = replay(packed.clone(), &visible);
            let download = record_redaction::redact(&packed, &visible).unwrap();
            assert!(shown == replay(download, &[true; 4]), "{visible:?}");
            let has = ["my secret book", "details of the forfeit"].map(|text| shown.contains(text));
            assert_eq!(has, [visible[1], visible[2]], "{visible:?}");
        }
    }

    #[test]
    fn a_record_is_replayed_from_its_pieces_only_if_it_is_complete() {
        let long = long_match(1);
        let steps = |pieces: Vec<Result<Vec<u8>, ServiceError>>| {
            let record = ReplayRecord::of_pieces(pieces, &[true; 4]);
            record.steps(&Games::built_in(), 0..0).map(|steps| steps.overview.total)
        };
        let pieces = || long.packed.chunks(999).map(|piece| Ok(piece.to_vec())).collect::<Vec<_>>();
        assert_eq!(steps(pieces()).unwrap(), long.steps.len());
        let mut incomplete = pieces();
        incomplete.pop();
        let error = steps(incomplete.clone()).unwrap_err();
        assert!(error.message().starts_with("the record of match cup/1 cannot be replayed: "));
        let cause = ServiceError::unavailable("the database does not respond");
        incomplete.push(Err(cause.clone()));
        assert_eq!(steps(incomplete).unwrap_err(), cause);
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
        let matches = [1, 2, 3].map(long_match);
        let unbounded = ReplayCache::new(usize::MAX);
        render(&unbounded, &matches[0], 0);
        let two_replays = 2 * unbounded.replays.weight();
        let max_bytes = two_replays + two_replays / 4;
        let cache = ReplayCache::new(max_bytes);
        for long in matches.iter().chain(&matches).chain(&matches[1..]) {
            assert_eq!(render(&cache, long, 2).as_ref(), Some(&long.steps[2]));
            assert!(cache.replays.weight() <= max_bytes);
            assert!(cache.chunk(&key(long.number, &[true; 4]), 0).is_some(), "the latest stays");
        }
        let empty = ReplayCache::new(0);
        assert_eq!(render(&empty, &matches[0], 5).as_ref(), Some(&matches[0].steps[5]));
        assert_eq!(empty.replays.weight(), 0);
    }
}
