//! Serves a drive, from opening the medium to the last answer.
//!
//! Invariants: connections are accepted when every core has started; on a stop request the drive
//! takes no new connections or commands, answers outstanding ones, and ends.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use csd_reactor::{
    Class, CoreId, Endpoint, JoinHandle, Listener, spawn, stop_requested, yield_now,
};

use crate::config::Config;
use crate::drive::{open, start_all};
use crate::error::Error;
use crate::format::Split;
use crate::life;
use crate::metrics;
use crate::side::Side;
use crate::transport::accept::{accept, accept_on};

/// Facts about a drive that hosts can connect to.
#[derive(Clone, Debug)]
pub struct Started {
    /// Address that it listens on.
    pub address: SocketAddr,
    /// Description of its medium, such as direct I/O on or off.
    pub media: String,
}

type Ready = Mutex<Option<Box<dyn FnOnce(&Started) + Send>>>;

async fn first_core(config: &Config, ready: &Ready) -> Result<(), Error> {
    let split = Split {
        kv_percent: config.kv_percent,
        reserve_percent: config.reserve_percent,
        block_bytes: config.block_bytes,
    };
    let listener = listen("--listen", config.listen)?;
    let address = listener.local_addr().map_err(|error| Error::Runtime(error.into()))?;
    let inside = config.inside.as_deref().map(|path| listen("--inside", path)).transpose()?;
    let scraped = config.metrics.map(|address| listen("--metrics", address)).transpose()?;
    let (media, is_new) = life::open_media(config, &split).await?;
    let mut shared = open(media, is_new, &config.nqn, &split, &config.resources).await?;
    let alone = Arc::get_mut(&mut shared).expect("it was made just now");
    alone.log = config.log.clone();
    alone.access = config.access.clone();
    alone.host_limits = config.host_limits;
    if let Some(model) = &config.throttle {
        alone.throttle.set(model.clone());
    }
    start_all(&shared).await?;
    let mut accepting = vec![spawn(Class::System, accept(listener, Arc::clone(&shared)))];
    if let Some(listener) = inside {
        shared.serve_inside();
        let accept = accept_on(Side::Inside, listener, Arc::clone(&shared));
        accepting.push(spawn(Class::System, accept));
    }
    if let Some(listener) = scraped {
        shared.metrics.measure();
        drop(spawn(Class::System, metrics::serve(listener, Arc::clone(&shared))));
    }
    // A signal drains the drive as soon as its address is known.
    let stop = spawn(Class::System, stop_requested());
    yield_now().await;
    life::log_start(&shared, address);
    let ready = ready.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(ready) = ready {
        ready(&Started { address, media: shared.media.note().to_owned() });
    }
    stop.await;
    accepting.iter().for_each(JoinHandle::abort);
    life::drain(&shared, config.drain).await
}

fn listen(option: &'static str, address: impl Into<Endpoint>) -> Result<Listener, Error> {
    let address = address.into();
    Listener::bind(&address).map_err(|source| Error::Listen { option, address, source })
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
        backend: config.backend,
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
