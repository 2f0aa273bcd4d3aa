//! Calls that submit a command, whose completion a queue gets.
//!
//! Invariant: a command that was refused here has no completion.
#![allow(unsafe_code, clippy::missing_safety_doc, reason = "the header documents the functions")]
#![allow(clippy::too_many_arguments, reason = "as in spdk/nvme_kv.h")]

use std::ffi::{c_int, c_void};

use csd_client::{
    Key, Operation, RETRIEVE_RAW, STORE_IF_ABSENT, STORE_IF_EXISTS, STORE_NO_COMPRESSION,
};

use crate::completion::{Callback, Command};
use crate::fault::{Fault, guarded};
use crate::handle;
use crate::memory::{Target, bytes, key as key_of};

/// Returns options of Store that are known.
pub(crate) fn store_options(options: u8) -> Result<u8, Fault> {
    match options & !(STORE_IF_ABSENT | STORE_IF_EXISTS | STORE_NO_COMPRESSION) {
        0 => Ok(options),
        _ => Err(Fault::invalid("an unknown option of Store")),
    }
}

/// Submits an operation.
fn submit(
    ns: *mut c_void,
    qpair: *mut c_void,
    operation: Operation,
    command: Command,
) -> Result<c_int, Fault> {
    let (client, queue) = (handle::namespace(ns)?, handle::queue(qpair)?);
    client.try_submit(operation, move |outcome| queue.push((command, outcome)))?;
    Ok(0)
}

fn plain(callback: Callback, argument: *mut c_void) -> Command {
    Command { callback, argument, target: None, size: 0 }
}

/// Submits an operation on a key that returns no data.
///
/// # Safety
/// As for [`bytes`].
unsafe fn submit_key(
    ns: *mut c_void,
    qpair: *mut c_void,
    key: *const c_void,
    key_len: u8,
    command: Command,
    operation: fn(Key) -> Operation,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's bytes, used before this returns.
        let key = unsafe { key_of(key, key_len) }?;
        submit(ns, qpair, operation(key), command)
    })
}

/// Submits Store.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_store(
    ns: *mut c_void,
    qpair: *mut c_void,
    key: *const c_void,
    key_len: u8,
    value: *const c_void,
    value_len: u32,
    cb_fn: Callback,
    cb_arg: *mut c_void,
    options: u8,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's bytes, used before this returns.
        let (key, value) = unsafe { (key_of(key, key_len)?, bytes(value, value_len as usize)?) };
        let options = store_options(options)?;
        let operation = Operation::Put { key, value: value.to_vec(), options };
        submit(ns, qpair, operation, plain(cb_fn, cb_arg))
    })
}

/// Submits Retrieve.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_retrieve(
    ns: *mut c_void,
    qpair: *mut c_void,
    key: *const c_void,
    key_len: u8,
    value: *mut c_void,
    value_len: u32,
    cb_fn: Callback,
    cb_arg: *mut c_void,
    options: u8,
) -> c_int {
    guarded(|| {
        if options & !RETRIEVE_RAW != 0 {
            return Err(Fault::invalid("an unknown option of Retrieve"));
        }
        // SAFETY: the caller's bytes, used before this returns.
        let key = unsafe { key_of(key, key_len) }?;
        let target = Some(Target::new(value, value_len as usize)?);
        let size = value_len.min(handle::namespace(ns)?.value_bytes_max());
        let command = Command { target, size, ..plain(cb_fn, cb_arg) };
        submit(ns, qpair, Operation::Front { key, size, options }, command)
    })
}

/// Submits Delete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_delete(
    ns: *mut c_void,
    qpair: *mut c_void,
    key: *const c_void,
    key_len: u8,
    cb_fn: Callback,
    cb_arg: *mut c_void,
) -> c_int {
    // SAFETY: as the caller of this function promises.
    unsafe { submit_key(ns, qpair, key, key_len, plain(cb_fn, cb_arg), Operation::Delete) }
}

/// Submits Exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_exist(
    ns: *mut c_void,
    qpair: *mut c_void,
    key: *const c_void,
    key_len: u8,
    cb_fn: Callback,
    cb_arg: *mut c_void,
) -> c_int {
    // SAFETY: as the caller of this function promises.
    unsafe { submit_key(ns, qpair, key, key_len, plain(cb_fn, cb_arg), Operation::Exists) }
}

/// Submits List.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_list(
    ns: *mut c_void,
    qpair: *mut c_void,
    start_key: *const c_void,
    start_key_len: u8,
    buffer: *mut c_void,
    buffer_len: u32,
    cb_fn: Callback,
    cb_arg: *mut c_void,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's bytes, used before this returns.
        let from = unsafe { start(start_key, start_key_len) }?;
        let target = Some(list_target(buffer, buffer_len)?);
        let command = Command { target, size: buffer_len, ..plain(cb_fn, cb_arg) };
        submit(ns, qpair, Operation::List(from, buffer_len), command)
    })
}

/// Returns the key that a List starts from.
///
/// # Safety
/// As for [`bytes`].
pub(crate) unsafe fn start(key: *const c_void, len: u8) -> Result<Option<Key>, Fault> {
    match len {
        0 => Ok(None),
        // SAFETY: as the caller of this function promises.
        len => unsafe { key_of(key, len) }.map(Some),
    }
}

pub(crate) fn list_target(buffer: *mut c_void, len: u32) -> Result<Target, Fault> {
    match len {
        0..4 => Err(Fault::invalid("the buffer of a List has at least 4 bytes")),
        len => Target::new(buffer, len as usize),
    }
}
