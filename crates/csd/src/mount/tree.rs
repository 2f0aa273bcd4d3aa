//! [`Tree`]: objects as a tree of files, as the kernel asks for it.

use std::ffi::OsStr;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use csd_reactor::{Door, core_local};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyOpen, Request,
};

use super::nodes::{Node, ROOT};
use super::opened::{Listed, length};
use super::{Objects, asked};
use crate::mounted::{Owner, attributes, on_core, unmounted};

/// Time for which the kernel keeps a name.
const KEPT: Duration = Duration::from_secs(1);
/// Bytes that the kernel reads ahead.
const READ_AHEAD_BYTES: u32 = 1 << 20;

/// The file system; see the module's text.
pub(super) struct Tree {
    door: Door,
    owner: Owner,
}

impl Tree {
    pub(super) fn new(door: Door) -> Self {
        Self { door, owner: Owner::this() }
    }
}

fn attributes_of(number: u64, node: &Node, owner: Owner) -> FileAttr {
    let number = INodeNo(number);
    let epoch = SystemTime::UNIX_EPOCH;
    match &node.entry {
        Some(entry) => {
            let stored = Duration::from_millis(entry.stored_unix_ms);
            let time = epoch.checked_add(stored).unwrap_or(epoch);
            attributes(number, (FileType::RegularFile, 0o444), time, length(entry), owner)
        }
        None => attributes(number, (FileType::Directory, 0o555), epoch, 0, owner),
    }
}

/// Adds the folder itself, the one above and what is listed, from `offset` on, for as long as there
/// is room.
fn fill(
    objects: &Objects,
    listed: &[Listed],
    (offset, owner): (u64, Owner),
    reply: &mut ReplyDirectoryPlus,
) {
    let begin = usize::try_from(offset).unwrap_or(usize::MAX);
    let root = attributes_of(ROOT, &Node::folder(String::new()), owner);
    for (next, name) in [(1, "."), (2, "..")].into_iter().skip(begin) {
        // The kernel knows these two, and does not count them.
        if reply.add(INodeNo::ROOT, next, name, &KEPT, &root, Generation(0)) {
            return;
        }
    }
    for (next, (name, node)) in (3..).zip(listed).skip(begin.saturating_sub(2)) {
        let number = objects.nodes.borrow_mut().found(node);
        let attributes = attributes_of(number, node, owner);
        if reply.add(INodeNo(number), next, name, &KEPT, &attributes, Generation(0)) {
            objects.nodes.borrow_mut().forget(number, 1);
            return;
        }
    }
}

impl Filesystem for Tree {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let plus = config.add_capabilities(InitFlags::FUSE_DO_READDIRPLUS);
        plus.map_err(|_| std::io::Error::other("this kernel's FUSE lists no attributes"))?;
        // Older kernels have less of this, and work with what they have.
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        let _ = config.set_max_readahead(READ_AHEAD_BYTES);
        Ok(())
    }

    /// Ends the command when the folder is unmounted.
    fn destroy(&mut self) {
        unmounted(&self.door);
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let Some(name) = asked(name) else { return reply.error(Errno::ENOENT) };
        let owner = self.owner;
        let work = async move |objects: &Objects| objects.lookup(parent.0, &name).await;
        on_core(&self.door, work, move |done| match done {
            Ok((number, node)) => {
                reply.entry(&KEPT, &attributes_of(number, &node, owner), Generation(0));
            }
            Err(error) => reply.error(error),
        });
    }

    fn forget(&self, _: &Request, ino: INodeNo, times: u64) {
        let forget = async move |objects: &Objects| {
            objects.nodes.borrow_mut().forget(ino.0, times);
            Ok(())
        };
        on_core(&self.door, forget, drop);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let owner = self.owner;
        let work = async move |objects: &Objects| objects.node(ino.0);
        on_core(&self.door, work, move |done| match done {
            Ok(node) => reply.attr(&KEPT, &attributes_of(ino.0, &node, owner)),
            Err(error) => reply.error(error),
        });
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let work = async move |objects: &Objects| objects.open(ino.0).await;
        on_core(&self.door, work, move |done| match done {
            // A number stands for one version, so what the kernel has of it stays right.
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::FOPEN_KEEP_CACHE),
            Err(error) => reply.error(error),
        });
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
        let work =
            async move |objects: &Objects| objects.read(handle.0, offset, size as usize).await;
        on_core(&self.door, work, move |done| match done {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(error),
        });
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
        self.close(handle, reply);
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let work = async move |objects: &Objects| objects.open_folder(ino.0).await;
        on_core(&self.door, work, move |done| match done {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(error) => reply.error(error),
        });
    }

    fn readdirplus(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let owner = self.owner;
        let work = async move |objects: &Objects| objects.listed(handle.0);
        on_core(&self.door, work, move |done: Result<Rc<Vec<Listed>>, Errno>| {
            match (done, core_local::<Objects>()) {
                (Ok(listed), Some(objects)) => {
                    fill(&objects, &listed, (offset, owner), &mut reply);
                    reply.ok();
                }
                (Err(error), _) => reply.error(error),
                (Ok(_), None) => reply.error(Errno::EIO),
            }
        });
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.close(handle, reply);
    }
}

impl Tree {
    /// Closes a file or a folder.
    fn close(&self, handle: FileHandle, reply: ReplyEmpty) {
        let close = async move |objects: &Objects| {
            objects.opened.borrow_mut().remove(&handle.0);
            Ok(())
        };
        on_core(&self.door, close, move |_: Result<(), Errno>| reply.ok());
    }
}
