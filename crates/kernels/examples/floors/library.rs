//! A shared library, loaded at run time.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_NOW: c_int = 2;

/// A library that is open, and is never closed.
pub(crate) struct Library(*mut c_void);

impl Library {
    /// Opens a library.
    pub(crate) fn open(path: &str) -> Option<Self> {
        let path = CString::new(path).ok()?;
        // SAFETY: the path is a C string; a library's initializers only prepare the library.
        let library = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
        (!library.is_null()).then_some(Self(library))
    }

    /// Returns the address of a function.
    pub(crate) fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: the library is open.
        let symbol = unsafe { dlsym(self.0, name.as_ptr()) };
        (!symbol.is_null()).then_some(symbol)
    }
}
