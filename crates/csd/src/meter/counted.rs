//! [`Counted`]: processes and control groups of the host and of the array's drives, and what has
//! moved in their drives.
//!
//! Names and numbers of processes are read again each time, because drives and operating systems
//! may be started again during a job.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Add;
use std::path::Path;

use csd_measure::growth::{Growth, Reading};
use csd_os::cgroups;
use csd_os::os_folder::OsFolder;
use csd_os::record::{DOOR, HOST_END, Record, TUNNEL};
use csd_store::array::{ArrayFile, ArrayFolder, DriveRecord};

use super::moved::{Moved, moved};
use crate::context::Context;
use crate::report::Failure;

/// Ticks of a second in `/proc`: a constant of Linux.
const TICKS: f64 = 100.0;
/// Bytes of a sector, as `/sys/block` counts.
const SECTOR_BYTES: f64 = 512.0;

/// Counters of one drive.
#[derive(Default)]
pub(super) struct OfDrive {
    pub(super) os_cpu: Growth,
    pub(super) drive_cpu: Growth,
    pub(super) inside_cpu: Growth,
    pub(super) outside_cpu: Growth,
    /// Bytes that the operating system read of its blocks.
    pub(super) read_inside: Growth,
    /// Bytes that all sides read of the drive.
    pub(super) read: Growth,
    /// Bytes that the operating system sent and received.
    pub(super) sent: Growth,
    pub(super) received: Growth,
    /// Most memory of the operating system at a reading.
    pub(super) memory_bytes: u64,
}

/// CPU time of a job, s.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CpuSeconds {
    pub(super) host: f64,
    pub(super) os: f64,
    pub(super) drives: f64,
    pub(super) tunnels_inside: f64,
    pub(super) tunnels_outside: f64,
}

/// All that is counted next to the command's own processes.
pub(super) struct Counted<'a> {
    context: &'a Context,
    has_array: bool,
    pub(super) drives: BTreeMap<String, OfDrive>,
    /// Processes of the host that were named.
    pub(super) named: Vec<(u32, Growth)>,
}

impl<'a> Counted<'a> {
    pub(super) fn of(context: &'a Context, pids: &[u32]) -> Result<Self, Failure> {
        let has_array = context.array_path().exists();
        if let Some(pid) = pids.iter().find(|pid| process_s(**pid).is_none()) {
            return Err(Failure::usage(format!("--pid {pid}: there is no such process")));
        }
        let named = pids.iter().map(|pid| (*pid, Growth::default())).collect();
        let mut counted = Self { context, has_array, drives: BTreeMap::new(), named };
        if has_array {
            // It says what is wrong with the file.
            ArrayFile::load(context.array_path())?;
            counted.read_drives(true);
        }
        Ok(counted)
    }

    /// Reads what costs little.
    pub(super) fn read(&mut self) {
        for (pid, growth) in &mut self.named {
            growth.read(process_s(*pid));
        }
        if self.has_array {
            self.read_drives(false);
        }
    }

    /// Reads everything once more.
    pub(super) fn read_last(&mut self) {
        self.read();
        if self.has_array {
            self.read_drives(true);
        }
    }

    fn read_drives(&mut self, ask: bool) {
        // A command may just replace the file: the next reading has it.
        let path = self.context.array_path();
        let Ok(file) = ArrayFile::load(path) else { return };
        let Some(folder) = ArrayFolder::of(path)
            .ok()
            .and_then(|home| home.folder(&file).ok()?.canonicalize().ok())
        else {
            return;
        };
        for drive in file.drives.iter().filter(|drive| drive.media.is_some()) {
            let counted = self.drives.entry(drive.name.clone()).or_default();
            counted.read(drive, &OsFolder::new(&folder.join("os").join(&drive.name)));
            if ask {
                counted.ask(&drive.url, self.context);
            }
        }
    }

    /// Returns the CPU time by class, with that of the command's own processes.
    pub(super) fn cpu_s(&self, own: f64) -> CpuSeconds {
        let named = self.named.iter().map(|(_, growth)| growth.total());
        let sum = |part: fn(&OfDrive) -> &Growth| {
            // The sum of no numbers is -0.0.
            self.drives.values().map(|drive| part(drive).total()).fold(0.0, f64::add)
        };
        CpuSeconds {
            host: named.fold(own, f64::add),
            os: sum(|drive| &drive.os_cpu),
            drives: sum(|drive| &drive.drive_cpu),
            tunnels_inside: sum(|drive| &drive.inside_cpu),
            tunnels_outside: sum(|drive| &drive.outside_cpu),
        }
    }

