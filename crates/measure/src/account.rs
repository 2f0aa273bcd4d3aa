//! Model time: the time that a run would take on the machines of a profile.
//!
//! The time is bytes by bandwidth plus work by cost, both from points of the profile. Reads no
//! clock: two runs over the same object give the same model time. Invariant: bytes and times of one
//! answer belong to one profile and one device.

use crate::profile::{Overlap, Point, Profile, Where};

/// Cost of a kernel on one system of a profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Time to load a byte, s.
    pub load_s_per_byte: f64,
    /// Time to compute on a byte, s.
    pub comp_s_per_byte: f64,
    /// Energy for a byte, J.
    pub joules_per_byte: Option<f64>,
    /// Cores, or compute units, at work.
    pub units: u64,
    /// Overlap of loading and computing.
    pub overlap: Overlap,
}

/// Predicted time of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelTime {
    /// Load time of the slowest drive, or over the wire, s.
    pub load_s: f64,
    /// Compute time of the slowest drive, or of the host, s.
    pub comp_s: f64,
    /// Total time, s: the sum if serial, the longer one if pipelined.
    pub total_s: f64,
    /// Overlap of loading and computing.
    pub overlap: Overlap,
    /// Energy of the side that computes, J.
    pub joules: Option<f64>,
}

/// Returns a device's best rates for a kernel inside it: those of the point with the largest
/// working set and, of these, the shortest load and compute time, as planners choose it.
#[must_use]
pub fn drive(profile: &Profile, device: &str, kernel: &str) -> Option<Rates> {
    let points = || points(profile, device, kernel, Where::Drive);
    let bytes = points().map(|point| point.bytes).max()?;
    let sum = |point: &Point| point.load_s.median + point.comp_s.median;
    let best = points()
        .filter(|point| point.bytes == bytes)
        .min_by(|a, b| sum(a).total_cmp(&sum(b)).then(a.units.cmp(&b.units)))?;
    Some(rates(best))
}

/// Returns the rates of Host(n) for a kernel over the bytes of one drive: its own point, or that of
/// one core with the compute time divided by n (equation 2).
#[must_use]
pub fn host(profile: &Profile, device: &str, kernel: &str, cores: u64) -> Option<Rates> {
    let points = || points(profile, device, kernel, Where::Host);
    let with = |units: u64| points().filter(|p| p.units == units).max_by_key(|p| p.bytes);
    if let Some(point) = with(cores) {
        return Some(rates(point));
    }
    let one = rates(with(1)?);
    #[allow(clippy::cast_precision_loss)] // few cores
    let comp_s_per_byte = one.comp_s_per_byte / cores.max(1) as f64;
    Some(Rates { comp_s_per_byte, units: cores, ..one })
}

/// Returns the time of a run inside drives with these numbers of bytes; the slowest drive
/// determines it.
#[must_use]
pub fn drives_time(rates: &Rates, bytes: &[u64]) -> ModelTime {
    let most = bytes.iter().copied().max().unwrap_or(0);
    let joules = rates.joules_per_byte.map(|joules| joules * real(bytes.iter().sum()));
    time(rates.load_s_per_byte * real(most), rates.comp_s_per_byte * real(most), rates, joules)
}

/// Returns the time of a run on the host. Its drives send these numbers of bytes at once, over a
/// link that takes `ingest_bw` bytes per second from all of them together.
#[must_use]
pub fn host_time(rates: &Rates, bytes: &[u64], ingest_bw: Option<u64>) -> ModelTime {
    let (most, all) = (bytes.iter().copied().max().unwrap_or(0), bytes.iter().sum());
    let link_s = ingest_bw.map_or(0.0, |bandwidth| real(all) / real(bandwidth));
    let load_s = (rates.load_s_per_byte * real(most)).max(link_s);
    let joules = rates.joules_per_byte.map(|joules| joules * real(all));
    time(load_s, rates.comp_s_per_byte * real(all), rates, joules)
}

fn time(load_s: f64, comp_s: f64, rates: &Rates, joules: Option<f64>) -> ModelTime {
    let total_s = match rates.overlap {
        Overlap::Serial => load_s + comp_s,
        Overlap::Pipelined => load_s.max(comp_s),
    };
    ModelTime { load_s, comp_s, total_s, overlap: rates.overlap, joules }
}

fn points<'a>(
    profile: &'a Profile,
    device: &'a str,
    kernel: &'a str,
    side: Where,
) -> impl Iterator<Item = &'a Point> {
    profile.point.iter().filter(move |point| {
        point.r#where == side
            && point.device == device
            && point.kernel == kernel
            && point.overload.is_none()
    })
}

fn rates(point: &Point) -> Rates {
    let bytes = real(point.bytes);
    Rates {
        load_s_per_byte: point.load_s.median / bytes,
        comp_s_per_byte: point.comp_s.median / bytes,
        joules_per_byte: point.energy_J.as_ref().map(|energy| energy.median / bytes),
        units: point.units,
        overlap: point.overlap,
    }
}

#[allow(clippy::cast_precision_loss)] // 2^53 bytes are 9 petabytes
fn real(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = r#"
        schema = 1
        meta = { machine = "m" }
        host = { cores = 8 }
        device = { d = {}, other = {} }
        [[point]]
        kernel = "count"
        where = "host"
        device = "d"
        units = 1
        bytes = 1000
        overlap = "serial"
        load_s = { median = 2.0 }
        comp_s = { median = 4.0 }
        energy_J = { median = 50.0, source = "cpu-seconds" }
        prov = "given"
        [[point]]
        kernel = "count"
        where = "drive"
        device = "d"
        units = 1
        bytes = 1000
        overlap = "pipelined"
        load_s = { median = 3.0 }
        comp_s = { median = 8.0 }
        prov = "given"
        [[point]]
        kernel = "count"
        where = "drive"
        device = "d"
        units = 2
        bytes = 1000
        overlap = "pipelined"
        load_s = { median = 3.0 }
        comp_s = { median = 5.0 }
        prov = "given"
    "#;

    fn profile() -> Profile {
        Profile::parse(PROFILE).unwrap_or_else(|faults| panic!("{faults}"))
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn drives_are_used_at_their_best_and_the_slowest_says() {
        let rates = drive(&profile(), "d", "count").unwrap();
        assert_eq!((rates.units, rates.overlap), (2, Overlap::Pipelined));
        let time = drives_time(&rates, &[1000, 3000, 2000]);
        assert!(close(time.load_s, 9.0) && close(time.comp_s, 15.0) && close(time.total_s, 15.0));
        assert_eq!(time.joules, None);
        assert!(drive(&profile(), "other", "count").is_none());
        assert!(drive(&profile(), "d", "verify").is_none());
    }

    #[test]
    fn a_host_divides_its_work_and_drives_send_at_once() {
        let four = host(&profile(), "d", "count", 4).unwrap();
        let time = host_time(&four, &[1000, 1000], None);
        assert!(close(time.load_s, 2.0) && close(time.comp_s, 2.0) && close(time.total_s, 4.0));
        assert!(close(time.joules.unwrap(), 100.0));
        let shared = host_time(&four, &[1000, 1000], Some(500));
        assert!(close(shared.load_s, 4.0) && close(shared.total_s, 6.0));
    }

    #[test]
    fn nothing_takes_no_time() {
        let rates = drive(&profile(), "d", "count").unwrap();
        assert!(drives_time(&rates, &[]).total_s.abs() < 1e-12);
    }
}
