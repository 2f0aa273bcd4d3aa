//! The client against a drive in this process.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use csd_client::{
    Client, Error, Key, Operation, Outcome, STORE_IF_ABSENT, STORE_IF_EXISTS, Secrets, Settings,
    Status, Unanswered, is_piece,
};
use csd_drive::{Access, Config};
use csd_initiator::Error as Drive;
use csd_tests::drive::{LIMIT, serve};
use csd_tests::proxy::Proxy;

const NQN: &str = "nqn.2026-11.io.csdstore:client";

/// Serves a drive on memory in this process, until the test ends; returns its URL.
fn drive() -> String {
    url(serve(config()))
}

fn config() -> Config {
    Config { nqn: NQN.into(), size_bytes: 256 << 20, ..Config::default() }
}

fn url(address: SocketAddr) -> String {
    format!("nvme+tcp://{address}/{NQN}")
}

fn settings() -> Settings {
    Settings { tries: 1, pause: Duration::from_millis(1), ..Settings::default() }
}

#[test]
fn values_are_stored_found_listed_and_deleted() {
    let client = Client::connect(&drive(), &settings()).unwrap();
    let info = client.info().unwrap();
    assert_eq!((info.nsid, info.key_bytes_max), (2, 16), "the first kv namespace");
    assert!(info.value_bytes_max == client.value_bytes_max() && info.bytes > info.used_bytes);
    assert_eq!(client.get(b"k").unwrap().as_deref(), None);
    client.put(b"k", b"").unwrap();
    assert_eq!(client.get(b"k").unwrap().as_deref(), Some(&b""[..]));
    let large: Vec<u8> = (0..client.value_bytes_max()).map(|n| (n % 251) as u8).collect();
    client.put(b"k", &large).unwrap();
    assert!(client.get(b"k").unwrap().as_deref() == Some(&large[..]));
    let mut front = [0; 100];
    assert_eq!(client.get_into(b"k", &mut front).unwrap(), Some(large.len() as u64));
    assert_eq!(front, large[..100]);
    let refused = |put: Result<(), Error>| put.unwrap_err().status().unwrap();
    assert_eq!(refused(client.put_with(b"k", b"x", STORE_IF_ABSENT)), Status::KEY_EXISTS);
    let absent = refused(client.put_with(b"n", b"x", STORE_IF_EXISTS));
    assert_eq!(absent, Status::KEY_DOES_NOT_EXIST);
    assert!(client.exists(b"k").unwrap() && !client.exists(b"n").unwrap());
    client.delete(b"k").unwrap();
    assert!(!client.exists(b"k").unwrap());
    assert!(matches!(client.put(b"", b"x"), Err(Error::KeyLength(0))));
    assert!(matches!(client.put(&[0; 17], b"x"), Err(Error::KeyLength(17))));
    let long = vec![0; large.len() + 1];
    assert!(matches!(client.put(b"k", &long), Err(Error::Drive(Drive::TooLarge { .. }))));
    client.close().unwrap();
}

#[test]
fn batches_keep_their_order_and_keys_come_in_pages_once_each() {
    const KEYS: usize = 10_000; // several pages
    let client = Client::connect(&drive(), &settings()).unwrap();
    let name = |n: usize| format!("key-{n:05}").into_bytes();
    let key = |n: usize| Key::new(&name(n)).unwrap();
    let puts = |n| Operation::Put { key: key(n), value: name(n), options: 0 };
    let stored = client.batch((0..KEYS).map(puts).collect(), 32).unwrap();
    assert!(stored.len() == KEYS && stored.iter().all(Result::is_ok));
    let gets = client.batch((0..100).map(|n| Operation::Get(key(n))).collect(), 7).unwrap();
    for (n, outcome) in gets.into_iter().enumerate() {
        let Outcome::Get(Some(value)) = outcome.unwrap() else { panic!("{n}") };
        assert_eq!(value[..], name(n));
    }
    client.put(b"other", b"").unwrap();
    let mut keys: Vec<Vec<u8>> =
        client.keys(b"key-").map(|key| key.unwrap().as_bytes().to_vec()).collect();
    keys.sort();
    assert_eq!(keys, (0..KEYS).map(name).collect::<Vec<_>>());
    assert_eq!(client.keys(b"").count(), KEYS + 1);
}

