//! [`Wasm`]: from a module's bytes to something that can be run.
//!
//! Invariants: a module that is accepted has every import that it names and the exports that an
//! execution needs; the same bytes are compiled once as long as they are remembered; nothing is
//! compiled that is beyond the limits, and one module at a time is.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_drive::namespace::compute::{Compiled, Engine, Failure, Limits, Program, digest};
use wasmtime::{Config, ExternType, InstancePre, Linker, Module, OptLevel, ValType};

use crate::guest::Guest;
use crate::host::{self, State};
use crate::limits;
use crate::remembered::Remembered;

/// Program type of WebAssembly: ours, from the vendor range. It is said here and nowhere else.
pub const PROGRAM_TYPE: u8 = 0xC1;

/// Name of the function that is the program.
pub(crate) const ENTRY: &str = "csd_run";
/// Name of a program's memory.
pub(crate) const MEMORY: &str = "memory";

/// Most memory of the compiled modules that are remembered, bytes.
const REMEMBERED_BYTES_MAX: u64 = 64 << 20;
/// Memory that a compiled module takes apart from its image: for itself, and for each function.
const MODULE_BYTES: u64 = 16 << 10;
const FUNCTION_BYTES: u64 = 256;
/// Stack of a guest in bytes; one that needs more traps.
const STACK_BYTES: usize = 512 << 10;
/// Stack of a guest and of what it calls of ours, bytes.
const FIBER_BYTES: usize = STACK_BYTES + (512 << 10);

/// Runs programs in WebAssembly: SIMD and bulk memory, one memory of 32 bits, no threads.
pub struct Wasm {
    engine: wasmtime::Engine,
    linker: Linker<State>,
    remembered: Mutex<Remembered<Runnable>>,
    /// Held by who compiles, so that the compiler's memory is that of one module.
    compiling: Mutex<()>,
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
        // Failures are told without a backtrace, so compiled modules need no maps for one. Nor an
        // image of their memory, which may be far longer than what is in it.
        config.wasm_backtrace(false).generate_address_map(false).memory_init_cow(false);
        let engine = wasmtime::Engine::new(&config).map_err(|error| format!("{error:#}"))?;
        let mut linker = Linker::new(&engine);
        host::define(&mut linker).map_err(|error| format!("{error:#}"))?;
        let remembered = Mutex::new(Remembered::new(REMEMBERED_BYTES_MAX));
        Ok(Self { engine, linker, remembered, compiling: Mutex::default() })
    }

    /// Memory that the compiled modules take which are remembered, bytes.
    pub fn remembered_bytes(&self) -> u64 {
        self.remembered().bytes()
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered<Runnable>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compiles a module and looks at what it imports and exports.
    fn translate(&self, bytes: &[u8]) -> Result<Runnable, String> {
        if !bytes.starts_with(b"\0asm") {
            return Err("it is not WebAssembly in binary form".to_owned());
        }
        let functions = limits::check(bytes)?;
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
        let image = module.image_range();
        let image_bytes = (image.end.addr() - image.start.addr()) as u64;
        let bytes = image_bytes + MODULE_BYTES + FUNCTION_BYTES * functions;
        let ready = ready.map_err(|error| format!("{error:#}"))?;
        Ok(Runnable { ready, bytes })
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
        if let Some(known) = self.remembered().get(&digest) {
            return Ok(known);
        }
        let _alone = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        // Who compiled meanwhile may have compiled just this.
        if let Some(known) = self.remembered().get(&digest) {
            return Ok(known);
        }
        let runnable = Arc::new(self.translate(bytes)?);
        self.remembered().insert(digest, Arc::clone(&runnable));
        Ok(runnable)
    }

    fn tick(&self) {
        self.engine.increment_epoch();
    }
}

/// A compiled module with its imports.
struct Runnable {
    ready: InstancePre<State>,
    /// See [`Compiled::bytes`].
    bytes: u64,
}

impl Compiled for Runnable {
    fn start(&self, parameters: &[u8], limits: &Limits) -> Result<Box<dyn Program>, Failure> {
        Ok(Box::new(Guest::new(self.ready.clone(), parameters.to_vec(), limits)))
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
