//! Callers' memory: keys, values and buffers, and the data of List.
//!
//! Invariant: a null pointer is an error unless its length is 0.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::slice;

use csd_client::Key;
use csd_nvme::kv::KeyList;

use crate::fault::Fault;

/// Returns the bytes of a caller.
///
/// # Safety
/// `bytes` is null or points to `len` readable bytes, for as long as the slice is used.
pub(crate) unsafe fn bytes<'a>(bytes: *const c_void, len: usize) -> Result<&'a [u8], Fault> {
    match (bytes.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Fault::invalid("a pointer is null and its length is not 0")),
        // SAFETY: as the caller of this function promises.
        (false, len) => Ok(unsafe { slice::from_raw_parts(bytes.cast(), len) }),
    }
}

/// Returns a key of a caller.
///
/// # Safety
/// As for [`bytes`].
pub(crate) unsafe fn key(key: *const c_void, len: u8) -> Result<Key, Fault> {
    // SAFETY: as the caller of this function promises.
    let bytes = unsafe { bytes(key, len.into()) }?;
    Key::new(bytes).map_err(|_| csd_client::Error::KeyLength(len.into()).into())
}

/// A buffer that a caller wants written: an address that is not followed before [`Target::write`].
#[derive(Clone, Copy)]
pub(crate) struct Target {
    address: *mut c_void,
    len: usize,
}

// SAFETY: it is only an address; `write` says when it may be followed.
unsafe impl Send for Target {}

impl Target {
    pub(crate) fn new(address: *mut c_void, len: usize) -> Result<Self, Fault> {
        if address.is_null() && len > 0 {
            return Err(Fault::invalid("a buffer is null and its length is not 0"));
        }
        Ok(Self { address, len })
    }

    /// Copies as many of `from` as fit.
    ///
    /// # Safety
    /// The address points to as many writable bytes as were named, or the length is 0.
    pub(crate) unsafe fn write(self, from: &[u8]) {
        let count = from.len().min(self.len);
        if count > 0 {
            // SAFETY: `count` bytes of both; Rust's slice and the caller's buffer do not overlap,
            // because the slice is memory of this library.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.address.cast(), count) };
        }
    }
}

/// Returns the data of a List with these keys, as the standard lays it out.
pub(crate) fn list_data(keys: &[Key], len: u32) -> Result<Vec<u8>, Fault> {
    let short = |_| Fault::invalid("the buffer of a List has at least 4 bytes");
    let mut list = KeyList::new(len).map_err(short)?;
    for key in keys {
        // All fit: the drive was asked for as many bytes.
        list.push(key);
    }
    Ok(list.finish())
}

/// Finds the key at `position` of a List's data; returns its place, its length, and the position
/// behind it. `None` at the end. A position is the number of keys before it in its upper half, and
/// their bytes in its lower one.
pub(crate) fn next_key(data: &[u8], position: u64) -> Result<Option<(usize, u8, u64)>, Fault> {
    let malformed = || Fault::invalid("the buffer does not hold the data of a List");
    let part = |at: usize, len: usize| data.get(at..at.checked_add(len)?);
    let count = part(0, 4).and_then(|part| part.try_into().ok()).map(u32::from_le_bytes);
    let count = count.ok_or_else(malformed)?;
    if position >> 32 >= u64::from(count) {
        return Ok(None);
    }
    let offset = position & 0xFFFF_FFFF;
    let at = 4 + usize::try_from(offset).map_err(|_| malformed())?;
    let len = part(at, 2).and_then(|part| part.try_into().ok()).map(u16::from_le_bytes);
    let len = len.and_then(|len| u8::try_from(len).ok()).filter(|len| (1..=16).contains(len));
    let len = len.ok_or_else(malformed)?;
    part(at + 2, len.into()).ok_or_else(malformed)?;
    let after = offset + u64::from((2 + u32::from(len)).next_multiple_of(4));
    Ok(Some((at + 2, len, ((position >> 32) + 1) << 32 | after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_of_a_list_is_read_as_it_was_written() {
        let keys = ["a", "bc", "a key of 16 byte"].map(|key| Key::new(key.as_bytes()).unwrap());
        let data = list_data(&keys, 4096).unwrap();
        let (mut position, mut found) = (0, Vec::new());
        while let Some((at, len, next)) = next_key(&data, position).unwrap() {
            found.push(Key::new(&data[at..at + usize::from(len)]).unwrap());
            position = next;
        }
        assert_eq!(found, keys);
        for cut in [0, 3, 5, data.len() - 5] {
            let mut position = 0;
            let end = loop {
                match next_key(&data[..cut], position) {
                    Ok(Some((_, _, next))) => position = next,
                    end => break end,
                }
            };
            assert!(end.is_err(), "{cut}");
        }
        assert!(next_key(&data, 0xFFFF_FFF0).is_err());
        assert!(list_data(&keys, 3).is_err());
    }
}
