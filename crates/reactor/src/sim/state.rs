//! A world's state: machines, pending events, randomness and the trace.
//!
//! This module runs and wakes no tasks: it returns the tasks to run, wake or drop.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::rc::Rc;
use std::task::Waker;

use super::WorldConfig;
use super::sockets::{NetEvent, Network, Partitions};
use super::turn::Turn;
use crate::class::Class;
use crate::compute_thread::{ErasedJob, JobQueue};
use crate::core::Core;
use crate::ready::Ready;

/// An odd number with well mixed bits: 2^64 divided by the golden ratio.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Identifies one core of one machine between a start and a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) machine: usize,
    pub(crate) core: usize,
    pub(crate) life: u64,
}

/// Something that happens at a given time.
pub(crate) enum Event {
    Net(NetEvent),
    /// The compute thread takes its next job.
    ComputeTurn(Life),
    /// The cost of a step has passed, unless the core's loop took the CPU meanwhile.
    ComputeStepped(Stepping),
}

/// A step of the compute thread that takes its time.
pub(super) struct Stepping {
    pub(super) at: Life,
    pub(super) class: Class,
    pub(super) job: Box<dyn ErasedJob>,
    pub(super) more: bool,
    /// Time that the core's loop had taken when the step's remaining time was last counted, ns.
    pub(super) loop_ns: u64,
    /// Latest end of the step, ns: a compute thread that starves gets normal priority.
    pub(super) latest_ns: u64,
}

/// A pending event. The greatest one is the next: by time, then by order of scheduling.
struct Scheduled {
    at_ns: u64,
    number: u64,
    event: Event,
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at_ns, other.number).cmp(&(self.at_ns, self.number))
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scheduled {}

/// Kind of a trace entry.
#[derive(Clone, Copy)]
pub(crate) enum Trace {
    Poll = 1,
    Net,
    Compute,
    Stop,
    Start,
    Crash,
    Disconnect,
    Send,
    Receive,
    Socket,
    Partition,
}

#[derive(Default)]
pub(crate) struct SimCore {
    pub(crate) core: Option<Rc<Core>>,
    done: Rc<Cell<bool>>,
    turn: Turn,
    pub(super) busy_until_ns: u64,
    /// Time that the loop has taken since the core started, ns.
    pub(super) loop_ns: u64,
    pub(super) compute: JobQueue,
    pub(crate) compute_running: bool,
    pub(crate) compute_ns: [u64; Class::COUNT],
}

/// State of a crashed machine, which the caller drops.
pub(crate) type Leftovers = (Vec<SimCore>, Vec<Waker>);

pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) ip: Ipv4Addr,
    pub(crate) core_count: usize,
    pub(crate) cores: Vec<SimCore>,
    pub(crate) life: u64,
    pub(crate) stop: bool,
    pub(crate) stop_wakers: Vec<Waker>,
    pub(crate) last_port: u16,
    /// Number of times that its streams have taken bytes to send.
    pub(crate) sends: u64,
    /// Work of the longest poll since it was asked for.
    pub(crate) longest_poll: u64,
}

impl Machine {
    pub(crate) fn new(name: &str, ip: Ipv4Addr, core_count: usize) -> Self {
        Self {
            name: name.to_owned(),
            ip,
            core_count,
            cores: Vec::new(),
            life: 0,
            stop: false,
            stop_wakers: Vec::new(),
            last_port: 49_151,
            sends: 0,
            longest_poll: 0,
        }
    }
}

pub(crate) struct State {
    pub(crate) config: WorldConfig,
    pub(crate) now_ns: u64,
    pub(crate) hash: u64,
    pub(crate) machines: Vec<Machine>,
    pub(crate) net: Network,
    pub(crate) partitions: Partitions,
    random: u64,
    events: BinaryHeap<Scheduled>,
    scheduled: u64,
    /// Cores that can run, of the present step.
    able: Vec<Life>,
}

impl State {
    pub(crate) fn new(seed: u64, config: WorldConfig) -> Self {
        Self {
            config,
            now_ns: 0,
            hash: mix(seed),
            machines: Vec::new(),
            net: Network::default(),
            partitions: Partitions::default(),
            random: seed,
            events: BinaryHeap::new(),
            scheduled: 0,
            able: Vec::new(),
        }
    }

