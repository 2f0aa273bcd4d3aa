//! `csd attach`: a drive's blocks as a file, and the Unix socket of its inside.
//!
//! Tests that mount are skipped, in words, where FUSE or the right to mount is missing.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Signal;

use crate::support::drive::{Drive, NQN};
use crate::support::fuse::{Mounting, skipped};
use crate::support::harness::{Array, Done, signal, wait_until};
use crate::support::json_page::Page;
use crate::support::metrics::{free_address, scrape};

/// `csd attach` that runs, and its folder.
struct Attached(Mounting);

impl Attached {
    /// Attaches the drive of this URL to a new folder of the drive's array.
    fn new(drive: &Drive, url: &str, name: &str, options: &[&str]) -> Self {
        Self::of(&drive.array, url, name, options)
    }

    /// Attaches a drive, by its URL or its name in the array.
    fn of(array: &Array, drive: &str, name: &str, options: &[&str]) -> Self {
        let words = (&["attach", drive][..], name, options);
        Self(Mounting::start(array, words, |folder| folder.join("block").exists()))
    }

    fn open(&self) -> File {
        OpenOptions::new().read(true).write(true).open(self.0.folder.join("block")).unwrap()
    }

    fn end(&mut self) -> Done {
        self.0.end()
    }
}

#[test]
fn the_inside_is_a_socket_for_its_owner_that_speaks_all_commands() {
    let mut drive = Drive::serve("memory", &["--inside", "inside"]);
    let socket = drive.array.path("inside");
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let url = drive.inside_url("inside");
    let status = drive.array.csd(&["drive", "status", &url, "--json"]).expect(0, &[]).json();
    assert_eq!(status["result"]["drives"][0]["drive"], url.as_str());
    drive.array.file("v", b"value");
    drive.array.csd(&["kv", "put", "v", "--drive", &url]).expect(0, &[]);
    let got = drive.array.csd(&["kv", "get", "v", "--drive", &drive.url()]).expect(0, &[]);
    assert_eq!(got.stdout, b"value");
    drive.stop().expect(0, &[]);
    assert!(!socket.exists(), "the socket goes with its drive");
    let gone = drive.array.csd(&["drive", "status", &url]).expect(1, &["cannot be reached"]);
    assert!(gone.stderr.contains(socket.to_str().unwrap()), "{}", gone.stderr);
}

#[test]
fn a_path_that_can_be_no_socket_is_refused() {
    let drive = Drive::serve("memory", &[]);
    drive.array.file("taken", b"bytes");
    let serve = ["drive", "serve", "--media", "memory", "--size", "64M", "--listen", "127.0.0.1:0"];
    let with = |path: &str| drive.array.csd(&[&serve[..], &["--inside", path]].concat());
    with("taken").expect(1, &["cannot listen on", "taken", "--inside"]);
    with(&"x".repeat(200)).expect(2, &["at most 107 bytes"]);
    with("/tmp/nqn.x/s").expect(2, &["begins with \"nqn.\""]);
    assert_eq!(std::fs::read(drive.array.path("taken")).unwrap(), b"bytes");
}

#[test]
fn a_drive_of_an_array_is_attached_by_its_name() {
    if skipped() {
        return;
    }
    let array = Array::up(2, "128M");
    array.csd(&["attach", "d7", "folder"]).expect(2, &["d7"]);
    let doors = ["d0", "d1"].map(|name| Attached::of(&array, name, name, &[]));
    doors[0].open().write_all_at(b"of d0", 5000).unwrap();
    let url = array.url(0);
    let same = Attached::of(&array, &url, "same", &[]);
    for (door, bytes) in [(&same, b"of d0"), (&doors[1], &[0; 5])] {
        let mut seen = [1; 5];
        door.open().read_exact_at(&mut seen, 5000).unwrap();
        assert_eq!(&seen, bytes, "{}", door.0.folder.display());
    }
}

