//! Key-value drive of another maker, under `csd kv`, `csd bench kv` and the Rust client.
//!
//! It differs from ours wherever the standard leaves a choice. List goes backwards, and fills all
//! of the host's buffer; a Delete of an absent key is an error (87h); there is no write cache, and
//! no Flush; the namespace has another number, and may have shorter keys and values and fewer keys.
//! Fields and bytes that a command does not use must be zero.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use csd_client::{
    Client, Error, Key, Operation, Outcome, STORE_IF_ABSENT, STORE_IF_EXISTS, Settings, Status,
    is_piece,
};

use crate::support::bench::{SHORT_KV, kv_workloads};
use crate::support::data::bytes;
use crate::support::harness::{Array, Done};
use crate::support::third_party::{
    Answer, INVALID_FIELD, INVALID_OPCODE, Inside, controller, dword, serve_inside,
};

const NSID: u32 = 7;
const INVALID_NAMESPACE: u16 = 0x00B;
const CAPACITY_EXCEEDED: u16 = 0x081;
const INVALID_VALUE_SIZE: u16 = 0x085;
const INVALID_KEY_SIZE: u16 = 0x086;
const KEY_DOES_NOT_EXIST: u16 = 0x087;
const KEY_EXISTS: u16 = 0x089;

/// Limits that a drive announces.
#[derive(Clone, Copy)]
struct Limits {
    /// MDTS: transfers of 2^n pages of 4 KiB.
    mdts: u8,
    /// KVKML, KVVML and MNKS.
    key_bytes: u16,
    value_bytes: u32,
    keys: u32,
    /// NSZE, of which a value takes its length.
    bytes: u64,
}

/// Values are shorter than a transfer, and of no round length.
const LIMITS: Limits =
    Limits { mdts: 3, key_bytes: 16, value_bytes: 20_000, keys: 5_000, bytes: 8 << 20 };

/// The drive.
struct Drive {
    limits: Limits,
    values: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    stores: AtomicUsize,
}

impl Drive {
    fn values(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Vec<u8>>> {
        self.values.lock().unwrap()
    }

    fn value(&self, key: &str) -> Option<Vec<u8>> {
        self.values().get(key.as_bytes()).cloned()
    }

    /// Stores a value that no command may be able to carry.
    fn has(&self, key: &str, value: &[u8]) {
        self.values().insert(key.into(), value.into());
    }

    /// Returns the keys in the order of List.
    fn keys(&self) -> Vec<Vec<u8>> {
        self.values().keys().rev().cloned().collect()
    }

    fn used_bytes(&self) -> u64 {
        self.values().values().map(|value| value.len() as u64).sum()
    }

    /// Returns the key of a command.
    fn key(&self, sqe: &[u8]) -> Result<Vec<u8>, u16> {
        let padded = [&sqe[8..16], &sqe[56..64]].concat();
        if !(1..=self.limits.key_bytes).contains(&u16::from(sqe[44])) {
            return Err(INVALID_KEY_SIZE);
        }
        let (key, padding) = padded.split_at(sqe[44].into());
        if padding.iter().any(|byte| *byte != 0) { Err(INVALID_FIELD) } else { Ok(key.into()) }
    }

    fn store(&self, key: Vec<u8>, value: &[u8], options: u8) -> Result<(), u16> {
        self.stores.fetch_add(1, Relaxed);
        let used = self.used_bytes();
        let mut values = self.values();
        let old = values.get(&key).map(|old| old.len() as u64);
        match (options, old) {
            (0b01, None) => return Err(KEY_DOES_NOT_EXIST),
            (0b10, Some(_)) => return Err(KEY_EXISTS),
            (0b00..=0b10, _) => {}
            _ => return Err(INVALID_FIELD),
        }
        let most = usize::try_from(self.limits.keys).unwrap();
        let full = old.is_none() && values.len() >= most;
        if full || used - old.unwrap_or(0) + value.len() as u64 > self.limits.bytes {
            return Err(CAPACITY_EXCEEDED);
        }
        values.insert(key, value.into());
        Ok(())
    }

    /// Returns the keys from one on, backwards, and zeros behind them.
    fn list(&self, from: Option<Vec<u8>>, size: usize) -> Vec<u8> {
        let (mut list, mut count) = (vec![0; 4], 0_u32);
        for key in self.keys() {
            if from.as_ref().is_some_and(|from| key > *from) {
                continue;
            }
            let end = list.len() + (2 + key.len()).next_multiple_of(4);
            if end > size {
                break;
            }
            list.extend_from_slice(&u16::try_from(key.len()).unwrap().to_le_bytes());
            list.extend_from_slice(&key);
            list.resize(end, 0);
            count += 1;
        }
        list[..4].copy_from_slice(&count.to_le_bytes());
        list.resize(size, 0);
        list
    }
}

impl Inside for Drive {
    /// Announces one or more I/O command sets.
    fn command_sets(&self) -> u64 {
        1 << 6
    }

