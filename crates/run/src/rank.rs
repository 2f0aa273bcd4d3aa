//! Page rank with matrix products by drives or the host: computes the vector of each step, and the
//! next ranks.
//!
//! Invariant: ranks do not depend on the side that computed a product.

use std::collections::VecDeque;
use std::rc::Rc;

use csd_kernels::page_rank::{self, Form, Iteration, Options, Progress, advance_dense};
use csd_store::object::read_chunk;

use crate::context::StepContext;
use crate::error::Error;
use crate::job::Job;
use crate::outcome::Ranks;

/// Page rank in progress.
pub(crate) struct Ranking {
    options: Options,
    state: State,
}

enum State {
    Dense { ranks: Vec<f32>, iterations: u32, distance: f64 },
    Sparse(Iteration),
}

/// Returns the parameters of a page rank job; `None` if it is another job.
fn parameters(job: &Job) -> Option<page_rank::Parameters> {
    job.has_row_sums().then(|| page_rank::Parameters::parse(&job.plan.parameters).ok())?
}

impl Ranking {
    /// Returns the state before the first step; for a graph, reads the numbers of outgoing edges.
    pub(crate) async fn begin(context: &Rc<StepContext>, options: Options) -> Result<Self, Error> {
        let wrong =
            |wrong: page_rank::WrongOption| Error::InvalidJob(crate::InvalidJob(wrong.to_string()));
        let parameters = parameters(context.job()).expect("a job of page rank");
        // Created for a dense matrix, too, because this checks the options.
        let degrees = match parameters.form {
            Form::Dense => Vec::new(),
            Form::Sparse => degrees(context, parameters.columns).await?,
        };
        let iteration = Iteration::new(degrees, options).map_err(wrong)?;
        let state = match parameters.form {
            Form::Sparse => State::Sparse(iteration),
            Form::Dense => {
                let nodes = usize::try_from(parameters.columns).expect("a vector in memory");
                #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
                let even = (1.0 / nodes as f64) as f32;
                State::Dense { ranks: vec![even; nodes], iterations: 0, distance: f64::INFINITY }
            }
        };
        Ok(Self { options, state })
    }

    /// Returns the vector of the next product, little-endian.
    pub(crate) fn vector(&self) -> Vec<u8> {
        match &self.state {
            State::Dense { ranks, .. } => {
                ranks.iter().flat_map(|rank| rank.to_le_bytes()).collect()
            }
            State::Sparse(iteration) => {
                iteration.contributions().iter().flat_map(|value| value.to_le_bytes()).collect()
            }
        }
    }

    /// Adds the sums of all parts; returns the progress, which says if another step is needed.
    pub(crate) fn advance(&mut self, mut parts: Vec<(usize, Vec<u8>)>) -> Progress {
        parts.sort_by_key(|(part, _)| *part);
        let bytes: Vec<u8> = parts.into_iter().flat_map(|(_, sums)| sums).collect();
        match &mut self.state {
            State::Sparse(iteration) => {
                let sums: Vec<f64> =
                    bytes.as_chunks().0.iter().map(|sum| f64::from_le_bytes(*sum)).collect();
                iteration.advance(&sums)
            }
            State::Dense { ranks, iterations, distance } => {
                let sums: Vec<f32> =
                    bytes.as_chunks().0.iter().map(|sum| f32::from_le_bytes(*sum)).collect();
                *distance = advance_dense(ranks, &sums, self.options.damping);
                *iterations += 1;
                let settled = *distance < self.options.tolerance;
                match *iterations >= self.options.iterations_max {
                    _ if settled => Progress::Converged,
                    true => Progress::Exhausted,
                    false => Progress::Again,
                }
            }
        }
    }

    /// Returns the current ranks.
    pub(crate) fn ranks(&self, progress: Progress) -> Ranks {
        let (ranks, dense, iterations, distance) = match &self.state {
            State::Dense { ranks, iterations, distance } => {
                let ranks = ranks.iter().map(|rank| f64::from(*rank)).collect();
                (ranks, true, *iterations, *distance)
            }
            State::Sparse(it) => (it.ranks().to_vec(), false, it.iterations(), it.distance()),
        };
        let converged = progress == Progress::Converged;
        Ranks { ranks, dense, iterations, distance, converged }
    }
}

/// Reads the numbers of outgoing edges, the last part of a graph.
async fn degrees(context: &Rc<StepContext>, nodes: u64) -> Result<Vec<u32>, Error> {
    let entry = &context.job().inputs[0];
    let layout = entry.layout();
    let parts = context.job().parts(0);
    let (last, mut bytes) = (parts.parts().len() - 1, Vec::new());
    let mut chunks: VecDeque<u32> = parts.part_chunks(last).collect();
    while let Some(chunk) = chunks.pop_front() {
        let member = layout.member(chunk);
        let link = &context.common.links[member];
        let read = link.run(async |drive| read_chunk(drive, entry, chunk).await).await;
        let read = context.common.or_computed((0, member), chunk, read).await?;
        bytes.extend_from_slice(&read);
    }
    let degrees: Vec<u32> =
        bytes.as_chunks().0.iter().map(|degree| u32::from_le_bytes(*degree)).collect();
    if degrees.len() as u64 != nodes {
        let drive = context.common.links[usize::from(parts.parts()[last].member)].name();
        let why = format!("it has {} numbers of edges for {nodes} nodes", degrees.len());
        return Err(Error::corrupt(drive, entry.name.clone(), why));
    }
    Ok(degrees)
}
