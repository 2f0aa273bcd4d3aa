//! [`RateLimiter`]: limit of the bytes of log events that peers cause.
//!
//! Every event name has a token bucket of its own, which fills with time and which its lines empty:
//! a flood of one event does not suppress another. Names beyond [`NAMED`] share a bucket.
//! Invariant: in any hour all buckets together let at most [`BYTES_MAX`] through.

use super::Level;

/// Most bytes of the lines of rated events in an hour.
pub const BYTES_MAX: u64 = 1_000_000;

/// Number of names that have buckets of their own.
const NAMED: usize = 12;
/// Bytes of a full bucket.
const BURST_BYTES: u64 = 24 << 10;
/// Time in which a bucket fills by a byte.
const NS_PER_BYTE: u64 = 1_000_000_000 / 12;
const HOUR_NS: u64 = 3_600_000_000_000;

const _: () = assert!((NAMED as u64 + 1) * (BURST_BYTES + HOUR_NS / NS_PER_BYTE) <= BYTES_MAX);

struct Bucket {
    event: &'static str,
    level: Level,
    /// Fill level, as the time in which that many bytes flow in.
    level_ns: u64,
    looked_ns: u64,
    held_back: u64,
}

impl Bucket {
    /// Takes `bytes` bytes, if the bucket holds them.
    fn take(&mut self, bytes: u64, now_ns: u64) -> bool {
        let flowed_ns = now_ns.saturating_sub(self.looked_ns);
        let full_ns = BURST_BYTES * NS_PER_BYTE;
        self.level_ns = self.level_ns.saturating_add(flowed_ns).min(full_ns);
        self.looked_ns = now_ns;
        match self.level_ns.checked_sub(bytes.saturating_mul(NS_PER_BYTE)) {
            Some(left_ns) => self.level_ns = left_ns,
            None => return false,
        }
        true
    }
}

/// The buckets of a log.
#[derive(Default)]
pub(super) struct RateLimiter {
    /// In the order in which events first happened.
    buckets: Vec<Bucket>,
}

impl RateLimiter {
    /// Lets a line of `bytes` bytes through if the limit allows it. Returns the number of earlier
    /// events of its name that were held back.
    pub(super) fn try_acquire(
        &mut self,
        level: Level,
        event: &'static str,
        bytes: u64,
        now_ns: u64,
    ) -> Option<u64> {
        let bucket = self.bucket(level, event, now_ns);
        if bucket.take(bytes, now_ns) {
            return Some(std::mem::take(&mut bucket.held_back));
        }
        bucket.held_back += 1;
        None
    }

    /// Returns events that were held back and their numbers, as far as the limit allows lines for
    /// them. `bytes` returns the length of the line of an event.
    pub(super) fn held_back(
        &mut self,
        bytes: impl Fn(&'static str) -> u64,
        now_ns: u64,
    ) -> Vec<(Level, &'static str, u64)> {
        let held_back = self.buckets.iter_mut().filter(|bucket| bucket.held_back > 0);
        let told = held_back.filter_map(|bucket| {
            let taken = bucket.take(bytes(bucket.event), now_ns);
            taken.then(|| (bucket.level, bucket.event, std::mem::take(&mut bucket.held_back)))
        });
        told.collect()
    }

    fn bucket(&mut self, level: Level, event: &'static str, now_ns: u64) -> &mut Bucket {
        let known = self.buckets.iter().position(|bucket| bucket.event == event);
        let at = known.unwrap_or_else(|| {
            if self.buckets.len() <= NAMED {
                let event = if self.buckets.len() < NAMED { event } else { "other events" };
                let full_ns = BURST_BYTES * NS_PER_BYTE;
                let bucket =
                    Bucket { event, level, level_ns: full_ns, looked_ns: now_ns, held_back: 0 };
                self.buckets.push(bucket);
            }
            self.buckets.len() - 1
        });
        &mut self.buckets[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 15] =
        ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o"];

    #[test]
    fn an_hour_of_floods_of_all_names_is_bounded_and_counted() {
        let mut limiter = RateLimiter::default();
        let (mut through, mut told, mut count) = (0, 0, 0);
        for ms in (0..3_600_000).step_by(10) {
            for event in NAMES {
                count += 1;
                if let Some(more) = limiter.try_acquire(Level::Warn, event, 150, ms * 1_000_000) {
                    through += 150;
                    told += 1 + more;
                }
            }
        }
        assert!((800_000..=BYTES_MAX).contains(&through), "{through}");
        let left: u64 = limiter.buckets.iter().map(|bucket| bucket.held_back).sum();
        assert_eq!(told + left, count, "every one is told of or held back");
    }

    #[test]
    fn a_flood_of_one_does_not_drown_another_and_what_was_held_back_is_told_later() {
        let mut limiter = RateLimiter::default();
        while limiter.try_acquire(Level::Warn, "flood", 100, 0).is_some() {}
        assert_eq!(limiter.try_acquire(Level::Error, "fire", 100, 0), Some(0));
        assert!(limiter.held_back(|_| 100, 0).is_empty(), "not even that is allowed");
        let later_ns = 100 * NS_PER_BYTE;
        assert_eq!(limiter.held_back(|_| 100, later_ns), [(Level::Warn, "flood", 1)]);
        assert_eq!(limiter.try_acquire(Level::Warn, "flood", 100, 2 * later_ns), Some(0));
    }
}
