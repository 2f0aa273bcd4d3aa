//! The command line of `csd attach`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

/// Default of `--retry`.
pub(crate) const RETRY: Duration = Duration::from_secs(30);

/// Options of `csd attach`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd attach d0 /mnt                           a drive of the array: its blocks are /mnt/block
  csd attach nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.csdstore:drive /mnt --retry 2m
  csd attach nvme+unix:///run/d0.sock/nqn.2026-11.io.csdstore:drive /mnt
  mkfs.ext4 /mnt/block && mount -o loop /mnt/block /data
  csd attach d0 --ublk                         the same as a block device, /dev/ublkb0")]
pub(crate) struct Attach {
    /// A drive's name in the array, or its URL; without nsid its first block namespace
    #[arg(value_name = "NAME|URL")]
    pub(crate) drive: String,
    /// Folder to mount on; the file in it is named `block`
    #[arg(value_name = "FOLDER", required_unless_present = "ublk")]
    pub(crate) folder: Option<PathBuf>,
    /// Make a block device, /dev/ublkbN, instead of a file in a folder; takes root and the kernel's
    /// driver ublk_drv (Linux 6.5)
    #[arg(long, conflicts_with = "folder")]
    pub(crate) ublk: bool,
    /// Longest wait of reads, writes and syncs for a drive that is away; then they fail (EIO) until
    /// it is back
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "30s")]
    pub(crate) retry: Duration,
}

/// Parses a time: seconds (30 or 30s), minutes (2m) or milliseconds (500ms).
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    let (number, unit_ms) = match text {
        _ if text.ends_with("ms") => (&text[..text.len() - 2], 1),
        _ if text.ends_with('s') => (&text[..text.len() - 1], 1000),
        _ if text.ends_with('m') => (&text[..text.len() - 1], 60_000),
        _ => (text, 1000),
    };
    let count = number.parse::<u32>().map_err(|_| "say a time, as in 30s, 2m or 500ms")?;
    Ok(Duration::from_millis(u64::from(count) * unit_ms))
}

#[test]
fn times_have_units() {
    let parsed =
        ["30", "30s", "2m", "500ms", "0"].map(|text| parse_time(text).unwrap().as_millis());
    assert_eq!(parsed, [30_000, 30_000, 120_000, 500, 0]);
    for wrong in ["", "s", "-1s", "1h", "1.5s", "m1"] {
        assert!(parse_time(wrong).is_err(), "{wrong}");
    }
}
