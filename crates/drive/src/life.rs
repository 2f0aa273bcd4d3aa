//! Start and stop of a drive: opens its medium, and drains its connections.
//!
//! Invariants: a medium that cannot keep the drive's promises is refused before anything is written
//! to it; during the stop no new command begins, and every command that has begun is answered
//! within the time limit.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_kvlog::error::MediaError;
use csd_kvlog::format::{self, Split, Superblock};
use csd_kvlog::media::{Direct, FileMedia, Media, Memory, require_device};
use csd_reactor::{
    Class, CoreId, Notify, backend_name, call, core_count, core_local, post, set_core_local, sleep,
    timeout,
};

use crate::config::{Config, MediaKind};
use crate::drive::{Core, Shared, set_features, start};
use crate::error::Error;
use crate::health;
use crate::log::{Level, Log};
use crate::services;
use crate::services::gate::{self, Gate};
use crate::wait_until_free::wait_until_free;

/// Pause between two looks at how many connections are left.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Opens the medium, and returns true with it if it is new. Waits a while for one that is in use.
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
        let media = wait_until_free(&config.log, || FileMedia::open_read_only(path)).await?;
        return Ok((Media::File(media), false));
    }
    // Checked before the size: a mistyped name must not make a file among devices.
    require_device(path)?;
    if path.metadata().map_or(true, |meta| meta.is_file() && meta.len() == 0) {
        // Impossible sizes are refused before a file is created.
        Superblock::plan(config.size_bytes, split, [0; 16])?;
    }
    let bytes = config.size_bytes;
    let on_zeros = &|written| log_zeros(&config.log, written, bytes);
    let open = |direct| {
        wait_until_free(&config.log, move || FileMedia::open(path, bytes, direct, on_zeros))
    };
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
    // The lock is for one user, and this process still holds it.
    drop(file);
    let (file, _) = open(Direct::Off).await?;
    let file = file.noted("direct I/O off: its blocks are longer than the drive's");
    Ok((Media::File(file), is_new))
}

/// Says at the first and at each further gibibyte that a new medium is written out with zeros.
fn log_zeros(log: &Log, written: u64, bytes: u64) {
    if written.is_multiple_of(1 << 30) {
        let event = "the file system reserves no space: the new medium is written with zeros";
        let mib = |bytes: u64| (bytes >> 20).to_string();
        log.write(Level::Info, event, &[("written_mib", mib(written)), ("of_mib", mib(bytes))]);
    }
}

/// Starts a drive and its services on all cores, from the first one.
///
/// # Errors
/// When the medium fails on any core.
pub async fn start_all(shared: &Arc<Shared>) -> Result<(), Error> {
    shared.media().failures().tell(health::failed);
    for core in 0..core_count() {
        let shared = Arc::clone(shared);
        let there = move || async move { start(shared).await.map(|_| ()) };
        let started = call(CoreId(core), Class::System, there).await;
        started.map_err(|_| Error::Runtime(format!("core {core} is gone").into()))??;
    }
    set_features(shared).await?;
    services::start(shared);
    Ok(())
}

/// Stops a drive: lets every command that has begun end within `limit`, seals the kv log and makes
/// everything durable. Connections close as they fall silent, those of admin queues last because
/// their controllers end with them.
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
    // Commands of other drives that are held back are answered now.
    gate::on_all(Gate::stop);
    if let Some(tunnel) = &shared.tunnel {
        tunnel.close();
    }
    on_all(|core| core.connections.drain_io());
    let mut stopped = Ok(());
    let ended = timeout(limit, all_gone).await;
    shared.log().summarise(true);
    match ended {
        Ok(()) => {
            shared.log().write(Level::Info, "every command was answered", &[]);
            stopped = stop_kv(shared).await;
        }
        Err(_) => {
            let fields = [("connections", open_connections(shared).to_string())];
            shared.log().write(Level::Warn, "gave up waiting for commands in flight", &fields);
        }
    }
    if shared.media().is_read_only() {
        return Ok(());
    }
    stopped?;
    if let Some(epochs) = &shared.segments.epochs {
        // Also if commands are left: what was answered is durable.
        epochs.close(epochs.current()).await?;
    }
    Ok(shared.syncer.sync().await?)
}

/// Seals the kv log on all cores.
async fn stop_kv(shared: &Shared) -> Result<(), MediaError> {
    if shared.media().is_volatile() || shared.media().is_read_only() {
        return Ok(());
    }
    let mut stopped = Ok(());
    for core in 0..core_count() {
        let stop = || async move {
            match core_local::<Core>() {
                Some(core) => core.kv.stop().await,
                None => Ok(()),
            }
        };
        // A core that is gone has no open segment that could still be written.
        stopped = stopped.and(call(CoreId(core), Class::System, stop).await.unwrap_or(Ok(())));
    }
    stopped
}

