//! Execute Program payloads against the golden files that Python checks too.

#![allow(clippy::unwrap_used)] // golden files are ours

mod common;

use common::{files, invalid, unhex};
use csd_nvme::kv::Key;
use csd_nvme::vendor::execute::{Digests, Execution, Output, Source, SourceData};

fn number(fields: &toml::Table, key: &str) -> u32 {
    u32::try_from(fields[key].as_integer().unwrap()).unwrap()
}

fn long(fields: &toml::Table, key: &str) -> u64 {
    u64::try_from(fields[key].as_integer().unwrap()).unwrap()
}

fn prefix(fields: &toml::Table) -> [u8; 12] {
    unhex(fields["prefix"].as_str().unwrap()).try_into().unwrap()
}

fn source(fields: &toml::Table) -> Source {
    let small = |key: &str| number(fields, key);
    let nsid = fields.get("nsid").map_or(0, |_| small("nsid"));
    let data = match fields["kind"].as_str().unwrap() {
        "kv-chunks" => SourceData::KvChunks {
            nsid,
            prefix: prefix(fields),
            first: small("first"),
            count: small("count"),
            stride: small("stride"),
        },
        "kv-tail" => SourceData::KvTail {
            nsid,
            prefix: prefix(fields),
            number: small("number"),
            skip: small("skip"),
        },
        "keys" => SourceData::Keys {
            nsid,
            from: fields.get("from").map(|key| Key::new(&unhex(key.as_str().unwrap())).unwrap()),
        },
        "inline" => SourceData::Inline { bytes: small("bytes") },
        "memory" => {
            SourceData::Memory { nsid, start: long(fields, "start"), bytes: small("bytes") }
        }
        _ => SourceData::Blocks {
            nsid,
            slba: long(fields, "slba"),
            skip: small("skip"),
            bytes: small("bytes"),
        },
    };
    data.on(fields.get("stream").map_or(0, |_| u8::try_from(small("stream")).unwrap()))
}

fn output(fields: Option<&toml::Value>) -> Output {
    let Some(fields) = fields.and_then(toml::Value::as_table) else { return Output::Completion };
    let small = |key: &str| number(fields, key);
    match fields["kind"].as_str().unwrap() {
        "kv-chunks" => Output::KvChunks {
            nsid: small("nsid"),
            prefix: prefix(fields),
            first: small("first"),
            stride: small("stride"),
            chunk_bytes: small("chunk_bytes"),
        },
        _ => Output::Memory {
            nsid: small("nsid"),
            start: long(fields, "start"),
            bytes: small("bytes"),
        },
    }
}

fn digests(fields: &toml::Value) -> Digests {
    let sums = fields["sums"].as_array().unwrap().iter();
    Digests {
        unit_bytes: number(fields.as_table().unwrap(), "unit_bytes"),
        streams: u8::try_from(number(fields.as_table().unwrap(), "streams")).unwrap(),
        sums: sums.map(|sum| u32::try_from(sum.as_integer().unwrap()).unwrap()).collect(),
    }
}

#[test]
fn golden_payloads_parse_to_their_fields_and_encode_to_their_bytes() {
    let described = files("execute", "toml");
    assert!(described.len() >= 4);
    for path in described {
        let fields: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let sources = fields["source"].as_array().unwrap().iter();
        let expected = Execution {
            program: u64::try_from(fields["program"].as_integer().unwrap()).unwrap(),
            output: output(fields.get("output")),
            sources: sources.map(|one| source(one.as_table().unwrap())).collect(),
            inline: fields.get("inline").map_or(vec![], |inline| unhex(inline.as_str().unwrap())),
            digests: fields.get("digests").map(digests),
            parameters: unhex(fields["parameters"].as_str().unwrap()),
            serial: fields.get("serial").is_some_and(|serial| serial.as_bool().unwrap()),
            cores: fields
                .get("cores")
                .map_or(0, |_| u16::try_from(number(&fields, "cores")).unwrap()),
        };
        let bytes = unhex(&std::fs::read_to_string(path.with_extension("hex")).unwrap());
        assert_eq!(Execution::parse(&bytes).as_ref(), Ok(&expected), "{}", path.display());
        assert_eq!(expected.encode(), bytes, "{}", path.display());
    }
}

#[test]
fn invalid_payloads_are_refused() {
    let files = invalid("execute");
    assert!(files.len() >= 8);
    for path in files {
        let bytes = unhex(&std::fs::read_to_string(&path).unwrap());
        assert!(Execution::parse(&bytes).is_err(), "{}", path.display());
    }
}
