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

/// Elements of the vector that have come, in place for the product: no second copy is made.
enum Vector {
    Dense(Vec<f32>),
    Sparse(Vec<f64>),
}

struct Ranking {
    parameters: Parameters,
    vector: Vector,
    /// Bytes of an element that has come in part.
    rest: Vec<u8>,
    product: Option<Product>,
}

pub(super) fn start(execution: &Execution) -> Result<Box<dyn Program>, Failure> {
    let parameters = Parameters::parse(&execution.parameters).map_err(Failure::misuse)?;
    require_output(execution, NAME)?;
    let vector_bytes = parameters.columns.saturating_mul(element_bytes(parameters.form));
    if vector_bytes > SOURCE_BYTES_MAX {
        let reason = format!("a vector of {vector_bytes} bytes is more than a drive keeps");
        return Err(Failure::misuse(reason));
    }
    let columns = usize::try_from(parameters.columns).expect("at most 256 MiB");
    let vector = match parameters.form {
        Form::Dense => Vector::Dense(Vec::with_capacity(columns)),
        Form::Sparse => Vector::Sparse(Vec::with_capacity(columns)),
    };
    Ok(Box::new(Ranking { parameters, vector, rest: Vec::new(), product: None }))
}

fn element_bytes(form: Form) -> u64 {
    match form {
        Form::Dense => 4,
        Form::Sparse => 8,
    }
}

/// Bytes of the vector, as far as it is not refused.
pub(super) fn vector_bytes(execution: &Execution) -> u64 {
    let parameters = Parameters::parse(&execution.parameters).ok();
    let bytes = parameters.map(|all| all.columns.saturating_mul(element_bytes(all.form)));
    bytes.filter(|bytes| *bytes <= SOURCE_BYTES_MAX).unwrap_or(0)
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
        let columns = usize::try_from(self.parameters.columns).expect("at most 256 MiB");
        self.rest.extend_from_slice(bytes);
        inputs.consume(1, count);
        let (taken, elements) = self.vector.extend(&self.rest, columns);
        self.rest.drain(..taken);
        if !self.rest.is_empty() && elements == columns {
            return Err(self.wrong_length("longer"));
        }
        if !inputs.is_over(1) {
            return Ok(after(inputs, 1));
        }
        if elements < columns {
            return Err(self.wrong_length("shorter"));
        }
        self.rest = Vec::new();
        self.product = Some(match &mut self.vector {
            Vector::Dense(values) => Product::Dense(Dense::new(std::mem::take(values))),
            Vector::Sparse(values) => Product::Sparse(Sparse::new(std::mem::take(values))),
        });
        Ok(Step::More)
    }

    fn wrong_length(&self, than: &str) -> Failure {
        let columns = self.parameters.columns;
        let reason = format!("the vector is {than} than {columns} elements");
        Failure::new(Status::SOURCE_TYPE, reason)
    }
}

impl Vector {
    /// Appends whole elements, `most` in all; the bytes that were taken, and the elements that
    /// there are.
    fn extend(&mut self, bytes: &[u8], most: usize) -> (usize, usize) {
        match self {
            Self::Dense(values) => {
                let (whole, before) = (bytes.as_chunks().0, values.len());
                let whole = &whole[..whole.len().min(most - before)];
                values.extend(whole.iter().map(|value| f32::from_le_bytes(*value)));
                (whole.len() * 4, values.len())
            }
            Self::Sparse(values) => {
                let (whole, before) = (bytes.as_chunks().0, values.len());
                let whole = &whole[..whole.len().min(most - before)];
                values.extend(whole.iter().map(|value| f64::from_le_bytes(*value)));
                (whole.len() * 8, values.len())
            }
        }
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
