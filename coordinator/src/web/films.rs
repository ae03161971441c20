//! Replays that are looked at, drawn and kept for a while.
//!
//! To draw a step, the record is replayed through the rules up to its end. Whoever leafs through a
//! match asks for one step after the other, so many are drawn at once and kept, a handful at a
//! time and compressed: the next hundreds of requests replay nothing. A replay is kept under the
//! hash of its record, as it was shown to whoever looked; so who may see what is decided before,
//! for every request. What was not asked for longest is forgotten first.

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

/// Steps that are kept together. The script asks for as many at a time.
const PART: usize = 25;
/// Steps that are drawn in one replay, at least: whole parts.
const REACH: usize = 10 * PART;
/// What is kept, in bytes.
const KEPT: usize = 64 << 20;
/// How hard steps are compressed: they resemble each other.
const EFFORT: i32 = 1;

/// The replays that are kept.
static SHELF: LazyLock<Shelf> = LazyLock::new(|| Shelf::new(KEPT));

/// What a replay tells as a whole.
#[derive(Debug)]
pub(super) struct Head {
    /// The bots, seat 1 first.
    pub(super) names: Vec<BotName>,
    /// How many steps there are.
    pub(super) total: usize,
    /// Where the parts of the match begin.
    pub(super) chapters: Vec<(String, usize)>,
    /// The end of each bot's standard error, if it was kept and may be seen, seat 1 first.
    pub(super) stderr: Vec<Option<Stderr>>,
}

impl Head {
    /// About how many bytes it takes.
    fn size(&self) -> usize {
        let chapters = self.chapters.iter().map(|(name, _)| name.len() + 32);
        let stderr = self.stderr.iter().flatten().map(|stderr| stderr.text.len());
        chapters.chain(stderr).sum::<usize>() + 1024
    }
}

/// Some steps of a replay, ready for a page.
#[derive(Debug)]
pub(super) struct Scenes {
    /// The replay.
    pub(super) head: Arc<Head>,
    /// The steps that were asked for, as far as there are such.
    pub(super) steps: Vec<PreEscaped<String>>,
}

/// Some steps of a record as it was compressed. It may take long.
///
/// # Errors
/// The first difference between the record and the rules.
pub(super) fn scenes(
    games: &Games,
    record: &[u8],
    from: usize,
    count: usize,
) -> Result<Scenes, Difference> {
    SHELF.scenes(games, record, from, count)
}

