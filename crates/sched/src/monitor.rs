//! [`Monitor`]: utilisation of every core, once a window of requests (Park et al., section IV.A,
//! "Monitoring Module").

/// Activity and utilisation of the cores during one window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// For each core, true if it began a foreground request in the window.
    pub is_active: Vec<bool>,
    /// For each core, the share of its time that foreground work took, from 0 to 1.
    pub utilisation: Vec<f64>,
}

impl Window {
    /// Returns the window of `cores` cores that have done nothing, as at the start of a drive.
    #[must_use]
    pub fn idle(cores: usize) -> Self {
        Self { is_active: vec![false; cores], utilisation: vec![0.0; cores] }
    }

    /// Returns the number of cores.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.utilisation.len()
    }
}

/// Counts requests, and turns the cores' busy times into a [`Window`] once every `W` of them.
#[derive(Debug)]
pub struct Monitor {
    requests_per_window: u64,
    requests: u64,
    began_ns: u64,
    /// Time that foreground work of each core had taken, and requests that it had begun, when the
    /// window began.
    busy_ns: Vec<u64>,
    begun: Vec<u64>,
    window: Window,
}

impl Monitor {
    /// Returns a monitor of cores that are idle at `now_ns`.
    ///
    /// # Panics
    /// If there are no cores, or no requests in a window.
    #[must_use]
    pub fn new(cores: usize, requests_per_window: u64, now_ns: u64) -> Self {
        assert!(cores > 0 && requests_per_window > 0, "a window has cores and requests");
        Self {
            requests_per_window,
            requests: 0,
            began_ns: now_ns,
            busy_ns: vec![0; cores],
            begun: vec![0; cores],
            window: Window::idle(cores),
        }
    }

    /// Counts one foreground request. Returns true if the window is over: the caller then reads
    /// the cores' counters and calls [`update`](Self::update).
    #[inline]
    pub fn count_request(&mut self) -> bool {
        self.requests += 1;
        self.requests >= self.requests_per_window
    }

    /// Ends the window at `now_ns`. `core(i)` gives the time in nanoseconds that foreground work of
    /// core `i` has taken since its start, and the number of foreground requests that it has begun.
    /// Counters that went back, and windows of no time, count as no load.
    pub fn update(&mut self, now_ns: u64, mut core: impl FnMut(usize) -> (u64, u64)) -> &Window {
        let length_ns = now_ns.saturating_sub(self.began_ns);
        for index in 0..self.window.cores() {
            let (busy_ns, begun) = core(index);
            let used_ns = busy_ns.saturating_sub(self.busy_ns[index]);
            self.window.is_active[index] = begun > self.begun[index];
            self.window.utilisation[index] = share(used_ns, length_ns);
            self.busy_ns[index] = busy_ns;
            self.begun[index] = begun;
        }
        self.requests = 0;
        self.began_ns = now_ns;
        &self.window
    }

    /// Returns the latest window.
    #[must_use]
    pub fn window(&self) -> &Window {
        &self.window
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
fn share(used_ns: u64, length_ns: u64) -> f64 {
    if length_ns == 0 { 0.0 } else { (used_ns as f64 / length_ns as f64).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_with_its_last_request() {
        let mut monitor = Monitor::new(2, 3, 0);
        for _ in 0..2 {
            assert!(!monitor.count_request());
            assert!(!monitor.count_request());
            assert!(monitor.count_request());
            monitor.update(10, |_| (0, 0));
        }
    }

    #[test]
    fn utilisation_is_that_of_the_window_alone() {
        let mut monitor = Monitor::new(3, 60, 1_000);
        let counters = [(500, 3), (0, 0), (900, 1)];
        let window = monitor.update(2_000, |core| counters[core]);
        assert_eq!(window.utilisation, [0.5, 0.0, 0.9]);
        assert_eq!(window.is_active, [true, false, true]);
        // Core 0 works on, core 1 begins a request that takes no time, core 2 rests.
        let counters = [(600, 4), (0, 1), (900, 1)];
        let window = monitor.update(2_400, |core| counters[core]);
        assert_eq!(window.utilisation, [0.25, 0.0, 0.0]);
        assert_eq!(window.is_active, [true, true, false]);
    }

    #[test]
    fn impossible_counters_count_as_no_load_or_full_load() {
        let mut monitor = Monitor::new(2, 1, 0);
        assert_eq!(monitor.update(0, |_| (5, 1)).utilisation, [0.0, 0.0]);
        assert_eq!(monitor.update(10, |core| (5 + 100 * core as u64, 1)).utilisation, [0.0, 1.0]);
        assert_eq!(monitor.update(20, |_| (0, 0)).utilisation, [0.0, 0.0]);
        assert_eq!(monitor.update(5, |_| (9, 9)).utilisation, [0.0, 0.0]);
    }
}
