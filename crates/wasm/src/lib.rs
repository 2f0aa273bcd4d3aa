//! Programs in WebAssembly.
