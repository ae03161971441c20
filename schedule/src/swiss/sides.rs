//! Matchings of the places of two sides: the first one, if each place of the upper side in turn
//! takes the first partner for which the others can still be matched.
//!
//! A matching is kept all the time: it changes along a path from the new partner's former place to
//! the former partner. Places are grouped by kind, so that a search looks at each about once.

/// No partner.
const NONE: usize = usize::MAX;

/// Which places of two sides of equal size can be matched.
pub(super) trait Graph {
    /// The number of places of each side.
    fn places(&self) -> usize;

    /// Whether a place of the upper side and one of the lower side can be matched.
    fn fits(&self, upper: usize, lower: usize) -> bool;

    /// The number of kinds of places.
    fn kinds(&self) -> usize {
        1
    }

    /// The kind of a place of the upper side.
    fn upper_kind(&self, _upper: usize) -> usize {
        0
    }

    /// The kind of a place of the lower side.
    fn lower_kind(&self, _lower: usize) -> usize {
        0
    }

    /// Whether places of two kinds may be matched, as far as their kinds tell.
    fn kinds_fit(&self, _upper: usize, _lower: usize) -> bool {
        true
    }
}

/// Two sides and a matching of them.
pub(super) struct Sides<G> {
    graph: G,
    /// The lower partner of each place of the upper side, and the upper partner of each lower one.
    mates: Vec<usize>,
    owners: Vec<usize>,
}

impl<G: Graph> Sides<G> {
    /// Without a matching.
    pub(super) fn new(graph: G) -> Self {
        let none = vec![NONE; graph.places()];
        Self { graph, mates: none.clone(), owners: none }
    }

    /// The partner of each place of the upper side.
    pub(super) fn mates(&self) -> &[usize] {
        &self.mates
    }

    /// The places of a side from one on by kind, each list backwards.
    fn lists(&self, from: usize, kind: impl Fn(usize) -> usize) -> Vec<Vec<usize>> {
        let mut lists = vec![Vec::new(); self.graph.kinds()];
        for place in (from..self.mates.len()).rev() {
            lists[kind(place)].push(place);
        }
        lists
    }

    /// Matches all places, if possible.
    pub(super) fn match_all(&mut self) -> Option<()> {
        let mut open: Vec<usize> = (0..self.mates.len()).collect();
        for upper in 0..self.mates.len() {
            if let Some(at) = open.iter().position(|lower| self.graph.fits(upper, *lower)) {
                let lower = open.remove(at);
                self.mates[upper] = lower;
                self.owners[lower] = upper;
            }
        }
        for upper in 0..self.mates.len() {
            if self.mates[upper] == NONE {
                self.augment(upper)?;
            }
        }
        Some(())
    }

    /// Matches a place of the upper side along a path to a free lower player.
    fn augment(&mut self, root: usize) -> Option<()> {
        let mut lists = self.lists(0, |lower| self.graph.lower_kind(lower));
        let mut from = vec![NONE; self.mates.len()];
        let mut queue = vec![root];
        while let Some(upper) = queue.pop() {
            for (kind, list) in lists.iter_mut().enumerate() {
                if !self.graph.kinds_fit(self.graph.upper_kind(upper), kind) {
                    continue;
                }
                let mut left = Vec::new();
                for lower in std::mem::take(list) {
                    if !self.graph.fits(upper, lower) {
                        left.push(lower);
                        continue;
                    }
                    from[lower] = upper;
                    if self.owners[lower] == NONE {
                        self.shift(lower, &from);
                        return Some(());
                    }
                    queue.push(self.owners[lower]);
                }
                *list = left;
            }
        }
        None
    }

    /// Matches along the path that `from` tells, back from a free lower player.
    fn shift(&mut self, last: usize, from: &[usize]) {
        let mut lower = last;
        while lower != NONE {
            let upper = from[lower];
            let next = self.mates[upper];
            self.mates[upper] = lower;
            self.owners[lower] = upper;
            lower = next;
        }
    }

    /// Gives each of the first places of the upper side in turn the first possible partner.
    pub(super) fn order(&mut self, first: usize) -> Option<()> {
        let mut open: Vec<usize> = (0..self.mates.len()).collect();
        for upper in 0..first {
            let mut ways: Option<Vec<usize>> = None;
            let mut found = None;
            for (at, &lower) in open.iter().enumerate() {
                if self.mates[upper] == lower {
                    found = Some(at);
                    break;
                }
                if !self.graph.fits(upper, lower) {
                    continue;
                }
                let owner = self.owners[lower];
                let old = self.mates[upper];
                if self.graph.fits(owner, old) {
                    self.mates[owner] = old;
                    self.owners[old] = owner;
                } else {
                    let ways = ways.get_or_insert_with(|| self.ways(upper));
                    if ways[owner] == NONE {
                        continue;
                    }
                    self.follow(owner, old, ways);
                }
                self.mates[upper] = lower;
                self.owners[lower] = upper;
                found = Some(at);
                break;
            }
            open.remove(found?);
        }
        Some(())
    }

    /// For each place of the upper side after `settled` the lower player that it takes on a way to
    /// free the present partner of `settled`; `NONE` if there is no way.
    fn ways(&self, settled: usize) -> Vec<usize> {
        let mut lists = self.lists(settled + 1, |upper| self.graph.upper_kind(upper));
        let mut ways = vec![NONE; self.mates.len()];
        let mut queue = vec![self.mates[settled]];
        while let Some(lower) = queue.pop() {
            for (kind, list) in lists.iter_mut().enumerate() {
                if !self.graph.kinds_fit(kind, self.graph.lower_kind(lower)) {
                    continue;
                }
                let mut left = Vec::new();
                for upper in std::mem::take(list) {
                    if self.graph.fits(upper, lower) {
                        ways[upper] = lower;
                        queue.push(self.mates[upper]);
                    } else {
                        left.push(upper);
                    }
                }
                *list = left;
            }
        }
        ways
    }

    /// Moves partners along a way, from a place whose partner is taken to the place that takes
    /// `last`.
    fn follow(&mut self, first: usize, last: usize, ways: &[usize]) {
        let mut upper = first;
        loop {
            let lower = ways[upper];
            let next = self.owners[lower];
            self.mates[upper] = lower;
            self.owners[lower] = upper;
            if lower == last {
                return;
            }
            upper = next;
        }
    }
}
