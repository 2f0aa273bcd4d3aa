//! The array file: the drives of an array and their addresses. TOML, schema 1.
//!
//! Opens no connection. Invariants: unknown keys and versions are errors; names are unique and
//! usable as parts of file names; a file is replaced atomically, so a reader never sees half of
//! one. `docs/guide/arrays.md` describes every key.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::drive_index::{DRIVES_MAX, DriveIndex};
use super::drive_record::DriveRecord;
use crate::atomic_file::AtomicFile;
use crate::fault::Fault;

/// Version of the array file that this program reads and writes.
pub const SCHEMA: u32 = 1;
/// Longest name of a drive, bytes.
const NAME_BYTES_MAX: usize = 64;
/// Default path of the array file.
pub const DEFAULT_PATH: &str = "./csd-array.toml";

/// An array as its file describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name for people.
    pub name: String,
    /// Identifier: 32 hexadecimal digits.
    pub uuid: String,
    /// Folder of logs and media, for drives that `csd array up` started; relative to the folder
    /// of the array file. Files of earlier versions hold absolute paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Number of places that drives ever had, if the last of them has been removed: a place is
    /// never given again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<u16>,
    /// Operating systems of the drives on this machine, if they have any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<OsRecord>,
    /// Drives of the array; an object's entry refers to them by their places.
    pub drives: Vec<DriveRecord>,
    /// Drives that `csd array add` has started and that do not belong to the array yet. If the
    /// command was interrupted, they remain here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joining: Vec<DriveRecord>,
}

/// Operating systems of an array's drives, all alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OsRecord {
    /// Root folder of the image.
    pub root: PathBuf,
    /// CPU time that one may take, thousandths of a core.
    pub millicpus: u32,
    /// Memory that one may take, bytes.
    pub memory_bytes: u64,
    /// Most processes and threads of one.
    pub pids: u32,
    /// File system of `/data`: `ocfs2`; without it ext4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<String>,
    /// File of the public keys that may log in; without it there is no network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Address of this host in their network, with the length of its prefix; the drives have those
    /// that follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// True if they log in to each other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cluster: bool,
}

/// Reason why there is no array file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file does not exist.
    #[error(
        "there is no array file {}: start an array with `csd array up`, or name its file with \
         --array or $CSD_ARRAY",
        .path.display()
    )]
    Missing {
        /// Path that was tried.
        path: PathBuf,
    },
    /// Reading or writing failed.
    #[error("array file {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file is not an array file.
    #[error("array file {}: {why}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Description of the fault.
        why: String,
    },
}

impl FileError {
    /// Returns the party at fault: the user, unless the operating system refuses an existing file.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Io { .. } => Fault::Run,
            Self::Missing { .. } | Self::Invalid { .. } => Fault::Usage,
        }
    }
}

