//! Measurements as a table for people and as JSON.

use csd_measure::characterize::quantiles::Samples;
use csd_measure::characterize::{About, Cell, Found};
use csd_measure::profile::{Profile, Where};
use serde_json::{Value, json};

use crate::table::{Align, Table};
use crate::units::{duration, rate, size};

/// Returns the text for people: the table of cells, then bandwidths and slow-down factors.
pub(super) fn text(found: &Found, profile: &Profile, devices: &[About]) -> String {
    let several = devices.len() > 1;
    let device = |cell: &Cell| match several {
        true => format!(", {}", devices[cell.subject].name),
        false => String::new(),
    };
    let mut table = Table::new(&[
        ("kernel", Align::Left),
        ("on", Align::Left),
        ("set", Align::Right),
        ("load", Align::Right),
        ("compute", Align::Right),
        ("store", Align::Right),
        ("pipelined", Align::Right),
        ("rate", Align::Right),
        ("n", Align::Right),
    ]);
    for cell in &found.cells {
        let n = cell.load.quartiles().map_or(0, |quartiles| quartiles.n);
        table.row(vec![
            cell.kernel.to_owned(),
            system(cell) + &device(cell),
            size(cell.bytes),
            median_text(&cell.load),
            median_text(&cell.comp),
            median_text(&cell.store),
            median_text(&cell.pipelined),
            rate(cell.bytes, median(&cell.pipelined).unwrap_or(0.0)),
            n.to_string(),
        ]);
    }
    let mut text = table.render();
    text.push_str("medians; load, compute and store each by itself; rate of pipelined runs\n");
    text.push_str(&bandwidths(profile));
    for (name, load, comp) in slow_downs(found) {
        text.push_str(&format!("{name}: load {load}, compute {comp}\n"));
    }
    text
}

fn bandwidths(profile: &Profile) -> String {
    let number = |bandwidth: Option<u64>| {
        bandwidth.map_or_else(|| "-".to_owned(), |bandwidth| rate(bandwidth, 1.0))
    };
    let mut text = String::new();
    for (name, device) in &profile.device {
        text.push_str(&format!(
            "{name}: inside {} read, {} write; to the host {} read, {} write\n",
            number(device.int_read_Bps),
            number(device.int_write_Bps),
            number(device.ext_read_Bps),
            number(device.ext_write_Bps)
        ));
    }
    if let Some(bandwidth) = profile.host.ingest_bw_Bps {
        text.push_str(&format!("host takes in {}\n", number(Some(bandwidth))));
    }
    text
}

/// Returns the ratio of two medians, marked if one of them is unsteady.
fn factor(burdened: &Samples, free: &Samples) -> Option<String> {
    let (burdened, free) = (burdened.quartiles()?, free.quartiles()?);
    let mark = match burdened.is_unsteady() || free.is_unsteady() {
        true => " (unsteady)",
        false => "",
    };
    Some(format!("x {:.2}{mark}", burdened.median / free.median))
}

/// Returns the slow-down of Host(1) under each overload. A row has the kernel and the overload, the
/// factor of loading, and the factor of computing.
fn slow_downs(found: &Found) -> Vec<(String, String, String)> {
    let free = |cell: &Cell| {
        found.cells.iter().find(|other| {
            other.overload.is_none()
                && (other.subject, other.kernel) == (cell.subject, cell.kernel)
                && (other.bytes, other.units) == (cell.bytes, cell.units)
                && other.side == Where::Host
        })
    };
    let overloaded = found.cells.iter().filter(|cell| cell.overload.is_some());
    overloaded
        .filter_map(|cell| {
            let free = free(cell)?;
            let name = format!("{} of {} with {}", cell.kernel, size(cell.bytes), cell.burden()?);
            Some((name, factor(&cell.load, &free.load)?, factor(&cell.comp, &free.comp)?))
        })
        .collect()
}

fn system(cell: &Cell) -> String {
    match (cell.side, cell.burden()) {
        (Where::Host, None) => format!("Host({})", cell.units),
        (Where::Host, Some(burden)) => format!("Host({}), {burden}", cell.units),
        (Where::Drive, _) if cell.units == 1 => "drive, 1 core".to_owned(),
        (Where::Drive, _) => format!("drive, {} cores", cell.units),
    }
}

fn median(samples: &Samples) -> Option<f64> {
    samples.quartiles().map(|quartiles| quartiles.median)
}

fn median_text(samples: &Samples) -> String {
    median(samples).map_or_else(|| "-".to_owned(), duration)
}

/// Returns every cell as JSON.
pub(super) fn cells(found: &Found, devices: &[About]) -> Vec<Value> {
    let quartiles = |samples: &Samples| {
        samples.quartiles().map(|of| {
            json!({
                "median": of.median, "p25": of.p25, "p75": of.p75, "n": of.n,
                "unsteady": of.is_unsteady(),
            })
        })
    };
    let cell = |cell: &Cell| {
        json!({
            "kernel": cell.kernel,
            "device": devices[cell.subject].name,
            "where": if cell.side == Where::Host { "host" } else { "drive" },
            "units": cell.units,
            "bytes": cell.bytes,
            "work": cell.work,
            "overload": cell.overload,
            "load_s": quartiles(&cell.load),
            "comp_s": quartiles(&cell.comp),
            "store_s": quartiles(&cell.store),
            "pipelined_s": quartiles(&cell.pipelined),
            "cpu_s": quartiles(&cell.cpu),
            "energy_J": quartiles(&cell.joules),
        })
    };
    found.cells.iter().map(cell).collect()
}