/// Steps that are kept together.
#[derive(Debug)]
struct Part {
    /// All of them, one after the other, compressed.
    packed: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl Part {
    fn pack(steps: &[String]) -> io::Result<Self> {
        let ends = steps.iter().scan(0, |end, step| {
            *end += step.len();
            Some(*end)
        });
        Ok(Self {
            ends: ends.collect(),
            packed: zstd::encode_all(steps.concat().as_bytes(), EFFORT)?,
        })
    }

    fn unpack(&self) -> io::Result<Vec<PreEscaped<String>>> {
        let text = String::from_utf8(zstd::decode_all(&self.packed[..])?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let begins = [0].iter().chain(&self.ends);
        let steps =
            begins.zip(&self.ends).map(|(begin, end)| PreEscaped(text[*begin..*end].to_owned()));
        Ok(steps.collect())
    }

    /// About how many bytes it takes.
    fn size(&self) -> usize {
        self.packed.len() + self.ends.len() * size_of::<usize>()
    }
}

/// Parts by their numbers: part 0 begins with step 0.
type Parts = HashMap<usize, Arc<Part>>;

/// The parts of a replay with these steps, as far as there are such.
fn wanted(total: usize, from: usize, end: usize) -> Range<usize> {
    let end = end.min(total);
    if from < end { from / PART..end.div_ceil(PART) } else { 0..0 }
}

/// A replay, as far as it was drawn.
#[derive(Debug)]
struct Film {
    head: Arc<Head>,
    parts: Parts,
}

impl Film {
    fn size(&self) -> usize {
        self.head.size() + self.parts.values().map(|part| part.size()).sum::<usize>()
    }

    /// The parts with these steps, if all that there are are kept.
    fn parts(&self, from: usize, end: usize) -> Option<Vec<&Part>> {
        let parts = wanted(self.head.total, from, end).map(|number| self.parts.get(&number));
        parts.map(|part| part.map(AsRef::as_ref)).collect()
    }
}

/// Replays that are kept, within a bound.
#[derive(Debug)]
struct Shelf {
    films: Cache<Hash, Film>,
    /// Records replayed so far.
    replayed: AtomicUsize,
}

impl Shelf {
    /// For replays that take so many bytes together.
    fn new(bound: usize) -> Self {
        Self { films: Cache::weighted(bound, Film::size), replayed: AtomicUsize::new(0) }
    }

    /// Some steps of a record, from what is kept if they are there.
    fn scenes(
        &self,
        games: &Games,
        record: &[u8],
        from: usize,
        count: usize,
    ) -> Result<Scenes, Difference> {
        let hash = blake3::hash(record);
        let end = from.saturating_add(count);
        let known = self.films.get(hash, None).filter(|film| film.parts(from, end).is_some());
        let film = match known {
            Some(film) => film,
            None => self.draw(games, hash, record, from, end)?,
        };
        let mut steps = Vec::new();
        for part in film.parts(from, end).unwrap_or_default() {
            steps.extend(part.unpack()?);
        }
        let steps = steps.into_iter().skip(from % PART).take(count).collect();
        Ok(Scenes { head: Arc::clone(&film.head), steps })
    }

    /// Replays a record, and keeps what was drawn beside what was drawn before. Nobody waits for it
    /// but those who need it.
    fn draw(
        &self,
        games: &Games,
        hash: Hash,
        record: &[u8],
        from: usize,
        end: usize,
    ) -> Result<Arc<Film>, Difference> {
        let mut film = drawn(games, record, from, end)?;
        self.replayed.fetch_add(1, Ordering::Relaxed);
        if let Some(earlier) = self.films.get(hash, None) {
            film.parts.extend(earlier.parts.clone());
        }
        Ok(self.films.insert(hash, film))
    }
}

/// Replays a record, and draws the parts with these steps and those around them.
fn drawn(games: &Games, record: &[u8], from: usize, end: usize) -> Result<Film, Difference> {
    let begin = from - from % REACH;
    let end = end.checked_next_multiple_of(REACH).unwrap_or(usize::MAX);
    let found = arbiter_replay::steps(games, arbiter_replay::unpack(record)?, begin..end)?;
    let names = found.names();
    let Steps { total, chapters, stderr, drawn, .. } = found;
    let steps: Vec<String> = drawn.iter().map(|step| step.render(&names).into_string()).collect();
    let packed = (begin / PART..).zip(steps.chunks(PART).map(Part::pack));
    let parts = packed.map(|(number, part)| Ok((number, Arc::new(part?))));
    let parts = parts.collect::<io::Result<_>>()?;
    Ok(Film { head: Arc::new(Head { names, total, chapters, stderr }), parts })
}

#[cfg(test)]
#[expect(dead_code, reason = "the tests of replays use more of it")]
#[path = "../../../replay/tests/support/mod.rs"]
mod matches;

#[cfg(test)]
mod tests {
    use arbiter_games::{MatchView, Owes, Say, Seed, wojna};

    use super::*;

    /// A match of many steps, compressed, and all its steps as they are drawn.
    fn long(text: &str) -> (Vec<u8>, Vec<String>) {
        let params = matches::params(&wojna::game(), r#"{"deals":1}"#);
        let names = matches::names(4);
        let seed = Seed::of_text(text);
        let player = |say: &Say, _: &dyn MatchView| {
            Ok(if say.owes == Owes::Ack { "=" } else { "= check" }.to_owned())
        };
        let (record, _) = matches::play(&params, seed, &names, player);
        let steps =
            arbiter_replay::steps(&Games::built_in(), &record[..], 0..usize::MAX).unwrap().drawn;
        let steps = steps.iter().map(|step| step.render(&names).into_string()).collect();
        (zstd::encode_all(&record[..], 3).unwrap(), steps)
    }

    /// What a shelf gives.
    fn given(shelf: &Shelf, record: &[u8], from: usize, count: usize) -> Vec<String> {
        let scenes = shelf.scenes(&Games::built_in(), record, from, count).unwrap();
        scenes.steps.into_iter().map(|step| step.0).collect()
    }

    #[test]
    fn leafing_through_a_match_replays_it_seldom() {
        let (record, due) = long("seldom");
        let total = due.len();
        assert!(total > REACH, "{total} steps");
        let shelf = Shelf::new(KEPT);
        for step in (0..total).step_by(7) {
            assert_eq!(given(&shelf, &record, step, 1), due[step..=step]);
        }
        for (from, count) in [(0, 50), (13, 25), (REACH - 7, 50), (total - 3, 50), (total - 1, 1)] {
            assert_eq!(given(&shelf, &record, from, count), due[from..total.min(from + count)]);
        }
        assert!(given(&shelf, &record, total, 1).is_empty());
        assert!(given(&shelf, &record, usize::MAX, usize::MAX).is_empty());
        assert_eq!(shelf.replayed.into_inner(), total.div_ceil(REACH));
    }

    #[test]
    fn what_is_kept_has_a_bound_and_the_latest_stay() {
        let matches = ["one", "two", "three"].map(long);
        let wide = Shelf::new(usize::MAX);
        given(&wide, &matches[0].0, 0, 1);
        let room = 2 * wide.films.weight();
        let bound = room + room / 4;
        let shelf = Shelf::new(bound);
        for (record, due) in matches.iter().chain(&matches).chain(&matches[1..]) {
            assert_eq!(given(&shelf, record, 0, 3), due[..3]);
            assert!(shelf.films.weight() <= bound);
            assert!(shelf.films.get(blake3::hash(record), None).is_some(), "the latest stays");
        }
        let narrow = Shelf::new(0);
        assert_eq!(given(&narrow, &matches[0].0, 5, 3), matches[0].1[5..8]);
        assert_eq!(narrow.films.weight(), 0);
    }
}
