//! The processors that programs of an operating system see: as many as its quota gives the time of.
//!
//! A group of processors (cpuset) holds them, so that affinity tells their number. Files about
//! these alone replace those of the kernel about the whole machine, `/proc/cpuinfo` and the list of
//! processors online. Operating systems are spread: each takes the processors that the fewest
//! others have.

use std::fs;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::config::INFO;
use crate::in_place::write;
use crate::os_folder::OsFolder;
use crate::{Error, cgroups};

/// File of a control group that lists its processors.
const CPUS: &str = "cpuset.cpus";

/// Processors of an operating system, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Processors(Vec<usize>);

impl Processors {
    /// Chooses processors for a quota, in cores. `None` if it has the time of all that this process
    /// may use, or the machine has no control groups of processors.
    pub(crate) fn choose(cpus: f64) -> Result<Option<Self>, Error> {
        let Some(hierarchy) = cgroups::of_processors()? else { return Ok(None) };
        let usable = usable()?;
        let count = count(cpus);
        let others = lists(&hierarchy);
        Ok((count < usable.len()).then(|| Self(least_taken(count, &usable, &others))))
    }

    /// Returns the list as the kernel reads and writes it.
    pub(crate) fn list(&self) -> String {
        self.0.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
    }

    /// Returns their number.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes what replaces the files about the whole machine.
    pub(crate) fn write_files(&self, os_folder: &OsFolder) -> Result<(), Error> {
        let all = fs::read_to_string(INFO).map_err(|error| Error::os(INFO, error))?;
        write(&os_folder.online(), &format!("{}\n", self.list()))?;
        write(&os_folder.processors(), &self.described(&all))
    }

    /// Keeps the paragraphs of these processors, and those of none.
    fn described(&self, all: &str) -> String {
        let number = |line: &str| {
            let (name, number) = line.split_once(':')?;
            if name.trim_end() == "processor" { number.trim().parse::<usize>().ok() } else { None }
        };
        let is_own = |paragraph: &&str| {
            paragraph.lines().find_map(number).is_none_or(|number| self.0.contains(&number))
        };
        let own = all.split_inclusive("\n\n").filter(is_own);
        own.collect()
    }
}

/// Returns the number of processors that programs within a quota see.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked: to 1024")]
fn count(cpus: f64) -> usize {
    cpus.ceil() as usize
}

/// Returns the number of processors that this process may use.
pub(crate) fn usable_count() -> Result<usize, Error> {
    usable().map(|usable| usable.len())
}

fn usable() -> Result<Vec<usize>, Error> {
    let set = sched_getaffinity(None);
    let set = set.map_err(|error| Error::os("the processors of this process", error))?;
    Ok((0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number)).collect())
}

/// Returns the processors of the operating systems in a hierarchy.
fn lists(hierarchy: &Path) -> Vec<Vec<usize>> {
    let groups = fs::read_dir(hierarchy).into_iter().flatten().flatten();
    let own = groups.filter(|group| group.file_name().to_string_lossy().starts_with("csd-os-"));
    own.filter_map(|group| fs::read_to_string(group.path().join(CPUS)).ok())
        .map(|list| parse(list.trim()))
        .collect()
}

/// Parses a list such as `0-3,6`; what is none of that has no processors.
fn parse(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some(first..=last.min(CpuSet::MAX_CPU))
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// Returns the processors that the fewest others have, of these the first.
fn least_taken(count: usize, usable: &[usize], others: &[Vec<usize>]) -> Vec<usize> {
    let uses = |one: &usize| others.iter().filter(|other| other.contains(one)).count();
    let mut chosen = usable.to_vec();
    chosen.sort_by_key(uses);
    chosen.truncate(count.max(1));
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_has_whole_processors() {
        for (cpus, processors) in [(0.01, 1), (0.9, 1), (1.0, 1), (1.5, 2), (1024.0, 1024)] {
            assert_eq!(count(cpus), processors);
        }
    }

    #[test]
    fn operating_systems_are_spread() {
        let usable = [0, 1, 3];
        let mut others = Vec::new();
        for expected in [0, 1, 3, 0] {
            let own = least_taken(1, &usable, &others);
            assert_eq!(own, [expected]);
            others.push(own);
        }
        assert_eq!(least_taken(2, &usable, &others), [1, 3]);
    }

    #[test]
    fn lists_of_processors_are_read() {
        for (list, numbers) in [
            ("0", vec![0]),
            ("0-2,5", vec![0, 1, 2, 5]),
            ("", vec![]),
            ("x,1-y,4", vec![4]),
            ("5-4", vec![]),
        ] {
            assert_eq!(parse(list), numbers, "{list}");
        }
        assert_eq!(parse("0-18446744073709551615").len(), CpuSet::MAX_CPU + 1);
    }

    #[test]
    fn only_the_own_processors_are_described() {
        let one = |number| format!("processor\t: {number}\nmodel name\t: m {number}\n\n");
        let all = format!("{}{}{}Hardware\t: h\n", one(0), one(1), one(10));
        let seen = Processors(vec![1]).described(&all);
        assert_eq!(seen, format!("{}Hardware\t: h\n", one(1)));
    }
}
