//! Media: findings of a check, effects of damage, and the media that a drive accepts.

use std::fs;
use std::os::unix::fs::FileExt;

use serde_json::Value;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use csd_tests::wire::Command;

use crate::support::drive::{Drive, kv};
use crate::support::harness::{Array, wait_until};

/// Fills a drive with values of 3,000 bytes, and stops it.
fn filled() -> Drive {
    let mut drive = Drive::serve("m", &[]);
    let (_admin, mut io) = drive.connect();
    for number in 0..100u32 {
        let value = vec![u8::try_from(number).unwrap(); 3000];
        let store = kv(0x01, &number.to_be_bytes(), 3000);
        assert_eq!(io.command_in_capsule(store, &value).status, 0);
    }
    assert_eq!(io.command(kv(0x10, &5u32.to_be_bytes(), 0), &[], 0).status, 0, "Delete");
    drop(io);
    drive.stop().expect(0, &[]);
    drive
}

#[test]
fn a_look_at_media_counts_what_is_there_and_changes_nothing() {
    let drive = filled();
    let before = fs::read(drive.array.path("m")).unwrap();
    let done = drive.array.csd(&["drive", "check", "m", "--json"]).expect(0, &[]);
    let found = &done.json()["result"];
    let sum = |name: &str| -> u64 {
        found["shards"].as_array().unwrap().iter().map(|s| s[name].as_u64().unwrap()).sum()
    };
    assert_eq!((sum("keys"), sum("value_bytes")), (99, 99 * 3000), "{found}");
    assert_eq!((sum("records"), sum("damage")), (101, 0), "{found}");
    assert_eq!(found["damage"], serde_json::json!([]));
    let text = drive.array.csd(&["drive", "check", "m"]).expect(0, &[]).text();
    assert!(text.starts_with("no damage; format version 2"), "{text}");
    assert!(fs::read(drive.array.path("m")).unwrap() == before);
    drive.array.csd(&["drive", "check", "gone"]).expect(1, &["gone"]);
    drive.array.file("other", &[7; 1 << 20]);
    drive.array.csd(&["drive", "check", "other"]).expect(1, &["no CSDStore superblock"]);
}

#[test]
fn damage_is_found_wherever_it_is() {
    let mut drive = filled();
    // Recovery seals the segments that the first life left open: from then on all of it must be
    // sound.
    drive.start("m", &[]);
    drive.array.csd(&["drive", "check", "m"]).expect(1, &["in use"]);
    drive.stop().expect(0, &[]);
    drive.array.csd(&["drive", "check", "m"]).expect(0, &[]);
    let path = drive.array.path("m");
    let bytes = fs::read(&path).unwrap();
    let find = |needle: &[u8]| {
        let at = bytes[1 << 20..].windows(needle.len()).position(|window| window == needle);
        (1 << 20) + at.expect("it is there")
    };
    // A copy of the superblock, a segment's header, a record's header, a value.
    for (at, words) in [
        (60, "superblock at 0"),
        ((512 << 10) + 20, "superblock at 524288"),
        (find(b"CSEG") + 33, "header (checksum)"),
        (find(b"CREC") + 30, "no record at"),
        (find(&[42; 3000]) + 1500, "its value (checksum)"),
    ] {
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[bytes[at] ^ 0x10], at as u64).unwrap();
        let done = drive.array.csd(&["drive", "check", "m", "--json"]).expect(1, &[]);
        let error = &done.json()["error"];
        let damage = error["detail"]["damage"].to_string();
        assert!(damage.contains(words), "{words:?} is not in {error}");
        file.write_all_at(&[bytes[at]], at as u64).unwrap();
    }
    drive.array.csd(&["drive", "check", "m"]).expect(0, &[]);
}

/// Returns a stopped drive whose value of key 42 has another last byte.
fn with_damaged_value() -> Drive {
    let mut drive = filled();
    let path = drive.array.path("m");
    drive.start("m", &[]);
    drive.stop().expect(0, &[]);
    let bytes = fs::read(&path).unwrap();
    let at = bytes.windows(3000).position(|window| window == [42; 3000]).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[43], at as u64 + 2999).unwrap();
    drive
}

#[test]
fn a_damaged_value_is_an_error_to_a_host_and_the_others_are_there() {
    let mut drive = with_damaged_value();
    drive.start("m", &[]);
    let (_admin, mut io) = drive.connect();
    for number in 0..100u32 {
        // The first bytes are right, but the rest is needed to verify them.
        let size = if number % 2 == 0 { 100 } else { 3000 };
        let reply = io.command(kv(0x02, &number.to_be_bytes(), size), &[], size as usize);
        match number {
            5 => assert_eq!(reply.status, 0x87),
            42 => assert_eq!(reply.status, 0x88, "unrecovered error"),
            _ => assert!(
                reply.status == 0 && reply.data == vec![number.to_le_bytes()[0]; size as usize]
            ),
        }
    }
}

