//! `verify`: stream 0 is bytes; the checksums of their pages are written where that is wanted. The
//! result is their digest in dword 0 and their number in dword 1.

use csd_kernels::verify::{Digest, Parameters, Verify};
use csd_nvme::execute::{Execution, Output as Destination};

use super::{STEP_BYTES, after};
use crate::namespace::compute::parts::{Fold, Grain};
use crate::namespace::compute::{Failure, Inputs, Output, Program, Step};

/// Bytes of a checksum.
const CHECKSUM_BYTES: u64 = 4;

struct Verifying {
    verify: Verify,
    digest: Digest,
    checksums: Vec<u32>,
}

pub(super) fn start(execution: &Execution) -> Result<Box<dyn Program>, Failure> {
    let parameters = Parameters::parse(&execution.parameters).map_err(Failure::misuse)?;
    Ok(Box::new(Verifying {
        verify: Verify::new(parameters.plan),
        digest: Digest::new(parameters.spacing),
        checksums: Vec::new(),
    }))
}

/// Pages are checked anywhere; parts begin where a gap of the digest ends.
pub(super) fn grain(execution: &Execution) -> Option<Grain> {
    let Parameters { plan, spacing } = Parameters::parse(&execution.parameters).ok()?;
    // A whole that spans more than this has no digest anybody would fold.
    u32::try_from(spacing.gap).ok()?;
    let item_bytes = u64::from(plan.page_bytes());
    let written_bytes = match execution.output {
        Destination::Completion => 0,
        _ => CHECKSUM_BYTES,
    };
    let fold = Fold::Digest { page_bytes: item_bytes, spacing };
    let unit_items = spacing.every.max(1).into();
    Some(Grain { item_bytes, written_bytes, unit_items, fold, ..Grain::SUM })
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
        Ok(after(inputs, 0))
    }
}
