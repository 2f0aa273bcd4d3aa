//! The operating system of a drive when something is killed: the drive, the door, the first
//! process, or the command that starts it.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::harness::{finish, signal, wait_until};
use crate::support::os::{Guest, OPTIONS, id, image, kill_drive, nothing_left, processes, skipped};

/// Appends numbered lines, and prints the number of each once it is durable.
const WRITER: &str = "\
import os
fd = os.open('/data/log', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
for number in range(4000):
    os.write(fd, b'%08d\\n' % number)
    os.fsync(fd)
    print(number, flush=True)
    if os.path.exists('/data/stop'): break
print('end', flush=True)
";

/// Writes and makes durable until that fails, and prints the name of the error.
const LOSER: &str = "\
import errno, os
fd = os.open('/data/b', os.O_WRONLY | os.O_CREAT, 0o644)
print('begun', flush=True)
try:
    while True:
        os.pwrite(fd, b'lost', 0)
        os.fsync(fd)
except OSError as error:
    print(errno.errorcode[error.errno])
";

#[test]
fn a_drive_killed_under_fsyncs_loses_nothing_and_the_program_goes_on() {
    if skipped() {
        return;
    }
    let mut guest = Guest::drive("media");
    guest.start(&["--retry", "10m"]).expect(0, &[]);
    let writing = guest.spawn(&["python3", "-c", WRITER]);
    let out = writing.output.path().join("out");
    let lines = || fs::read_to_string(&out).unwrap().lines().count();
    for _ in 0..2 {
        let before = lines();
        wait_until("it writes", || lines() > before + 20);
        kill_drive(&mut guest);
        guest.drive.start("media", &OPTIONS);
        assert_eq!(guest.write_outside(1000), 0x020, "protected from its start");
    }
    let before = lines();
    wait_until("it goes on", || lines() > before + 20);
    guest.sh("touch /data/stop").expect(0, &[]);
    let done = finish(writing).expect(0, &[]);
    let acknowledged = done.text().lines().count() - 1;
    assert!(done.text().ends_with("end\n"));
    let expected: String = (0..acknowledged).map(|number| format!("{number:08}\n")).collect();
    let log = || guest.exec(&["cat", "/data/log"]).expect(0, &[]).text();
    assert!(log() == expected, "as it ran");
    guest.down().expect(0, &[]);
    guest.start(&[]).expect(0, &[]);
    assert!(log() == expected, "and from the drive");
}

#[test]
fn a_drive_that_stays_away_fails_programs_and_status_says_why() {
    if skipped() {
        return;
    }
    let mut guest = Guest::drive("media");
    guest.start(&["--retry", "100ms"]).expect(0, &[]);
    guest.sh("echo kept > /data/a && sync /data/a").expect(0, &[]);
    let writing = guest.spawn(&["python3", "-c", LOSER]);
    let out = writing.output.path().join("out");
    wait_until("it writes", || fs::read_to_string(&out).unwrap().contains("begun"));
    kill_drive(&mut guest);
    let done = finish(writing).expect(0, &[]);
    assert!(done.text().ends_with("EIO\n"), "{done:?}");
    let status = guest.drive.array.csd(&["os", "status", &guest.url]);
    status.expect(4, &["the drive does not answer"]);
    let folder = guest.folder();
    let container = id(&folder);
    // All is removed from the machine; the drive is not there to be given back.
    guest.down().expect(4, &["hosts still cannot write its blocks", "csd os down"]);
    nothing_left(&folder, &container);
    guest.drive.start("media", &OPTIONS);
    assert_eq!(guest.write_outside(1000), 0x020);
    guest.start(&[]).expect(0, &[]);
    assert_eq!(guest.sh("cat /data/a").expect(0, &[]).text(), "kept\n");
    guest.down().expect(0, &[]);
    assert_eq!(guest.write_outside(1000), 0);
}

#[test]
fn a_program_that_waits_for_a_dead_drive_does_not_hold_up_the_end() {
    if skipped() {
        return;
    }
    let mut guest = Guest::drive("media");
    // The drive is waited for much longer than the end may take.
    guest.start(&["--retry", "10m"]).expect(0, &[]);
    let writing = guest.spawn(&["python3", "-c", LOSER]);
    let out = writing.output.path().join("out");
    wait_until("it writes", || fs::read_to_string(&out).unwrap().contains("begun"));
    kill_drive(&mut guest);
    let folder = guest.folder();
    let container = id(&folder);
    guest.down().expect(4, &["hosts still cannot write its blocks", "csd os down"]);
    nothing_left(&folder, &container);
    finish(writing);
    guest.drive.start("media", &OPTIONS);
}

#[test]
fn whatever_was_killed_down_leaves_nothing_and_up_starts_again() {
    if skipped() {
        return;
    }
    let guest = Guest::up(&[]);
    guest.sh("echo kept > /data/a && sync /data/a").expect(0, &[]);
    let folder = guest.folder();
    let pid = |file: &str| {
        let state: Value = serde_json::from_slice(&fs::read(folder.join(file)).unwrap()).unwrap();
        u32::try_from(state["init_process_pid"].as_u64().unwrap()).unwrap()
    };
    for victim in ["door", "first process", "both"] {
        let container = id(&folder);
        if victim != "first process" {
            processes(&folder).into_iter().for_each(|process| signal(process, Signal::KILL));
        }
        if victim != "door" {
            signal(pid(&format!("runc/{container}/state.json")), Signal::KILL);
        }
        wait_until("status tells", || {
            let status = guest.drive.array.csd(&["os", "status", &guest.url]);
            status.code == 4 && status.stderr.contains("has ended")
        });
        if victim == "both" {
            guest.down().expect(0, &[]);
            nothing_left(&folder, &container);
        }
        guest.down().expect(0, &[]);
        guest.start(&[]).expect(0, &[]);
        nothing_left(Path::new("/none"), &container);
        assert_eq!(guest.sh("cat /data/a").expect(0, &[]).text(), "kept\n", "{victim}");
    }
}

#[test]
fn a_stop_that_is_killed_at_any_step_is_finished_by_the_next() {
    if skipped() {
        return;
    }
    let guest = Guest::drive("memory");
    let folder = guest.drive.array.path("d0.inside.os");
    // A file or folder that goes in a step.
    for step in ["root/bin", "volume/data", "door/block", "config.json", "root"] {
        guest.start(&[]).expect(0, &[]);
        let container = id(&folder);
        let mut stopping = guest.drive.array.spawn(&["os", "down", &guest.url], Stdio::null());
        wait_until(step, || {
            let is_gone = folder.join(step).symlink_metadata().is_err();
            is_gone || stopping.child.try_wait().unwrap().is_some()
        });
        stopping.child.kill().unwrap();
        stopping.child.wait().unwrap();
        guest.down().expect(0, &[]);
        nothing_left(&guest.folder(), &container);
        assert!(!guest.is_inside_only(), "{step}");
    }
}

#[test]
fn a_start_that_is_killed_at_any_step_leaves_nothing_after_down() {
    if skipped() {
        return;
    }
    let guest = Guest::drive("memory");
    let folder = guest.drive.array.path("d0.inside.os");
    // A file or folder whose appearance is a step.
    for step in [
        "record.json",
        "door",
        "door/block",
        "volume/lost+found",
        "volume/root/work",
        "root/bin",
        "config.json",
        "runc",
    ] {
        let image = image();
        let up = ["os", "up", &guest.url, "--root", &image];
        let mut starting = guest.drive.array.spawn(&up, Stdio::null());
        wait_until(step, || {
            let is_there = folder.join(step).symlink_metadata().is_ok();
            is_there || starting.child.try_wait().unwrap().is_some()
        });
        starting.child.kill().unwrap();
        starting.child.wait().unwrap();
        let folder = guest.folder();
        let container = id(&folder);
        guest.down().expect(0, &[]);
        nothing_left(&folder, &container);
        assert!(!guest.is_inside_only(), "{step}");
    }
    guest.start(&[]).expect(0, &[]);
    guest.sh("echo a > /data/a").expect(0, &[]);
}