    fn identify(&self, cns: u8, csi: u8, nsid: u32) -> Result<Vec<u8>, u16> {
        let mut data = vec![0; 4096];
        match (cns, csi, nsid) {
            (0x01, ..) => return Ok(controller(self.limits.mdts)),
            (0x02, _, 0..NSID) => data[..4].copy_from_slice(&NSID.to_le_bytes()),
            (0x02, ..) => {}
            // An EUI-64, then the command set identifier.
            (0x03, _, NSID) => {
                data[..5].copy_from_slice(&[1, 8, 0, 0, 0xAA]);
                data[12..17].copy_from_slice(&[4, 1, 0, 0, 1]);
            }
            (0x05, 1, NSID) => {
                let Limits { key_bytes, value_bytes, keys, bytes, .. } = self.limits;
                data[..8].copy_from_slice(&bytes.to_le_bytes());
                data[16..24].copy_from_slice(&self.used_bytes().to_le_bytes());
                data[72..74].copy_from_slice(&key_bytes.to_le_bytes());
                data[76..80].copy_from_slice(&value_bytes.to_le_bytes());
                data[80..84].copy_from_slice(&keys.to_le_bytes());
            }
            _ => return Err(INVALID_FIELD),
        }
        Ok(data)
    }

    fn wanted_bytes(&self, sqe: &[u8]) -> Result<usize, u16> {
        let (described, bytes) = (dword(sqe, 32), dword(sqe, 40));
        match sqe[0] {
            0x01 if bytes > self.limits.value_bytes => Err(INVALID_VALUE_SIZE),
            0x01 if bytes == described => Ok(usize::try_from(bytes).unwrap()),
            0x01 => Err(INVALID_FIELD),
            _ => Ok(0),
        }
    }

