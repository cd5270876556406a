//! The strongly connected components of a graph: what is not in one with others is on no cycle.

/// For each node the number of its component, given the nodes that each node leads to. A component has a greater
/// number than those it leads to.
pub fn components<'e>(nodes: usize, successors: impl Fn(u32) -> &'e [u32]) -> Vec<u32> {
    let mut search = Search {
        successors,
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

/// The same for edges that are pairs of nodes, in any order.
pub fn components_of_pairs(nodes: usize, edges: &[(u32, u32)]) -> Vec<u32> {
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
    components(nodes, |node| {
        &targets[starts[node as usize] as usize..starts[node as usize + 1] as usize]
    })
}

/// The nodes of each component, given the number of each node's component.
pub fn members(component: &[u32]) -> Vec<Vec<u32>> {
    let count = component.iter().max().map_or(0, |&last| last as usize + 1);
    let mut members = vec![Vec::new(); count];
    for (node, &component) in component.iter().enumerate() {
        members[component as usize].push(node as u32);
    }
    members
}

const NONE: u32 = u32::MAX;

/// Tarjan's algorithm (1972), with a stack of its own: cycles can be long.
struct Search<F> {
    successors: F,
    /// When each node was reached; zero if it was not.
    number: Vec<u32>,
    low: Vec<u32>,
    component: Vec<u32>,
    open: Vec<u32>,
    next: u32,
    components: u32,
}

impl<'e, F: Fn(u32) -> &'e [u32]> Search<F> {
    fn from(&mut self, root: u32) {
        let mut path = vec![(root, self.enter(root))];
        while let Some((node, edges)) = path.last_mut() {
            let from = *node as usize;
            if let Some((&to, rest)) = edges.split_first() {
                *edges = rest;
                if self.number[to as usize] == 0 {
                    path.push((to, self.enter(to)));
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

    fn enter(&mut self, node: u32) -> &'e [u32] {
        (self.number[node as usize], self.low[node as usize]) = (self.next, self.next);
        self.next += 1;
        self.open.push(node);
        (self.successors)(node)
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
            let (found, reaches) =
                (components_of_pairs(nodes, &edges), by_definition(nodes, &edges));
            for (number, nodes) in members(&found).iter().enumerate() {
                assert!(!nodes.is_empty() && nodes.is_sorted());
                assert!(nodes.iter().all(|&node| found[node as usize] == number as u32));
            }
            assert_eq!(members(&found).iter().map(Vec::len).sum::<usize>(), nodes);
            for a in 0..nodes {
                for b in 0..nodes {
                    let same = reaches[a][b] && reaches[b][a];
                    assert_eq!(found[a] == found[b], same, "{a} {b} {edges:?}");
                    assert!(!reaches[a][b] || found[a] >= found[b], "{a} {b} {edges:?}");
                }
            }
        }
        let long: Vec<_> = (0..100_000).map(|n| (n, (n + 1) % 100_000)).collect();
        assert!(components_of_pairs(100_000, &long).iter().all(|&c| c == 0));
    }
}
