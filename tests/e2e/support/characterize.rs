//! Short characterizations, and the points of their profiles. Does not check times.

use std::fs;
use std::path::Path;

use csd_measure::profile::{Overlap, Profile, Provenance, Where};

use crate::support::harness::{Array, Done};

#[track_caller]
pub(crate) fn profile(path: &Path) -> Profile {
    let text = fs::read_to_string(path).unwrap();
    Profile::parse(&text).unwrap_or_else(|faults| panic!("{faults}\n{text}"))
}

/// Runs `csd characterize` with small sizes, and returns its profile.
#[track_caller]
pub(crate) fn characterize(array: &Array, more: &str) -> (Profile, Done) {
    let small = "characterize --size 64K --cores 1 --repeat 3 -o p.toml --json";
    let arguments: Vec<&str> = small.split(' ').chain(more.split_whitespace()).collect();
    let done = array.csd(&arguments).expect(0, &[]);
    (profile(&array.path("p.toml")), done)
}

#[track_caller]
pub(crate) fn check_points(profile: &Profile, kernel: &str, side: Where, stores: bool) {
    check_timed(profile, kernel, side, (stores, Some(3)));
}

/// Checks the timings of a kernel. Drives of an array that do not differ are one device with the
/// runs of all, so `n` may be unknown.
#[track_caller]
pub(crate) fn check_timed(
    profile: &Profile,
    kernel: &str,
    side: Where,
    (stores, n): (bool, Option<u64>),
) {
    let found = |point: &&csd_measure::profile::Point| {
        point.kernel == kernel && point.r#where == side && point.overload.is_none()
    };
    let point = profile.point.iter().find(found);
    let point = point.unwrap_or_else(|| panic!("{kernel} on {side:?} is missing"));
    assert_eq!((point.prov, point.overlap), (Provenance::Measured, Overlap::Serial));
    assert_eq!((point.units, point.bytes), (1, 64 << 10));
    assert!(point.work.is_some_and(|work| work > 0), "{kernel} on {side:?} counts its work");
    assert_eq!(point.store_s.is_some(), stores, "{kernel} on {side:?}");
    let times = [Some(&point.load_s), Some(&point.comp_s), point.store_s.as_ref()];
    for timing in times.into_iter().chain([point.pipelined_s.as_ref()]).flatten() {
        // Profile::parse has checked p25 <= median <= p75, and that all are positive.
        assert_eq!(timing.n, n.or(timing.n));
    }
}
