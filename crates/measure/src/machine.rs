//! Properties of this machine, from `/proc`, and how much of it this process may use.
//!
//! Does not fail: a property that cannot be read is unknown.

use std::fs;

use csd_reactor::parallelism;

use crate::group_limits::GroupLimits;

/// Returns processor, cores and kernel, and the limits of this process, for people.
pub fn text() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let processor = field("model name").or_else(|| field("CPU implementer"));
    let processor = processor.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let limits = limits_text().map_or_else(String::new, |limits| format!(", {limits}"));
    format!("{processor}, {} cores{limits}, Linux {}", cores(), release.trim())
}

/// Returns the number of cores that this process may use, at least 1: those that it may run on, or
/// as many whole ones as its control groups give it the time of, if they are fewer.
pub fn cores() -> usize {
    parallelism()
}

/// Returns how much of this machine the process may use, for people; `None` if all.
pub fn limits_text() -> Option<String> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let limits = GroupLimits::of_this_process();
    limits_in_words(limits, (cores(), count_of(online.trim())), machine_memory_bytes())
}

/// Returns the limits in words; `cores` are those that may be used and those of the machine.
fn limits_in_words(
    limits: GroupLimits,
    (usable, all): (usize, usize),
    memory_bytes: Option<u64>,
) -> Option<String> {
    let time =
        limits.cores.filter(|cores| *cores < f64::from(u32::try_from(all).unwrap_or(u32::MAX)));
    let cores = match time {
        Some(cores) => Some(format!("the processor time of {cores:.2} cores of {all}")),
        None => (usable < all).then(|| format!("{usable} cores of {all}")),
    };
    let memory = memory_of(limits, memory_bytes)
        .map(|(bytes, all)| format!("{} MiB of memory of {}", bytes >> 20, all >> 20));
    let parts: Vec<String> = cores.into_iter().chain(memory).collect();
    (!parts.is_empty()).then(|| format!("limited to {}", parts.join(" and ")))
}

/// Returns the memory limit of the control groups and the machine's memory, if it is less.
fn memory_of(limits: GroupLimits, machine_bytes: Option<u64>) -> Option<(u64, u64)> {
    limits.memory_bytes.zip(machine_bytes).filter(|(limit, all)| limit < all)
}

/// Returns the memory limit of this process's control groups, bytes; `None` if they leave it all of
/// the machine's.
pub fn memory_limit_bytes() -> Option<u64> {
    Some(memory_of(GroupLimits::of_this_process(), machine_memory_bytes())?.0)
}

/// Returns the memory that this process may use, bytes: the machine's, or its control groups' limit
/// if that is less.
pub fn memory_bytes() -> Option<u64> {
    memory_limit_bytes().or_else(machine_memory_bytes)
}

/// Returns the size of the machine's main memory, bytes.
fn machine_memory_bytes() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns how many numbers a list such as `0-3,8` contains.
fn count_of(list: &str) -> usize {
    let parts = list.split(',').map(|part| match part.split_once('-') {
        Some((first, last)) => match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) if first <= last => last - first + 1,
            _ => 0,
        },
        None => usize::from(part.parse::<usize>().is_ok()),
    });
    parts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!([count_of("0-3,8"), count_of("5"), count_of("0-1")], [5, 1, 2]);
        assert_eq!([count_of(""), count_of("x-3"), count_of("3-1")], [0, 0, 0]);
    }

    #[test]
    fn this_machine_has_cores_and_memory() {
        assert!(cores() >= 1 && memory_bytes().is_some_and(|bytes| bytes > 1 << 20));
        assert!(text().contains(&format!("{} cores", cores())));
    }

    #[test]
    fn limits_below_the_machine_are_said() {
        let said = |cores, memory_bytes, usable| {
            limits_in_words(GroupLimits { cores, memory_bytes }, (usable, 4), Some(8 << 30))
        };
        assert_eq!(said(None, None, 4), None);
        assert_eq!(said(Some(8.0), Some(16 << 30), 4), None);
        assert_eq!(said(None, None, 2).unwrap(), "limited to 2 cores of 4");
        let both = "limited to the processor time of 0.50 cores of 4 and 512 MiB of memory of 8192";
        assert_eq!(said(Some(0.5), Some(512 << 20), 1).unwrap(), both);
    }
}
