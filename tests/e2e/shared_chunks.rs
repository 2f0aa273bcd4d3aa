//! Values of a drive that share chunks: what is stored comes back, also after a kill and by a drive
//! that shares nothing; the space in use is that of the different chunks; and a damaged chunk is
//! reported for each value that has it.

use std::fs;

use crate::support::drive::{Drive, kv};
use crate::support::harness::wait_until;
use crate::support::metrics::{free_address, scrape};

const CHUNK: usize = 4096;
const SHARES: [&str; 3] = ["--dedup", "4K", "--dedup-share"];

/// Returns a value of eight chunks: seven that one in four values has, too, and one of its own.
fn value(number: u8) -> Vec<u8> {
    let chunk = |at: u8| match at {
        0 => vec![number; CHUNK],
        _ => [200 + number % 4, at].repeat(CHUNK / 2),
    };
    (0..8).flat_map(chunk).collect()
}

fn store_all(drive: &Drive, count: u8) {
    let (_admin, mut io) = drive.connect();
    for number in 0..count {
        let value = value(number);
        let size = u32::try_from(value.len()).unwrap();
        assert_eq!(io.command(kv(0x01, &[number], size), &value, 0).status, 0);
    }
}

/// Returns true if the metrics say that nine values have shared what they can.
fn nine_share(page: &str) -> bool {
    let used = page.lines().find_map(|it| it.strip_prefix("csd_kv_used_bytes{nsid=\"2\"} "));
    used.unwrap().parse::<usize>().unwrap() < 9 * (CHUNK + 1024) + 28 * (CHUNK + 512)
}

fn verify_all(drive: &Drive, count: u8) {
    let (_admin, mut io) = drive.connect();
    for number in 0..count {
        let value = value(number);
        let size = u32::try_from(value.len()).unwrap();
        let read = io.command(kv(0x02, &[number], size), &[], value.len());
        assert!((read.status, &read.data) == (0, &value), "{number}: {:#x}", read.status);
        // A part of it, from within a shared chunk to within another.
        let some = io.command(kv(0x02, &[number], 5000), &[], 5000);
        assert!(some.data == value[..5000], "{number}");
    }
}

#[test]
fn values_share_chunks_and_come_back() {
    const COUNT: u8 = 40;
    let address = free_address();
    let metrics = ["--metrics", &address.to_string()];
    let options = [&SHARES[..], &metrics[..]].concat();
    let mut drive = Drive::serve("m", &options);
    let figure = |line: &str| -> Option<u64> {
        let page = scrape(address, "GET /metrics HTTP/1.0\r\n\r\n");
        page.lines().find_map(|found| found.strip_prefix(line)?.trim().parse().ok())
    };
    let used = || figure("csd_kv_used_bytes{nsid=\"2\"}").unwrap();
    store_all(&drive, COUNT);
    // Each has one chunk of its own, and there are four times seven that they share.
    wait_until("the values share", || figure("csd_kv_shared_chunks{nsid=\"2\"}") == Some(28));
    let records = u64::from(COUNT) * (CHUNK as u64 + 1024) + 28 * (CHUNK as u64 + 512);
    wait_until("all values share", || used() <= records);
    verify_all(&drive, COUNT);
    let text = drive.array.csd(&["drive", "status", &drive.url()]).expect(0, &[]).text();
    assert!(text.contains("28 shared chunks, "), "{text}");
    assert!(text.contains("duplicate in chunks of 4096 B, shared"), "{text}");
    drive.kill();
    // A drive without the option reads them.
    drive.start("m", &metrics);
    verify_all(&drive, COUNT);
    assert!(used() <= records);
    drive.stop().expect(0, &[]);
    drive.start("m", &options);
    let (_admin, mut io) = drive.connect();
    for number in 1..COUNT {
        assert_eq!(io.command(kv(0x10, &[number], 0), &[], 0).status, 0);
    }
    wait_until("what nothing has is deleted", || {
        // A mark may be another chunk's.
        figure("csd_kv_shared_chunks{nsid=\"2\"}").is_some_and(|chunks| (7..10).contains(&chunks))
    });
    verify_all(&drive, 1);
    drive.stop().expect(0, &[]);
    drive.array.csd(&["drive", "check", "m"]).expect(0, &[]);
}

