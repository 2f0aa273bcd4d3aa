//! Mounts and loop devices of this machine.

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::event::{Timespec, poll};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::filesystem::Fs;
use crate::os_folder::OsFolder;
use crate::{Error, ocfs2, tools};

/// Tries to unmount: a container's namespace goes a moment after its last process.
const TRIES: usize = 500;
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// A mount of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// Its folder.
    pub point: PathBuf,
    /// Type of the file system.
    pub kind: String,
    /// True if the file system takes no writes, also after an error.
    pub is_read_only: bool,
    /// Options of the file system, with commas between them.
    pub options: String,
}

/// Returns the mounts at a folder and below it, the last one first.
///
/// # Errors
/// If the kernel's list cannot be read.
pub fn below(folder: &Path) -> Result<Vec<Mounted>, Error> {
    let list = "/proc/self/mountinfo";
    let text = fs::read_to_string(list).map_err(|error| Error::os(list, error))?;
    let all = text.lines().filter_map(parse);
    let mut found: Vec<Mounted> = all.filter(|mounted| mounted.point.starts_with(folder)).collect();
    found.reverse();
    Ok(found)
}

/// Parses a line of mountinfo: number, parent, device, root, mount point, options, any number of
/// fields, a dash, type, source, options of the file system.
fn parse(line: &str) -> Option<Mounted> {
    let (front, back) = line.split_once(" - ")?;
    let mut front = front.split(' ').skip(4);
    let point = PathBuf::from(unescaped(front.next()?));
    let own = front.next()?;
    let mut back = back.split(' ');
    let kind = back.next()?.to_owned();
    let options = back.nth(1).unwrap_or_default().to_owned();
    let mut all = own.split(',').chain(options.split(','));
    let is_read_only = all.any(|option| matches!(option, "ro" | "emergency_ro" | "shutdown"));
    Some(Mounted { point, kind, is_read_only, options })
}

/// Replaces the octal escapes of spaces, tabs, newlines and backslashes.
fn unescaped(text: &str) -> String {
    let marks = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    marks.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Unmounts everything at a folder.
///
/// # Errors
/// If a process of this machine uses it.
pub fn unmount_all(folder: &Path) -> Result<(), Error> {
    for _ in 0..TRIES {
        if !below(folder)?.iter().any(|mounted| mounted.point == folder) {
            return Ok(());
        }
        match unmount(folder, UnmountFlags::empty()) {
            Ok(()) => {}
            Err(Errno::BUSY) => pause(),
            Err(error) => return Err(Error::os(folder.display(), error)),
        }
    }
    Err(Error::Failed(format!(
        "{} is in use by a process of this machine: end it, and say `csd os down` again",
        folder.display()
    )))
}

/// Waits a moment.
pub(crate) fn pause() {
    // Nothing is polled; a signal only makes it shorter.
    let _signal = poll(&mut [], Some(&PAUSE));
}

/// Makes the blocks of an operating system a block device, and mounts their file system.
///
/// # Errors
/// If the machine has no loop devices, or the file system cannot be mounted.
pub fn mount_volume(os_folder: &OsFolder, fs: Fs) -> Result<(), Error> {
    let (device, volume) = (device_of(&os_folder.blocks())?, os_folder.volume());
    if fs == Fs::Ocfs2 {
        ocfs2::mount(&device, &volume)?;
    } else {
        let options = c"noinit_itable,errors=remount-ro";
        let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOATIME;
        let mounted = mount(&*device, &volume, "ext4", flags, options);
        mounted.map_err(|error| Error::os(format!("{device}: its file system"), error))?;
    }
    // From now on the device goes with the mount.
    tools::run("losetup", &["--detach", &device]).map(drop)
}

/// Makes a block device of a file, and returns its path.
pub(crate) fn device_of(file: &Path) -> Result<String, Error> {
    let file = file.to_string_lossy();
    // Without a cache of its own: other doors of the drive change the file, too.
    let options = ["--find", "--show", "--direct-io=on", "--sector-size", "4096", &file];
    Ok(tools::run("losetup", &options)?.trim().to_owned())
}

/// Mounts memory for the changes of a root.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn mount_memory(os_folder: &OsFolder) -> Result<(), Error> {
    let (folder, flags) = (os_folder.memory(), MountFlags::NODEV | MountFlags::NOSUID);
    let mounted = mount("tmpfs", &folder, "tmpfs", flags, c"mode=700");
    mounted.map_err(|error| Error::os(folder.display(), error))
}

