//! `csd drive serve`.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use csd_drive::compute::Admission;
use csd_drive::dedup;
use csd_drive::transport::budget::BYTES_MIN;
use csd_drive::{Access, Config, HostLimits, MediaKind, Resources};
use csd_initiator::Address;
use csd_kernels::program::{Engine, Limits};
use csd_nvme::auth::Offer;
use csd_nvme::vendor::{NAMESPACES, NSID_MEMORY};
use csd_os::os_folder::remove_if_there;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::cli::program::Allowed;
use crate::cli::{Serve, parse_nqn};
use crate::context::Context;
use crate::group_shares::GroupShares;
use crate::log;
use crate::log_file::LogFile;
use crate::report::{self, Failure, Report};

/// Number of descriptors other than connections.
const OTHER_DESCRIPTORS: u64 = 128;
/// Fewest connections: an admin queue and an I/O queue.
const CONNECTIONS_MIN: u64 = 2;

/// Default share of the key-value namespaces in new media, percent.
pub(crate) const KV_PERCENT: u8 = 50;

/// Longest URL of a drive, bytes.
const READY_BYTES: usize = 1024;

/// Longest wait for the log to be written at the end.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Serves until SIGTERM, SIGINT or SIGHUP.
pub(crate) fn serve(options: &Serve, context: &Context) -> Result<Report, Failure> {
    if options.session {
        let cannot = |error| Failure::run(format!("cannot lead a session: {error}"));
        csd_reactor::lead_session().map_err(cannot)?;
    }
    if let Some(parent) = options.parent {
        csd_reactor::end_with_parent(parent).map_err(Failure::run)?;
    }
    let access = access(options, context)?;
    let shares = GroupShares::of_this_process(options.tuning.cores);
    if let Some(shares) = &shares {
        report::print_error(&format!("note: {}", shares.text(&options.tuning)));
    }
    let host_limits = host_limits(options, shares.as_ref())?;
    let target: Box<dyn Write + Send> = match &options.log_file {
        None => Box::new(std::io::stderr()),
        Some(path) => Box::new(
            LogFile::open(path, options.tuning.log_size, options.tuning.log_files)
                .map_err(|error| Failure::os(path.display(), &error))?,
        ),
    };
    let (log, lines) = log::sink(options.tuning.log, options.tuning.log_level, target)
        .map_err(|error| Failure::run(format!("cannot log: {error}")))?;
    let media = match options.media.as_os_str() {
        memory if memory == "memory" => MediaKind::Memory,
        path => MediaKind::File(PathBuf::from(path)),
    };
    let config = Config {
        listen: options.listen.0.clone(),
        inside: options.inside.clone(),
        nqn: options.nqn.clone(),
        access,
        host_limits,
        kv_percent: options.tuning.kv.unwrap_or(KV_PERCENT),
        reserve_percent: options.tuning.reserve,
        block_bytes: options.tuning.block,
        resources: resources(options, shares.as_ref())?,
        cores: options.tuning.cores.into(),
        backend: options.tuning.backend,
        spin_us: options.tuning.spin,
        media,
        salvage: options.salvage,
        size_bytes: options.size.unwrap_or(0),
        direct: options.tuning.direct.into(),
        metrics: options.tuning.metrics.clone().map_or_else(Vec::new, |all| all.0),
        scrub_bytes_per_s: options.scrub,
        throttle: options.pace.as_ref().map(crate::pace::model).transpose()?,
        log,
        drain: Duration::from_secs(options.tuning.drain.into()),
    };
    let (json, quiet) = (context.json, context.quiet);
    let nqn = options.nqn.clone();
    let ready_file = options.ready_file.as_deref().map(ReadyFile::reserve).transpose()?;
    let inside = options.inside.as_deref().map(|path| Address::new(path, &nqn).to_string());
    let seen = seen_by_hosts(&config.resources);
    let served = csd_drive::serve_with(&config, move |started| {
        let url = format!("nvme+tcp://{}/{nqn}", started.address);
        announce(&url, inside.as_deref(), &started.media, &seen, (json, quiet));
        if let Some(ready) = ready_file {
            ready.finish(&url);
        }
    });
    // The process ends even if nobody reads its log.
    lines.flush(LAST_LINES);
    match served {
        Ok(()) => Ok(Report::new("", Value::Null)),
        Err(error @ csd_drive::Error::Usage(_)) => Err(Failure::usage(error)),
        Err(error) => Err(Failure::run(error)),
    }
}

