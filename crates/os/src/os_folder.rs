//! [`OsFolder`]: the folder of one operating system, and the names in it.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::filesystem::Fs;

/// The folder of one operating system on this machine. Nothing else may be in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OsFolder(PathBuf);

impl OsFolder {
    /// Names the files of a folder, which need not exist. The path must be absolute and without
    /// symbolic links, because the kernel's lists of mounts show it so.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// Returns the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Returns the file that says what was made ([`crate::record::Record`]).
    #[must_use]
    pub fn record(&self) -> PathBuf {
        self.0.join("record.json")
    }

    /// Returns the folder on which `csd attach` mounts the drive's blocks.
    #[must_use]
    pub fn door(&self) -> PathBuf {
        self.0.join("door")
    }

    /// Returns the file of the drive's blocks.
    #[must_use]
    pub fn blocks(&self) -> PathBuf {
        self.door().join("block")
    }

    /// Returns the folder on which the drive's file system is mounted.
    #[must_use]
    pub fn volume(&self) -> PathBuf {
        self.0.join("volume")
    }

    /// Returns the folder of the file system that is `/data`.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.volume().join("data")
    }

    /// Returns the folder that has the changes of the root, and the folder that the overlay works
    /// in. An overlay cannot write on OCFS2: there they are in memory.
    #[must_use]
    pub fn changes(&self, fs: Fs) -> [PathBuf; 2] {
        let folder = match fs {
            Fs::Ext4 => self.volume().join("root"),
            Fs::Ocfs2 => self.memory(),
        };
        ["upper", "work"].map(|name| folder.join(name))
    }

    /// Returns the folder on which memory is mounted for the changes of a root next to OCFS2.
    #[must_use]
    pub fn memory(&self) -> PathBuf {
        self.0.join("memory")
    }

    /// Returns the folder on which the root is mounted.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    /// Returns the folder on which its devices are mounted.
    #[must_use]
    pub fn devices(&self) -> PathBuf {
        self.0.join("dev")
    }

    /// Returns the folder in which runc keeps its state.
    #[must_use]
    pub fn runc(&self) -> PathBuf {
        self.0.join("runc")
    }

    /// Returns the file of host names.
    #[must_use]
    pub fn hosts(&self) -> PathBuf {
        self.0.join("hosts")
    }

    /// Returns the file of public keys that may log in.
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.0.join("authorized_keys")
    }

    /// Returns the script that OpenSSH runs before the program of each session.
    #[must_use]
    pub fn session(&self) -> PathBuf {
        self.0.join("sshrc")
    }

    /// Returns the configuration of OpenSSH's client inside, where operating systems log in to each
    /// other.
    #[must_use]
    pub fn client(&self) -> PathBuf {
        self.0.join("client_config")
    }

    /// Returns the file that replaces the list of the machine's processors.
    #[must_use]
    pub fn online(&self) -> PathBuf {
        self.0.join("online")
    }

    /// Returns the file that replaces what the kernel tells of the machine's processors.
    #[must_use]
    pub fn processors(&self) -> PathBuf {
        self.0.join("cpuinfo")
    }

    /// Returns the file into which runc writes the number of a service's process.
    #[must_use]
    pub fn service_number(&self) -> PathBuf {
        self.0.join("service.pid")
    }

    /// Returns the bundle's configuration. The bundle is the folder.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.0.join("config.json")
    }

    /// Returns the log of the first process.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.0.join("os.log")
    }

    /// Returns the older part of the log of the first process.
    #[must_use]
    pub fn older_log(&self) -> PathBuf {
        self.0.join("os.log.1")
    }

    /// Returns the pipe into which the first process logs.
    #[must_use]
    pub fn log_pipe(&self) -> PathBuf {
        self.0.join("os.pipe")
    }

    /// Returns the log of the process that keeps the log of the first process.
    #[must_use]
    pub fn keeper_log(&self) -> PathBuf {
        self.0.join("keeper.log")
    }

    /// Returns the log of runc.
    #[must_use]
    pub fn runc_log(&self) -> PathBuf {
        self.0.join("runc.log")
    }

    /// Returns the log of `csd attach`.
    #[must_use]
    pub fn door_log(&self) -> PathBuf {
        self.0.join("door.log")
    }

    /// Returns the log of `csd tunnel up`.
    #[must_use]
    pub fn tunnel_log(&self) -> PathBuf {
        self.0.join("tunnel.log")
    }

    /// Returns the log of the host's end of the tunnel.
    #[must_use]
    pub fn host_log(&self) -> PathBuf {
        self.0.join("host.log")
    }

    /// Returns the file whose lock serializes commands.
    #[must_use]
    pub fn lock_file(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Locks the folder against other commands, until the file is closed; waits for them.
    ///
    /// # Errors
    /// If the folder does not exist or its file system has no locks.
    pub fn lock(&self) -> Result<File, Error> {
        let path = self.lock_file();
        let cannot = |error| Error::os(path.display(), error);
        let file = File::options().create(true).append(true).open(&path).map_err(cannot)?;
        file.lock().map_err(cannot)?;
        Ok(file)
    }

    /// Returns the mount points in the folder, those on others first.
    #[must_use]
    pub fn mount_points(&self) -> [PathBuf; 5] {
        [self.root(), self.devices(), self.memory(), self.volume(), self.door()]
    }

    /// Returns the files that only serve an operating system that runs.
    #[must_use]
    pub fn passing_files(&self) -> [PathBuf; 10] {
        [
            self.config(),
            self.hosts(),
            self.keys(),
            self.session(),
            self.client(),
            self.online(),
            self.processors(),
            self.service_number(),
            self.log_pipe(),
            self.runc_log(),
        ]
    }
}

/// Removes a file, or the link that has its name, if it is there.
///
/// # Errors
/// If it is there and cannot be removed.
pub fn remove_if_there(path: &Path) -> io::Result<()> {
    allow_absence(fs::remove_file(path))
}

/// Removes a file that may be gone.
pub(crate) fn remove_file(path: &Path) -> Result<(), Error> {
    remove_if_there(path).map_err(|error| Error::os(path.display(), error))
}

/// Removes an empty folder that may be gone.
pub(crate) fn remove_folder(path: &Path) -> Result<(), Error> {
    allow_absence(fs::remove_dir(path)).map_err(|error| Error::os(path.display(), error))
}

fn allow_absence(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
