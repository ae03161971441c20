//! The search for an augmenting path from one vertex.

use super::super::weight::Weight;
use super::{Edge, Matcher, NONE, NoMatching, Node};

/// What an outermost node is in the search tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// It is not in the tree.
    Free,
    /// An even number of edges leads to the root.
    Outer,
    /// An odd number of edges leads to the root.
    Inner,
}

/// What the next change of the duals makes possible.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The edge from an outer vertex to another vertex becomes tight.
    Tight(Edge),
    /// The dual of an inner blossom becomes 0.
    Expand(Node),
}

impl<W: Weight> Matcher<W> {
    /// Matches a vertex, and changes other matched edges as far as necessary.
    ///
    /// # Errors
    /// If no matching covers it and all vertices that are matched.
    pub(super) fn search(&mut self, root: usize) -> Result<(), NoMatching> {
        self.dissolve(root);
        self.labels.fill(Label::Free);
        self.nearest.fill(NONE);
        self.queue.clear();
        if self.duals[root].is_odd() {
            self.duals[root] = self.duals[root].plus(W::ZERO.append(0, 1));
        }
        self.make_outer(root);
        loop {
            while let Some(vertex) = self.queue.pop() {
                if self.scan(vertex) {
                    return Ok(());
                }
            }
            let (change, event) = self.next_event().ok_or(NoMatching)?;
            self.change_duals(change);
            match event {
                Event::Tight(edge) => {
                    if self.follow(edge) {
                        return Ok(());
                    }
                }
                Event::Expand(node) => self.expand(node),
            }
        }
    }

    /// The sum of the duals of two vertices, minus the weight of their edge.
    fn slack(&self, from: usize, to: usize) -> W {
        self.duals[from].plus(self.duals[to]).minus(self.weights[from * self.size + to])
    }

    /// Makes a node outer. Its vertices will be scanned.
    fn make_outer(&mut self, node: Node) {
        self.labels[node] = Label::Outer;
        for vertex in self.vertices(node) {
            self.nearest[vertex] = NONE;
            self.queue.push(vertex);
        }
    }

    /// Looks at all edges of an outer vertex. Returns whether the matching has been augmented.
    fn scan(&mut self, from: usize) -> bool {
        for index in 0..self.open.len() {
            let to = self.open[index];
            if self.weights[from * self.size + to] == W::ABSENT || self.tops[from] == self.tops[to]
            {
                continue;
            }
            let slack = self.slack(from, to);
            let label = self.labels[self.tops[to]];
            if slack == W::ZERO && label != Label::Inner {
                if self.follow(Edge { from, to }) {
                    return true;
                }
                continue;
            }
            if self.nearest[to] == NONE || slack < self.slack(self.nearest[to], to) {
                self.nearest[to] = from;
            }
            let mine = self.nearest[from];
            if label == Label::Outer
                && (mine == NONE
                    || self.tops[mine] == self.tops[from]
                    || slack < self.slack(mine, from))
            {
                self.nearest[from] = to;
            }
        }
        false
    }

    /// Uses a tight edge from an outer vertex. Returns whether the matching has been augmented.
    fn follow(&mut self, edge: Edge) -> bool {
        let node = self.tops[edge.to];
        if self.labels[node] == Label::Outer {
            self.shrink(edge);
            return false;
        }
        let mate = self.mates[self.bases[node]];
        if mate == NONE {
            self.augment(edge);
            return true;
        }
        self.labels[node] = Label::Inner;
        self.entries[node] = edge;
        self.make_outer(self.tops[mate]);
        false
    }

    /// The least change of the duals that makes something possible.
    fn next_event(&mut self) -> Option<(W, Event)> {
        let mut best: Option<(W, Event)> = None;
        for index in 0..self.open.len() {
            let vertex = self.open[index];
            let node = self.tops[vertex];
            let label = self.labels[node];
            let candidate = match label {
                Label::Inner if self.is_blossom(node) => {
                    Some((self.blossoms[node - self.size].half_dual, Event::Expand(node)))
                }
                Label::Inner => None,
                Label::Free | Label::Outer => {
                    let near = self.nearest_outside(vertex);
                    (near != NONE).then(|| {
                        let slack = self.slack(near, vertex);
                        let change = if label == Label::Outer { slack.half() } else { slack };
                        (change, Event::Tight(Edge { from: near, to: vertex }))
                    })
                }
            };
            if let Some((change, event)) = candidate
                && best.is_none_or(|(least, _)| change < least)
            {
                best = Some((change, event));
            }
        }
        best
    }

    /// The outer vertex with the least slack to a vertex, in another node.
    fn nearest_outside(&mut self, vertex: usize) -> usize {
        let node = self.tops[vertex];
        let near = self.nearest[vertex];
        if near != NONE && self.tops[near] == node {
            let outside = |other: &&usize| {
                let top = self.tops[**other];
                top != node
                    && self.labels[top] == Label::Outer
                    && self.weights[vertex * self.size + **other] != W::ABSENT
            };
            let others = self.open.iter().filter(outside);
            let nearest = others.min_by_key(|other| self.slack(vertex, **other));
            self.nearest[vertex] = nearest.copied().unwrap_or(NONE);
        }
        self.nearest[vertex]
    }

