//! The measurements in order: kernels, working sets, repetitions, and drive and host in turns.
//!
//! Does not interpret the numbers. Invariant: within a repetition every cell of every drive is
//! measured once, drive after host, so that a slow phase of the machine affects all of them.

use csd_initiator::{Block, Controller};
use csd_kernels::kernel::Kernel;

use super::host::{self, HostJob, Timed};
use super::inside::{self, DriveJob};
use super::plan::{Cell, Found, Options, Overloaded, Step, Subject};
use super::quantiles::Samples;
use super::region::{PIECE_BYTES, Region};
use super::{Contention, Error, Overlap, StorageKind};
use crate::profile::{OverloadKind, Where};

/// Runs all measurements.
///
/// # Errors
/// An error of the drive or the network; [`Error::Differ`] when answers differ.
pub fn characterize(options: &Options, progress: &dyn Fn(&Step)) -> Result<Found, Error> {
    let mut found = Found::default();
    let mut bench = Bench { options, progress, done: 0, of: 0 };
    let a_size = bench.per_size();
    bench.of = options.kernels.len() * options.sizes.len() * a_size;
    bench.of += options.subjects.iter().filter(|s| s.area.write).count() * (options.repeat + 1);
    for subject in &options.subjects {
        found.written.push(match subject.area.write {
            true => bench.writes(subject)?,
            false => Default::default(),
        });
    }
    for &kernel in &options.kernels {
        for &bytes in &options.sizes {
            bench.one(kernel, bytes, &mut found)?;
        }
    }
    note_unsteady(&mut found);
    Ok(found)
}

struct Bench<'a> {
    options: &'a Options,
    progress: &'a dyn Fn(&Step),
    done: usize,
    of: usize,
}

