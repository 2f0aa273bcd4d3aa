//! `csd drive serve`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use csd_drive::namespace::compute::{Admission, Limits};
use csd_drive::{Config, MediaKind, Provision};
use serde_json::{Value, json};

use crate::cli::Serve;
use crate::cli::program::Allowed;
use crate::context::Context;
use crate::log;
use crate::report::{self, Failure, Report};

/// Serves until the process is told to stop.
pub(crate) fn serve(options: &Serve, context: &Context) -> Result<Report, Failure> {
    if !options.listen.ip().is_loopback() && !options.allow_any_host {
        return Err(Failure::usage(format!(
            "{} is not a loopback address, and a drive has no authentication: whoever connects \
             may read and write; say --allow-any-host if that is what you want",
            options.listen
        )));
    }
    let media = match options.media.as_str() {
        "memory" => MediaKind::Memory,
        path => MediaKind::File(PathBuf::from(path)),
    };
    let config = Config {
        listen: options.listen,
        nqn: options.nqn.clone(),
        kv_percent: options.kv,
        reserve_percent: options.reserve,
        block_bytes: options.block,
        provision: provision(options)?,
        cores: options.cores.into(),
        backend: options.backend,
        spin_us: options.spin,
        media,
        size_bytes: options.size.unwrap_or(0),
        direct: options.direct.into(),
        metrics: options.metrics,
        log: log::sink(options.log, options.log_level),
        drain: Duration::from_secs(options.drain.into()),
    };
    let (json, quiet) = (context.json, context.quiet);
    let (nqn, ready_file) = (options.nqn.clone(), options.ready_file.clone());
    let served = csd_drive::serve_told(&config, move |started| {
        let url = format!("nvme+tcp://{}/{nqn}", started.address);
        announce(&url, &started.media, ready_file.as_deref(), json, quiet);
    });
    match served {
        Ok(()) => Ok(Report::new("", Value::Null)),
        Err(error @ csd_drive::Error::Usage(_)) => Err(Failure::usage(error)),
        Err(error) => Err(Failure::run(error)),
    }
}

/// What the drive is given beside its medium.
fn provision(options: &Serve) -> Result<Provision, Failure> {
    let wasm = csd_wasm::Wasm::new();
    let wasm = wasm.map_err(|why| Failure::run(format!("WebAssembly: {why}")))?;
    let programs = &options.programs;
    let mut digests = Vec::new();
    let mut any = programs.allow_program.is_empty() && options.listen.ip().is_loopback();
    for allowed in &programs.allow_program {
        match allowed {
            Allowed::Any => any = true,
            Allowed::Digest(digest) => digests.push(*digest),
        }
    }
    Ok(Provision {
        memory_bytes: options.memory,
        engines: vec![Arc::new(wasm)],
        admission: if any { Admission::Any } else { Admission::Digests(digests) },
        limits: Limits {
            time_ms: u32::from(programs.program_time) * 1000,
            memory_bytes: programs.program_memory,
            ..Limits::default()
        },
    })
}

/// Tells that the drive serves: while it serves, since its report comes only when it has stopped.
fn announce(url: &str, media: &str, ready_file: Option<&Path>, json: bool, quiet: bool) {
    if json {
        let object = Report::new("", json!({ "url": url, "media": media }));
        report::print_json("drive serve", &Ok(object));
    } else if !quiet {
        let lines = [("block", 1), ("kv", 2), ("objects", 3), ("compute", 5)]
            .map(|(what, nsid)| format!("  {what:<8} {url}?nsid={nsid}\n"));
        report::print(&format!("serving {url}\n{}  media    {media}\n", lines.concat()));
    }
    if let Some(path) = ready_file
        && let Err(error) = write_whole(path, url)
    {
        report::complain(&format!("warning: ready file {}: {error}", path.display()));
    }
}

/// A reader sees no file or all of it.
fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}
