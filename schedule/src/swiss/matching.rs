//! Perfect matchings of maximum weight in general graphs, and changes of them.
//!
//! This is Edmonds' primal-dual method with one search tree at a time (Edmonds, "Maximum matching
//! and a polyhedron with 0,1-vertices", 1965), on a full table of weights. Each vertex has a dual,
//! each blossom has a dual that is not negative. The *slack* of an edge is the sum of the duals of
//! its ends and of all blossoms that contain both, minus its weight. It is never negative, and each
//! matched edge has slack 0. So a perfect matching has the maximum weight, and each edge of each
//! matching of maximum weight has slack 0: that answers most questions about other such matchings
//! without a search.
//!
//! All weights are even. The dual of a root is made even too, so all duals stay integers: tight
//! edges join duals of the same parity, so a whole tree has the same parity.

mod blossom;
mod search;

use super::weight::Weight;
use blossom::Blossom;
use search::Label;

/// A vertex of the graph, or a blossom: numbers from the number of vertices on.
type Node = usize;

/// No vertex or node.
const NONE: usize = usize::MAX;

/// An edge with a direction.
#[derive(Clone, Copy, Debug)]
struct Edge {
    from: usize,
    to: usize,
}

impl Edge {
    /// The same edge in the other direction.
    fn reversed(self) -> Self {
        Self { from: self.to, to: self.from }
    }
}

/// The graph has no perfect matching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoMatching;

/// A graph with weights, and its matching.
pub(super) struct Matcher<W> {
    size: usize,
    /// The weight of each edge, row by row.
    weights: Vec<W>,
    /// The vertices that are not settled.
    open: Vec<usize>,
    duals: Vec<W>,
    mates: Vec<usize>,
    /// The outermost blossom of each vertex, or the vertex.
    tops: Vec<Node>,
    /// The next larger blossom of each node.
    parents: Vec<Node>,
    /// The vertex of each node that is matched outside of it.
    bases: Vec<usize>,
    blossoms: Vec<Blossom<W>>,
    unused: Vec<Node>,
    labels: Vec<Label>,
    /// The edge by which the search reached each inner node.
    entries: Vec<Edge>,
    /// For each vertex the outer vertex with the least slack.
    nearest: Vec<usize>,
    queue: Vec<usize>,
}

impl<W: Weight> Matcher<W> {
    /// A graph without a matching. `weight` gives the even weight of each edge once, with the
    /// smaller vertex first.
    pub(super) fn new(size: usize, weight: impl Fn(usize, usize) -> Option<W>) -> Self {
        let mut weights = vec![W::ABSENT; size * size];
        for from in 0..size {
            for to in from + 1..size {
                if let Some(weight) = weight(from, to) {
                    weights[from * size + to] = weight;
                    weights[to * size + from] = weight;
                }
            }
        }
        Self {
            size,
            weights,
            open: (0..size).collect(),
            duals: vec![W::ZERO; size],
            mates: vec![NONE; size],
            tops: (0..size).collect(),
            parents: vec![NONE; size],
            bases: (0..size).collect(),
            blossoms: Vec::new(),
            unused: Vec::new(),
            labels: vec![Label::Free; size],
            entries: vec![Edge { from: NONE, to: NONE }; size],
            nearest: vec![NONE; size],
            queue: Vec::new(),
        }
    }

    /// The mate of a vertex in a perfect matching.
    pub(super) fn mate(&self, vertex: usize) -> usize {
        self.mates[vertex]
    }

    /// The weight of an edge, if it exists.
    pub(super) fn weight(&self, from: usize, to: usize) -> Option<W> {
        Some(self.weights[from * self.size + to]).filter(|weight| *weight != W::ABSENT)
    }

    /// Sets the weight of an edge. Call [`Self::release`] for one of its ends after all changes.
    pub(super) fn set_weight(&mut self, from: usize, to: usize, weight: W) {
        self.weights[from * self.size + to] = weight;
        self.weights[to * self.size + from] = weight;
    }

