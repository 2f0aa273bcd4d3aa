//! Systems other than Linux are refused by the build script, in one sentence.

use std::path::Path;
use std::process::Command;

#[test]
fn other_systems_are_refused_in_one_sentence() {
    let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build-script");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/build.rs");
    let compiled = Command::new("rustc").arg(source).arg("-o").arg(&script).status();
    assert!(compiled.expect("rustc runs").success());
    for (target, refused) in [("linux", 0), ("macos", 1), ("windows", 1), ("android", 1)] {
        let ran = Command::new(&script).env("CARGO_CFG_TARGET_OS", target).output();
        let said = String::from_utf8(ran.expect("it runs").stdout).expect("text");
        let errors: Vec<&str> =
            said.lines().filter_map(|line| line.strip_prefix("cargo::error=")).collect();
        assert_eq!(errors.len(), refused, "{target}: {said}");
        assert!(errors.iter().all(|error| error.contains("Linux only")), "{errors:?}");
    }
}
