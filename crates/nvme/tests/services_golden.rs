//! Log page and orders of the drive's services against the golden files.

#![allow(missing_docs, clippy::unwrap_used)] // golden files are ours

mod common;
#[path = "common/fields.rs"]
mod fields;

use common::{files, invalid, unhex};
use csd_nvme::vendor::services::{Entry, Order, Services, Setting};
use fields::{integer, pair};
use toml::Value;

/// Returns the entry that a table describes.
fn entry(fields: &Value) -> Entry {
    let (number, text) =
        (|key: &str| integer::<u64>(&fields[key]), |key: &str| fields[key].as_str().unwrap());
    let mut entry = Entry::zeroed();
    entry.describe(text("name"), text("cost"), text("reason"));
    entry.note_found(fields.get("found").map_or("", |found| found.as_str().unwrap()));
    entry.set_state(integer(&fields["state"])).set_class(integer(&fields["class"]));
    entry.set_policy(fields.get("policy").map_or(0, integer));
    entry.set_share(integer(&fields["share"])).set_rate(number("rate"));
    entry.set_steps(number("steps")).set_bytes(number("bytes")).set_busy_ns(number("busy_ns"));
    *entry.set_failures(number("failures"))
}

#[test]
fn golden_log_pages_parse_to_their_services_and_encode_to_their_bytes() {
    let described = files("services/log", "toml");
    assert!(described.len() >= 2);
    for path in described {
        let (fields, bytes) = pair(&path);
        let services = Services {
            segments: integer(&fields["segments"]),
            free_segments: integer(&fields["free_segments"]),
            is_low: fields["is_low"].as_bool().unwrap(),
            entries: fields["service"].as_array().unwrap().iter().map(entry).collect(),
        };
        assert_eq!(services.encode(), bytes, "{}", path.display());
        assert_eq!(Services::parse(&bytes), Some(services), "{}", path.display());
    }
    let refused = invalid("services/log");
    assert!(refused.len() >= 4);
    for path in refused {
        let bytes = unhex(&std::fs::read_to_string(&path).unwrap());
        assert!(Services::parse(&bytes).is_none(), "{}", path.display());
    }
}

#[test]
fn golden_orders_parse_to_their_settings_and_encode_to_their_bytes() {
    let described = files("services/orders", "toml");
    assert!(described.len() >= 5);
    for path in described {
        let (fields, bytes) = pair(&path);
        let value = integer::<u64>(&fields["value"]);
        let setting = match fields["setting"].as_str().unwrap() {
            "pause" => Setting::Pause,
            "resume" => Setting::Resume,
            "rate" => Setting::Rate(Some(value).filter(|rate| *rate > 0)),
            "share" => Setting::Share(u8::try_from(value).unwrap()),
            "policy" => Setting::Policy(u8::try_from(value).unwrap()),
            other => panic!("{}: {other}", path.display()),
        };
        let order = Order { name: fields["name"].as_str().unwrap().to_owned(), setting };
        assert_eq!(order.encode()[..], bytes, "{}", path.display());
        assert_eq!(Order::parse(&bytes), Some(order), "{}", path.display());
    }
    let refused = invalid("services/orders");
    assert!(refused.len() >= 10);
    for path in refused {
        let bytes = unhex(&std::fs::read_to_string(&path).unwrap());
        assert!(Order::parse(&bytes).is_none(), "{}", path.display());
    }
}
