//! Code that several fuzz targets share.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use csd_kvlog::format::{Split, Superblock};

/// Runs a future that waits only for its turn: media in memory sometimes yield.
pub fn ready<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    for _ in 0..1_000_000 {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
    panic!("media in memory keep nobody waiting")
}

/// Returns the superblock of a new drive of so many bytes.
pub fn superblock(bytes: u64) -> Vec<u8> {
    let split = Split { kv_percent: 50, reserve_percent: 10, block_bytes: 4096 };
    Superblock::plan(bytes, &split, [1; 16]).expect("large enough").as_bytes().to_vec()
}

/// Overwrites bytes: `changes` are triples of an offset (two bytes) and a value.
pub fn overwrite(bytes: &mut [u8], changes: &[u8]) {
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
        bytes[at] = change[2];
    }
}

/// Writes the CRC-32C of all bytes, computed with zeros in its four bytes, to `offset`.
pub fn sign(bytes: &mut [u8], offset: usize) {
    bytes[offset..offset + 4].fill(0);
    let checksum = crc32c::crc32c(bytes);
    bytes[offset..offset + 4].copy_from_slice(&checksum.to_le_bytes());
}

/// NQN of the fuzzed drives.
pub const NQN: &str = "nqn.2026-11.io.csdstore:fuzz";

/// Returns a PDU of a host without digests: header and data.
fn pdu(kind: u8, flags: u8, rest: &[u8], data: &[u8]) -> Vec<u8> {
    let header = 8 + rest.len();
    let offset = if data.is_empty() { 0 } else { header };
    let length = u32::try_from(header + data.len()).expect("short");
    let mut pdu = vec![kind, flags, header as u8, offset as u8];
    pdu.extend_from_slice(&length.to_le_bytes());
    pdu.extend_from_slice(rest);
    pdu.extend_from_slice(data);
    pdu
}

/// Returns ICReq without digests.
pub fn initialise() -> Vec<u8> {
    pdu(0x00, 0, &[0; 120], &[])
}

/// Returns Connect to a queue of 128 entries.
pub fn connect(qid: u16, cntlid: u16) -> Vec<u8> {
    let mut command = [0u8; 64];
    (command[0], command[1], command[4]) = (0x7F, 0x40, 0x01);
    command[2..4].copy_from_slice(&0xFFF0u16.to_le_bytes());
    command[32..36].copy_from_slice(&1024u32.to_le_bytes());
    command[39] = 0x01;
    command[42..44].copy_from_slice(&qid.to_le_bytes());
    command[44] = 127;
    let mut data = [0u8; 1024];
    data[16..18].copy_from_slice(&cntlid.to_le_bytes());
    data[256..256 + NQN.len()].copy_from_slice(NQN.as_bytes());
    let host = b"nqn.2026-11.io.csdstore:fuzzer";
    data[512..512 + host.len()].copy_from_slice(host);
    pdu(0x04, 0, &command, &data)
}

/// Returns Property Set of CC: enabled.
pub fn enable() -> Vec<u8> {
    let mut command = [0u8; 64];
    (command[0], command[1]) = (0x7F, 0x40);
    command[2..4].copy_from_slice(&0xFFF1u16.to_le_bytes());
    command[44] = 0x14;
    command[48..52].copy_from_slice(&(4u32 << 20 | 6 << 16 | 6 << 4 | 1).to_le_bytes());
    pdu(0x04, 0, &command, &[])
}

/// Makes a host's stream from a fuzzer's bytes: valid framing around invalid contents, so that the
/// code behind the framing is reached.
pub fn stream(mut data: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut take = |count: usize| {
        let (head, rest) = data.split_at_checked(count)?;
        data = rest;
        Some(head)
    };
    while let Some(&[choice, cid, size]) = take(3) {
        match choice % 6 {
            0 => match take(usize::from(size)) {
                Some(raw) => stream.extend_from_slice(raw),
                None => break,
            },
            1 | 2 => {
                // A command: opcode, namespace, and what its dwords 10 to 15 hold.
                let Some(bytes) = take(20) else { break };
                let mut command = [0u8; 64];
                (command[0], command[1], command[2]) = (bytes[0], 0x40, cid);
                command[4] = bytes[1];
                command[8..12].copy_from_slice(&bytes[2..6]);
                command[40..54].copy_from_slice(&bytes[6..20]);
                let inside = choice % 6 == 2;
                let length = u32::from(size) * if inside { 16 } else { 4096 };
                command[32..36].copy_from_slice(&length.to_le_bytes());
                command[39] = if inside { 0x01 } else { 0x5A };
                let data = vec![cid; if inside { length as usize } else { 0 }];
                stream.extend(pdu(0x04, 0, &command, &data));
            }
            3 => {
                // Data: of this command, under this tag, from this page on.
                let Some(&[tag, from, pages]) = take(3) else { break };
                let data = vec![size; usize::from(pages % 33) * 4096];
                let mut rest = vec![cid, 0, tag, 0];
                rest.extend_from_slice(&(u32::from(from) * 4096).to_le_bytes());
                rest.extend_from_slice(&(data.len() as u32).to_le_bytes());
                rest.extend_from_slice(&[0; 4]);
                stream.extend(pdu(0x06, if size & 1 == 1 { 4 } else { 0 }, &rest, &data));
            }
            4 => stream.extend(connect(u16::from(cid), u16::from(size))),
            _ => stream.extend(enable()),
        }
    }
    stream
}
