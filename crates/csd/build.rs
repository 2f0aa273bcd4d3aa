//! Sets `CSD_BUILD`, which `csd --version` prints after the version: the commit, from `$CSD_COMMIT`
//! or git, and the features.
//!
//! Invariant: a build without git or outside a repository succeeds and names no commit.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=CSD_COMMIT");
    // `logs/HEAD` changes with every commit. A missing file would trigger a rebuild every time.
    for path in ["../../.git/HEAD", "../../.git/logs/HEAD"] {
        if Path::new(path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
    let features = match env::var_os("CARGO_FEATURE_WASM") {
        Some(_) => "wasm",
        None => "none",
    };
    let commit = env::var("CSD_COMMIT").ok().or_else(commit);
    let commit = commit.map_or_else(String::new, |commit| format!("commit {commit}, "));
    println!("cargo:rustc-env=CSD_BUILD= ({commit}features: {features})");
}

/// Returns the commit, if this is the root of a repository and git is installed.
fn commit() -> Option<String> {
    if !Path::new("../../.git").exists() {
        return None;
    }
    let asked = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    let text = String::from_utf8(asked.stdout).ok()?;
    asked.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}
