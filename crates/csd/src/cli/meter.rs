//! The command line of `csd meter`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::attach::parse_time;

/// Options of `csd meter`.
#[derive(Args, Debug)]
pub(crate) struct Meter {
    /// File of the record, as `--json` prints it; an earlier one is replaced
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Measure the machine's power at rest for this long before the command, and as long after it
    ///
    /// Without it the energy is that of the whole machine, with its rest.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) idle: Option<Duration>,
    /// Profile with watts, for energy where no processor counts it: `core_W` of the host, `idle_W`
    /// and `active_W` of the device [default device: the only one]
    #[arg(long, value_name = "FILE[:DEVICE]")]
    pub(crate) profile: Option<String>,
    /// Count this process of the host as well, such as a daemon that the command talks to; may be
    /// repeated
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Vec<u32>,
    /// Folder of the processor's energy counters
    #[arg(long, value_name = "FOLDER", default_value = csd_measure::rapl::POWERCAP)]
    pub(crate) powercap: PathBuf,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub(crate) command: Vec<String>,
}