/// Returns the limits for connections and transfer memory. Raises the process's limit of
/// descriptors accordingly.
fn host_limits(options: &Serve, shares: Option<&GroupShares>) -> Result<HostLimits, Failure> {
    let usual = shares.map_or(0, |shares| shares.transfer_bytes);
    let transfer_memory_bytes = options.tuning.transfer_memory.unwrap_or(usual);
    if options
        .tuning
        .transfer_memory
        .is_some_and(|bytes| bytes < BYTES_MIN * u64::from(options.tuning.cores))
    {
        let least = BYTES_MIN >> 20;
        return Err(Failure::usage(format!("--transfer-memory: a core needs at least {least}M")));
    }
    let mut connections = u64::from(options.tuning.connections);
    let wanted = connections + OTHER_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        let maximum = limit.maximum;
        let current = maximum.map_or(wanted, |maximum| wanted.min(maximum));
        let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum });
        let current = if raised.is_ok() { current } else { limit.current.unwrap_or(current) };
        if current < wanted {
            connections = current.saturating_sub(OTHER_DESCRIPTORS).max(CONNECTIONS_MIN);
            report::print_error(&format!(
                "warning: this process may open {current} files (RLIMIT_NOFILE): {connections} \
                 connections at most, not {}; raise the limit (ulimit -Hn, LimitNOFILE=)",
                options.tuning.connections
            ));
        }
    }
    let connections = usize::try_from(connections).unwrap_or(usize::MAX);
    Ok(HostLimits { connections, transfer_memory_bytes })
}

/// Returns which hosts may connect, and how they authenticate.
fn access(options: &Serve, context: &Context) -> Result<Access, Failure> {
    let mut hosts = options.allow.clone();
    if let Some(path) = &options.allow_file {
        let cannot = |why: String| Failure::usage(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| Failure::os(path.display(), &error))?;
        let before = hosts.len();
        for (index, line) in text.lines().map(str::trim).enumerate() {
            if !line.is_empty() && !line.starts_with('#') {
                let nqn = parse_nqn(line);
                hosts.push(nqn.map_err(|why| cannot(format!("line {}: {why}", index + 1)))?);
            }
        }
        if hosts.len() == before {
            return Err(cannot("it names no host".to_owned()));
        }
    }
    let secrets = context.secrets()?;
    let mut offer = Offer::default();
    if !options.auth_hash.is_empty() {
        offer.hashes.clone_from(&options.auth_hash);
    }
    if !options.auth_group.is_empty() {
        offer.groups.clone_from(&options.auth_group);
    }
    let named = !hosts.is_empty() || !secrets.is_empty();
    let beyond = options.listen.0.iter().find(|address| !address.ip().is_loopback());
    if let Some(address) = beyond.filter(|_| !options.allow_any_host && !named) {
        return Err(Failure::usage(format!(
            "{address} is not a loopback address: whoever connects may read and write; say \
             --secrets, --allow or --allow-any-host"
        )));
    }
    Ok(Access { hosts, any_host: options.allow_any_host, secrets, offer })
}

/// Returns the engines for programs that hosts load, as far as this build has them.
#[allow(clippy::unnecessary_wraps, unused_mut)] // a build without them has none, and no failure
fn engines() -> Result<Vec<Arc<dyn Engine>>, Failure> {
    let mut engines: Vec<Arc<dyn Engine>> = Vec::new();
    #[cfg(feature = "wasm")]
    {
        let wasm = csd_wasm::Wasm::new();
        let wasm = wasm.map_err(|why| Failure::run(format!("WebAssembly: {why}")))?;
        engines.push(Arc::new(wasm));
    }
    #[cfg(feature = "query")]
    engines.push(Arc::new(csd_query::Substrait));
    Ok(engines)
}

