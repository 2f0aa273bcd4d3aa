//! A medium that begins with these bytes: opened or refused, within its bounds.

#![no_main]

use std::sync::Arc;

use csd_kvlog::format;
use csd_kvlog::media::{Media, Memory};
use libfuzzer_sys::fuzz_target;

const BYTES: u64 = 128 << 20;

fuzz_target!(|data: &[u8]| {
    let memory = Memory::new(BYTES);
    let mut page = csd_fuzz::superblock(BYTES);
    csd_fuzz::overwrite(&mut page, data);
    csd_fuzz::sign(&mut page, 12);
    memory.write(0, &page);
    if let Ok(block) = csd_fuzz::ready(format::open(&Media::Memory(Arc::new(memory)))) {
        assert!(block.kv_offset() + block.kv_length() <= BYTES);
        assert!(block.block_offset() + block.block_length() <= BYTES);
        let kv_ends_first = block.kv_offset() + block.kv_length() <= block.block_offset();
        let blocks_end_first = block.block_offset() + block.block_length() <= block.kv_offset();
        assert!(kv_ends_first || blocks_end_first, "the areas overlap");
        assert!(block.value_bytes_max() <= 16 << 20);
        // A feature that is not known was refused; those that may be ignored were not.
        assert_eq!(block.features_needed() & !(format::FEATURE_MARK | format::FEATURE_FREED), 0);
    }
});
