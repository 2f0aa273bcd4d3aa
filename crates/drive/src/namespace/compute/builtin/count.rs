//! `count`: stream 0 is the elements; the result is how many equal the value.

use csd_kernels::count::{Count, Parameters};
use csd_nvme::execute::Execution;
use csd_nvme::status::Status;

use super::{STEP_BYTES, after};
use crate::namespace::compute::parts::Grain;
use crate::namespace::compute::{Failure, Inputs, Output, Program, Step};

struct Counting(Count);

pub(super) fn start(execution: &Execution) -> Result<Box<dyn Program>, Failure> {
    let parameters = Parameters::parse(&execution.parameters).map_err(Failure::misuse)?;
    Ok(Box::new(Counting(Count::new(parameters))))
}

/// Elements are counted anywhere.
pub(super) fn grain(execution: &Execution) -> Option<Grain> {
    let parameters = Parameters::parse(&execution.parameters).ok()?;
    let item_bytes = parameters.value.element().bytes() as u64;
    Some(Grain { item_bytes, ..Grain::SUM })
}

impl Program for Counting {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        let bytes = inputs.peek(0);
        let bytes = &bytes[..bytes.len().min(STEP_BYTES)];
        let before = self.0.elements();
        self.0.feed(bytes).map_err(|error| Failure::new(Status::SOURCE_TYPE, error))?;
        output.count_work(self.0.elements() - before);
        let count = bytes.len();
        inputs.consume(0, count);
        if inputs.is_over(0) {
            return Ok(Step::Done { result: self.0.result() });
        }
        Ok(after(inputs, 0))
    }
}
