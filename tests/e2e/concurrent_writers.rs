//! Several writers of one name, interrupted writers, and readers of objects that are removed.

use std::io::{Cursor, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use csd_initiator::Kv;
use csd_nvme::kv::Key;
use csd_reactor::{Buffer, Class, block_on, spawn};
use csd_store::array::{Array as Drives, ArrayFile, DriveIndex, Plan};
use csd_store::catalogue::{self, Entry, State, claim_key};
use csd_store::error::NameError;
use csd_store::object::{self, Error, GetOptions, On, PutOptions};
use csd_store::source::Source;
use csd_store::{ElementType, Options};

use crate::support::direct::on_objects;
use crate::support::harness::{Array, binary, finish, wait_until};

const BYTES: usize = 300_000;
const CHUNK_BYTES: u64 = 64 << 10;

/// Bytes that several tasks write.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Puts `BYTES` bytes of `fill` under the name; returns true if the put reports success.
async fn put(drives: &Drives, fill: u8, on: On, lead: usize) -> bool {
    // Writers start at different moments: each first sends the drives a few other requests.
    let drive = drives.drive(DriveIndex::default()).unwrap();
    for _ in 0..lead {
        drive.objects.exist(&Key::new(b"none").unwrap()).await.unwrap();
    }
    let source = Cursor::new(vec![fill; BYTES]);
    let source = Source::raw("x", Box::new(source), ElementType::Bytes);
    let options = PutOptions {
        on,
        chunk_bytes: Some(CHUNK_BYTES),
        page_bytes: Some(object::PAGE_BYTES),
        ..PutOptions::new("x".to_owned())
    };
    let progress = object::Progress::none();
    match object::put(drives, source, &options, &progress).await {
        Ok(_) => true,
        Err(Error::Name(NameError::Overtaken { .. }) | Error::Name(NameError::Exists { .. })) => {
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// Enough for puts on values and on blocks; the simulation's lane `array` has many more orders.
const ROUNDS: usize = 16;

/// Runs rounds of `writers` concurrent puts, a get and a rm.
async fn race(plan: Plan, writers: u8, rounds: usize, patience: Option<Duration>) {
    let mut hosts = Vec::new();
    for _ in 0..writers {
        let drives = Drives::connect(&plan, &Options::default()).await;
        let patience = patience.unwrap_or(drives.patience());
        hosts.push(std::rc::Rc::new(drives.with_patience(patience)));
    }
    for round in 0..rounds {
        let on = if round % 8 == 7 { On::Block } else { On::Kv };
        let puts: Vec<_> = (0..writers)
            .map(|writer| {
                let host = std::rc::Rc::clone(&hosts[usize::from(writer)]);
                let lead = round * usize::from(writer) % 23;
                spawn(Class::Foreground, async move { put(&host, writer, on, lead).await })
            })
            .collect();
        let mut winners = Vec::new();
        for (writer, put) in (0..writers).zip(puts) {
            if put.await {
                winners.push(writer);
            }
        }
        assert_eq!(winners.len(), 1, "round {round}: stored by {winners:?}");
        let sink = Shared::default();
        let progress = object::Progress::none();
        let entry = object::lookup(&hosts[0], "x").await.unwrap();
        let out = Box::new(sink.clone());
        let options = GetOptions::whole(object::Form::Raw);
        let got = object::get(&hosts[0], entry, options, out, &progress).await;
        assert_eq!(got.map(|got| got.entry.bytes).unwrap(), BYTES as u64, "round {round}");
        assert!(*sink.0.lock().unwrap() == vec![winners[0]; BYTES], "round {round}");
        object::remove(&hosts[0], "x").await.unwrap();
    }
}

fn plan(array: &Array) -> Plan {
    Plan::new(&ArrayFile::load(&array.path("csd-array.toml")).unwrap())
}

/// Asserts that the tombstone of `x` is all that a drive keeps for objects.
fn only_a_tombstone_is_left(array: &Array) {
    for drive in 0..array.drives().len() {
        on_objects(array, drive, async |kv: &Kv| {
            let mut keys = kv.list_all(&[]).await.unwrap();
            // The record of the drives and their lives stays.
            keys.retain(|key| key.as_bytes()[0] != 0x07);
            assert_eq!(keys, [catalogue::key("x")]);
            let entry = kv.retrieve(&catalogue::key("x"), 4096).await.unwrap().unwrap();
            assert_eq!(Entry::parse(&entry).unwrap().state, State::Deleted);
        });
    }
}

#[test]
fn of_puts_of_one_name_exactly_one_wins_and_the_others_leave_nothing() {
    for (drives, writers) in [(1, 2), (2, 2), (3, 2), (2, 4)] {
        let array = Array::up(drives, "256M");
        let plan = plan(&array);
        let config = csd_reactor::Config::default();
        block_on(&config, move || race(plan, writers, ROUNDS, None)).unwrap();
        only_a_tombstone_is_left(&array);
    }
}

/// Writers without patience constantly take each other for interrupted.
#[test]
fn of_puts_that_take_each_other_for_cut_off_exactly_one_wins() {
    for (drives, writers) in [(1, 2), (2, 2), (3, 2), (3, 4)] {
        let array = Array::up(drives, "256M");
        let plan = plan(&array);
        let none = Some(Duration::ZERO);
        let config = csd_reactor::Config::default();
        block_on(&config, move || race(plan, writers, ROUNDS, none)).unwrap();
    }
}

#[test]
fn a_put_that_loses_says_so() {
    let array = Array::up(2, "256M");
    let mut first = array.spawn(&["put", "-", "x"], Stdio::piped());
    let mut input = first.child.stdin.take().unwrap();
    input.write_all(&vec![1; 4 << 20]).unwrap();
    wait_until("the put has begun", || array.csd(&["ls", "--all"]).text().contains("staged"));
    array.file("small", b"later");
    array.csd(&["put", "small", "x"]).expect(0, &[]);
    // The put that has lost may have ended before it reads all of its input.
    let _ended = input.write_all(&vec![1; 4 << 20]);
    drop(input);
    finish(first).expect(1, &["another put or rm of object \"x\" was under way and won"]);
    assert_eq!(array.csd(&["get", "x", "-"]).expect(0, &[]).stdout, b"later");
    array.csd(&["rm", "x"]).expect(0, &[]);
    only_a_tombstone_is_left(&array);
}

#[test]
fn what_a_lost_put_left_when_it_was_killed_is_reclaimed_and_nothing_else() {
    let array = Array::up(2, "1G");
    let mut bytes = vec![9; 12 << 20];
    bytes[0] = 1;
    array.file("kept.bin", &bytes);
    array.csd(&["put", "kept.bin", "kept", "--on", "block"]).expect(0, &[]);
    // A put under way: its chunks are on the drives, and its name is its own.
    let mut running = array.spawn(&["put", "-", "live"], Stdio::piped());
    let mut input = running.child.stdin.take().unwrap();
    input.write_all(&vec![1; 8 << 20]).unwrap();
    wait_until("the put has begun", || array.csd(&["ls", "--all"]).text().contains("staged"));
    let said = array.csd(&["array", "reclaim"]).expect(0, &[]).text();
    assert!(said.starts_with("live: kept ") && said.contains("its put may still run"), "{said}");
    for drive in 0..2 {
        on_objects(&array, drive, async |kv: &Kv| {
            let bytes = || vec![Buffer::from_slice(&[1; 1000])];
            for number in 0..100u32 {
                let chunk = [&[0x99; 12][..], &number.to_be_bytes()].concat();
                kv.store(&Key::new(&chunk).unwrap(), bytes(), 0).await.unwrap();
            }
            let list = Key::new(&[0x97; 15]).unwrap();
            kv.store(&list, bytes(), 0).await.unwrap();
            let unit = [&[0x02][..], &60u64.to_be_bytes()].concat();
            let owner = [&[0x98; 12][..], &[0x01; 16]].concat();
            let owner = vec![Buffer::from_slice(&owner)];
            kv.store(&Key::new(&unit).unwrap(), owner, 0).await.unwrap();
            let entry = kv.retrieve(&catalogue::key("kept"), 4096).await.unwrap().unwrap();
            let epoch = Entry::parse(&entry).unwrap().epoch;
            kv.store(&claim_key("kept", epoch), vec![entry], 0).await.unwrap();
        });
    }
    let done = array.csd(&["array", "reclaim", "--json"]).expect(0, &[]).json();
    let mut result = done["result"].clone();
    let live = result["cut_off"].take();
    assert_eq!((&live[0]["name"], &live[0]["freed"]), (&"live".into(), &false.into()), "{live}");
    let others = serde_json::json!({ "puts": 3, "claims": 2, "kept": 0, "cut_off": null });
    assert_eq!(result, others);
    input.write_all(&vec![1; 4 << 20]).unwrap();
    drop(input);
    finish(running).expect(0, &[]);
    assert!(array.csd(&["get", "live", "-"]).expect(0, &[]).stdout == vec![1; 12 << 20]);
    assert!(array.csd(&["get", "kept", "-"]).expect(0, &[]).stdout == bytes);
    for name in ["live", "kept"] {
        array.csd(&["rm", name]).expect(0, &[]);
    }
    for drive in array.drives() {
        assert!(drive["kv_used_bytes"].as_u64().unwrap() < 10_000, "{drive}");
        assert_eq!(drive["block_used_bytes"], 0, "{drive}");
    }
}

/// Leaves the state of a put that is interrupted after it has claimed the epoch of its sealed entry
/// on the first `claims` drives: all its chunks, its staged entry, and those claims.
fn cut_off_at_its_seal(array: &Array, claims: usize) {
    array.file("x.bin", &[7; 100_000]);
    array.csd(&["put", "x.bin", "x"]).expect(0, &[]);
    for drive in 0..array.drives().len() {
        on_objects(array, drive, async move |kv: &Kv| {
            let (key, value) =
                (catalogue::key("x"), |entry: &Entry| vec![Buffer::from_slice(&entry.encode())]);
            let sealed = kv.retrieve(&key, 4096).await.unwrap().unwrap();
            let sealed = Entry::parse(&sealed).unwrap();
            let mut staged = sealed.clone();
            (staged.state, staged.epoch, staged.digest) =
                (State::Staged, sealed.epoch - 1, [0; 32]);
            kv.store(&key, value(&staged), 0).await.unwrap();
            if drive < claims {
                kv.store(&claim_key("x", sealed.epoch), value(&sealed), 0).await.unwrap();
            }
        });
    }
}

#[test]
fn a_put_that_was_cut_off_behind_a_majority_of_its_claims_has_won() {
    let array = Array::up(2, "256M");
    cut_off_at_its_seal(&array, 2);
    array.file("small", b"later");
    array.csd(&["put", "small", "x"]).expect(2, &["object \"x\" exists and is immutable"]);
    assert!(array.csd(&["get", "x", "-"]).expect(0, &[]).stdout == [7; 100_000]);
    array.csd(&["rm", "x"]).expect(0, &[]);
    only_a_tombstone_is_left(&array);
}

#[test]
fn a_put_that_was_cut_off_before_a_majority_of_its_claims_has_not_won() {
    let array = Array::up(2, "256M");
    cut_off_at_its_seal(&array, 1);
    array.file("small", b"later");
    array.csd(&["put", "small", "x"]).expect(0, &[]);
    assert_eq!(array.csd(&["get", "x", "-"]).expect(0, &[]).stdout, b"later");
    array.csd(&["rm", "x"]).expect(0, &[]);
    only_a_tombstone_is_left(&array);
}

#[test]
fn a_drive_that_is_down_may_have_to_tell_who_won() {
    let array = Array::up_on_files(3, "256M");
    cut_off_at_its_seal(&array, 1);
    array.kill(2);
    array.file("small", b"later");
    let put = ["put", "small", "x"];
    array.csd(&put).expect(1, &["was cut off", "bring that drive back"]);
    array.csd(&["array", "up"]).expect(0, &[]);
    array.csd(&put).expect(0, &[]);
    array.csd(&["rm", "x"]).expect(0, &[]);
    only_a_tombstone_is_left(&array);
}

#[test]
fn a_get_of_an_object_that_is_removed_meanwhile_says_so() {
    for on in ["kv", "block"] {
        let array = Array::up(2, "1G");
        array.file("x.bin", &vec![3; 64 << 20]);
        array.csd(&["put", "x.bin", "x", "--on", on]).expect(0, &[]);
        let mut get = Command::new(binary())
            .args(["get", "x", "-"])
            .current_dir(array.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It has begun, and what it has not read yet is more than it holds in memory.
        let mut output = get.stdout.take().unwrap();
        output.read_exact(&mut [0; 4096]).unwrap();
        array.csd(&["rm", "x"]).expect(0, &[]);
        // Other bytes where those of the object were.
        array.file("y.bin", &vec![4; 64 << 20]);
        array.csd(&["put", "y.bin", "y", "--on", on]).expect(0, &[]);
        std::io::copy(&mut output, &mut std::io::sink()).unwrap();
        let done = get.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert!(said.contains("object \"x\" was removed while it was read"), "{said}");
    }
}

#[test]
fn a_get_follows_no_link_that_somebody_laid_next_to_its_file() {
    let array = Array::up(1, "256M");
    array.file("x.bin", b"mine");
    array.csd(&["put", "x.bin", "x"]).expect(0, &[]);
    array.file("victim", b"dear");
    std::os::unix::fs::symlink(array.path("victim"), array.path("x.part")).unwrap();
    array.csd(&["get", "x"]).expect(0, &[]);
    assert_eq!(std::fs::read(array.path("x")).unwrap(), b"mine");
    assert_eq!(std::fs::read(array.path("victim")).unwrap(), b"dear");
}
