//! The time of day, for output.
//!
//! Measurements use the reactor's clock instead.

#[cfg(feature = "query")]
use std::time::Instant;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns what `work` returns, and the time that it took, seconds.
#[cfg(feature = "query")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    (work(), began.elapsed().as_secs_f64())
}

/// Returns the time in UTC as `2026-11-21T07:00:00.000Z`.
pub(crate) fn utc() -> String {
    // A clock before 1970 is shown as 1970.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    written(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Returns the time as seconds since 1970.
pub(crate) fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns a time, in milliseconds since 1970, as [`utc`] does.
pub(crate) fn written(unix_ms: u64) -> String {
    let (seconds, ms) = (unix_ms / 1000, unix_ms % 1000);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Returns year, month and day in the Gregorian calendar for a number of days since 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March, so that a leap day is the last of its year; the first begins at
    // 0000-03-01.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // Five months from March on have 153 days.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, year) = (if month < 10 { month + 3 } else { month - 9 }, year + 400 * era);
    (if month <= 2 { year + 1 } else { year }, month, day)
}

#[test]
fn dates_are_right_at_their_edges() {
    assert_eq!(written(7), "1970-01-01T00:00:00.007Z");
    assert_eq!(written(951_782_399_000), "2000-02-28T23:59:59.000Z");
    assert_eq!(written(951_782_400_000), "2000-02-29T00:00:00.000Z");
    assert_eq!(written(951_868_800_000), "2000-03-01T00:00:00.000Z");
    assert_eq!(written(1_798_761_599_999), "2026-12-31T23:59:59.999Z");
    assert_eq!(written(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
}
