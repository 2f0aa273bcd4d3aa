//! Bytes that a lawful peer never sends: each case names the fatal error it must cause, at any
//! split of the stream.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used)] // sizes here are small
#![allow(clippy::single_range_in_vec_init)] // some PDUs reserve one range

use csd_nvme::capsule::Sqe;
use csd_nvme::pdu::{FatalStatus, Kind};
use csd_nvme::tcp::controller::{Connection, Event, Limits};
use csd_nvme::tcp::{Digests, Fatal};

fn controller(digests: Digests) -> Connection {
    Connection::new(Limits { h2c_data_bytes_max: 4096, in_capsule_bytes_max: 8192, digests })
}

fn ic_req() -> Vec<u8> {
    let mut pdu = vec![0; 128];
    pdu[0] = 0x00;
    pdu[2] = 128;
    pdu[4] = 128;
    pdu
}

/// Feeds `input` byte by byte; the fatal error it ends in, if any.
fn feed(connection: &mut Connection, input: &[u8]) -> Option<Fatal> {
    for byte in input.chunks(1) {
        let mut byte = byte;
        loop {
            match connection.next(&mut byte) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(fatal) => return Some(fatal),
            }
        }
    }
    None
}

fn expect(input: &[u8], status: FatalStatus, information: u32) {
    let mut connection = controller(Digests::default());
    let fatal = feed(&mut connection, input).expect("a fatal error");
    assert_eq!((fatal.status, fatal.information), (status, information));
    let request = fatal.encode(Kind::C2H_TERM_REQ);
    assert!(request.len() <= 152 && request[0] == 3);
    assert_eq!(u32::from_le_bytes(request[4..8].try_into().unwrap()) as usize, request.len());
    // Nothing more is decoded after a fatal error.
    assert!(connection.next(&mut &ic_req()[..]).unwrap().is_none());
}

fn capsule(sqe: &Sqe) -> Vec<u8> {
    let mut pdu = vec![4, 0, 72, 0, 72, 0, 0, 0];
    pdu.extend_from_slice(sqe.as_bytes());
    pdu
}

fn data_pdu(cid: u16, ttag: u16, offset: u32, data: &[u8], flags: u8) -> Vec<u8> {
    let mut pdu = vec![6, flags, 24, 24];
    pdu.extend_from_slice(&(24 + data.len() as u32).to_le_bytes());
    pdu.extend_from_slice(&cid.to_le_bytes());
    pdu.extend_from_slice(&ttag.to_le_bytes());
    pdu.extend_from_slice(&offset.to_le_bytes());
    pdu.extend_from_slice(&(data.len() as u32).to_le_bytes());
    pdu.extend_from_slice(&[0; 4]);
    pdu.extend_from_slice(data);
    pdu
}

#[test]
fn headers_that_break_the_rules_are_named_by_field() {
    let changed = |index: usize, value: u8| {
        let mut pdu = ic_req();
        pdu[index] = value;
        pdu
    };
    expect(&changed(0, 0x08), FatalStatus::INVALID_HEADER_FIELD, 0);
    expect(&changed(0, 0x07), FatalStatus::INVALID_HEADER_FIELD, 0);
    expect(&changed(2, 127), FatalStatus::INVALID_HEADER_FIELD, 2);
    expect(&changed(4, 127), FatalStatus::INVALID_HEADER_FIELD, 4);
    expect(&changed(7, 1), FatalStatus::INVALID_HEADER_FIELD, 4);
    expect(&changed(8, 1), FatalStatus::UNSUPPORTED_PARAMETER, 8);
    expect(&changed(10, 32), FatalStatus::INVALID_HEADER_FIELD, 10);
}

#[test]
fn the_first_pdu_is_ic_req_and_comes_once() {
    expect(&capsule(&Sqe::zeroed()), FatalStatus::SEQUENCE_ERROR, 0);
    expect(&[ic_req(), ic_req()].concat(), FatalStatus::SEQUENCE_ERROR, 0);
}

