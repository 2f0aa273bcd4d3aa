//! Tests of catalogue entries: golden bytes, and hostile ones.

use std::path::PathBuf;

use super::*;
use crate::layout::{Kind, Part, Scheme};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Golden {
    name: String,
    state: String,
    epoch: u64,
    writer: String,
    id: String,
    element: String,
    shape: Vec<u64>,
    chunk_bytes: u32,
    bytes: u64,
    offset: u16,
    members: Vec<DriveIndex>,
    digest: String,
    extents: Option<Vec<Extents>>,
    layout: Option<String>,
    #[serde(default)]
    sums: Vec<u32>,
    #[serde(default)]
    parts: Vec<(u16, u32, u64, u64)>,
    #[serde(default)]
    survives: u8,
    protection: Option<GoldenProtection>,
    copy: Option<String>,
    #[serde(default)]
    stored_unix_ms: u64,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct GoldenProtection {
    code: String,
    epoch: u64,
    group: Vec<DriveIndex>,
    sums: Option<Vec<u32>>,
    #[serde(default)]
    missing: Vec<(u32, usize)>,
}

impl GoldenProtection {
    fn protection(self) -> Protection {
        let scheme = self.code.parse().unwrap();
        let parity = self.sums.map(|sums| {
            let stripes = u32::try_from(sums.len()).unwrap();
            let mut missing = Missing::default();
            let mut add = |(stripe, piece)| missing.add(stripes, scheme, stripe, piece);
            self.missing.into_iter().for_each(&mut add);
            Parity { sums, missing }
        });
        Protection { scheme, epoch: self.epoch, group: self.group, parity }
    }
}

fn unhex<const N: usize>(text: &str) -> [u8; N] {
    unhex_any(text).try_into().expect("length of a golden field")
}

fn unhex_any(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len() / 2)
        .map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap())
        .collect()
}

impl Golden {
    fn entry(self) -> Entry {
        let state = match self.state.as_str() {
            "staged" => State::Staged,
            "sealed" => State::Sealed,
            "deleted" => State::Deleted,
            other => panic!("state {other}"),
        };
        let whole = self.layout.as_deref() == Some("whole");
        let kind = self.layout.filter(|_| !whole).map(|layout| match layout.as_str() {
            "range" => Kind::Range,
            "rows" => Kind::Rows,
            "graph" => Kind::Graph,
            "table" => Kind::Table,
            other => panic!("layout {other}"),
        });
        let part = |&(member, number, bytes, mark): &_| Part { member, number, bytes, mark };
        let parts: Vec<Part> = self.parts.iter().map(part).collect();
        let members = u16::try_from(self.members.len()).unwrap();
        Entry {
            parts: kind
                .map(|kind| Parts::new(kind, self.chunk_bytes, members, parts).unwrap().unwrap()),
            name: self.name,
            id: ObjectId(unhex(&self.id)),
            writer: unhex(&self.writer),
            epoch: self.epoch,
            state,
            element: self.element.parse().unwrap(),
            shape: self.shape,
            chunk_bytes: self.chunk_bytes,
            bytes: self.bytes,
            offset: self.offset,
            members: self.members,
            placement: self.extents.map_or(Placement::Kv, Placement::Block),
            digest: unhex(&self.digest),
            sums: self.sums,
            whole,
            survives: self.survives,
            protection: self.protection.map(GoldenProtection::protection),
            copy: self.copy.map(|copy| ObjectId(unhex(&copy))),
            stored_unix_ms: self.stored_unix_ms,
        }
    }
}

fn golden() -> Vec<(Entry, Vec<u8>)> {
    let folder =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/golden/catalogue");
    let mut found = Vec::new();
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let fields = std::fs::read_to_string(&path).unwrap();
            let fields: Golden = toml::from_str(&fields).unwrap();
            let bytes = std::fs::read_to_string(path.with_extension("hex")).unwrap();
            found.push((fields.entry(), unhex_any(&bytes)));
        }
    }
    assert!(found.len() >= 8, "golden entries are missing");
    found
}

#[test]
fn golden_bytes_are_parsed_and_written() {
    for (entry, bytes) in golden() {
        assert_eq!(Entry::parse(&bytes).as_ref(), Ok(&entry));
        assert_eq!(entry.encode(), bytes, "{}", entry.name);
    }
}

#[test]
fn every_flipped_bit_and_every_prefix_is_refused() {
    for (entry, bytes) in golden() {
        for length in 0..bytes.len() {
            assert!(Entry::parse(&bytes[..length]).is_err(), "{} cut to {length}", entry.name);
        }
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Entry::parse(&changed).is_err(), "{} bit {bit}", entry.name);
        }
    }
}

/// Returns the bytes with a change at `index` and a correct checksum.
fn resealed(bytes: &[u8], index: usize, value: u8) -> Vec<u8> {
    let mut changed = bytes[..bytes.len() - CRC_BYTES].to_vec();
    changed[index] = value;
    let crc = crc32c::crc32c(&changed);
    changed.extend_from_slice(&crc.to_le_bytes());
    changed
}

