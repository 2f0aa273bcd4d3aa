//! The drives to measure: one started for it, every drive of an array, or one that the user names.
//!
//! Invariant: dropping the value stops the started drive and removes the objects.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use csd_initiator::Address;
use csd_kernels::kernel::Kernel;
use csd_measure::characterize::region::Region;
use csd_measure::characterize::{DataArea, Subject, Survey, survey};

use super::objects::Objects;
use super::sorted;
use super::started::Started;
use crate::cli::characterize::Characterize;
use crate::context::Context;
use crate::report::Failure;
use crate::runtime::runtime;

/// The drives to measure.
pub(super) struct Target {
    /// The drives, each with its survey.
    pub(super) drives: Vec<Surveyed>,
    pub(super) kind: Kind,
}

/// A drive and its properties.
pub(super) struct Surveyed {
    /// Name in the array; empty for a drive outside of an array.
    pub(super) name: String,
    /// Address as the user wrote it.
    pub(super) url: String,
    pub(super) address: Address,
    pub(super) survey: Survey,
    /// Regions of its working sets on an array, by kernel and bytes.
    regions: Vec<(&'static str, u64, Region)>,
}

pub(super) enum Kind {
    /// A drive started by this command.
    Started(Started),
    /// An array, with an object for each kernel and size.
    Array(Box<Objects>),
    /// A drive named by the user; `write` is true if it may be overwritten.
    Named { write: bool },
}

impl Target {
    pub(super) fn find(
        options: &Characterize,
        kernels: &[&'static dyn Kernel],
        context: &Context,
    ) -> Result<Self, Failure> {
        let alone = |url: &String| vec![(String::new(), url.clone(), Vec::new())];
        let (drives, kind) = if let Some(url) = &options.drive {
            (alone(url), Kind::Named { write: options.allow_write })
        } else if context.array_is_named {
            let objects = Objects::put(context, kernels, &sorted(&options.size))?;
            let drives = objects.drives.iter();
            let drives = drives.map(|d| (d.name.clone(), d.url.clone(), d.regions.clone()));
            (drives.collect(), Kind::Array(Box::new(objects)))
        } else {
            let started = Started::new(options, kernels, context)?;
            (alone(&started.url), Kind::Started(started))
        };
        let connection = context.options()?;
        let mut target = Self { drives: Vec::new(), kind };
        for (name, url, regions) in drives {
            let address: Result<Address, _> = url.parse();
            let address = address.map_err(|why| Failure::usage(format!("{url}: {why}")))?;
            let survey = survey(&runtime(), &address, &connection)?;
            target.drives.push(Surveyed { name, url, address, survey, regions });
        }
        Ok(target)
    }

    /// Returns the drives with the names that people know them by.
    pub(super) fn named(&self) -> Vec<(String, Address)> {
        let named = |drive: &Surveyed| {
            let name = match &drive.name[..] {
                "" => drive.url.clone(),
                name => format!("{name} ({})", drive.url),
            };
            (name, drive.address.clone())
        };
        self.drives.iter().map(named).collect()
    }

    /// Returns the flag that ends the measurement: set by a signal if there are objects to remove.
    /// Otherwise a signal ends the process, and a drive that it started with it.
    pub(super) fn interrupted(&self) -> Arc<AtomicBool> {
        match &self.kind {
            Kind::Array(objects) => objects.interrupted(),
            Kind::Started(_) | Kind::Named { .. } => Arc::default(),
        }
    }

    /// Returns true if the drives may be overwritten.
    fn writes(&self) -> bool {
        match self.kind {
            Kind::Started(_) => true,
            Kind::Named { write } => write,
            Kind::Array(_) => false,
        }
    }

    /// Returns the kernels that can be measured. A drive that must not be written lacks the data
    /// that some kernels need, such as sorted arrays.
    pub(super) fn fit(
        &self,
        kernels: Vec<&'static dyn Kernel>,
        warnings: &mut Vec<String>,
    ) -> Vec<&'static dyn Kernel> {
        if !matches!(self.kind, Kind::Named { write: false }) {
            return kernels;
        }
        let (fit, not): (Vec<_>, Vec<_>) =
            kernels.into_iter().partition(|kernel| kernel.sample().takes_any_bytes);
        warnings.extend(not.iter().map(|kernel| {
            format!("{} needs data of its own, and the drive is not written", kernel.name())
        }));
        fit
    }

    /// Returns a message for everything that is not measured: on drives that are down, have only
    /// block namespaces, or are only read.
    pub(super) fn left_out(&self) -> Vec<String> {
        let blocks_only = self.drives.iter().filter(|drive| drive.survey.compute_nsid.is_none());
        let mut words: Vec<_> = blocks_only
            .map(|drive| {
                format!(
                    "{} ({}) has no compute namespace: the host's side and the bandwidths to the \
                     host were measured; left out are kernels in the drive, bandwidths inside it, \
                     and with them break-even points of this drive",
                    drive.url, drive.survey.model
                )
            })
            .collect();
        if let Kind::Array(objects) = &self.kind {
            words.extend(objects.down.iter().cloned());
        }
        if matches!(self.kind, Kind::Named { write: false }) {
            words.push(
                "the drive was only read: its write bandwidths and results that are stored are \
                 left out (--allow-write measures them, and destroys what is there)"
                    .to_owned(),
            );
        }
        words
    }

    /// Returns the drives as the library measures them.
    pub(super) fn subjects(
        &self,
        sizes: &[u64],
        kernels: &[&'static dyn Kernel],
    ) -> Result<Vec<Subject>, Failure> {
        if kernels.is_empty() {
            return Err(Failure::usage("no kernel is left that this drive can be measured with"));
        }
        let subject = |drive: &Surveyed| {
            Ok(Subject {
                address: drive.address.clone(),
                area: self.area(drive, sizes, kernels)?,
                compute_nsid: drive.survey.compute_nsid,
                here: drive.address.socket.is_local(),
            })
        };
        self.drives.iter().map(subject).collect()
    }

    /// Returns the location of a drive's working sets.
    fn area(
        &self,
        drive: &Surveyed,
        sizes: &[u64],
        kernels: &[&'static dyn Kernel],
    ) -> Result<DataArea, Failure> {
        let (nsid, bytes, _) = drive.survey.block;
        let largest = sizes.iter().copied().max().unwrap_or(0);
        let stores = self.writes() && kernels.iter().any(|kernel| kernel.sample().stores);
        let needed = if stores { 2 * largest } else { largest };
        if needed > bytes {
            return Err(Failure::usage(format!(
                "namespace {nsid} of the drive has {bytes} bytes, {needed} are needed"
            )));
        }
        let region = Region::new(nsid, vec![(0, needed)]);
        let stores_values = self.writes() || matches!(self.kind, Kind::Array(_));
        let values_nsid = drive.survey.values_nsid.filter(|_| stores_values);
        Ok(DataArea { region, regions: drive.regions.clone(), values_nsid, write: self.writes() })
    }

    /// Removes the objects; a started drive ends when it is dropped.
    pub(super) fn end(self) -> Result<(), Failure> {
        match self.kind {
            Kind::Array(objects) => objects.remove(),
            Kind::Started(_) | Kind::Named { .. } => Ok(()),
        }
    }
}
