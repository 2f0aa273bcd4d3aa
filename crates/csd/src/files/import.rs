//! `csd import`: the members of a tar as objects.
//!
//! Members of `csd export` become what they were, compared with their digests before they count.
//! Others are stored as `csd put -r` stores files.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use csd_store::ElementType;
use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::object::{self, Progress};
use csd_store::source::Source;

use super::about::{self, About};
use super::checked::Checked;
use super::download::off_core;
use super::listing::{amount, result};
use super::tar_reader::{Kind, Member, TarReader};
use crate::cli::files::Import;
use crate::context::Context;
use crate::interruptible::Interruptible;
use crate::progress::Bar;
use crate::put_input::{as_bytes, is_npy};
use crate::report::{Failure, Report};
use crate::runtime::Interrupt;
use crate::tally::Tally;

/// Bytes in which the header of a `.npy` file is looked for.
const FRONT_BYTES: u64 = 64 << 10;

/// A tar that the core and the readers of its members share.
type Tar = Arc<Mutex<TarReader<BufReader<Box<dyn Read + Send>>>>>;

/// Bytes of the member that a tar has come to.
struct Bytes(Tar);

impl Read for Bytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read(out)
    }
}

/// Stores the members of a tar.
pub(crate) fn import(options: Import, context: &Context) -> Result<Report, Failure> {
    let failed = |error: io::Error| Failure::os(&options.file, &error);
    let (input, bytes): (Box<dyn Read + Send>, _) = match options.file.as_str() {
        "-" => (Box::new(io::stdin()), None),
        path => {
            let file = File::open(path).map_err(failed)?;
            let found = file.metadata().map_err(failed)?;
            (Box::new(file), found.is_file().then_some(found.len()))
        }
    };
    let interrupt = Interrupt::watch()?;
    let bar = Bar::new(context, "import", bytes);
    let progress = bar.progress.clone();
    let mut tally = Tally::over(context, &bar);
    let input: Box<dyn Read + Send> = Box::new(Interruptible::new(input, &interrupt.asked));
    let tar: Tar = Arc::new(Mutex::new(TarReader::new(BufReader::new(input))));
    let asked = Arc::clone(&interrupt.asked);
    let file = options.file.clone();
    let (entries, tally) = context.with_array_to_write(async move |array: &Array| {
        let mut entries = Vec::new();
        loop {
            let member = match next(&tar, &options.file).await {
                Ok(Some(member)) => member,
                Ok(None) => break,
                Err(failure) => {
                    match asked.load(Relaxed) {
                        true => tally.leave("the rest of the tar"),
                        false => tally.fail(&options.file, failure),
                    }
                    break;
                }
            };
            let Some((name, about)) = wanted(&member, &options, &mut tally) else { continue };
            match store(array, (&tar, &member), (&name, about), &options, &progress).await {
                Ok((entry, remark, warnings)) => {
                    tally.done();
                    tally.warn(warnings);
                    remark.iter().for_each(|remark| tally.remark(&name, remark));
                    entries.push(entry);
                }
                Err(_) if asked.load(Relaxed) => tally.leave(&name),
                Err(failure) => tally.fail(&name, failure),
            }
        }
        Ok((entries, tally))
    })?;
    drop(bar);
    let text = format!("{file}: {}\n", amount(&entries));
    tally.finish(text, context.for_json(|| result(&entries)))
}

/// Goes on to the next member.
async fn next(tar: &Tar, file: &str) -> Result<Option<Member>, Failure> {
    let (tar, file) = (Arc::clone(tar), file.to_owned());
    off_core(move || {
        let next = tar.lock().unwrap_or_else(PoisonError::into_inner).next();
        next.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Failure::usage(format!("{file}: {error}")),
            _ => Failure::os(&file, &error),
        })
    })
    .await
}

/// Returns name and description of a member that becomes an object.
fn wanted(member: &Member, options: &Import, tally: &mut Tally) -> Option<(String, Option<About>)> {
    let about = member.comment.as_deref().and_then(about::parse);
    let path = member.path.as_deref();
    match (&member.kind, path) {
        (Kind::Folder, _) => return None,
        (Kind::Other(why), path) => {
            tally.skip(path.unwrap_or("a member"), why);
            return None;
        }
        (Kind::File, None) if about.is_none() => {
            tally.skip("a member", "its name is no UTF-8, as names of objects are");
            return None;
        }
        (Kind::File, _) => {}
    }
    let own = about.as_ref().map(|about| about.name.clone());
    let path = path.unwrap_or_default();
    let name = own.unwrap_or_else(|| path.strip_prefix("./").unwrap_or(path).to_owned());
    let prefix = options.prefix.as_deref().unwrap_or("");
    Some((format!("{prefix}{name}"), about))
}

/// Stores a member; returns its entry, a remark and warnings.
async fn store(
    array: &Array,
    (tar, member): (&Tar, &Member),
    (name, about): (&str, Option<About>),
    options: &Import,
    progress: &Progress,
) -> Result<(Entry, Option<String>, Vec<String>), Failure> {
    let kept = about.as_ref().filter(|_| !options.plain);
    let put_options = about::put_options(name.to_owned(), kept);
    let (tar, member, about) = (Arc::clone(tar), member.clone(), about.clone());
    let (source, remark) = off_core(move || source(Bytes(tar), &member, about.as_ref())).await?;
    let stored = match options.force {
        true => object::replace(array, source, &put_options, progress).await,
        false => object::put(array, source, &put_options, progress).await,
    }?;
    Ok((stored.entry, remark, stored.warnings))
}

/// Returns the content of a member, and a remark if it is not as its name promises.
fn source(
    bytes: Bytes,
    member: &Member,
    about: Option<&About>,
) -> Result<(Source, Option<String>), Failure> {
    let path = member.path.as_deref().unwrap_or_default();
    let refused = |error: csd_store::source::Error| Failure::at_fault(error.fault(), error);
    let Some(about) = about else { return plain(bytes, path) };
    let header_bytes = member.bytes.saturating_sub(about.bytes);
    let checked = Box::new(Checked::new(bytes, header_bytes, about.blake3.clone()));
    let source = match (about.element, header_bytes) {
        (ElementType::Bytes, _) => Source::raw(path, checked, ElementType::Bytes),
        (element, 0) => Source::array(path, checked, element, &about.shape).map_err(refused)?,
        (element, _) => Source::npy(path, checked, Some(element)).map_err(refused)?,
    };
    Ok((source, None))
}

/// Returns the content of a member of another program: an array if it is one.
fn plain(mut bytes: Bytes, path: &str) -> Result<(Source, Option<String>), Failure> {
    if !is_npy(path) {
        return Ok((Source::raw(path, Box::new(bytes), ElementType::Bytes), None));
    }
    let mut front = Vec::new();
    let read = bytes.by_ref().take(FRONT_BYTES).read_to_end(&mut front);
    read.map_err(|error| Failure::os(path, &error))?;
    let refused = Source::npy(path, Box::new(Cursor::new(front.clone())), None).err();
    let whole = Box::new(Cursor::new(front).chain(bytes));
    match refused {
        Some(why) => {
            let remark = as_bytes(path, &why.to_string());
            Ok((Source::raw(path, whole, ElementType::Bytes), Some(remark)))
        }
        None => {
            let source = Source::npy(path, whole, None);
            Ok((source.map_err(|error| Failure::at_fault(error.fault(), error))?, None))
        }
    }
}
