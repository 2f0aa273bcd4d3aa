//! Control groups (cgroup version 2 or 1): one that limits the memory of a process, and those that
//! count what a job takes.
//!
//! Does not limit this process; a process enters a group by itself. Invariant: dropping the value
//! deletes the group.

use std::fs;
use std::path::{Path, PathBuf};

/// A memory control group.
pub struct MemoryGroup {
    folder: PathBuf,
    file: &'static str,
}

impl MemoryGroup {
    /// Creates a group as a sibling or child of this process's group.
    ///
    /// # Errors
    /// The reason why no group can be created, in words.
    pub fn new(name: &str) -> Result<Self, String> {
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let mounts = fs::read_to_string("/proc/self/mounts").map_err(|error| error.to_string())?;
        let (parents, file) = candidates(&own, &mounts, "memory").ok_or_else(|| {
            "this machine mounts no control groups for memory, of version 2 or 1".to_owned()
        })?;
        let mut refusals = Vec::new();
        for parent in parents {
            let folder = parent.join(name);
            match fs::create_dir(&folder) {
                Ok(()) if folder.join(file).exists() => return Ok(Self { folder, file }),
                Ok(()) => {
                    let _removed = fs::remove_dir(&folder);
                    refusals.push(format!("{}: has no {file}", folder.display()));
                }
                Err(error) => refusals.push(format!("{}: {error}", folder.display())),
            }
        }
        Err(format!("no memory group can be made: {}", refusals.join("; ")))
    }

    /// Limits the memory of the group, including its page cache.
    pub fn limit(&self, bytes: u64) -> Result<(), String> {
        let path = self.folder.join(self.file);
        fs::write(&path, bytes.to_string()).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Returns the path of the file to which a process writes its number to enter the group.
    pub fn procs_file(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _removed = fs::remove_dir(&self.folder);
    }
}

/// Control groups of a job, which count its CPU time and memory. Processes that are left in them on
/// drop go back to those of this process.
pub struct JobGroups {
    folders: Vec<PathBuf>,
    /// Those of this process, in the same order.
    own: Vec<PathBuf>,
}

impl JobGroups {
    /// Creates the groups: one of version 2, or one for each of the two controllers of version 1.
    ///
    /// # Errors
    /// The reason why none can be created, in words.
    pub fn new(name: &str) -> Result<Self, String> {
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let mounts = fs::read_to_string("/proc/self/mounts").map_err(|error| error.to_string())?;
        let mut groups = Self { folders: Vec::new(), own: Vec::new() };
        for controller in ["cpuacct", "memory"] {
            let missing = || format!("this machine mounts no control groups for {controller}");
            let hierarchy = Hierarchy::find(&own, &mounts, controller).ok_or_else(missing)?;
            let (parents, _) = candidates(&own, &mounts, controller).ok_or_else(missing)?;
            // Both are of one hierarchy.
            if groups.own.contains(&hierarchy.own) {
                continue;
            }
            let mut refusals = Vec::new();
            let made = parents.iter().map(|parent| parent.join(name)).find(|folder| {
                let made = fs::create_dir(folder);
                made.inspect_err(|why| refusals.push(format!("{}: {why}", folder.display())))
                    .is_ok()
            });
            groups.folders.push(made.ok_or_else(|| refusals.join("; "))?);
            groups.own.push(hierarchy.own);
        }
        Ok(groups)
    }

    /// Returns the folders of the groups.
    #[must_use]
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }
}

impl Drop for JobGroups {
    fn drop(&mut self) {
        for (folder, own) in self.folders.iter().zip(&self.own) {
            let left = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            for process in left.lines() {
                // It may have ended since then.
                let _gone = fs::write(own.join("cgroup.procs"), process);
            }
            let _removed = fs::remove_dir(folder);
        }
    }
}

/// Version of a hierarchy of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

impl Version {
    /// Returns the name of the file with a group's memory limit.
    pub(crate) fn memory_limit(self) -> &'static str {
        match self {
            Self::One => "memory.limit_in_bytes",
            Self::Two => "memory.max",
        }
    }
}

/// The hierarchy of a controller, and the process's group in it.
pub(crate) struct Hierarchy {
    pub(crate) root: PathBuf,
    pub(crate) own: PathBuf,
    pub(crate) version: Version,
}

impl Hierarchy {
    /// Finds the hierarchy of a controller from the texts of `/proc/self/cgroup` and
    /// `/proc/self/mounts`.
    pub(crate) fn find(own: &str, mounts: &str, controller: &str) -> Option<Self> {
        let mounted = |kind: &str, option: Option<&str>| {
            mounts.lines().find_map(|line| {
                let mut words = line.split(' ').skip(1);
                let (at, what, options) = (words.next()?, words.next()?, words.next()?);
                let fits =
                    option.is_none_or(|option| options.split(',').any(|word| word == option));
                (what == kind && fits).then(|| PathBuf::from(at))
            })
        };
        let path_of = |controller: &str| {
            own.lines().find_map(|line| {
                let (_, rest) = line.split_once(':')?;
                let (controllers, path) = rest.split_once(':')?;
                controllers.split(',').any(|word| word == controller).then_some(path)
            })
        };
        let first = mounted("cgroup", Some(controller)).zip(path_of(controller));
        let (version, (root, path)) = match first {
            Some(found) => (Version::One, found),
            None => (Version::Two, (mounted("cgroup2", None)?, path_of("")?)),
        };
        let own = root.join(path.trim_start_matches('/'));
        Some(Self { root, own, version })
    }
}

/// Returns the folders in which a group may be created, the likeliest first, and the name of the
/// file of a limit of memory.
fn candidates(own: &str, mounts: &str, controller: &str) -> Option<(Vec<PathBuf>, &'static str)> {
    let Hierarchy { root, own, version } = Hierarchy::find(own, mounts, controller)?;
    let parents = match version {
        Version::One => vec![own, root],
        // A group that has processes cannot have children with memory limits, so a sibling comes
        // first.
        Version::Two => {
            own.parent().map(Path::to_path_buf).into_iter().chain([own.clone(), root]).collect()
        }
    };
    Some((parents, version.memory_limit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_is_found_by_its_controller() {
        let own = "5:cpu,cpuacct:/a\n4:memory:/api/x\n0::/\n";
        let mounts = "cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let (parents, file) = candidates(own, mounts, "memory").unwrap();
        assert_eq!(parents[0], Path::new("/sys/fs/cgroup/memory/api/x"));
        assert_eq!(file, "memory.limit_in_bytes");
    }

    #[test]
    fn version_2_is_found_without_version_1() {
        let own = "0::/user.slice/session.scope\n";
        let (parents, file) =
            candidates(own, "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "memory").unwrap();
        assert_eq!(parents[0], Path::new("/sys/fs/cgroup/user.slice"));
        assert_eq!(parents[1], Path::new("/sys/fs/cgroup/user.slice/session.scope"));
        assert_eq!(file, "memory.max");
    }

    #[test]
    fn none_is_said() {
        assert!(candidates("0::/\n", "proc /proc proc rw 0 0\n", "memory").is_none());
    }
}
