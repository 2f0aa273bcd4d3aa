//! `vector-add`: stream 0 plus stream 1, element by element; the result is the number of elements.

use csd_kernels::vector_add::{NAME, Parameters, VectorAdd};
use csd_nvme::execute::Execution;
use csd_nvme::status::Status;

use super::{STEP_BYTES, after, require_output, require_whole, unequal};
use crate::namespace::compute::parts::Grain;
use crate::namespace::compute::{Failure, Inputs, Output, Program, Step};

struct Adding {
    add: VectorAdd,
    element_bytes: usize,
}

pub(super) fn start(execution: &Execution) -> Result<Box<dyn Program>, Failure> {
    let parameters = Parameters::parse(&execution.parameters).map_err(Failure::misuse)?;
    require_output(execution, NAME)?;
    let element_bytes = parameters.element.bytes();
    require_whole(execution, element_bytes)?;
    Ok(Box::new(Adding { add: VectorAdd::new(parameters), element_bytes }))
}

/// Elements are added anywhere.
pub(super) fn grain(execution: &Execution) -> Option<Grain> {
    let parameters = Parameters::parse(&execution.parameters).ok()?;
    let bytes = parameters.element.bytes() as u64;
    Some(Grain { cut: 2, streams: 2, item_bytes: bytes, written_bytes: bytes, ..Grain::SUM })
}

impl Program for Adding {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        let over = [inputs.is_over(0), inputs.is_over(1)];
        if over == [true, true] {
            return Ok(Step::Done { result: self.add.elements() });
        }
        if output.is_full() {
            return Ok(Step::Full);
        }
        let (left, right) = (inputs.peek(0), inputs.peek(1));
        let both = left.len().min(right.len());
        if both == 0 {
            return match over {
                [true, _] if !right.is_empty() => Err(unequal(0)),
                [_, true] if !left.is_empty() => Err(unequal(1)),
                _ => Ok(after(inputs, usize::from(over[0] || !left.is_empty()))),
            };
        }
        // What is shown of a stream ends where a value or a block source does.
        let whole = both - both % self.element_bytes;
        if whole == 0 {
            let reason = format!("a source ends within an element of {} bytes", self.element_bytes);
            return Err(Failure::new(Status::SOURCE_TYPE, reason));
        }
        let sum = output.room(whole.min(STEP_BYTES));
        let count = sum.len();
        let added = self.add.feed(&left[..count], &right[..count], sum);
        added.map_err(|error| Failure::new(Status::SOURCE_TYPE, error))?;
        output.commit(count);
        output.count_work((count / self.element_bytes) as u64);
        inputs.consume(0, count);
        inputs.consume(1, count);
        Ok(Step::More)
    }
}
