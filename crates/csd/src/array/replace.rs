//! `csd array replace`: a new drive in the place of another one, with what that held.
//!
//! Deletes no medium, and stops no drive of another machine. Invariants: the former drive stays in
//! the array, and serves, until the new one has every piece that the former one can return
//! ([`csd_store::repair::hand_over`]); if it is not there, no object loses bytes unless the user
//! said so. Before the array file names the new drive, that drive was found to hold nothing of
//! another array. An interrupted command leaves the array as it was, or one of which `csd array up`
//! and `csd repair` do the rest.

use std::path::PathBuf;
use std::rc::Rc;

use csd_store::array::{Array, DriveIndex, DriveRecord, Plan};
use csd_store::catalogue::{self, Entry, rebuild};
use csd_store::object::Progress;
use csd_store::repair::{self as pieces, HandedOver, Limits};
use csd_store::{Options, object};
use serde_json::{Value, json};

use super::lock::{Lock, Writers};
use super::process::ProcessState;
use super::successor::{self, Successor};
use super::{Local, add, process};
use crate::cli;
use crate::context::{Context, with_plan};
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::runtime::stop_flag;
use crate::units::{counted, grouped, size};

/// Most names of objects in a message.
const NAMES_SHOWN: usize = 5;

/// Replaces a drive, and repairs all objects by `csd repair`, which is given.
pub(crate) fn replace(
    options: &cli::Replace,
    context: &Context,
    repair: impl FnOnce(&cli::repair::Repair, &Context) -> Result<Report, Failure>,
) -> Result<Report, Failure> {
    let replaced = exchange(options, context)?;
    let (drive, rate) = (&options.drive, options.rate);
    let all = cli::repair::Repair { names: Vec::new(), on: cli::repair::On::default(), rate };
    let repaired = repair(&all, context).map_err(|failure| {
        let why = &failure.message;
        let message = format!("drive {drive} is replaced, `csd repair` does the rest: {why}");
        Failure { message, ..failure }
    })?;
    let text = text(&replaced, drive, context) + &repaired.text;
    let copied = |over: &HandedOver| {
        let lacking: u64 = over.lacking.values().sum();
        json!({ "pieces": over.pieces, "bytes": over.bytes, "lacking": lacking })
    };
    let result = json!({
        "drive": drive,
        "url": replaced.url,
        "medium": replaced.medium,
        "copied": replaced.copied.as_ref().map(copied),
        "repair": repaired.result,
    });
    let mut warnings = replaced.warnings;
    let degraded = repaired.degraded || !warnings.is_empty();
    warnings.extend(repaired.warnings);
    Ok(Report { text, result, warnings, degraded, exit_code: None })
}

/// A drive that was replaced.
struct Replaced {
    url: String,
    /// Medium of the drive before, which is kept.
    medium: Option<PathBuf>,
    /// True if the new drive has a medium from before.
    is_former: bool,
    /// Pieces that the drive before has given; `None` if it was not there.
    copied: Option<HandedOver>,
    warnings: Vec<String>,
}

fn text(replaced: &Replaced, drive: &str, context: &Context) -> String {
    let mut text = format!("{drive}  replaced  {}\n", context.shown(&replaced.url));
    if replaced.is_former {
        text += "it has an earlier medium of its place: what that still has is used\n";
    }
    if let Some(over) = &replaced.copied {
        let lacking: u64 = over.lacking.values().sum();
        let lacks = match lacking {
            0 => String::new(),
            lacking => format!(", which lacked {}", grouped(lacking)),
        };
        let (pieces, bytes) = (counted(over.pieces, "piece"), size(over.bytes));
        text += &format!("{pieces} ({bytes}) copied from the former drive{lacks}\n");
    }
    if let Some(medium) = &replaced.medium {
        text += &format!("its former medium is kept: {}\n", medium.display());
    }
    text
}