#[test]
fn hostile_fields_under_a_right_checksum_never_panic() {
    for (_, bytes) in golden() {
        for index in 0..bytes.len() - CRC_BYTES {
            for value in [0, 1, 0x7F, 0x80, 0xFF] {
                let changed = resealed(&bytes, index, value);
                if let Ok(entry) = Entry::parse(&changed) {
                    assert_eq!(entry.encode(), changed, "byte {index} = {value}");
                }
            }
        }
    }
}

#[test]
fn contradictions_are_named() {
    let is_it = |(entry, _): &(Entry, Vec<u8>)| entry.name == "data" && entry.sums.is_empty();
    let (_, bytes) = golden().into_iter().find(is_it).unwrap();
    for (index, value, why) in [
        (6, 9, "unknown state"),
        (7, 9, "unknown element type"),
        (44, 1, "impossible layout"),
        (56, 9, "number of chunks and size disagree"),
        (60, 2, "unknown placement"),
        (61, 7, "unknown layout"),
        (61, 5, "a whole object on several drives"),
        (61, 2, "too short"),
        (62, 2, "impossible members"),
        (70, 1, "reserved bytes are not zero"),
        (75, 1, "reserved bytes are not zero"),
        (112, 1, "impossible members"),
        (116, 4, "shape and size disagree"),
    ] {
        let changed = resealed(&bytes, index, value);
        assert_eq!(Entry::parse(&changed), Err(Malformed(why)), "byte {index} = {value}");
    }
}

#[test]
fn keys_of_names_chunks_and_claims_are_apart() {
    assert_eq!(key("data").as_bytes()[0], KEY_PREFIX);
    assert_ne!(key("data"), key("data "));
    assert!(ObjectId::from_random([0; 12]).0[0] >= 0x80);
    assert!(ObjectId::from_random([0xFF; 12]).0[0] >= 0x80);
}

#[test]
fn contradictions_of_a_protection_are_named() {
    let is_it = |(entry, _): &(Entry, Vec<u8>)| entry.protected().is_some() && entry.copy.is_none();
    let (entry, bytes) = golden().into_iter().find(is_it).unwrap();
    let rest = bytes.len() - CRC_BYTES - 1 - 8;
    for (index, value, why) in [
        (4, 1, "reserved bytes are not zero"),
        (70, 0, "unknown code"),
        (71, 17, "unknown code"),
        (71, 3, "too short"),
        (72, 1, "bytes after its end"),
        (74, 16, "reserved bytes are not zero"),
        (74, 8, "too short"),
        (74, 2, "missing pieces of no parity"),
        (75, 17, "more losses than a code survives"),
        (76, 1, "reserved bytes are not zero"),
        (rest - 8, 1, "impossible group of drives"),
        (bytes.len() - CRC_BYTES - 1, 0, "impossible missing pieces"),
        (bytes.len() - CRC_BYTES - 1, 0x40, "impossible missing pieces"),
        (6, 1, "parity without chunks"),
    ] {
        let changed = resealed(&bytes, index, value);
        assert_eq!(Entry::parse(&changed), Err(Malformed(why)), "byte {index} = {value}");
    }
    let (_, parity) = entry.protected().unwrap();
    let scheme = entry.protection.as_ref().unwrap().scheme;
    assert!(parity.missing.has(scheme, 1, 2) && !parity.missing.has(scheme, 0, 2));
    assert_eq!(parity.missing.count(), 1);
}

#[test]
fn names_of_parity_carry_the_epoch() {
    let is_it = |(entry, _): &(Entry, Vec<u8>)| entry.protected().is_some() && entry.copy.is_none();
    let (mut entry, _) = golden().into_iter().find(is_it).unwrap();
    let first = entry.parity_key(0, 0).unwrap();
    assert_ne!(entry.parity_key(1, 0).unwrap(), first);
    entry.protection.as_mut().unwrap().epoch = 2;
    assert_ne!(entry.parity_key(0, 0).unwrap(), first);
    let own = [entry.id, entry.parity_id().unwrap()];
    assert_eq!(entry.ids(), own);
    // A copy has names of its own, which become the object's.
    let mut copy = Entry { id: ObjectId([0xC0; 12]), ..entry.clone() };
    entry.copy = Some(copy.id);
    assert_eq!(entry.own_ids(), own);
    assert_eq!(entry.ids(), [&own[..], &copy.ids()].concat());
    copy.copy = Some(entry.id);
    assert_eq!(copy.ids().len(), 4);
    // An announced protection has the epoch of its entry.
    entry.protection.as_mut().unwrap().epoch = 0;
    entry.epoch = 1;
    assert_eq!(entry.parity_key(0, 0).unwrap(), first);
}

#[test]
fn missing_pieces_are_added_and_removed_one_by_one() {
    let (scheme, mut missing) = (Scheme::new(3, 2).unwrap(), Missing::default());
    let pieces = [(0, 0), (1, 4), (2, 1)];
    for (stripe, piece) in pieces {
        missing.add(3, scheme, stripe, piece);
    }
    assert_eq!(missing.count(), 3);
    missing.remove(scheme, 1, 4);
    missing.remove(scheme, 1, 3);
    assert!(!missing.has(scheme, 1, 4) && missing.has(scheme, 2, 1) && missing.count() == 2);
    missing.remove(scheme, 0, 0);
    missing.remove(scheme, 2, 1);
    assert_eq!(missing, Missing::default(), "none is the same as none ever");
    missing.remove(scheme, 9, 0);
}