    fn io(&self, sqe: &[u8], data: &[u8]) -> Answer {
        let (size, options) = (usize::try_from(dword(sqe, 40)).unwrap(), sqe[45]);
        if dword(sqe, 4) != NSID {
            return Err(INVALID_NAMESPACE);
        }
        let (is_sized, known) = match sqe[0] {
            0x01 => (true, 0b11),
            0x02 => (true, 0b01),
            0x06 => (true, 0),
            _ => (false, 0),
        };
        let reserved = [&sqe[16..24], &sqe[46..56]].concat();
        let is_used = reserved.iter().any(|byte| *byte != 0);
        if is_used || size > 0 && !is_sized || options & !known > 0 {
            return Err(INVALID_FIELD);
        }
        match sqe[0] {
            0x01 => self.store(self.key(sqe)?, data, options).map(|()| (Vec::new(), 0)),
            0x02 => {
                let value = self.values().get(&self.key(sqe)?).cloned();
                let value = value.ok_or(KEY_DOES_NOT_EXIST)?;
                let sent = value[..size.min(value.len())].to_vec();
                Ok((sent, value.len() as u64))
            }
            0x06 if size < 4 => Err(INVALID_FIELD),
            0x06 if sqe[44] == 0 => Ok((self.list(None, size), 0)),
            0x06 => Ok((self.list(Some(self.key(sqe)?), size), 0)),
            0x10 => match self.values().remove(&self.key(sqe)?) {
                Some(_) => Ok((Vec::new(), 0)),
                None => Err(KEY_DOES_NOT_EXIST),
            },
            0x14 => match self.values().contains_key(&self.key(sqe)?) {
                true => Ok((Vec::new(), 0)),
                false => Err(KEY_DOES_NOT_EXIST),
            },
            _ => Err(INVALID_OPCODE),
        }
    }
}

/// A drive, and a folder to run `csd` in.
struct Other {
    drive: Arc<Drive>,
    url: String,
    at: Array,
}

impl Other {
    fn serve(limits: Limits) -> Self {
        let drive = Drive { limits, values: Mutex::default(), stores: AtomicUsize::new(0) };
        let drive = Arc::new(drive);
        Self { url: serve_inside(&drive), drive, at: Array::without_drives() }
    }