#[test]
fn in_capsule_data_is_bounded() {
    let mut pdu = capsule(&Sqe::zeroed());
    pdu[3] = 72;
    pdu[4..8].copy_from_slice(&(72u32 + 8193).to_le_bytes());
    let input = [ic_req(), pdu].concat();
    expect(&input, FatalStatus::LIMIT_EXCEEDED, 0);
}

#[test]
fn data_needs_a_grant_and_stays_within_it() {
    let granted = |pdu: Vec<u8>| {
        let mut connection = controller(Digests::default());
        assert!(feed(&mut connection, &ic_req()).is_none());
        let (ttag, r2t) = connection.grant(5, 0, 1024);
        assert_eq!((ttag, r2t.len()), (0, 24));
        feed(&mut connection, &pdu).map(|fatal| (fatal.status, fatal.information))
    };
    let data = [7; 1024];
    assert_eq!(granted(data_pdu(5, 0, 0, &data, 4)), None);
    let invalid = |offset| Some((FatalStatus::INVALID_HEADER_FIELD, offset));
    assert_eq!(granted(data_pdu(5, 1, 0, &data, 4)), invalid(10));
    assert_eq!(granted(data_pdu(6, 0, 0, &data, 4)), invalid(8));
    assert_eq!(granted(data_pdu(5, 0, 0, &data, 0)), invalid(1));
    assert_eq!(granted(data_pdu(5, 0, 0, &data[..8], 4)), invalid(1));
    let range = Some((FatalStatus::DATA_OUT_OF_RANGE, 0));
    assert_eq!(granted(data_pdu(5, 0, 8, &data[..8], 0)), range);
    assert_eq!(granted(data_pdu(5, 0, u32::MAX, &data, 4)), range);
    assert_eq!(granted(data_pdu(5, 0, 0, &[1; 2048], 4)), range);
    let twice = [data_pdu(5, 0, 0, &data, 4), data_pdu(5, 0, 0, &data, 4)].concat();
    assert_eq!(granted(twice), invalid(10));
    let mut lying = data_pdu(5, 0, 0, &data, 4);
    lying[16] = 1;
    assert_eq!(granted(lying), invalid(16));
}

/// Sets bytes that the standard reserves in a PDU, and so lets a receiver ignore.
fn with_reserved(mut pdu: Vec<u8>, flags: u8, reserved: &[std::ops::Range<usize>]) -> Vec<u8> {
    pdu[1] |= flags;
    reserved.iter().for_each(|range| pdu[range.clone()].fill(0xFF));
    pdu
}

/// Returns the events of a stream, in words without its data.
fn events(connection: &mut Connection, mut input: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(event) = connection.next(&mut input).unwrap() {
        all.push(match event {
            Event::Terminated(request) => format!("{:#x} {:#x}", request.fes(), request.fei()),
            Event::Command { data, .. } => format!("command {data}"),
            Event::DataEnd { complete, .. } => format!("end {complete}"),
            Event::Data { bytes, .. } => format!("data {}", bytes.len()),
            Event::Connected(_) => "connected".into(),
        });
    }
    all
}

#[test]
fn a_controller_ignores_reserved_fields() {
    let mut connection = controller(Digests::default());
    // Flags, PDO, DGST but for its two bits, and the rest.
    let request = with_reserved(ic_req(), 0xFF, &[3..4, 16..128]);
    assert_eq!(events(&mut connection, &request), ["connected"]);
    // The flags of data PDUs, and PDO where there is no data.
    let flush = with_reserved(capsule(&Sqe::zeroed()), 0xFC, &[3..4]);
    assert_eq!(events(&mut connection, &flush), ["command 0"]);
    connection.grant(5, 0, 1024);
    let data = with_reserved(data_pdu(5, 0, 0, &[7; 1024], 4), 0xF8, &[20..24]);
    assert_eq!(events(&mut connection, &data), ["data 0", "data 1024", "end true"]);
    // A host's reason, with a copy of the header that it refuses.
    let mut reason = vec![2, 0, 24, 0, 32, 0, 0, 0, 5, 0, 7, 0, 0, 0];
    reason.resize(32, 0);
    for flags in [0, 0xFF] {
        let reason = with_reserved(reason.clone(), flags, &[3..4, 14..24]);
        let mut connection = controller(Digests::default());
        let input = [ic_req(), reason].concat();
        let said = events(&mut connection, &input);
        assert_eq!(said, ["connected", "0x5 0x7", "data 8", "end true"], "flags {flags:#x}");
    }
}