/// Puts the new drive into the array file, and starts it if it is on this machine.
fn exchange(options: &cli::Replace, context: &Context) -> Result<Replaced, Failure> {
    let path = context.array_path();
    let _lock = Lock::take(path)?;
    let mut local = Local::load(path)?;
    let warnings = add::discard(&mut local)?;
    let found = local.file.drives.iter().position(|drive| drive.name == options.drive);
    let unknown = || Failure::usage(format!("the array has no drive {:?}", options.drive));
    let index = found.ok_or_else(unknown)?;
    if local.file.os.is_some() {
        return Err(Failure::usage(
            "the drives of this array have operating systems, which a new drive would lack: its \
             drives cannot be replaced",
        ));
    }
    let done = take_over(options, &mut local, index, context);
    // A drive that still joins has not taken the place.
    let left = add::discard(&mut local);
    match done {
        Ok(replaced) => {
            Ok(Replaced { warnings: [warnings, replaced.warnings, left?].concat(), ..replaced })
        }
        Err(failure) => {
            let but = left.err().map_or_else(String::new, |error| format!("; {}", error.message));
            let message = format!("the array is as it was: {}{but}", failure.message);
            Err(Failure { message, ..failure })
        }
    }
}

/// Has the new drive take the place, once it has what the former one can return.
fn take_over(
    options: &cli::Replace,
    local: &mut Local,
    index: usize,
    context: &Context,
) -> Result<Replaced, Failure> {
    let before = local.file.drives[index].clone();
    let place = local.file.place(index);
    let source = source(local, index, context)?;
    if !options.lossy {
        let (drive, plan) = (options.drive.clone(), Plan::new(&local.file));
        with_plan(&plan, context.options()?, async move |array: &Array| {
            refuse_losses_of_damaged(array, &drive, place).await
        })?;
    }
    if source.is_none() && !options.lossy {
        check_objects(options, local, place, context)?;
    }
    let successor = Successor::find(options, local, index, context)?;
    let (mut copied, mut warnings) = (source.as_ref().map(|_| HandedOver::default()), Vec::new());
    let path = context.array_path();
    let mut writers = None;
    if let (Some(source), Some(over)) = (source, &mut copied) {
        let places = (source, successor.plan(local, index), place);
        // Others use the array while most is copied, and wait for the last.
        let mut done = copy(options, local, &places, over, context);
        if done.is_ok() {
            writers = Some(Writers::exclude(path)?);
            done = copy(options, local, &places, over, context)
                .and_then(|()| keep_names(local, place, context));
        }
        match done {
            Err(failure) if options.lossy => warnings.push(failure.message),
            done => done?,
        }
    }
    let _writers = writers.map_or_else(|| Writers::exclude(path), Ok)?;
    stop(local, &before)?;
    let is_former = successor.is_former;
    let url = successor.admit(local, index)?;
    let medium = local.home.media(&before).map_err(Failure::run)?.filter(|path| path.exists());
    Ok(Replaced { url, medium, is_former, copied, warnings })
}

/// Returns where the former drive, or what is whole of its medium, can be read; `None` if nowhere.
fn source(local: &mut Local, index: usize, context: &Context) -> Result<Option<Plan>, Failure> {
    let place = local.file.place(index);
    if successor::answers(local, place, context)? {
        return Ok(Some(Plan::new(&local.file)));
    }
    let Some(url) = successor::salvage(local, index, context)? else { return Ok(None) };
    let mut file = local.file.clone();
    file.drives[index].url = url;
    Ok(Some(Plan::new(&file)))
}

/// Copies what the former drive can return, and the new one does not have yet.
fn copy(
    options: &cli::Replace,
    local: &Local,
    (from, to, place): &(Plan, Plan, DriveIndex),
    over: &mut HandedOver,
    context: &Context,
) -> Result<(), Failure> {
    let bar = Bar::new(context, "copy", None);
    let (total, progress, bytes_per_s) = (bar.total(), bar.progress.clone(), options.rate);
    let (from, to, place, connect) = (from.clone(), to.clone(), *place, context.options()?);
    let begun = std::mem::take(over);
    let plan = Plan::new(&local.file);
    *over = with_plan(&plan, connect.clone(), async move |array: &Array| {
        let from = one_drive(&from, place, &connect).await?;
        let to = one_drive(&to, place, &connect).await?;
        let (stop, total) = (stop_flag(), Rc::new(move |bytes| total.set(bytes)));
        let on = pieces::On::default();
        let limits = Limits { on, bytes_per_s, stop, total, progress };
        let mut over = begun;
        pieces::hand_over(array, (&from, &to), &limits, &mut over).await?;
        Ok(over)
    })?;
    match over.is_interrupted {
        true => Err(Failure::run("interrupted")),
        false => Ok(()),
    }
}

