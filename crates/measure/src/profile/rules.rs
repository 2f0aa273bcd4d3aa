//! Rules that tie several keys of one table together; each table's declaration names its rule.

use super::keys::Keys;
use super::{Device, Energy, Overload, OverloadKind, Provenance, Source, Timing, Where};

pub(super) fn device(device: &Device, keys: &mut Keys<'_>) {
    let fastest = device.int_read_Bps.max(device.ext_read_Bps);
    if device.media_bw_Bps.is_some() && device.media_bw_Bps < fastest {
        keys.note_here("media_bw_Bps, expected at least int_read_Bps and ext_read_Bps");
    }
}

pub(super) fn timing(timing: &Timing, keys: &mut Keys<'_>) {
    let Timing { median, p25, p75, n, prov } = *timing;
    in_order(keys, median, p25, p75, n);
    let measured = match prov {
        Some(prov) => prov == Provenance::Measured,
        None => keys.outer_is("prov", Provenance::Measured.word()),
    };
    if measured && (p25, p75, n) == (None, None, None) {
        let why = format!("measured, so p25, p75 and n are expected in {}", keys.name_here());
        // The fault is in the point's table if the value inherits the point's provenance.
        match prov {
            Some(_) => keys.note_here(&why),
            None => keys.note_outer(&why),
        }
    }
}

pub(super) fn energy(energy: &Energy, keys: &mut Keys<'_>) {
    let Energy { median, p25, p75, n, source } = *energy;
    in_order(keys, median, p25, p75, n);
    if source != Source::CpuSeconds && (p25, p75, n) == (None, None, None) {
        keys.note_here("measured, so p25, p75 and n are expected");
    }
}

pub(super) fn overload(overload: &Overload, keys: &mut Keys<'_>) {
    let Overload { kind, memory_bytes, rivals } = *overload;
    let of_memory = kind == OverloadKind::Memory;
    if memory_bytes.is_some() != of_memory || rivals.is_none() != of_memory {
        keys.note_here("expected memory_bytes alone for memory, rivals alone for cpu and io");
    }
    if keys.outer_is("where", Where::Drive.word()) {
        keys.note_outer("an overload, which only host points may have");
    }
}

fn in_order(keys: &mut Keys<'_>, median: f64, p25: Option<f64>, p75: Option<f64>, n: Option<u64>) {
    let why = match (p25, p75, n) {
        (None, None, None) => return,
        (Some(p25), Some(p75), Some(_)) if p25 <= median && median <= p75 => return,
        (Some(_), Some(_), Some(_)) => "expected p25 <= median <= p75",
        _ => "expected p25, p75 and n together",
    };
    keys.note_here(why);
}
