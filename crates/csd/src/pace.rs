//! Loads profiles, selects a device, and makes the model that throttles a drive.

use std::path::Path;

use csd_drive::throttle::{Bandwidths, Cost, Model};
use csd_kernels::registry::BUILTIN;
use csd_measure::account;
use csd_measure::profile::{Overlap, Profile};

use crate::report::Failure;

/// Makes a name and the content of csdplan's profile of that name.
macro_rules! shipped {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../python/src/csdplan/profile/shipped/", $name, ".toml")),
        )
    };
}

/// Profiles that come with csdplan and have drives that compute, by name.
const SHIPPED: [(&str, &str); 7] = [
    shipped!("catalina"),
    shipped!("fpga-verifier"),
    shipped!("newport"),
    shipped!("newport-b"),
    shipped!("newport-encode"),
    shipped!("smartssd"),
    shipped!("smartssd-b"),
];

/// Loads a profile and selects a device, as `FILE` or `FILE:DEVICE` names them. A name of a profile
/// that comes with csdplan stands for its file, unless there is a file of that name.
pub(crate) fn load(text: &str) -> Result<(Profile, String), Failure> {
    // A path may have a colon, so the whole text is tried first.
    let (path, device) = match text.rsplit_once(':') {
        Some((path, device)) if !Path::new(text).exists() => (path, Some(device)),
        _ => (text, None),
    };
    let shipped = SHIPPED.into_iter().find(|(name, _)| *name == path && !Path::new(path).exists());
    let read = match shipped {
        Some((_, content)) => content.to_owned(),
        None => std::fs::read_to_string(path).map_err(|error| {
            let names = SHIPPED.map(|(name, _)| name).join(", ");
            Failure::os(format!("profile {path} (a file, or one of {names})"), &error)
        })?,
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_of_csdplan_are_known_by_name() {
        for (name, _) in SHIPPED {
            let (profile, _) = load(name)
                .or_else(|_| load(&format!("{name}:{}", name.trim_end_matches("-b"))))
                .unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
            assert!(!profile.point.is_empty(), "{name}");
        }
        let model = model(&"fpga-verifier".to_owned()).expect("a model");
        let verify = csd_kernels::verify::PROGRAM_ID;
        let (_, cost) = model.programs.iter().find(|(id, _)| *id == verify).expect("verify");
        // The memory of the circuit: 64 bytes a cycle at 300 MHz.
        assert!((cost.compute_ns_per_byte - 1.0 / 19.2).abs() < 1e-3, "{cost:?}");
    }
}
