//! [`Plan`]: the addresses of an array's drives.

use std::path::{Path, PathBuf};

use csd_initiator::Options;

use super::drive::{Drive, PlannedDrive, open, reason};
use super::{ArrayFile, DriveIndex, FileError};

/// The drives of an array file, with their addresses resolved.
#[derive(Clone, Debug)]
pub struct Plan {
    /// By place; `None` where a drive has been removed.
    pub(super) drives: Vec<Option<PlannedDrive>>,
    pub(super) uuid: [u8; 16],
    /// The array file, if drives that were started again may be looked up in it.
    pub(super) path: Option<PathBuf>,
}

impl Plan {
    /// Resolves the addresses of an array file. May query a name server, so it is called before any
    /// core starts. A drive whose address cannot be resolved counts as down.
    #[must_use]
    pub fn new(file: &ArrayFile) -> Self {
        let mut drives = vec![None; file.places()];
        for (index, record) in file.drives.iter().enumerate() {
            drives[file.place(index)] = Some(PlannedDrive {
                name: record.name.clone(),
                url: record.url.clone(),
                address: record.url.parse().map_err(reason),
            });
        }
        let mut uuid = [0; 16];
        for (byte, digits) in uuid.iter_mut().zip(file.uuid.as_bytes().chunks(2)) {
            let digits = str::from_utf8(digits).unwrap_or("");
            *byte = u8::from_str_radix(digits, 16).unwrap_or(0);
        }
        Self { drives, uuid, path: None }
    }

    /// Does the same for the array file at `path`. A drive that is connected to again is looked up
    /// in it once more: it may have another address since it was started again.
    ///
    /// # Errors
    /// As [`ArrayFile::load`].
    pub fn load(path: &Path) -> Result<Self, FileError> {
        let path = path.to_owned();
        Ok(Self { path: Some(path.clone()), ..Self::new(&ArrayFile::load(&path)?) })
    }

    /// Connects to one drive.
    ///
    /// # Errors
    /// The reason why it is down.
    pub async fn connect(&self, index: DriveIndex, options: &Options) -> Result<Drive, String> {
        open(index, self.drive(index)?, options).await
    }

    fn drive(&self, index: DriveIndex) -> Result<&PlannedDrive, String> {
        let planned = self.drives.get(usize::from(index)).and_then(Option::as_ref);
        planned.ok_or_else(|| "the array file does not list it".to_owned())
    }
}
