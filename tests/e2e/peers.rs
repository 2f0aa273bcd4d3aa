//! Drives that work with each other: their file of peers, and a task between processes.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use csd_initiator::{Address, Compute, Controller, Error, Kv, Options};
use csd_nvme::status::Status;
use csd_nvme::vendor::combine::{Piece, Target, Task};
use csd_nvme::vendor::execute::{Output, chunk_key};
use csd_nvme::vendor::location::Location;
use csd_reactor::{Buffer, block_on};

use crate::support::direct::on_objects;
use crate::support::harness::Array;

const PREFIX: [u8; 12] = [0xAB; 12];

fn address(array: &Array, drive: usize) -> Address {
    array.drives()[drive]["url"].as_str().unwrap().parse().unwrap()
}

fn store(array: &Array, drive: usize, number: u32, bytes: &[u8]) {
    let value = Buffer::from_slice(bytes);
    on_objects(array, drive, async move |kv: &Kv| {
        kv.store(&chunk_key(&PREFIX, number), vec![value], 0).await.unwrap();
    });
}

fn retrieve(array: &Array, drive: usize, number: u32) -> Option<Vec<u8>> {
    on_objects(array, drive, async move |kv: &Kv| {
        let found = kv.retrieve(&chunk_key(&PREFIX, number), 1 << 20).await.unwrap();
        found.map(|value| value.to_vec())
    })
}

/// Has drive 0 add up value 1 of drives 0 and 1, and store the sum as this value of drive 2.
fn add_up(array: &Array, bytes: usize, sum: u32) -> Result<u64, Error> {
    let value = |peer, number| {
        let key = *chunk_key(&PREFIX, number).padded();
        let bytes = u32::try_from(bytes).unwrap();
        Piece { peer, location: Location::Value { nsid: 3, key }, bytes, crc32c: None }
    };
    let task = Task {
        sources: vec![value(0, 1), value(1, 1)],
        targets: vec![Target { piece: value(2, sum), factors: vec![1, 1] }],
        guards: Vec::new(),
        peers: [1, 2].map(|drive| address(array, drive).nqn).to_vec(),
    };
    let address = address(array, 0);
    let executed = block_on(&csd_reactor::Config::default(), move || async move {
        let controller = Controller::connect(&address, &Options::default()).await.unwrap();
        let compute = Compute::open(&controller, 5).unwrap();
        let programs = compute.programs().await.unwrap();
        let index = programs.iter().position(|program| program.pid() == 9).unwrap();
        let index = u16::try_from(index).unwrap();
        let result = compute.execute(index, &task.execution(Output::Completion)).await;
        controller.disconnect().await;
        result
    });
    executed.unwrap()
}

#[test]
fn drives_of_an_array_know_each_other_also_at_other_ports() {
    let array = Array::up_on_files(3, "128M");
    let path = array.path("csd-array/peers");
    let about = fs::metadata(&path).unwrap();
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    let urls: Vec<String> =
        array.drives().iter().map(|drive| drive["url"].as_str().unwrap().to_owned()).collect();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("peer ")).collect();
    assert!(lines.len() == 3 && lines.iter().all(|line| line.contains(" DHHC-1:01:")), "{text}");
    assert!(lines.iter().zip(&urls).all(|(line, url)| line.contains(url)), "{text}");

    let (one, two): (Vec<u8>, Vec<u8>) = ((0..=255).collect(), (0..=255).rev().collect());
    store(&array, 0, 1, &one);
    store(&array, 1, 1, &two);
    let sum = vec![0xFF; 256];
    assert_eq!(add_up(&array, 256, 2).unwrap(), 1 << 32 | u64::from(crc32c::crc32c(&sum)));
    assert_eq!(retrieve(&array, 2, 2).as_ref(), Some(&sum));

    // A drive that comes back at another port is found there: the others read the file again.
    array.kill(1);
    assert_eq!(add_up(&array, 256, 3).unwrap_err().status(), Some(Status::PEER_FAILED));
    array.csd(&["array", "up"]).expect(0, &[]);
    assert_ne!(array.drives()[1]["url"], urls[1]);
    add_up(&array, 256, 3).unwrap();
    assert_eq!(retrieve(&array, 2, 3), Some(sum.clone()));
    // Secrets stay, and a drive that joins gets one.
    array.csd(&["array", "add", "--drives", "1"]).expect(0, &[]);
    let now = fs::read_to_string(&path).unwrap();
    let secret = |line: &str| line.rsplit(' ').next().unwrap().to_owned();
    assert!(lines.iter().all(|line| now.contains(&secret(line))), "{now}");
    assert_eq!(now.matches("peer ").count(), 4, "{now}");

    // Without the file the drive has no peers, and the log says why.
    fs::remove_file(&path).unwrap();
    array.csd(&["array", "down"]).expect(0, &[]);
    array.csd(&["array", "up"]).expect(0, &[]);
    add_up(&array, 256, 4).unwrap();
    fs::write(&path, "peer nowhere").unwrap();
    add_up(&array, 256, 5).unwrap();
    let log = fs::read_to_string(array.path("csd-array/d0.log")).unwrap();
    assert!(log.contains("the file of peers cannot be read"), "{log}");
    array.csd(&["array", "down", "--delete", "--yes"]).expect(0, &[]);
    assert!(!array.path("csd-array").exists());
}

#[test]
fn a_file_of_peers_with_a_mistake_is_refused_in_words() {
    let array = Array::without_drives();
    let serve = ["drive", "serve", "--media", "memory", "--size", "64M", "--listen", "127.0.0.1:0"];
    let refused = |words: &str| {
        array.csd(&[&serve[..], &["--peers", "peers"]].concat()).expect(2, &[words]);
    };
    refused("file of peers peers: No such file");
    let line = "peer nvme+tcp://127.0.0.1:1/nqn.2026-11.x:a";
    for (text, words) in [
        ("peer".to_owned(), "line 1: not `peer URL` nor `peer URL SECRET`"),
        (format!("{line}\n{line}"), "line 2: a second line of nqn.2026-11.x:a"),
        (format!("{line} DHHC-1:01:"), "line 1: a secret is DHHC-1"),
    ] {
        array.file("peers", text.as_bytes());
        refused(words);
    }
    let secret = array.csd(&["secret", "new"]).expect(0, &[]).text();
    array.file("peers", format!("{line} {secret}").as_bytes());
    fs::set_permissions(array.path("peers"), Permissions::from_mode(0o640)).unwrap();
    refused("others may use it (mode 640); say chmod 600");
}
