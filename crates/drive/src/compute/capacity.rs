//! [`Capacity`]: limits of the executions of a core, by number and by memory.
//!
//! Memory is not measured: an execution's need is known before it begins, and each part of it is
//! bounded where it is allocated. The data that comes with an execution belongs to the transport's
//! budget. Invariant: at most [`EXECUTIONS_MAX`] executions run on a core, and together they hold
//! at most [`Capacity::bytes`].

use csd_kernels::program::Limits;
use csd_nvme::vendor::execute::Execution;
use csd_reactor::{Semaphore, SemaphorePermit};

use super::{builtin, output, sources};

/// Executions that run at once on a core; more wait.
pub const EXECUTIONS_MAX: usize = 4;
/// Smallest memory of the executions of a core: a serial one reads 256 MiB and writes as much.
const BYTES_MIN: u64 = 512 << 20;
/// Usual memory of an execution in addition to its program's.
const STREAMS_BYTES: u64 = 64 << 20;
/// Unit of the memory semaphore in bytes.
const UNIT_BYTES: u64 = 64 << 10;

/// Capacity of one core.
#[derive(Clone)]
pub(super) struct Capacity {
    turns: Semaphore,
    memory: Semaphore,
    bytes: u64,
}

/// The rights of an execution that runs: its turn, and its memory.
pub(super) type Turn = (SemaphorePermit, SemaphorePermit);

fn units(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(UNIT_BYTES)).expect("fewer units than bytes")
}

impl Capacity {
    /// Makes the capacity for executions whose programs have these limits.
    pub(super) fn new(limits: &Limits) -> Self {
        let usual = limits.memory_bytes.saturating_add(STREAMS_BYTES);
        let bytes = BYTES_MIN.max(usual.saturating_mul(EXECUTIONS_MAX as u64));
        Self { turns: Semaphore::new(EXECUTIONS_MAX), memory: Semaphore::new(units(bytes)), bytes }
    }

    /// Waits until an execution may run. `program_bytes` is the most memory of a program that a
    /// host has loaded.
    pub(super) async fn acquire(&self, execution: &Execution, program_bytes: u64) -> Turn {
        // A serial execution, whose sources are loaded whole, takes the memory of all others.
        let (turns, bytes) = match execution.serial {
            true => (EXECUTIONS_MAX, self.bytes),
            false => (1, need_bytes(execution, program_bytes).min(self.bytes)),
        };
        let turn = self.turns.acquire(turns).await;
        (turn, self.memory.acquire(units(bytes)).await)
    }
}

/// Returns the most memory of an execution that is not serial.
fn need_bytes(execution: &Execution, program_bytes: u64) -> u64 {
    sources::held_bytes(execution.streams())
        .saturating_add(output::held_bytes(&execution.output))
        .saturating_add(2 * execution.inline.len() as u64)
        .saturating_add(program_bytes.max(builtin::kept_bytes(execution)))
}

#[cfg(test)]
mod tests {
    use csd_kernels::page_rank::{Form, Parameters};
    use csd_nvme::vendor::execute::{Output, SourceData};

    use super::*;

    fn execution(streams: u8, output: Output) -> Execution {
        let sources = (0..streams)
            .map(|stream| SourceData::Blocks { nsid: 1, slba: 0, skip: 0, bytes: 1 }.on(stream));
        let sources = sources.collect();
        Execution {
            program: 1,
            output,
            sources,
            inline: vec![],
            digests: None,
            parameters: vec![],
            serial: false,
            cores: 1,
        }
    }

    #[test]
    fn usual_executions_run_side_by_side_and_none_needs_more_than_there_is() {
        let capacity = Capacity::new(&Limits::default());
        assert_eq!(capacity.bytes, 512 << 20);
        let values = |chunk_bytes| Output::KvChunks {
            nsid: 3,
            prefix: [0; 12],
            first: 0,
            stride: 1,
            chunk_bytes,
        };
        let usual = need_bytes(&execution(2, values(1 << 20)), 64 << 20);
        assert!(usual * EXECUTIONS_MAX as u64 <= capacity.bytes, "{usual}");
        let most = need_bytes(&execution(8, values(16 << 20)), 64 << 20);
        assert!(most <= capacity.bytes, "{most}");
        let mut ranked = execution(8, values(16 << 20));
        ranked.program = csd_kernels::page_rank::PROGRAM_ID;
        ranked.parameters = Parameters { form: Form::Sparse, columns: 32 << 20 }.encode();
        let most = need_bytes(&ranked, 0);
        assert!(most > 256 << 20 && most <= capacity.bytes, "{most}");
        let larger = Capacity::new(&Limits { memory_bytes: 1 << 30, ..Limits::default() });
        assert_eq!(larger.bytes, 4 * ((1 << 30) + (64 << 20)));
    }
}
