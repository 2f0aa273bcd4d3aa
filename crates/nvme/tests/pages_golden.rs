//! Page lists against the golden files.

#![allow(clippy::unwrap_used)] // golden files are ours

mod common;

use common::{folder, invalid, unhex};
use csd_nvme::vendor::location::LocationKind;
use csd_nvme::vendor::pages::{List, Piece};
use toml::{Table, Value};

fn number<T: TryFrom<i64>>(value: &Value) -> T {
    T::try_from(value.as_integer().unwrap()).ok().unwrap()
}

#[test]
fn golden_lists_parse_to_their_fields_and_encode_to_their_bytes() {
    for name in ["values", "blocks"] {
        let read =
            |ending| std::fs::read_to_string(folder("pages").join(format!("{name}.{ending}")));
        let (bytes, fields): (_, Table) =
            (unhex(&read("hex").unwrap()), read("toml").unwrap().parse().unwrap());
        let page_bytes: u32 = number(&fields["page_bytes"]);
        let (mut pieces, mut sums) = (Vec::new(), Vec::new());
        for piece in fields["piece"].as_array().unwrap() {
            let (length, first): (u32, u32) = (number(&piece["bytes"]), number(&piece["first"]));
            let byte = |index: u32| u8::try_from((7 * index + first) % 256).unwrap();
            let content: Vec<u8> = (0..length).map(byte).collect();
            sums.extend(content.chunks(page_bytes as usize).map(crc32c::crc32c));
            pieces.push(Piece { start: number(&piece["start"]), bytes: length });
        }
        let stated = fields["sums"].as_array().unwrap();
        assert_eq!(stated.iter().map(number).collect::<Vec<u32>>(), sums, "{name}");
        let object = unhex(fields["object"].as_str().unwrap()).try_into().unwrap();
        let (kind, nsid) = (LocationKind(number(&fields["kind"])), number(&fields["nsid"]));
        let expected = List { kind, nsid, page_bytes, object, pieces, sums };
        assert_eq!(List::parse(&bytes).as_ref(), Ok(&expected), "{name}");
        assert_eq!(expected.encode(), bytes, "{name}");
    }
}

#[test]
fn invalid_lists_are_refused() {
    let invalid = invalid("pages");
    assert!(invalid.len() >= 20, "{}", invalid.len());
    for path in invalid {
        let bytes = unhex(&std::fs::read_to_string(&path).unwrap());
        assert!(List::parse(&bytes).is_err(), "{}", path.display());
    }
}
