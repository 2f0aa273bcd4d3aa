//! RocksDB's C interface, as far as it is used here (`rocksdb/c.h` of version 7.8).

use std::ffi::{c_char, c_int, c_uchar};
use std::marker::{PhantomData, PhantomPinned};

/// Declares types of the library that are known by their addresses alone.
macro_rules! opaque {
    ($($name:ident)*) => {$(
        #[repr(C)]
        pub struct $name {
            _bytes: [u8; 0],
            _address: PhantomData<(*mut u8, PhantomPinned)>,
        }
    )*};
}

opaque!(Db Options WriteOptions ReadOptions WriteBatch PinnableSlice);

#[link(name = "rocksdb")]
unsafe extern "C" {
    pub fn rocksdb_open(
        options: *const Options,
        path: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut Db;
    pub fn rocksdb_close(db: *mut Db);
    pub fn rocksdb_options_create() -> *mut Options;
    pub fn rocksdb_options_destroy(options: *mut Options);
    pub fn rocksdb_get_options_from_string(
        base: *const Options,
        text: *const c_char,
        new: *mut Options,
        error: *mut *mut c_char,
    );
    pub fn rocksdb_writeoptions_create() -> *mut WriteOptions;
    pub fn rocksdb_writeoptions_destroy(options: *mut WriteOptions);
    pub fn rocksdb_writeoptions_set_sync(options: *mut WriteOptions, is_on: c_uchar);
    pub fn rocksdb_readoptions_create() -> *mut ReadOptions;
    pub fn rocksdb_readoptions_destroy(options: *mut ReadOptions);
    pub fn rocksdb_writebatch_create() -> *mut WriteBatch;
    pub fn rocksdb_writebatch_destroy(batch: *mut WriteBatch);
    pub fn rocksdb_writebatch_putv(
        batch: *mut WriteBatch,
        keys: c_int,
        key_bytes: *const *const c_char,
        key_lengths: *const usize,
        values: c_int,
        value_bytes: *const *const c_char,
        value_lengths: *const usize,
    );
    pub fn rocksdb_write(
        db: *mut Db,
        options: *const WriteOptions,
        batch: *mut WriteBatch,
        error: *mut *mut c_char,
    );
    pub fn rocksdb_get_pinned(
        db: *mut Db,
        options: *const ReadOptions,
        key: *const c_char,
        key_length: usize,
        error: *mut *mut c_char,
    ) -> *mut PinnableSlice;
    pub fn rocksdb_pinnableslice_value(
        value: *const PinnableSlice,
        length: *mut usize,
    ) -> *const c_char;
    pub fn rocksdb_pinnableslice_destroy(value: *mut PinnableSlice);
    pub fn rocksdb_property_int(db: *mut Db, name: *const c_char, value: *mut u64) -> c_int;
    pub fn rocksdb_free(memory: *mut std::ffi::c_void);
}
