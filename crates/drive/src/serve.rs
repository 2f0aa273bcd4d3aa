//! Serves a drive, from opening the medium to the last answer.
//!
//! Invariants: connections are accepted when every core has started; on a stop request the drive
//! takes no new connections or commands, answers outstanding ones, and ends.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use csd_kvlog::format::Split;
use csd_reactor::{
    Class, CoreId, Endpoint, JoinHandle, Listener, spawn, stop_requested, yield_now,
};

use crate::backend_choice;
use crate::config::Config;
use crate::drive::open;
use crate::error::Error;
use crate::life;
use crate::log::{Level, Log};
use crate::metrics;
use crate::side::Side;
use crate::transport::accept::{accept, accept_on};
use crate::wait_until_free::wait_until_free;

/// Facts about a drive that hosts can connect to.
#[derive(Clone, Debug)]
pub struct Started {
    /// Address that it listens on, the first of several.
    pub address: SocketAddr,
    /// Description of its medium, such as direct I/O on or off.
    pub media: String,
}

/// `EAFNOSUPPORT` of Linux, which the standard library has no name for.
const AF_NOT_SUPPORTED: i32 = 97;

type Ready = Mutex<Option<Box<dyn FnOnce(&Started) + Send>>>;

async fn first_core(config: &Config, ready: &Ready) -> Result<(), Error> {
    let split = Split {
        kv_percent: config.kv_percent,
        reserve_percent: config.reserve_percent,
        block_bytes: config.block_bytes,
    };
    let log = &config.log;
    let (listeners, addresses) = listen_all(log, "--listen", &config.listen).await?;
    let inside = match config.inside.as_deref() {
        Some(path) => Some(listen(log, "--inside", path).await?),
        None => None,
    };
    let scraped = match &config.metrics[..] {
        [] => Vec::new(),
        wanted => listen_all(log, "--metrics", wanted).await?.0,
    };
    let (media, is_new) = life::open_media(config, &split).await?;
    let mut shared = open(media, is_new, &config.nqn, &split, &config.resources).await?;
    let alone = Arc::get_mut(&mut shared).expect("it was made just now");
    alone.log = config.log.clone();
    alone.access = config.access.clone();
    alone.host_limits = config.host_limits;
    if let Some(bytes_per_s) = config.scrub_bytes_per_s {
        alone.services.begin_scrub(bytes_per_s);
    }
    if let Some(model) = &config.throttle {
        alone.throttle.set(model.clone());
    }
    life::start_all(&shared).await?;
    let mut listeners = listeners.into_iter();
    let first = listeners.next().expect("there is one");
    let mut accepting = vec![spawn(Class::System, accept(first, Arc::clone(&shared)))];
    accepting.extend(listeners.map(|listener| {
        spawn(Class::System, accept_on(Side::Outside, listener, Arc::clone(&shared)))
    }));
    if let Some(listener) = inside {
        shared.serve_inside();
        let accept = accept_on(Side::Inside, listener, Arc::clone(&shared));
        accepting.push(spawn(Class::System, accept));
    }
    for listener in scraped {
        shared.metrics.measure();
        drop(spawn(Class::System, metrics::serve(listener, Arc::clone(&shared))));
    }
    // A signal drains the drive as soon as its address is known.
    let stop = spawn(Class::System, stop_requested());
    yield_now().await;
    life::log_start(&shared, &addresses);
    let ready = ready.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(ready) = ready {
        ready(&Started { address: addresses[0], media: shared.media.note().to_owned() });
    }
    stop.await;
    accepting.iter().for_each(JoinHandle::abort);
    life::drain(&shared, config.drain).await
}

