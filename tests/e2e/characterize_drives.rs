//! Subjects of a characterization: every drive of an array, drives of other makers, drives with
//! secrets; and sources of energies. Does not check times.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use csd_measure::profile::{Source, Where};
use rustix::fs::{CWD, Mode, mkfifoat};

use crate::support::characterize::{characterize, check_points, profile};
use crate::support::drive::Drive;
use crate::support::harness::Array;
use crate::support::secrets::{HOST, new_secret, secrets_file};
use crate::support::third_party;

/// The array's drives become devices: one device with the runs of both if they did not differ, else
/// one each. Which of the two depends on the machine.
#[test]
fn every_drive_of_an_array_counts() {
    let array = Array::up(2, "256M");
    let (profile, done) = characterize(&array, "--array csd-array.toml --device x");
    let names: Vec<_> = profile.device.keys().map(String::as_str).collect();
    let cells = done.json()["result"]["cells"].as_array().unwrap().clone();
    let runs = |name: &str| {
        let points = profile.point.iter().filter(|point| point.device == name);
        points.map(|point| point.load_s.n.unwrap()).collect::<Vec<_>>()
    };
    match names[..] {
        ["x"] => {
            assert_eq!((runs("x"), cells.len()), (vec![6, 6], 2));
            let note = profile.device["x"].note.as_ref().unwrap();
            assert!(note.ends_with("2 drives that do not differ: d0, d1"), "{note}");
        }
        ["x-d0", "x-d1"] => {
            assert_eq!((runs("x-d0"), runs("x-d1"), cells.len()), (vec![3, 3], vec![3, 3], 4));
            let target = |name: &str| profile.device[name].target.clone().unwrap();
            assert_ne!(target("x-d0"), target("x-d1"));
        }
        _ => panic!("{names:?}"),
    }
}

#[test]
fn drives_of_an_array_that_differ_are_told_apart() {
    let array = Array::up(2, "256M");
    // A second drive slower than any machine: 1 MB/s to the host, and a second for each 64 KiB.
    let slow_profile = "schema = 1\n[meta]\nmachine = \"slow\"\n[host]\ncores = 1\n[device.slow]\n\
                  ext_read_Bps = 1000000\n[[point]]\nkernel = \"count\"\nwhere = \"drive\"\n\
                  device = \"slow\"\nunits = 1\nbytes = 65536\noverlap = \"serial\"\n\
                  load_s = { median = 0.2 }\ncomp_s = { median = 0.2 }\nprov = \"given\"\n";
    array.file("slow.toml", slow_profile.as_bytes());
    let mut slow = Drive { array: Array::without_drives(), running: None };
    slow.array.file("slow.toml", slow_profile.as_bytes());
    slow.start("memory", &["--pace", "slow.toml"]);
    let url = slow.url();
    let file = fs::read_to_string(array.path("csd-array.toml")).unwrap();
    let second = array.url(1);
    array.file("mixed.toml", file.replace(&second, &url).as_bytes());
    let (profile, done) = characterize(&array, "--array mixed.toml");
    let names: Vec<_> = profile.device.keys().map(String::as_str).collect();
    assert_eq!(names, ["drive-d0", "drive-d1"]);
    let slow = &profile.device["drive-d1"];
    assert_eq!(slow.target.as_deref(), Some(&*url));
    assert!(slow.ext_read_Bps.unwrap() <= 1_000_000, "{slow:?}");
    for point in &profile.point {
        assert!(point.load_s.n == Some(3), "{point:?}");
    }
    let cells = done.json()["result"]["cells"].to_string();
    assert!(cells.contains("drive-d0") && cells.contains("drive-d1"), "{cells}");
}

#[test]
fn a_drive_that_is_down_is_left_out_in_words() {
    let array = Array::up(3, "256M");
    array.kill(1);
    let (profile, done) = characterize(&array, "--array csd-array.toml");
    let warnings = done.json()["warnings"].to_string();
    assert!(warnings.contains("drive d1 (") && warnings.contains("is down"), "{warnings}");
    assert_eq!(done.json()["result"]["intake"]["drives"], 2);
    assert!(profile.device.keys().all(|name| !name.contains("d1")));
}

