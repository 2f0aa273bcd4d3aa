//! Linker options of the shared library: its name for other programs, and that it stays loaded,
//! because its threads outlive a `dlclose`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for option in ["-Wl,-soname,libcsd_kv.so.0", "-Wl,-z,nodelete"] {
        println!("cargo:rustc-cdylib-link-arg={option}");
    }
}
