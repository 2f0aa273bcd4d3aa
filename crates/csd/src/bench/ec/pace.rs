//! [`Pace`]: the time that a profile's drive takes to encode.

use csd_bench::ec::Shape;
use csd_measure::profile::{Profile, Where};

use crate::pace;
use crate::report::Failure;

/// A device of a profile.
#[derive(Debug)]
pub(super) struct Pace {
    profile: Profile,
    device: String,
    /// Name of the profile, as it was given.
    name: String,
}

impl Pace {
    /// Loads a profile, as `FILE`, `FILE:DEVICE` or the name of csdplan's; `None` for `none`.
    pub(super) fn load(text: &str) -> Result<Option<Self>, Failure> {
        if text == "none" {
            return Ok(None);
        }
        let (profile, device) = pace::load(text)?;
        Ok(Some(Self { profile, device, name: text.to_owned() }))
    }

    /// Returns the time for a byte of data, ns: between two working sets of the profile on the line
    /// through both, outside of them that of the nearest.
    pub(super) fn ns_per_byte(&self, shape: &Shape) -> Result<f64, Failure> {
        let kernel = shape.kernel();
        let points = self.profile.point.iter().filter(|point| {
            let own = point.r#where == Where::Drive && point.device == self.device;
            own && point.kernel == kernel && point.overload.is_none()
        });
        let mut points: Vec<(f64, f64)> =
            points.map(|point| (real(point.bytes), point.comp_s.median)).collect();
        // Of several points of a size, the fastest stands first.
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        points.dedup_by(|later, earlier| later.0.total_cmp(&earlier.0).is_eq());
        let bytes = real(shape.data_bytes());
        match time(&points, bytes) {
            Some(seconds) => Ok(seconds / bytes * 1e9),
            None => Err(Failure::usage(format!(
                "--pace {}: device {} has no point {kernel}; it has {}",
                self.name,
                self.device,
                self.kernels()
            ))),
        }
    }

    /// Returns the codes that the device has points of, in words.
    fn kernels(&self) -> String {
        let points = self.profile.point.iter().filter(|point| {
            point.r#where == Where::Drive
                && point.device == self.device
                && point.kernel.starts_with("rs-")
        });
        let mut names: Vec<&str> = points.map(|point| point.kernel.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { "none of an erasure code".to_owned() } else { names.join(", ") }
    }
}

/// Returns the time of a working set from points in the order of their sizes; `None` without any.
fn time(points: &[(f64, f64)], bytes: f64) -> Option<f64> {
    let above = points.iter().position(|(size, _)| *size >= bytes);
    match above {
        Some(above) if above > 0 => {
            let ((from, from_s), (to, to_s)) = (points[above - 1], points[above]);
            Some(from_s + (to_s - from_s) * (bytes - from) / (to - from))
        }
        _ => {
            let (size, time) = if above.is_some() { points.first() } else { points.last() }?;
            Some(time * bytes / size)
        }
    }
}

#[allow(clippy::cast_precision_loss)] // sizes are far below 2^53
fn real(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_drive_takes_the_printed_times() {
        let pace = Pace::load("newport-encode").unwrap().unwrap();
        for (blocks, block_mb, seconds) in [
            (24, 16, 4.0),
            (24, 128, 10.0),
            (12, 64, 3.8),
            (48, 64, 22.3),
            (24, 72, 7.0),
            (24, 256, 20.0),
            (24, 8, 2.0),
        ] {
            let shape = Shape::new(blocks, block_mb * 1_000_000).unwrap();
            let found = pace.ns_per_byte(&shape).unwrap() * real(shape.data_bytes()) / 1e9;
            assert!((found - seconds).abs() < 1e-9, "{shape}: {found} s");
        }
        let other = Shape::new(6, 1_000_000).unwrap();
        let message = pace.ns_per_byte(&other).unwrap_err().message;
        assert!(message.contains("has no point rs-4-2; it has rs-16-8, rs-32-16, rs-8-4"));
    }

    #[test]
    fn a_profile_without_codes_is_refused() {
        let pace = Pace::load("newport:newport").unwrap().unwrap();
        let shape = Shape::new(12, 64_000_000).unwrap();
        let message = pace.ns_per_byte(&shape).unwrap_err().message;
        assert!(message.ends_with("it has none of an erasure code"), "{message}");
        assert!(Pace::load("none").unwrap().is_none());
    }
}
