//! [`Usage`]: CPU time and written bytes of a process, and written bytes of a folder's disk.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use csd_bench::Error;
use csd_bench::serve::cpu_us;

/// Bytes of a sector in the counters of a block device.
const SECTOR_BYTES: u64 = 512;

/// CPU time and writes of a process since it started, and writes of the disk.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// CPU time, us (resolution: 10 ms).
    pub cpu_us: u64,
    /// Bytes that the process had the disk write.
    pub written_bytes: u64,
    /// Bytes that the disk wrote, for any process.
    pub disk_bytes: u64,
}

impl Usage {
    /// Reads the counters of a process and of the disk that a folder is on.
    ///
    /// # Errors
    /// If the kernel has no such counters.
    pub fn read(process: u32, folder: &Path) -> Result<Self, Error> {
        let io = text(format!("/proc/{process}/io"))?;
        let written = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        Ok(Self {
            cpu_us: cpu_us(process),
            written_bytes: number(written, "written bytes")?,
            disk_bytes: disk_bytes(folder)?,
        })
    }

    /// Returns what was used since an earlier reading.
    pub fn since(self, before: Self) -> Self {
        Self {
            cpu_us: self.cpu_us.saturating_sub(before.cpu_us),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            disk_bytes: self.disk_bytes.saturating_sub(before.disk_bytes),
        }
    }
}

fn disk_bytes(folder: &Path) -> Result<u64, Error> {
    let device = folder.metadata().map_err(Error::at(folder))?.dev();
    let (major, minor) = ((device >> 8) & 0xFFF, (device & 0xFF) | ((device >> 12) & 0xF_FF00));
    let stat = text(format!("/sys/dev/block/{major}:{minor}/stat"))?;
    Ok(number(stat.split_whitespace().nth(6), "written sectors")? * SECTOR_BYTES)
}

/// Returns the bytes that the files of a folder take on their disk.
///
/// # Errors
/// If it cannot be read.
pub fn folder_bytes(folder: &Path) -> Result<u64, Error> {
    let failed = || Error::at(folder);
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).map_err(failed())? {
        // RocksDB may delete a file meanwhile.
        bytes += entry.map_err(failed())?.metadata().map_or(0, |it| it.blocks() * SECTOR_BYTES);
    }
    Ok(bytes)
}

fn text(path: String) -> Result<String, Error> {
    std::fs::read_to_string(&path).map_err(Error::system(path))
}

fn number(text: Option<&str>, what: &str) -> Result<u64, Error> {
    let number = text.and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| Error::Usage(format!("this kernel counts no {what}")))
}
