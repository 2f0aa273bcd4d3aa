//! The program of summarize: stream 0 holds the elements. Writes the encoded summary; the result is
//! the number of elements that are numbers.

use super::{Parameters, Summarize};
use crate::program::{Cause, Failure, Inputs, Output, Program, STEP_BYTES, Step};

struct Summarizing {
    summarize: Summarize,
    element_bytes: usize,
}

pub(super) fn start(parameters: &[u8]) -> Result<Box<dyn Program>, Failure> {
    let parameters = Parameters::parse(parameters).map_err(Failure::parameters)?;
    let element_bytes = parameters.element().bytes();
    Ok(Box::new(Summarizing { summarize: Summarize::new(parameters), element_bytes }))
}

impl Program for Summarizing {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        let bytes = inputs.peek(0);
        let bytes = &bytes[..bytes.len().min(STEP_BYTES)];
        let fed = self.summarize.feed(bytes);
        fed.map_err(|error| Failure::new(Cause::InputType, error))?;
        let count = bytes.len();
        output.count_work((count / self.element_bytes) as u64);
        inputs.consume(0, count);
        if inputs.is_over(0) {
            let summary = self.summarize.summary();
            output.append(&summary.encode());
            return Ok(Step::Done { result: summary.numbers() });
        }
        Ok(Step::after(inputs, 0))
    }
}
