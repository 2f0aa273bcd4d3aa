//! The processor's energy counters, as Linux exposes them (RAPL, `/sys/class/powercap`).
//!
//! Each package has a counter, which includes cores, graphics and mostly also memory controllers;
//! packages are added up. A counter has microjoules and wraps at its range
//! (<https://docs.kernel.org/power/powercap/powercap.html>). Since Linux 5.10 only root may read
//! it. Invariant: the sum is right if less than one range is drawn between two readings; a range
//! lasts for tens of minutes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Folder of the counters on Linux.
pub const POWERCAP: &str = "/sys/class/powercap";

/// Function that reads a counter's file.
type Read = fn(&Path) -> io::Result<String>;

/// The counters of all packages of this machine.
pub struct Rapl {
    packages: Mutex<Vec<Package>>,
    read: Read,
}

/// One package's counter.
struct Package {
    counter: PathBuf,
    /// Value at which the counter wraps, uJ.
    range_uj: u64,
    last_uj: u64,
    /// Energy since it was found, uJ.
    drawn_uj: u64,
}

impl Rapl {
    /// Finds the packages under `folder`.
    ///
    /// # Errors
    /// The reason why nothing can be read, in words.
    pub fn find(folder: &Path) -> Result<Self, String> {
        Self::find_with(folder, |path| fs::read_to_string(path))
    }

    fn find_with(folder: &Path, read: Read) -> Result<Self, String> {
        let mut packages = Vec::new();
        for zone in zones(folder) {
            let name = read(&zone.join("name")).unwrap_or_default();
            if !name.starts_with("package") {
                continue;
            }
            let counter = zone.join("energy_uj");
            let range = zone.join("max_energy_range_uj");
            let why = |path: &Path, error: io::Error| match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    format!("{}: only root may read it", path.display())
                }
                _ => format!("{}: {error}", path.display()),
            };
            let range_uj = number(&range, read).map_err(|error| why(&range, error))?;
            let last_uj = number(&counter, read).map_err(|error| why(&counter, error))?;
            packages.push(Package { counter, range_uj, last_uj, drawn_uj: 0 });
        }
        if packages.is_empty() {
            return Err(format!("no processor counts its energy in {}", folder.display()));
        }
        Ok(Self { packages: Mutex::new(packages), read })
    }

    /// Returns the number of packages.
    pub fn packages(&self) -> usize {
        self.packages.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the energy of all packages since they were found, J; `None` if one cannot be read.
    pub fn joules(&self) -> Option<f64> {
        let mut packages = self.packages.lock().unwrap_or_else(PoisonError::into_inner);
        let mut drawn_uj = 0;
        for package in packages.iter_mut() {
            let now_uj = number(&package.counter, self.read).ok()?;
            package.drawn_uj += drawn(package.last_uj, now_uj, package.range_uj);
            package.last_uj = now_uj;
            drawn_uj += package.drawn_uj;
        }
        #[allow(clippy::cast_precision_loss)] // 2^53 uJ are nine gigajoules
        Some(drawn_uj as f64 / 1e6)
    }
}

/// Returns the zones of whole processors: neither their parts (`intel-rapl:0:1`) nor duplicates
/// from another interface (`intel-rapl-mmio:0`). AMD's zones have the same names.
fn zones(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let own = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.strip_prefix("intel-rapl:")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut zones: Vec<_> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(own).collect();
    zones.sort();
    zones
}

fn number(path: &Path, read: Read) -> io::Result<u64> {
    read(path)?.trim().parse().map_err(|_| io::Error::other("it is no number"))
}