#[test]
fn objects_of_any_length_come_back_and_leave_nothing() {
    let client = Client::connect(&drive(), &settings()).unwrap();
    let most = client.value_bytes_max() as usize;
    let mut last = None;
    for length in [0, 5, most - 1, most, most + 1, 5 * most, 5 * most + 3, 7] {
        let bytes: Vec<u8> = (0..length).map(|n| (n % 241) as u8 ^ length as u8).collect();
        let put = client.put_object(b"o", &bytes, 0).unwrap();
        let pieces = if length > most { length.div_ceil(most) } else { 0 };
        assert_eq!((put.bytes, put.pieces as usize), (length as u64, pieces));
        assert!(client.get_object(b"o").unwrap() == Some(bytes), "{length}");
        let listed = client.keys(b"").map(Result::unwrap).filter(is_piece).count();
        assert_eq!(listed, pieces, "{length}");
        last = Some(put);
    }
    assert_eq!(last.unwrap().pieces, 0);
    let exists = client.put_object(b"o", b"x", STORE_IF_ABSENT).unwrap_err();
    assert_eq!(exists.status(), Some(Status::KEY_EXISTS));
    assert!(client.delete_object(b"o").unwrap() && !client.delete_object(b"o").unwrap());
    assert_eq!(client.keys(b"").count(), 0);
}

#[test]
fn a_value_that_looks_like_a_manifest_comes_back_as_it_was() {
    let client = Client::connect(&drive(), &settings()).unwrap();
    let bytes = vec![7; client.value_bytes_max() as usize + 1];
    client.put_object(b"o", &bytes, 0).unwrap();
    let manifest = client.get(b"o").unwrap().unwrap().to_vec();
    assert_eq!(client.put_object(b"copy", &manifest, 0).unwrap().pieces, 1);
    assert_eq!(client.get_object(b"copy").unwrap(), Some(manifest));
    // A piece that is gone, or of another length, is damage and not a shorter object.
    let piece = client.keys(&csd_client::PIECE_MARK).map(Result::unwrap);
    let piece = piece.filter(|key| client.get(key.as_bytes()).unwrap().unwrap().len() == 1);
    let piece = piece.last().unwrap();
    client.put(piece.as_bytes(), b"xy").unwrap();
    let damaged = client.get_object(b"o").unwrap_err();
    assert!(damaged.to_string().contains("piece 1 has 2 bytes, not 1"), "{damaged}");
    client.put(piece.as_bytes(), b"y").unwrap();
    let damaged = client.get_object(b"o").unwrap_err();
    assert!(damaged.to_string().contains("checksum"), "{damaged}");
    client.delete(piece.as_bytes()).unwrap();
    let damaged = client.get_object(b"o").unwrap_err();
    assert!(damaged.to_string().contains("piece 1 of 2 is missing"), "{damaged}");
}

#[test]
fn threads_share_a_client_and_closing_it_ends_their_calls() {
    let client = Client::connect(&drive(), &settings()).unwrap();
    let (outcomes, received) = mpsc::channel();
    for n in 0..100_u8 {
        let operation =
            Operation::Put { key: Key::new(&[n + 1]).unwrap(), value: vec![n], options: 0 };
        let outcomes = outcomes.clone();
        client.submit(operation, move |outcome| outcomes.send(outcome.is_ok()).unwrap()).unwrap();
    }
    drop(outcomes);
    assert_eq!(received.iter().filter(|ok| *ok).count(), 100);
    let ends: Vec<Error> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|_| {
                let client = client.clone();
                scope.spawn(move || {
                    loop {
                        if let Err(error) = client.exists(b"k") {
                            return error;
                        }
                    }
                })
            })
            .collect();
        client.close().unwrap();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    for end in ends {
        let closed = Drive::Closed { drive: "".into() };
        let expected = [closed.to_string().split(": ").last().unwrap().to_owned()];
        let text = end.to_string();
        let unanswered = matches!(end, Error::Unanswered(Unanswered::Closed));
        assert!(unanswered || text.contains(&expected[0]) || text.contains("lost"), "{text}");
    }
    assert!(matches!(client.get(b"k"), Err(Error::Unanswered(Unanswered::Closed))));
    client.close().unwrap();
}

