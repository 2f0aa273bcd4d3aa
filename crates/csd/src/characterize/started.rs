//! A drive that is started for a characterization and stopped after it.
//!
//! It stays in this process's group, so that an interrupt at the terminal ends both, and the kernel
//! ends it when this process ends in any other way. Its medium and its log are files without a
//! name, so that nothing is left of them. Invariant: dropping the value ends the process.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};

use csd_initiator::Address;
use csd_kernels::kernel::Kernel;
use csd_measure::characterize::region::Region;
use csd_measure::characterize::{self, DataArea, Options, Subject, survey};
use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::Value;

use super::{machine, scratch_folder};
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
    child: Child,
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
        let folder = scratch_folder(options);
        let cannot = |error: io::Error| {
            Failure::run(format!("cannot start a drive in {}: {error}", folder.display()))
        };
        let medium = match in_memory {
            true => None,
            false => Some(tempfile::tempfile_in(&folder).map_err(cannot)?),
        };
        let mut log = tempfile::tempfile_in(&folder).map_err(cannot)?;
        let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
        command.args(["--json", "drive", "serve", "--listen", "127.0.0.1:0", "--media"]);
        match &medium {
            None => command.arg("memory"),
            Some(medium) => {
                fcntl_setfd(medium, FdFlags::empty()).map_err(|error| cannot(error.into()))?;
                command.arg(format!("/proc/self/fd/{}", medium.as_raw_fd()))
            }
        };
        command.args(["--size", &size.to_string(), "--cores", &cores.to_string()]);
        command.args(["--nqn", &format!("nqn.2026-11.io.csdstore:{id}:drive")]);
        command.args(["--parent", &std::process::id().to_string()]);
        if let Some(secrets) = context.secrets_path() {
            // A drive that must authenticate needs the secrets, too.
            command.arg("--secrets").arg(secrets);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(log.try_clone().map_err(cannot)?);
        let child = command.spawn().map_err(cannot)?;
        let media = if in_memory { "memory" } else { "file" };
        // Dropping it ends the process.
        let mut started = Self { url: String::new(), cores, media, child };
        let said = started.said().map_err(cannot)?;
        let Some(url) = said["result"]["url"].as_str() else {
            let why = match said["error"]["message"].as_str() {
                Some(why) => why.to_owned(),
                None => last_line(&mut log).map_err(cannot)?,
            };
            return Err(Failure::run(format!("the drive ended at its start: {why}")));
        };
        started.url = url.to_owned();
        Ok(started)
    }

    /// Waits until the drive serves or ends, and returns the object that it prints.
    fn said(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        if let Some(output) = self.child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        Ok(serde_json::from_str(&line).unwrap_or_default())
    }
}

/// Returns the last line that a drive wrote in its log.
fn last_line(log: &mut File) -> io::Result<String> {
    let mut text = Vec::new();
    log.rewind()?;
    log.read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().next_back().unwrap_or("it said nothing").to_owned())
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended already; nothing that it has is kept.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
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
