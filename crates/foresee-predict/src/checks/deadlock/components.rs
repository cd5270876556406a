//! The strongly connected components of a graph: whoever is not in one is in no ring.

/// For each node the number of its component. Edges are pairs of nodes.
pub(crate) fn components(nodes: usize, edges: &[(u32, u32)]) -> Vec<u32> {
    // The edges of each node, one behind the other.
    let mut starts = vec![0u32; nodes + 1];
    edges.iter().for_each(|&(from, _)| starts[from as usize + 1] += 1);
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut free = starts.clone();
    let mut targets = vec![0u32; edges.len()];
    for &(from, to) in edges {
        let place = &mut free[from as usize];
        targets[*place as usize] = to;
        *place += 1;
    }
    let mut search = Search {
        starts,
        targets,
        number: vec![0; nodes],
        low: vec![0; nodes],
        component: vec![NONE; nodes],
        open: Vec::new(),
        next: 1,
        components: 0,
    };
    for root in 0..nodes as u32 {
        if search.number[root as usize] == 0 {
            search.from(root);
        }
    }
    search.component
}

const NONE: u32 = u32::MAX;

/// Tarjan's algorithm, with a stack of its own: rings can be long.
struct Search {
    starts: Vec<u32>,
    targets: Vec<u32>,
    /// When each node was reached; zero if it was not.
    number: Vec<u32>,
    low: Vec<u32>,
    component: Vec<u32>,
    open: Vec<u32>,
    next: u32,
    components: u32,
}

impl Search {
    fn from(&mut self, root: u32) {
        let mut path = vec![(root, self.enter(root))];
        while let Some((node, edge)) = path.last_mut() {
            let from = *node as usize;
            if *edge < self.starts[from + 1] {
                let to = self.targets[*edge as usize];
                *edge += 1;
                if self.number[to as usize] == 0 {
                    let first = self.enter(to);
                    path.push((to, first));
                } else if self.component[to as usize] == NONE {
                    self.low[from] = self.low[from].min(self.number[to as usize]);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                let parent = parent as usize;
                self.low[parent] = self.low[parent].min(self.low[from]);
            }
            if self.low[from] == self.number[from] {
                self.close(from as u32);
            }
        }
    }

    fn enter(&mut self, node: u32) -> u32 {
        (self.number[node as usize], self.low[node as usize]) = (self.next, self.next);
        self.next += 1;
        self.open.push(node);
        self.starts[node as usize]
    }

    fn close(&mut self, root: u32) {
        while let Some(node) = self.open.pop() {
            self.component[node as usize] = self.components;
            if node == root {
                break;
            }
        }
        self.components += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes are in one component if each reaches the other.
    fn by_definition(nodes: usize, edges: &[(u32, u32)]) -> Vec<Vec<bool>> {
        let mut reaches = vec![vec![false; nodes]; nodes];
        (0..nodes).for_each(|n| reaches[n][n] = true);
        for _ in 0..nodes {
            for &(from, to) in edges {
                for row in &mut reaches {
                    row[to as usize] |= row[from as usize];
                }
            }
        }
        reaches
    }

    #[test]
    fn components_are_what_reaches_each_other() {
        for seed in 0..500 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let nodes = rng.usize(1..12);
            let mut node = || rng.u32(..nodes as u32);
            let edges: Vec<_> = (0..seed % 20).map(|_| (node(), node())).collect();
            let (found, reaches) = (components(nodes, &edges), by_definition(nodes, &edges));
            for a in 0..nodes {
                for b in 0..nodes {
                    let same = reaches[a][b] && reaches[b][a];
                    assert_eq!(found[a] == found[b], same, "{a} {b} {edges:?}");
                }
            }
        }
        let long: Vec<_> = (0..100_000).map(|n| (n, (n + 1) % 100_000)).collect();
        assert!(components(100_000, &long).iter().all(|&c| c == 0));
    }
}
