//! [`Task`]: a program and the objects that it runs over, checked to fit each other.
//!
//! Performs no I/O. Invariants: without groups, chunk `i` of all objects of a task lies on one
//! drive and holds the same number of elements; with groups, all objects have the same members.

use std::sync::Arc;

use csd_kernels::ElementType;
use csd_nvme::memory::UNIT_BYTES;
use csd_nvme::vendor::execute::STREAMS_MAX;
use csd_store::catalogue::{Entry, Placement};
use csd_store::layout::{Layout, Run};

use super::units::{Group, Units, piles};
use super::{Consumer, Sandbox};
use crate::InvalidJob;
use crate::job::side_by_side;

/// Most bytes of a line after the end of the chunk in which it begins, including its newline.
pub const LINE_BYTES_MAX: u32 = 64 << 10;

/// Kind of records in a program's inputs. Records are not split between executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// An element of the object.
    Elements,
    /// A line: bytes up to a newline, which is part of it, or to the object's end.
    Lines,
}

/// Limits of one execution, on a drive and on the host alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most time of a compute thread, ms.
    pub time_ms: u32,
    /// Most memory, MiB.
    pub memory_mib: u16,
    /// Most bytes of output.
    pub room_bytes: u32,
}

/// A program over objects.
pub struct Task {
    /// The objects.
    pub inputs: Vec<Entry>,
    pub(super) layout: Layout,
    pub(super) records: Records,
    pub(super) sandbox: Arc<dyn Sandbox>,
    pub(super) units: Units,
    pub(super) limits: Limits,
    /// Takes the answers.
    pub(super) consumer: Option<Arc<dyn Consumer>>,
}

impl Task {
    /// Returns a task whose executions may write `room_bytes`; by default the size of a chunk and a
    /// line, and at least 1 MiB.
    ///
    /// # Errors
    /// [`InvalidJob`] when there are too many objects, they differ in length or place, or lines are
    /// requested of elements that are not text.
    pub fn new(
        inputs: Vec<Entry>,
        sandbox: Arc<dyn Sandbox>,
        parameters: Vec<u8>,
        (time_ms, memory_mib): (u32, u16),
        room_bytes: Option<u32>,
    ) -> Result<Self, InvalidJob> {
        let records = sandbox.records();
        let [first, others @ ..] = &inputs[..] else {
            return Err(InvalidJob("a program needs an object to run over".to_owned()));
        };
        if inputs.len() > usize::from(STREAMS_MAX) {
            return Err(InvalidJob(format!("a program takes at most {STREAMS_MAX} objects")));
        }
        if records == Records::Lines {
            if !others.is_empty() {
                let why = "the program reads lines, and lines of two objects do not pair: give it \
                           one object";
                return Err(InvalidJob(why.to_owned()));
            }
            if first.element != ElementType::Bytes {
                return Err(InvalidJob(format!(
                    "the program reads lines, and {:?} holds elements of type {}: put text with \
                     --type bytes",
                    first.name, first.element
                )));
            }
        }
        others.iter().try_for_each(|other| alike(first, other))?;
        let usual = (first.chunk_bytes + LINE_BYTES_MAX).max(1 << 20);
        // Memory is written in whole units, on the host alike.
        let unit = u32::try_from(UNIT_BYTES).expect("4");
        let room_bytes = room_bytes.unwrap_or(usual).next_multiple_of(unit);
        let limits = Limits { time_ms, memory_mib, room_bytes };
        let (layout, consumer) = (first.layout(), None);
        let units = Units::Chunks { parameters };
        Ok(Self { layout, inputs, records, sandbox, units, limits, consumer })
    }

    /// Returns a task whose executions work on groups of chunks, each with parameters of its own.
    ///
    /// # Errors
    /// [`InvalidJob`] when there is no object, or their drives differ.
    pub fn over_groups(
        inputs: Vec<Entry>,
        groups: Vec<Group>,
        sandbox: Arc<dyn Sandbox>,
        limits: Limits,
    ) -> Result<Self, InvalidJob> {
        let Some(first) = inputs.first() else {
            return Err(InvalidJob("a program needs an object to run over".to_owned()));
        };
        if let Some(other) = inputs.iter().find(|entry| entry.members != first.members) {
            let (a, b) = (&first.name, &other.name);
            return Err(InvalidJob(format!("{a:?} and {b:?} lie on different drives")));
        }
        let (layout, consumer) = (first.layout(), None);
        let (records, units) = (Records::Elements, Units::Groups(groups));
        Ok(Self { layout, inputs, records, sandbox, units, limits, consumer })
    }