    /// Whether an edge can be in a matching of maximum weight, as far as its slack tells. The
    /// answer "no" is certain.
    pub(super) fn may_match(&self, from: usize, to: usize) -> bool {
        let weight = self.weights[from * self.size + to];
        let same_blossom = self.tops[from] == self.tops[to];
        weight != W::ABSENT && (same_blossom || self.duals[from].plus(self.duals[to]) == weight)
    }

    /// Gives a first matching of part of the vertices: each takes the first of its best.
    pub(super) fn start(&mut self) {
        for vertex in 0..self.size {
            let row = &self.weights[vertex * self.size..][..self.size];
            let best = row.iter().copied().max().unwrap_or(W::ZERO).max(W::ZERO);
            self.duals[vertex] = best.half();
        }
        for vertex in 0..self.size {
            if self.mates[vertex] == NONE {
                self.lower_dual(vertex);
                let fits = |other: &usize| {
                    self.mates[*other] == NONE && *other != vertex && self.may_match(vertex, *other)
                };
                if let Some(other) = (0..self.size).find(fits) {
                    self.mates[vertex] = other;
                    self.mates[other] = vertex;
                }
            }
        }
    }

    /// Sets the dual of a vertex outside of blossoms to the least that is allowed.
    fn lower_dual(&mut self, vertex: usize) {
        let row = &self.weights[vertex * self.size..][..self.size];
        let edges = self.open.iter().filter(|other| row[**other] != W::ABSENT);
        let least = edges.map(|&other| row[other].minus(self.duals[other])).max();
        if let Some(least) = least {
            self.duals[vertex] = least;
        }
    }

    /// Completes the matching.
    ///
    /// # Errors
    /// If the graph has no perfect matching.
    pub(super) fn solve(&mut self) -> Result<(), NoMatching> {
        for index in 0..self.open.len() {
            let vertex = self.open[index];
            if self.mates[vertex] == NONE {
                self.search(vertex)?;
            }
        }
        Ok(())
    }

    /// Removes a vertex from its blossoms and from the matching, after its weights have changed.
    pub(super) fn release(&mut self, vertex: usize) {
        self.dissolve(vertex);
        let mate = self.mates[vertex];
        if mate != NONE {
            self.mates[vertex] = NONE;
            self.mates[mate] = NONE;
        }
        self.lower_dual(vertex);
    }

    /// Replaces two matched edges by `first`–`second` and the edge of their mates, if that keeps
    /// the weight. All four must be outside of blossoms.
    pub(super) fn swap(&mut self, first: usize, second: usize) -> bool {
        let first_mate = self.mates[first];
        let second_mate = self.mates[second];
        let ends = [first, second, first_mate, second_mate];
        let simple = ends.into_iter().all(|end| self.tops[end] == end);
        if !(simple && self.may_match(first, second) && self.may_match(first_mate, second_mate)) {
            return false;
        }
        self.mates[first] = second;
        self.mates[second] = first;
        self.mates[first_mate] = second_mate;
        self.mates[second_mate] = first_mate;
        true
    }

    /// Whether [`Self::may_match`] holds for one of some vertices.
    pub(super) fn may_match_any(&self, vertex: usize, others: impl Fn(usize) -> bool) -> bool {
        self.open.iter().any(|&other| others(other) && self.may_match(vertex, other))
    }

    /// Removes all edges of a vertex but some. Its matched edge must stay.
    ///
    /// # Errors
    /// If the graph then has no perfect matching.
    pub(super) fn restrict(
        &mut self,
        vertex: usize,
        stays: impl Fn(usize) -> bool,
    ) -> Result<(), NoMatching> {
        self.dissolve(vertex);
        for index in 0..self.open.len() {
            let other = self.open[index];
            if !stays(other) {
                self.set_weight(vertex, other, W::ABSENT);
            }
        }
        self.solve()
    }

