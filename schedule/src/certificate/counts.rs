//! Many small counters: one byte each, or four bytes each after one of them exceeds a byte.

use std::collections::{BTreeMap, HashMap};

/// Counters that only increase.
#[derive(Debug)]
pub(super) enum Counts {
    Bytes(Vec<u8>),
    Words(Vec<u32>),
    /// The counters that are not 0, by index. An index has 32 bits: there are at most 2¹⁶ bots.
    Sparse(HashMap<u32, u32>),
}

/// The counts of pairs in matches of two.
#[derive(Debug)]
pub(super) struct Sides {
    /// Each number of meetings and how many pairs have it, in ascending order.
    pub(super) meetings: Vec<(u32, u64)>,
    /// The maximum difference between how often each bot of a pair has seat 1.
    pub(super) spread: u32,
    /// The number of others that each bot meets.
    pub(super) opponents: Vec<u32>,
}

impl Counts {
    /// The memory of a counter in a hash table, in bytes: an index, a number and a control byte,
    /// in a table that may be only 7/16 full.
    pub(super) const SPARSE_BYTES: usize = 21;

    /// Counters in a hash table with room for `expected` of them.
    pub(super) fn sparse(expected: usize) -> Self {
        Self::Sparse(HashMap::with_capacity(expected))
    }

    pub(super) fn new(len: usize) -> Self {
        Self::Bytes(vec![0; len])
    }

    /// Adds 1 to the counter at `index`.
    pub(super) fn increment(&mut self, index: usize) {
        match self {
            Self::Bytes(numbers) if numbers[index] < u8::MAX => numbers[index] += 1,
            Self::Bytes(numbers) => {
                let mut words: Vec<u32> = numbers.iter().map(|number| (*number).into()).collect();
                words[index] += 1;
                *self = Self::Words(words);
            }
            Self::Words(numbers) => numbers[index] += 1,
            Self::Sparse(numbers) => *numbers.entry(key(index)).or_insert(0) += 1,
        }
    }

    fn get(&self, index: usize) -> u32 {
        match self {
            Self::Bytes(numbers) => numbers[index].into(),
            Self::Words(numbers) => numbers[index],
            Self::Sparse(numbers) => numbers.get(&key(index)).copied().unwrap_or(0),
        }
    }

    /// The histogram of the counters of the selected pairs: each number and how many pairs have it,
    /// in ascending order. `is_selected` gets both bots of a pair.
    pub(super) fn histogram(&self, is_selected: impl Fn(usize, usize) -> bool) -> Vec<(u32, u64)> {
        let pairs = (1..).flat_map(|high| (0..high).map(move |low| (high, low)));
        let all = (0..self.len()).zip(pairs);
        let selected = all.filter(|(_, (high, low))| is_selected(*high, *low));
        histogram(selected.map(|(index, _)| self.get(index)))
    }

    fn len(&self) -> usize {
        match self {
            Self::Bytes(numbers) => numbers.len(),
            Self::Words(numbers) => numbers.len(),
            Self::Sparse(numbers) => numbers.len(),
        }
    }

    /// For a square matrix of counters, with a row for each bot in seat 1: the counts of pairs.
    pub(super) fn sides(&self, width: usize) -> Sides {
        let counts = |(high, low): (usize, usize)| {
            (self.get(high * width + low), self.get(low * width + high))
        };
        let mut opponents = vec![0; width];
        let mut spread = 0;
        let sums = self.pairs_to_count(width).map(|(high, low)| {
            let (first, second) = counts((high, low));
            spread = spread.max(first.abs_diff(second));
            if first + second > 0 {
                opponents[high] += 1;
                opponents[low] += 1;
            }
            first + second
        });
        let mut meetings = histogram(sums);
        let counted: u64 = meetings.iter().map(|(_, pairs)| pairs).sum();
        let pairs = (width * width.saturating_sub(1) / 2) as u64;
        if counted < pairs {
            meetings.insert(0, (0, pairs - counted));
        }
        Sides { meetings, spread, opponents }
    }

    /// The pairs of a square matrix of counters, the larger number first: all pairs, or those that
    /// meet if counters are sparse.
    fn pairs_to_count(&self, width: usize) -> Box<dyn Iterator<Item = (usize, usize)> + '_> {
        let Self::Sparse(numbers) = self else {
            return Box::new((0..width).flat_map(|high| (0..high).map(move |low| (high, low))));
        };
        let pairs = numbers.keys().filter_map(move |index| {
            let first = *index as usize / width;
            let second = *index as usize % width;
            // A pair with counters for both sides counts once.
            let is_counted = first > second || !numbers.contains_key(&key(second * width + first));
            is_counted.then_some((first.max(second), first.min(second)))
        });
        Box::new(pairs)
    }
}

/// The key of a sparse counter.
fn key(index: usize) -> u32 {
    u32::try_from(index).expect("there are at most 2¹⁶ bots")
}

fn histogram(numbers: impl Iterator<Item = u32>) -> Vec<(u32, u64)> {
    // Most neighbours are equal, so the map is updated once for each run of equal numbers.
    let mut histogram = BTreeMap::new();
    let mut run = (0, 0);
    for number in numbers {
        if number != run.0 {
            *histogram.entry(run.0).or_insert(0) += run.1;
            run = (number, 0);
        }
        run.1 += 1;
    }
    *histogram.entry(run.0).or_insert(0) += run.1;
    histogram.into_iter().filter(|(_, count)| *count > 0).collect()
}
