//! [`Pace`]: makes a drive as slow as another device is.
//!
//! A paced drive does what it always does, and answers when the device would have: each direction
//! of transfers, and executions, are a server of their own that takes one after another, at the
//! device's bandwidths and costs. Never faster than the drive is: a device that is faster cannot
//! be paced. Never a clock of its own: the reactor's, so that a simulation paces alike. Invariant:
//! what is reserved on a server never overlaps.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use csd_nvme::capsule::Sqe;
use csd_reactor::{Instant, now, sleep_until};

use crate::namespace::compute::Report;

/// What a device takes for its work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// Media to the host, bytes per second.
    pub read_bytes_per_s: Option<u64>,
    /// Host to the media, bytes per second.
    pub write_bytes_per_s: Option<u64>,
    /// Its programs, by identifier.
    pub programs: Vec<(u64, Cost)>,
}

/// What a program takes on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// To load a byte, ns.
    pub load_ns_per_byte: f64,
    /// To compute on a byte, ns.
    pub compute_ns_per_byte: f64,
    /// Whether it computes while it loads.
    pub pipelined: bool,
}

impl Cost {
    /// What an execution over `bytes` bytes takes, ns.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn of(&self, bytes: u64) -> u64 {
        let bytes = bytes as f64;
        let (load, compute) = (bytes * self.load_ns_per_byte, bytes * self.compute_ns_per_byte);
        let total = if self.pipelined { load.max(compute) } else { load + compute };
        total.round() as u64
    }
}

/// The pace of a drive; one without a model delays nothing.
#[derive(Debug, Default)]
pub struct Pace {
    model: OnceLock<Model>,
    reads: Server,
    writes: Server,
    executions: Server,
}

/// What takes one thing after another: until when it is taken, ns.
#[derive(Debug, Default)]
struct Server(AtomicU64);

impl Server {
    /// Reserves `cost_ns` from `begin` on, behind what is reserved; gives the end.
    fn reserve(&self, begin: Instant, cost_ns: u64) -> Instant {
        let end = |busy_until: u64| busy_until.max(begin.ns()).saturating_add(cost_ns);
        let before = self.0.fetch_update(Relaxed, Relaxed, |busy_until| Some(end(busy_until)));
        Instant::from_ns(end(before.unwrap_or_else(|busy_until| busy_until)))
    }
}

impl Pace {
    /// Begins to delay, if it does not yet.
    pub fn set(&self, model: Model) {
        // A drive is paced once, before it serves.
        let _set = self.model.set(model);
    }

    /// Whether anything is delayed.
    pub fn is_set(&self) -> bool {
        self.model.get().is_some()
    }

    /// Waits for as long as the device takes for the data of an I/O command other than an
    /// execution.
    pub async fn transfer(&self, sqe: &Sqe) {
        let Some(model) = self.model.get() else { return };
        // Bits 1:0 of an opcode say which way data goes.
        let (bandwidth, server) = match sqe.opcode() & 3 {
            1 => (model.write_bytes_per_s, &self.writes),
            2 => (model.read_bytes_per_s, &self.reads),
            _ => return,
        };
        let Some(bandwidth) = bandwidth else { return };
        let cost = u128::from(sqe.sgl().length()) * 1_000_000_000 / u128::from(bandwidth.max(1));
        sleep_until(server.reserve(now(), u64::try_from(cost).unwrap_or(u64::MAX))).await;
    }

    /// Waits until the device would have ended an execution that began at `begun`.
    pub async fn execution(&self, report: &Report, begun: Instant) {
        let Some(model) = self.model.get() else { return };
        let program = model.programs.iter().find(|(program, _)| *program == report.program);
        if let Some((_, cost)) = program {
            sleep_until(self.executions.reserve(begun, cost.of(report.meter.read_bytes))).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::net::Ipv4Addr;
    use std::rc::Rc;
    use std::time::Duration;

    use csd_nvme::capsule::Sgl;
    use csd_nvme::opcode::Nvm;
    use csd_reactor::sim::{World, WorldConfig};
    use csd_reactor::{Class, spawn};

    use super::*;
    use crate::namespace::compute::Meter;

    fn command(opcode: u8, bytes: u32) -> Sqe {
        let mut sqe = Sqe::new(opcode, 1);
        sqe.set_sgl(Sgl::transport(bytes));
        sqe
    }

    fn model() -> Model {
        let cost = Cost { load_ns_per_byte: 2.0, compute_ns_per_byte: 3.0, pipelined: false };
        Model {
            read_bytes_per_s: Some(1_000_000),
            write_bytes_per_s: None,
            programs: vec![(1, cost), (2, Cost { pipelined: true, ..cost })],
        }
    }

    fn report(program: u64, read_bytes: u64) -> Report {
        let meter = Meter { read_bytes, ..Meter::default() };
        Report { result: Ok(0), meter, program, cores: 1 }
    }

    /// Runs `main` on a simulated core, and gives what it says.
    fn simulated<T: 'static, F: Future<Output = T> + 'static>(main: fn() -> F) -> T {
        let world = World::new(7, WorldConfig { cpu_ns_per_poll: 0, ..WorldConfig::default() });
        let machine = world.machine("drive", Ipv4Addr::LOCALHOST, 1);
        let done = Rc::new(RefCell::new(None));
        let told = Rc::clone(&done);
        world.start(machine, move |_| {
            let told = Rc::clone(&told);
            async move {
                let value = main().await;
                *told.borrow_mut() = Some(value);
            }
        });
        world.run_until(|_| done.borrow().is_some(), Duration::from_secs(60)).unwrap();
        done.take().unwrap()
    }

    #[test]
    fn reads_queue_at_the_bandwidth_and_other_commands_do_not_wait() {
        let (ends, others) = simulated(|| async {
            let pace = Rc::new(Pace::default());
            pace.set(model());
            let reads: Vec<_> = (0..3)
                .map(|_| {
                    let pace = Rc::clone(&pace);
                    spawn(Class::Foreground, async move {
                        pace.transfer(&command(Nvm::READ.0, 1000)).await;
                        now().us()
                    })
                })
                .collect();
            for opcode in [Nvm::WRITE.0, Nvm::FLUSH.0] {
                pace.transfer(&command(opcode, 1000)).await;
            }
            let others = now().us();
            let mut ends = Vec::new();
            for read in reads {
                ends.push(read.await);
            }
            // Who came first is the simulation's choice.
            ends.sort_unstable();
            (ends, others)
        });
        // 1000 bytes at a megabyte a second are a millisecond.
        assert_eq!((ends, others), (vec![1000, 2000, 3000], 0));
    }

    #[test]
    fn executions_take_their_cost_serial_or_pipelined_one_after_another() {
        let ends = simulated(|| async {
            let pace = Pace::default();
            pace.set(model());
            let mut ends = Vec::new();
            for program in [1, 2, 3] {
                let begun = now();
                pace.execution(&report(program, 1_000_000), begun).await;
                ends.push(now().us());
            }
            ends
        });
        assert_eq!(ends, [5000, 8000, 8000], "a program without a cost is not delayed");
    }

    #[test]
    fn a_drive_without_a_model_delays_nothing() {
        let end = simulated(|| async {
            let pace = Pace::default();
            pace.transfer(&command(Nvm::READ.0, 1 << 30)).await;
            pace.execution(&report(1, 1 << 30), now()).await;
            now().us()
        });
        assert_eq!(end, 0);
    }
}
