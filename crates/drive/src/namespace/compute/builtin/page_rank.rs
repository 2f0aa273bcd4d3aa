//! `page-rank`: stream 0 is a matrix's rows, stream 1 the vector, read first and kept; the rows'
//! sums are written, and the result is their number.

use csd_kernels::page_rank::{Dense, Form, NAME, Parameters, Sparse};
use csd_nvme::execute::{Execution, SOURCE_BYTES_MAX};
use csd_nvme::status::Status;

use super::{STEP_BYTES, after, require_output};
use crate::namespace::compute::parts::Grain;
use crate::namespace::compute::{Failure, Inputs, Output, Program, Step};

/// A product, once its vector is there.
enum Product {
    Dense(Dense<Vec<f32>>),
    Sparse(Sparse<Vec<f64>>),
}

struct Ranking {
    parameters: Parameters,
    vector: Vec<u8>,
    vector_bytes: usize,
    product: Option<Product>,
}

pub(super) fn start(execution: &Execution) -> Result<Box<dyn Program>, Failure> {
    let parameters = Parameters::parse(&execution.parameters).map_err(Failure::misuse)?;
    require_output(execution, NAME)?;
    let element = if parameters.form == Form::Dense { 4 } else { 8 };
    let vector_bytes = parameters.columns * element;
    if vector_bytes > SOURCE_BYTES_MAX {
        let reason = format!("a vector of {vector_bytes} bytes is more than a drive keeps");
        return Err(Failure::misuse(reason));
    }
    let vector_bytes = usize::try_from(vector_bytes).expect("at most 256 MiB");
    Ok(Box::new(Ranking { parameters, vector: Vec::new(), vector_bytes, product: None }))
}

/// Dense rows are equally long. Where a sparse one ends is known only when it has been read.
pub(super) fn grain(execution: &Execution) -> Option<Grain> {
    let parameters = Parameters::parse(&execution.parameters).ok()?;
    if parameters.form != Form::Dense {
        return None;
    }
    Some(Grain { streams: 2, item_bytes: parameters.columns * 4, written_bytes: 4, ..Grain::SUM })
}

impl Program for Ranking {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        let Some(product) = &mut self.product else { return self.gather(inputs) };
        if output.is_full() {
            return Ok(Step::Full);
        }
        let bytes = inputs.peek(0);
        let bytes = &bytes[..bytes.len().min(STEP_BYTES)];
        let count = bytes.len();
        let work = product.feed(bytes, output)?;
        output.count_work(work);
        inputs.consume(0, count);
        if inputs.is_over(0) {
            return Ok(Step::Done { result: product.finish()? });
        }
        Ok(after(inputs, 0))
    }
}

impl Ranking {
    /// Takes on the vector; the product begins when it is whole.
    fn gather(&mut self, inputs: &mut Inputs) -> Result<Step, Failure> {
        let bytes = inputs.peek(1);
        let bytes = &bytes[..bytes.len().min(STEP_BYTES)];
        let count = bytes.len();
        self.vector.extend_from_slice(bytes);
        inputs.consume(1, count);
        if self.vector.len() > self.vector_bytes {
            return Err(self.wrong_length("longer"));
        }
        if !inputs.is_over(1) {
            return Ok(after(inputs, 1));
        }
        if self.vector.len() < self.vector_bytes {
            return Err(self.wrong_length("shorter"));
        }
        let vector = std::mem::take(&mut self.vector);
        self.product = Some(match self.parameters.form {
            Form::Dense => {
                let values = vector.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value));
                Product::Dense(Dense::new(values.collect()))
            }
            Form::Sparse => {
                let values = vector.as_chunks().0.iter().map(|value| f64::from_le_bytes(*value));
                Product::Sparse(Sparse::new(values.collect()))
            }
        });
        Ok(Step::More)
    }

    fn wrong_length(&self, than: &str) -> Failure {
        let columns = self.parameters.columns;
        let reason = format!("the vector is {than} than {columns} elements");
        Failure::new(Status::SOURCE_TYPE, reason)
    }
}

impl Product {
    /// Takes rows, writes the sums of those that end, and gives the work done.
    fn feed(&mut self, rows: &[u8], output: &mut Output) -> Result<u64, Failure> {
        let refused = |error: &dyn std::error::Error| Failure::new(Status::SOURCE_TYPE, error);
        match self {
            Self::Dense(dense) => {
                let (before, mut sums) = (dense.elements(), Vec::new());
                dense.feed(rows, &mut sums).map_err(|error| refused(&error))?;
                let sums: Vec<[u8; 4]> = sums.iter().map(|sum: &f32| sum.to_le_bytes()).collect();
                output.append(sums.as_flattened());
                Ok(dense.elements() - before)
            }
            Self::Sparse(sparse) => {
                let (before, mut sums) = (sparse.edges(), Vec::new());
                sparse.feed(rows, &mut sums).map_err(|error| refused(&error))?;
                let sums: Vec<[u8; 8]> = sums.iter().map(|sum: &f64| sum.to_le_bytes()).collect();
                output.append(sums.as_flattened());
                Ok(sparse.edges() - before)
            }
        }
    }

    fn finish(&self) -> Result<u64, Failure> {
        let (rows, finished) = match self {
            Self::Dense(dense) => (dense.rows(), dense.finish()),
            Self::Sparse(sparse) => (sparse.rows(), sparse.finish()),
        };
        finished.map_err(|error| Failure::new(Status::SOURCE_TYPE, error)).map(|()| rows)
    }
}
