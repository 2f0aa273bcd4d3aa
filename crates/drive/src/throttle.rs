//! [`Throttle`]: a model of a slower device, which delays each answer until that device would have
//! sent it.
//!
//! Each direction of transfers is a queue with one server, which takes one command after another at
//! the device's bandwidth: a leaky bucket (Turner, "New directions in communications", 1986)
//! without bursts, not a token bucket. Executions are a third queue. A device that is faster than
//! the drive cannot be modelled. Each side has its own link: what the drive's operating system
//! moves does not delay hosts. Time is the reactor's, so that a simulation delays alike. Invariant:
//! reservations of a server do not overlap.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use csd_nvme::capsule::Sqe;
use csd_reactor::{Instant, now, sleep_until, transfer_time};

use crate::side::Side;

/// Model of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// Bandwidths of the link to the host.
    pub outside: Bandwidths,
    /// Bandwidths between the media and the drive's own operating system.
    pub inside: Bandwidths,
    /// Costs of programs, by identifier.
    pub programs: Vec<(u64, Cost)>,
}

/// Bandwidths of a link, bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bandwidths {
    /// From the media.
    pub read_bytes_per_s: Option<u64>,
    /// To the media.
    pub write_bytes_per_s: Option<u64>,
}

/// Cost of a program on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Time to load a byte, ns.
    pub load_ns_per_byte: f64,
    /// Time to compute on a byte, ns.
    pub compute_ns_per_byte: f64,
    /// True if it computes while it loads.
    pub pipelined: bool,
}

impl Cost {
    /// Returns the time of an execution over `bytes` bytes, in whole ns.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn of(&self, bytes: u64) -> Duration {
        let bytes = bytes as f64;
        let (load, compute) = (bytes * self.load_ns_per_byte, bytes * self.compute_ns_per_byte);
        let total = if self.pipelined { load.max(compute) } else { load + compute };
        Duration::from_nanos(total.round() as u64)
    }
}

/// Throttle of a drive. Without a model it delays nothing.
#[derive(Debug, Default)]
pub struct Throttle {
    model: OnceLock<Model>,
    // By side.
    links: [Servers; 2],
    executions: Server,
}

/// Servers of one side's link.
#[derive(Debug, Default)]
struct Servers {
    reads: Server,
    writes: Server,
}

/// A server that takes one command after another, with the time until which it is busy, ns. It is
/// not a [`csd_reactor::Pacer`]: all cores reserve from it, and executions cost time, not bytes.
#[derive(Debug, Default)]
struct Server(AtomicU64);

impl Server {
    /// Reserves `cost` from `begin` on, after earlier reservations. Returns the end.
    fn reserve(&self, begin: Instant, cost: Duration) -> Instant {
        let end = |busy_until| Instant::from_ns(busy_until).max(begin) + cost;
        let before = self.0.fetch_update(Relaxed, Relaxed, |busy_until| Some(end(busy_until).ns()));
        end(before.unwrap_or_else(|busy_until| busy_until))
    }
}

impl Throttle {
    /// Sets the model, once.
    pub fn set(&self, model: Model) {
        // A drive sets it once, before it serves.
        let _set = self.model.set(model);
    }

    /// Returns true if there is a model.
    pub fn is_set(&self) -> bool {
        self.model.get().is_some()
    }

    /// Waits for as long as the device takes for the data of an I/O command of this side that is no
    /// execution.
    pub async fn transfer(&self, sqe: &Sqe, side: Side) {
        self.cross(sqe, side, sqe.sgl().length()).await;
    }

    /// As [`Self::transfer`], for `bytes` bytes of the command's data.
    pub async fn cross(&self, sqe: &Sqe, side: Side, bytes: u32) {
        let Some(model) = self.model.get() else { return };
        let bandwidths = match side {
            Side::Outside => model.outside,
            Side::Inside => model.inside,
        };
        let servers = &self.links[side as usize];
        // Bits 1:0 of an opcode are the direction of its data.
        let (bandwidth, server) = match sqe.opcode() & 3 {
            1 => (bandwidths.write_bytes_per_s, &servers.writes),
            2 => (bandwidths.read_bytes_per_s, &servers.reads),
            _ => return,
        };
        let Some(bandwidth) = bandwidth else { return };
        sleep_until(server.reserve(now(), transfer_time(bytes.into(), bandwidth))).await;
    }

