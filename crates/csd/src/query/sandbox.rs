//! [`HostPlan`]: a plan that runs over row groups on this host as it would in a drive.

use std::sync::Arc;

use csd_drive::compute::run_within;
use csd_kernels::program::{Compiled, Engine, Limits as DriveLimits};
use csd_query::{CompiledPlan, Substrait};
use csd_reactor::Buffer;
use csd_run::program::{Answer, Function, Limits, Records, Running, Sandbox};

/// A plan, and its bytes for drives.
pub(super) struct HostPlan {
    pub(super) plan: CompiledPlan,
    pub(super) bytes: Vec<u8>,
}

impl Sandbox for HostPlan {
    fn type_name(&self) -> &'static str {
        Substrait.name()
    }

    fn module(&self) -> &[u8] {
        &self.bytes
    }

    fn records(&self) -> Records {
        Records::Elements
    }

    fn folds(&self) -> bool {
        false
    }

    fn emits(&self) -> bool {
        true
    }

    fn host_may_do(&self) -> bool {
        true
    }

    fn run(
        &self,
        _: Function,
        streams: Vec<Vec<Buffer>>,
        parameters: &[u8],
        limits: Limits,
    ) -> Running<'_> {
        let within = DriveLimits {
            time_ms: limits.time_ms,
            wall_ms: limits.time_ms / 4 * 5,
            memory_bytes: u64::from(limits.memory_mib) << 20,
            output_bytes: u64::MAX,
        };
        let program = self.plan.start(parameters, &within);
        Box::pin(async move {
            let program = program.map_err(|failure| failure.reason)?;
            let ran = run_within(Arc::new(Substrait), program, within, streams).await;
            let (result, output) = ran.map_err(|failure| failure.reason)?;
            Ok(Answer { result, output })
        })
    }
}
