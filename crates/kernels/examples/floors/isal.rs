//! libisal by its C interface, loaded at run time: the library that the erasure code is measured
//! against. Nothing of it is part of the project.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_uchar, c_void};
use std::mem::transmute;

#[path = "library.rs"]
mod library;
use library::Library;

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

/// The library's functions. Lengths fit in a C `int`.
pub(crate) struct Isal {
    matrix: Matrix,
    invert: Invert,
    tables: Tables,
    encode: Encode,
}

impl Isal {
    /// Loads the library; `encode` is the name of the function that computes, such as
    /// `ec_encode_data`.
    pub(crate) fn load(path: &str, encode: &str) -> Option<Self> {
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
    pub(crate) fn matrix(&self, data: usize, parity: usize) -> Vec<u8> {
        let mut rows = vec![0; (data + parity) * data];
        // SAFETY: the function writes so many bytes.
        unsafe { (self.matrix)(rows.as_mut_ptr(), int(data + parity), int(data)) }
        rows
    }

    /// Returns the inverse of a square matrix.
    pub(crate) fn invert(&self, mut matrix: Vec<u8>, size: usize) -> Vec<u8> {
        assert_eq!(matrix.len(), size * size);
        let mut inverse = vec![0; size * size];
        // SAFETY: both hold `size` rows of `size` bytes.
        let code = unsafe { (self.invert)(matrix.as_mut_ptr(), inverse.as_mut_ptr(), int(size)) };
        assert_eq!(code, 0, "singular");
        inverse
    }

    /// Returns the multiply tables of `rows` rows.
    pub(crate) fn tables(&self, data: usize, rows: usize, mut coefficients: Vec<u8>) -> Vec<u8> {
        assert_eq!(coefficients.len(), data * rows);
        let mut tables = vec![0; 32 * data * rows];
        let (from, to) = (coefficients.as_mut_ptr(), tables.as_mut_ptr());
        // SAFETY: the function reads a coefficient and writes 32 bytes for each cell.
        unsafe { (self.tables)(int(data), int(rows), from, to) }
        tables
    }

    /// Multiplies pieces of one length, `slice` bytes at a time.
    pub(crate) fn encode(
        &self,
        tables: &mut [u8],
        data: &[&[u8]],
        out: &mut [&mut [u8]],
        slice: usize,
    ) {
        assert_eq!(tables.len(), 32 * data.len() * out.len());
        let bytes = data[0].len();
        assert!(data.iter().all(|piece| piece.len() == bytes));
        assert!(out.iter().all(|piece| piece.len() == bytes));
        for at in (0..bytes).step_by(slice) {
            let length = slice.min(bytes - at);
            let mut from = [std::ptr::null(); 32];
            let mut to = [std::ptr::null_mut(); 16];
            for (from, piece) in from.iter_mut().zip(data) {
                *from = piece[at..].as_ptr();
            }
            for (to, piece) in to.iter_mut().zip(out.iter_mut()) {
                *to = piece[at..].as_mut_ptr();
            }
            let (columns, rows) = (int(data.len()), int(out.len()));
            let tables = tables.as_mut_ptr();
            // SAFETY: every piece holds `length` bytes from here on, the tables every cell.
            unsafe {
                (self.encode)(int(length), columns, rows, tables, from.as_ptr(), to.as_ptr());
            }
        }
    }
}

fn int(value: usize) -> c_int {
    c_int::try_from(value).expect("small")
}