#[test]
fn a_drive_that_scrubs_itself_logs_the_damaged_value_and_no_other() {
    let mut drive = with_damaged_value();
    drive.start("m", &["--scrub", "1G", "--log-file", "log", "--log", "json"]);
    let log = drive.array.path("log");
    let damage = || {
        let log = fs::read_to_string(&log).unwrap_or_default();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["event"] == "damage at rest").collect::<Vec<_>>()
    };
    // The second pass has ended the first.
    wait_until("two passes", || damage().len() > 1);
    drive.stop().expect(0, &[]);
    let key = "\\x00\\x00\\x00*";
    assert!(
        damage().iter().all(|line| line["nsid"] == "2" && line["key"] == key),
        "{:?}",
        damage()
    );
}

#[test]
fn damage_behind_a_seal_is_refused_and_what_is_whole_can_be_salvaged() {
    let mut drive = filled();
    drive.start("m", &[]);
    drive.stop().expect(0, &[]);
    let path = drive.array.path("m");
    let whole = fs::read(&path).unwrap();
    let value = whole.windows(3000).position(|window| window == [42; 3000]).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let serve = ["drive", "serve", "--media", "m", "--listen", "127.0.0.1:0"];
    drive.array.csd(&["drive", "serve", "--media", "memory", "--salvage"]).expect(2, &["salvage"]);

    // A segment's header: without it the segment would be taken for free, and overwritten.
    let header = (1 << 20) + whole[1 << 20..].windows(4).position(|four| four == b"CSEG").unwrap();
    file.write_all_at(&[whole[header + 33] ^ 1], header as u64 + 33).unwrap();
    let words = ["the medium is damaged", "its header (checksum)", "--salvage"];
    drive.array.csd(&serve).expect(1, &words);
    file.write_all_at(&[whole[header + 33]], header as u64 + 33).unwrap();

    // A record's header that no intact checkpoint lists: without it the keys after it would be lost
    // silently.
    let records = whole.windows(25).enumerate().filter(|(_, bytes)| bytes.starts_with(b"CREC"));
    for (checkpoint, _) in records.filter(|(_, bytes)| matches!(bytes[24], 4 | 5)) {
        file.write_all_at(&[whole[checkpoint + 30] ^ 1], checkpoint as u64 + 30).unwrap();
    }
    file.write_all_at(&[whole[value - 16] ^ 1], value as u64 - 16).unwrap();
    let damaged = fs::read(&path).unwrap();
    drive.array.csd(&serve).expect(1, &["the medium is damaged", "no record at", "--salvage"]);
    drive.array.csd(&["drive", "check", "m"]).expect(1, &["no record at", "checkpoint at"]);
    drive.start("m", &["--salvage"]);
    let (_admin, mut io) = drive.connect();
    for number in 0..100u32 {
        let reply = io.command(kv(0x02, &number.to_be_bytes(), 3000), &[], 3000);
        match number {
            5 | 42 => assert_eq!(reply.status, 0x87, "deleted, or lost"),
            _ => assert_eq!(reply.data, vec![number.to_le_bytes()[0]; 3000]),
        }
    }
    assert_eq!(io.command_in_capsule(kv(0x01, b"new", 100), &[1; 100]).status, 0x020);
    assert_eq!(io.command(kv(0x10, &7u32.to_be_bytes(), 0), &[], 0).status, 0x020);
    let write = Command::new(0x01, 1).dword(10, 3);
    assert_eq!(io.command_in_capsule(write, &[1; 4096]).status, 0x020);
    drop(io);
    let done = drive.stop().expect(0, &[]);
    assert!(done.stderr.contains("damage was passed over"), "{}", done.stderr);
    assert!(fs::read(&path).unwrap() == damaged, "nothing was written");
}