#[test]
fn two_doors_see_each_others_bytes_at_once() {
    if skipped() {
        return;
    }
    let metrics = free_address();
    let options = ["--inside", "inside", "--metrics", &metrics.to_string()];
    let mut drive = Drive::serve("memory", &options);
    let mut doors = [
        Attached::new(&drive, &drive.url(), "host", &[]),
        Attached::new(&drive, &drive.inside_url("inside"), "guest", &["--json"]),
    ];
    let [host, guest] = [doors[0].open(), doors[1].open()];
    let bytes = host.metadata().unwrap().len();
    assert_eq!(bytes, guest.metadata().unwrap().len());
    assert!(bytes > 1 << 20);
    // Bytes, not blocks; read through the other door before and after, so that a cache would show.
    for (index, offset) in [0, 4095, 1 << 20, bytes - 3].into_iter().enumerate() {
        let mut seen = [1; 3];
        guest.read_exact_at(&mut seen, offset).unwrap();
        assert_eq!(seen, [0; 3], "nothing is there yet");
        let word = [b'a' + u8::try_from(index).unwrap(); 3];
        host.write_all_at(&word, offset).unwrap();
        guest.read_exact_at(&mut seen, offset).unwrap();
        assert_eq!(seen, word, "at {offset}");
    }
    host.sync_all().unwrap();
    assert_eq!(guest.read_at(&mut [0; 8], bytes).unwrap(), 0, "the end of the file");
    assert_eq!(host.write_at(&[1; 8], bytes - 4).unwrap(), 4, "cut at the end");
    assert_eq!(host.write_at(&[1], bytes).unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    assert!(host.set_len(bytes - 1).is_err());
    // Opened as `dd` and `cp` open their output.
    drop(
        OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(doors[1].0.folder.join("block"))
            .unwrap(),
    );
    let mut first = [0; 3];
    host.read_exact_at(&mut first, 0).unwrap();
    assert_eq!(&first, b"aaa", "truncation changes nothing");
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&guest, punch, 0, 8192).unwrap();
    host.read_exact_at(&mut first, 0).unwrap();
    assert_eq!(first, [0; 3], "a hole reads as zeros");
    assert!(fallocate(&guest, FallocateFlags::COLLAPSE_RANGE, 0, 4096).is_err());
    let page = scrape(metrics, "GET /metrics HTTP/1.1\r\n\r\n");
    for (op, side) in [("write", "outside"), ("read", "inside"), ("flush", "outside")] {
        let name =
            format!("csd_commands_total{{namespace=\"block\",op=\"{op}\",side=\"{side}\"}} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&name)).expect(&name);
        assert!(line.parse::<u64>().unwrap() > 0, "{name}{line}");
    }
    drop((host, guest));
    // One ends by a signal, one by its unmounting.
    signal(doors[0].0.running.as_ref().unwrap().child.id(), Signal::TERM);
    unmount(&doors[1].0.folder, UnmountFlags::empty()).unwrap();
    let [_, done] = doors.each_mut().map(|door| {
        let done = door.end().expect(0, &[]);
        assert!(!door.0.folder.join("block").exists());
        done
    });
    let said = done.json();
    let wrong = Page::read().wrong("attach", "csd attach", &said["result"]);
    assert!(wrong.is_empty() && said["result"]["bytes"] == bytes, "{wrong:?} {said}");
    drive.stop().expect(0, &[]);
}

#[test]
fn io_waits_for_a_killed_drive_and_fails_when_it_stays_away() {
    if skipped() {
        return;
    }
    let mut drive = Drive::serve("media", &["--inside", "inside"]);
    let patient =
        Attached::new(&drive, &drive.inside_url("inside"), "patient", &["--retry", "10m"]);
    let hasty = Attached::new(&drive, &drive.inside_url("inside"), "hasty", &["--retry", "0"]);
    let file = patient.open();
    file.write_all_at(&[5; 10_000], 123).unwrap();
    file.sync_all().unwrap();
    drive.kill();
    // The first read notices that the drive is gone; with no patience, it fails.
    let error = hasty.open().read_at(&mut [0; 8], 0).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    let reading = std::thread::spawn(move || {
        let mut bytes = vec![0; 10_000];
        file.read_exact_at(&mut bytes, 123).map(|()| bytes)
    });
    drive.start("media", &["--inside", "inside"]);
    assert!(reading.join().unwrap().unwrap() == [5; 10_000], "what was synced is there");
    wait_until("the hasty one goes on, too", || hasty.open().read_at(&mut [0; 8], 0).is_ok());
}

#[test]
fn a_killed_attach_leaves_a_folder_that_the_next_one_takes_over() {
    if skipped() {
        return;
    }
    let drive = Drive::serve("memory", &[]);
    let mut first = Attached::new(&drive, &drive.url(), "folder", &[]);
    first.open().write_all_at(b"kept", 0).unwrap();
    let mut running = first.0.running.take().unwrap();
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let second = Attached::new(&drive, &drive.url(), "folder", &[]);
    let mut bytes = [0; 4];
    second.open().read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"kept");
    let direct = OFlags::RDWR | OFlags::DIRECT;
    let opened = rustix::fs::open(second.0.folder.join("block"), direct, rustix::fs::Mode::empty());
    assert!(opened.is_ok(), "{opened:?}");
}

#[test]
fn a_block_device_takes_the_kernels_driver() {
    let mut drive = Drive::serve("memory", &[]);
    let url = drive.url();
    drive.array.csd(&["attach", &url]).expect(2, &["FOLDER"]);
    drive.array.csd(&["attach", &url, ".", "--ublk"]).expect(2, &["--ublk"]);
    if OpenOptions::new().read(true).write(true).open("/dev/ublk-control").is_ok() {
        eprintln!("SKIPPED: this kernel has the driver; tests/vm attaches by it");
    } else {
        let words = ["csd attach --ublk needs", "/dev/ublk-control"];
        let refused = drive.array.csd(&["attach", &url, "--ublk"]).expect(2, &words);
        assert_eq!(refused.stderr.trim().lines().count(), 1, "{}", refused.stderr);
    }
    drive.stop().expect(0, &[]);
}

#[test]
fn what_cannot_be_attached_is_refused_in_words() {
    let mut drive = Drive::serve("memory", &["--expose", "kv"]);
    let url = drive.url();
    drive.array.file("file", b"");
    let attach = |url: &str, folder: &str, code: i32, words: &[&str]| {
        drive.array.csd(&["attach", url, folder]).expect(code, words);
    };
    attach("d0", ".", 2, &["csd-array.toml"]);
    attach("nvme+unix://x/nqn.y", ".", 2, &["begins with /"]);
    attach(&url, "none", 1, &["none"]);
    attach(&url, "file", 2, &["file: not a folder"]);
    if !skipped() {
        attach(&url, ".", 2, &["namespace 1 is no block namespace"]);
        let gone = format!("nvme+unix:///none.sock/{NQN}");
        attach(&gone, ".", 1, &["cannot be reached", "/none.sock"]);
    }
    drive.array.csd(&["attach", &url, ".", "--retry", "1h"]).expect(2, &["30s"]);
    let served = drive.stop().expect(0, &[]).text();
    let named = |nsid: u32| served.contains(&format!("nsid={nsid}"));
    assert!(named(2) && named(3) && !named(1) && !named(5), "what hosts see: {served}");
}