impl Bench<'_> {
    /// Returns the number of measurements for each kernel and size.
    fn per_size(&self) -> usize {
        let Options { host_units, drive_units, overloads, repeat, subjects, .. } = self.options;
        let drive = |subject: &Subject| subject.compute_nsid.map_or(0, |_| drive_units.len());
        let cells: usize = subjects.iter().map(|s| host_units.len() + drive(s)).sum();
        (2 * cells + overloads.len()) * (repeat + 1)
    }

    /// Begins a step, unless the characterization is asked to end.
    fn step(&mut self, what: &str, times: usize) -> Result<(), Error> {
        self.options.check_interruption()?;
        (self.progress)(&Step { done: self.done, of: self.of, what: what.to_owned() });
        self.done += times;
        Ok(())
    }

    /// Measures one kernel over one working set: every cell once as a warm-up, then in turns.
    fn one(
        &mut self,
        kernel: &'static dyn Kernel,
        bytes: u64,
        found: &mut Found,
    ) -> Result<(), Error> {
        let options = self.options;
        let mut rows = Vec::new();
        for (index, subject) in options.subjects.iter().enumerate() {
            if subject.area.write {
                self.fill(kernel, subject, bytes)?;
            }
            let cells = |side, units: &[usize]| -> Vec<Cell> {
                let cell = |n: &usize| Cell::new(kernel, (index, side), *n, bytes);
                units.iter().map(cell).collect()
            };
            let drive_units = subject.compute_nsid.map_or(&[][..], |_| &options.drive_units);
            rows.push(Row {
                subject,
                host: cells(Where::Host, &options.host_units),
                drive: cells(Where::Drive, drive_units),
                answers: Answers::new(kernel.name(), kernel.sample().adds_up),
            });
        }
        for turn in 0..=options.repeat {
            for row in &mut rows {
                self.turn(kernel, row, turn > 0, found)?;
            }
        }
        for row in rows {
            found.cells.extend(row.host);
            found.cells.extend(row.drive);
        }
        for overloaded in &options.overloads {
            let cell = self.overloaded(kernel, bytes, overloaded)?;
            found.cells.push(cell);
        }
        Ok(())
    }

    /// Measures every cell of a drive once.
    fn turn(
        &mut self,
        kernel: &'static dyn Kernel,
        row: &mut Row<'_>,
        counts: bool,
        found: &mut Found,
    ) -> Result<(), Error> {
        for cell in &mut row.host {
            self.host(kernel, row.subject, cell, counts, &mut row.answers)?;
        }
        let mut absent = false;
        for cell in &mut row.drive {
            absent |= !self.drive(kernel, row.subject, cell, counts, &mut row.answers)?;
        }
        if absent {
            row.drive.clear();
            let name = kernel.name();
            let why = format!(
                "{name} was not measured in the drive: it has no such program, or must not store \
                 its result"
            );
            if !found.warnings.contains(&why) {
                found.warnings.push(why);
            }
        }
        Ok(())
    }

    fn host_job(
        &self,
        kernel: &'static dyn Kernel,
        subject: &Subject,
        units: usize,
        bytes: u64,
    ) -> HostJob {
        let options = self.options;
        let region = subject.area.region(kernel.name(), bytes);
        let output = (subject.area.write && kernel.sample().stores).then(|| {
            // After the working set, and of the same length.
            Region::new(region.nsid, region.cut(bytes..bytes * 2))
        });
        HostJob {
            address: subject.address.clone(),
            connection: options.connection.clone(),
            kernel,
            region: region.clone(),
            bytes,
            units,
            overlap: Overlap::Serial,
            output,
            contention: Contention::None,
            storage: StorageKind::Memory,
            meter: options.meter.clone(),
        }
    }

    fn host(
        &mut self,
        kernel: &'static dyn Kernel,
        subject: &Subject,
        cell: &mut Cell,
        counts: bool,
        answers: &mut Answers,
    ) -> Result<(), Error> {
        self.step(&format!("{} on Host({})", cell.kernel, cell.units), 2)?;
        let job = self.host_job(kernel, subject, cell.units, cell.bytes);
        let serial = host::measure(&self.options.runtime, &job)?;
        let job = HostJob { overlap: Overlap::Pipelined, output: None, ..job };
        let pipelined = host::measure(&self.options.runtime, &job)?;
        answers.check(&serial)?;
        answers.check(&pipelined)?;
        if counts {
            cell.add(&serial);
            cell.pipelined.push(pipelined.total_s);
        }
        Ok(())
    }

    /// Measures in the drive; returns false when the drive does not have the program.
    fn drive(
        &mut self,
        kernel: &'static dyn Kernel,
        subject: &Subject,
        cell: &mut Cell,
        counts: bool,
        answers: &mut Answers,
    ) -> Result<bool, Error> {
        self.step(&format!("{} in the drive, {} cores", cell.kernel, cell.units), 2)?;
        let options = self.options;
        let job = DriveJob {
            address: subject.address.clone(),
            connection: options.connection.clone(),
            compute_nsid: subject.compute_nsid.expect("drive cells need it"),
            kernel,
            region: subject.area.region(kernel.name(), cell.bytes).clone(),
            bytes: cell.bytes,
            units: cell.units,
            overlap: Overlap::Serial,
            values_nsid: subject.area.values_nsid,
            meter: options.meter.clone().filter(|_| subject.here),
        };
        let Some(serial) = inside::measure(&options.runtime, &job)? else { return Ok(false) };
        let job = DriveJob { overlap: Overlap::Pipelined, ..job };
        let Some(pipelined) = inside::measure(&options.runtime, &job)? else { return Ok(false) };
        answers.check(&serial)?;
        answers.check(&pipelined)?;
        if counts {
            cell.add(&serial);
            cell.pipelined.push(pipelined.total_s);
        }
        Ok(true)
    }

    /// Measures Host(1) under a burden, serial: everything is loaded before it computes.
    fn overloaded(
        &mut self,
        kernel: &'static dyn Kernel,
        bytes: u64,
        overloaded: &Overloaded,
    ) -> Result<Cell, Error> {
        let Overloaded { overload, limited } = overloaded;
        let repeat = self.options.repeat;
        let mut cell = Cell::new(kernel, (0, Where::Host), 1, bytes);
        cell.overload = Some(*overload);
        self.step(&format!("{} on Host(1), overloaded", cell.kernel), repeat + 1)?;
        let rivals = usize::try_from(overload.rivals.unwrap_or(0)).unwrap_or(usize::MAX);
        let subject = &self.options.subjects[0];
        // The energy that rival threads draw is not the kernel's.
        let alone = self.host_job(kernel, subject, 1, bytes);
        let mut job = HostJob { output: None, meter: None, ..alone };
        job.contention = match overload.kind {
            OverloadKind::Memory => Contention::None,
            OverloadKind::Cpu => Contention::Cpu(rivals),
            OverloadKind::Io => Contention::Io(rivals),
        };
        let timed = match (limited, overload.memory_bytes) {
            (Some(limited), Some(memory_bytes)) => limited(&job, memory_bytes, repeat + 1)?,
            _ => {
                let again = (0..=repeat).map(|_| host::measure(&self.options.runtime, &job));
                again.collect::<Result<_, _>>()?
            }
        };
        timed.iter().skip(1).for_each(|timed| cell.add(timed));
        Ok(cell)
    }

    /// Writes the working set of a kernel.
    fn fill(
        &self,
        kernel: &'static dyn Kernel,
        subject: &Subject,
        bytes: u64,
    ) -> Result<(), Error> {
        let sample = kernel.sample();
        let fill = move |at, piece: &mut [u8]| sample.fill_set(bytes, at, piece);
        write(self.options, subject, fill, bytes).map(drop)
    }

    /// Writes the region repeatedly with precomputed bytes, and measures the time.
    fn writes(&mut self, subject: &Subject) -> Result<(Samples, u64), Error> {
        let (mut times, largest) = (Samples::default(), self.options.largest());
        for turn in 0..=self.options.repeat {
            self.step("writing from outside", 1)?;
            let seconds = write(self.options, subject, pattern(), largest)?;
            if turn > 0 {
                times.push(seconds);
            }
        }
        Ok((times, largest))
    }
}

