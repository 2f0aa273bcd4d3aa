//! [`ArrayFolder`]: the folder of an array file, and checks that paths stay in it.
//!
//! Array files are untrusted. The paths in a file are used to start, write or delete things only
//! inside the folder that holds the file, whatever absolute paths, `..` and links the file or that
//! folder contain. Opens and creates nothing. Invariant: a path that [`ArrayFolder::own`] returns
//! begins with the folder, and its existing part contains no link.

use std::io;
use std::path::{Component, Path, PathBuf};

use super::{ArrayFile, DriveRecord};

/// Default folder of media and logs.
pub const DEFAULT_FOLDER: &str = "csd-array";

/// The folder of an array file.
#[derive(Clone, Debug)]
pub struct ArrayFolder(PathBuf);

impl ArrayFolder {
    /// Returns the folder of the array file `path`; the file need not exist yet.
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn of(path: &Path) -> io::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Ok(Self(folder.unwrap_or(Path::new(".")).canonicalize()?))
    }

    /// Returns the absolute form of a path that is absolute or relative to the array file.
    ///
    /// # Errors
    /// A description, when the path is outside of the folder or cannot be examined.
    pub fn own(&self, path: &Path) -> Result<PathBuf, String> {
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        let outside = || {
            let (path, home) = (path.display(), self.0.display());
            format!("{path} is outside of {home}, the folder of the array file")
        };
        let mut known = self.0.join(path);
        let mut rest = Vec::new();
        while let Err(error) = known.symlink_metadata() {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(failed(error));
            }
            match known.components().next_back() {
                Some(Component::Normal(name)) => rest.push(name.to_owned()),
                _ => return Err(outside()),
            }
            known.pop();
        }
        let mut real = known.canonicalize().map_err(failed)?;
        real.extend(rest.iter().rev());
        if !real.starts_with(&self.0) {
            return Err(outside());
        }
        Ok(real)
    }

    /// Returns the form of `path` for the array file: relative, if it is in the folder.
    #[must_use]
    pub fn relative(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.0) {
            Ok(same) if same.as_os_str().is_empty() => PathBuf::from("."),
            Ok(inside) => inside.to_owned(),
            Err(_) => path.to_owned(),
        }
    }

    /// Returns the folder of the array's media and logs.
    ///
    /// # Errors
    /// As [`Self::own`].
    pub fn folder(&self, file: &ArrayFile) -> Result<PathBuf, String> {
        self.own(file.folder.as_deref().unwrap_or(Path::new(DEFAULT_FOLDER)))
    }

    /// Returns the drive's media file; `None` for drives in memory and those of other machines.
    ///
    /// # Errors
    /// As [`Self::own`].
    pub fn media(&self, drive: &DriveRecord) -> Result<Option<PathBuf>, String> {
        match drive.media.as_deref().filter(|_| !drive.is_in_memory()) {
            None => Ok(None),
            Some(media) => self.own(Path::new(media)).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_what_is_in_the_folder_is_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (home, victim) = (folder.path().join("home"), folder.path().join("victim"));
        fs::create_dir_all(home.join("csd-array")).unwrap();
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("x"), "dear").unwrap();
        symlink(&victim, home.join("link")).unwrap();
        symlink(victim.join("x"), home.join("csd-array/d0.media")).unwrap();
        symlink(victim.join("later"), home.join("dangling")).unwrap();
        let home = ArrayFolder::of(&home.join("array.toml")).unwrap();
        for (own, is) in [
            ("csd-array/d1.media", "csd-array/d1.media"),
            ("new/deep/d1.media", "new/deep/d1.media"),
            ("csd-array/../d1.media", "d1.media"),
            (".", "."),
        ] {
            let path = home.own(Path::new(own)).unwrap();
            assert_eq!(home.relative(&path), Path::new(is));
            assert_eq!(home.own(&path).unwrap(), path, "the absolute form is the same");
        }
        let absolute = victim.join("x");
        for not_own in [
            absolute.to_str().unwrap(),
            "../victim/x",
            "../victim/new",
            "new/../../victim/x",
            "link/x",
            "link/new",
            "csd-array/d0.media",
            "dangling",
            "..",
            "/",
        ] {
            home.own(Path::new(not_own)).expect_err(not_own);
        }
    }
}
