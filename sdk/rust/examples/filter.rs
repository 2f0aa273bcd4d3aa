//! Filter: emits the `i32` of stream 0 that are greater than the parameter, an `i32`; the result is
//! their number.
#![no_std]

use csd_sdk::{Element, emit, fail, parameters, whole, work};

csd_sdk::program!(run);

fn run() -> u64 {
    let mut room = [0; 8];
    let bound = match parameters(&mut room) {
        bytes if bytes.len() == 4 => i32::read(bytes),
        _ => fail("the parameter is an i32"),
    };
    let mut found = 0;
    whole(0, 4, |bytes| {
        let mut kept = [0; 4096];
        let mut length = 0;
        for element in bytes.chunks_exact(4).filter(|bytes| i32::read(bytes) > bound) {
            kept[length..length + 4].copy_from_slice(element);
            length += 4;
            if length == kept.len() {
                emit(&kept);
                length = 0;
            }
            found += 1;
        }
        emit(&kept[..length]);
        work(bytes.len() as u64 / 4);
    });
    found
}
