//! `csd kv`: values of a key-value namespace, by standard commands, on any maker's drive.
//!
//! Objects that are longer than one value are stored in pieces; see `docs/internals/contracts.md`.
//! Invariant: a file that `get` writes appears only once every byte has come and been checked.

mod gc;
mod key;
mod range;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use csd_client::{
    Address, Error, Key, Object, STORE_IF_ABSENT, STORE_IF_EXISTS, Session, Settings, Status,
    is_piece,
};
use csd_store::array::ArrayFile;
use serde_json::{Value, json};

use crate::ask_drives::address_of;
use crate::cli::kv::{Get, Keys, Kv, Ls, Put, Where};
use crate::context::Context;
use crate::each_item::each_item;
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::runtime::runtime;
use crate::table::pairs;
use crate::target::{Target, cannot_write};
use crate::units::{counted, exact_size, grouped, percent, size};

/// Runs a command of `csd kv`.
pub(crate) fn kv(command: Kv, context: &Context) -> Result<Report, Failure> {
    match command {
        Kv::Put(options) => put(&options, context),
        Kv::Get(options) => get(&options, context),
        Kv::Exists(options) => exists(&options, context),
        Kv::Ls(options) => ls(&options, context),
        Kv::Range(options) => range::range(&options, context),
        Kv::Rm(options) => rm(&options, context),
        Kv::Gc(options) => gc::gc(&options, context),
        Kv::Flush(at) => flush(&at, context),
        Kv::Info(at) => info(&at, context),
    }
}

fn put(options: &Put, context: &Context) -> Result<Report, Failure> {
    let from_path = Path::new(&options.file).file_name().map(|name| name.to_string_lossy());
    let name = match (&options.key, from_path) {
        (Some(key), _) => key.clone(),
        (None, Some(name)) if options.file != "-" && !options.at.hex => name.into_owned(),
        _ => return Err(Failure::usage("standard input, or a key with --hex: say the key")),
    };
    let key = key::parse(&name, options.at.hex)?;
    let (mut source, bytes) = open(&options.file)?;
    let absent = if options.if_absent { STORE_IF_ABSENT } else { 0 };
    let flags = absent | if options.if_exists { STORE_IF_EXISTS } else { 0 };
    let bar = Bar::new(context, &name, bytes);
    let progress = bar.progress.clone();
    let stored = with_session(&options.at, context, async move |session| {
        session.put_object(&key, &mut source, flags, &|bytes| progress.add(bytes)).await
    });
    drop(bar);
    let stored = stored?.map_err(|error| named(&key, options.at.hex, error))?;
    let shown = key::shown(&key, options.at.hex);
    let pieces = match stored.pieces {
        0 => "one value".to_owned(),
        pieces => counted(pieces.into(), "piece"),
    };
    let mut result = key::describe(&key);
    result["bytes"] = stored.bytes.into();
    result["pieces"] = stored.pieces.into();
    let mut report = Report::new(format!("{shown}: {}, {pieces}\n", size(stored.bytes)), result);
    if stored.left_behind > 0 {
        let pieces = counted(stored.left_behind.into(), "piece");
        report.warn(format!("{pieces} of the old object not deleted"));
    }
    Ok(report)
}

fn open(file: &str) -> Result<(Box<dyn Read + Send>, Option<u64>), Failure> {
    if file == "-" {
        return Ok((Box::new(io::stdin()), None));
    }
    let opened = File::open(file).map_err(|error| Failure::os(file, &error))?;
    let metadata = opened.metadata().map_err(|error| Failure::os(file, &error))?;
    if metadata.is_dir() {
        return Err(Failure::usage(format!("{file} is a folder")));
    }
    Ok((Box::new(opened), metadata.is_file().then_some(metadata.len())))
}