impl ArrayFile {
    /// Reads and checks the file.
    ///
    /// # Errors
    /// [`FileError`]; the user can repair all of them.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => FileError::Missing { path: path.to_owned() },
            _ => FileError::Io { path: path.to_owned(), source },
        })?;
        let invalid = |why| FileError::Invalid { path: path.to_owned(), why };
        Self::parse(&text).map_err(invalid)
    }

    /// Parses and checks the text of an array file.
    ///
    /// # Errors
    /// A description of the first fault found.
    pub fn parse(text: &str) -> Result<Self, String> {
        /// Read before any other key, because another version may give the keys another meaning.
        #[derive(Deserialize)]
        struct Version {
            schema: Option<toml::Value>,
        }
        let version: Version = toml::from_str(text).map_err(|error| one_line(&error))?;
        match version.schema.as_ref().and_then(toml::Value::as_integer) {
            Some(1) => {}
            _ => return Err("schema must be 1".to_owned()),
        }
        let file: Self = toml::from_str(text).map_err(|error| one_line(&error))?;
        file.check()?;
        Ok(file)
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let text = toml::to_string(self).expect("names, numbers and paths in UTF-8 are TOML");
        let failed = |source| FileError::Io { path: path.to_owned(), source };
        let (whole, mut file) = AtomicFile::create(path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        // A power cut leaves the old file or this one.
        file.sync_all().map_err(failed)?;
        whole.finish().map_err(failed)
    }

    /// Returns every drive that the file names; those that do not belong to the array yet come
    /// last.
    pub fn all(&self) -> impl Iterator<Item = &DriveRecord> {
        self.drives.iter().chain(&self.joining)
    }

    /// Returns the place of a drive that the list has at this index.
    #[must_use]
    pub fn place(&self, index: usize) -> DriveIndex {
        self.drives[index].place.unwrap_or_else(|| DriveIndex::new(index))
    }

    /// Returns the number of places that drives have, or had.
    #[must_use]
    pub fn places(&self) -> usize {
        let last =
            self.drives.len().checked_sub(1).map_or(0, |last| usize::from(self.place(last)) + 1);
        last.max(self.places.map_or(0, usize::from))
    }

    /// Makes the joining drives drives of the array, at places of their own.
    pub fn admit(&mut self) {
        for mut drive in std::mem::take(&mut self.joining) {
            let (index, place) = (self.drives.len(), self.places());
            drive.place = (place != index).then(|| DriveIndex::new(place));
            self.drives.push(drive);
        }
    }

    /// Removes the drive that the list has at this index. The others keep their places.
    pub fn remove(&mut self, index: usize) -> DriveRecord {
        let places = self.places();
        for later in index..self.drives.len() {
            self.drives[later].place = Some(self.place(later));
        }
        let removed = self.drives.remove(index);
        self.places = None;
        self.places =
            (self.places() < places).then(|| u16::try_from(places).expect("at most 1024"));
        removed
    }

    /// Checks the rules that involve several values of the file.
    ///
    /// # Errors
    /// A description of the first fault found.
    pub fn check(&self) -> Result<(), String> {
        let count = 1..=DRIVES_MAX;
        if !count.contains(&self.drives.len()) || self.places() + self.joining.len() > DRIVES_MAX {
            return Err(format!("an array has 1 to {DRIVES_MAX} drives"));
        }
        let places: Vec<DriveIndex> =
            (0..self.drives.len()).map(|index| self.place(index)).collect();
        if !places.is_sorted_by(|one, next| one < next) {
            return Err("the places of drives must rise".to_owned());
        }
        if self.uuid.len() != 32 || !self.uuid.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("uuid must be 32 hexadecimal digits".to_owned());
        }
        for (index, drive) in self.all().enumerate() {
            if !is_plain(&drive.name) {
                return Err(format!(
                    "drive name {:?}: a name has 1 to {NAME_BYTES_MAX} of the characters A-Z a-z \
                     0-9 . _ - and does not begin with a dot",
                    drive.name
                ));
            }
            if self.all().take(index).any(|other| other.name == drive.name) {
                return Err(format!("two drives are called {:?}", drive.name));
            }
            let media = drive.media.as_deref().filter(|media| *media != "memory");
            if media.is_some() && self.all().take(index).any(|other| other.media == drive.media) {
                return Err(format!("two drives have the medium {:?}", media.unwrap_or_default()));
            }
        }
        Ok(())
    }
}

/// Returns true if a name is safe as part of a file name: it cannot lead to another folder.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(plain)
}