    /// Waits until the device would have ended an execution of a program over `read_bytes` bytes
    /// that began at `begun`.
    pub async fn execution(&self, program: u64, read_bytes: u64, begun: Instant) {
        let Some(model) = self.model.get() else { return };
        if let Some((_, cost)) = model.programs.iter().find(|(known, _)| *known == program) {
            sleep_until(self.executions.reserve(begun, cost.of(read_bytes))).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::net::Ipv4Addr;
    use std::rc::Rc;

    use csd_nvme::capsule::Sgl;
    use csd_nvme::opcode::Nvm;
    use csd_reactor::sim::{World, WorldConfig};
    use csd_reactor::{Class, spawn};

    use super::*;

    fn command(opcode: u8, bytes: u32) -> Sqe {
        let mut sqe = Sqe::new(opcode, 1);
        sqe.set_sgl(Sgl::transport(bytes));
        sqe
    }

    fn model() -> Model {
        let cost = Cost { load_ns_per_byte: 2.0, compute_ns_per_byte: 3.0, pipelined: false };
        Model {
            outside: Bandwidths { read_bytes_per_s: Some(1_000_000), write_bytes_per_s: None },
            inside: Bandwidths {
                read_bytes_per_s: Some(10_000_000),
                write_bytes_per_s: Some(5_000_000),
            },
            programs: vec![(1, cost), (2, Cost { pipelined: true, ..cost })],
        }
    }

    /// Runs `main` on a simulated core, and returns its value.
    fn simulated<T: 'static, F: Future<Output = T> + 'static>(main: fn() -> F) -> T {
        let world = World::new(7, WorldConfig { cpu_ns_per_poll: 0, ..WorldConfig::default() });
        let machine = world.machine("drive", Ipv4Addr::LOCALHOST, 1);
        let done = Rc::new(RefCell::new(None));
        let result = Rc::clone(&done);
        world.start(machine, move |_| {
            let result = Rc::clone(&result);
            async move {
                let value = main().await;
                *result.borrow_mut() = Some(value);
            }
        });
        world.run_until(|_| done.borrow().is_some(), Duration::from_secs(60)).unwrap();
        done.take().unwrap()
    }

    #[test]
    fn reads_queue_at_the_bandwidth_and_other_commands_do_not_wait() {
        let (ends, others) = simulated(|| async {
            let throttle = Rc::new(Throttle::default());
            throttle.set(model());
            let reads: Vec<_> = (0..3)
                .map(|_| {
                    let throttle = Rc::clone(&throttle);
                    spawn(Class::Foreground, async move {
                        throttle.transfer(&command(Nvm::READ.0, 1000), Side::Outside).await;
                        now().us()
                    })
                })
                .collect();
            for opcode in [Nvm::WRITE.0, Nvm::FLUSH.0] {
                throttle.transfer(&command(opcode, 1000), Side::Outside).await;
            }
            let others = now().us();
            let mut ends = Vec::new();
            for read in reads {
                ends.push(read.await);
            }
            // The simulation chooses their order.
            ends.sort_unstable();
            (ends, others)
        });
        // 1000 bytes at a megabyte a second are a millisecond.
        assert_eq!((ends, others), (vec![1000, 2000, 3000], 0));
    }

    #[test]
    fn the_inside_has_bandwidths_of_its_own_and_waits_for_no_host() {
        let ends = simulated(|| async {
            let throttle = Rc::new(Throttle::default());
            throttle.set(model());
            let transfers = [
                (Nvm::READ.0, Side::Outside),
                (Nvm::READ.0, Side::Inside),
                (Nvm::WRITE.0, Side::Inside),
                (Nvm::WRITE.0, Side::Outside),
            ];
            let ends = transfers.map(|(opcode, side)| {
                let throttle = Rc::clone(&throttle);
                spawn(Class::Foreground, async move {
                    throttle.transfer(&command(opcode, 100_000), side).await;
                    now().us()
                })
            });
            let mut all = Vec::new();
            for end in ends {
                all.push(end.await);
            }
            all
        });
        // 100,000 bytes: at 1, 10 and 5 MB/s, and at no limit.
        assert_eq!(ends, [100_000, 10_000, 20_000, 0]);
    }

    #[test]
    fn executions_take_their_cost_serial_or_pipelined_one_after_another() {
        let ends = simulated(|| async {
            let throttle = Throttle::default();
            throttle.set(model());
            let mut ends = Vec::new();
            for program in [1, 2, 3] {
                let begun = now();
                throttle.execution(program, 1_000_000, begun).await;
                ends.push(now().us());
            }
            ends
        });
        assert_eq!(ends, [5000, 8000, 8000], "a program without a cost is not delayed");
    }

    #[test]
    fn a_drive_without_a_model_delays_nothing() {
        let end = simulated(|| async {
            let throttle = Throttle::default();
            throttle.transfer(&command(Nvm::READ.0, 1 << 30), Side::Outside).await;
            throttle.execution(1, 1 << 30, now()).await;
            now().us()
        });
        assert_eq!(end, 0);
    }
}
