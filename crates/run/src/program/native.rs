//! [`Native`]: a built-in kernel as a program over objects, chunk by chunk.
//!
//! For kernels whose answers belong together in the order of the chunks, so that a [`Consumer`]
//! takes them one after the other. Drives have the kernel, so nothing is loaded. On the host it
//! runs on the core that received the chunk, as kernels do. Invariant: drives and host run the same
//! kernel.

use std::future::ready;

use csd_kernels::kernel::{Kernel, Wanted};
use csd_kernels::program;
use csd_reactor::Buffer;

use super::{Answer, Function, Limits, Records, Running, Sandbox};

/// A built-in kernel.
#[derive(Clone, Copy, Debug)]
pub struct Native {
    /// The kernel.
    pub kernel: &'static dyn Kernel,
    /// True if it writes bytes.
    pub emits: bool,
}

impl Sandbox for Native {
    fn type_name(&self) -> &str {
        self.kernel.name()
    }

    fn built_in(&self) -> Option<u64> {
        Some(self.kernel.program_id())
    }

    fn module(&self) -> &[u8] {
        &[]
    }

    fn records(&self) -> Records {
        Records::Elements
    }

    fn folds(&self) -> bool {
        false
    }

    fn emits(&self) -> bool {
        self.emits
    }

    fn run(
        &self,
        _: Function,
        streams: Vec<Vec<Buffer>>,
        parameters: &[u8],
        limits: Limits,
    ) -> Running<'_> {
        let wanted = if self.emits { Wanted::Bytes } else { Wanted::Result };
        let ran = self.kernel.start(parameters, wanted).and_then(|one| program::run(one, streams));
        let ran = ran.map_err(|failure| failure.reason);
        let ran =
            ran.and_then(|(result, output)| match output.len() > limits.room_bytes as usize {
                true => {
                    Err(format!("it writes more than the {} bytes of its room", limits.room_bytes))
                }
                false => Ok(Answer { result, output }),
            });
        Box::pin(ready(ran))
    }
}
