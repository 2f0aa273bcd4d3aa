//! A turn of one side: values are put, overwritten, read, and both mixed.

use std::sync::Arc;

use csd_bench::load::Operation;
use csd_bench::{Error, random};
use csd_nvme::kv::Key;

use crate::Arguments;
use crate::side::{Running, Side};

/// Phases of a turn; each executes as many operations as there are keys.
pub const PHASES: [&str; 4] = ["fill", "overwrite", "get", "mixed"];

/// Figures of a phase: operations a second, and latencies and CPU time of an operation, us.
pub type Phase = [f64; 4];
/// Names of the figures of a phase in a record.
pub const PHASE_FIGURES: [&str; 4] = ["per_s", "p50_us", "p99_us", "cpu_us"];

/// Figures of a turn.
pub struct Turn {
    /// Figures of each phase.
    pub phases: [Phase; PHASES.len()],
    /// Bytes that the process and the disk wrote for a byte that was put, by fill and overwrite;
    /// and bytes in use for a byte of the values that are there.
    pub bytes: [f64; 3],
}
/// Names of the figures of bytes in a record.
pub const BYTE_FIGURES: [&str; 3] = ["written_per_byte", "disk_per_byte", "space_per_byte"];

/// A load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Number of keys.
    pub keys: usize,
    /// Length of a key, bytes.
    pub key_bytes: usize,
    /// Length of a value, bytes.
    pub value_bytes: usize,
    /// Operations in flight.
    pub depth: u16,
}

/// Runs all phases on a side that is started for them.
///
/// # Errors
/// The first error of an operation.
#[allow(clippy::cast_precision_loss)] // counts of a report
pub fn turn(side: Side, load: Load, arguments: &Arguments) -> Result<Turn, Error> {
    let data = (load.keys * load.value_bytes) as u64;
    let running = Running::start(side, arguments, data)?;
    let value = Arc::new(random::bytes(load.value_bytes, 1));
    let put = Operation::Put(Arc::clone(&value));
    let get = Operation::Get(Some(load.value_bytes as u64));
    let operations = [&put, &put, &get, &Operation::PutAndGet(value)];
    let mut keys = keys(load);
    let before = running.usage()?;
    let (mut written, mut space) = (before, 0);
    let mut phases = [[0.0; 4]; PHASES.len()];
    for (phase, operation) in operations.into_iter().enumerate() {
        random::shuffle(&mut keys);
        let begun = running.usage()?;
        let ran = running.run(operation, &Arc::new(keys.clone()), load.depth)?;
        // What was put off belongs to the phase that caused it.
        running.settle()?;
        let ended = running.usage()?;
        let used = ended.since(begun);
        let us = |quantile| ran.latencies.value_at_quantile(quantile) as f64 / 1e3;
        let count = load.keys as f64;
        let rate = count / ran.elapsed.as_secs_f64();
        phases[phase] = [rate, us(0.5), us(0.99), used.cpu_us as f64 / count];
        if phase == 1 {
            written = ended.since(before);
            space = running.space_bytes()?;
        }
    }
    let put_bytes = 2.0 * data as f64;
    let bytes = [
        written.written_bytes as f64 / put_bytes,
        written.disk_bytes as f64 / put_bytes,
        space as f64 / data as f64,
    ];
    Ok(Turn { phases, bytes })
}

/// Returns keys of the load's length, which are the numbers that hash functions make.
fn keys(load: Load) -> Vec<Key> {
    let key = |index: usize| {
        // Odd factors permute: no two numbers are equal in their last four bytes.
        let spread = (index as u128 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        Key::new(&spread.to_be_bytes()[16 - load.key_bytes..]).expect("1 to 16 bytes")
    };
    (0..load.keys).map(key).collect()
}
