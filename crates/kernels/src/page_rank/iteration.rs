//! [`Iteration`]: page rank on the host, around products that host or drives compute.
//!
//! Follows networkx: ranks begin equal, and the rank of nodes without outgoing edges is shared by
//! all nodes. It ends when the L1 distance of two steps is below the tolerance, as in the GAP
//! benchmark; networkx's is below n times its `tol`, so `tol * n` stops at the same step. Sums are
//! f64, pairwise in an order that the length alone fixes, so ranks do not depend on the place where
//! products were computed. The product itself is not computed here.

/// Options of a user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Share of a rank that follows edges, from 0 to 1.
    pub damping: f64,
    /// The iteration stops when the changes of all ranks sum to less than this.
    pub tolerance: f64,
    /// Most steps.
    pub iterations_max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { damping: 0.85, tolerance: 1e-4, iterations_max: 100 }
    }
}

/// Error: an option is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongOption(pub &'static str);

/// State of an iteration after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Another step is needed.
    Again,
    /// The ranks have settled.
    Converged,
    /// They have not, and no steps are left.
    Exhausted,
}

/// Iteration in progress.
#[derive(Clone, Debug)]
pub struct Iteration {
    options: Options,
    out_degrees: Vec<u32>,
    ranks: Vec<f64>,
    iterations: u32,
    distance: f64,
}

impl Iteration {
    /// Starts an iteration over nodes with these numbers of outgoing edges.
    ///
    /// # Errors
    /// [`WrongOption`].
    #[allow(clippy::cast_precision_loss)] // a graph has fewer nodes than f64 has whole numbers
    pub fn new(out_degrees: Vec<u32>, options: Options) -> Result<Self, WrongOption> {
        if !(0.0..=1.0).contains(&options.damping) {
            return Err(WrongOption("the damping is from 0 to 1"));
        }
        if !(options.tolerance >= 0.0 && options.tolerance.is_finite()) {
            return Err(WrongOption("the tolerance is 0 or more"));
        }
        let ranks = vec![1.0 / out_degrees.len() as f64; out_degrees.len()];
        Ok(Self { options, out_degrees, ranks, iterations: 0, distance: f64::INFINITY })
    }

    /// Returns the vector of the next product: the rank that a node passes on along each of its
    /// edges. It goes to every drive, so its bytes count as bytes that crossed.
    #[must_use]
    pub fn contributions(&self) -> Vec<f64> {
        let each = self.ranks.iter().zip(&self.out_degrees);
        each.map(|(rank, degree)| if *degree == 0 { 0.0 } else { rank / f64::from(*degree) })
            .collect()
    }

    /// Takes the product of all rows, in order, as the next step.
    ///
    /// # Panics
    /// When there are not as many sums as nodes.
    #[allow(clippy::cast_precision_loss)] // a graph has fewer nodes than f64 has whole numbers
    pub fn advance(&mut self, sums: &[f64]) -> Progress {
        assert_eq!(sums.len(), self.ranks.len(), "a sum for each node");
        let nodes = self.ranks.len() as f64;
        let damping = self.options.damping;
        let each = self.ranks.iter().zip(&self.out_degrees);
        let dangling: Vec<f64> =
            each.filter(|(_, degree)| **degree == 0).map(|(rank, _)| *rank).collect();
        let even = sum(&dangling) / nodes;
        let base = (1.0 - damping) / nodes;
        let mut distances = Vec::with_capacity(sums.len());
        for (rank, sum) in self.ranks.iter_mut().zip(sums) {
            let next = damping * (sum + even) + base;
            distances.push((next - *rank).abs());
            *rank = next;
        }
        self.iterations += 1;
        self.distance = sum(&distances);
        if self.ranks.is_empty() || self.distance < self.options.tolerance {
            Progress::Converged
        } else if self.iterations >= self.options.iterations_max {
            Progress::Exhausted
        } else {
            Progress::Again
        }
    }

    /// Returns the current ranks; they sum to 1.
    #[must_use]
    pub fn ranks(&self) -> &[f64] {
        &self.ranks
    }

    /// Returns the number of steps made.
    #[must_use]
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// Returns the L1 distance of the last two steps' ranks.
    #[must_use]
    pub fn distance(&self) -> f64 {
        self.distance
    }
}

/// Sums pairwise: halves of an array down to short ones, which are summed in 8 lanes.
pub(super) fn sum(values: &[f64]) -> f64 {
    const SHORT: usize = 256;
    if values.len() > SHORT {
        let (low, high) = values.split_at(values.len() / 2);
        return sum(low) + sum(high);
    }
    let mut lanes = [0.0; super::LANES_SPARSE];
    for (index, value) in values.iter().enumerate() {
        lanes[index % super::LANES_SPARSE] += value;
    }
    super::fold_sparse(lanes)
}

#[cfg(test)]
mod tests {
    use super::super::{Graph, scalar};
    use super::*;

    fn run(nodes: u32, edges: &[[u32; 2]], options: Options) -> (Iteration, Progress) {
        let graph = Graph::from_edges(nodes, edges).unwrap();
        let mut iteration = Iteration::new(graph.out_degrees().to_vec(), options).unwrap();
        loop {
            let sums = scalar::sparse(graph.rows(), &iteration.contributions()).unwrap();
            let progress = iteration.advance(&sums);
            if progress != Progress::Again {
                return (iteration, progress);
            }
        }
    }

    #[test]
    fn a_star_has_the_ranks_of_its_closed_form() {
        // Node 0 is named by three others and names none: r1 = b + d r0 / 4, r0 = r1 + 3 d r1.
        let options = Options { tolerance: 1e-15, iterations_max: 1000, ..Options::default() };
        let (iteration, progress) = run(4, &[[1, 0], [2, 0], [3, 0]], options);
        assert_eq!(progress, Progress::Converged);
        let leaf = 1.0 / (3.0 + 1.0 + 3.0 * 0.85);
        for (node, expected) in [(0, 1.0 - 3.0 * leaf), (1, leaf), (3, leaf)] {
            assert!((iteration.ranks()[node] - expected).abs() < 1e-12, "node {node}");
        }
    }

    #[test]
    fn empty_graphs_and_graphs_without_edges_converge_at_once() {
        let (iteration, progress) = run(0, &[], Options::default());
        assert_eq!((iteration.ranks().len(), progress), (0, Progress::Converged));
        let (iteration, progress) = run(5, &[], Options::default());
        assert_eq!((iteration.iterations(), progress), (1, Progress::Converged));
        assert!(iteration.ranks().iter().all(|rank| (rank - 0.2).abs() < 1e-15));
    }

    #[test]
    fn steps_are_bounded_and_options_checked() {
        let options = Options { tolerance: 0.0, iterations_max: 3, ..Options::default() };
        let (iteration, progress) = run(3, &[[0, 1], [1, 2]], options);
        assert_eq!((iteration.iterations(), progress), (3, Progress::Exhausted));
        for damping in [-0.1, 1.1, f64::NAN] {
            assert!(Iteration::new(vec![], Options { damping, ..options }).is_err());
        }
        assert!(Iteration::new(vec![], Options { tolerance: f64::NAN, ..options }).is_err());
    }
}