    fn kv(&self, words: &[&str]) -> Done {
        self.at.csd(&[&["kv"], words, &["--drive", &self.url]].concat())
    }
}

#[test]
fn values_and_long_objects_go_in_and_come_out() {
    let other = Other::serve(LIMITS);
    // One value of the greatest length, four of at most that length, and none.
    let files = [("short", bytes(1, 20_000)), ("long", bytes(2, 70_001)), ("none", Vec::new())];
    for &(name, ref content) in &files {
        other.at.file(name, content);
        let put = other.kv(&["put", name, "--json"]).expect(0, &[]).json();
        let pieces = if content.len() > 20_000 { content.len().div_ceil(20_000) } else { 0 };
        assert_eq!(put["result"]["pieces"].as_u64(), Some(pieces as u64), "{name}");
        assert!(other.kv(&["get", name]).expect(0, &[]).stdout == *content, "{name}");
    }
    assert!(other.drive.value("short").as_ref() == Some(&files[0].1));
    assert_eq!(other.drive.value("none"), Some(Vec::new()));
    let info = other.kv(&["info", "--json"]).expect(0, &[]).json()["result"].clone();
    let number = |name: &str| info[name].as_u64().unwrap();
    assert_eq!((number("nsid"), number("bytes"), number("keys_max")), (7, 8 << 20, 5_000));
    assert_eq!((number("value_bytes_max"), number("key_bytes_max")), (20_000, 16));
    assert_eq!(number("used_bytes"), other.drive.used_bytes());
    let exists = other.kv(&["exists", "gone", "long"]).expect(4, &["gone: does not exist"]);
    assert_eq!(exists.text(), "long: exists\n");
    other.at.file("other", b"other bytes");
    other.kv(&["put", "other", "none", "--if-absent"]).expect(2, &["key none exists already"]);
    other.kv(&["put", "other", "gone", "--if-exists"]).expect(2, &["there is no key gone"]);
    other.kv(&["put", "other", "none", "--if-exists"]).expect(0, &[]);
    other.kv(&["put", "other", "new", "--if-absent"]).expect(0, &[]);
    assert_eq!(other.drive.value("none").as_deref(), Some(&b"other bytes"[..]));
    assert_eq!(other.kv(&["ls"]).expect(0, &[]).text(), "short\nnone\nnew\nlong\n");
    other.kv(&["rm", "gone"]).expect(2, &["there is no key gone"]);
    let failed = other.kv(&["rm", "gone", "new"]).expect(2, &["1 of 2 failed"]);
    assert_eq!(failed.text(), "new: deleted\n");
    // The drive answers the Delete of this piece with an error.
    let pieces = other.drive.keys().into_iter().map(|key| Key::new(&key).unwrap());
    let piece = pieces.filter(is_piece).nth(1).unwrap();
    assert!(other.drive.values().remove(piece.as_bytes()).is_some());
    other.kv(&["get", "long"]).expect(1, &["is missing"]);
    other.kv(&["rm", "long"]).expect(0, &[]);
    assert_eq!(other.drive.keys(), [&b"short"[..], b"none"], "the other pieces are gone");
}

/// Lists in another order than ours, in several pages.
#[test]
fn a_list_in_another_order_is_complete() {
    let other = Other::serve(Limits { mdts: 1, ..LIMITS });
    for number in 0..3_000 {
        other.drive.has(&format!("key-{number:05}"), b"");
        other.drive.has(&"x".repeat(1 + number % 16), b"");
    }
    let keys = |words: &[&str]| -> Vec<Vec<u8>> {
        let listed = other.kv(&[words, &["--json"]].concat()).expect(0, &[]).json();
        let keys = listed["result"]["keys"].as_array().unwrap().clone();
        keys.iter().map(|key| key["key"].as_str().unwrap().into()).collect()
    };
    assert_eq!(other.drive.keys().len(), 3_016);
    assert!(keys(&["ls"]) == other.drive.keys());
    let ten: Vec<_> = (0..10).rev().map(|last| format!("key-0123{last}").into_bytes()).collect();
    assert_eq!(keys(&["ls", "key-0123"]), ten);
    let range = ["range", "key-00000", "key-99999"];
    other.kv(&[&range[..], &["--on", "host"]].concat()).expect(2, &["in another order"]);
    other.kv(&range).expect(1, &["--on host reads any List"]);
}

#[test]
fn what_the_drive_cannot_do_is_said() {
    // Transfers are shorter than values.
    let other = Other::serve(Limits { mdts: 1, value_bytes: 1 << 20, ..LIMITS });
    let info = other.kv(&["info", "--json"]).expect(0, &[]).json();
    assert_eq!(info["result"]["value_bytes_max"], 8192, "as far as a command transfers it");
    other.drive.has("theirs", &[1; 9_000]);
    other.kv(&["get", "theirs"]).expect(1, &["9000 bytes are more than the 8192 bytes allowed"]);
    let long = bytes(3, 100_000);
    other.at.file("long", &long);
    other.kv(&["put", "long"]).expect(0, &[]);
    let too_long = other.drive.values().values().filter(|value| value.len() > 8_192).count();
    assert_eq!(too_long, 1, "a piece");
    assert!(other.kv(&["get", "long"]).expect(0, &[]).stdout == long);
    other.kv(&["rm", "long", "theirs"]).expect(0, &[]);
    assert_eq!(other.drive.keys().len(), 0);
    other.kv(&["flush"]).expect(1, &["Flush failed: invalid command opcode"]);

    for (limits, said) in [
        (Limits { bytes: 60_000, ..LIMITS }, "Store failed: capacity exceeded"),
        (Limits { keys: 3, ..LIMITS }, "Store failed: capacity exceeded"),
        (Limits { key_bytes: 8, ..LIMITS }, "Store failed: invalid key size"),
    ] {
        let other = Other::serve(limits);
        other.at.file("long", &long);
        other.at.file("short", b"short");
        other.kv(&["put", "short"]).expect(0, &[]);
        other.kv(&["put", "long"]).expect(1, &[said]);
        assert_eq!(other.drive.keys(), [b"short"], "{said}: its pieces are gone");
    }
}

#[test]
fn values_are_measured_and_those_of_others_stay() {
    let other = Other::serve(LIMITS);
    let measure =
        |more: &[&str]| other.at.csd(&[&SHORT_KV[..], &["--url", &other.url], more].concat());
    let nothing = other.at.csd(&["bench", "kv", "--url", &other.url]);
    nothing.expect(2, &["has no values to read"]);
    for key in ["theirs", "these too"] {
        other.drive.has(key, key.as_bytes());
    }
    let reads = ["read, sequential keys, loopback", "read, random keys, loopback"];
    assert_eq!(kv_workloads(measure(&[])), reads);
    assert_eq!(other.drive.stores.load(Relaxed), 0);
    let fills = ["fill, sequential keys, loopback", "fill, random keys, loopback"];
    assert_eq!(kv_workloads(measure(&["--write", "--threads", "2"])), [fills, reads].concat());
    let stores = other.drive.stores.load(Relaxed);
    assert!(stores >= 4 * 40, "{stores}");
    // Three values of the drive and a manifest each.
    let long = ["bench", "kv", "--pairs", "1", "--keys", "5", "--value-bytes", "50000", "--json"];
    let long = other.at.csd(&[&long[..], &["--write", "--url", &other.url]].concat());
    assert_eq!(kv_workloads(long).len(), 4);
    assert!(other.drive.stores.load(Relaxed) >= stores + 4 * 5 * 4);
    assert_eq!(other.drive.keys(), [&b"these too"[..], b"theirs"], "its own are gone");
}

#[test]
fn the_client_library_keeps_to_the_limits_and_gets_the_same_answers() {
    let other = Other::serve(LIMITS);
    let client = Client::connect(&other.url, &Settings::default()).unwrap();
    assert_eq!((client.address().nsid, client.value_bytes_max()), (Some(NSID), 20_000));
    client.put(b"k", b"value").unwrap();
    let refused = |put: Result<(), Error>| put.unwrap_err().status().unwrap();
    assert_eq!(refused(client.put_with(b"k", b"x", STORE_IF_ABSENT)), Status::KEY_EXISTS);
    let absent = refused(client.put_with(b"n", b"x", STORE_IF_EXISTS));
    assert_eq!(absent, Status::KEY_DOES_NOT_EXIST);
    assert_eq!(client.get(b"k").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(client.get(b"n").unwrap().as_deref(), None);
    let mut front = [0; 3];
    assert_eq!((client.get_into(b"k", &mut front).unwrap(), &front), (Some(5), b"val"));
    assert!(client.exists(b"k").unwrap() && !client.exists(b"n").unwrap());
    let too_long = client.put(b"k", &bytes(5, 20_001)).unwrap_err().to_string();
    assert!(too_long.contains("20001 bytes are more than the 20000 bytes"), "{too_long}");
    assert_eq!(other.drive.value("k").as_deref(), Some(&b"value"[..]));
    assert!(client.delete(b"k").unwrap() && !client.delete(b"k").unwrap());
    let object = bytes(4, 70_001);
    assert_eq!(client.put_object(b"o", &object, 0).unwrap().pieces, 4);
    assert!(client.get_object(b"o").unwrap() == Some(object));
    assert!(client.delete_object(b"o").unwrap() && !client.delete_object(b"o").unwrap());
    assert_eq!(client.flush().unwrap_err().status(), Some(Status::INVALID_OPCODE));

    // Two pages of keys.
    let key = |n: u64| Key::new(format!("{n:016}").as_bytes()).unwrap();
    let puts = (0..2_000).map(|n| Operation::Put { key: key(n), value: bytes(n, 20), options: 0 });
    let stored = client.batch(puts.collect(), 64).unwrap();
    assert!(stored.len() == 2_000 && stored.iter().all(Result::is_ok));
    let gets = client.batch((0..100).map(|n| Operation::Get(key(n))).collect(), 7).unwrap();
    for (n, outcome) in (0..).zip(gets) {
        let Outcome::Get(Some(value)) = outcome.unwrap() else { panic!("{n}") };
        assert_eq!(value[..], bytes(n, 20));
    }
    let listed: Vec<_> = client.keys(b"").map(|key| key.unwrap().as_bytes().to_vec()).collect();
    assert!(listed == other.drive.keys(), "{} keys", listed.len());
    client.close().unwrap();
}