fn one_line(error: &toml::de::Error) -> String {
    error.message().replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::super::{DriveOptions, Words};
    use super::*;

    fn sample() -> ArrayFile {
        let drive = |name: &str| DriveRecord {
            name: name.to_owned(),
            url: format!("nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.csdstore:{name}"),
            place: None,
            media: Some("memory".to_owned()),
            media_uuid: None,
            size_bytes: Some(1 << 30),
            cores: Some(1),
            pid: None,
            options: DriveOptions::from([("kv".to_owned(), Words::One("80%".to_owned()))]),
        };
        ArrayFile {
            schema: SCHEMA,
            name: "a".to_owned(),
            uuid: "0123456789abcdef0123456789abcdef".to_owned(),
            folder: Some("/tmp/a".into()),
            os: None,
            drives: vec![drive("d0"), drive("d1")],
            places: None,
            joining: Vec::new(),
        }
    }

    #[test]
    fn a_saved_file_is_loaded_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("array.toml");
        assert!(matches!(ArrayFile::load(&path), Err(FileError::Missing { .. })));
        sample().save(&path).unwrap();
        assert_eq!(ArrayFile::load(&path).unwrap(), sample());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_under_a_name_that_saving_could_use_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (folder.path().join("array.toml"), folder.path().join("victim"));
        std::fs::write(&victim, "dear").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join("array.toml.new")).unwrap();
        sample().save(&path).unwrap();
        assert_eq!(ArrayFile::load(&path).unwrap(), sample());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "dear");
    }

    #[test]
    fn places_of_removed_drives_stay_vacant() {
        let named = |file: &ArrayFile| -> Vec<(String, usize)> {
            let name = |(index, drive): (usize, &DriveRecord)| {
                (drive.name.clone(), file.place(index).into())
            };
            file.drives.iter().enumerate().map(name).collect()
        };
        let mut file = sample();
        let join = |file: &mut ArrayFile, name: &str| {
            let mut drive = sample().drives[0].clone();
            (drive.name, drive.media) = (name.to_owned(), None);
            file.joining.push(drive);
            file.admit();
            file.check().unwrap();
            assert_eq!(ArrayFile::parse(&toml::to_string(&file).unwrap()).as_ref(), Ok(&*file));
        };
        join(&mut file, "d2");
        assert_eq!(file.remove(0).name, "d0");
        let later = [("d1".to_owned(), 1), ("d2".to_owned(), 2)];
        assert_eq!((named(&file), file.places()), (later.to_vec(), 3));
        // The last place is not given again either.
        assert_eq!(file.remove(1).name, "d2");
        assert_eq!((file.places, file.places()), (Some(3), 3));
        join(&mut file, "d3");
        assert_eq!(named(&file), [("d1".to_owned(), 1), ("d3".to_owned(), 3)]);
        file.drives.swap(0, 1);
        assert!(file.check().unwrap_err().contains("must rise"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let good = toml::to_string(&sample()).unwrap();
        for (from, to, why) in [
            ("schema = 1", "schema = 2", "schema must be 1"),
            ("schema = 1\n", "", "schema must be 1"),
            ("name = \"a\"", "nome = \"a\"", "unknown field `nome`"),
            ("\"d1\"", "\"d0\"", "two drives are called \"d0\""),
            ("\"d1\"", "\"../d1\"", "drive name \"../d1\""),
            ("\"d1\"", "\".d1\"", "drive name \".d1\""),
            ("\"d1\"", "\"\"", "drive name \"\""),
            ("\"d1\"", "\"d/1\"", "drive name \"d/1\""),
            ("0123456789abcdef0123456789abcdef", "no", "uuid must be 32"),
            ("[[drives]]", "[[drives", "schema"),
        ] {
            let error = ArrayFile::parse(&good.replace(from, to));
            let error = error.expect_err(from);
            assert!(error.contains(why) || from == "[[drives]]", "{from}: {error}");
        }
        let mut shared = sample();
        shared.drives.iter_mut().for_each(|drive| drive.media = Some("d0.media".to_owned()));
        let error = ArrayFile::parse(&toml::to_string(&shared).unwrap()).unwrap_err();
        assert!(error.contains("two drives have the medium \"d0.media\""), "{error}");
        let mut none = sample();
        none.drives.clear();
        let error = ArrayFile::parse(&toml::to_string(&none).unwrap()).unwrap_err();
        assert!(error.contains("1 to 1024 drives"), "{error}");
    }
}
