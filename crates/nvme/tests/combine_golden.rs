//! Tasks of `combine` and their answers against the golden files.

#![allow(clippy::unwrap_used)] // golden files are ours

mod common;

use common::{folder, invalid, unhex};
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_nvme::vendor::combine::{Answers, Guard, Piece, Stored, Target, Task};
use csd_nvme::vendor::location::Location;
use toml::{Table, Value};

fn read(name: &str) -> (Vec<u8>, Table) {
    let text = |ending| {
        std::fs::read_to_string(folder("combine").join(format!("{name}.{ending}"))).unwrap()
    };
    (unhex(&text("hex")), text("toml").parse().unwrap())
}

fn number<T: TryFrom<i64>>(value: &Value) -> T {
    T::try_from(value.as_integer().unwrap()).ok().unwrap()
}

fn piece(fields: &Value) -> Piece {
    let nsid = number(&fields["nsid"]);
    let location = match fields.get("key") {
        Some(key) => {
            Location::Value { nsid, key: unhex(key.as_str().unwrap()).try_into().unwrap() }
        }
        None => Location::Blocks { nsid, slba: number(&fields["slba"]) },
    };
    let crc32c = fields.get("crc32c").map(number);
    Piece { peer: number(&fields["peer"]), location, bytes: number(&fields["bytes"]), crc32c }
}

fn task(fields: &Table) -> Task {
    let target = |fields: &Value| {
        let factors = unhex(fields["factors"].as_str().unwrap());
        Target { piece: piece(fields), factors }
    };
    let guard = |fields: &Value| Guard {
        target: number(&fields["target"]),
        nsid: number(&fields["nsid"]),
        key: Key::new(&unhex(fields["key"].as_str().unwrap())).unwrap(),
        value: unhex(fields["value"].as_str().unwrap()),
    };
    let guards = fields.get("guard").and_then(Value::as_array);
    let peers = fields["peers"].as_array().unwrap().iter();
    Task {
        sources: fields["source"].as_array().unwrap().iter().map(piece).collect(),
        targets: fields["target"].as_array().unwrap().iter().map(target).collect(),
        guards: guards.into_iter().flatten().map(guard).collect(),
        peers: peers.map(|name| name.as_str().unwrap().to_owned()).collect(),
    }
}

#[test]
fn golden_tasks_parse_to_their_fields_and_encode_to_their_bytes() {
    for name in ["encode", "double", "guarded"] {
        let (bytes, fields) = read(name);
        let expected = task(&fields);
        assert_eq!(Task::parse(&bytes).as_ref(), Ok(&expected), "{name}");
        assert_eq!(expected.encode(), bytes, "{name}");
    }
}

#[test]
fn invalid_tasks_are_refused() {
    let invalid = invalid("combine");
    assert!(invalid.len() >= 20, "{}", invalid.len());
    for path in invalid {
        let bytes = unhex(&std::fs::read_to_string(&path).unwrap());
        assert!(Task::parse(&bytes).is_err(), "{}", path.display());
    }
}

#[test]
fn golden_answers_parse_to_their_fields_and_encode_to_their_bytes() {
    let (bytes, fields) = read("answers");
    let target = |fields: &Value| {
        let stored = match fields[1].as_str().unwrap() {
            "stored" => Stored::Yes,
            "lost" => Stored::Lost,
            _ => Stored::Refused(Status(number(&fields[2]))),
        };
        (number(&fields[0]), stored)
    };
    let expected = Answers {
        sources: fields["sources"].as_array().unwrap().iter().map(number).collect(),
        targets: fields["targets"].as_array().unwrap().iter().map(target).collect(),
    };
    assert_eq!(Answers::parse(&bytes, 4, 3).as_ref(), Some(&expected));
    assert_eq!(expected.encode(), bytes);
}
