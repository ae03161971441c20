//! Many small counters: one byte each, and four bytes each once one exceeds a byte.

use std::collections::BTreeMap;

/// Counters that only rise.
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
    pub(super) fn raise(&mut self, index: usize) {
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

    /// The histogram of the counters of the pairs that `of` selects: numbers, rising, and how many
    /// pairs have each.
    pub(super) fn histogram(&self, of: impl Fn(usize, usize) -> bool) -> Vec<(u32, u64)> {
        let pairs = (1..).flat_map(|high| (0..high).map(move |low| (high, low)));
        let all = (0..self.len()).zip(pairs);
        let asked = all.filter(|(_, (high, low))| of(*high, *low));
        histogram(asked.map(|(index, _)| self.get(index)))
    }

    fn len(&self) -> usize {
        match self {
            Self::Bytes(numbers) => numbers.len(),
            Self::Words(numbers) => numbers.len(),
        }
    }

    /// For a square matrix of counters: the histogram of the sums of (a, b) and (b, a), and the
    /// greatest difference between the two.
    pub(super) fn sides(&self, width: usize) -> (Vec<(u32, u64)>, u32) {
        let pairs = || (0..width).flat_map(|one| (0..one).map(move |other| (one, other)));
        let of = |(one, other)| (self.get(one * width + other), self.get(other * width + one));
        let sums = histogram(pairs().map(of).map(|(one, other)| one + other));
        let spread = pairs().map(of).map(|(one, other)| one.abs_diff(other)).max();
        (sums, spread.unwrap_or(0))
    }
}

fn histogram(numbers: impl Iterator<Item = u32>) -> Vec<(u32, u64)> {
    // Neighbours are mostly equal, so each run is looked up once.
    let mut found = BTreeMap::new();
    let mut run = (0, 0);
    for number in numbers {
        if number != run.0 {
            *found.entry(run.0).or_insert(0) += run.1;
            run = (number, 0);
        }
        run.1 += 1;
    }
    *found.entry(run.0).or_insert(0) += run.1;
    found.into_iter().filter(|(_, count)| *count > 0).collect()
}
