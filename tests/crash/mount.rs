//! File system with one file, which is the [`Medium`].
//!
//! After a power cut the file is another inode, so locks, cached pages and descriptors from before
//! do not affect it, as after a reboot. Direct I/O bypasses the kernel's page cache; other writes
//! go through it at once.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{FallocateFlags, OFlags};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::faults::Failure;
use crate::medium::Medium;

const NAME: &str = "medium";
/// Name of the file system in the table of mounts.
const SOURCE: &str = "csd-crash";
/// Lifetime of cached names and attributes: none.
const FORGOTTEN: Duration = Duration::ZERO;
/// Inode of the file before the first cut.
const FIRST: u64 = 2;
/// Concurrent requests: more than the syncs of a drive of two cores, which may be held.
const THREADS: usize = 8;

/// Medium as a path; unmounted on drop.
pub(crate) struct Mount {
    folder: TempDir,
    // Unmounted on drop.
    _session: BackgroundSession,
}

impl Mount {
    pub(crate) fn new(medium: Arc<Medium>) -> std::io::Result<Self> {
        clear();
        let folder = TempDir::with_prefix("csd-crash-")?;
        let mut config = Config::default();
        config.n_threads = Some(THREADS);
        config.mount_options = vec![MountOption::FSName(SOURCE.to_owned())];
        let session = fuser::spawn_mount(OneFile(medium), folder.path(), &config)?;
        Ok(Self { folder, _session: session })
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Detached, because a process that does not end may have the file open.
        if let Err(error) = unmount(self.folder.path(), UnmountFlags::DETACH) {
            eprintln!("{}: not unmounted: {error}", self.folder.path().display());
        }
    }
}

/// Removes leftovers of tests that were killed.
fn clear() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let ours = mounts.lines().filter_map(|line| line.strip_prefix(&format!("{SOURCE} ")));
    for folder in ours.filter_map(|rest| rest.split(' ').next()) {
        let seen = std::fs::metadata(folder).map_err(|error| error.kind());
        if matches!(seen, Err(std::io::ErrorKind::NotConnected)) {
            kill_users(folder);
            // Another test may have unmounted it first.
            let _ = unmount(folder, UnmountFlags::DETACH);
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Kills drives that were started on a medium in `folder`.
fn kill_users(folder: &str) {
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let command = std::fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        let pid = process.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(pid) = pid.and_then(Pid::from_raw)
            && command.contains(&format!("\0--media\0{folder}/{NAME}\0"))
        {
            let _gone = kill_process(pid, Signal::KILL);
        }
    }
}

/// Returns the reason why the lane cannot run here; `None` if it can.
pub(crate) fn missing() -> Option<&'static str> {
    let device = std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse");
    if !rustix::process::geteuid().is_root() {
        Some("mounting takes root")
    } else if device.is_err() {
        Some("there is no /dev/fuse")
    } else {
        None
    }
}

struct OneFile(Arc<Medium>);

impl From<Failure> for Errno {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Io => Self::EIO,
            Failure::NoSpace => Self::ENOSPC,
        }
    }
}

fn done(result: Result<(), Failure>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(failure) => reply.error(failure.into()),
    }
}

impl OneFile {
    fn attributes(&self, ino: INodeNo) -> FileAttr {
        let is_root = ino == INodeNo::ROOT;
        let size = if is_root { 0 } else { self.0.length() };
        let time = SystemTime::UNIX_EPOCH;
        FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind: if is_root { FileType::Directory } else { FileType::RegularFile },
            perm: if is_root { 0o700 } else { 0o600 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for OneFile {
    fn lookup(&self, _: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == NAME {
            let attributes = self.attributes(INodeNo(FIRST + self.0.life()));
            reply.entry(&FORGOTTEN, &attributes, Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FORGOTTEN, &self.attributes(ino));
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match size.map_or(Ok(()), |size| self.0.set_length(size)) {
            Ok(()) => reply.attr(&FORGOTTEN, &self.attributes(ino)),
            Err(failure) => reply.error(failure.into()),
        }
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if ino.0 != FIRST + self.0.life() {
            return reply.error(Errno::ESTALE);
        }
        let flags = OFlags::from_bits_retain(flags.0.cast_unsigned());
        let how = match flags.contains(OFlags::DIRECT) {
            true => FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES,
            false => FopenFlags::empty(),
        };
        reply.opened(FileHandle(self.0.open()), how);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.0.close(handle.0);
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.0.read(handle.0, offset, size as usize) {
            Ok(bytes) => reply.data(&bytes),
            Err(failure) => reply.error(failure.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.0.write(handle.0, offset, data) {
            Ok(bytes) => reply.written(u32::try_from(bytes).expect("as many as were given")),
            Err(failure) => reply.error(failure.into()),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        done(self.0.sync(handle.0), reply);
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        let end = offset + length;
        if mode.is_empty() {
            done(self.0.allocate(handle.0, end), reply);
        } else if mode == FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE {
            done(self.0.punch(handle.0, offset..end), reply);
        } else {
            reply.error(Errno::EOPNOTSUPP);
        }
    }
}
