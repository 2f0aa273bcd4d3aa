//! [`Side`]: what is compared, and [`Running`], a side that was started on new media.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use csd_bench::Error;
use csd_bench::frame::Stop;
use csd_bench::load::{Loader, Operation, Ran};
use csd_bench::program;
use csd_bench::serve::{Options, SIZE_BYTES, Server};
use csd_nvme::kv::Key;

use crate::store::Store;
use crate::usage::{Usage, folder_bytes};
use crate::{Arguments, embedded};

/// Time without CPU time of a server after which its work in the background is done.
const QUIET: Duration = Duration::from_millis(500);

/// A side of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// Name in tables and records.
    pub name: &'static str,
    /// True if values lie in blob files; `None` for the drive.
    pub blobs: Option<bool>,
    /// True if it serves.
    pub served: bool,
}

/// The sides, the drive first.
pub const SIDES: [Side; 5] = [
    Side { name: "drive", blobs: None, served: true },
    Side { name: "RocksDB, served", blobs: Some(false), served: true },
    Side { name: "RocksDB with blobs, served", blobs: Some(true), served: true },
    Side { name: "RocksDB, embedded", blobs: Some(false), served: false },
    Side { name: "RocksDB with blobs, embedded", blobs: Some(true), served: false },
];

enum Kind {
    Served { loader: Box<Loader>, server: Server },
    Embedded(Store),
}

/// A side that runs; dropping it ends it and deletes its media.
pub struct Running {
    // Ended before the media are deleted.
    kind: Option<Kind>,
    side: Side,
    media: PathBuf,
}

impl Running {
    /// Starts a side with new media for `bytes` bytes of values in the arguments' folder.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(side: Side, arguments: &Arguments, bytes: u64) -> Result<Self, Error> {
        let media = arguments.dir.join(if side.blobs.is_none() { "drive" } else { "rocksdb" });
        let kind = match side {
            Side { blobs: Some(blobs), served: false, .. } => {
                Kind::Embedded(Store::create(&media, &arguments.options(blobs))?)
            }
            Side { blobs, .. } => {
                // Room for all that is written, so that nothing is cleaned.
                let size_bytes = (SIZE_BYTES + 5 * bytes).next_multiple_of(1 << 20);
                let options = Options { size_bytes, ..arguments.common.drive.clone() };
                if blobs.is_none() && arguments.written {
                    write_zeros(&media, size_bytes)?;
                }
                let server = match blobs {
                    None => program::drive(&Options { media: Some(media.clone()), ..options })?,
                    Some(blobs) => serve(arguments, blobs, &media, options)?,
                };
                let loader = Loader::started(&server, 1, &Stop::default())?;
                Kind::Served { loader: Box::new(loader), server }
            }
        };
        Ok(Self { kind: Some(kind), side, media })
    }

    /// Executes the operation on each key, with `depth` in flight.
    ///
    /// # Errors
    /// The first error of an operation.
    pub fn run(
        &self,
        operation: &Operation,
        keys: &Arc<Vec<Key>>,
        depth: u16,
    ) -> Result<Ran, Error> {
        match self.kind.as_ref().expect("it runs") {
            Kind::Served { loader, .. } => loader.run(operation, keys, keys.len(), depth),
            Kind::Embedded(store) => embedded::run(store, operation, keys, depth),
        }
    }

    /// Waits until a server has done its work in the background.
    ///
    /// # Errors
    /// If the kernel keeps no statistics.
    pub fn settle(&self) -> Result<(), Error> {
        match self.kind.as_ref().expect("it runs") {
            Kind::Served { server, .. } => server.until_quiet(QUIET).map(drop),
            Kind::Embedded(store) => store.settle(),
        }
    }

    /// Reads the counters of the side's process and disk.
    ///
    /// # Errors
    /// If the kernel has none.
    pub fn usage(&self) -> Result<Usage, Error> {
        let process = match self.kind.as_ref().expect("it runs") {
            Kind::Served { server, .. } => server.id(),
            Kind::Embedded(_) => std::process::id(),
        };
        Usage::read(process, self.media.parent().unwrap_or(Path::new(".")))
    }

    /// Returns the bytes that the values take: on RocksDB's disk, or NUSE of the drive, which
    /// counts nothing that cleaning gives back.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn space_bytes(&self) -> Result<u64, Error> {
        match self.kind.as_ref().expect("it runs") {
            Kind::Served { server, .. } if self.side.blobs.is_none() => {
                Ok(Loader::started(server, 1, &Stop::default())?.info().used_bytes)
            }
            _ => folder_bytes(&self.media),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kind = None;
        // The next one that starts says if it is still there.
        let _gone = match self.side.blobs {
            None => std::fs::remove_file(&self.media),
            Some(_) => std::fs::remove_dir_all(&self.media),
        };
    }
}

/// Makes a medium of zeros, which the drive takes as a new one.
fn write_zeros(media: &Path, bytes: u64) -> Result<(), Error> {
    let failed = || Error::at(media);
    let mut file = File::create_new(media).map_err(failed())?;
    let zeros = vec![0; 1 << 20];
    for _ in 0..bytes >> 20 {
        file.write_all(&zeros).map_err(failed())?;
    }
    file.sync_all().map_err(failed())
}

/// Starts a process of this program that serves a database, as a drive of these options. Its own
/// medium, in memory, stays empty.
fn serve(
    arguments: &Arguments,
    blobs: bool,
    media: &Path,
    options: Options,
) -> Result<Server, Error> {
    let mut words = vec!["--serve-rocksdb".into(), arguments.options(blobs).into()];
    words.extend(["--dir".into(), media.into()]);
    words.extend(["--store-threads".into(), arguments.store_threads.to_string().into()]);
    words.extend(Options { spin_us: arguments.store_spin_us, ..options }.arguments());
    Server::launch("server of RocksDB", words)
}
