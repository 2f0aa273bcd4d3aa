//! Objects of any length, as `docs/internals/contracts.md` lays them out: blocking calls.
//!
//! Invariant: a caller's buffer gets all bytes of one version of an object, or none.
#![allow(unsafe_code, clippy::missing_safety_doc, reason = "the header documents the functions")]

use std::ffi::{c_int, c_void};

use csd_client::{Client, STORE_IF_ABSENT, STORE_IF_EXISTS, Within, is_piece};

use crate::fault::{Fault, guarded};
use crate::handle;
use crate::memory::{Target, bytes, key as key_of};
use crate::submit::store_options;
use crate::wait::wait_key;

/// Stores an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_object_store_wait(
    ns: *mut c_void,
    key: *const c_void,
    key_len: u8,
    object: *const c_void,
    object_len: usize,
    options: u8,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's bytes, used before this returns.
        let (key, object) = unsafe { (key_of(key, key_len)?, bytes(object, object_len)?) };
        let options = store_options(options)?;
        let both = STORE_IF_EXISTS | STORE_IF_ABSENT;
        if options & both == both {
            return Err(Fault::invalid("the key must exist, and must not exist"));
        }
        handle::namespace(ns)?.put_object(key.as_bytes(), object, options)?;
        Ok(0)
    })
}

/// Retrieves an object, and its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_object_retrieve_wait(
    ns: *mut c_void,
    key: *const c_void,
    key_len: u8,
    object: *mut c_void,
    object_len: usize,
    whole_len: *mut u64,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's bytes, used before this returns.
        let key = unsafe { key_of(key, key_len) }?;
        let (target, client) = (Target::new(object, object_len)?, handle::namespace(ns)?);
        let found = client.get_object_within(key.as_bytes(), object_len as u64)?;
        let found = found.ok_or_else(Fault::no_key)?;
        let whole = match &found {
            Within::Whole(bytes) => bytes.len() as u64,
            Within::Longer(length) => *length,
        };
        // SAFETY: the caller's variable.
        if let Some(whole_len) = unsafe { whole_len.as_mut() } {
            *whole_len = whole;
        }
        match found {
            // SAFETY: the caller's buffer.
            Within::Whole(bytes) => unsafe { target.write(&bytes) },
            Within::Longer(_) => {
                let words = format!("the object has {whole} bytes, and the buffer {object_len}");
                return Err(Fault::new(libc::EMSGSIZE, words));
            }
        }
        Ok(0)
    })
}

/// Deletes an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_object_delete_wait(
    ns: *mut c_void,
    key: *const c_void,
    key_len: u8,
) -> c_int {
    // SAFETY: as the caller of this function promises.
    unsafe { wait_key(ns, key, key_len, Client::delete_object) }
}

/// Says if a key is that of a piece of an object; bytes that are no key are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_key_is_piece(key: *const c_void, key_len: u8) -> c_int {
    // SAFETY: the caller's bytes, used before this returns.
    let key = unsafe { key_of(key, key_len) };
    c_int::from(key.is_ok_and(|key| is_piece(&key)))
}
