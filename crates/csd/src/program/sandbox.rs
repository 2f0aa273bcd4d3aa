//! [`Module`]: a WebAssembly program that runs on this host as it would in a drive.
//!
//! Uses the drive's engine, limits and enforcement. Invariant: an execution here sees the same as
//! in a drive, and ends at the same limits.

use std::sync::Arc;

use csd_drive::compute::run_within;
use csd_kernels::program::{Engine, Limits as DriveLimits};
use csd_reactor::{Buffer, block_on};
use csd_run::program::{Answer, Function, Limits, Records, Running, Sandbox};
use csd_wasm::{Entry, Wasm};

use super::WASM;
use crate::report::Failure;
use crate::runtime::runtime;

/// A WebAssembly program.
struct Module {
    engine: Arc<Wasm>,
    module: Arc<csd_wasm::Module>,
    bytes: Vec<u8>,
    records: Records,
}

/// Compiles a program to run on this host.
///
/// # Errors
/// Usage: a drive would refuse the program, or it declares an unknown kind of records.
pub(super) fn open(bytes: Vec<u8>) -> Result<Arc<dyn Sandbox>, Failure> {
    let engine = Arc::new(Wasm::new().map_err(|why| Failure::run(format!("WebAssembly: {why}")))?);
    let refused = |why| Failure::usage(format!("a drive would refuse this program: {why}"));
    let module = engine.module(&bytes).map_err(refused)?;
    let records = match module.has(Entry::Records) {
        true => records(&engine, &module)?,
        false => Records::Elements,
    };
    Ok(Arc::new(Module { engine, module, bytes, records }))
}

/// Asks the program for its kind of records.
fn records(engine: &Arc<Wasm>, module: &csd_wasm::Module) -> Result<Records, Failure> {
    let limits = DriveLimits::default();
    let program = module.begin(Entry::Records, &[], &limits);
    let engine: Arc<dyn Engine> = Arc::<Wasm>::clone(engine);
    let said = block_on(&runtime(), move || run_within(engine, program, limits, Vec::new()));
    match said.map_err(Failure::run)?.map_err(Failure::run)?.0 {
        0 => Ok(Records::Elements),
        1 => Ok(Records::Lines),
        other => Err(Failure::usage(format!(
            "the program's csd_records is {other}: 0 for elements and 1 for lines are known"
        ))),
    }
}

/// Returns a drive's limits, lowered to those of the execution.
fn lowered(limits: Limits) -> Result<DriveLimits, String> {
    let seconds = u16::try_from(limits.time_ms.div_ceil(1000)).unwrap_or(u16::MAX);
    let memory_bytes = u64::from(limits.memory_mib) << 20;
    let most = DriveLimits::for_s(seconds.max(DriveLimits::default_s()));
    let most = DriveLimits { memory_bytes: most.memory_bytes.max(memory_bytes), ..most };
    let lowered =
        most.lowered(limits.time_ms, memory_bytes).map_err(|status| status.to_string())?;
    Ok(DriveLimits { output_bytes: limits.room_bytes.into(), ..lowered })
}

impl Sandbox for Module {
    fn type_name(&self) -> &'static str {
        WASM
    }

    fn module(&self) -> &[u8] {
        &self.bytes
    }

    fn records(&self) -> Records {
        self.records
    }

    fn folds(&self) -> bool {
        self.module.has(Entry::Fold)
    }

    fn emits(&self) -> bool {
        self.module.emits()
    }

    fn run(
        &self,
        function: Function,
        streams: Vec<Vec<Buffer>>,
        parameters: &[u8],
        limits: Limits,
    ) -> Running<'_> {
        let entry = match function {
            Function::Run => Entry::Run,
            Function::Fold => Entry::Fold,
        };
        let begun =
            lowered(limits).map(|limits| (self.module.begin(entry, parameters, &limits), limits));
        let engine: Arc<dyn Engine> = Arc::<Wasm>::clone(&self.engine);
        Box::pin(async move {
            let (program, limits) = begun?;
            let ran = run_within(engine, program, limits, streams).await;
            let (result, output) = ran.map_err(|failure| failure.reason)?;
            Ok(Answer { result, output })
        })
    }
}
