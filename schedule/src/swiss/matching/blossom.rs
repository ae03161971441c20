//! Blossoms: odd cycles of nodes in which every node but one is matched to a neighbour.

use super::super::weight::Weight;
use super::search::Label;
use super::{Edge, Matcher, NONE, Node};

/// A blossom.
#[derive(Debug)]
pub(super) struct Blossom<W> {
    /// The nodes of the cycle. The first contains the base.
    pub(super) children: Vec<Node>,
    /// The edge from each child to the next. Those from odd positions are matched.
    pub(super) links: Vec<Edge>,
    /// Half of its dual.
    pub(super) half_dual: W,
}

impl<W: Weight> Matcher<W> {
    /// All vertices of a node.
    pub(super) fn vertices(&self, node: Node) -> Vec<usize> {
        let mut found = Vec::new();
        let mut nodes = vec![node];
        while let Some(node) = nodes.pop() {
            if node < self.size {
                found.push(node);
            } else {
                nodes.extend(self.blossoms[node - self.size].children.iter().rev());
            }
        }
        found
    }

    /// Whether a node is a blossom.
    pub(super) fn is_blossom(&self, node: Node) -> bool {
        node >= self.size
    }

    /// Makes a blossom. Returns its node.
    pub(super) fn add_blossom(&mut self, children: Vec<Node>, links: Vec<Edge>) -> Node {
        let base = self.bases[children[0]];
        let blossom = Blossom { children, links, half_dual: W::ZERO };
        let node = if let Some(node) = self.unused.pop() {
            self.blossoms[node - self.size] = blossom;
            node
        } else {
            self.blossoms.push(blossom);
            self.parents.push(NONE);
            self.bases.push(NONE);
            self.labels.push(Label::Free);
            self.entries.push(Edge { from: NONE, to: NONE });
            self.bases.len() - 1
        };
        self.bases[node] = base;
        self.parents[node] = NONE;
        for index in 0..self.blossoms[node - self.size].children.len() {
            let child = self.blossoms[node - self.size].children[index];
            self.parents[child] = node;
        }
        for vertex in self.vertices(node) {
            self.tops[vertex] = node;
        }
        node
    }

    /// Removes an outermost blossom. Its children become outermost. Returns what it was.
    pub(super) fn remove_blossom(&mut self, node: Node) -> Blossom<W> {
        let empty = Blossom { children: Vec::new(), links: Vec::new(), half_dual: W::ZERO };
        let blossom = std::mem::replace(&mut self.blossoms[node - self.size], empty);
        for &child in &blossom.children {
            self.parents[child] = NONE;
            self.labels[child] = Label::Free;
            for vertex in self.vertices(child) {
                self.tops[vertex] = child;
            }
        }
        self.labels[node] = Label::Free;
        self.unused.push(node);
        blossom
    }

    /// The position of the child that contains a vertex.
    pub(super) fn position(&self, node: Node, vertex: usize) -> usize {
        let mut child = vertex;
        while self.parents[child] != node {
            child = self.parents[child];
        }
        let children = &self.blossoms[node - self.size].children;
        children.iter().position(|other| *other == child).expect("it is a child of this blossom")
    }

    /// Makes a vertex the base of a node: the others are matched inside.
    pub(super) fn rebase(&mut self, node: Node, vertex: usize) {
        if !self.is_blossom(node) || self.bases[node] == vertex {
            return;
        }
        let at = self.position(node, vertex);
        let length = self.blossoms[node - self.size].children.len();
        let child = self.blossoms[node - self.size].children[at];
        self.rebase(child, vertex);
        // The other children are matched in pairs around the cycle, from the next one on.
        for step in (1..length).step_by(2) {
            let first = (at + step) % length;
            let second = (first + 1) % length;
            let blossom = &self.blossoms[node - self.size];
            let link = blossom.links[first];
            let from_child = blossom.children[first];
            let to_child = blossom.children[second];
            self.rebase(from_child, link.from);
            self.rebase(to_child, link.to);
            self.mates[link.from] = link.to;
            self.mates[link.to] = link.from;
        }
        let blossom = &mut self.blossoms[node - self.size];
        blossom.children.rotate_left(at);
        blossom.links.rotate_left(at);
        self.bases[node] = vertex;
    }

    /// Removes all blossoms that contain a vertex. Their duals go to their vertices, so a matched
    /// edge that leaves such a blossom may no longer be tight. It is then no longer matched.
    pub(super) fn dissolve(&mut self, vertex: usize) {
        while self.is_blossom(self.tops[vertex]) {
            let node = self.tops[vertex];
            let base = self.bases[node];
            let members = self.vertices(node);
            let blossom = self.remove_blossom(node);
            if blossom.half_dual == W::ZERO {
                continue;
            }
            for member in members {
                self.duals[member] = self.duals[member].plus(blossom.half_dual);
            }
            let mate = self.mates[base];
            if mate != NONE {
                self.mates[base] = NONE;
                self.mates[mate] = NONE;
            }
        }
    }
}
