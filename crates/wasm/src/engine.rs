//! [`Wasm`]: compiles modules into programs.
//!
//! Invariants: an accepted module has every import that it names and the exports that an execution
//! needs; the same bytes are not compiled again while the cache has them; only modules within the
//! limits are compiled, one at a time.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_kernels::program::{Compiled, Engine, Failure, Limits, Program};
use wasmtime::{Config, ExternType, InstancePre, Linker, OptLevel, ValType};

use crate::cache::Cache;
use crate::exports::{Entry, MEMORY};
use crate::guest::Guest;
use crate::host::{self, State};
use crate::limits;

/// Program type of WebAssembly.
pub const PROGRAM_TYPE: u8 = csd_nvme::vendor::PROGRAM_TYPE_WASM;

/// Limit of the memory of cached modules, bytes.
const CACHE_BYTES_MAX: u64 = 64 << 20;
/// Memory of a compiled module in addition to its image, bytes: per module, and per function.
const MODULE_BYTES: u64 = 16 << 10;
const FUNCTION_BYTES: u64 = 256;
/// Stack of a guest in bytes; a guest that needs more traps.
const STACK_BYTES: usize = 512 << 10;
/// Stack of a guest and of the host functions that it calls, bytes.
const FIBER_BYTES: usize = STACK_BYTES + (512 << 10);

/// Runs programs in WebAssembly: SIMD and bulk memory, one memory of 32 bits, no threads.
pub struct Wasm {
    engine: wasmtime::Engine,
    linker: Linker<State>,
    cache: Mutex<Cache<Module>>,
    /// Held while a module is compiled, so that the compiler uses the memory of one module only.
    compiling: Mutex<()>,
}

impl Wasm {
    /// Returns an engine for one drive.
    ///
    /// # Errors
    /// If this machine cannot run compiled WebAssembly, in words.
    pub fn new() -> Result<Self, String> {
        let mut config = Config::new();
        config.async_support(true).epoch_interruption(true);
        config.cranelift_opt_level(OptLevel::Speed);
        config.max_wasm_stack(STACK_BYTES).async_stack_size(FIBER_BYTES);
        // The same bytes give the same answer on every machine: no relaxed SIMD.
        config.wasm_relaxed_simd(false).wasm_memory64(false).wasm_multi_memory(false);
        config.cranelift_nan_canonicalization(true);
        // Failures are reported without a backtrace, so compiled modules need no maps for one. They
        // need no image of their memory either: it may be far longer than its contents.
        config.wasm_backtrace(false).generate_address_map(false).memory_init_cow(false);
        let engine = wasmtime::Engine::new(&config).map_err(|error| format!("{error:#}"))?;
        let mut linker = Linker::new(&engine);
        host::define(&mut linker).map_err(|error| format!("{error:#}"))?;
        let cache = Mutex::new(Cache::new(CACHE_BYTES_MAX));
        Ok(Self { engine, linker, cache, compiling: Mutex::default() })
    }

    /// Returns the memory of the cached modules, bytes.
    pub fn cached_bytes(&self) -> u64 {
        self.cache().bytes()
    }

    fn cache(&self) -> MutexGuard<'_, Cache<Module>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compiles a module and checks its imports and exports.
    fn translate(&self, bytes: &[u8]) -> Result<Module, String> {
        if !bytes.starts_with(b"\0asm") {
            return Err("it is not WebAssembly in binary form".to_owned());
        }
        let functions = limits::check(bytes)?;
        let module = wasmtime::Module::new(&self.engine, bytes);
        let module = module.map_err(|error| format!("{error:#}"))?;
        let mut entries = Vec::new();
        for entry in Entry::ALL {
            let name = entry.name();
            match module.get_export(name) {
                Some(ExternType::Func(function)) => {
                    let result: Vec<ValType> = function.results().collect();
                    if function.params().len() > 0 || !matches!(result[..], [ValType::I64]) {
                        return Err(format!("its {name} is not of type () -> i64"));
                    }
                    entries.push(entry);
                }
                _ if entry == Entry::Run => return Err(format!("it exports no function {name}")),
                Some(_) => return Err(format!("its {name} is no function")),
                None => {}
            }
        }
        let emits = module.imports().any(|import| import.name() == "emit");
        if !matches!(module.get_export(MEMORY), Some(ExternType::Memory(_))) {
            return Err(format!("it exports no memory named {MEMORY}"));
        }
        let ready = self.linker.instantiate_pre(&module);
        let image = module.image_range();
        let image_bytes = (image.end.addr() - image.start.addr()) as u64;
        let bytes = image_bytes + MODULE_BYTES + FUNCTION_BYTES * functions;
        let ready = ready.map_err(|error| format!("{error:#}"))?;
        Ok(Module { ready, bytes, entries, emits })
    }

    /// Returns a compiled module, from the cache if it is there.
    ///
    /// # Errors
    /// The fault of the module, in words.
    pub fn module(&self, bytes: &[u8]) -> Result<Arc<Module>, String> {
        let digest = *blake3::hash(bytes).as_bytes();
        if let Some(known) = self.cache().get(&digest) {
            return Ok(known);
        }
        let _alone = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have compiled the same bytes in the meantime.
        if let Some(known) = self.cache().get(&digest) {
            return Ok(known);
        }
        let module = Arc::new(self.translate(bytes)?);
        self.cache().insert(digest, Arc::clone(&module));
        Ok(module)
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
        Ok(self.module(bytes)?)
    }

    fn tick(&self) {
        self.engine.increment_epoch();
    }
}

/// A compiled module with its imports.
pub struct Module {
    ready: InstancePre<State>,
    /// See [`Compiled::bytes`].
    bytes: u64,
    entries: Vec<Entry>,
    emits: bool,
}

impl Module {
    /// Returns true if the module exports this function.
    pub fn has(&self, entry: Entry) -> bool {
        self.entries.contains(&entry)
    }

    /// Returns true if the module can write bytes.
    pub fn emits(&self) -> bool {
        self.emits
    }

    /// Starts an execution of one of its functions, before its first step.
    pub fn begin(&self, entry: Entry, parameters: &[u8], limits: &Limits) -> Box<dyn Program> {
        Box::new(Guest::new(self.ready.clone(), entry, parameters.to_vec(), limits))
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("entries", &self.entries).finish_non_exhaustive()
    }
}

impl Compiled for Module {
    fn start(&self, parameters: &[u8], limits: &Limits) -> Result<Box<dyn Program>, Failure> {
        Ok(self.begin(Entry::Run, parameters, limits))
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
