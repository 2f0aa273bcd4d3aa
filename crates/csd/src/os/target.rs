//! [`OsTarget`]: a drive whose operating system a command names, and its folder on this machine.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use csd_client::{Retry, Volume};
use csd_initiator::{Address, Controller, Error, NamespaceKind};
use csd_nvme::feature::{FeatureId, set_features};
use csd_os::Drive;
use csd_os::os_folder::OsFolder;
use csd_store::array::{ArrayFile, ArrayFolder, DriveRecord};

use super::addresses::Addresses;
use crate::ask_drives::drive_named;
use crate::context::Context;
use crate::report::Failure;
use crate::runtime::runtime;

/// A drive, by its inside.
pub(crate) struct OsTarget<'a> {
    /// Its name, also the host name of its operating system.
    pub(crate) name: String,
    pub(crate) inside: Address,
    pub(crate) os_folder: OsFolder,
    /// Address over the network, if this machine is the tunnel's host as well.
    pub(super) outside: Option<String>,
    /// Folder of the files for OpenSSH's client.
    pub(super) ssh: PathBuf,
    /// Addresses and names of the array's operating systems.
    pub(super) hosts: Vec<(IpAddr, String)>,
    context: &'a Context,
}

impl<'a> OsTarget<'a> {
    /// Returns a drive of an array, whose logs are in `folder`.
    pub(crate) fn of_array(
        file: &ArrayFile,
        drive: &DriveRecord,
        folder: &Path,
        context: &'a Context,
    ) -> Result<Self, Failure> {
        let path = inside_path(folder, &drive.name)?;
        let inside = Address::new(path.as_path(), drive.nqn());
        let os_folder = OsFolder::new(&folder.join("os").join(&drive.name));
        let (name, outside) = (drive.name.clone(), Some(drive.url.clone()));
        let mut hosts = Vec::new();
        if let Some(addresses) = Addresses::of(file)? {
            hosts.extend(addresses.drives().map(|(address, name)| (address, name.clone())));
        }
        let ssh = folder.to_owned();
        Ok(Self { name, inside, os_folder, outside, ssh, hosts, context })
    }

    /// Returns the drive of this URL. Its operating system is in a folder next to the socket.
    fn of_url(url: &str, context: &'a Context) -> Result<Self, Failure> {
        let inside: Address = url.parse().map_err(|error: Error| Failure::usage(error))?;
        let Some(path) = inside.socket.path() else {
            return Err(Failure::usage(format!(
                "{url}: csd os runs where the drive does: name the drive's inside, as in \
                 nvme+unix:///run/d0.sock/NQN (`csd drive serve --inside`)"
            )));
        };
        let (folder, file) = (path.parent(), path.file_name());
        let (Some(folder), Some(file)) = (folder, file) else {
            return Err(Failure::usage(format!("{url}: the path is no socket")));
        };
        let folder = folder.canonicalize().map_err(|e| Failure::os(folder.display(), &e))?;
        let file = file.to_string_lossy();
        let stem = file.split('.').find(|part| !part.is_empty()).unwrap_or("drive");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let name = stem.chars().map(|c| if is_plain(c) { c } else { '-' }).take(63).collect();
        let os_folder = OsFolder::new(&folder.join(format!("{file}.os")));
        let (outside, ssh) = (None, os_folder.folder().to_owned());
        Ok(Self { name, inside, os_folder, outside, ssh, hosts: Vec::new(), context })
    }

    /// Returns the options with which another process connects as this one does.
    pub(super) fn connection(&self) -> Result<Vec<String>, Failure> {
        let mut words = vec!["--host-nqn".to_owned(), self.context.options()?.host_nqn];
        if let Some(secrets) = self.context.secrets_path() {
            let secrets = std::path::absolute(secrets).map_err(Failure::usage)?;
            words.extend(["--secrets".to_owned(), secrets.to_string_lossy().into_owned()]);
        }
        Ok(words)
    }

    /// Runs a question on a connection to the inside.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        question: impl AsyncFnOnce(&Controller) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let (address, options) = (self.inside.clone(), self.context.options()?);
        let answered = csd_reactor::block_on(&runtime(), move || async move {
            let controller = Controller::connect(&address, &options).await?;
            let answer = question(&controller).await;
            controller.disconnect().await;
            answer
        });
        answered.map_err(Failure::run)?.map_err(|error| csd_client::Error::Drive(error).into())
    }
}

impl Drive for OsTarget<'_> {
    fn reserve(&self, inside_only: bool) -> Result<(), String> {
        let set = async move |controller: &Controller| {
            let mut namespaces = controller.namespaces().iter();
            let block = namespaces.find(|one| matches!(one.kind, NamespaceKind::Block { .. }));
            let nsid = block.map_or(csd_nvme::vendor::NSID_BLOCK, |namespace| namespace.nsid);
            let sqe = set_features(FeatureId::INSIDE_ONLY, nsid, inside_only.into());
            controller.admin(sqe, &[], 0).await.map(drop)
        };
        self.ask(set).map_err(|failure| failure.message)
    }

    fn clear(&self) -> Result<(), String> {
        let address = self.inside.clone();
        let options = self.context.options().map_err(|failure| failure.message)?;
        let cleared = csd_reactor::block_on(&runtime(), move || async move {
            let volume = Volume::connect(&address, &options, Retry::default()).await?;
            let cleared = volume.zero(0, volume.bytes(), true).await;
            volume.disconnect().await;
            cleared
        });
        let cleared = cleared.map_err(|error| error.to_string())?;
        cleared.map_err(|error| error.to_string())
    }
}

/// Returns this program, for a command line.
pub(super) fn program() -> Result<String, Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::os("this program", &error))?;
    Ok(program.to_string_lossy().into_owned())
}

/// Returns the path of the socket of a drive's inside in an array's folder.
///
/// # Errors
/// If the path is too long for a socket.
pub(crate) fn inside_path(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let path = folder.join(format!("{name}.inside"));
    let wrong = |why| Failure::usage(format!("{}: {why}", path.display()));
    Address::check_unix(&path).map_err(wrong)?;
    Ok(path)
}

/// Returns the drive that a command names.
pub(super) fn one<'a>(which: &str, context: &'a Context) -> Result<OsTarget<'a>, Failure> {
    if which.contains("://") {
        return OsTarget::of_url(which, context);
    }
    let (file, folder) = array(context)?;
    let drive = drive_named(&file.drives, |drive| &drive.name, which)?;
    OsTarget::of_array(&file, drive, &folder, context)
}

/// Returns the drive that a command names, or every drive of the array that is on this machine.
pub(super) fn all<'a>(
    which: Option<&String>,
    context: &'a Context,
) -> Result<Vec<OsTarget<'a>>, Failure> {
    if let Some(which) = which {
        return Ok(vec![one(which, context)?]);
    }
    let (file, folder) = array(context)?;
    let here = file.drives.iter().filter(|drive| drive.media.is_some());
    here.map(|drive| OsTarget::of_array(&file, drive, &folder, context)).collect()
}

/// Returns the array file and the folder of its drives.
pub(super) fn array(context: &Context) -> Result<(ArrayFile, PathBuf), Failure> {
    let path = context.array_path();
    let file = ArrayFile::load(path)?;
    let shown = path.display();
    let home = ArrayFolder::of(path).map_err(|error| Failure::run(format!("{shown}: {error}")))?;
    let folder = home.folder(&file).map_err(|why| Failure::run(format!("{shown}: {why}")))?;
    let folder = folder.canonicalize().map_err(|error| Failure::os(folder.display(), &error))?;
    Ok((file, folder))
}
