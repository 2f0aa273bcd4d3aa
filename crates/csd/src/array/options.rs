//! Options of an array's drives: the requested ones, and those that the array file keeps.
//!
//! Invariant: a drive is started only with options of [`Tuning`], whatever the file says. None of
//! them names a file or another address to listen on.

use std::path::Path;

use csd_kvlog::format::{Split, Superblock};
use csd_store::array::{ArrayFile, DriveOptions, DriveRecord, Words};
use csd_store::extent::UNIT_BYTES;

use crate::cli::tuning::{Tuning, understand};
use crate::cli::{Media, parse_listen};
use crate::drive::KV_PERCENT;
use crate::report::Failure;
use crate::units::size;

/// Share of the key-value namespaces in new media of an array.
const KV: &str = "80%";
/// Options that are fixed when a medium is formatted.
const OF_MEDIA: [&str; 5] = ["kv", "reserve", "block", "size", "media"];

/// Returns the options of a new drive: those of `like`, overridden by the given ones. `before` new
/// drives precede it.
pub(super) fn of_new(
    given: &DriveOptions,
    like: Option<&DriveRecord>,
    before: usize,
) -> Result<DriveOptions, Failure> {
    let mut options = match like {
        Some(like) => kept(like),
        None => DriveOptions::from([("kv".to_owned(), Words::One(KV.to_owned()))]),
    };
    // Two drives cannot listen at one address.
    options.remove("metrics");
    options.extend(at_place(given, before)?);
    Ok(options)
}

/// Returns the options of one of several drives, of which `before` precede it. Each serves metrics
/// on its own port.
fn at_place(given: &DriveOptions, before: usize) -> Result<DriveOptions, Failure> {
    let mut options = given.clone();
    if let Some(Words::One(metrics)) = options.get_mut("metrics") {
        let addresses = parse_listen(metrics).map_err(Failure::usage)?.0;
        // A name stays one, so that every start takes all addresses that it has then.
        if let (Some((host, _)), [first, ..]) = (metrics.rsplit_once(':'), &addresses[..])
            && first.port() != 0
        {
            let port = u16::try_from(before).ok().and_then(|n| first.port().checked_add(n));
            let beyond = || Failure::usage("--metrics: there are not as many ports behind it");
            *metrics = format!("{host}:{}", port.ok_or_else(beyond)?);
        }
    }
    Ok(options)
}

/// Returns all options that the array file keeps for a drive.
fn kept(drive: &DriveRecord) -> DriveOptions {
    let mut options = drive.options.clone();
    if let Some(cores) = drive.cores {
        options.insert("cores".to_owned(), Words::Number(cores as u64));
    }
    options
}

/// Returns the command-line arguments to start a drive with.
///
/// # Errors
/// If the array file has an unknown option, or one with a wrong value.
pub(super) fn arguments(drive: &DriveRecord) -> Result<Vec<String>, Failure> {
    let kept = kept(drive);
    meaning(drive, &kept)?;
    Ok(kept.iter().flat_map(|(name, words)| words.arguments(name)).collect())
}

/// Returns a text of the options' values. Equal texts mean equal options.
fn meaning(drive: &DriveRecord, options: &DriveOptions) -> Result<String, Failure> {
    let tuning = understand(options).map_err(|why| {
        let name = &drive.name;
        Failure::usage(format!("nothing was started: options of drive {name}: {why}"))
    })?;
    Ok(format!("{tuning:?}"))
}

/// Refuses new media of an impossible size, or without space for one unit of blocks.
pub(super) fn leave_blocks(bytes: u64, options: &DriveOptions) -> Result<(), Failure> {
    let tuning = understand(options).map_err(Failure::usage)?;
    let Tuning { kv, reserve: reserve_percent, block: block_bytes, .. } = tuning;
    let kv_percent = kv.unwrap_or(KV_PERCENT);
    let split = Split { kv_percent, reserve_percent, block_bytes };
    match Superblock::plan(bytes, &split, [0; 16]) {
        Ok(plan) if plan.block_length() < UNIT_BYTES => Err(Failure::usage(format!(
            "--kv {kv_percent}% leaves {} of each drive for blocks, and an array needs {}: say \
             less",
            size(plan.block_length()),
            size(UNIT_BYTES),
        ))),
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::usage(error)),
    }
}

/// Options that the user requests for the drives of an existing array.
pub(super) struct Requested<'a> {
    pub(super) size: Option<u64>,
    pub(super) media: Option<Media>,
    pub(super) given: &'a DriveOptions,
}

