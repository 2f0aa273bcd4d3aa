//! Log page of decisions against the golden files.

#![allow(missing_docs, clippy::unwrap_used)] // golden files are ours

mod common;
#[path = "common/fields.rs"]
mod fields;

use common::{files, invalid, unhex};
use csd_nvme::vendor::decisions::{Decisions, Entry};
use fields::{integer, pair};
use toml::Value;

/// Returns the entry that a table describes.
fn entry(fields: &Value) -> Entry {
    let mut entry = Entry::zeroed();
    entry.set_number(integer(&fields["number"])).set_at_ns(integer(&fields["at_ns"]));
    entry.set_work_ns(integer(&fields["work_ns"])).set_origin(integer(&fields["origin"]));
    entry.set_core(integer(&fields["core"])).set_policy(integer(&fields["policy"]));
    entry.set_reason(integer(&fields["reason"]));
    entry.set_origin_load(integer(&fields["origin_load"]));
    *entry.set_core_load(integer(&fields["core_load"]))
}

#[test]
fn golden_log_pages_parse_to_their_decisions_and_encode_to_their_bytes() {
    let described = files("decisions", "toml");
    assert!(described.len() >= 2);
    for path in described {
        let (fields, bytes) = pair(&path);
        let decisions = Decisions {
            decisions: integer(&fields["decisions"]),
            now_ns: integer(&fields["now_ns"]),
            cores: integer(&fields["cores"]),
            policy: integer(&fields["policy"]),
            entries: fields["decision"].as_array().unwrap().iter().map(entry).collect(),
        };
        assert_eq!(decisions.encode(), bytes, "{}", path.display());
        assert_eq!(Decisions::parse(&bytes), Some(decisions), "{}", path.display());
    }
    let refused = invalid("decisions");
    assert!(refused.len() >= 6);
    for path in refused {
        let bytes = unhex(&std::fs::read_to_string(&path).unwrap());
        assert!(Decisions::parse(&bytes).is_none(), "{}", path.display());
    }
}