#[test]
fn a_wrong_url_or_drive_is_an_error_in_words() {
    let url = drive();
    for (url, words) in [
        ("nvme+tcp://127.0.0.1".to_owned(), "no /NQN"),
        (format!("{url}?nsid=1"), "namespace 1 is no kv namespace"),
        (format!("{url}x"), "failed: "),
        (format!("nvme+tcp://127.0.0.1:1/{NQN}"), "cannot be reached"),
    ] {
        let error = Client::connect(&url, &settings()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_drive_that_is_lost_is_an_error_until_it_is_back() {
    let proxy = Proxy::before(serve(config()));
    let client = Client::connect(&url(proxy.address), &settings()).unwrap();
    client.put(b"k", b"v").unwrap();
    // The commands are under way when the connection is lost: the drive never gets them.
    proxy.withhold();
    let key = Key::new(b"k").unwrap();
    // Opcode, and the number of such commands, with that before.
    let under_way = [
        (0x01, 2, Operation::Put { key, value: b"w".to_vec(), options: 0 }),
        (0x02, 1, Operation::Get(key)),
        (0x10, 1, Operation::Delete(key)),
        (0x14, 1, Operation::Exists(key)),
    ];
    let sent = under_way.each_ref().map(|(opcode, count, _)| ((2, *opcode), *count));
    let (outcomes, received) = mpsc::channel();
    for (_, _, operation) in under_way {
        let outcomes = outcomes.clone();
        client.submit(operation, move |outcome| outcomes.send(outcome).unwrap()).unwrap();
    }
    for (command, count) in sent {
        assert_eq!(proxy.sent(command, count).len(), count, "{command:?}");
    }
    proxy.shut();
    let is_gone = |error: &Error| {
        let Error::Drive(error) = error else { return false };
        matches!(error, Drive::Lost { .. } | Drive::Unreachable { .. } | Drive::Closed { .. })
    };
    for _ in sent {
        let error = received.recv_timeout(LIMIT).expect("it ends").unwrap_err();
        assert!(is_gone(&error), "{error}");
    }
    let later = client.get(b"k").unwrap_err();
    assert!(is_gone(&later), "{later}");
    let later = client.put_object(b"o", b"x", 0).unwrap_err();
    assert!(is_gone(&later), "{later}");
    proxy.open();
    assert_eq!(client.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    client.close().unwrap();
}

#[test]
fn a_wrong_secret_is_an_error_of_authentication() {
    const RIGHT: &str = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
    const WRONG: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
    const HOST: &str = "nqn.2026-11.io.csdstore:host";
    let parsed = |lines: &str| Secrets::parse(lines).unwrap();
    let secrets = parsed(&format!("host {HOST} {RIGHT}"));
    let access = Access { secrets: secrets.clone(), ..Access::default() };
    let url = url(serve(Config { access, ..config() }));
    let client = Client::connect(&url, &settings().with_secrets(secrets)).unwrap();
    client.put(b"k", b"v").unwrap();
    // Another secret of the host, none, and one of the drive, which has none.
    let wrong = parsed(&format!("host {HOST} {WRONG}"));
    let of_drive = parsed(&format!("host {HOST} {RIGHT}\ncontroller {RIGHT}"));
    for secrets in [wrong, Secrets::default(), of_drive] {
        let settings = settings().with_secrets(secrets).with_host_nqn(HOST.to_owned());
        let error = Client::connect(&url, &settings).unwrap_err();
        assert!(matches!(error, Error::Drive(Drive::Authentication { .. })), "{error}");
        assert!(!error.to_string().contains("DHHC-1"), "{error}");
    }
    let stranger = settings().with_host_nqn("nqn.2026-11.io.csdstore:stranger".to_owned());
    let error = Client::connect(&url, &stranger).unwrap_err();
    assert_eq!(error.status(), Some(Status::CONNECT_INVALID_HOST), "{error}");
    assert_eq!(client.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
}