#[test]
fn another_format_version_is_refused_in_words_and_left_alone() {
    let drive = filled();
    let path = drive.array.path("m");
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    for copy in [0, 512 << 10] {
        file.write_all_at(&3u32.to_le_bytes(), copy + 8).unwrap();
    }
    let before = fs::read(&path).unwrap();
    let words = ["its format version is 3, this program reads versions 1 to 2"];
    let serve = ["drive", "serve", "--media", "m", "--size", "128M", "--listen", "127.0.0.1:0"];
    drive.array.csd(&serve).expect(1, &words);
    drive.array.csd(&["drive", "check", "m"]).expect(1, &words);
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn a_drive_says_whether_it_uses_direct_io_and_works_either_way() {
    for (mode, said) in [("off", "direct I/O off, as asked for"), ("auto", "direct I/O ")] {
        let mut drive = Drive::serve("m", &["--direct", mode, "--block", "512"]);
        let (_admin, mut io) = drive.connect();
        let block = [0xA5; 512];
        let write = Command::new(0x01, 1).dword(10, 3);
        assert_eq!(io.command_in_capsule(write, &block).status, 0);
        let value: Vec<u8> = (0..200_001u32).map(|i| i.to_le_bytes()[0]).collect();
        assert_eq!(io.command(kv(0x01, b"v", 200_001), &value, 0).status, 0);
        assert!(io.command(Command::new(0x02, 1).dword(10, 3), &[], 512).data == block);
        assert!(io.command(kv(0x02, b"v", 1 << 18), &[], 1 << 18).data == value);
        drop(io);
        let done = drive.stop().expect(0, &[]);
        assert!(done.text().contains(said), "{}", done.text());
    }
    let array = Array::without_drives();
    let serve = ["drive", "serve", "--media", "memory", "--listen", "127.0.0.1:0"];
    array.csd(&serve).expect(2, &["use --size"]);
}

/// Loop device, detached on drop.
struct Loop(String);

impl Loop {
    /// Makes a loop device over a file; `None` if this user may not.
    fn over(file: &std::path::Path) -> Option<Self> {
        let mut losetup = std::process::Command::new("losetup");
        let made = losetup.args(["--find", "--show"]).arg(file).output().ok()?;
        let name = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        (made.status.success() && !name.is_empty()).then_some(Self(name))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _detached = std::process::Command::new("losetup").args(["-d", &self.0]).status();
    }
}

#[test]
fn a_block_device_is_a_medium_for_one_drive_and_never_taken_from_somebody_else() {
    let array = Array::without_drives();
    fs::File::create(array.path("disk")).unwrap().set_len(160 << 20).unwrap();
    let Some(device) = Loop::over(&array.path("disk")) else {
        return eprintln!("SKIPPED: this user may make no loop device");
    };
    let serve = ["drive", "serve", "--listen", "127.0.0.1:0", "--media", &device.0];
    let with = |more: &[&'static str]| array.csd(&[&serve[..], more].concat());
    with(&["--size", "1G"]).expect(2, &["has 160 MiB, not 1024"]);
    let mut drive = Drive::serve(&device.0, &[]);
    let (_admin, mut io) = drive.connect();
    let value = vec![9; 5000];
    assert_eq!(io.command_in_capsule(kv(0x01, b"k", 5000), &value).status, 0);
    with(&[]).expect(1, &[&device.0, "busy"]);
    drop(io);
    drive.stop().expect(0, &[]);
    let found = array.csd(&["drive", "check", &device.0, "--json"]).expect(0, &[]).json();
    // The drive keeps the `--size` of the first start.
    assert_eq!(found["result"]["bytes"], 128 << 20, "{found}");
    drive.start(&device.0, &[]);
    let (_admin, mut io) = drive.connect();
    assert!(io.command(kv(0x02, b"k", 5000), &[], 5000).data == value);
    drop(io);
    drive.stop().expect(0, &[]);

    // A partition table, and damage of the second superblock too.
    let disk = fs::OpenOptions::new().write(true).open(&device.0).unwrap();
    disk.write_all_at(&[0; 1 << 20], 0).unwrap();
    disk.write_all_at(b"EFI PART", 512).unwrap();
    disk.sync_all().unwrap();
    drop(disk);
    with(&[]).expect(1, &["no CSDStore superblock"]);
    let mut head = [0; 8];
    fs::File::open(&device.0).unwrap().read_exact_at(&mut head, 512).unwrap();
    assert_eq!(&head, b"EFI PART");
}

#[test]
fn a_limit_of_file_size_fails_writes_and_not_the_drive() {
    for backend in ["uring", "epoll"] {
        let mut drive = Drive::serve("m", &["--backend", backend]);
        let (_admin, mut io) = drive.connect();
        let pid = drive.running.as_ref().unwrap().child.id();
        let pid = Pid::from_raw(i32::try_from(pid).unwrap());
        let limit = |bytes| {
            let limit = Rlimit { current: bytes, maximum: None };
            prlimit(pid, Resource::Fsize, limit).unwrap();
        };
        let write = || Command::new(0x01, 1).dword(10, 3);
        let store = |key: &[u8]| kv(0x01, key, 4096);
        assert_eq!(io.command_in_capsule(write(), &[1; 4096]).status, 0);
        assert_eq!(io.command_in_capsule(store(b"before"), &[1; 4096]).status, 0);
        limit(Some(1 << 20));
        // Capacity Exceeded.
        assert_eq!(io.command_in_capsule(write(), &[2; 4096]).status, 0x81, "{backend}");
        assert_eq!(io.command_in_capsule(store(b"beyond"), &[2; 4096]).status, 0x81, "{backend}");
        let read = Command::new(0x02, 1).dword(10, 3);
        assert!(io.command(read, &[], 4096).data == [1; 4096]);
        limit(None);
        assert_eq!(io.command_in_capsule(write(), &[3; 4096]).status, 0);
        assert_eq!(io.command_in_capsule(store(b"after"), &[3; 4096]).status, 0);
        for (key, status) in [(&b"before"[..], 0), (b"beyond", 0x87), (b"after", 0)] {
            assert_eq!(io.command(kv(0x02, key, 4096), &[], 4096).status, status);
        }
        drop(io);
        let words = ["media error operation=write", "no room left where the media lies"];
        drive.stop().expect(0, &words);
    }
}
