//! `csd scrub --deep`: stripes that are code words are proven without their bytes, and others are
//! named.

use csd_initiator::Kv;
use csd_reactor::Buffer;
use csd_store::array::DriveIndex;
use csd_store::catalogue::{self, Entry};
use serde_json::{Value, json};

use crate::support::data::bytes;
use crate::support::direct::on_objects;
use crate::support::harness::Array;
use crate::support::scrub::scrubbed;

const CHUNK: usize = 64 << 10;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn code_words_are_proven_while_few_bytes_cross_and_other_stripes_are_named() {
    let array = Array::up(6, "256M");
    array.file("x", &bytes(3, 250 * CHUNK + 800));
    array.file("one", b"1");
    for (name, on, code) in [("v", "kv", "rs:4+2"), ("b", "block", "rs:3+3"), ("plain", "kv", "")] {
        let put = ["put", "x", name, "--chunk", "64K", "--on", on];
        let protect = ["--protect", code];
        let more = if code.is_empty() { &[][..] } else { &protect[..] };
        array.csd(&[&put[..], more].concat()).expect(0, &[]);
    }
    array.csd(&["put", "one", "--protect", "rs:4+2"]).expect(0, &[]);
    let clean = scrubbed(&array, &["--deep"], 0);
    let deep = &clean["deep"];
    // 251 chunks in stripes of 4 and of 3, and one of a byte.
    assert_eq!((&deep["stripes"], &deep["unproven"]), (&(63 + 84 + 1).into(), &0.into()));
    // All chunks of the three, their parity, and nothing of the object without.
    let of_pieces = number(&clean["bytes"]) - (250 * CHUNK + 800) as u64;
    assert_eq!(number(&deep["bytes"]), of_pieces);
    let crossed = number(&deep["crossed_bytes"]);
    assert!(crossed > 0 && crossed * 1000 < of_pieces, "{crossed} of {of_pieces} bytes");
    let text = array.csd(&["scrub", "v", "--deep"]).expect(0, &[]).text().to_string();
    assert!(text.contains("63 stripes are code words"), "{text}");
    assert_eq!(scrubbed(&array, &["v"], 0)["deep"], Value::Null);
    // Another parity piece with its digest, as if it had been computed wrongly.
    for drive in 0..6 {
        let piece = Buffer::from_slice(&[9; CHUNK]);
        on_objects(&array, drive, async move |kv: &Kv| {
            let key = catalogue::key("v");
            let value = kv.retrieve(&key, 16_384).await.unwrap().unwrap();
            let mut entry = Entry::parse(&value).unwrap();
            let (stripes, wrong) = (entry.stripes().unwrap(), entry.parity_key(17, 1).unwrap());
            entry.epoch += 1;
            let parity = entry.protection.as_mut().unwrap().parity.as_mut().unwrap();
            parity.sums[stripes.parity_number(17, 1)] = crc32c::crc32c(&piece);
            kv.store(&key, vec![Buffer::from_slice(&entry.encode())], 0).await.unwrap();
            if stripes.drive(17, 5) == Some(DriveIndex::new(drive)) {
                kv.store(&wrong, vec![piece], 0).await.unwrap();
            }
        });
    }
    assert_eq!(scrubbed(&array, &["v"], 0)["bad"], json!([]));
    let found = scrubbed(&array, &["v", "b", "--deep"], 4);
    let bad = json!([{
        "object": "v",
        "stripe": 17,
        "piece": null,
        "page": null,
        "drive": null,
        "cause": "no-code-word",
        "repaired": false,
    }]);
    assert_eq!(found["bad"], bad);
    assert_eq!(found["deep"]["stripes"], 62 + 84);
    let text =
        array.csd(&["scrub", "v", "--deep"]).expect(4, &["1 piece is bad"]).text().to_string();
    assert!(text.contains("stripe 17") && text.contains("no-code-word"), "{text}");
    // Stripes with a piece on a drive that is down are not proven.
    array.kill(2);
    let without = scrubbed(&array, &["b", "--deep"], 4);
    let (proven, unproven) = (&without["deep"]["stripes"], &without["deep"]["unproven"]);
    assert!(number(proven) + number(unproven) == 84 && number(unproven) > 0, "{without}");
    array.csd(&["scrub", "b", "--deep"]).expect(4, &["stripes are not proven"]);
}
