//! `csd array up`, `add`, `replace`, `rebalance`, `remove`, `status`, `reclaim`, `rebuild` and
//! `down`: an array of drives as processes of this machine.
//!
//! Modules: [`start`] starts drives, [`process`] inspects and stops their processes, [`media`]
//! identifies and deletes their media, [`mod@options`] has the options of drives, [`oses`] starts
//! and stops their operating systems, [`successor`] finds a drive
//! for another one's place, [`peers`] lets them work with each other, [`lock`] serializes
//! commands. The others hold one command each.
//!
//! Does not stop or delete drives of other machines. Invariants: whatever the array file says, only
//! processes that serve its drives for its folder are stopped ([`process`]), and only files in that
//! folder are written or deleted ([`csd_store::array::ArrayFolder`]). The array file names every
//! process that was started and still runs.

mod accept;
mod add;
mod down;
pub(crate) mod lock;
mod media;
mod options;
mod oses;
mod peers;
pub(crate) mod process;
mod rebalance;
mod rebuild;
mod reclaim;
mod remove;
mod replace;
mod start;
mod status;
mod successor;
mod up;

use std::path::{Path, PathBuf};

use csd_store::array::{ArrayFile, ArrayFolder};

use crate::report::Failure;

pub(crate) use add::add;
pub(crate) use down::down;
pub(crate) use rebalance::rebalance;
pub(crate) use rebuild::{rebuild, votes};
pub(crate) use reclaim::reclaim;
pub(crate) use remove::remove;
pub(crate) use replace::replace;
pub(crate) use status::status;
pub(crate) use up::up;

/// An array file and its location.
struct Local {
    path: PathBuf,
    home: ArrayFolder,
    file: ArrayFile,
    /// Folder of media and logs.
    folder: PathBuf,
}

impl Local {
    fn new(path: &Path, home: ArrayFolder, mut file: ArrayFile) -> Result<Self, Failure> {
        let shown = path.display();
        let folder = home.folder(&file).map_err(|why| {
            Failure::run(format!(
                "array file {shown}: {why}: drives are started, stopped and deleted only there. An \
                 array file that was copied or is of an earlier version works in the folder that \
                 holds its media"
            ))
        })?;
        // Earlier versions wrote absolute paths.
        file.folder = Some(home.relative(&folder));
        for drive in &mut file.drives {
            if let Ok(Some(media)) = home.media(drive) {
                drive.media = Some(home.relative(&media).to_string_lossy().into_owned());
            }
        }
        Ok(Self { path: path.to_owned(), home, file, folder })
    }

    /// Loads an existing array file.
    fn load(path: &Path) -> Result<Self, Failure> {
        let file = ArrayFile::load(path)?;
        Self::new(path, home(path)?, file)
    }

    fn save(&self) -> Result<(), Failure> {
        Ok(self.file.save(&self.path)?)
    }
}

fn home(path: &Path) -> Result<ArrayFolder, Failure> {
    ArrayFolder::of(path)
        .map_err(|error| Failure::run(format!("array file {}: {error}", path.display())))
}