fn get(options: &Get, context: &Context) -> Result<Report, Failure> {
    let key = key::parse(&options.key, options.at.hex)?;
    let (target, mut sink) = Target::open(&options.file, options.force)?;
    if target.is_stdout() && context.json {
        return Err(Failure::usage("--json and an object cannot both go to standard output"));
    }
    let bar = Bar::new(context, &options.key, None);
    let (progress, total) = (bar.progress.clone(), bar.total());
    let got = with_session(&options.at, context, async move |session| {
        let Some(object) = session.open(&key).await? else { return Ok(None) };
        let pieces = match &object {
            Object::Value(_) => 0,
            Object::Long(manifest) => manifest.pieces(),
        };
        let bytes = object.bytes();
        total.set(bytes);
        let mut write = |part: &[u8]| {
            progress.add(part.len() as u64);
            sink.write_all(part)
        };
        session.read(&key, object, &mut write).await?;
        sink.flush()?;
        Ok(Some((bytes, pieces)))
    });
    drop(bar);
    let (bytes, pieces) = match got? {
        Ok(Some(got)) => got,
        Ok(None) => return Err(no_key(&key, options.at.hex)),
        // A reader that closed its end needs no more bytes; this is not a failure.
        Err(Error::Stream(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(Report::default());
        }
        Err(Error::Stream(error)) => return Err(cannot_write(&options.file, &error)),
        Err(error) => return Err(error.into()),
    };
    let to_stdout = target.is_stdout();
    target.finish()?;
    let mut result = key::describe(&key);
    result["bytes"] = bytes.into();
    result["pieces"] = pieces.into();
    if to_stdout {
        return Ok(Report::new("", result));
    }
    result["file"] = options.file.as_str().into();
    Ok(Report::new(format!("{}: {}\n", options.file, size(bytes)), result))
}

fn exists(options: &Keys, context: &Context) -> Result<Report, Failure> {
    let is_hex = options.at.hex;
    let keys = options.keys.iter().map(|text| key::parse(text, is_hex));
    let keys = keys.collect::<Result<Vec<Key>, Failure>>()?;
    let asked = keys.clone();
    let found = with_session(&options.at, context, async move |session| {
        let mut found = Vec::with_capacity(asked.len());
        for key in &asked {
            found.push(session.exists(key).await?);
        }
        Ok(found)
    })??;
    let (mut lines, mut described, mut warnings) = (String::new(), Vec::new(), Vec::new());
    for (key, exists) in keys.iter().zip(found) {
        let shown = key::shown(key, is_hex);
        let mut one = key::describe(key);
        one["exists"] = exists.into();
        described.push(one);
        match exists {
            true => lines += &format!("{shown}: exists\n"),
            false => warnings.push(format!("{shown}: does not exist")),
        }
    }
    Ok(Report::new(lines, json!({ "keys": described })).with_warnings(warnings))
}

fn ls(options: &Ls, context: &Context) -> Result<Report, Failure> {
    let (is_hex, all) = (options.at.hex, options.all);
    let prefix = key::bytes(options.prefix.as_deref().unwrap_or(""), is_hex)?;
    let listed = with_session(&options.at, context, async move |session| {
        let wanted = |key: &Key| key.as_bytes().starts_with(&prefix) && (all || !is_piece(key));
        session.keys(wanted).await
    })??;
    let text: String = listed.iter().map(|key| key::shown(key, is_hex) + "\n").collect();
    let text = if listed.is_empty() { "no keys\n".to_owned() } else { text };
    let keys: Vec<Value> = listed.iter().map(key::describe).collect();
    Ok(Report::new(text, json!({ "keys": keys })))
}

fn rm(options: &Keys, context: &Context) -> Result<Report, Failure> {
    let is_hex = options.at.hex;
    let remove = |text: &String| {
        let key = key::parse(text, is_hex)?;
        let delete = async move |session: &Session| session.delete_object(&key).await;
        match with_session(&options.at, context, delete)?? {
            true => Ok(Report::new(format!("{text}: deleted\n"), key::describe(&key))),
            false => Err(no_key(&key, is_hex)),
        }
    };
    match &options.keys[..] {
        [key] => remove(key),
        keys => each_item(keys, context, remove),
    }
}

fn flush(at: &Where, context: &Context) -> Result<Report, Failure> {
    let flush = async |session: &Session| {
        session.flush().await?;
        Ok(session.address().to_string())
    };
    let url = with_session(at, context, flush)??;
    let text = format!("{}: everything stored before is durable\n", context.shown(&url));
    Ok(Report::new(text, json!({ "url": url })))
}

fn info(at: &Where, context: &Context) -> Result<Report, Failure> {
    let info = with_session(at, context, async |session| session.info().await)??;
    let url = info.address.to_string();
    let keys_max = match info.keys_max {
        0 => "no limit".to_owned(),
        keys => grouped(keys.into()),
    };
    let used = percent(info.used_bytes, info.bytes);
    let text = pairs(&[
        ("drive", context.shown(&url)),
        ("namespace", info.nsid.to_string()),
        ("size", exact_size(info.bytes)),
        ("used", format!("{} ({used})", size(info.used_bytes))),
        ("longest value", size(info.value_bytes_max.into())),
        ("longest key", counted(info.key_bytes_max.into(), "byte")),
        ("most keys", keys_max),
    ]);
    let result = json!({
        "url": url,
        "nsid": info.nsid,
        "bytes": info.bytes,
        "used_bytes": info.used_bytes,
        "value_bytes_max": info.value_bytes_max,
        "key_bytes_max": info.key_bytes_max,
        "keys_max": info.keys_max,
    });
    Ok(Report::new(text, result))
}

/// Runs `body` on one core that is connected to the namespace.
fn with_session<T: Send + 'static>(
    at: &Where,
    context: &Context,
    body: impl AsyncFnOnce(&Session) -> Result<T, Error> + Send + 'static,
) -> Result<Result<T, Error>, Failure> {
    let address = address(at, context)?;
    let settings = Settings { options: context.options()?, ..Settings::default() };
    let done = csd_reactor::block_on(&runtime(), move || async move {
        let session = Session::connect(&address, &settings).await.map_err(Failure::from)?;
        let done = body(&session).await;
        session.disconnect().await;
        Ok(done)
    });
    done.map_err(Failure::run)?
}

/// Returns the address of the drive to talk to.
fn address(at: &Where, context: &Context) -> Result<Address, Failure> {
    if let Some(which) = &at.drive {
        return address_of(which, context);
    }
    match &ArrayFile::load(context.array_path())?.drives[..] {
        [only] => address_of(&only.name, context),
        drives => {
            let count = drives.len();
            let why = format!("the array has {count} drives: say which one with --drive NAME");
            Err(Failure::usage(why))
        }
    }
}

/// Turns the two statuses of a conditional Store into wrong use that names the key.
fn named(key: &Key, is_hex: bool, error: Error) -> Failure {
    match error.status() {
        Some(Status::KEY_EXISTS) => {
            Failure::usage(format!("key {} exists already", key::shown(key, is_hex)))
        }
        Some(Status::KEY_DOES_NOT_EXIST) => no_key(key, is_hex),
        _ => error.into(),
    }
}

fn no_key(key: &Key, is_hex: bool) -> Failure {
    Failure::usage(format!("there is no key {}", key::shown(key, is_hex)))
}
