//! Properties of this machine, from `/proc`.
//!
//! Does not fail: a property that cannot be read is unknown.

use std::fs;

/// Returns processor, cores and kernel, for people.
pub fn text() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let processor = field("model name").or_else(|| field("CPU implementer"));
    let processor = processor.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{processor}, {} cores, Linux {}", cores(), release.trim())
}

/// Returns the number of cores that this process may use; 1 if unknown.
pub fn cores() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    allowed.map_or(1, |list| count_of(list.trim())).max(1)
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

/// Returns the size of main memory, bytes.
pub fn memory_bytes() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
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
}
