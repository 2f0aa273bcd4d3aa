//! A drive with a volatile cache (`--volatile-cache`) whose process is killed: what was flushed is
//! there, and of the rest a prefix of the answers.

use csd_client::{Client, Settings};

use crate::support::drive::Drive;

const FLUSHED: u32 = 50;
const STORED: u32 = 300;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Returns how many of the keys, in the order in which they were stored, are there; fails if one is
/// there behind one that is missing.
fn prefix(client: &Client) -> u32 {
    let is_there = |number| client.get(&key(number)).unwrap().is_some();
    let found: Vec<bool> = (0..STORED).map(is_there).collect();
    let count = found.iter().take_while(|found| **found).count();
    assert!(!found[count..].contains(&true), "a later one is there: {found:?}");
    u32::try_from(count).unwrap()
}

#[test]
fn a_kill_loses_an_end_of_what_was_answered_and_nothing_that_was_flushed() {
    let mut drive = Drive::serve("m", &["--volatile-cache"]);
    let client = Client::connect(&drive.url(), &Settings::default()).unwrap();
    for number in 0..STORED {
        client.put(&key(number), &[7; 100]).unwrap();
        if number + 1 == FLUSHED {
            client.flush().unwrap();
        }
    }
    drive.kill();
    drive.start("m", &["--volatile-cache"]);
    let client = Client::connect(&drive.url(), &Settings::default()).unwrap();
    let kept = prefix(&client);
    println!("{kept} of {STORED} were kept, {FLUSHED} were flushed");
    assert!((FLUSHED..=STORED).contains(&kept));
    // The command flushes what any host has stored.
    client.put(b"last", b"value").unwrap();
    let flushed = drive.array.csd(&["kv", "flush", "--drive", &drive.url()]).expect(0, &[]);
    assert!(flushed.text().contains("everything stored before is durable"), "{}", flushed.text());
    drive.kill();
    // Without the option each change is durable when it is answered.
    drive.start("m", &[]);
    let client = Client::connect(&drive.url(), &Settings::default()).unwrap();
    assert_eq!(client.get(b"last").unwrap().unwrap()[..], b"value"[..]);
    assert_eq!(prefix(&client), kept, "nothing returns that was lost");
    client.put(b"next", b"value").unwrap();
    drive.kill();
    drive.start("m", &["--volatile-cache"]);
    let url = drive.url();
    let client = Client::connect(&url, &Settings::default()).unwrap();
    assert!(client.get(b"next").unwrap().is_some());
    // A stop in order keeps everything.
    client.put(b"end", b"value").unwrap();
    assert_eq!(drive.stop().code, 0);
    drive.array.csd(&["kv", "flush", "--drive", &url]).expect(1, &["cannot be reached"]);
    drive.start("m", &[]);
    let client = Client::connect(&drive.url(), &Settings::default()).unwrap();
    assert!(client.get(b"end").unwrap().is_some());
}
