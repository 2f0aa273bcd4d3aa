//! [`Store`]: an open RocksDB database, and [`Pinned`], a value in its memory.
//!
//! Invariants: a write returns when it is durable (its log is synced); a database is created and
//! never taken over.

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::null_mut;
use std::time::Duration;

use csd_bench::Error;

use crate::library::*;

/// Options of every database: the write buffer of the published comparison, logs that are used
/// again so that a sync need not make a longer file durable, filters, and no compression, because
/// the drive compresses nothing either.
const BASE: &str = "create_if_missing=true;error_if_exists=true;compression=kNoCompression;\
    write_buffer_size=33554432;max_write_buffer_number=4;max_background_jobs=2;\
    bytes_per_sync=1048576;recycle_log_file_num=4;stats_dump_period_sec=0;\
    block_based_table_factory={block_cache=67108864;filter_policy=bloomfilter:10:false}";
/// Options that bypass the page cache, as the drive does.
const DIRECT: &str = ";use_direct_reads=true;use_direct_io_for_flush_and_compaction=true";
/// Options that keep values in blob files.
const BLOBS: &str =
    ";enable_blob_files=true;min_blob_size=1024;enable_blob_garbage_collection=true";

/// Properties that are 0 when nothing is done in the background.
const BUSY: [&CStr; 4] = [
    c"rocksdb.mem-table-flush-pending",
    c"rocksdb.num-running-flushes",
    c"rocksdb.compaction-pending",
    c"rocksdb.num-running-compactions",
];

/// Returns the options of a database, as RocksDB reads them.
pub fn options(blobs: bool, buffered: bool, more: &str) -> String {
    let direct = if buffered { "" } else { DIRECT };
    let blobs = if blobs { BLOBS } else { "" };
    let more = if more.is_empty() { String::new() } else { format!(";{more}") };
    format!("{BASE}{direct}{blobs}{more}")
}

/// An open database.
#[derive(Debug)]
pub struct Store {
    db: *mut Db,
    write: *mut WriteOptions,
    read: *mut ReadOptions,
}

// SAFETY: RocksDB's database and its options may be used by several threads; the options do not
// change once they are made.
unsafe impl Send for Store {}
// SAFETY: as above.
unsafe impl Sync for Store {}

impl Store {
    /// Creates a database.
    ///
    /// # Errors
    /// RocksDB's, such as an option that it does not know or a folder that has one.
    pub fn create(path: &Path, options: &str) -> Result<Self, Error> {
        let text = CString::new(options).map_err(|_| Error::Usage("a NUL byte".to_owned()))?;
        let path = CString::new(path.as_os_str().as_encoded_bytes());
        let path = path.map_err(|_| Error::Usage("a NUL byte".to_owned()))?;
        // SAFETY: the texts live until the calls return, and everything made is destroyed once.
        unsafe {
            let (base, new) = (rocksdb_options_create(), rocksdb_options_create());
            let parsed = checked(|error| {
                rocksdb_get_options_from_string(base, text.as_ptr(), new, error);
            });
            let opened = parsed.and_then(|()| {
                checked(|error| rocksdb_open(new.cast_const(), path.as_ptr(), error))
            });
            rocksdb_options_destroy(base);
            rocksdb_options_destroy(new);
            let db = opened?;
            let write = rocksdb_writeoptions_create();
            rocksdb_writeoptions_set_sync(write, 1);
            Ok(Self { db, write, read: rocksdb_readoptions_create() })
        }
    }

    /// Writes values in one batch, and syncs it.
    ///
    /// # Errors
    /// RocksDB's.
    pub fn write<'a, P: AsRef<[u8]> + 'a>(
        &self,
        values: impl IntoIterator<Item = (&'a [u8], &'a [P])>,
    ) -> Result<(), Error> {
        // SAFETY: keys and values live until they are copied into the batch, which is destroyed.
        unsafe {
            let batch = rocksdb_writebatch_create();
            for (key, pieces) in values {
                let start = |bytes: &[u8]| bytes.as_ptr().cast::<c_char>();
                let starts: Vec<_> = pieces.iter().map(|piece| start(piece.as_ref())).collect();
                let lengths: Vec<usize> = pieces.iter().map(|it| it.as_ref().len()).collect();
                let count = i32::try_from(pieces.len()).expect("a command has few pieces");
                rocksdb_writebatch_putv(
                    batch,
                    1,
                    &start(key),
                    &key.len(),
                    count,
                    starts.as_ptr(),
                    lengths.as_ptr(),
                );
            }
            let written = checked(|error| rocksdb_write(self.db, self.write, batch, error));
            rocksdb_writebatch_destroy(batch);
            written
        }
    }

    /// Returns a value, `None` if there is none.
    ///
    /// # Errors
    /// RocksDB's.
    pub fn get(&self, key: &[u8]) -> Result<Option<Pinned>, Error> {
        // SAFETY: the key lives until the call returns; the slice is ours.
        let value = unsafe {
            checked(|error| {
                rocksdb_get_pinned(self.db, self.read, key.as_ptr().cast(), key.len(), error)
            })?
        };
        Ok((!value.is_null()).then_some(Pinned(value)))
    }

    /// Waits until nothing is done in the background.
    ///
    /// # Errors
    /// If RocksDB does not have a property that says so.
    pub fn settle(&self) -> Result<(), Error> {
        loop {
            let mut busy = 0;
            for name in BUSY {
                let mut value = 0;
                // SAFETY: the name is a string, and the value lives until the call returns.
                let failed = unsafe { rocksdb_property_int(self.db, name.as_ptr(), &mut value) };
                if failed != 0 {
                    return Err(Error::Server(format!("RocksDB has no property {name:?}")));
                }
                busy += value;
            }
            if busy == 0 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: no value is pinned any more: values are dropped by those who share the store.
        unsafe {
            rocksdb_close(self.db);
            rocksdb_writeoptions_destroy(self.write);
            rocksdb_readoptions_destroy(self.read);
        }
    }
}

/// A value in RocksDB's memory.
pub struct Pinned(*mut PinnableSlice);

// SAFETY: the slice is used by one thread at a time, and may be destroyed by any.
unsafe impl Send for Pinned {}

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        let mut length = 0;
        // SAFETY: the bytes stay where they are until the slice is destroyed.
        unsafe {
            let start = rocksdb_pinnableslice_value(self.0, &mut length);
            match length {
                0 => &[],
                _ => std::slice::from_raw_parts(start.cast(), length),
            }
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: it is ours, and destroyed once.
        unsafe { rocksdb_pinnableslice_destroy(self.0) }
    }
}

/// Calls the library and takes over its error.
///
/// # Safety
/// As the call.
unsafe fn checked<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T, Error> {
    let mut error = null_mut();
    let value = call(&mut error);
    if error.is_null() {
        return Ok(value);
    }
    // SAFETY: an error is a string that the caller frees.
    let text = unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        rocksdb_free(error.cast());
        text
    };
    Err(Error::Server(format!("RocksDB: {text}")))
}
