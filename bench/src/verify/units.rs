//! [`Units`]: threads that verify parts of a file, as a drive's cores do.
//!
//! The threads live as long as the measurement, like a drive's compute threads, so a run contains
//! waking them and not starting them. A file of one part is verified by the calling thread.

use std::collections::VecDeque;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use csd_kernels::verify::{Adaptive, PARTS_AHEAD, Plan, checksums};

use crate::Error;

/// Bytes of a part of which the controller chooses the setting, as in drives.
const PART_BYTES: usize = 2 << 20;

/// A part of a file, and the plan to verify it by.
struct Part {
    file: Arc<Vec<u8>>,
    bytes: Range<usize>,
    plan: Plan,
    /// Number of the unit, for the answer.
    unit: usize,
}

impl Part {
    fn verify(&self) {
        black_box(checksums(self.plan, black_box(&self.file[self.bytes.clone()])));
    }
}

/// Units of one measurement.
pub(super) struct Units {
    threads: Vec<(Sender<Part>, JoinHandle<()>)>,
    done: Receiver<(usize, usize)>,
}

impl Units {
    /// Starts `units` threads.
    pub(super) fn start(units: usize) -> Result<Self, Error> {
        let (told, done) = channel();
        let thread = |index: usize| {
            let (parts, taken) = channel::<Part>();
            let told = told.clone();
            let work = move || {
                for part in taken {
                    part.verify();
                    if told.send((part.unit, part.bytes.len())).is_err() {
                        return;
                    }
                }
            };
            let builder = std::thread::Builder::new().name(format!("unit-{index}"));
            Ok((parts, builder.spawn(work).map_err(Error::system("a thread of a unit"))?))
        };
        let threads = (0..units).map(thread).collect::<Result<_, Error>>()?;
        Ok(Self { threads, done })
    }

    fn hand(&self, part: Part) -> Result<(), Error> {
        let sent = self.threads[part.unit].0.send(part);
        sent.map_err(|_| Error::Server("a unit ended".to_owned()))
    }

    fn wait(&self) -> Result<(usize, usize), Error> {
        self.done.recv().map_err(|_| Error::Server("the units ended".to_owned()))
    }

    /// Verifies a file by a plan: units take batches in turn.
    pub(super) fn fixed(&self, file: &Arc<Vec<u8>>, plan: Plan) -> Result<(), Error> {
        let at = |byte: u64| usize::try_from(byte).expect("in memory");
        let mut batches = plan.batches(file.len() as u64);
        let batch = u64::from(plan.page_bytes()) * u64::from(plan.pages_per_unit());
        if plan.units() == 1 || file.len() as u64 <= batch {
            batches.for_each(|batch| {
                let bytes = at(batch.bytes.start)..at(batch.bytes.end);
                Part { file: Arc::clone(file), bytes, plan, unit: 0 }.verify();
            });
            return Ok(());
        }
        let mut under_way = 0;
        loop {
            let room = usize::from(plan.units()) * usize::from(PARTS_AHEAD);
            let next = if under_way < room { batches.next() } else { None };
            match next {
                Some(batch) => {
                    let bytes = at(batch.bytes.start)..at(batch.bytes.end);
                    let unit = usize::from(batch.unit);
                    self.hand(Part { file: Arc::clone(file), bytes, plan, unit })?;
                    under_way += 1;
                }
                None if under_way == 0 => return Ok(()),
                None => {
                    self.wait()?;
                    under_way -= 1;
                }
            }
        }
    }

    /// Verifies a file as the controller says.
    pub(super) fn adaptive(
        &self,
        file: &Arc<Vec<u8>>,
        page_bytes: u32,
        controller: &mut Adaptive,
    ) -> Result<(), Error> {
        let part = |bytes: Range<usize>, unit: usize, unroll: u8| {
            let plan = Plan::adaptive(page_bytes).adapted(unroll);
            let plan = plan.expect("the plan leaves it open");
            Part { file: Arc::clone(file), bytes, plan, unit }
        };
        let one = || part(0..file.len(), 0, controller.setting().unroll);
        if !Adaptive::learns_from(file.len() as u64) {
            one().verify();
            return Ok(());
        }
        let mut since = Instant::now();
        let mut took = move || {
            let now = Instant::now();
            let ns = now.duration_since(std::mem::replace(&mut since, now)).as_nanos();
            u64::try_from(ns).unwrap_or(u64::MAX)
        };
        if file.len() <= PART_BYTES {
            one().verify();
            controller.record(file.len() as u64, took(), 0.0);
            return Ok(());
        }
        let mut parts: VecDeque<Range<usize>> = (0..file.len().div_ceil(PART_BYTES))
            .map(|part| part * PART_BYTES..file.len().min((part + 1) * PART_BYTES))
            .collect();
        let mut under_way = vec![0u16; self.threads.len()];
        while !parts.is_empty() || under_way.iter().any(|parts| *parts > 0) {
            let setting = controller.setting();
            let units = usize::from(setting.units).min(under_way.len());
            let least = (0..units).min_by_key(|unit| under_way[*unit]).unwrap_or(0);
            if under_way[least] < PARTS_AHEAD
                && let Some(bytes) = parts.pop_front()
            {
                under_way[least] += 1;
                self.hand(part(bytes, least, setting.unroll))?;
                continue;
            }
            let (unit, bytes) = self.wait()?;
            under_way[unit] -= 1;
            controller.record(bytes as u64, took(), 0.0);
        }
        Ok(())
    }
}

impl Drop for Units {
    fn drop(&mut self) {
        for (parts, thread) in self.threads.drain(..) {
            drop(parts);
            let _ended = thread.join();
        }
    }
}