async fn one_drive(
    plan: &Plan,
    place: DriveIndex,
    options: &Options,
) -> Result<Rc<csd_store::array::Drive>, Failure> {
    Ok(Rc::new(plan.connect(place, options).await.map_err(Failure::run)?))
}

/// Mends the copies of names on the other drives while the former one knows them, if it votes.
fn keep_names(local: &Local, place: DriveIndex, context: &Context) -> Result<(), Failure> {
    with_plan(&Plan::new(&local.file), context.options()?, async move |array: &Array| {
        let voting = array.voting();
        if voting.contains(&place) {
            for index in voting.into_iter().filter(|index| *index != place) {
                rebuild::rebuild(array, index).await?;
            }
        }
        Ok(())
    })
}

/// Checks that no object loses bytes without the drive: the pieces of all others are read.
fn check_objects(
    options: &cli::Replace,
    local: &Local,
    place: DriveIndex,
    context: &Context,
) -> Result<(), Failure> {
    let bar = Bar::new(context, "check", None);
    let (progress, bytes_per_s) = (bar.progress.clone(), options.rate);
    let plan = Plan::new(&local.file);
    let names = with_plan(&plan, context.options()?, async move |array: &Array| {
        let listed = object::list(array).await?;
        let (stop, total, on) = (stop_flag(), Rc::new(|_| {}), pieces::On::default());
        let limits = Limits { on, bytes_per_s, stop, total, progress };
        let names = pieces::endangered(array, &listed.sealed, place, &limits).await;
        match limits.stop.get() {
            true => Err(Failure::run("interrupted")),
            false => Ok(names),
        }
    })?;
    refuse_losses(&options.drive, names)
}

/// Refuses to go on without a drive if a name of which too few copies are sound would lose its last
/// copy that can be read by that, or bytes of the object that this copy tells.
pub(super) async fn refuse_losses_of_damaged(
    array: &Array,
    drive: &str,
    place: DriveIndex,
) -> Result<(), Failure> {
    let damaged = catalogue::damaged_entries(array).await?;
    let entries: Vec<Entry> = damaged.iter().map(|(entry, _)| entry.clone()).collect();
    let (on, bytes_per_s, progress) = (pieces::On::default(), None, Progress::none());
    let limits = Limits { on, bytes_per_s, stop: stop_flag(), total: Rc::new(|_| {}), progress };
    let mut names = pieces::endangered(array, &entries, place, &limits).await;
    for (entry, drives) in damaged {
        if drives == [place] && !names.contains(&entry.name) {
            names.push(entry.name);
        }
    }
    refuse_losses(drive, names)
}

/// Refuses to go on without a drive if objects would lose bytes by that.
pub(super) fn refuse_losses(drive: &str, names: Vec<String>) -> Result<(), Failure> {
    if names.is_empty() {
        return Ok(());
    }
    let message = format!(
        "without drive {drive} bytes of these objects would be lost: {}; protect, repair or \
         remove them first, or say --lossy",
        shown(&names)
    );
    let detail = Value::from(names);
    Err(Failure { detail: json!({ "objects": detail }), ..Failure::usage(message) })
}

/// Returns the first of these names for a message.
pub(super) fn shown(names: &[String]) -> String {
    let mut shown: Vec<String> =
        names.iter().take(NAMES_SHOWN).map(|name| format!("{name:?}")).collect();
    if let Some(more) = names.len().checked_sub(NAMES_SHOWN).filter(|more| *more > 0) {
        shown.push(format!("{more} more"));
    }
    shown.join(", ")
}

/// Stops a drive that this array has started.
pub(super) fn stop(local: &Local, drive: &DriveRecord) -> Result<(), Failure> {
    if process::state(drive, &local.folder) == ProcessState::Runs {
        process::terminate(drive, &local.folder);
        process::wait_end(drive, &local.folder)?;
    }
    Ok(())
}
