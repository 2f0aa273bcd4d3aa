//! Loads profiles, selects a device, and makes the model that throttles a drive.

use std::path::Path;

use csd_drive::throttle::{Bandwidths, Cost, Model};
use csd_kernels::registry::BUILTIN;
use csd_store::account;
use csd_store::profile::{Overlap, Profile};

use crate::report::Failure;

/// Loads a profile and selects a device, as `FILE` or `FILE:DEVICE` names them.
pub(crate) fn load(text: &str) -> Result<(Profile, String), Failure> {
    // A path may have a colon, so the whole text is tried first.
    let (path, device) = match text.rsplit_once(':') {
        Some((path, device)) if !Path::new(text).exists() => (path, Some(device)),
        _ => (text, None),
    };
    let read = std::fs::read_to_string(path);
    let read = read.map_err(|error| Failure::os(format!("profile {path}"), &error))?;
    let profile = Profile::parse(&read)
        .map_err(|faults| Failure::usage(format!("profile {path} is not sound:\n{faults}")))?;
    let names = || profile.device.keys().cloned().collect::<Vec<_>>().join(", ");
    let device = match device {
        Some(device) if profile.device.contains_key(device) => device.to_owned(),
        Some(device) => {
            let why = format!("profile {path} has no device {device:?}: {}", names());
            return Err(Failure::usage(why));
        }
        None => match profile.device.keys().next() {
            Some(only) if profile.device.len() == 1 => only.clone(),
            _ => {
                let why = format!("profile {path} has several devices, name one: {}", names());
                return Err(Failure::usage(why));
            }
        },
    };
    Ok((profile, device))
}

/// Returns the model of a profile's device.
pub(crate) fn model(text: &String) -> Result<Model, Failure> {
    let (profile, name) = load(text)?;
    let device = &profile.device[&name];
    let programs = BUILTIN.into_iter().filter_map(|kernel| {
        let rates = account::drive(&profile, &name, kernel.name())?;
        let cost = Cost {
            load_ns_per_byte: rates.load_s_per_byte * 1e9,
            compute_ns_per_byte: rates.comp_s_per_byte * 1e9,
            pipelined: rates.overlap == Overlap::Pipelined,
        };
        Some((kernel.program_id(), cost))
    });
    let model = Model {
        outside: Bandwidths {
            read_bytes_per_s: device.ext_read_Bps,
            write_bytes_per_s: device.ext_write_Bps,
        },
        inside: Bandwidths {
            read_bytes_per_s: device.int_read_Bps,
            write_bytes_per_s: device.int_write_Bps,
        },
        programs: programs.collect(),
    };
    if model == Model::default() {
        let why = format!("{text}: device {name} has neither bandwidths nor points of a drive");
        return Err(Failure::usage(why));
    }
    Ok(model)
}