    /// Returns the next number of the seed's sequence (SplitMix64: a counter, well mixed).
    pub(crate) fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(ODD);
        mix(self.random)
    }

    /// Returns a number below `limit`, or 0 if that is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.random() % limit).unwrap_or(0)
    }

    pub(crate) fn fold(&mut self, word: u64) {
        self.hash = mix(self.hash ^ word);
    }

    /// Folds bytes, which are most of what is traced.
    pub(crate) fn fold_bytes(&mut self, bytes: &[u8]) {
        digests(bytes).into_iter().for_each(|digest| self.fold(digest));
    }

    pub(crate) fn trace(&mut self, kind: Trace, one: usize, two: usize, three: u64) {
        self.fold(kind as u64);
        self.fold(self.now_ns);
        self.fold((one as u64) << 32 | two as u64);
        self.fold(three);
    }

    pub(crate) fn schedule(&mut self, after_ns: u64, event: Event) {
        self.schedule_at(self.now_ns.saturating_add(after_ns), event);
    }

    pub(crate) fn schedule_at(&mut self, at_ns: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Scheduled { at_ns, number: self.scheduled, event });
    }

    pub(crate) fn machine_at(&self, ip: IpAddr) -> Option<usize> {
        self.machines.iter().position(|machine| IpAddr::V4(machine.ip) == ip)
    }

    /// Starts a machine's next life, with no cores yet.
    pub(crate) fn begin_life(&mut self, machine: usize) -> u64 {
        self.trace(Trace::Start, machine, 0, 0);
        let machine = &mut self.machines[machine];
        machine.life += 1;
        machine.stop = false;
        machine.cores.clear();
        machine.life
    }

    pub(crate) fn install(&mut self, at: Life, core: Rc<Core>, done: Rc<Cell<bool>>) {
        let installed = SimCore { core: Some(core), done, ..SimCore::default() };
        self.machines[at.machine].cores.push(installed);
    }

    pub(crate) fn is_alive(&self, at: Life) -> bool {
        let machine = &self.machines[at.machine];
        machine.life == at.life && machine.cores.get(at.core).is_some_and(|c| c.core.is_some())
    }

    pub(super) fn core_mut(&mut self, at: Life) -> Option<&mut SimCore> {
        if self.is_alive(at) { self.machines[at.machine].cores.get_mut(at.core) } else { None }
    }

    /// Returns all running cores, in order.
    fn cores(&self) -> impl Iterator<Item = (&SimCore, &Rc<Core>)> {
        let all = self.machines.iter().flat_map(|machine| &machine.cores);
        all.filter_map(|sim| sim.core.as_ref().map(|running| (sim, running)))
    }

    /// Draws one of the cores that have work and are free now. If there are none, returns the time
    /// at which the next one will have something to do if nothing happens, now for a timer that is
    /// due, [`u64::MAX`] for never.
    pub(crate) fn choose_core(&mut self) -> Result<(Life, Rc<Core>), u64> {
        let mut able = std::mem::take(&mut self.able);
        able.clear();
        let mut next_ns = u64::MAX;
        for (machine, of) in self.machines.iter().enumerate() {
            for (core, sim) in of.cores.iter().enumerate() {
                let Some(running) = &sim.core else { continue };
                let has_work = running.ready.all() > 0 || running.shared.is_pending();
                if has_work && sim.busy_until_ns <= self.now_ns {
                    able.push(Life { machine, core, life: of.life });
                }
                let work_ns = if has_work { sim.busy_until_ns } else { u64::MAX };
                next_ns = next_ns.min(work_ns).min(running.next_timer_ns());
            }
        }
        let chosen = if able.is_empty() { None } else { Some(able[self.below(able.len())]) };
        self.able = able;
        let at = chosen.ok_or(next_ns.max(self.now_ns))?;
        let core = self.machines[at.machine].cores[at.core].core.as_ref();
        Ok((at, Rc::clone(core.expect("it has work"))))
    }

    /// Returns the position of the ready task that a core polls next: of the class whose turn it is
    /// by the rules of the loop, the oldest one, or one that is drawn.
    pub(crate) fn choose_task(&mut self, at: Life, ready: &Ready) -> usize {
        let now_ns = self.now_ns;
        let turn = &mut self.machines[at.machine].cores[at.core].turn;
        let Range { start, end } = turn.next(ready, now_ns);
        let position = start + if self.config.oldest_first { 0 } else { self.below(end - start) };
        let all = ready.all() as u64;
        self.trace(Trace::Poll, at.machine, at.core, all << 32 | position as u64);
        position
    }

    /// Charges a turn to the core's clock; removes and returns the core, with its jobs, if its main
    /// future is done.
    pub(crate) fn after_turn(&mut self, at: Life, spent_ns: u64) -> Option<(Rc<Core>, JobQueue)> {
        let until_ns = self.now_ns + spent_ns;
        let sim = self.core_mut(at)?;
        sim.busy_until_ns = until_ns;
        sim.loop_ns += spent_ns;
        if !sim.done.get() {
            return None;
        }
        let compute = std::mem::take(&mut sim.compute);
        sim.core.take().map(|core| (core, compute))
    }

    /// Returns the time of the next event, [`u64::MAX`] if there is none.
    pub(crate) fn event_ns(&self) -> u64 {
        self.events.peek().map_or(u64::MAX, |first| first.at_ns)
    }

    /// Takes out the next event.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.events.pop().map(|first| first.event)
    }

    pub(crate) fn cores_with_due_timers(&self) -> Vec<Rc<Core>> {
        let due = |core: &Core| core.next_timer_ns() <= self.now_ns;
        self.cores().filter(|(_, core)| due(core)).map(|(_, core)| Rc::clone(core)).collect()
    }
}

/// Mixes the bits of a word; a bijection (SplitMix64's finaliser).
fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Returns four digests of bytes, each of every fourth word, so that a processor computes them next
/// to each other. Each step is a bijection of the digest, so one other word is never missed.
fn digests(bytes: &[u8]) -> [u64; 4] {
    let mut digests = [0; 4];
    let mut add = |block: &[u8; 32]| {
        for (digest, word) in digests.iter_mut().zip(block.as_chunks::<8>().0) {
            *digest = (*digest ^ u64::from_le_bytes(*word)).rotate_left(29).wrapping_mul(ODD);
        }
    };
    let (blocks, rest) = bytes.as_chunks();
    blocks.iter().for_each(&mut add);
    if !rest.is_empty() {
        let mut block = [0; 32];
        block[..rest.len()].copy_from_slice(rest);
        add(&block);
    }
    digests
}
