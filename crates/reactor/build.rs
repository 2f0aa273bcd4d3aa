//! Says in one sentence that a target is not supported, before anything fails to compile there.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if target != "linux" {
        println!("cargo::error=CSDStore builds for Linux only, and this is {target}");
    }
}