/// Checks that the array's drives have all requested options.
///
/// # Errors
/// Names the first difference and a remedy.
pub(super) fn check(
    requested: &Requested<'_>,
    file: &ArrayFile,
    path: &Path,
) -> Result<(), Failure> {
    let local = file.drives.iter().filter(|drive| drive.media.is_some());
    for (place, drive) in local.enumerate() {
        if let Some((name, has, wanted)) = difference(requested, drive, place)? {
            let (path, drive) = (path.display(), &drive.name);
            let advice = match &name[..] {
                of_media if OF_MEDIA.contains(&of_media) => {
                    "its medium was made so: leave the option out".to_owned()
                }
                "cores" => {
                    "stop the drive and change `cores` there, or leave the option out".into()
                }
                name => format!(
                    "stop the drive and change `{name}` under [drives.options] there, or leave \
                     the option out"
                ),
            };
            return Err(Failure::usage(format!(
                "nothing was started: array file {path} has {has} for drive {drive}, not \
                 --{name} {wanted}: {advice}"
            )));
        }
    }
    Ok(())
}

/// Returns the first option that differs: its name, the drive's value, and the requested value.
fn difference(
    requested: &Requested<'_>,
    drive: &DriveRecord,
    place: usize,
) -> Result<Option<(String, String, String)>, Failure> {
    if let (Some(wanted), Some(has)) = (requested.size, drive.size_bytes)
        && wanted != has
    {
        return Ok(Some(("size".to_owned(), format!("--size {}", size(has)), size(wanted))));
    }
    let in_memory = drive.is_in_memory();
    if let Some(wanted) = requested.media
        && (wanted == Media::Memory) != in_memory
    {
        let words = |memory| if memory { "memory" } else { "file" };
        let has = format!("--media {}", words(in_memory));
        return Ok(Some(("media".to_owned(), has, words(!in_memory).to_owned())));
    }
    let kept = kept(drive);
    let now = meaning(drive, &kept)?;
    for (name, wanted) in at_place(requested.given, place)? {
        let mut other = kept.clone();
        other.insert(name.clone(), wanted.clone());
        if meaning(drive, &other)? != now {
            let has = kept.get(&name).map_or_else(
                || format!("no `{name}`"),
                |has| has.arguments(&name).join(" ").replacen('=', " ", 1),
            );
            return Ok(Some((name, has, words_text(&wanted))));
        }
    }
    Ok(None)
}

fn words_text(words: &Words) -> String {
    match words {
        Words::Flag(_) => String::new(),
        Words::Number(number) => number.to_string(),
        Words::One(word) => word.clone(),
        Words::Many(words) => words.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, word: &str) -> DriveOptions {
        DriveOptions::from([(name.to_owned(), Words::One(word.to_owned()))])
    }

    fn drive(options: DriveOptions) -> DriveRecord {
        DriveRecord {
            name: "d0".to_owned(),
            url: "nvme+tcp://127.0.0.1:1/nqn.2026-11.io.csdstore:d0".to_owned(),
            media: Some("memory".to_owned()),
            media_uuid: None,
            place: None,
            size_bytes: Some(128),
            cores: Some(2),
            pid: None,
            options,
        }
    }

    #[test]
    fn options_that_mean_the_same_do_not_differ() {
        let drive = drive(one("kv", "80%"));
        let differs = |given: &DriveOptions| {
            let requested = Requested { size: Some(128), media: Some(Media::Memory), given };
            difference(&requested, &drive, 0).unwrap().map(|(name, ..)| name)
        };
        for same in [("kv", "80"), ("cores", "2"), ("memory", "65536K"), ("drain", "5")] {
            assert_eq!(differs(&one(same.0, same.1)), None, "{same:?}");
        }
        for other in [("kv", "50%"), ("cores", "1"), ("memory", "1G"), ("metrics", "127.0.0.1:1")] {
            assert_eq!(differs(&one(other.0, other.1)).as_deref(), Some(other.0));
        }
    }

    #[test]
    fn each_drive_has_a_port_of_its_own_for_metrics() {
        let given = one("metrics", "127.0.0.1:9464");
        let at = |before| of_new(&given, None, before).map(|options| options["metrics"].clone());
        assert_eq!(at(2).unwrap(), Words::One("127.0.0.1:9466".to_owned()));
        assert!(at(60_000).is_err());
        let named = of_new(&one("metrics", "localhost:9464"), None, 1).unwrap();
        assert_eq!(named["metrics"], Words::One("localhost:9465".to_owned()));
        let like = drive(of_new(&given, None, 0).unwrap());
        assert!(!of_new(&DriveOptions::new(), Some(&like), 0).unwrap().contains_key("metrics"));
    }

    #[test]
    fn an_array_file_sets_nothing_but_what_an_array_may() {
        for wrong in [
            one("ready-file", "/etc/x"),
            one("listen", "0.0.0.0:1"),
            one("nqn", "x"),
            one("pace", "/etc/x"),
            one("allow-any-host", ""),
            one("kv", "80% --ready-file=/etc/x"),
            one("cores", "0"),
        ] {
            let mut drive = drive(wrong.clone());
            drive.cores = None;
            let failure = arguments(&drive).expect_err(&format!("{wrong:?}"));
            assert!(failure.message.contains("options of drive d0"), "{}", failure.message);
        }
    }
}