/// Listens at all addresses that this machine has; returns them with the ports that were chosen.
async fn listen_all(
    log: &Log,
    option: &'static str,
    wanted: &[SocketAddr],
) -> Result<(Vec<Listener>, Vec<SocketAddr>), Error> {
    let (mut listeners, mut addresses) = (Vec::new(), Vec::<SocketAddr>::new());
    let mut missing = None;
    for address in wanted {
        let mut address = *address;
        if let Some(first) = addresses.first().filter(|_| address.port() == 0) {
            address.set_port(first.port());
        }
        match listen(log, option, address).await {
            Ok(listener) => {
                let bound = listener.local_addr();
                addresses.push(bound.map_err(|error| Error::Runtime(error.into()))?);
                listeners.push(listener);
            }
            // A name may have addresses of a family that is switched off here.
            Err(error @ Error::Listen { .. }) if is_not_here(&error) => {
                let fields = [("address", address.to_string())];
                log.write(Level::Warn, "this machine does not have an address", &fields);
                missing = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    match missing {
        Some(error) if listeners.is_empty() => Err(error),
        _ if listeners.is_empty() => Err(Error::Usage(format!("{option} names no address"))),
        _ => Ok((listeners, addresses)),
    }
}

fn is_not_here(error: &Error) -> bool {
    use std::io::ErrorKind::{AddrNotAvailable, Unsupported};
    matches!(error, Error::Listen { source, .. }
        if matches!(source.kind(), AddrNotAvailable | Unsupported)
            || source.raw_os_error() == Some(AF_NOT_SUPPORTED))
}

/// Listens at an address, waiting for another process that may be about to release it.
async fn listen(
    log: &Log,
    option: &'static str,
    address: impl Into<Endpoint>,
) -> Result<Listener, Error> {
    let address = &address.into();
    let bind = async || {
        Listener::bind(address).map_err(|source| {
            let address = address.clone();
            Error::Listen { option, address, source }
        })
    };
    wait_until_free(log, bind).await
}

/// Serves a drive until the process is asked to stop; calls `ready` with the address once hosts
/// can connect.
///
/// # Errors
/// When the drive cannot be opened or served.
pub fn serve(
    config: &Config,
    ready: impl FnOnce(SocketAddr) + Send + 'static,
) -> Result<(), Error> {
    serve_with(config, move |started: &Started| ready(started.address))
}

/// As [`serve`], and calls `ready` with all facts.
///
/// # Errors
/// When the drive cannot be opened or served.
pub fn serve_with(
    config: &Config,
    ready: impl FnOnce(&Started) + Send + 'static,
) -> Result<(), Error> {
    let runtime = csd_reactor::Config {
        backend: backend_choice::choose(config.backend, &config.media, &config.log),
        cores: config.cores.max(1),
        spin_us: config.spin_us,
        name: "drive".into(),
        ..csd_reactor::Config::default()
    };
    let config = config.clone();
    let ready: Arc<Ready> = Arc::new(Mutex::new(Some(Box::new(ready))));
    let main = move |core: CoreId| {
        let (config, ready) = (config.clone(), Arc::clone(&ready));
        async move {
            if core == CoreId(0) {
                let result = first_core(&config, &ready).await;
                life::end_others();
                return result;
            }
            life::other_core().await;
            Ok(())
        }
    };
    let results = csd_reactor::run(&runtime, main).map_err(|error| Error::Runtime(error.into()))?;
    results.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use csd_reactor::block_on;

    use super::*;

    #[test]
    fn an_address_whose_user_ends_is_waited_for_and_the_log_says_so() {
        block_on(&csd_reactor::Config::default(), || async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("inside");
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = tcp.local_addr().unwrap();
            // Users in the order in which they end: the drive waits for one after the other.
            let users: [Box<dyn Send>; 2] =
                [Box::new(UnixListener::bind(&path).unwrap()), Box::new(tcp)];
            let users = Arc::new(Mutex::new(Vec::from(users)));
            let left = Arc::clone(&users);
            let log = Log::new(Level::Warn, move |record| {
                assert!(record.event.starts_with("waiting for the address"), "{record:?}");
                drop(left.lock().unwrap().pop().expect("one wait for each user"));
            });
            let listener = listen(&log, "--listen", address).await.unwrap();
            assert_eq!(listener.local_addr().unwrap(), address);
            listen(&log, "--inside", &*path).await.unwrap();
            assert!(users.lock().unwrap().is_empty());
            // Another error is one at once.
            let gone = folder.path().join("no folder/inside");
            let error = listen(&log, "--inside", &*gone).await.err().unwrap().to_string();
            assert!(error.contains("choose another address with --inside"), "{error}");
        })
        .unwrap();
    }
}
