//! [`Mounted`]: a folder on which a file system of this process is mounted, by FUSE.
//!
//! The kernel's requests come on FUSE's thread; [`on_core`] hands one to the core that has the
//! connections, which replies.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use csd_reactor::{
    Class, CoreId, Door, Notify, Unanswered, core_local, set_core_local, spawn, stop_requested,
};
use fuser::{BackgroundSession, Errno, FileAttr, FileType, Filesystem, INodeNo, MountOption};
use rustix::mount::{UnmountFlags, unmount};

use crate::report::{self, Failure};

/// The core that has the connections.
const CORE: CoreId = CoreId(0);
/// Most requests of the kernel under way.
pub(crate) const REQUESTS_MAX: usize = 256;

/// A mounted folder.
pub(crate) struct Mounted {
    path: PathBuf,
    session: BackgroundSession,
}

impl Mounted {
    /// Mounts a file system on a folder that [`mount_point`] has checked.
    pub(crate) fn show(
        path: PathBuf,
        files: impl Filesystem + 'static,
        more: &[MountOption],
    ) -> Result<Self, Failure> {
        let session = mount(files, &path, more)?;
        Ok(Self { path, session })
    }

    /// Returns the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Unmounts the folder. Files that are still open are cut off.
    pub(crate) fn remove(self) {
        let Self { path, session } = self;
        let is_free = unmount(&path, UnmountFlags::empty());
        if is_free == Err(rustix::io::Errno::BUSY) {
            let why = "is in use: programs that have files of it open get errors from now on";
            report::print_error(&format!("warning: {} {why}", path.display()));
            // Nothing is left to be done if this fails.
            let _ = unmount(&path, UnmountFlags::DETACH);
        }
        // For users who are not root this asks fusermount3; else it finds nothing to do.
        drop(session);
    }
}

/// Checks that this machine has FUSE, and returns the folder's whole path. A mount whose process
/// was killed is removed.
pub(crate) fn mount_point(folder: &Path) -> Result<PathBuf, Failure> {
    if let Err(error) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        return Err(Failure::usage(format!(
            "mounting needs FUSE, and /dev/fuse cannot be opened: {error}"
        )));
    }
    let whole = std::path::absolute(folder).map_err(|e| Failure::os(folder.display(), &e))?;
    // The kernel may still have the attributes of a folder that nothing answers for.
    if std::fs::read_dir(&whole).is_err_and(|error| error.kind() == ErrorKind::NotConnected) {
        let gone = unmount(&whole, UnmountFlags::DETACH);
        gone.map_err(|error| Failure::os(whole.display(), &error.into()))?;
    }
    match std::fs::metadata(&whole) {
        Ok(metadata) if metadata.is_dir() => Ok(whole),
        Ok(_) => Err(Failure::usage(format!("{}: not a folder", whole.display()))),
        Err(error) => Err(Failure::os(whole.display(), &error)),
    }
}

/// The last failure that was printed.
#[derive(Default)]
pub(crate) struct Said(RefCell<Option<String>>);

impl Said {
    /// Prints why something failed, once until it succeeds again, which is `None`.
    pub(crate) fn say(&self, why: Option<String>) {
        let before = self.0.replace(why.clone());
        if let Some(why) = why.filter(|why| before.as_ref() != Some(why)) {
            report::print_error(&format!("warning: {why}"));
        }
    }
}

/// The end of a command that shows something: that is gone, or a signal came.
pub(crate) struct End {
    is_there: Cell<bool>,
    changed: Notify,
}

impl End {
    /// Returns the end of this core's command.
    pub(crate) fn of_core() -> Rc<Self> {
        let end = Rc::new(Self { is_there: Cell::new(false), changed: Notify::new() });
        set_core_local(Rc::clone(&end));
        end
    }

    pub(crate) fn set(&self) {
        self.is_there.set(true);
        self.changed.notify_all();
    }

    /// Waits for it.
    pub(crate) async fn wait(self: &Rc<Self>) {
        let asked = Rc::clone(self);
        drop(spawn(Class::System, async move {
            stop_requested().await;
            asked.set();
        }));
        while !self.is_there.get() {
            self.changed.notified().await;
        }
    }
}

/// Ends the command, because its folder is unmounted.
pub(crate) fn unmounted(door: &Door) {
    let end = || async {
        if let Some(end) = core_local::<End>() {
            end.set();
        }
    };
    // A core that is gone has ended already.
    let _ = door.try_submit(CORE, end, drop);
}

/// User and group of all files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    uid: u32,
    gid: u32,
}

impl Owner {
    /// Returns those of this process.
    pub(crate) fn this() -> Self {
        Self { uid: rustix::process::getuid().as_raw(), gid: rustix::process::getgid().as_raw() }
    }
}

/// Returns the attributes of a file or folder of this kind and mode, which was changed at this
/// time.
pub(crate) fn attributes(
    ino: INodeNo,
    (kind, perm): (FileType, u16),
    time: SystemTime,
    size: u64,
    Owner { uid, gid }: Owner,
) -> FileAttr {
    FileAttr {
        ino,
        size,
        blocks: size.div_ceil(512),
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind,
        perm,
        nlink: 1,
        uid,
        gid,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

/// Runs `work` on what the core has under its type, and gives its outcome to `reply` there.
pub(crate) fn on_core<S: 'static, T: 'static>(
    door: &Door,
    work: impl AsyncFnOnce(&S) -> Result<T, rustix::io::Errno> + Send + 'static,
    reply: impl FnOnce(Result<T, Errno>) + Send + 'static,
) {
    let request = move || async move {
        let there = core_local::<S>().ok_or(Errno::EIO)?;
        work(&there).await.map_err(|errno| Errno::from_i32(errno.raw_os_error()))
    };
    let deliver = move |answer: Result<Result<T, Errno>, Unanswered>| {
        reply(answer.unwrap_or(Err(Errno::EIO)));
    };
    // The door is refused only to its own core and to forks: then the reply is dropped, which is an
    // error for the kernel.
    let _ = door.submit_with(CORE, request, deliver);
}

fn mount(
    files: impl Filesystem + 'static,
    folder: &Path,
    more: &[MountOption],
) -> Result<BackgroundSession, Failure> {
    let mut config = fuser::Config::default();
    config.mount_options = vec![
        MountOption::FSName("csd".to_owned()),
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoExec,
    ];
    config.mount_options.extend_from_slice(more);
    let mounted = fuser::spawn_mount(files, folder, &config);
    mounted.map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::NotFound => Failure::usage(format!(
            "{}: mounting takes root, or the program fusermount3: {error}",
            folder.display()
        )),
        _ => Failure::os(format!("{}: cannot mount", folder.display()), &error),
    })
}
