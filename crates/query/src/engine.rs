//! [`Substrait`]: plans as programs, for a drive that has it as one of its engines.

use std::sync::Arc;

use csd_kernels::program::{Compiled, Engine, Failure, Limits, Program};
use csd_nvme::vendor::PROGRAM_TYPE_SUBSTRAIT;

use crate::execution::Execution;
use crate::plan::Plan;

/// Memory of a plan in addition to its bytes on the wire, per byte: operators hold what they say in
/// trees of their own.
const BYTES_A_BYTE: u64 = 16;

/// Runs plans of Substrait over parts of tables.
#[derive(Clone, Copy, Debug, Default)]
pub struct Substrait;

impl Engine for Substrait {
    fn ptype(&self) -> u8 {
        PROGRAM_TYPE_SUBSTRAIT
    }

    fn name(&self) -> &'static str {
        "substrait"
    }

    /// A plan has no instructions of its own: it names functions that every drive with this engine
    /// has.
    fn needs_admission(&self) -> bool {
        false
    }

    fn compile(&self, bytes: &[u8]) -> Result<Arc<dyn Compiled>, String> {
        Ok(Arc::new(Self::plan(bytes)?))
    }
}

impl Substrait {
    /// Returns a plan that can be run.
    ///
    /// # Errors
    /// The fault of the plan, in words.
    pub fn plan(bytes: &[u8]) -> Result<CompiledPlan, String> {
        let plan = Plan::decode(bytes).map_err(|refusal| format!("the plan has {refusal}"))?;
        let bytes = bytes.len() as u64 * (1 + BYTES_A_BYTE);
        Ok(CompiledPlan { plan: Arc::new(plan), bytes })
    }
}

impl From<Arc<Plan>> for CompiledPlan {
    /// Returns a plan of this host, which has not to be sent.
    fn from(plan: Arc<Plan>) -> Self {
        Self { plan, bytes: 0 }
    }
}

/// A plan that can be run.
#[derive(Clone, Debug)]
pub struct CompiledPlan {
    plan: Arc<Plan>,
    bytes: u64,
}

impl Compiled for CompiledPlan {
    fn start(&self, parameters: &[u8], limits: &Limits) -> Result<Box<dyn Program>, Failure> {
        Ok(Box::new(Execution::new(&self.plan, parameters, limits)?))
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
