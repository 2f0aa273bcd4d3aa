//! A drive's beginning and end: opening its medium, and letting go of its hosts.
//!
//! Never: a command. Invariants: a medium that cannot keep the drive's promises is refused before
//! anything is written to it; at the end no new command begins, and one that has begun is answered
//! unless the time for it is over.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_reactor::{
    Class, CoreId, Notify, backend_name, call, core_count, keep, kept, post, sleep, timeout,
};

use crate::config::{Config, MediaKind};
use crate::drive::{Core, Shared};
use crate::error::Error;
use crate::format::{self, Split, Superblock};
use crate::log::Level;
use crate::media::{Direct, FileMedia, Media, Memory};

/// Pause between two looks at how many connections are left.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Opens the medium, and tells whether it is new.
///
/// # Errors
/// When it cannot be opened, holds something else, or its size is impossible.
pub(crate) async fn open_media(config: &Config, split: &Split) -> Result<(Media, bool), Error> {
    let MediaKind::File(path) = &config.media else {
        if config.salvage {
            return Err(Error::Usage("there is nothing to salvage in new memory".to_owned()));
        }
        Superblock::plan(config.size_bytes, split, [0; 16])?;
        return Ok((Media::Memory(Arc::new(Memory::new(config.size_bytes))), true));
    };
    if config.salvage {
        return Ok((Media::File(FileMedia::open_read_only(path).await?), false));
    }
    if path.metadata().map_or(true, |meta| meta.is_file() && meta.len() == 0) {
        // Impossible sizes are refused before a file is made.
        Superblock::plan(config.size_bytes, split, [0; 16])?;
    }
    let open = |direct| FileMedia::open(path, config.size_bytes, direct);
    let (file, is_new) = open(config.direct).await?;
    let block_bytes = match is_new {
        true => split.block_bytes,
        false => format::open(&Media::File(file.clone())).await?.block_bytes(),
    };
    if file.write_unit() <= block_bytes {
        return Ok((Media::File(file), is_new));
    }
    if config.direct == Direct::On {
        let (path, unit) = (path.display(), file.write_unit());
        return Err(Error::Usage(format!(
            "{path}: direct I/O there takes blocks of {unit} bytes, and the drive's have \
             {block_bytes}: use --direct auto"
        )));
    }
    // One user at a time, and that is still us.
    drop(file);
    let (file, _) = open(Direct::Off).await?;
    let file = file.noted("direct I/O off: its blocks are longer than the drive's");
    Ok((Media::File(file), is_new))
}

/// Lets every command that has begun end, within `limit`; then makes all durable. Connections close
/// as they fall silent, those of admin queues last because their controllers end with them.
///
/// # Errors
/// When the last sync fails.
pub async fn drain(shared: &Shared, limit: Duration) -> Result<(), Error> {
    shared.log().write(Level::Info, "asked to stop", &[]);
    let all_gone = async {
        while answering(false).await > 0 {
            sleep(LOOK_EVERY).await;
        }
        on_all(|core| core.connections.drain_all());
        while answering(false).await + answering(true).await > 0 {
            sleep(LOOK_EVERY).await;
        }
    };
    on_all(|core| core.connections.drain_io());
    let ended = timeout(limit, all_gone).await;
    shared.log().summarise();
    match ended {
        Ok(()) => shared.log().write(Level::Info, "every command was answered", &[]),
        Err(_) => {
            let fields = [("connections", open_connections(shared).to_string())];
            shared.log().write(Level::Warn, "gave up waiting for commands in flight", &fields);
        }
    }
    if shared.media().is_read_only() { Ok(()) } else { Ok(shared.media().sync().await?) }
}

/// Tells that hosts can connect, and how the drive runs.
pub(crate) fn told_start(shared: &Shared, address: SocketAddr) {
    let fields = [
        ("address", address.to_string()),
        ("nqn", shared.subsystem.nqn.clone()),
        ("media", shared.media().note().to_owned()),
        ("cores", core_count().to_string()),
        ("backend", backend_name().to_owned()),
    ];
    shared.log().write(Level::Info, "serving", &fields);
    for place in shared.segments.damage() {
        shared.log().write(Level::Error, "damage was passed over", &[("place", place)]);
    }
}

fn open_connections(shared: &Shared) -> usize {
    shared.connections.iter().map(|count| count.load(Relaxed)).sum()
}

/// Connections that may still answer commands, of admin queues or not. One that is only told which
/// rule it broke is not among them.
async fn answering(of_admin_queues: bool) -> usize {
    let mut all = 0;
    for core in 0..core_count() {
        let count = move || async move {
            kept::<Core>().map_or(0, |core| core.connections.count(of_admin_queues))
        };
        all += call(CoreId(core), Class::System, count).await.unwrap_or(0);
    }
    all
}

fn on_all(act: fn(&Core)) {
    for core in 0..core_count() {
        // A core that is gone has no connections.
        let _ = post(CoreId(core), Class::System, move || {
            if let Some(core) = kept::<Core>() {
                act(&core);
            }
        });
    }
}

/// Tells a core other than the first to end.
#[derive(Default)]
struct Ended {
    flag: Cell<bool>,
    told: Notify,
}

impl Ended {
    fn here() -> Rc<Self> {
        kept::<Self>().unwrap_or_else(|| {
            let ended = Rc::new(Self::default());
            keep(Rc::clone(&ended));
            ended
        })
    }
}

/// Has every core but the first end.
pub(crate) fn end_others() {
    for core in 1..core_count() {
        // A core that is gone has ended.
        let _ = post(CoreId(core), Class::System, || {
            let ended = Ended::here();
            ended.flag.set(true);
            ended.told.notify_all();
        });
    }
}

/// The main of a core other than the first.
pub(crate) async fn other_core() {
    let ended = Ended::here();
    while !ended.flag.get() {
        ended.told.notified().await;
    }
}
