//! Tests of the superblock.

use std::sync::Arc;

use csd_reactor::block_on;

use super::*;
use crate::media::Memory;
use crate::segments::Segments;

const SPLIT: Split = Split { kv_percent: 50, reserve_percent: 10, block_bytes: 4096 };

/// Checks a superblock with some fields changed and its checksum right.
fn changed(change: fn(&mut Superblock)) -> Result<(), String> {
    let mut block = Superblock::plan(1 << 30, &SPLIT, [1; 16]).unwrap();
    change(&mut block);
    let checksum = block.sum();
    block.set_checksum(checksum);
    block.check(1 << 30)
}

#[test]
fn a_split_fills_the_medium_without_overlap() {
    for bytes in [DRIVE_BYTES_MIN, 1 << 30, 100 << 30] {
        let block = Superblock::plan(bytes, &SPLIT, [1; 16]).unwrap();
        assert_eq!(block.check(bytes), Ok(()));
        assert!(block.kv_offset() + block.kv_length() <= block.block_offset());
        let end = block.block_offset() + block.block_length();
        assert!(end <= bytes - bytes / 100 * 10 && end > bytes * 88 / 100);
    }
    let longest = |bytes| Superblock::plan(bytes, &SPLIT, [1; 16]).unwrap().value_bytes_max();
    assert_eq!(longest(DRIVE_BYTES_MIN), 256 << 10);
    assert_eq!(longest(1 << 30), 1 << 20);
    assert_eq!(longest(16 << 30), 16 << 20);
}

/// Announces nearly all bytes of a log, except the 64th part for short records, on media of all
/// sizes.
#[test]
fn most_of_what_a_log_is_given_is_announced() {
    for kv_percent in [20, 50, 80, 100] {
        for step in 0..400 {
            let bytes = (1u64 << 30) + ((step * step) << 22);
            let split = Split { kv_percent, ..SPLIT };
            let block = Superblock::plan(bytes, &split, [1; 16]).unwrap();
            let (segment, length) = (block.segment_bytes(), block.kv_length());
            let count = u32::try_from(length / segment).unwrap();
            let announced = Segments::new([1; 16], 0, segment, count, &[]).capacity_bytes();
            let given = (bytes - HEAD_BYTES - bytes / 100 * 10) / 100 * u64::from(kv_percent);
            let percent = announced / 64 * 63 * 100 / given;
            assert!(percent >= 85, "{bytes} bytes, --kv {kv_percent}%: {percent} %");
        }
    }
}

#[test]
fn areas_that_overlap_or_are_not_whole_are_refused() {
    assert_eq!(changed(|_| {}), Ok(()));
    let changes: [fn(&mut Superblock); 7] = [
        |block| _ = block.set_block_offset(block.kv_offset()),
        |block| _ = block.set_block_offset(block.block_offset() - PAGE_BYTES),
        |block| _ = block.set_kv_offset(block.kv_offset() + 1),
        |block| _ = block.set_kv_length(0),
        |block| _ = block.set_block_length(4097),
        |block| _ = block.set_block_length(block.bytes()),
        |block| _ = block.set_segment_bytes(block.segment_bytes() + 1),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert!(changed(change).is_err(), "change {number}");
    }
}

#[test]
fn logs_of_earlier_versions_without_space_for_short_records_are_read() {
    for (values, longest) in [(2, VALUE_BYTES_MIN), (3, VALUE_BYTES_MIN), (2, 1 << 20)] {
        let mut block = Superblock::plan(1 << 30, &SPLIT, [1; 16]).unwrap();
        let segment = RECORDS_OFFSET + values * (longest + PAGE_BYTES);
        let length = block.kv_length() / segment * segment;
        block.set_segment_bytes(segment).set_kv_length(length);
        let checksum = block.sum();
        block.set_checksum(checksum);
        assert_eq!(block.check(1 << 30), Ok(()));
        assert_eq!(u64::from(block.value_bytes_max()), longest);
    }
}

#[test]
fn impossible_sizes_are_refused_in_words() {
    let text = |bytes, split: Split| {
        Superblock::plan(bytes, &split, [1; 16]).map(|_| ()).unwrap_err().to_string()
    };
    assert!(text(1 << 20, SPLIT).contains("at least 128 MiB"));
    assert!(text(1 << 30, Split { kv_percent: 1, ..SPLIT }).contains("raise --size or --kv"));
    assert!(text(1 << 30, Split { block_bytes: 1024, ..SPLIT }).contains("512 or 4096"));
}

#[test]
fn versions_and_features_that_are_not_known_are_refused_by_name() {
    assert_eq!(changed(|block| _ = block.set_version(1)), Ok(()));
    assert_eq!(changed(|block| _ = block.set_features_optional(u64::MAX)), Ok(()));
    let refused = changed(|block| _ = block.set_version(3)).unwrap_err();
    assert_eq!(refused, "its format version is 3, this program reads versions 1 to 2");
    assert!(changed(|block| _ = block.set_version(0)).is_err());
    let refused = changed(|block| _ = block.set_features_needed(1 << 5 | 1 << 9)).unwrap_err();
    assert!(refused.contains("feature 5") && refused.contains("0x220"), "{refused}");
}

#[test]
fn an_intact_copy_that_is_refused_is_not_overruled_by_the_other() {
    block_on(&csd_reactor::Config::default(), || async {
        let media = Media::Memory(Arc::new(Memory::new(DRIVE_BYTES_MIN)));
        let mut block = format(&media, &SPLIT).await.unwrap();
        block.set_features_needed(1 << 5);
        let checksum = block.sum();
        block.set_checksum(checksum);
        media.write(0, vec![Buffer::from_slice(block.as_bytes())]).await.0.unwrap();
        let refused = open(&media).await.unwrap_err().to_string();
        assert!(refused.contains("feature 5"), "{refused}");
    })
    .unwrap();
}

#[test]
fn any_damaged_byte_is_noticed() {
    let block = Superblock::plan(1 << 30, &SPLIT, [1; 16]).unwrap();
    for index in (0..200).chain([4095]) {
        let mut bytes = *block.as_bytes();
        bytes[index] ^= 1;
        assert!(Superblock::from_bytes(bytes).check(1 << 30).is_err(), "byte {index}");
    }
    assert!(block.check((1 << 30) - 1).unwrap_err().contains("only"));
}
