//! ISA-L's functions from a shared library that is loaded at run time (Debian: libisal2).
//!
//! Measurements compare the kernels with them; no drive uses them. A library stays loaded until the
//! process ends.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_uchar, c_void};
use std::mem::transmute;

/// Name of the library where the system has it.
pub const LIBRARY: &str = "libisal.so.2";

const RTLD_NOW: c_int = 2;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

type Matrix = unsafe extern "C" fn(*mut c_uchar, c_int, c_int);
type Invert = unsafe extern "C" fn(*mut c_uchar, *mut c_uchar, c_int) -> c_int;
type Tables = unsafe extern "C" fn(c_int, c_int, *mut c_uchar, *mut c_uchar);
type Encode = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    *mut c_uchar,
    *const *const c_uchar,
    *const *mut c_uchar,
);
type Iscsi = unsafe extern "C" fn(*const c_uchar, c_int, u32) -> u32;

/// A library that is open.
struct Library(*mut c_void);

impl Library {
    /// Opens a library by its path, or by its name where the system looks for libraries.
    fn open(path: &str) -> Option<Self> {
        let path = CString::new(path).ok()?;
        // SAFETY: the path is a C string; a library's initializers only prepare the library.
        let library = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
        (!library.is_null()).then_some(Self(library))
    }

    /// Returns the address of a function.
    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: the library is open.
        let symbol = unsafe { dlsym(self.0, name.as_ptr()) };
        (!symbol.is_null()).then_some(symbol)
    }
}

/// ISA-L's erasure code.
#[derive(Clone, Copy, Debug)]
pub struct Erasure {
    matrix: Matrix,
    invert: Invert,
    tables: Tables,
    encode: Encode,
}

impl Erasure {
    /// Loads the library; `encode` is the name of the function that computes, such as
    /// `ec_encode_data`. Returns `None` if there is no such library or function.
    #[must_use]
    pub fn load(path: &str, encode: &str) -> Option<Self> {
        let library = Library::open(path)?;
        let symbol = |name: &str| library.symbol(name);
        // SAFETY: these are the functions' types in erasure_code.h.
        unsafe {
            Some(Self {
                matrix: transmute::<*mut c_void, Matrix>(symbol("gf_gen_cauchy1_matrix")?),
                invert: transmute::<*mut c_void, Invert>(symbol("gf_invert_matrix")?),
                tables: transmute::<*mut c_void, Tables>(symbol("ec_init_tables")?),
                encode: transmute::<*mut c_void, Encode>(symbol(encode)?),
            })
        }
    }

    /// Returns all rows of the code's matrix.
    #[must_use]
    pub fn matrix(&self, data: usize, parity: usize) -> Vec<u8> {
        let mut rows = vec![0; (data + parity) * data];
        // SAFETY: the function writes so many bytes.
        unsafe { (self.matrix)(rows.as_mut_ptr(), int(data + parity), int(data)) }
        rows
    }

    /// Returns the inverse of a square matrix.
    ///
    /// # Panics
    /// If the matrix is not square, or is singular.
    #[must_use]
    pub fn invert(&self, mut matrix: Vec<u8>, size: usize) -> Vec<u8> {
        assert_eq!(matrix.len(), size * size);
        let mut inverse = vec![0; size * size];
        // SAFETY: both hold `size` rows of `size` bytes.
        let code = unsafe { (self.invert)(matrix.as_mut_ptr(), inverse.as_mut_ptr(), int(size)) };
        assert_eq!(code, 0, "singular");
        inverse
    }

    /// Returns the multiply tables of `rows` rows.
    ///
    /// # Panics
    /// If there is not a coefficient for each cell.
    #[must_use]
    pub fn tables(&self, data: usize, rows: usize, mut coefficients: Vec<u8>) -> Vec<u8> {
        assert_eq!(coefficients.len(), data * rows);
        let mut tables = vec![0; 32 * data * rows];
        let (from, to) = (coefficients.as_mut_ptr(), tables.as_mut_ptr());
        // SAFETY: the function reads a coefficient and writes 32 bytes for each cell.
        unsafe { (self.tables)(int(data), int(rows), from, to) }
        tables
    }

    /// Multiplies pieces of one length, `slice` bytes at a time.
    ///
    /// # Panics
    /// If the tables or the lengths of the pieces do not match.
    pub fn encode(&self, tables: &mut [u8], data: &[&[u8]], out: &mut [&mut [u8]], slice: usize) {
        assert_eq!(tables.len(), 32 * data.len() * out.len());
        assert!(slice > 0);
        let bytes = data.first().map_or(0, |piece| piece.len());
        assert!(data.iter().all(|piece| piece.len() == bytes));
        assert!(out.iter().all(|piece| piece.len() == bytes));
        for at in (0..bytes).step_by(slice) {
            let length = slice.min(bytes - at);
            let from: Vec<_> = data.iter().map(|piece| piece[at..].as_ptr()).collect();
            let to: Vec<_> = out.iter_mut().map(|piece| piece[at..].as_mut_ptr()).collect();
            let (columns, rows) = (int(data.len()), int(out.len()));
            let tables = tables.as_mut_ptr();
            // SAFETY: every piece holds `length` bytes from here on, the tables every cell.
            unsafe {
                (self.encode)(int(length), columns, rows, tables, from.as_ptr(), to.as_ptr());
            }
        }
    }
}

/// Loads ISA-L's CRC-32C; returns `None` if there is no such library or function.
#[must_use]
pub fn crc32c(path: &str) -> Option<impl Fn(&[u8]) -> u32> {
    let symbol = Library::open(path)?.symbol("crc32_iscsi")?;
    // SAFETY: this is the function's type in crc.h; it only reads the buffer.
    let iscsi = unsafe { transmute::<*mut c_void, Iscsi>(symbol) };
    Some(move |bytes: &[u8]| {
        // SAFETY: the buffer holds so many bytes.
        !unsafe { iscsi(bytes.as_ptr(), int(bytes.len()), !0) }
    })
}

fn int(value: usize) -> c_int {
    c_int::try_from(value).expect("below 2 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_or_function_that_is_not_there_is_none() {
        assert!(Erasure::load("/nowhere/libisal.so.2", "ec_encode_data").is_none());
        assert!(Erasure::load("a\0b", "ec_encode_data").is_none());
        assert!(crc32c("/nowhere/libisal.so.2").is_none());
    }
}
