//! Opcodes of the admin, fabrics and I/O command sets, and command set identifiers.
//!
//! Source: the opcode tables of the NVM Express Base Specification 2.2 and of the NVM, Key Value
//! 1.3, Subsystem Local Memory 1.2 and Computational Programs 1.1 Command Set Specifications.
//! Parameters of commands are in the modules of their command sets.

use crate::wire::codes;

codes! {
    /// Command Set Identifier (CSI).
    pub struct Csi: u8 {
        NVM = 0x00: "NVM (block)",
        KV = 0x01: "Key Value",
        ZNS = 0x02: "Zoned Namespace",
        SLM = 0x03: "Subsystem Local Memory",
        CP = 0x04: "Computational Programs",
    }
}

codes! {
    /// Admin command opcode.
    pub struct Admin: u8 {
        GET_LOG_PAGE = 0x02: "Get Log Page",
        IDENTIFY = 0x06: "Identify",
        ABORT = 0x08: "Abort",
        SET_FEATURES = 0x09: "Set Features",
        GET_FEATURES = 0x0A: "Get Features",
        ASYNC_EVENT_REQUEST = 0x0C: "Asynchronous Event Request",
        KEEP_ALIVE = 0x18: "Keep Alive",
        FABRICS = 0x7F: "Fabrics Command",
        LOAD_PROGRAM = 0x85: "Load Program",
        PROGRAM_ACTIVATION = 0x88: "Program Activation Management",
        MEMORY_RANGE_SET = 0x89: "Memory Range Set Management",
    }
}

codes! {
    /// Fabrics command type (FCTYPE), byte 4 of a command with opcode 7Fh.
    pub struct Fabrics: u8 {
        PROPERTY_SET = 0x00: "Property Set",
        CONNECT = 0x01: "Connect",
        PROPERTY_GET = 0x04: "Property Get",
        AUTH_SEND = 0x05: "Authentication Send",
        AUTH_RECEIVE = 0x06: "Authentication Receive",
        DISCONNECT = 0x08: "Disconnect",
    }
}

codes! {
    /// NVM command set opcode.
    pub struct Nvm: u8 {
        FLUSH = 0x00: "Flush",
        WRITE = 0x01: "Write",
        READ = 0x02: "Read",
        COMPARE = 0x05: "Compare",
        WRITE_ZEROES = 0x08: "Write Zeroes",
        DATASET_MANAGEMENT = 0x09: "Dataset Management",
        VERIFY = 0x0C: "Verify",
        COPY = 0x19: "Copy",
    }
}

codes! {
    /// Key Value command set opcode.
    pub struct Kv: u8 {
        FLUSH = 0x00: "Flush",
        STORE = 0x01: "Store",
        RETRIEVE = 0x02: "Retrieve",
        LIST = 0x06: "List",
        DELETE = 0x10: "Delete",
        EXIST = 0x14: "Exist",
        STORE_NEWER = 0x81: "Store Newer",
        LIST_FOLDER = 0x82: "List Folder",
    }
}

codes! {
    /// Subsystem Local Memory command set opcode.
    pub struct Slm: u8 {
        COPY = 0x01: "Memory Copy",
        READ = 0x02: "Memory Read",
        FILL = 0x04: "Memory Fill",
        WRITE = 0x05: "Memory Write",
    }
}

codes! {
    /// Computational Programs command set opcode.
    pub struct Cp: u8 {
        EXECUTE_PROGRAM = 0x01: "Execute Program",
        TUNNEL_SEND = 0xC1: "vendor: Tunnel Send",
        TUNNEL_RECEIVE = 0xC2: "vendor: Tunnel Receive",
    }
}

/// Direction of a command's data, from opcode bits 1:0 (for fabrics: of the command type).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// No data.
    None,
    /// Host to controller.
    ToController,
    /// Controller to host.
    ToHost,
    /// Both ways; not usable over NVMe/TCP.
    Both,
}

impl Direction {
    /// Returns the direction that the low two bits of an opcode or fabrics command type encode.
    pub const fn of(opcode: u8) -> Self {
        match opcode & 3 {
            0 => Self::None,
            1 => Self::ToController,
            2 => Self::ToHost,
            _ => Self::Both,
        }
    }
}
