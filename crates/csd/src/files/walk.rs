//! Files below a folder, with the names that their objects would have.
//!
//! Symbolic links to files are followed, and those to folders are not, so that no file has two
//! names and no walk goes round in circles. Invariant: everything that is not among the files is
//! among what was left out, with the reason; empty folders are neither.

use std::fs::{self, Metadata};
use std::path::Path;

use csd_store::object::check_name;

use crate::report::Failure;

/// A regular file, or a link to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalFile {
    pub(crate) path: String,
    /// Its path in the folder, with `/` between parts.
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

/// An entry of a folder that is no file to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) path: String,
    /// Its path in the folder, if that is UTF-8: there may be objects of this name or below it.
    pub(crate) name: Option<String>,
    pub(crate) why: String,
}

/// Entries of a folder and its inner folders, by name.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    pub(crate) files: Vec<LocalFile>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// Returns the files below `folder` whose objects can have their names behind `prefix`.
///
/// # Errors
/// Usage: it is no folder. Run: it cannot be read.
pub(crate) fn walk(folder: &str, prefix: &str) -> Result<Walked, Failure> {
    let metadata = fs::metadata(folder).map_err(|error| Failure::os(folder, &error))?;
    if !metadata.is_dir() {
        let why = format!("{folder} is no folder: `csd put {folder}` stores a file");
        return Err(Failure::usage(why));
    }
    let mut walked = Walked::default();
    let read = walked.enter(Path::new(folder), "", prefix);
    read.map_err(|error| Failure::os(folder, &error))?;
    Ok(walked)
}

impl Walked {
    /// Adds the entries of a folder, whose own name ends in `/` or is empty.
    fn enter(&mut self, folder: &Path, within: &str, prefix: &str) -> std::io::Result<()> {
        let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let shown = path.to_string_lossy().into_owned();
            let Some(part) = entry.file_name().to_str().map(str::to_owned) else {
                self.leave_out(shown, None, "its name is no UTF-8, as names of objects are");
                continue;
            };
            let name = format!("{within}{part}");
            match kind(&path) {
                Ok(Kind::Folder) => {
                    if let Err(error) = self.enter(&path, &format!("{name}/"), prefix) {
                        self.leave_out(shown, Some(name), &error.to_string());
                    }
                }
                Ok(Kind::File(bytes)) => match check_name(&format!("{prefix}{name}")) {
                    Ok(()) => self.files.push(LocalFile { path: shown, name, bytes }),
                    Err(error) => self.leave_out(shown, None, &error.to_string()),
                },
                Ok(Kind::Other(why)) => self.leave_out(shown, Some(name), why),
                Err(error) => self.leave_out(shown, Some(name), &error.to_string()),
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, path: String, name: Option<String>, why: &str) {
        self.left_out.push(LeftOut { path, name, why: why.to_owned() });
    }
}

enum Kind {
    Folder,
    File(u64),
    Other(&'static str),
}

fn kind(path: &Path) -> std::io::Result<Kind> {
    let own = fs::symlink_metadata(path)?;
    if !own.is_symlink() {
        return Ok(of(&own));
    }
    match fs::metadata(path).map(|behind| of(&behind)) {
        Ok(Kind::Folder) => Ok(Kind::Other("a link to a folder, which is not followed")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(Kind::Other("a link to nothing"))
        }
        kind => kind,
    }
}

fn of(metadata: &Metadata) -> Kind {
    match (metadata.is_dir(), metadata.is_file()) {
        (true, _) => Kind::Folder,
        (_, true) => Kind::File(metadata.len()),
        _ => Kind::Other("a FIFO, a socket or a device"),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_entry_is_a_file_or_left_out_with_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("in/ner")).unwrap();
        fs::create_dir(at("empty")).unwrap();
        for file in ["b", "a", "in/ner/c"] {
            fs::write(at(file), [0; 3]).unwrap();
        }
        fs::write(folder.path().join(OsStr::from_bytes(b"\xff")), []).unwrap();
        fs::write(at("tab\there"), []).unwrap();
        symlink(at("a"), at("link")).unwrap();
        symlink(folder.path(), at("loop")).unwrap();
        symlink(at("none"), at("nothing")).unwrap();
        let walked = walk(folder.path().to_str().unwrap(), "p/").unwrap();
        let names: Vec<&str> = walked.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "in/ner/c", "link"]);
        assert!(walked.files.iter().all(|file| file.bytes == 3));
        let why: Vec<(Option<&str>, &str)> =
            walked.left_out.iter().map(|left| (left.name.as_deref(), left.why.as_str())).collect();
        assert_eq!(
            why[..2],
            [
                (Some("loop"), "a link to a folder, which is not followed"),
                (Some("nothing"), "a link to nothing"),
            ]
        );
        assert!(why[2].1.contains("control characters") && why[3].1.contains("UTF-8"), "{why:?}");
        let long = "x".repeat(1024);
        assert!(walk(folder.path().to_str().unwrap(), &long).unwrap().files.is_empty());
    }
}
