//! Many small counters: one byte each, or four bytes each after one of them exceeds a byte.

use std::collections::BTreeMap;

/// Counters that only increase.
#[derive(Debug)]
pub(super) enum Counts {
    Bytes(Vec<u8>),
    Words(Vec<u32>),
}

impl Counts {
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
        }
    }

    fn get(&self, index: usize) -> u32 {
        match self {
            Self::Bytes(numbers) => numbers[index].into(),
            Self::Words(numbers) => numbers[index],
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
        }
    }

    /// For a square matrix of counters: the histogram of the sums of the counters (a, b) and (b,
    /// a), and the maximum difference between the two counters.
    pub(super) fn sides(&self, width: usize) -> (Vec<(u32, u64)>, u32) {
        let pairs = || (0..width).flat_map(|high| (0..high).map(move |low| (high, low)));
        let counts = |(high, low)| (self.get(high * width + low), self.get(low * width + high));
        let sums = histogram(pairs().map(counts).map(|(first, second)| first + second));
        let spread = pairs().map(counts).map(|(first, second)| first.abs_diff(second)).max();
        (sums, spread.unwrap_or(0))
    }
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