#[test]
fn a_drive_of_another_maker_gives_the_hosts_side_in_words() {
    let folder = Array::without_drives();
    let url = third_party::serve_blocks();
    let drive = format!("--drive {url} --device ssd --kernels count,vector-add,array-merge");
    let (profile, done) = characterize(&folder, &drive);
    check_points(&profile, "count", Where::Host, false);
    check_points(&profile, "vector-add", Where::Host, false);
    assert!(profile.point.iter().all(|point| point.r#where == Where::Host));
    let device = &profile.device["ssd"];
    assert!(
        device.ext_read_Bps.is_some() && device.note.as_ref().unwrap().contains(third_party::MODEL)
    );
    assert_eq!((device.int_read_Bps, device.ext_write_Bps), (None, None));
    assert_eq!((&device.target, device.capacity_bytes), (&Some(url), Some(16 << 20)));
    let warnings = done.json()["warnings"].to_string();
    for words in ["no compute namespace", "left out are kernels in the drive", "was only read"] {
        assert!(warnings.contains(words), "{words:?} is not in {warnings}");
    }
    let large =
        format!("characterize --drive {} --size 32M -o p.toml", third_party::serve_blocks());
    let large: Vec<&str> = large.split(' ').collect();
    folder.csd(&large).expect(2, &["namespace 1 of the drive has 16777216 bytes"]);
}

/// Answers each reading of a counter of energy, a named pipe, until one that comes when it is
/// `over`. The readings that find the counter and measure the power at rest draw 1 uJ each, and all
/// later ones 1 J each: a measurement draws more than the time at rest, whatever time either takes.
fn count_energy(zone: &Path, over: &AtomicBool) {
    const RANGE_UJ: u64 = 1_000_000_000;
    const AT_REST: u32 = 3;
    let (counter, next) = (zone.join("energy_uj"), zone.join("next"));
    let mut drawn_uj = RANGE_UJ - 1;
    for reading in 0.. {
        let mut reader = File::options().write(true).open(&counter).unwrap();
        // The next reader has a pipe of its own, or it might take what is for this one.
        mkfifoat(CWD, &next, Mode::RUSR | Mode::WUSR).unwrap();
        fs::rename(&next, &counter).unwrap();
        write!(reader, "{}", drawn_uj % RANGE_UJ).unwrap();
        if over.load(Ordering::Relaxed) {
            return;
        }
        drawn_uj += if reading < AT_REST { 1 } else { 1_000_000 };
    }
}

/// Simulates a tree of the processor's energy counters, which a thread increases.
#[test]
fn energies_are_the_processors_where_it_counts_them_and_say_so() {
    let folder = Array::without_drives();
    let zone = folder.path("powercap/intel-rapl:0");
    fs::create_dir_all(&zone).unwrap();
    fs::write(zone.join("name"), "package-0\n").unwrap();
    fs::write(zone.join("max_energy_range_uj"), "1000000000\n").unwrap();
    let counter = zone.join("energy_uj");
    mkfifoat(CWD, &counter, Mode::RUSR | Mode::WUSR).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&over);
    let counting = std::thread::spawn(move || count_energy(&zone, &stop));
    let (profile, done) = characterize(&folder, "--media memory --powercap powercap");
    over.store(true, Ordering::Relaxed);
    fs::read(counter).unwrap();
    counting.join().unwrap();
    for point in &profile.point {
        let energy = point.energy_J.as_ref().unwrap();
        assert_eq!((energy.source, energy.n), (Source::Rapl, Some(3)), "{point:?}");
    }
    let words = "energies: counters of 1 processor package (RAPL), less ";
    assert!(done.json()["result"]["energy"].as_str().unwrap().starts_with(words));
    assert!(profile.meta.note.as_ref().unwrap().contains(words));

    // Without counters: the given watts, or no energy; both with the reason.
    let with = |more: &str| characterize(&folder, &format!("--media memory --powercap no {more}"));
    let (profile, done) = with("--core-watts 10");
    let text = done.json()["result"]["energy"].as_str().unwrap().to_owned();
    assert!(text.contains("CPU seconds") && text.contains("counts its energy in no"), "{text}");
    let energies = profile.point.iter().filter_map(|point| point.energy_J.as_ref());
    assert_eq!(energies.map(|e| e.source).collect::<Vec<_>>(), [Source::CpuSeconds]);
    let (profile, _) = with("");
    assert!(profile.point.iter().all(|point| point.energy_J.is_none()));
    assert!(profile.meta.note.unwrap().contains("energies: none (no processor counts"));
}

#[test]
fn drives_and_their_hosts_with_secrets_are_measured() {
    let folder = Array::without_drives();
    let host = new_secret(&folder, &["--nqn", HOST]);
    let controller = format!("controller {}", new_secret(&folder, &["--hash", "512"]));
    secrets_file(&folder, "secrets", &[host, controller]);
    // The started drive requires authentication, and so does the process with too little memory.
    characterize(&folder, "--media memory --secrets secrets");
    let burden = "characterize --media memory --size 256K --cores 1 --repeat 1 --overload \
                  memory:128K -o p.toml --secrets secrets";
    let done = folder.csd(&burden.split_whitespace().collect::<Vec<_>>());
    if done.code == 2 {
        assert!(done.stderr.contains("memory group") || done.stderr.contains("control groups"));
        eprintln!("skipped: {}", done.stderr);
        return;
    }
    done.expect(0, &[]);
    let profile = profile(&folder.path("p.toml"));
    assert!(profile.point.iter().any(|point| point.overload.is_some()));
}
