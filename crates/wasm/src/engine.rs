//! [`Wasm`]: from a module's bytes to something that can be run.
//!
//! Invariants: a module that is accepted has every import that it names and the exports that an
//! execution needs; the same bytes are compiled once as long as they are remembered.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use csd_drive::namespace::compute::{Compiled, Engine, Failure, Limits, Program, digest};
use wasmtime::{Config, ExternType, InstancePre, Linker, Module, OptLevel, ValType};

use crate::guest::Guest;
use crate::host::{self, State};

/// Program type of WebAssembly: ours, from the vendor range. It is said here and nowhere else.
pub const PROGRAM_TYPE: u8 = 0xC1;

/// Name of the function that is the program.
pub(crate) const ENTRY: &str = "csd_run";
/// Name of a program's memory.
pub(crate) const MEMORY: &str = "memory";

/// Compiled modules that are remembered.
const REMEMBERED_MAX: usize = 32;
/// Stack of a guest in bytes; one that needs more traps.
const STACK_BYTES: usize = 512 << 10;
/// Stack of a guest and of what it calls of ours, bytes.
const FIBER_BYTES: usize = STACK_BYTES + (512 << 10);

/// Runs programs in WebAssembly: SIMD and bulk memory, one memory of 32 bits, no threads.
pub struct Wasm {
    engine: wasmtime::Engine,
    linker: Linker<State>,
    remembered: Mutex<VecDeque<([u8; 32], Arc<Runnable>)>>,
}

impl Wasm {
    /// An engine for one drive.
    ///
    /// # Errors
    /// When this machine cannot run compiled WebAssembly, in words.
    pub fn new() -> Result<Self, String> {
        let mut config = Config::new();
        config.async_support(true).epoch_interruption(true);
        config.cranelift_opt_level(OptLevel::Speed);
        config.max_wasm_stack(STACK_BYTES).async_stack_size(FIBER_BYTES);
        // The same bytes give the same answer on every machine: nothing relaxed.
        config.wasm_relaxed_simd(false).wasm_memory64(false).wasm_multi_memory(false);
        let engine = wasmtime::Engine::new(&config).map_err(|error| format!("{error:#}"))?;
        let mut linker = Linker::new(&engine);
        host::define(&mut linker).map_err(|error| format!("{error:#}"))?;
        Ok(Self { engine, linker, remembered: Mutex::default() })
    }

    /// Compiles a module and looks at what it imports and exports.
    fn translate(&self, bytes: &[u8]) -> Result<Runnable, String> {
        if !bytes.starts_with(b"\0asm") {
            return Err("it is not WebAssembly in binary form".to_owned());
        }
        let module = Module::new(&self.engine, bytes).map_err(|error| format!("{error:#}"))?;
        match module.get_export(ENTRY) {
            Some(ExternType::Func(entry)) => {
                let result: Vec<ValType> = entry.results().collect();
                if entry.params().len() > 0 || !matches!(result[..], [ValType::I64]) {
                    return Err(format!("its {ENTRY} is not of type () -> i64"));
                }
            }
            _ => return Err(format!("it exports no function {ENTRY}")),
        }
        if !matches!(module.get_export(MEMORY), Some(ExternType::Memory(_))) {
            return Err(format!("it exports no memory named {MEMORY}"));
        }
        let ready = self.linker.instantiate_pre(&module);
        ready.map(Runnable).map_err(|error| format!("{error:#}"))
    }
}

impl fmt::Debug for Wasm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wasm")
    }
}

impl Engine for Wasm {
    fn ptype(&self) -> u8 {
        PROGRAM_TYPE
    }

    fn name(&self) -> &'static str {
        "wasm"
    }

    fn compile(&self, bytes: &[u8]) -> Result<Arc<dyn Compiled>, String> {
        let digest = digest(bytes);
        let remembered = || self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = remembered().iter().find(|(known, _)| *known == digest) {
            return Ok(Arc::clone(known) as Arc<dyn Compiled>);
        }
        // Outside of the lock: it takes long.
        let runnable = Arc::new(self.translate(bytes)?);
        let mut all = remembered();
        all.truncate(REMEMBERED_MAX - 1);
        all.push_front((digest, Arc::clone(&runnable)));
        Ok(runnable)
    }

    fn tick(&self) {
        self.engine.increment_epoch();
    }
}

/// A compiled module with its imports.
struct Runnable(InstancePre<State>);

impl Compiled for Runnable {
    fn start(&self, parameters: &[u8], limits: &Limits) -> Result<Box<dyn Program>, Failure> {
        Ok(Box::new(Guest::new(self.0.clone(), parameters.to_vec(), limits)))
    }
}
