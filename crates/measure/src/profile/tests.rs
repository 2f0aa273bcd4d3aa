//! Tests with the golden files of the profile contract.

use std::path::{Path, PathBuf};

use super::Profile;

fn files(prefix: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/golden/profile");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(prefix))
        .collect();
    paths.sort();
    paths
}

#[test]
fn valid_profiles_have_the_normal_form_of_the_contract() {
    let paths = files("valid-");
    assert!(paths.len() >= 2);
    for path in paths {
        let profile = Profile::parse(&std::fs::read_to_string(&path).unwrap());
        let profile = profile.unwrap_or_else(|faults| panic!("{}: {faults}", path.display()));
        let expected = std::fs::read_to_string(path.with_extension("json")).unwrap();
        let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(serde_json::to_value(&profile).unwrap(), expected, "{}", path.display());
    }
}

#[test]
fn invalid_profiles_are_refused_with_every_path_of_the_contract() {
    let paths = files("invalid-");
    assert!(paths.len() >= 25);
    for path in paths {
        let faults = Profile::parse(&std::fs::read_to_string(&path).unwrap());
        let faults = faults.expect_err(&path.display().to_string());
        let mut found: Vec<_> = faults.0.iter().map(|fault| fault.path.as_str()).collect();
        let expected = std::fs::read_to_string(path.with_extension("txt")).unwrap();
        let mut expected: Vec<_> = expected.lines().collect();
        found.sort_unstable();
        expected.sort_unstable();
        found.dedup(); // a point may have several times with one fault of the point each
        assert_eq!(found, expected, "{}: {faults}", path.display());
    }
}

#[test]
fn what_is_written_is_read_back() {
    for path in files("valid-") {
        let profile = Profile::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let again = Profile::parse(&profile.to_toml());
        let again = again.unwrap_or_else(|faults| panic!("{}: {faults}", path.display()));
        assert_eq!(again, profile, "{}", path.display());
    }
}

#[test]
fn an_unknown_key_is_named_with_its_table_and_the_keys_of_that_table() {
    let path = &files("valid-")[0];
    let text = std::fs::read_to_string(path).unwrap().replace("[host]", "[host]\ncore = 1");
    let faults = Profile::parse(&text).unwrap_err();
    assert_eq!(
        faults.to_string(),
        "host.core: unknown key, expected one of cores, ingest_bw_Bps, dram_bytes, idle_W, \
         core_W, price_usd, prov"
    );
}
