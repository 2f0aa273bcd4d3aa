//! Frames, commands and log page of the tunnel against the golden files that Python checks too.

#![allow(clippy::unwrap_used)] // golden files are ours

mod common;
#[path = "common/fields.rs"]
mod fields;

use common::{files, invalid, unhex};
use csd_nvme::capsule::Sqe;
use csd_nvme::opcode::Cp;
use csd_nvme::vendor::tunnel::{
    Command, Frame, LogEntry, VirtioNet, count, encode_log, parse, parse_log, receive, send,
};
use fields::{integer, pair};
use toml::Value;

#[test]
fn golden_lists_parse_to_their_frames_and_encode_to_their_bytes() {
    let described = files("tunnel", "toml");
    assert!(described.len() >= 3);
    for path in described {
        let (fields, bytes) = pair(&path);
        let frames = parse(&bytes).unwrap();
        let expected = fields["frame"].as_array().unwrap();
        assert_eq!(frames.len(), expected.len(), "{}", path.display());
        assert_eq!(count(&bytes), expected.len() as u64);
        let mut list = Vec::new();
        for (frame, expected) in frames.iter().zip(expected) {
            let number = |key: &str| integer::<u16>(&expected[key]);
            let byte = |key: &str| integer::<u8>(&expected[key]);
            let mut header = VirtioNet::zeroed();
            header.set_flags(byte("flags")).set_gso_type(byte("gso_type"));
            header.set_hdr_len(number("hdr_len")).set_gso_size(number("gso_size"));
            header.set_csum_start(number("csum_start")).set_csum_offset(number("csum_offset"));
            let packet = unhex(expected["packet"].as_str().unwrap());
            assert_eq!(*frame, Frame { header, packet: &packet }, "{}", path.display());
            Frame { header, packet: &packet }.encode(&mut list);
        }
        assert_eq!(list, bytes, "{}", path.display());
    }
}

#[test]
fn invalid_lists_are_refused() {
    let files = invalid("tunnel");
    assert!(files.len() >= 12);
    for path in files {
        let bytes = unhex(&std::fs::read_to_string(&path).unwrap());
        assert!(parse(&bytes).is_err(), "{}", path.display());
    }
}

fn entry(bytes: &[u8]) -> Sqe {
    Sqe::from_bytes(bytes.try_into().unwrap())
}

#[test]
fn golden_commands_parse_to_their_bytes_and_are_made_of_them() {
    let described = files("tunnel/commands", "toml");
    assert!(described.len() >= 4);
    for path in described {
        let (fields, bytes) = pair(&path);
        let (nsid, length) = (integer(&fields["nsid"]), integer(&fields["bytes"]));
        let (made, parsed) = match Cp(integer(&fields["opcode"])) {
            Cp::TUNNEL_SEND => (send(nsid, length), Command::Send { bytes: length }),
            Cp::TUNNEL_RECEIVE => (receive(nsid, length), Command::Receive { room: length }),
            other => panic!("{}: {other:?}", path.display()),
        };
        assert_eq!(made.as_bytes()[..], bytes, "{}", path.display());
        assert_eq!(Command::parse(&entry(&bytes)), Ok(parsed), "{}", path.display());
    }
    let refused = invalid("tunnel/commands");
    assert!(refused.len() >= 8);
    for path in refused {
        let bytes = unhex(&std::fs::read_to_string(&path).unwrap());
        assert!(Command::parse(&entry(&bytes)).is_err(), "{}", path.display());
    }
}

/// Returns the entry of the log page that a table describes.
fn end(fields: &Value) -> LogEntry {
    let number = |key: &str| integer::<u64>(&fields[key]);
    let text = |key: &str| fields[key].as_str().unwrap();
    let mut end = LogEntry::zeroed();
    end.set_side(integer(&fields["side"])).set_present(integer(&fields["present"]));
    end.set_cntlid(integer(&fields["cntlid"])).set_waiting(integer(&fields["waiting"]));
    end.set_network(text("address").parse().unwrap(), integer(&fields["prefix"]));
    end.set_queued(number("queued")).set_dropped_packets(number("dropped_packets"));
    end.set_sent_packets(number("sent_packets")).set_sent_bytes(number("sent_bytes"));
    end.set_received_packets(number("received_packets"));
    end.set_received_bytes(number("received_bytes"));
    end.set_takeovers(number("takeovers")).set_refused(number("refused")).name_host(text("host"));
    end
}

#[test]
fn golden_log_pages_parse_to_their_ends_and_encode_to_their_bytes() {
    let described = files("tunnel/log", "toml");
    assert!(!described.is_empty());
    for path in described {
        let (fields, bytes) = pair(&path);
        let (mtu, ends) = (integer(&fields["mtu"]), fields["end"].as_array().unwrap());
        let ends: Vec<LogEntry> = ends.iter().map(end).collect();
        assert_eq!(encode_log(mtu, &ends), bytes, "{}", path.display());
        assert_eq!(parse_log(&bytes), Some((mtu, ends)), "{}", path.display());
    }
    let refused = invalid("tunnel/log");
    assert!(refused.len() >= 4);
    for path in refused {
        let bytes = unhex(&std::fs::read_to_string(&path).unwrap());
        assert!(parse_log(&bytes).is_none(), "{}", path.display());
    }
}
