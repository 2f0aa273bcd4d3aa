//! Characterizing, from the drive's log to the planner: checks that times are measured, not how
//! long they are.

use std::fs;
use std::process::Command;

use csd_measure::profile::{OverloadKind, Provenance, Where};
use serde_json::Value;

use crate::support::characterize::{characterize, check_points, check_timed, profile};
use crate::support::data::small_i32;
use crate::support::harness::{Array, root};

const KERNELS: [&str; 6] =
    ["count", "vector-add", "array-merge", "page-rank", "verify", "summarize"];

#[test]
fn one_command_gives_a_profile_of_all_kernels_on_this_machine() {
    let folder = Array::without_drives();
    let kernels = format!("--kernels {} --media memory", KERNELS.join(","));
    let (profile, done) = characterize(&folder, &kernels);
    for kernel in KERNELS {
        let stores = !matches!(kernel, "count" | "verify" | "summarize");
        check_points(&profile, kernel, Where::Host, stores);
        check_points(&profile, kernel, Where::Drive, stores);
    }
    let device = &profile.device["drive"];
    let prov = device.prov.as_ref().unwrap();
    for key in ["int_read_Bps", "int_write_Bps", "ext_read_Bps", "ext_write_Bps"] {
        assert_eq!(prov.get(key), Some(&Provenance::Measured), "{key}");
    }
    assert!(profile.host.ingest_bw_Bps.is_some() && profile.host.core_W.is_none());
    let told = done.json();
    assert_eq!(told["command"], "characterize");
    assert_eq!(told["result"]["cells"].as_array().unwrap().len(), profile.point.len());
    // No file is left behind.
    let left: Vec<_> = fs::read_dir(folder.folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn an_array_is_measured_and_left_as_it_was() {
    let array = Array::up(2, "1G");
    let named = "--array csd-array.toml --kernels count,vector-add,array-merge";
    let (profile, done) = characterize(&array, named);
    check_timed(&profile, "count", Where::Drive, (false, None));
    check_timed(&profile, "vector-add", Where::Drive, (true, None));
    check_timed(&profile, "array-merge", Where::Host, (false, None));
    for device in profile.device.values() {
        assert!(device.target.as_ref().unwrap().starts_with("nvme+tcp://"));
    }
    assert_eq!(array.csd(&["ls", "--all"]).expect(0, &[]).text(), "no objects\n");
    for drive in array.drives() {
        assert_eq!(drive["block_used_bytes"], 0, "{drive}");
    }
    // The log of every drive has the kernels' work.
    for drive in ["d0", "d1"] {
        let log = array.csd(&["drive", "log", drive, "--json"]).expect(0, &[]).json();
        let executions = log["result"]["drives"][0]["executions"].as_array().unwrap().clone();
        assert_eq!(executions.len(), 3 * 4 * 2, "kernels, 3 times and one for warmth, both ways");
        let newest = &executions[0];
        assert_eq!(
            (&newest["program"], &newest["status"]),
            (&Value::from("0x0000000000000003"), &Value::from(0))
        );
        assert_eq!(newest["read_bytes"], 64 << 10);
        let failed = array.csd(&["drive", "log", drive, "--failed", "--json"]);
        let failed = failed.expect(0, &[]).json();
        assert_eq!(failed["result"]["drives"][0]["executions"], Value::from(Vec::<Value>::new()));
    }
    // All drives at once: the host's limit is known only if the drives together were slowed down.
    let intake = &done.json()["result"]["intake"];
    assert_eq!(intake["drives"], 2);
    assert_eq!(intake["limited"], profile.host.ingest_bw_Bps.is_some());
    assert!(intake["read_Bps"].as_u64() > Some(0) && intake["alone_read_Bps"].as_u64() > Some(0));
}

#[test]
fn a_drive_that_must_not_be_written_is_only_read() {
    let array = Array::up(1, "256M");
    let (bytes, sevens) = small_i32(5, 300_000);
    array.file("x.bin", &bytes);
    array.csd(&["put", "x.bin", "x", "--type", "i32", "--on", "block"]).expect(0, &[]);
    let url = array.url(0);
    let drive = format!("--kernels count,array-merge,vector-add --drive {url}");
    let (profile, done) = characterize(&array, &drive);
    check_points(&profile, "count", Where::Drive, false);
    check_points(&profile, "vector-add", Where::Host, false);
    assert!(profile.point.iter().all(|point| point.kernel != "array-merge"));
    assert_eq!(profile.device["drive"].ext_write_Bps, None);
    let warnings = done.json()["warnings"].to_string();
    assert!(warnings.contains("array-merge needs data of its own"), "{warnings}");
    let count = array.csd(&["run", "count", "x", "--equal", "7", "--json"]).expect(0, &[]).json();
    assert_eq!(count["result"]["count"], sevens, "the object is untouched");
}

#[test]
fn burdens_of_the_host_are_points_of_their_own() {
    let folder = Array::without_drives();
    let burdens = "--media memory --overload cpu:2 --overload io:1";
    let (profile, _) = characterize(&folder, burdens);
    let kinds: Vec<_> = profile
        .point
        .iter()
        .filter_map(|point| Some((point.overload?.kind, point.overload?.rivals)))
        .collect();
    assert_eq!(kinds, [(OverloadKind::Cpu, Some(2)), (OverloadKind::Io, Some(1))]);
}

#[test]
fn a_host_without_memory_is_measured_or_says_why_not() {
    let folder = Array::without_drives();
    let arguments = "characterize --media memory --size 256K --cores 1 --repeat 1 --overload \
                     memory:128K -o p.toml";
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let done = folder.csd(&arguments);
    if done.code == 2 {
        assert!(done.stderr.contains("memory group") || done.stderr.contains("control groups"));
        eprintln!("skipped: {}", done.stderr);
        return;
    }
    done.expect(0, &[]);
    let profile = profile(&folder.path("p.toml"));
    let burdened = profile.point.iter().filter_map(|point| point.overload).next().unwrap();
    assert_eq!((burdened.kind, burdened.memory_bytes), (OverloadKind::Memory, Some(128 << 10)));
}

#[test]
fn wrong_use_is_said_before_anything_is_measured() {
    let folder = Array::without_drives();
    let csd = |line: &str| folder.csd(&line.split(' ').collect::<Vec<_>>());
    csd("characterize --kernels sort").expect(2, &["there is no kernel", "array-merge"]);
    csd("characterize -o no/such/p.toml").expect(2, &["there is no folder no/such"]);
    csd("characterize --drive nvme+tcp://127.0.0.1:1/nqn.x").expect(1, &["127.0.0.1:1"]);
    csd("drive log").expect(2, &["there is no array file"]);
    csd("run count x --equal 1 --profile p.toml").expect(2, &["there is no array file"]);
}

#[test]
fn model_time_is_the_same_twice_and_stands_apart_from_wall_time() {
    let array = Array::up(2, "1G");
    let (bytes, _) = small_i32(6, 1_500_000);
    array.file("x.bin", &bytes);
    array.csd(&["put", "x.bin", "x", "--type", "i32"]).expect(0, &[]);
    let golden = root("docs/internals/golden/profile/valid-measured.toml");
    let named = format!("{}:d0", golden.display());
    let model = || {
        let run = ["run", "count", "x", "--equal", "7", "--on", "all", "--json", "--profile"];
        let run: Vec<&str> = run.into_iter().chain([named.as_str()]).collect();
        array.csd(&run).expect(0, &[]).json()["result"]["model"].clone()
    };
    let first = model();
    assert_eq!(first, model());
    let runs = first["runs"].as_array().unwrap();
    let seconds = |run: usize, key: &str| runs[run][key].as_f64().unwrap();
    assert_eq!((&runs[0]["on"], &runs[1]["on"], runs.len()), (&"drives".into(), &"host".into(), 2));
    // In the golden file a drive loads 4 MB in 1 ms and computes on them in 3 ms, and Host(1) loads
    // them in 2 ms and computes in 1 ms. Of 6 MB in chunks of 1 MiB each drive has 3.
    let (most, all) = (f64::from(3u32 << 20) / 4e6, 6e6 / 4e6);
    assert!((seconds(0, "total_s") - most * 0.004).abs() < 1e-9, "{first}");
    assert!((seconds(1, "load_s") - most * 0.002).abs() < 1e-9, "{first}");
    assert!((seconds(1, "comp_s") - all * 0.001).abs() < 1e-9, "{first}");
}

#[test]
fn a_measured_profile_paces_a_drive() {
    let folder = Array::without_drives();
    characterize(&folder, "--media memory");
    let bad = ["drive", "serve", "--media", "memory", "--size", "256M", "--pace"];
    let with = |pace: &str| folder.csd(&[&bad[..], &[pace]].concat());
    with("no.toml").expect(1, &["profile no.toml"]);
    with("p.toml:other").expect(2, &["has no device \"other\": drive"]);
}

/// Returns the planner's interpreter, if it is installed.
fn planner() -> Option<String> {
    let named = std::env::var("CSDPLAN_PYTHON").ok();
    let beside = root(".venv/bin/python");
    let candidates = [named, Some(beside.to_string_lossy().into_owned())];
    candidates.into_iter().flatten().find(|python| {
        let asked = Command::new(python).args(["-c", "import csdplan.cli"]).output();
        asked.is_ok_and(|asked| asked.status.success())
    })
}

#[test]
fn the_planner_plans_from_what_was_measured() {
    let Some(python) = planner() else {
        eprintln!("skipped: csdplan is not installed (make test does, or set CSDPLAN_PYTHON)");
        return;
    };
    let folder = Array::without_drives();
    characterize(&folder, "--media memory --overload cpu:1");
    let mut bep = Command::new(python);
    bep.args(["-m", "csdplan", "bep", "--profile"]).arg(folder.path("p.toml"));
    let done = bep.args(["--kernel", "count", "--host-cores", "1", "--json"]).output().unwrap();
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{text}");
    let planned: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(planned["command"], "bep");
    assert!(planned["result"].to_string().contains("count"), "{planned}");
}
