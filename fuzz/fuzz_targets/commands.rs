//! Submission queue entries of every command set.

#![no_main]

use csd_nvme::capsule::Sqe;
use csd_nvme::{compute, kv, memory, nvm};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(sqe) = Sqe::parse(data) else { return };
    if let Ok(nvm::Command::Read(extent) | nvm::Command::Write { extent, .. }) =
        nvm::Command::parse(&sqe)
    {
        assert!((1..=nvm::BLOCKS_MAX).contains(&extent.blocks));
    }
    if let Ok(kv::Command::Store { key, .. } | kv::Command::Retrieve { key, .. }) =
        kv::Command::parse(&sqe)
    {
        assert!((1..=16).contains(&key.as_bytes().len()));
    }
    if let Ok(compute::Command::Execute { length, .. }) = compute::Command::parse(&sqe) {
        assert!(length <= compute::DATA_BYTES_MAX);
    }
    if let Ok(memory::Command::Read(range) | memory::Command::Write(range)) =
        memory::Command::parse(&sqe)
    {
        assert!(range.aligned().is_ok() && range.length > 0);
    }
    let _ = memory::sources(data[0] & 7, data);
    let _ = compute::parse_program_list(data);
});
