//! CRC-32C by libisal, loaded at run time.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_uchar, c_void};
use std::mem::transmute;

#[path = "library.rs"]
mod library;
use library::Library;

type Iscsi = unsafe extern "C" fn(*const c_uchar, c_int, u32) -> u32;

/// Loads the library; returns its function of a checksum.
pub(crate) fn load(path: &str) -> Option<impl Fn(&[u8]) -> u32> {
    let symbol = Library::open(path)?.symbol("crc32_iscsi")?;
    // SAFETY: this is the function's type in crc.h; it only reads the buffer.
    let iscsi = unsafe { transmute::<*mut c_void, Iscsi>(symbol) };
    Some(move |bytes: &[u8]| {
        let length = c_int::try_from(bytes.len()).expect("below 2 GiB");
        // SAFETY: the buffer holds so many bytes.
        !unsafe { iscsi(bytes.as_ptr(), length, !0) }
    })
}