#[test]
fn a_damaged_chunk_is_reported_for_each_value_that_has_it() {
    let address = free_address();
    let log = ["--metrics", &address.to_string(), "--log-file", "log"];
    let options = [&SHARES[..], &log[..]].concat();
    let mut drive = Drive::serve("m", &options);
    store_all(&drive, 9);
    let page = || scrape(address, "GET /metrics HTTP/1.0\r\n\r\n");
    wait_until("the values share", || page().contains("csd_kv_shared_chunks{nsid=\"2\"} 28\n"));
    wait_until("all values share", || nine_share(&page()));
    drive.stop().expect(0, &[]);
    // All copies of the chunk, of which one counts.
    let path = drive.array.path("m");
    let mut medium = fs::read(&path).unwrap();
    let wrong = [201, 3].repeat(CHUNK / 2);
    let mut damaged = 0;
    for at in (0..medium.len() - CHUNK).step_by(64) {
        if medium[at..].starts_with(&wrong) {
            medium[at + 77] ^= 1;
            damaged += 1;
        }
    }
    assert!(damaged > 0, "the medium has the chunk");
    fs::write(&path, &medium).unwrap();
    drive.start("m", &options);
    let (_admin, mut io) = drive.connect();
    for number in 0..9 {
        let status = io.command(kv(0x02, &[number], 8 * 4096), &[], 8 * CHUNK).status;
        // Unrecovered Read Error, of those that have it.
        assert_eq!(status != 0, number % 4 == 1, "{number}: {status:#x}");
    }
    let url = drive.url();
    drive.array.csd(&["drive", "service", "rate", "scrub", "none", &url]).expect(0, &[]);
    drive.array.csd(&["drive", "service", "resume", "scrub", &url]).expect(0, &[]);
    let line = || {
        let log = fs::read_to_string(drive.array.path("log")).unwrap();
        log.lines().find(|line| line.contains("damaged chunk is shared")).map(str::to_owned)
    };
    wait_until("the scrub names them", || line().is_some());
    let line = line().unwrap();
    assert!(line.contains("values=2") && line.contains(r"\\x01 \\x05"), "{line}");
}

/// Flips a bit of the list of a value, in front of the value's own chunk. Its record from before it
/// shared has shared chunks behind that one, and stays.
fn damage_list_of(medium: &mut [u8], number: u8) -> usize {
    let (own, next) = ([number; CHUNK], [200 + number % 4, 1]);
    let mut damaged = 0;
    for at in 1..medium.len() - CHUNK - 2 {
        let begins = medium[at] == number && medium[at - 1] != number;
        if begins && medium[at..].starts_with(&own) && !medium[at + CHUNK..].starts_with(&next) {
            medium[at - 1] ^= 1;
            damaged += 1;
        }
    }
    damaged
}

#[test]
fn a_list_that_cannot_be_read_pauses_the_deletion_of_chunks_which_is_named() {
    let address = free_address();
    let metrics = ["--metrics", &address.to_string()];
    let options = [&SHARES[..], &metrics[..]].concat();
    let mut drive = Drive::serve("m", &options);
    store_all(&drive, 9);
    let page = || scrape(address, "GET /metrics HTTP/1.0\r\n\r\n");
    let has = |line: &str| page().lines().any(|found| found == line);
    wait_until("the values share", || nine_share(&page()));
    drive.stop().expect(0, &[]);
    let path = drive.array.path("m");
    let mut medium = fs::read(&path).unwrap();
    assert_eq!(damage_list_of(&mut medium, 8), 1);
    fs::write(&path, &medium).unwrap();
    drive.start("m", &options);
    wait_until("it fails", || has("csd_service_failed{service=\"collect\"} 1"));
    assert!(has("csd_service_paused{service=\"collect\"} 1"));
    let url = drive.url();
    let words = [
        "service collect failed and is paused: no shared chunk can be deleted, because the value \
         of key \\x08 of namespace 2 cannot be read",
        "delete or replace it, then resume the service",
    ];
    drive.array.csd(&["drive", "status", &url]).expect(4, &words);
    drive.array.csd(&["drive", "service", "list", &url]).expect(4, &words);
    // It serves on, and what is replaced is no longer in the way.
    let (_admin, mut io) = drive.connect();
    let size = u32::try_from(value(8).len()).unwrap();
    assert_ne!(io.command(kv(0x02, &[8], size), &[], value(8).len()).status, 0);
    for number in 1..9 {
        assert_eq!(io.command(kv(0x10, &[number], 0), &[], 0).status, 0);
    }
    drive.array.csd(&["drive", "service", "resume", "collect", &url]).expect(0, &[]);
    wait_until("what nothing has is deleted", || {
        // A mark may be another chunk's.
        (7..10).any(|chunks| has(&format!("csd_kv_shared_chunks{{nsid=\"2\"}} {chunks}")))
    });
    assert!(has("csd_service_failed{service=\"collect\"} 0"));
    verify_all(&drive, 1);
}

#[test]
fn sharing_without_whole_chunks_is_refused() {
    let drive = Drive::serve("memory", &[]);
    let serve = ["drive", "serve", "--media", "memory", "--size", "256M"];
    let with = |options: &[&str]| drive.array.csd(&[&serve[..], options].concat());
    with(&["--dedup-share"]).expect(2, &["--dedup"]);
    let words = ["--dedup-share is for chunks of 4096 bytes and more, not 2048"];
    with(&["--dedup", "2K", "--dedup-share"]).expect(2, &words);
}