    /// Lowers the duals of outer vertices, raises those of inner vertices, and changes those of
    /// their blossoms so that all edges inside keep their slack.
    fn change_duals(&mut self, change: W) {
        if change == W::ZERO {
            return;
        }
        for &vertex in &self.open {
            match self.labels[self.tops[vertex]] {
                Label::Outer => self.duals[vertex] = self.duals[vertex].minus(change),
                Label::Inner => self.duals[vertex] = self.duals[vertex].plus(change),
                Label::Free => {}
            }
        }
        for (index, blossom) in self.blossoms.iter_mut().enumerate() {
            let node = self.size + index;
            if blossom.children.is_empty() || self.parents[node] != NONE {
                continue;
            }
            match self.labels[node] {
                Label::Outer => blossom.half_dual = blossom.half_dual.plus(change),
                Label::Inner => blossom.half_dual = blossom.half_dual.minus(change),
                Label::Free => {}
            }
        }
    }

    /// The outer nodes from an outer node to the root.
    fn outer_path(&self, mut node: Node) -> Vec<Node> {
        let mut path = vec![node];
        loop {
            let mate = self.mates[self.bases[node]];
            if mate == NONE {
                return path;
            }
            node = self.tops[self.entries[self.tops[mate]].from];
            path.push(node);
        }
    }

    /// The nodes and edges from an outer node up to an outer node above it. The last edge leads
    /// into `end`; `end` is not among the nodes.
    fn climb(&self, start: Node, end: Node) -> (Vec<Node>, Vec<Edge>) {
        let mut nodes = Vec::new();
        let mut edges = Vec::new();
        let mut node = start;
        while node != end {
            let base = self.bases[node];
            let mate = self.mates[base];
            let inner = self.tops[mate];
            let entry = self.entries[inner].reversed();
            nodes.extend([node, inner]);
            edges.extend([Edge { from: base, to: mate }, entry]);
            node = self.tops[entry.to];
        }
        (nodes, edges)
    }

    /// Makes a blossom of the cycle that a tight edge between two outer nodes closes.
    fn shrink(&mut self, edge: Edge) {
        let first_path = self.outer_path(self.tops[edge.from]);
        let second_path = self.outer_path(self.tops[edge.to]);
        let above = first_path.iter().rev().zip(second_path.iter().rev());
        let shared = above.take_while(|(a, b)| a == b).last();
        let apex = *shared.expect("both paths end at the root").0;
        let (mut children, mut links) = self.climb(self.tops[edge.from], apex);
        children.push(apex);
        children.reverse();
        links.reverse();
        for link in &mut links {
            *link = link.reversed();
        }
        links.push(edge);
        let (nodes, edges) = self.climb(self.tops[edge.to], apex);
        children.extend(nodes);
        links.extend(edges);
        let inner = children.iter().filter(|child| self.labels[**child] == Label::Inner);
        let turned: Vec<usize> = inner.flat_map(|child| self.vertices(*child)).collect();
        let node = self.add_blossom(children, links);
        self.labels[node] = Label::Outer;
        for vertex in turned {
            self.nearest[vertex] = NONE;
            self.queue.push(vertex);
        }
    }

    /// Replaces an inner blossom by those of its children that the tree needs.
    fn expand(&mut self, node: Node) {
        let entry = self.entries[node];
        let at = self.position(node, entry.to);
        let blossom = self.remove_blossom(node);
        let length = blossom.children.len();
        let forward = at % 2 == 1;
        let mut position = at;
        let mut into = entry;
        loop {
            let child = blossom.children[position];
            self.labels[child] = Label::Inner;
            self.entries[child] = into;
            if position == 0 {
                return;
            }
            let outer = if forward { position + 1 } else { position - 1 };
            let next = if forward { (outer + 1) % length } else { outer - 1 };
            self.make_outer(blossom.children[outer]);
            into = if forward { blossom.links[outer] } else { blossom.links[next].reversed() };
            position = next;
        }
    }

    /// Matches along the path from the root to the end of an edge that leads to a free node.
    fn augment(&mut self, last: Edge) {
        self.rebase(self.tops[last.to], last.to);
        self.mates[last.to] = last.from;
        let mut edge = last;
        loop {
            let outer = self.tops[edge.from];
            let mate = self.mates[self.bases[outer]];
            self.rebase(outer, edge.from);
            self.mates[edge.from] = edge.to;
            if mate == NONE {
                return;
            }
            let inner = self.tops[mate];
            let entry = self.entries[inner];
            self.rebase(inner, entry.to);
            self.mates[entry.to] = entry.from;
            edge = entry;
        }
    }
}
