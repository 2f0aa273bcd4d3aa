//! A drive that is started for a characterization and stopped after it.
//!
//! It stays in this process's group, so that an interrupt at the terminal ends both. Its media file
//! is unlinked once it serves. Invariant: dropping the value ends the process and deletes the
//! folder.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use csd_initiator::Address;
use csd_kernels::kernel::Kernel;
use csd_measure::characterize::region::Region;
use csd_measure::characterize::{self, DataArea, Options, Subject, survey};
use csd_store::array::{DriveOptions, DriveRecord};

use super::{machine, scratch_folder};
use crate::array::process;
use crate::cli::characterize::Characterize;
use crate::context::Context;
use crate::report::Failure;
use crate::runtime::{random, runtime};
use crate::units::hex;

/// Repetitions of the ingest bandwidth's measurement.
const INGEST_REPEAT: usize = 3;

/// The drive's process.
pub(super) struct Started {
    pub(super) url: String,
    pub(super) cores: usize,
    /// Kind of its media: memory or file.
    pub(super) media: &'static str,
    record: DriveRecord,
    folder: PathBuf,
}

impl Started {
    /// Starts a drive large enough for the working sets, with the largest number of cores to
    /// measure.
    pub(super) fn new(
        options: &Characterize,
        kernels: &[&'static dyn Kernel],
        context: &Context,
    ) -> Result<Self, Failure> {
        let largest = options.size.iter().copied().max().unwrap_or(0);
        // Half of the media is blocks: the working set, followed by a result of the same length.
        // The other half is for results that the drive stores as values.
        let size = if kernels.iter().any(|kernel| kernel.sample().stores) {
            6 * largest
        } else {
            3 * largest
        };
        let counts = options.cores.as_ref().and_then(|counts| counts.0.iter().max().copied());
        let cores = counts.unwrap_or_else(machine::cores);
        let in_memory = options.media == "memory";
        Self::start(options, context, (in_memory, size + (512 << 20)), cores)
    }

    fn start(
        options: &Characterize,
        context: &Context,
        (in_memory, size): (bool, u64),
        cores: usize,
    ) -> Result<Self, Failure> {
        let id = hex(&random::<8>()?);
        let folder = scratch_folder(options).join(format!("csd-characterize-{id}"));
        let cannot = |error: std::io::Error| {
            Failure::run(format!("cannot start a drive in {}: {error}", folder.display()))
        };
        fs::create_dir(&folder).map_err(cannot)?;
        let media = if in_memory { PathBuf::from("memory") } else { folder.join("media") };
        let mut record = DriveRecord {
            name: "drive".to_owned(),
            url: format!("nvme+tcp://127.0.0.1:0/nqn.2026-11.io.csdstore:{id}:drive"),
            media: Some(media.to_string_lossy().into_owned()),
            media_uuid: None,
            place: None,
            size_bytes: Some(size),
            cores: Some(cores),
            pid: None,
            options: DriveOptions::new(),
        };
        let log = File::create(process::log_path(&folder, &record)).map_err(cannot)?;
        let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
        command.args(["drive", "serve", "--listen", "127.0.0.1:0", "--media"]).arg(&media);
        command.args(["--size", &size.to_string(), "--cores", &cores.to_string()]);
        command.args(["--nqn", &format!("nqn.2026-11.io.csdstore:{id}:drive")]);
        if let Some(secrets) = context.secrets_path() {
            // A drive that must authenticate needs the secrets, too.
            command.arg("--secrets").arg(secrets);
        }
        command.arg("--ready-file").arg(process::ready_path(&folder, &record));
        command.stdin(Stdio::null()).stdout(log.try_clone().map_err(cannot)?).stderr(log);
        let child = command.spawn().map_err(cannot)?;
        record.pid = Some(child.id());
        let media_text = if in_memory { "memory" } else { "file" };
        let mut started =
            Self { url: String::new(), cores, media: media_text, record, folder: folder.clone() };
        started.url = process::wait_ready(&started.record, &folder, child)?;
        if !in_memory {
            // The drive has it open, and no other process needs it.
            let _kept = fs::remove_file(&media);
        }
        Ok(started)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if process::is_running(&self.record, &self.folder) {
            process::terminate(&self.record, &self.folder);
            let _ended = process::wait_end(&self.record, &self.folder);
        }
        let _kept = fs::remove_dir_all(&self.folder);
    }
}

/// Measures the bytes per second that all host cores together receive from a drive in memory.
pub(super) fn ingest_bandwidth(
    options: &Characterize,
    measured: &Options,
    context: &Context,
) -> Result<u64, Failure> {
    let (largest, cores) = (measured.largest(), machine::cores());
    let drive = Started::start(options, context, (true, 3 * largest + (512 << 20)), cores)?;
    let address: Address = drive.url.parse().map_err(Failure::run)?;
    let surveyed = survey(&runtime(), &address, &measured.connection)?;
    let region = Region::new(surveyed.block.0, vec![(0, largest)]);
    let area = DataArea { region, regions: Vec::new(), values_nsid: None, write: true };
    let subjects = vec![Subject { address, area, compute_nsid: None, here: true }];
    let ingest = Options { subjects, repeat: INGEST_REPEAT, ..measured.clone() };
    Ok(characterize::intake(&ingest, cores)?.bytes_per_s)
}