    /// Settles the matched edge of a vertex for good: both ends leave the graph.
    ///
    /// # Errors
    /// If the others have no perfect matching. They have one as long as the matching is perfect.
    pub(super) fn settle(&mut self, vertex: usize) -> Result<(), NoMatching> {
        let mate = self.mates[vertex];
        self.dissolve(vertex);
        self.dissolve(mate);
        for end in [vertex, mate] {
            let other = self.mates[end];
            if other != NONE {
                self.mates[other] = NONE;
            }
        }
        self.mates[vertex] = mate;
        self.mates[mate] = vertex;
        self.open.retain(|other| *other != vertex && *other != mate);
        self.solve()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix;

    /// The most weight of a perfect matching of the vertices that are not used, by trying all.
    fn best(
        size: usize,
        used: u32,
        weight: &impl Fn(usize, usize) -> Option<i128>,
    ) -> Option<i128> {
        let Some(first) = (0..size).find(|vertex| used >> vertex & 1 == 0) else { return Some(0) };
        let others = (first + 1..size).filter(|vertex| used >> vertex & 1 == 0);
        let totals = others.filter_map(|other| {
            Some(weight(first, other)? + best(size, used | 1 << first | 1 << other, weight)?)
        });
        totals.max()
    }

    /// A random graph: some edges are missing, many weights are equal.
    fn random(seed: u64, kinds: u64) -> impl Fn(usize, usize) -> Option<i128> {
        move |from, to| {
            let number = mix([seed, from as u64, to as u64]);
            (number % 8 < 5).then(|| i128::from(number / 8 % kinds) * 2)
        }
    }

    /// The weight of the matching of a matcher.
    fn total(matcher: &Matcher<i128>) -> i128 {
        let pairs = (0..matcher.size).filter(|vertex| *vertex < matcher.mate(*vertex));
        pairs.map(|vertex| matcher.weight(vertex, matcher.mate(vertex)).unwrap()).sum()
    }

    #[test]
    fn matchings_have_the_most_weight() {
        for seed in 0..3000 {
            let size = 2 + 2 * usize::try_from(seed % 5).unwrap();
            let weight = random(seed, 1 + seed % 7);
            let mut matcher = Matcher::new(size, &weight);
            matcher.start();
            let solved = matcher.solve().ok().map(|()| total(&matcher));
            assert_eq!(solved, best(size, 0, &weight), "graph {seed}");
        }
    }

    #[test]
    fn matchings_have_the_most_weight_after_changes() {
        for seed in 0..2000 {
            let size = 10;
            let before = random(seed, 5);
            let mut matcher = Matcher::new(size, &before);
            matcher.start();
            if matcher.solve().is_err() {
                continue;
            }
            let changed = usize::try_from(seed).unwrap() % size;
            let added = |other: usize| i128::from(mix([seed, other as u64]) % 4) * 2;
            let after = |from: usize, to: usize| {
                let other = if from == changed { Some(to) } else { None };
                let other = if to == changed { Some(from) } else { other };
                before(from, to).map(|weight| weight + other.map_or(0, added))
            };
            for other in 0..size {
                if let Some(weight) = matcher.weight(changed, other) {
                    matcher.set_weight(changed, other, weight + added(other));
                }
            }
            matcher.release(changed);
            matcher.solve().unwrap();
            assert_eq!(Some(total(&matcher)), best(size, 0, &after), "graph {seed}");
            let settled = (changed + 3) % size;
            let mate = matcher.mate(settled);
            matcher.settle(settled).unwrap();
            assert_eq!(matcher.mate(settled), mate);
            assert_eq!(Some(total(&matcher)), best(size, 0, &after), "graph {seed}");
        }
    }

    #[test]
    fn an_edge_of_a_best_matching_is_never_ruled_out() {
        for seed in 0..1000 {
            let size = 8;
            let weight = random(seed, 4);
            let mut matcher = Matcher::new(size, &weight);
            matcher.start();
            if matcher.solve().is_err() {
                continue;
            }
            let most = best(size, 0, &weight);
            for from in 0..size {
                for to in from + 1..size {
                    let rest = best(size, 1 << from | 1 << to, &weight);
                    let with = weight(from, to).zip(rest).map(|(edge, rest)| edge + rest);
                    let in_best = with.is_some() && with == most;
                    assert!(matcher.may_match(from, to) || !in_best, "graph {seed}: {from}-{to}");
                }
            }
        }
    }
}
