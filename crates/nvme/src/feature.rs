//! Features: Get Features and Set Features.
//!
//! Source: NVM Express Base Specification 2.2, "Set Features command"; Key Value Command Set
//! Specification 1.3, "Key Value Configuration". Their state is in [`crate::controller`].

use crate::capsule::Sqe;
use crate::opcode::Admin;
use crate::wire::{bits, codes, layout};

codes! {
    /// Feature Identifier (FID).
    pub struct FeatureId: u8 {
        ARBITRATION = 0x01: "Arbitration",
        POWER_MANAGEMENT = 0x02: "Power Management",
        TEMPERATURE_THRESHOLD = 0x04: "Temperature Threshold",
        ERROR_RECOVERY = 0x05: "Error Recovery",
        VOLATILE_WRITE_CACHE = 0x06: "Volatile Write Cache",
        NUMBER_OF_QUEUES = 0x07: "Number of Queues",
        WRITE_ATOMICITY = 0x0A: "Write Atomicity Normal",
        ASYNC_EVENT_CONFIGURATION = 0x0B: "Asynchronous Event Configuration",
        KEEP_ALIVE_TIMER = 0x0F: "Keep Alive Timer",
        HOST_BEHAVIOR = 0x16: "Host Behavior Support",
        COMMAND_SET_PROFILE = 0x19: "I/O Command Set Profile",
        KEY_VALUE_CONFIGURATION = 0x20: "Key Value Configuration",
        WRITE_PROTECTION = 0x84: "Namespace Write Protection Config",
        INSIDE_ONLY = 0xC0: "vendor: Inside Only",
        SERVICES = 0xC1: "vendor: Services",
    }
}

layout! {
    /// Get Features and Set Features command.
    pub struct Features[64] {
        /// Feature Identifier (FID).
        fid / set_fid: u8 @ 40,
        /// Select (SEL) of Get Features, bits 2:0.
        sel / set_sel: u8 @ 41,
        /// Save (SV) of Set Features, bit 7 of CDW10's last byte.
        save / set_save: u8 @ 43,
        /// New value (CDW11).
        value / set_value: u32 @ 44,
    }
}

/// Bit of `save`: keep the value over power cycles.
pub const SAVE: u8 = 1 << 7;

codes! {
    /// Select (SEL): which value of a feature.
    pub struct Select: u8 {
        CURRENT = 0: "current",
        DEFAULT = 1: "default",
        SAVED = 2: "saved",
        CAPABILITIES = 3: "supported capabilities",
    }
}

bits! {
    /// Number of Queues (FID 07h), 0's based both ways.
    pub struct NumberOfQueues: u32 {
        /// I/O Submission Queues requested or allocated.
        submission / with_submission: 0..=15,
        /// I/O Completion Queues requested or allocated.
        completion / with_completion: 16..=31,
    }
}

/// Capability bit of Get Features: changeable.
pub const CAPABILITY_CHANGEABLE: u32 = 1 << 2;
/// Capability bit of Get Features: namespace specific.
pub const CAPABILITY_NAMESPACE: u32 = 1 << 1;

/// Capability bit of Get Features: saveable.
pub const CAPABILITY_SAVEABLE: u32 = 1 << 0;

/// Write Protection State (feature 84h, bits 2:0): write protected, over power cycles too.
pub const PROTECT: u32 = 1;
/// Write Protection State: write protected until the next power cycle, and not to be changed.
pub const PROTECT_UNTIL_POWER_CYCLE: u32 = 2;

bits! {
    /// Temperature Threshold (FID 04h), as Get and Set Features name one.
    pub struct TemperatureThreshold: u32 {
        /// Temperature Threshold (TMPTH) in kelvin.
        kelvin / with_kelvin: 0..=15,
        /// Threshold Temperature Select (TMPSEL): 0 is the composite temperature, 1 to 8 are
        /// sensors, Fh is all of them.
        sensor / with_sensor: 16..=19,
        /// Threshold Type Select (THSEL): 0 over, 1 under.
        under / with_under: 20..=21,
    }
}

/// Deallocated or Unwritten Logical Block Error Enable (DULBE), bit 16 of feature 05h.
pub const DULBE: u32 = 1 << 16;

/// Error on Delete of a Non-Existent Key (EDNEK), bit 0 of feature 20h.
pub const EDNEK: u32 = 1;

/// Bytes of the Host Behavior Support data.
pub const HOST_BEHAVIOR_BYTES: usize = 512;

/// Returns Set Features without data.
pub fn set_features(id: FeatureId, nsid: u32, value: u32) -> Sqe {
    let mut view = Features::from_bytes(*Sqe::new(Admin::SET_FEATURES.0, nsid).as_bytes());
    view.set_fid(id.0).set_value(value);
    Sqe::from_bytes(*view.as_bytes())
}

/// Returns Get Features without data.
pub fn get_features(id: FeatureId, nsid: u32, select: Select) -> Sqe {
    let mut view = Features::from_bytes(*Sqe::new(Admin::GET_FEATURES.0, nsid).as_bytes());
    view.set_fid(id.0).set_sel(select.0);
    Sqe::from_bytes(*view.as_bytes())
}
