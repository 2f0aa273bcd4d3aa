//! The program of page rank: stream 0 holds rows of a matrix, stream 1 the vector, which is read
//! first and kept. Writes the sum of each row; the result is the number of rows.

use super::{Dense, Form, NAME, Parameters, Sparse, VECTOR_BYTES_MAX};
use crate::kernel::Wanted;
use crate::program::{Cause, Failure, Inputs, Output, Program, STEP_BYTES, Step};

/// Product of rows with a vector.
enum Product {
    Dense(Dense<Vec<f32>>),
    Sparse(Sparse<Vec<f64>>),
}

/// Elements of the vector that have arrived. The product takes them over without a copy.
enum Vector {
    Dense(Vec<f32>),
    Sparse(Vec<f64>),
}

struct Ranking {
    parameters: Parameters,
    vector: Vector,
    /// Bytes of an element of which some have arrived.
    rest: Vec<u8>,
    product: Option<Product>,
}

pub(super) fn start(parameters: &[u8], wanted: Wanted) -> Result<Box<dyn Program>, Failure> {
    let parameters = Parameters::parse(parameters).map_err(Failure::parameters)?;
    wanted.require_elements(NAME, 1)?;
    let vector_bytes = parameters.vector_bytes();
    if vector_bytes > VECTOR_BYTES_MAX {
        let reason = format!("a vector of {vector_bytes} bytes is more than a drive keeps");
        return Err(Failure::parameters(reason));
    }
    let columns = usize::try_from(parameters.columns).expect("at most 256 MiB");
    let vector = match parameters.form {
        Form::Dense => Vector::Dense(Vec::with_capacity(columns)),
        Form::Sparse => Vector::Sparse(Vec::with_capacity(columns)),
    };
    Ok(Box::new(Ranking { parameters, vector, rest: Vec::new(), product: None }))
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
        Ok(Step::after(inputs, 0))
    }

    fn next_part(&mut self) -> bool {
        self.product.as_mut().map(Product::restart).is_some()
    }
}

impl Ranking {
    /// Reads the vector; the product begins when it is complete.
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
            return Ok(Step::after(inputs, 1));
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
        Failure::new(Cause::InputType, reason)
    }
}

impl Vector {
    /// Appends whole elements, up to `most` in all. Returns the number of bytes taken and the
    /// number of elements present.
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
    /// Reads rows and writes the sums of those that end. Returns the work done.
    fn feed(&mut self, rows: &[u8], output: &mut Output) -> Result<u64, Failure> {
        let refused = |error: &dyn std::error::Error| Failure::new(Cause::InputType, error);
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

    /// Keeps the vector and forgets the rows.
    fn restart(&mut self) {
        match self {
            Self::Dense(dense) => dense.restart(),
            Self::Sparse(sparse) => sparse.restart(),
        }
    }

    fn finish(&self) -> Result<u64, Failure> {
        let (rows, finished) = match self {
            Self::Dense(dense) => (dense.rows(), dense.finish()),
            Self::Sparse(sparse) => (sparse.rows(), sparse.finish()),
        };
        finished.map_err(|error| Failure::new(Cause::InputType, error)).map(|()| rows)
    }
}
