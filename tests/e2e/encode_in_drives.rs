//! `csd protect --encode`: parity that drives compute from each other's chunks.

use std::fs;

use serde_json::Value;

use crate::support::data::bytes;
use crate::support::harness::Array;
use crate::support::pieces::check;
use crate::support::secrets::{HOST, new_secret, secrets_file};

fn protect(array: &Array, name: &str, code: i32, more: &[&str]) -> Value {
    let words = ["protect", name, "rs:4+2", "--json"];
    array.csd(&[&words[..], more].concat()).expect(code, &[]).json()
}

#[test]
fn drives_encode_every_layout_and_under_one_percent_crosses_to_the_host() {
    let array = Array::up(6, "512M");
    // What the catalogue takes depends on how full the drives are, and on chance.
    array.file("x", &bytes(1, 48_000_001));
    array.file("short", &bytes(2, 5_000));
    array.file("s", &(0..10_000_001i32).flat_map(i32::to_le_bytes).collect::<Vec<u8>>());
    for (name, put) in [
        ("values", "put x values"),
        ("blocks", "put x blocks --on block"),
        ("sorted", "put s sorted --type i32 --layout range"),
        ("short", "put short short --chunk 4K"),
        // Its own drive encodes it and sends the pieces.
        ("whole", "put x whole --layout whole"),
        // The drives of its chunks fetch them to blocks.
        ("block", "put x block --layout whole --on block"),
    ] {
        array.csd(&put.split(' ').collect::<Vec<_>>()).expect(0, &[]);
        let said = protect(&array, name, 0, &["--encode", "drives"]);
        let encode = &said["result"]["encode"];
        assert_eq!((&encode["by"], &encode["stripes_on_host"]), (&"drives".into(), &0.into()));
        let crossed = said["result"]["host_crossed_bytes"].as_u64().unwrap();
        let object = said["result"]["bytes"].as_u64().unwrap();
        // The catalogue takes as much for any object.
        let most = if name == "short" { 400_000 } else { object / 100 };
        assert!(crossed > 0 && crossed < most, "{name}: {crossed}");
        check(&array, name, 4, 2);
    }
    // What the host encodes crosses.
    array.csd(&["put", "x", "here"]).expect(0, &[]);
    let said = protect(&array, "here", 0, &["--encode", "host"]);
    let crossed = said["result"]["host_crossed_bytes"].as_u64().unwrap();
    let number = |name: &str| said["result"][name].as_u64().unwrap();
    let (data, chunk) = (number("bytes"), number("chunk_bytes"));
    let (stripes, rest) = (data / (4 * chunk), data % (4 * chunk));
    let expected = data + 2 * (stripes * chunk + rest.min(chunk));
    assert!(crossed >= expected, "chunks and parity: {crossed}");
    assert_eq!(said["result"]["encode"]["host"]["host_link_bytes"], expected);
    let again = protect(&array, "here", 0, &["--encode", "drives"]);
    assert!(again["result"]["encode"].is_null(), "it was protected before");
    array.kill(0);
    array.kill(3);
    let files = [("sorted", "s"), ("short", "short")];
    let others = ["values", "blocks", "whole", "block"].map(|name| (name, "x"));
    for (name, file) in files.into_iter().chain(others) {
        let got = array.csd(&["get", name, "-", "--raw"]);
        assert!(matches!(got.code, 0 | 4), "{name}: {}", got.stderr);
        assert!(got.stdout == fs::read(array.path(file)).unwrap(), "{name}");
    }
}

#[test]
fn auto_prints_what_moves_and_the_host_helps_drives_that_cannot() {
    let array = Array::up(6, "256M");
    array.file("x", &bytes(1, 8 << 20));
    for name in ["one", "two"] {
        array.csd(&["put", "x", name]).expect(0, &[]);
    }
    for name in ["block", "auto"] {
        array.csd(&["put", "x", name, "--layout", "whole", "--on", "block"]).expect(0, &[]);
    }
    let said = protect(&array, "auto", 0, &["--encode", "auto"]);
    let encode = &said["result"]["encode"];
    let most = |way: &str| {
        let link = |name: &str| encode[way][name].as_u64().unwrap();
        link("host_link_bytes").max(link("busiest_drive_bytes"))
    };
    let better = if most("drives") < most("host") { "drives" } else { "host" };
    assert_eq!(encode["by"], better, "{encode}");
    let words = ["encode", "host's link", "busiest drive", "encoded in drives", "taken"];
    let auto = ["protect", "one", "rs:4+2", "--encode", "auto", "--link-rate", "100M"];
    let said = array.csd(&auto).expect(0, &[]).text();
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
    check(&array, "one", 4, 2);
    array.csd(&["protect", "two", "rs:4+2", "--link-rate", "0"]).expect(2, &["--link-rate"]);
    // Drives without peers.
    fs::write(array.path("csd-array/peers"), "# nothing\n").unwrap();
    let said = protect(&array, "two", 4, &["--encode", "drives"]);
    let stripes = &said["result"]["protection"]["stripes"];
    assert_eq!(&said["result"]["encode"]["stripes_on_host"], stripes);
    let warnings = said["warnings"].to_string();
    let words = format!("{stripes} stripes were encoded on the host");
    assert!(warnings.contains(&words), "{warnings}");
    assert!(warnings.contains("in the drive's file of peers"), "{warnings}");
    check(&array, "two", 4, 2);
    // Its chunks are spread to blocks.
    let said = protect(&array, "block", 4, &["--encode", "drives"]);
    let stripes = &said["result"]["protection"]["stripes"];
    assert_eq!(&said["result"]["encode"]["stripes_on_host"], stripes);
    check(&array, "block", 4, 2);
}

#[test]
fn pieces_of_a_drive_that_was_down_are_made_when_it_is_back() {
    let array = Array::up_on_files(6, "256M");
    array.file("x", &bytes(4, 5 << 20));
    array.kill(5);
    array.csd(&["put", "x", "--chunk", "64K"]).expect(4, &[]);
    let said = protect(&array, "x", 4, &["--encode", "drives"]);
    assert!(said["result"]["protection"]["missing"].as_u64().unwrap() > 0, "{said}");
    array.csd(&["array", "up"]).expect(0, &[]);
    array.csd(&["repair"]).expect(0, &[]);
    check(&array, "x", 4, 2);
}

#[test]
fn drives_that_know_their_hosts_by_secrets_know_each_other_too() {
    let array = Array::without_drives();
    let host = new_secret(&array, &["--nqn", HOST]);
    let file = secrets_file(&array, "secrets", &[host]);
    let with = ["--secrets", file];
    let run = |words: &str| {
        let words: Vec<&str> = words.split(' ').chain(with).collect();
        array.csd(&words).expect(0, &[])
    };
    run("array up --drives 3 --size 256M --media memory");
    array.file("x", &bytes(1, 4 << 20));
    run("put x");
    let said = run("protect x rs:2+1 --encode drives --json").json();
    assert_eq!(said["result"]["encode"]["stripes_on_host"], 0);
    run("get x back");
    assert!(fs::read(array.path("back")).unwrap() == fs::read(array.path("x")).unwrap());
}