/// Returns a function that writes precomputed bytes.
pub(super) fn pattern() -> impl FnMut(u64, &mut [u8]) + Send + 'static {
    let pattern: Vec<u8> = (0..PIECE_BYTES).map(|at| (at % 251).to_le_bytes()[0]).collect();
    move |_, piece: &mut [u8]| piece.copy_from_slice(&pattern[..piece.len()])
}

/// Writes `bytes` bytes of a drive's region, and returns the time taken, s.
pub(super) fn write(
    options: &Options,
    subject: &Subject,
    fill: impl FnMut(u64, &mut [u8]) + Send + 'static,
    bytes: u64,
) -> Result<f64, Error> {
    let (subject, connection) = (subject.clone(), options.connection.clone());
    let written = csd_reactor::block_on(&options.runtime, move || async move {
        let controller = Controller::connect(&subject.address, &connection).await?;
        let region = &subject.area.region;
        let block = Block::open(&controller, region.nsid)?;
        let begin = csd_reactor::now();
        host::write(&block, region, 0..bytes, fill).await?;
        let seconds = csd_reactor::now().since(begin).as_secs_f64();
        controller.disconnect().await;
        Ok(seconds)
    });
    written.map_err(Error::Runtime)?
}

/// Cells of one kernel over one working set on one drive, and on the host with its bytes.
struct Row<'a> {
    subject: &'a Subject,
    host: Vec<Cell>,
    drive: Vec<Cell>,
    answers: Answers,
}

/// Answers of one kernel over one working set, which must all be the same.
struct Answers {
    kernel: &'static str,
    compared: bool,
    work: Option<u64>,
    result: Option<u64>,
}

impl Answers {
    fn new(kernel: &'static str, compared: bool) -> Self {
        Self { kernel, compared, work: None, result: None }
    }

    fn check(&mut self, timed: &Timed) -> Result<(), Error> {
        let Self { kernel, compared, work, result } = self;
        let first = *work.get_or_insert(timed.work);
        if first != timed.work {
            let why = format!("{kernel}: {first} units of work, then {}", timed.work);
            return Err(Error::Differ(why));
        }
        let first = *result.get_or_insert(timed.result);
        if *compared && first != timed.result {
            let why = format!("{kernel}: answers differ: {first}, then {}", timed.result);
            return Err(Error::Differ(why));
        }
        Ok(())
    }
}

/// Adds a warning for each cell whose quartiles are so far apart that its medians mean little.
fn note_unsteady(found: &mut Found) {
    for cell in &found.cells {
        let times = [("loading", &cell.load), ("computing", &cell.comp), ("storing", &cell.store)];
        let wide = times.iter().filter_map(|(what, samples)| {
            let quartiles = samples.quartiles()?;
            let part = 100.0 * (quartiles.p75 - quartiles.p25) / quartiles.median;
            quartiles.is_unsteady().then(|| format!("{what} ({part:.0} %)"))
        });
        let wide: Vec<_> = wide.collect();
        if !wide.is_empty() {
            found.warnings.push(format!(
                "{}: unsteady, quartiles lie far apart over the median: {}; repeat more often, or \
                 on a quieter machine",
                cell.name(),
                wide.join(", ")
            ));
        }
    }
}