/// Logs that hosts can connect, and the drive's configuration.
pub(crate) fn log_start(shared: &Shared, addresses: &[SocketAddr]) {
    let addresses: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    let fields = [
        ("address", addresses.join(" ")),
        ("nqn", shared.subsystem.nqn.clone()),
        ("media", shared.media().note().to_owned()),
        ("cores", core_count().to_string()),
        ("backend", backend_name().to_owned()),
    ];
    shared.log().write(Level::Info, "serving", &fields);
    for place in shared.segments.damage() {
        shared.log().write(Level::Error, "damage was passed over", &[("place", place)]);
    }
    for place in shared.segments.damaged_checkpoints() {
        let event = "a checkpoint is damaged: the records were read in its place";
        shared.log().write(Level::Warn, event, &[("place", place)]);
    }
}

fn open_connections(shared: &Shared) -> usize {
    shared.connections.iter().map(|count| count.load(Relaxed)).sum()
}

/// Returns the number of connections that may still answer commands, of admin queues or of the
/// others. Connections that only send their final PDU do not count.
async fn answering(of_admin_queues: bool) -> usize {
    let mut all = 0;
    for core in 0..core_count() {
        let count = move || async move {
            core_local::<Core>().map_or(0, |core| core.connections.count(of_admin_queues))
        };
        all += call(CoreId(core), Class::System, count).await.unwrap_or(0);
    }
    all
}

fn on_all(act: fn(&Core)) {
    for core in 0..core_count() {
        // A core that is gone has no connections.
        let _ = post(CoreId(core), Class::System, move || {
            if let Some(core) = core_local::<Core>() {
                act(&core);
            }
        });
    }
}

/// A signal that ends a core other than the first.
#[derive(Default)]
struct Ended {
    flag: Cell<bool>,
    changed: Notify,
}

impl Ended {
    fn here() -> Rc<Self> {
        core_local::<Self>().unwrap_or_else(|| {
            let ended = Rc::new(Self::default());
            set_core_local(Rc::clone(&ended));
            ended
        })
    }
}

/// Ends every core but the first.
pub(crate) fn end_others() {
    for core in 1..core_count() {
        // A core that is gone has ended.
        let _ = post(CoreId(core), Class::System, || {
            let ended = Ended::here();
            ended.flag.set(true);
            ended.changed.notify_all();
        });
    }
}

/// Runs on a core other than the first until the drive ends.
pub(crate) async fn other_core() {
    let ended = Ended::here();
    while !ended.flag.get() {
        ended.changed.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use csd_reactor::block_on;

    use super::*;
    use crate::log::Log;

    const SIZE_BYTES: u64 = 64 << 20;
    const SPLIT: Split = Split { kv_percent: 50, reserve_percent: 5, block_bytes: 4096 };

    /// Opens a medium that is in use. `on_wait` is called with its user when the log says that the
    /// opening waits. Returns the number of such events.
    fn open_in_use(on_wait: fn(&mut Option<FileMedia>)) -> (usize, Result<bool, Error>) {
        block_on(&csd_reactor::Config::default(), move || async move {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("m");
            let (user, _) =
                FileMedia::open(&path, SIZE_BYTES, Direct::Auto, &|_| ()).await.unwrap();
            let state = Arc::new(Mutex::new((0, Some(user))));
            let seen = Arc::clone(&state);
            let log = Log::new(Level::Warn, move |record| {
                assert!(record.event.starts_with("waiting for the medium"), "{record:?}");
                let (waits, user) = &mut *seen.lock().unwrap();
                *waits += 1;
                on_wait(user);
            });
            // A blank medium: the test is about the wait.
            let config = Config {
                media: MediaKind::File(path),
                size_bytes: SIZE_BYTES,
                log,
                ..Config::default()
            };
            let opened = open_media(&config, &SPLIT).await.map(|(_, is_new)| is_new);
            let waits = state.lock().unwrap().0;
            (waits, opened)
        })
        .unwrap()
    }

    #[test]
    fn a_medium_whose_user_ends_is_waited_for_and_the_log_says_so() {
        let (waits, opened) = open_in_use(|user| drop(user.take()));
        // It was reserved and never formatted.
        assert!(opened.unwrap());
        assert_eq!(waits, 1);
    }

    #[test]
    fn a_medium_that_stays_in_use_is_refused() {
        let (waits, opened) = open_in_use(|_| {});
        assert!(opened.unwrap_err().to_string().contains("in use"));
        assert_eq!(waits, 1);
    }
}
