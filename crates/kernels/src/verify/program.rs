//! The program of verify: stream 0 holds bytes; writes the checksums of their pages if they are
//! wanted. The result is their digest in dword 0 and their number in dword 1.

use super::{Digest, Parameters, Verify};
use crate::program::{Failure, Inputs, Output, Program, STEP_BYTES, Step};

struct Verifying {
    verify: Verify,
    digest: Digest,
    checksums: Vec<u32>,
}

pub(super) fn start(parameters: &[u8]) -> Result<Box<dyn Program>, Failure> {
    let parameters = Parameters::parse(parameters).map_err(Failure::parameters)?;
    Ok(Box::new(Verifying {
        verify: Verify::new(parameters.plan),
        digest: Digest::new(parameters.spacing),
        checksums: Vec::new(),
    }))
}

impl Program for Verifying {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        if output.is_full() {
            return Ok(Step::Full);
        }
        let bytes = inputs.peek(0);
        let bytes = &bytes[..bytes.len().min(STEP_BYTES)];
        let count = bytes.len();
        self.checksums.clear();
        self.verify.feed(bytes, &mut self.checksums);
        inputs.consume(0, count);
        let over = inputs.is_over(0);
        if over {
            self.verify.finish(&mut self.checksums);
        }
        output.count_work(count as u64);
        self.digest.push(&self.checksums);
        if output.is_wanted() {
            self.checksums.iter().for_each(|sum| output.append(&sum.to_le_bytes()));
        }
        if over {
            let result = u64::from(self.digest.value()) | self.verify.pages() << 32;
            return Ok(Step::Done { result });
        }
        Ok(Step::after(inputs, 0))
    }
}
