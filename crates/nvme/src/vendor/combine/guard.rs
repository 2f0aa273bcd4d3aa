//! Guards of a task: values that the executing drive must have when it writes a target.

use super::Malformed;
use crate::kv::{KEY_BYTES_MAX, Key};
use crate::wire::layout;

/// Maximum length of a guard's value, bytes.
pub const GUARD_BYTES_MAX: usize = 32;

layout! {
    /// One guard.
    pub struct GuardRecord[64] {
        /// Number of the target.
        target / set_target: u8 @ 0,
        /// Length of the key, bytes.
        key_length / set_key_length: u8 @ 1,
        /// Length of the value, bytes.
        value_length / set_value_length: u8 @ 2,
        /// Reserved, 0.
        reserved / set_reserved: u8 @ 3,
        /// kv namespace.
        nsid / set_nsid: u32 @ 4,
        /// Key, padded with zeros.
        key / set_key: [16] @ 8,
        /// Reserved, 0.
        gap / set_gap: [8] @ 24,
        /// Value, padded with zeros.
        value / set_value: [32] @ 32,
    }
}

/// A checked guard: its target is stored only if the executing drive has exactly this value under
/// this key right before it writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Number of the target, which lies on the executing drive.
    pub target: u8,
    /// kv namespace.
    pub nsid: u32,
    /// Key.
    pub key: Key,
    /// Value, 1 to [`GUARD_BYTES_MAX`] bytes.
    pub value: Vec<u8>,
}

impl Guard {
    pub(super) fn of(record: &GuardRecord) -> Result<Self, Malformed> {
        let (key, value) = (record.key(), record.value());
        let (keyed, valued) =
            (usize::from(record.key_length()), usize::from(record.value_length()));
        if !(1..=usize::from(KEY_BYTES_MAX)).contains(&keyed) {
            return Err(Malformed("a guard's key has not 1 to 16 bytes"));
        }
        if !(1..=GUARD_BYTES_MAX).contains(&valued) {
            return Err(Malformed("a guard's value has not 1 to 32 bytes"));
        }
        let gap = record.gap();
        let mut reserved = key[keyed..].iter().chain(&value[valued..]).chain(&gap);
        if record.reserved() != 0 || reserved.any(|byte| *byte != 0) {
            return Err(Malformed("reserved bytes of a guard are not zero"));
        }
        let key = Key::new(&key[..keyed]).expect("its length was checked");
        let value = value[..valued].to_vec();
        Ok(Self { target: record.target(), nsid: record.nsid(), key, value })
    }

    /// # Panics
    /// If the value has a wrong length: the caller's bug.
    pub(super) fn record(&self) -> GuardRecord {
        let mut value = [0; GUARD_BYTES_MAX];
        value[..self.value.len()].copy_from_slice(&self.value);
        let small = |length: usize| u8::try_from(length).expect("at most 32");
        let mut record = GuardRecord::zeroed();
        record.set_target(self.target).set_key_length(small(self.key.as_bytes().len()));
        record.set_value_length(small(self.value.len())).set_nsid(self.nsid);
        record.set_key(self.key.padded()).set_value(&value);
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_records_are_named() {
        let key = Key::new(&[2; 9]).unwrap();
        let good = Guard { target: 5, nsid: 3, key, value: vec![0; 28] };
        assert_eq!(Guard::of(&good.record()), Ok(good.clone()));
        let longest =
            Guard { key: Key::new(&[1; 16]).unwrap(), value: vec![7; 32], ..good.clone() };
        assert_eq!(Guard::of(&longest.record()), Ok(longest));
        let wrong = |at: usize, byte: u8| {
            let mut bytes = *good.record().as_bytes();
            bytes[at] = byte;
            Guard::of(&GuardRecord::from_bytes(bytes)).unwrap_err().0
        };
        for length in [0, 17] {
            assert_eq!(wrong(1, length), "a guard's key has not 1 to 16 bytes");
        }
        for length in [0, 33] {
            assert_eq!(wrong(2, length), "a guard's value has not 1 to 32 bytes");
        }
        // The reserved byte, the rest of the key, the gap, and the rest of the value.
        for at in [3, 8 + 9, 8 + 15, 24, 31, 32 + 28, 63] {
            assert_eq!(wrong(at, 1), "reserved bytes of a guard are not zero", "{at}");
        }
    }
}