/// Returns the energy between two readings, uJ; the counter may have wrapped once.
fn drawn(last_uj: u64, now_uj: u64, range_uj: u64) -> u64 {
    match now_uj.checked_sub(last_uj) {
        Some(drawn) => drawn,
        None => range_uj.saturating_sub(last_uj) + now_uj,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a zone of a made-up tree.
    fn zone(folder: &Path, zone: &str, name: &str, energy_uj: u64, range_uj: u64) {
        let folder = folder.join(zone);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("name"), format!("{name}\n")).unwrap();
        fs::write(folder.join("energy_uj"), format!("{energy_uj}\n")).unwrap();
        fs::write(folder.join("max_energy_range_uj"), format!("{range_uj}\n")).unwrap();
    }

    fn set(folder: &Path, zone: &str, energy_uj: u64) {
        fs::write(folder.join(zone).join("energy_uj"), energy_uj.to_string()).unwrap();
    }

    #[test]
    fn packages_are_added_and_their_parts_and_other_zones_are_not() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path();
        zone(root, "intel-rapl:0", "package-0", 5_000_000, 1 << 38);
        zone(root, "intel-rapl:0:0", "core", 4_000_000, 1 << 38);
        zone(root, "intel-rapl:0:1", "dram", 3_000_000, 1 << 38);
        zone(root, "intel-rapl:1", "package-1", 7_000_000, 1 << 38);
        zone(root, "intel-rapl:2", "psys", 9_000_000, 1 << 38);
        zone(root, "intel-rapl-mmio:0", "package-0", 5_000_000, 1 << 38);
        fs::create_dir(root.join("intel-rapl")).unwrap();
        let rapl = Rapl::find(root).unwrap();
        assert_eq!((rapl.packages(), rapl.joules()), (2, Some(0.0)));
        for (zone, energy_uj) in [
            ("intel-rapl:0", 6_500_000),
            ("intel-rapl:0:0", 99_000_000),
            ("intel-rapl:1", 7_250_000),
            ("intel-rapl:2", 99_000_000),
            ("intel-rapl-mmio:0", 6_500_000),
        ] {
            set(root, zone, energy_uj);
        }
        assert_eq!(rapl.joules(), Some(1.75));
        assert_eq!(rapl.joules(), Some(1.75), "nothing was drawn between two readings");
    }

    #[test]
    fn a_counter_that_wraps_goes_on_counting() {
        let tree = tempfile::tempdir().unwrap();
        zone(tree.path(), "intel-rapl:0", "package-0", 9_000_000, 10_000_000);
        let rapl = Rapl::find(tree.path()).unwrap();
        set(tree.path(), "intel-rapl:0", 500_000);
        assert_eq!(rapl.joules(), Some(1.5));
        set(tree.path(), "intel-rapl:0", 9_500_000);
        assert_eq!(rapl.joules(), Some(10.5));
        set(tree.path(), "intel-rapl:0", 0);
        assert_eq!(rapl.joules(), Some(11.0));
    }

    #[test]
    fn counters_that_cannot_be_read_say_why() {
        let tree = tempfile::tempdir().unwrap();
        let why = |found: Result<Rapl, String>| found.err().unwrap();
        let none = tree.path().join("powercap");
        assert!(why(Rapl::find(&none)).contains("no processor counts its energy in"));
        assert!(why(Rapl::find(tree.path())).contains("no processor"));
        zone(tree.path(), "intel-rapl:0", "package-0", 1, 1 << 38);
        // The tests may run as root, who can read everything.
        let refused = Rapl::find_with(tree.path(), |path| match path.ends_with("energy_uj") {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => fs::read_to_string(path),
        });
        let words = why(refused);
        assert!(words.ends_with("intel-rapl:0/energy_uj: only root may read it"), "{words}");
        fs::write(tree.path().join("intel-rapl:0/energy_uj"), "many").unwrap();
        assert!(why(Rapl::find(tree.path())).contains("it is no number"));
        set(tree.path(), "intel-rapl:0", 5);
        let rapl = Rapl::find(tree.path()).unwrap();
        fs::remove_dir_all(tree.path().join("intel-rapl:0")).unwrap();
        assert_eq!(rapl.joules(), None, "a package that goes away");
    }
}
