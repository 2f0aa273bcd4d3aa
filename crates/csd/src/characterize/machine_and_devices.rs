//! Parts of a profile that are not measured: the machine, the devices, and notes for people.
//!
//! Measures nothing. Invariant: device names are unique and valid in profiles.

use csd_measure::characterize::{About, Machine, Watts};
use csd_measure::energy::Energies;
use csd_measure::machine;

use super::intake::HostIngest;
use super::target::{Kind, Surveyed, Target};
use crate::cli::characterize::{Characterize, parse_name};
use crate::clock;

/// Describes the machine and its drives. `united` is true if all drives are one device in the
/// profile.
pub(super) fn machine(
    options: &Characterize,
    target: &Target,
    united: bool,
    ingest: &HostIngest,
    energies: &Energies,
) -> Machine {
    let mut notes = vec![
        "wall clock; drives and host take turns in each repetition".to_owned(),
        energies.words.clone(),
    ];
    match &target.kind {
        Kind::Started(_) => notes.push("drive and host share this machine's cores".to_owned()),
        Kind::Array(_) => notes.push("data spread over all drives, each read by itself".to_owned()),
        Kind::Named { write: false } => notes.push("data as it lay on the drive".to_owned()),
        Kind::Named { write: true } => {}
    }
    notes.extend(ingest.note.clone());
    Machine {
        text: machine::text(),
        date: clock::utc()[..10].to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        note: Some(notes.join("; ")),
        cores: machine::cores() as u64,
        dram_bytes: machine::memory_bytes(),
        ingest_bw: ingest.bandwidth,
        devices: devices(&options.device, target, united),
        watts: Watts { core: options.core_watts, drive: options.drive_watts },
    }
}

fn devices(name: &str, target: &Target, united: bool) -> Vec<About> {
    let drives: Vec<&str> = target.drives.iter().map(|drive| drive.name.as_str()).collect();
    if !united {
        let names = device_names(name, &drives).into_iter().zip(&target.drives);
        return names.map(|(name, drive)| about(name, target, drive)).collect();
    }
    let mut one = about(name.to_owned(), target, &target.drives[0]);
    if let [_, _, ..] = drives[..] {
        let alike = format!("{} drives that do not differ: {}", drives.len(), drives.join(", "));
        one.note = one.note.map(|note| format!("{note}; {alike}"));
    }
    vec![one]
}

fn about(name: String, target: &Target, drive: &Surveyed) -> About {
    let note = format!("{}; 1 MiB pieces", drive.survey.model);
    match &target.kind {
        // The drive ends with this command, so it has no target; its size depends only on the
        // working sets.
        Kind::Started(started) => About {
            name,
            target: None,
            note: Some(format!("{note}; media: {}", started.media)),
            cores: Some(started.cores as u64),
            capacity_bytes: None,
        },
        Kind::Array(_) | Kind::Named { .. } => About {
            name,
            target: Some(drive.url.clone()),
            note: Some(note),
            cores: None,
            capacity_bytes: Some(drive.survey.block.1),
        },
    }
}

/// Returns the device names of drives that differ: `NAME-DRIVE`, or `NAME-NUMBER` if a profile does
/// not allow one of those.
fn device_names(name: &str, drives: &[&str]) -> Vec<String> {
    let named: Vec<_> = drives.iter().map(|drive| format!("{name}-{drive}")).collect();
    let sound = |name: &String| parse_name(name).is_ok();
    match named.iter().all(sound) {
        true => named,
        false => (0..drives.len()).map(|place| format!("{name}-{place}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_that_differ_have_names_that_profiles_allow() {
        assert_eq!(device_names("drive", &["d0", "d1"]), ["drive-d0", "drive-d1"]);
        assert_eq!(device_names("x", &["d0", "Rack 3"]), ["x-0", "x-1"]);
    }
}
