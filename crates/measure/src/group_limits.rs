//! Limits that control groups (version 2 or 1) set this process: processor time and memory.
//!
//! A limit counts in the process's own group and in each group above it. Does not fail: a limit
//! that cannot be read is none.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cgroup::{Hierarchy, Version};

/// The lowest limits of the groups that this process is in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupLimits {
    /// Processor time in each second, in cores: 0.5 is half a core.
    pub cores: Option<f64>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
}

impl GroupLimits {
    /// Reads the limits of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        Self::read(&own, &mounts, |path| fs::read_to_string(path).ok())
    }

    /// Reads the limits of a process with these files in `/proc`; `file` returns the text of a
    /// group's file.
    fn read(own: &str, mounts: &str, file: impl Fn(&Path) -> Option<String>) -> Self {
        let groups = |controller| {
            let Hierarchy { root, own, version } = Hierarchy::find(own, mounts, controller)?;
            let groups = own.ancestors().take_while(|group| group.starts_with(&root));
            Some((version, groups.map(Path::to_path_buf).collect::<Vec<_>>()))
        };
        let number = |path: PathBuf| file(&path)?.trim().parse::<i64>().ok();
        let cores = |version, group: &PathBuf| match version {
            Version::One => {
                let quota = number(group.join("cpu.cfs_quota_us")).filter(|quota| *quota > 0)?;
                share(quota, number(group.join("cpu.cfs_period_us"))?)
            }
            Version::Two => {
                let text = file(&group.join("cpu.max"))?;
                let (quota, period) = text.trim().split_once(' ')?;
                share(quota.parse().ok()?, period.parse().ok()?)
            }
        };
        let memory = |version: Version, group: &PathBuf| {
            let bytes = number(group.join(version.memory_limit()))?;
            // Version 1 says the largest number of whole pages where there is no limit.
            u64::try_from(bytes).ok().filter(|bytes| *bytes < 1 << 62)
        };
        Self {
            cores: groups("cpu").and_then(|(version, groups)| {
                groups.iter().filter_map(|group| cores(version, group)).reduce(f64::min)
            }),
            memory_bytes: groups("memory").and_then(|(version, groups)| {
                groups.iter().filter_map(|group| memory(version, group)).min()
            }),
        }
    }
}

/// Returns a quota of processor time in each period, in cores.
fn share(quota_us: i64, period_us: i64) -> Option<f64> {
    let whole = |us: i64| u32::try_from(us).ok().map(f64::from);
    Some(whole(quota_us)? / whole(period_us).filter(|period| *period > 0.0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(own: &str, mounts: &str, files: &[(&str, &str)]) -> GroupLimits {
        GroupLimits::read(own, mounts, |path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn the_lowest_limit_of_version_2_counts() {
        let read = |files| limits("0::/a/b\n", "cgroup2 /cg cgroup2 rw 0 0\n", files);
        let files = [
            ("/cg/a/cpu.max", "50000 100000\n"),
            ("/cg/a/b/cpu.max", "max 100000\n"),
            ("/cg/a/memory.max", "max\n"),
            ("/cg/a/b/memory.max", "536870912\n"),
        ];
        let found = GroupLimits { cores: Some(0.5), memory_bytes: Some(512 << 20) };
        assert_eq!(read(&files), found);
        assert_eq!(read(&files[1..3]), GroupLimits::default());
        assert_eq!(read(&[("/cg/a/b/cpu.max", "nonsense")]), GroupLimits::default());
    }

    #[test]
    fn version_1_has_a_hierarchy_for_each_controller() {
        let own = "5:cpu,cpuacct:/box\n4:memory:/box\n0::/\n";
        let mounts = "cgroup /cg/cpu cgroup rw,cpu,cpuacct 0 0\n\
                      cgroup /cg/memory cgroup rw,memory 0 0\n";
        let files = [
            ("/cg/cpu/box/cpu.cfs_quota_us", "150000\n"),
            ("/cg/cpu/box/cpu.cfs_period_us", "100000\n"),
            ("/cg/cpu/cpu.cfs_quota_us", "-1\n"),
            ("/cg/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/cg/memory/box/memory.limit_in_bytes", "1073741824\n"),
        ];
        let found = GroupLimits { cores: Some(1.5), memory_bytes: Some(1 << 30) };
        assert_eq!(limits(own, mounts, &files), found);
        // Inside a container the own group's path is one of the machine, which is not mounted
        // there.
        let files = [("/cg/memory/memory.limit_in_bytes", "1073741824\n")];
        let found = GroupLimits { cores: None, memory_bytes: Some(1 << 30) };
        assert_eq!(limits(own, mounts, &files), found);
        assert_eq!(limits("", "", &files), GroupLimits::default());
    }
}