    /// Makes the answers go to a consumer, chunk by chunk, and not into the outcome.
    #[must_use]
    pub fn with_consumer(self, consumer: Arc<dyn Consumer>) -> Self {
        Self { consumer: Some(consumer), ..self }
    }

    /// Returns the kind of records.
    #[must_use]
    pub fn records(&self) -> Records {
        self.records
    }

    /// Returns the number of bytes that executions read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match &self.units {
            Units::Chunks { .. } => self.inputs.iter().map(|entry| entry.bytes).sum(),
            Units::Groups(groups) => {
                groups.iter().map(|group| group.bytes(&self.inputs[group.input])).sum()
            }
        }
    }

    /// Returns a group of chunks; `None` if units are chunks.
    pub(super) fn group(&self, unit: u32) -> Option<&Group> {
        match &self.units {
            Units::Chunks { .. } => None,
            Units::Groups(groups) => Some(&groups[unit as usize]),
        }
    }

    /// Returns true if there is no unit.
    pub(super) fn has_no_unit(&self) -> bool {
        match &self.units {
            Units::Chunks { .. } => self.layout.chunks() == 0,
            Units::Groups(groups) => groups.is_empty(),
        }
    }

    /// Returns the name of a unit, for messages.
    pub(super) fn unit_name(&self) -> &'static str {
        match &self.units {
            Units::Chunks { .. } => "chunk",
            Units::Groups(_) => "row group",
        }
    }

    /// Returns the size of a unit in all objects, bytes.
    pub(super) fn unit_bytes(&self, unit: u32) -> u64 {
        match self.group(unit) {
            Some(group) => group.bytes(&self.inputs[group.input]),
            None => u64::from(self.layout.chunk_len(unit)) * self.inputs.len() as u64,
        }
    }

    /// Returns the number of elements of a unit in the first object that it is of.
    pub(super) fn unit_elements(&self, unit: u32) -> u64 {
        let objects = if self.group(unit).is_some() { 1 } else { self.inputs.len() as u64 };
        self.unit_bytes(unit) / objects / self.inputs[0].element.bytes() as u64
    }

    /// Returns the parameters of the execution over a unit.
    pub(super) fn parameters(&self, unit: u32) -> &[u8] {
        match &self.units {
            Units::Chunks { parameters } => parameters,
            Units::Groups(groups) => {
                groups.get(unit as usize).map_or(&[], |group| &group.parameters)
            }
        }
    }

    /// Returns the units of every member.
    pub(super) fn piles(&self) -> Vec<Vec<Run>> {
        match &self.units {
            Units::Chunks { .. } => {
                let members = 0..self.inputs[0].members.len();
                members.map(|member| self.layout.runs(member)).collect()
            }
            Units::Groups(groups) => piles(&self.inputs, groups),
        }
    }

    /// Returns the objects' names, for messages.
    pub(super) fn names(&self) -> String {
        let names: Vec<_> = self.inputs.iter().map(|entry| entry.name.as_str()).collect();
        names.join(" or ")
    }
}

/// Checks that two objects have the same number of elements, chunk for chunk and drive for drive.
fn alike(first: &Entry, other: &Entry) -> Result<(), InvalidJob> {
    if first.elements() != other.elements() {
        let (a, b) = (first.elements(), other.elements());
        return Err(InvalidJob(format!(
            "{:?} has {a} elements and {:?} has {b}: a program over both needs equally many",
            first.name, other.name
        )));
    }
    if first.element.bytes() != other.element.bytes() {
        return Err(InvalidJob(format!(
            "{:?} is of type {} and {:?} of type {}: elements of different sizes do not pair in \
             chunks",
            first.name, first.element, other.name, other.element
        )));
    }
    side_by_side(first, other)?;
    let is_kv = |entry: &Entry| entry.placement == Placement::Kv;
    if first.layout() != other.layout() || is_kv(first) != is_kv(other) {
        return Err(InvalidJob(format!(
            "{:?} and {:?} are not cut alike: put {:?} again with --align {:?}",
            first.name, other.name, other.name, first.name
        )));
    }
    Ok(())
}
