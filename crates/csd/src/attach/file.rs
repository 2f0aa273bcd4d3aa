//! [`OneFile`]: a file system of one file, whose bytes are those of a volume.
//!
//! Answers about names and attributes are given here; I/O goes through a door to the volume's core,
//! which replies. Invariant: the kernel caches neither bytes nor attributes, because other doors of
//! the drive change them (`FOPEN_DIRECT_IO`).

use std::ffi::OsStr;
use std::time::{Duration, SystemTime};

use csd_client::Volume;
use csd_reactor::Door;
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{FallocateFlags, OFlags};

use super::{Attached, NAME};
use crate::mounted::{Owner, attributes, on_core, unmounted};

/// Inode of the file.
const FILE: INodeNo = INodeNo(2);
/// Lifetime of names and attributes in the kernel: none.
const FORGOTTEN: Duration = Duration::ZERO;
/// Most bytes of one request: the kernel's own limit.
const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Most requests that the kernel has under way.
const BACKGROUND_MAX: u16 = 128;

/// The file system; see the module's text.
pub(super) struct OneFile {
    door: Door,
    bytes: u64,
    block_bytes: u32,
    owner: Owner,
}

impl OneFile {
    pub(super) fn new(volume: &Volume, door: Door) -> Self {
        let (bytes, block_bytes) = (volume.bytes(), volume.block_bytes());
        Self { door, bytes, block_bytes, owner: Owner::this() }
    }

    fn attributes(&self, ino: INodeNo) -> FileAttr {
        let (kind, mode, size) = match ino {
            INodeNo::ROOT => (FileType::Directory, 0o700, 0),
            _ => (FileType::RegularFile, 0o600, self.bytes),
        };
        FileAttr {
            blksize: self.block_bytes,
            ..attributes(ino, (kind, mode), SystemTime::UNIX_EPOCH, size, self.owner)
        }
    }
}

fn empty(reply: ReplyEmpty) -> impl FnOnce(Result<(), Errno>) + Send + 'static {
    move |done| match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for OneFile {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Older kernels have less of this, and work with what they have.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        let _ = config.set_max_write(REQUEST_BYTES_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        Ok(())
    }

    /// Ends the command when the folder is unmounted.
    fn destroy(&mut self) {
        unmounted(&self.door);
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == NAME {
            reply.entry(&FORGOTTEN, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FORGOTTEN, &self.attributes(ino));
    }

    /// Accepts changes without effect. As a block device does, the file ignores that it is opened
    /// with O_TRUNC; any other size is refused.
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
        match size {
            Some(size) if size != 0 && size != self.bytes => reply.error(Errno::EPERM),
            _ => reply.attr(&FORGOTTEN, &self.attributes(ino)),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, NAME),
        ];
        for (index, (ino, kind, name)) in (1..).zip(entries).filter(|(index, _)| *index > offset) {
            if reply.add(ino, index, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = self.bytes / u64::from(self.block_bytes);
        reply.statfs(blocks, 0, 0, 1, 0, self.block_bytes, 255, self.block_bytes);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let how = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), how);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let work = async move |to: &Attached| to.read(offset, size as usize).await;
        on_core(&self.door, work, move |done| match done {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(error),
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let sync = OFlags::from_bits_retain(flags.0.cast_unsigned());
        let sync = sync.intersects(OFlags::SYNC | OFlags::DSYNC);
        // As on a block device, a write that reaches the end is cut there.
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let data = data[..data.len().min(left)].to_vec();
        if data.is_empty() {
            return reply.error(Errno::ENOSPC);
        }
        let count = u32::try_from(data.len()).expect("at most a request");
        let work = async move |to: &Attached| to.write(offset, &data, sync).await;
        on_core(&self.door, work, move |done| match done {
            Ok(()) => reply.written(count),
            Err(error) => reply.error(error),
        });
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        on_core(&self.door, async |to: &Attached| to.flush().await, empty(reply));
    }

    /// Closing a file makes nothing durable.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        let deallocate = mode == FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if !deallocate && mode.difference(FallocateFlags::KEEP_SIZE) != FallocateFlags::ZERO_RANGE {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let zero = async move |to: &Attached| to.zero(offset, length, deallocate).await;
        on_core(&self.door, zero, empty(reply));
    }
}
