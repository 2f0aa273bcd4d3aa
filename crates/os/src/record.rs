//! [`Record`]: the state of one operating system, in its folder.
//!
//! Invariants: a process is recorded before it runs its program; the file is replaced whole.

use std::fs;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::config::Limits;
use crate::filesystem::Fs;
use crate::os_folder::{OsFolder, remove_file};
use crate::process::Process;

/// Name of `csd attach` in the record.
pub const DOOR: &str = "csd attach";
/// Name of `csd tunnel up` in the record.
pub const TUNNEL: &str = "csd tunnel up";
/// Name of the host's end of the tunnel in the record.
pub const HOST_END: &str = "csd tunnel up of the host";
/// Name of the process that keeps the log in the record.
pub const LOG_KEEPER: &str = "csd os keep-log";
/// Version of the file.
const SCHEMA: u32 = 1;

/// An operating system that was started and not yet removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    schema: u32,
    /// Identifier of the container, unique on this machine.
    pub id: String,
    /// Host name.
    pub name: String,
    /// Folder of the image.
    pub image: PathBuf,
    /// Limits.
    pub limits: Limits,
    /// File system of `/data`.
    #[serde(default)]
    pub fs: Fs,
    /// Address at which OpenSSH listens, if it runs.
    #[serde(default)]
    pub ssh: Option<IpAddr>,
    /// Processors that programs inside see; none in a record of a version before.
    #[serde(default)]
    pub processors: Option<usize>,
    /// True from before a file system is made until it is whole.
    pub formatting: bool,
    /// Processes that serve it: `csd attach`, `csd tunnel up` and the one that keeps its log.
    pub processes: Vec<Process>,
    /// Its services, by their names.
    #[serde(default)]
    pub services: Vec<Process>,
}

impl Record {
    /// Makes the record of an operating system that has nothing yet.
    #[must_use]
    pub fn new(id: &str, name: &str, image: PathBuf, limits: Limits) -> Self {
        let (id, name) = (id.to_owned(), name.to_owned());
        Self {
            schema: SCHEMA,
            id,
            name,
            image,
            limits,
            fs: Fs::default(),
            ssh: None,
            processors: None,
            formatting: false,
            processes: Vec::new(),
            services: Vec::new(),
        }
    }

    /// Returns the path of the control group, from the root of each hierarchy.
    #[must_use]
    pub fn cgroup(&self) -> String {
        format!("/{}", self.id)
    }

    /// Reads the record of an operating system; `None` if there is none.
    ///
    /// # Errors
    /// If the file cannot be read or is none.
    pub fn load(os_folder: &OsFolder) -> Result<Option<Self>, Error> {
        let path = os_folder.record();
        let wrong =
            |why: &dyn std::fmt::Display| Error::Failed(format!("{}: {why}", path.display()));
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(&error)),
        };
        let record: Self = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        if record.schema != SCHEMA {
            return Err(wrong(&format!("schema {} is of another version", record.schema)));
        }
        // It becomes a path of control groups, and an argument.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if record.id.starts_with("csd-os-") && record.id.chars().all(is_plain) {
            Ok(Some(record))
        } else {
            Err(wrong(&"the identifier is not one of this program"))
        }
    }

    /// Writes the record.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn save(&self, os_folder: &OsFolder) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(self).expect("strings and numbers");
        let (path, new) = (os_folder.record(), os_folder.record().with_extension("new"));
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &path));
        written.map_err(|error| {
            // Nothing half-written stays on a full disk.
            let _gone = fs::remove_file(&new);
            Error::os(path.display(), error)
        })
    }

    /// Adds a process, and writes the record.
    pub(crate) fn add(&mut self, os_folder: &OsFolder, process: Process) -> Result<(), Error> {
        self.processes.push(process);
        self.save(os_folder)
    }

    /// Removes the record.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn remove(os_folder: &OsFolder) -> Result<(), Error> {
        remove_file(&os_folder.record())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_and_foreign_ones_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let os_folder = OsFolder::new(folder.path());
        assert_eq!(Record::load(&os_folder).unwrap(), None);
        let limits = Limits { cpus: 0.5, memory_bytes: 1 << 30, pids: 64 };
        let mut record = Record::new("csd-os-0a1b", "d0", "/image".into(), limits);
        record.processes.push(Process { pid: 7, started: 8, program: "attach".to_owned() });
        record.save(&os_folder).unwrap();
        assert_eq!(Record::load(&os_folder).unwrap(), Some(record.clone()));
        let text = fs::read_to_string(os_folder.record()).unwrap();
        for (from, to) in [
            ("csd-os-0a1b", "../../cpu"),
            ("csd-os-0a1b", "csd-os-/.."),
            ("\"schema\": 1", "\"schema\": 2"),
            ("\"name\"", "\"other\""),
        ] {
            fs::write(os_folder.record(), text.replace(from, to)).unwrap();
            assert!(Record::load(&os_folder).is_err(), "{to}");
        }
        Record::remove(&os_folder).unwrap();
        assert_eq!(Record::load(&os_folder).unwrap(), None);
    }

    #[test]
    fn a_full_disk_leaves_the_record_of_before_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let os_folder = OsFolder::new(folder.path());
        let limits = Limits { cpus: 0.5, memory_bytes: 1 << 30, pids: 64 };
        let record = Record::new("csd-os-0a1b", "d0", "/image".into(), limits);
        record.save(&os_folder).unwrap();
        let new = os_folder.record().with_extension("new");
        std::os::unix::fs::symlink("/dev/full", &new).unwrap();
        let other = Record { name: "d1".to_owned(), ..record.clone() };
        assert!(other.save(&os_folder).unwrap_err().to_string().contains("No space left"));
        assert_eq!(Record::load(&os_folder).unwrap(), Some(record));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
