//! [`TaskLog`]: a file into which a command copies the words of a framework whose jobs it starts.
//! [`Tasks`]: the counts of tasks that are in them.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use crate::report::Failure;

/// Variable of the command's environment that names the file.
pub(super) const VARIABLE: &str = "CSD_TASKS";

/// Tasks of all jobs of a command. Each attempt of a task counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tasks {
    pub(super) jobs: u64,
    pub(super) maps: u64,
    pub(super) reduces: u64,
    /// Maps on the machine that has their block, in its rack, and the others.
    pub(super) data_local: u64,
    pub(super) rack_local: u64,
    pub(super) other: u64,
}

impl Tasks {
    /// Reads what Hadoop's clients say: the group `Job Counters` that they print at the end of each
    /// job, also of one that failed. Returns none if there is no such group.
    pub(super) fn of_hadoop(text: &str) -> Option<Self> {
        let mut tasks = Self::default();
        let mut in_group = false;
        for line in text.lines().map(str::trim) {
            if line == "Job Counters" {
                in_group = true;
                tasks.jobs += 1;
                continue;
            }
            let counter = line.split_once('=').filter(|_| in_group);
            in_group = counter.is_some();
            let Some((name, Ok(count))) = counter.map(|(name, text)| (name, text.parse::<u64>()))
            else {
                continue;
            };
            let total = match name {
                "Launched map tasks" => &mut tasks.maps,
                "Launched reduce tasks" => &mut tasks.reduces,
                "Data-local map tasks" => &mut tasks.data_local,
                "Rack-local map tasks" => &mut tasks.rack_local,
                "Other local map tasks" => &mut tasks.other,
                _ => continue,
            };
            *total = total.saturating_add(count);
        }
        (tasks.jobs > 0).then_some(tasks)
    }
}

/// A file for the words of frameworks, that is removed with this value.
pub(super) struct TaskLog(PathBuf);

impl TaskLog {
    pub(super) fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("csd-meter-{}.tasks", std::process::id()));
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        made.map_err(|error| Failure::run(format!("{}: {error}", path.display())))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the counts that are in the file, if any.
    pub(super) fn tasks(&self) -> Option<Tasks> {
        Tasks::of_hadoop(&String::from_utf8_lossy(&fs::read(&self.0).ok()?))
    }
}

impl Drop for TaskLog {
    fn drop(&mut self) {
        // The command may have removed it.
        let _gone = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of clients of Hadoop 3.4.2, with two drives: of a job that was done, and of one that
    /// failed because a block had no replica left.
    const COMPLETED: &str = include_str!("saved/hadoop-completed.txt");
    const FAILED: &str = include_str!("saved/hadoop-failed.txt");

    #[test]
    fn tasks_are_counted_as_clients_of_hadoop_say() {
        let done = Tasks { jobs: 1, maps: 8, reduces: 2, data_local: 8, ..Tasks::default() };
        assert_eq!(Tasks::of_hadoop(COMPLETED), Some(done));
        // Each attempt counts, and the block had no place any more.
        let failed = Tasks { jobs: 1, maps: 4, other: 4, ..Tasks::default() };
        assert_eq!(Tasks::of_hadoop(FAILED), Some(failed));
        let both = Tasks::of_hadoop(&[COMPLETED, FAILED, COMPLETED].concat()).unwrap();
        assert_eq!((both.jobs, both.maps, both.reduces, both.data_local), (3, 20, 4, 16));
    }

    #[test]
    fn text_without_counters_has_no_tasks() {
        assert_eq!(Tasks::of_hadoop(""), None);
        assert_eq!(Tasks::of_hadoop("Launched map tasks=7\n"), None);
        // The group ends with the first line that is no counter.
        let text = "\tJob Counters \n\t\tLaunched map tasks=1\nelse\n\t\tLaunched map tasks=7\n";
        let found = Tasks::of_hadoop(text);
        assert_eq!(found, Some(Tasks { jobs: 1, maps: 1, ..Tasks::default() }));
    }

    #[test]
    fn counts_that_are_no_numbers_or_too_large_end_nothing() {
        let text = format!(
            "Job Counters\nLaunched map tasks=-1\nLaunched reduce tasks={0}\n\
             Job Counters\nLaunched reduce tasks={0}\nData-local map tasks=2\n",
            u64::MAX
        );
        let expected = Tasks { jobs: 2, reduces: u64::MAX, data_local: 2, ..Tasks::default() };
        assert_eq!(Tasks::of_hadoop(&text), Some(expected));
    }

    #[test]
    fn a_file_of_words_is_there_as_long_as_it_is_used() {
        let log = TaskLog::new().unwrap();
        assert_eq!(log.tasks(), None);
        fs::write(log.path(), b"\xff\nJob Counters \nLaunched map tasks=3\n").unwrap();
        assert_eq!(log.tasks().map(|tasks| (tasks.jobs, tasks.maps)), Some((1, 3)));
        let path = log.path().to_owned();
        drop(log);
        assert!(!path.exists());
    }
}