/// Returns the drive's resources other than its medium.
fn resources(options: &Serve, shares: Option<&GroupShares>) -> Result<Resources, Failure> {
    let programs = &options.tuning.programs;
    let mut digests = Vec::new();
    let mut any = programs.allow_program.is_empty()
        && options.listen.0.iter().all(|one| one.ip().is_loopback());
    for allowed in &programs.allow_program {
        match allowed {
            Allowed::Any => any = true,
            Allowed::Digest(digest) => digests.push(*digest),
        }
    }
    Ok(Resources {
        expose: options.expose.into(),
        mdts: options.transfer_max,
        kv_index: options.tuning.kv_index.into(),
        index_memory_bytes: options.tuning.index_memory.or(shares.map(|shares| shares.index_bytes)),
        volatile_cache: options.tuning.volatile_cache,
        memory_bytes: options.tuning.memory,
        dedup: options.tuning.dedup.map(|chunk_bytes| dedup::Options {
            chunk_bytes,
            memory_bytes: options.tuning.dedup_memory,
            share: options.tuning.dedup_share,
        }),
        policy: options.tuning.policy,
        engines: engines()?,
        admission: if any { Admission::Any } else { Admission::Digests(digests) },
        limits: Limits {
            memory_bytes: programs.program_memory,
            ..Limits::for_s(programs.program_time)
        },
        tunnel: options.tunnel.options().map_err(Failure::usage)?,
        peers: options.peers.as_deref().map(crate::peers::directory).transpose()?,
        shared_compute: programs.shared_compute,
        kv_store: None,
    })
}

/// Returns the number and the kind of each namespace that hosts see.
fn seen_by_hosts(resources: &Resources) -> Vec<(u32, &'static str)> {
    let has_memory = resources.memory_bytes > 0;
    let is_seen = |nsid| resources.expose.has(nsid) && (nsid != NSID_MEMORY || has_memory);
    NAMESPACES.into_iter().filter(|&(nsid, _)| is_seen(nsid)).collect()
}

/// Prints the URLs of the drive and of the namespaces that hosts see.
fn announce(
    url: &str,
    inside: Option<&str>,
    media: &str,
    seen: &[(u32, &str)],
    (json, quiet): (bool, bool),
) {
    if json {
        let object = Report::new("", json!({ "url": url, "inside": inside, "media": media }));
        report::print_json("drive serve", &Ok(object));
    } else if !quiet {
        let lines = seen.iter().map(|(nsid, what)| format!("  {what:<8} {url}?nsid={nsid}\n"));
        let inside = inside.map_or_else(String::new, |url| format!("  inside   {url}\n"));
        let lines = lines.collect::<String>() + &inside;
        report::print(&format!("serving {url}\n{lines}  media    {media}\n"));
    }
}

/// A ready file that appears under its name only when it is complete; its room is taken before the
/// drive starts, so that a full disk ends the start and not the wait for it.
struct ReadyFile {
    path: PathBuf,
    temporary: PathBuf,
    file: Option<File>,
}

impl ReadyFile {
    fn reserve(path: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::os(format!("ready file {}", path.display()), &error);
        // One name, so that a start that is killed leaves one file at most.
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        // Created exclusively, since a link of this name could lead anywhere.
        remove_if_there(&temporary).map_err(failed)?;
        let file = File::create_new(&temporary).map_err(failed)?;
        let mut ready = Self { path: path.to_owned(), temporary, file: Some(file) };
        let spaces = [b' '; READY_BYTES];
        let written = ready.file.as_mut().map_or(Ok(()), |file| file.write_all(&spaces));
        written.map_err(failed)?;
        Ok(ready)
    }

    /// Writes the drive's URL; a failure is said on standard error.
    fn finish(mut self, url: &str) {
        if let Err(error) = self.write(url) {
            report::print_error(&format!("warning: ready file {}: {error}", self.path.display()));
        }
    }

    fn write(&mut self, url: &str) -> std::io::Result<()> {
        if let Some(file) = &self.file {
            file.write_all_at(url.as_bytes(), 0)?;
            file.set_len(url.len() as u64)?;
            std::fs::rename(&self.temporary, &self.path)?;
        }
        self.file = None;
        Ok(())
    }
}

impl Drop for ReadyFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _gone = remove_if_there(&self.temporary);
        }
    }
}