/// Mounts the root: the image, below what the operating system changes of it.
///
/// # Errors
/// If the machine has no overlays.
pub fn mount_root(os_folder: &OsFolder, image: &Path, fs: Fs) -> Result<(), Error> {
    let [upper, work] = os_folder.changes(fs);
    let [lower, upper, work] = [image, &upper, &work].map(Path::display);
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let options =
        CString::new(options).map_err(|_| Error::Usage("a path has a zero".to_owned()))?;
    let flags = MountFlags::NODEV | MountFlags::NOATIME;
    let mounted = mount("overlay", os_folder.root(), "overlay", flags, options.as_c_str());
    mounted.map_err(|error| Error::os(format!("an overlay on {}", image.display()), error))
}

/// Detaches every loop device of a file, and waits until it is free.
///
/// # Errors
/// If a process of this machine uses it.
pub fn detach(file: &Path) -> Result<(), Error> {
    let end = |device: &str| tools::run("losetup", &["--detach", device]).map(drop);
    if detach_by(|| loop_of(file), end)? {
        return Ok(());
    }
    Err(Error::Failed(format!("a loop device of {} is in use", file.display())))
}

/// Ends every device that `find` finds; returns false if one stays.
fn detach_by(
    mut find: impl FnMut() -> Result<Option<String>, Error>,
    mut end: impl FnMut(&str) -> Result<(), Error>,
) -> Result<bool, Error> {
    for _ in 0..TRIES {
        let Some(device) = find()? else { return Ok(true) };
        // It is free as soon as the last mount of it has gone, which may be just now.
        let ended = end(&device);
        if find()?.as_ref() == Some(&device) {
            ended?;
            pause();
        }
    }
    Ok(false)
}

/// Returns a loop device of a file.
fn loop_of(file: &Path) -> Result<Option<String>, Error> {
    let devices = "/sys/block";
    let list = fs::read_dir(devices).map_err(|error| Error::os(devices, error))?;
    let names = list.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_of_file = |name: &String| {
        let backing = fs::read_to_string(format!("{devices}/{name}/loop/backing_file"));
        // The kernel adds a mark to the path of a file whose mount has gone.
        backing.is_ok_and(|path| {
            Path::new(path.trim_end_matches('\n').trim_end_matches(" (deleted)")) == file
        })
    };
    Ok(names.filter(|name| name.starts_with("loop")).find(is_of_file).map(|n| format!("/dev/{n}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_goes_by_itself_is_detached() {
        let gone = |_: &str| Err(Error::Failed("No such device or address".to_owned()));
        let mut found = vec![None, None, Some("/dev/loop0".to_owned())];
        assert!(detach_by(|| Ok(found.pop().expect("three looks")), gone).unwrap());
        let stays = || Ok(Some("/dev/loop0".to_owned()));
        assert!(detach_by(stays, gone).is_err(), "a failure is reported");
    }

    #[test]
    fn lines_of_the_kernels_list_are_understood() {
        let line = "36 35 98:0 /mnt1 /mnt/a\\040b rw,noatime shared:1 master:2 - ext4 /dev/loop0 \
                    rw,errors=continue";
        let mounted = parse(line).unwrap();
        assert_eq!(mounted.point, Path::new("/mnt/a b"));
        assert_eq!((&*mounted.kind, mounted.is_read_only), ("ext4", false));
        assert_eq!(mounted.options, "rw,errors=continue");
        for options in ["ro,relatime", "rw,emergency_ro", "rw,shutdown"] {
            let line = format!("1 2 0:1 / /x rw - ext4 /dev/loop1 {options}");
            assert!(parse(&line).unwrap().is_read_only, "{options}");
        }
        assert_eq!(parse("nonsense"), None);
        assert!(below(Path::new("/")).unwrap().iter().any(|one| one.point == Path::new("/proc")));
        assert_eq!(below(Path::new("/none/such")).unwrap(), []);
        assert!(unmount_all(Path::new("/none/such")).is_ok(), "nothing is mounted there");
        assert_eq!(loop_of(Path::new("/none/such/block")).unwrap(), None);
    }
}