    /// Says what is missing in the figures.
    pub(super) fn gaps(&self) -> Vec<String> {
        let mut gaps = Vec::new();
        for (pid, growth) in &self.named {
            gaps.extend(growth.gap().map(|gap| format!("process {pid} {gap}")));
        }
        for (name, drive) in &self.drives {
            for (what, growth) in [
                ("operating system", &drive.os_cpu),
                ("process", &drive.drive_cpu),
                ("end of the tunnel inside", &drive.inside_cpu),
                ("end of the tunnel outside", &drive.outside_cpu),
                ("count of bytes read inside", &drive.read_inside),
                ("count of bytes read", &drive.read),
                ("count of its tunnel's bytes", &drive.sent),
            ] {
                gaps.extend(growth.gap().map(|gap| format!("drive {name}: its {what} {gap}")));
            }
        }
        gaps
    }
}

impl OfDrive {
    fn read(&mut self, drive: &DriveRecord, os_folder: &OsFolder) {
        // A record that is just replaced, or was removed, counts nothing.
        let record = Record::load(os_folder).ok().flatten();
        let usage = record.as_ref().and_then(|record| {
            let usage = cgroups::usage(&record.cgroup()).ok()?;
            (usage.pids > 0).then(|| (record.id.clone(), usage))
        });
        self.memory_bytes =
            self.memory_bytes.max(usage.as_ref().map_or(0, |(_, usage)| usage.memory_bytes));
        self.os_cpu.read(usage.map(|(of, usage)| Reading { of, value: usage.cpu_s }));
        let process = |program: &str| {
            let all = &record.as_ref()?.processes;
            all.iter()
                .rfind(|process| process.program == program)
                .and_then(|process| process_s(process.pid))
        };
        // The process that attaches its blocks works for the drive.
        let both = [drive.pid.and_then(process_s), process(DOOR)].into_iter().flatten();
        self.drive_cpu.read(both.reduce(|one, other| Reading {
            of: format!("{} {}", one.of, other.of),
            value: one.value + other.value,
        }));
        self.inside_cpu.read(process(TUNNEL));
        self.outside_cpu.read(process(HOST_END));
        self.read_inside.read(sectors_read(os_folder.folder()));
    }

    /// Asks the drive. Its counters begin at 0 when it is started again.
    fn ask(&mut self, url: &str, context: &Context) {
        let moved = moved(url, context).ok();
        let reading = |value: fn(&Moved) -> u64| {
            #[expect(clippy::cast_precision_loss, reason = "2^53 bytes are 9 petabytes")]
            moved.as_ref().map(|moved| Reading { of: String::new(), value: value(moved) as f64 })
        };
        self.read.read(reading(|moved| moved.read_bytes));
        self.sent.read(reading(|moved| moved.sent_bytes));
        self.received.read(reading(|moved| moved.received_bytes));
    }
}

/// Returns the CPU time of a process, with that of its ended children, under a name that no other
/// process has.
fn process_s(pid: u32) -> Option<Reading> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (ticks, started) = times(&stat, 11..15)?;
    Some(Reading { of: format!("{pid} {started}"), value: ticks / TICKS })
}

/// Returns the CPU time of all processes that this one has waited for, s.
pub(super) fn children_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    times(&stat, 13..15).map_or(0.0, |(ticks, _)| ticks / TICKS)
}

/// Returns the sum of some times in a line of `/proc/PID/stat`, in ticks, and that of its start.
fn times(stat: &str, which: std::ops::Range<usize>) -> Option<(f64, u64)> {
    // The fields follow the name, which is in parentheses and may hold any character.
    let fields: Vec<_> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = fields.get(which)?.iter().map(|field| field.parse::<f64>().ok());
    Some((ticks.sum::<Option<f64>>()?, fields.get(19)?.parse().ok()?))
}

/// Returns the bytes that were read of the device below a file system of the folder. Pages that
/// were in memory are none.
fn sectors_read(folder: &Path) -> Option<Reading> {
    let devices = fs::read_dir("/sys/block").ok()?.flatten();
    let own = devices.map(|device| device.path()).find(|device| {
        let file = fs::read_to_string(device.join("loop/backing_file")).unwrap_or_default();
        Path::new(file.trim_end()).starts_with(folder)
    })?;
    let stat = fs::read_to_string(own.join("stat")).ok()?;
    let sectors: f64 = stat.split_whitespace().nth(2)?.parse().ok()?;
    Some(Reading { of: own.display().to_string(), value: sectors * SECTOR_BYTES })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let after = "S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 15 16 17 18 777 20";
        let stat = format!("7 (a) b) {after}");
        assert_eq!(times(&stat, 11..15), Some((127.0, 777)));
        assert_eq!(times(&stat, 13..15), Some((7.0, 777)));
        assert_eq!(times("7 (a", 11..15), None);
    }

    #[test]
    fn this_process_takes_time() {
        let own = process_s(std::process::id()).unwrap();
        assert!(own.value >= 0.0 && own.of.starts_with(&std::process::id().to_string()));
        assert_eq!(process_s(u32::MAX), None);
    }
}
