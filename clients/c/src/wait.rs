//! Calls that wait for their command.
#![allow(unsafe_code, clippy::missing_safety_doc, reason = "the header documents the functions")]

use std::ffi::{c_int, c_void};

use csd_client::{Client, Error};

use crate::fault::{Fault, guarded};
use crate::handle;
use crate::memory::{Target, bytes, key as key_of, list_data, next_key};
use crate::submit::{list_target, start, store_options};

/// Stores a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_store_wait(
    ns: *mut c_void,
    key: *const c_void,
    key_len: u8,
    value: *const c_void,
    value_len: u32,
    options: u8,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's bytes, used before this returns.
        let (key, value) = unsafe { (key_of(key, key_len)?, bytes(value, value_len as usize)?) };
        let options = store_options(options)?;
        handle::namespace(ns)?.put_with(key.as_bytes(), value, options)?;
        Ok(0)
    })
}

/// Retrieves the first bytes of a value, and its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_retrieve_wait(
    ns: *mut c_void,
    key: *const c_void,
    key_len: u8,
    value: *mut c_void,
    value_len: u32,
    whole_len: *mut u32,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's bytes, used before this returns.
        let key = unsafe { key_of(key, key_len) }?;
        let (target, client) = (Target::new(value, value_len as usize)?, handle::namespace(ns)?);
        let front = client.front(key.as_bytes(), value_len)?;
        let (front, whole) = front.ok_or_else(Fault::no_key)?;
        // SAFETY: the caller's buffer and variable.
        unsafe {
            target.write(&front);
            if let Some(whole_len) = whole_len.as_mut() {
                *whole_len = u32::try_from(whole).unwrap_or(u32::MAX);
            }
        }
        Ok(0)
    })
}

/// Deletes a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_delete_wait(
    ns: *mut c_void,
    key: *const c_void,
    key_len: u8,
) -> c_int {
    // SAFETY: as the caller of this function promises.
    unsafe { wait_key(ns, key, key_len, Client::delete) }
}

/// Asks if a key exists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_exist_wait(
    ns: *mut c_void,
    key: *const c_void,
    key_len: u8,
) -> c_int {
    // SAFETY: as the caller of this function promises.
    unsafe { wait_key(ns, key, key_len, Client::exists) }
}

/// Calls `operation`, which returns true if the key exists or existed, and waits for it.
///
/// # Safety
/// As for [`bytes`].
pub(crate) unsafe fn wait_key(
    ns: *mut c_void,
    key: *const c_void,
    key_len: u8,
    operation: fn(&Client, &[u8]) -> Result<bool, Error>,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's bytes, used before this returns.
        let key = unsafe { key_of(key, key_len) }?;
        match operation(&handle::namespace(ns)?, key.as_bytes())? {
            true => Ok(0),
            false => Err(Fault::no_key()),
        }
    })
}

/// Makes every change durable that was answered before.
#[unsafe(no_mangle)]
pub extern "C" fn csd_kv_flush_wait(ns: *mut c_void) -> c_int {
    guarded(|| {
        handle::namespace(ns)?.flush()?;
        Ok(0)
    })
}

/// Lists keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_list_wait(
    ns: *mut c_void,
    start_key: *const c_void,
    start_key_len: u8,
    buffer: *mut c_void,
    buffer_len: u32,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's bytes, used before this returns.
        let from = unsafe { start(start_key, start_key_len) }?;
        let target = list_target(buffer, buffer_len)?;
        let keys = handle::namespace(ns)?.list(from, buffer_len)?;
        // SAFETY: the caller's buffer.
        unsafe { target.write(&list_data(&keys, buffer_len)?) };
        Ok(0)
    })
}

/// Finds the next key in the data of a List.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_list_next(
    buffer: *const c_void,
    buffer_len: u32,
    position: *mut u64,
    key: *mut *const c_void,
    key_len: *mut u8,
) -> c_int {
    guarded(|| {
        if position.is_null() || key.is_null() || key_len.is_null() {
            return Err(Fault::invalid("a place for the key is null"));
        }
        // SAFETY: the caller's buffer and variables.
        unsafe {
            let data = bytes(buffer, buffer_len as usize)?;
            let Some((at, len, next)) = next_key(data, position.read())? else { return Ok(0) };
            key.write(data[at..].as_ptr().cast());
            key_len.write(len);
            position.write(next);
        }
        Ok(1)
    })
}
