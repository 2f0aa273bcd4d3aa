//! Commands that are ended from outside: what they started ends with them, and leaves no file.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::harness::{Array, alive, finish, signal, wait_until};

/// Returns the processes that this one has started and that still run.
fn children(pid: u32) -> Vec<u64> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let listed = listed.expect("the kernel lists a process's children");
    listed.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// Returns true if a process has a socket that is connected: it listens with one, and serves with
/// others.
fn is_connected(pid: u64) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let names = files.filter_map(|file| fs::read_link(file.path()).ok());
    names.filter(|name| name.to_string_lossy().starts_with("socket:")).count() > 2
}

/// Returns true if this process ignores a signal, and so do the commands that it starts: a shell
/// starts commands in the background so.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

#[test]
fn a_characterization_leaves_neither_its_drive_nor_a_file() {
    for ended_by in [Signal::TERM, Signal::INT, Signal::HUP, Signal::KILL] {
        if is_ignored(ended_by) {
            eprintln!("SKIPPED: {ended_by:?} is ignored here");
            continue;
        }
        let folder = Array::without_drives();
        fs::create_dir(folder.path("scratch")).unwrap();
        let long = "characterize --kernels count --size 64M --repeat 500 --dir scratch -o p.toml";
        let running = folder.spawn(&long.split(' ').collect::<Vec<_>>(), Stdio::null());
        let pid = running.child.id();
        let mut drives = Vec::new();
        wait_until("the drive serves, and is measured", || {
            drives = children(pid);
            drives.iter().any(|drive| is_connected(*drive))
        });
        signal(pid, ended_by);
        assert_ne!(finish(running).code, 0);
        wait_until("the drive has ended, too", || !drives.iter().any(|drive| alive(*drive)));
        let left: Vec<_> = fs::read_dir(folder.path("scratch")).unwrap().collect();
        assert!(left.is_empty(), "{ended_by:?}: {left:?}");
        assert!(!folder.path("p.toml").exists());
    }
}

/// After a kill its objects stay, and their names say what they were for.
#[test]
fn a_characterization_of_an_array_leaves_no_object_unless_it_is_killed() {
    let array = Array::up(2, "1G");
    let names = || array.csd(&["ls", "--all"]).expect(0, &[]).text();
    // Ended while the first object is put, and while it is measured.
    for (ended_by, kernels) in [
        (Signal::TERM, "count,vector-add,array-merge"),
        (Signal::INT, "count"),
        (Signal::HUP, "count"),
        (Signal::KILL, "count"),
    ] {
        let long = format!(
            "characterize --array csd-array.toml --kernels {kernels} --size 16M --repeat 500"
        );
        let running = array.spawn(&long.split(' ').collect::<Vec<_>>(), Stdio::null());
        wait_until("an object is there", || names().contains("characterize-"));
        signal(running.child.id(), ended_by);
        let done = finish(running);
        if ended_by == Signal::KILL {
            assert!(names().contains("characterize-"), "{}", names());
        } else {
            done.expect(1, &["interrupted"]);
            assert_eq!(names(), "no objects\n", "{ended_by:?}");
        }
    }
    let left = array.csd(&["ls", "characterize-", "--all", "--json"]).expect(0, &[]).json();
    for object in left["result"]["objects"].as_array().unwrap() {
        array.csd(&["rm", object["name"].as_str().unwrap()]).expect(0, &[]);
    }
    assert_eq!(names(), "no objects\n");
}
