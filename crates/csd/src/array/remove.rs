//! `csd array remove`: a drive is taken out of the array, once its objects are on the others.
//!
//! Deletes no medium, and stops no drive of another machine. Invariants: before the array file
//! leaves the drive out, no object needs it unless the user said so, and each of the others holds
//! every name ([`csd_store::catalogue::shrink`]); the others keep their places. An interrupted
//! command leaves the array as it was, with some objects moved, and can be run again.

use std::path::PathBuf;
use std::rc::Rc;

use csd_store::array::{Array, ArrayFile, DriveIndex, Plan};
use csd_store::catalogue::{Entry, grow, shrink};
use csd_store::object::{self, Limits, Progress, Rebalanced};
use csd_store::repair;
use serde_json::json;

use super::lock::{Lock, Writers};
use super::replace::{refuse_losses, shown, stop};
use super::{Local, add, peers, rebalance};
use crate::cli;
use crate::context::{Context, with_plan};
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::runtime::stop_flag;

/// Moves the objects of a drive to the others, and takes it out.
pub(crate) fn remove(options: &cli::Remove, context: &Context) -> Result<Report, Failure> {
    let drive = Leaving::find(options, &ArrayFile::load(context.array_path())?)?;
    let bar = Bar::new(context, "remove", None);
    let (total, progress) = (bar.total(), bar.progress.clone());
    // Others may use the array while the objects are moved.
    let moved = context.with_array_to_write(async move |array: &Array| {
        drive.vacate(array, Rc::new(move |bytes| total.set(bytes)), progress).await
    })?;
    drop(bar);
    if moved.is_interrupted {
        return rebalance::report(moved);
    }
    let (medium, moved) = take_out(options, context, moved)?;
    let moved = rebalance::report(moved)?;
    let name = &options.drive;
    let mut text = format!("{}{name}  removed\n", moved.text);
    if let Some(medium) = &medium {
        text += &format!("its medium is kept: {}\n", medium.display());
    }
    let result = json!({ "drive": name, "medium": medium, "rebalance": moved.result });
    Ok(Report { text, result, ..moved })
}

/// A drive that leaves the array.
#[derive(Clone)]
struct Leaving {
    name: String,
    /// Its place in the array.
    place: DriveIndex,
    /// True if objects may lose bytes.
    lossy: bool,
    rate: Option<u64>,
}

impl Leaving {
    fn find(options: &cli::Remove, file: &ArrayFile) -> Result<Self, Failure> {
        let cli::Remove { drive: name, lossy, rate } = options.clone();
        let found = file.drives.iter().position(|drive| drive.name == name);
        let unknown = || Failure::usage(format!("the array has no drive {name:?}"));
        let place = file.place(found.ok_or_else(unknown)?);
        if file.os.is_some() {
            return Err(Failure::usage(
                "the drives of this array have operating systems: they cannot be removed",
            ));
        }
        if file.drives.len() == 1 {
            return Err(Failure::usage(format!(
                "drive {name} is the last one: `csd array down --delete` deletes the array"
            )));
        }
        Ok(Self { name, place, lossy, rate })
    }

    /// Returns true if an object may have pieces on the drive.
    fn holds(&self, entry: &Entry) -> bool {
        let group = entry.protection.iter().flat_map(|protection| &protection.group);
        entry.members.iter().chain(group).any(|drive| *drive == self.place)
    }

    /// Moves all objects with pieces on the drive to the others.
    async fn vacate(
        &self,
        array: &Array,
        total: Rc<dyn Fn(u64)>,
        progress: Progress,
    ) -> Result<Rebalanced, Failure> {
        let rest = array.without(self.place);
        grow::all_up(&rest)?;
        if rest.voters().len() < rest.size() {
            return Err(Failure::run(rest.down().join("; ")));
        }
        let mut held = object::list(array).await?.sealed;
        held.retain(|entry| self.holds(entry));
        self.check(array, &held, rest.size()).await?;
        let limits = Limits { bytes_per_s: self.rate, stop: stop_flag(), total, progress };
        let moved = object::rebalance(array, &held, &rest.voting(), &limits).await;
        if let Some((name, why)) = moved.failed.first().filter(|_| !self.lossy) {
            let (drive, count) = (&self.name, moved.failed.len());
            let message = format!(
                "drive {drive} stays: {count} of its objects cannot be moved; {name:?}: {why}"
            );
            return Err(Failure { detail: rebalance::describe(&moved), ..Failure::run(message) });
        }
        Ok(moved)
    }

    /// Refuses what cannot end well, before anything is moved.
    async fn check(&self, array: &Array, held: &[Entry], left: usize) -> Result<(), Failure> {
        let scheme = |entry: &Entry| entry.protection.as_ref().map(|of| of.scheme);
        let misfits =
            held.iter().filter(|entry| scheme(entry).is_some_and(|scheme| scheme.pieces() > left));
        let misfits: Vec<String> = misfits.map(|entry| entry.name.clone()).collect();
        if !misfits.is_empty() {
            let (drive, names) = (&self.name, shown(&misfits));
            return Err(Failure::usage(format!(
                "without drive {drive} the array has {left} drives, and the codes of these objects \
                 need more: {names}; remove them first, or add a drive"
            )));
        }
        let votes = array.voters().iter().any(|drive| drive.index == self.place);
        if self.lossy || votes {
            return Ok(());
        }
        let (on, bytes_per_s) = (repair::On::default(), self.rate);
        let (stop, total) = (stop_flag(), Rc::new(|_| {}));
        let limits = repair::Limits { on, bytes_per_s, stop, total, progress: Progress::none() };
        refuse_losses(&self.name, repair::endangered(array, held, self.place, &limits).await)
    }
}

/// Copies all names to the drives that stay, and takes the drive out of the array file. Returns the
/// medium that it leaves, and what was moved.
fn take_out(
    options: &cli::Remove,
    context: &Context,
    mut moved: Rebalanced,
) -> Result<(Option<PathBuf>, Rebalanced), Failure> {
    let path = context.array_path();
    let _lock = Lock::take(path)?;
    let _writers = Writers::exclude(path)?;
    let mut local = Local::load(path)?;
    moved.warnings.extend(add::discard(&mut local)?);
    let drive = Leaving::find(options, &local.file)?;
    let place = drive.place;
    let late =
        with_plan(&Plan::new(&local.file), context.options()?, async move |array: &Array| {
            // Objects that were put meanwhile.
            let late = drive.vacate(array, Rc::new(|_| {}), Progress::none()).await?;
            if !late.is_interrupted {
                shrink::gather(array, place).await?;
            }
            Ok(late)
        })?;
    moved.moved.extend(late.moved);
    moved.warnings.extend(late.warnings);
    moved.failed = late.failed;
    moved.is_interrupted = late.is_interrupted;
    if moved.is_interrupted {
        return Ok((None, moved));
    }
    let is_it = |index: &usize| local.file.place(*index) == place;
    let index = (0..local.file.drives.len()).find(is_it).expect("it was found");
    stop(&local, &local.file.drives[index])?;
    let removed = local.file.remove(index);
    local.save()?;
    peers::write(&local)?;
    let medium = local.home.media(&removed).map_err(Failure::run)?.filter(|path| path.exists());
    Ok((medium, moved))
}