#[test]
fn a_host_ignores_reserved_fields() {
    let (mut host, _) = csd_nvme::tcp::host::Connection::new(Digests::default());
    let mut response = ic_req();
    response[0] = 1;
    response[12..16].copy_from_slice(&4096u32.to_le_bytes());
    let response = with_reserved(response, 0xFF, &[3..4, 16..128]);
    let answer =
        with_reserved([vec![5, 0, 24, 0, 24, 0, 0, 0], vec![0; 16]].concat(), 0xFE, &[3..4]);
    let r2t = [vec![9, 0, 24, 0, 24, 0, 0, 0], vec![0; 16]].concat();
    let r2t = with_reserved(r2t, 0xFE, &[3..4, 20..24]);
    let mut data = data_pdu(5, 0, 0, &[7; 8], 4);
    data[0] = 7;
    let data = with_reserved(data, 0xF4, &[10..12, 20..24]);
    let mut reason = vec![3, 0, 24, 0, 32, 0, 0, 0, 5, 0, 7, 0, 0, 0];
    reason.resize(32, 0);
    let reason = with_reserved(reason, 0xFF, &[3..4, 14..24]);
    for pdu in [response, answer, r2t, data, reason] {
        let mut input = &pdu[..];
        while host.next(&mut input).unwrap_or_else(|fatal| panic!("{fatal}: {pdu:x?}")).is_some() {}
        assert!(input.is_empty());
    }
}

#[test]
fn our_own_reserved_fields_are_zero() {
    let mut connection = controller(Digests::default());
    let fatal = feed(&mut connection, &[ic_req(), vec![9; 8]].concat()).expect("a fatal error");
    let request = fatal.encode(Kind::C2H_TERM_REQ);
    assert_eq!((request[1], request[3]), (0, 0), "flags and PDO");
    assert!(request[14..24].iter().all(|byte| *byte == 0));
}

#[test]
fn a_wrong_header_digest_is_fatal_and_a_wrong_data_digest_is_not() {
    let both = Digests { header: true, data: true };
    let mut request = ic_req();
    request[11] = 3;
    let mut connection = controller(both);
    assert!(feed(&mut connection, &request).is_none());
    let mut pdu = vec![4, 3, 72, 76, 0, 0, 0, 0];
    pdu.extend_from_slice(&[0; 64]);
    pdu[4..8].copy_from_slice(&(76u32 + 8 + 4).to_le_bytes());
    let crc = crc32c::crc32c(&pdu).to_le_bytes();
    pdu.extend_from_slice(&crc);
    pdu.extend_from_slice(&[1; 8]);
    pdu.extend_from_slice(&[0xEE; 4]); // wrong data digest
    let mut input = &pdu[..];
    let mut verdict = None;
    while let Some(event) = connection.next(&mut input).unwrap() {
        if let Event::DataEnd { digest_matches, .. } = event {
            verdict = Some(digest_matches);
        }
    }
    assert_eq!(verdict, Some(false));
    pdu[20] ^= 1;
    let fatal = feed(&mut connection, &pdu).expect("a fatal error");
    assert_eq!(fatal.status, FatalStatus::HEADER_DIGEST_ERROR);
    assert_eq!(fatal.information, u32::from_le_bytes(crc));
}

#[test]
fn a_terminate_request_is_heard_even_first() {
    let mut connection = controller(Digests::default());
    let mut pdu = vec![2, 0, 24, 0, 24, 0, 0, 0, 1, 0];
    pdu.resize(24, 0);
    let event = connection.next(&mut &pdu[..]).unwrap();
    assert!(matches!(event, Some(Event::Terminated(request)) if request.fes() == 1));
}
