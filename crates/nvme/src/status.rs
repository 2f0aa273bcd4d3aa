//! Status codes: one number for Status Code Type and Status Code, and its text.
//!
//! Source: NVM Express Base Specification 2.2, "Status Code"; Key Value 1.3, Subsystem Local Memory
//! 1.2 and Computational Programs 1.1 Command Set Specifications, "Command Specific Status Values".
//! Those (SCT 1) overlap between command sets: their meaning depends on the command, so the same
//! number may have two names here.

use crate::wire::codes;

codes! {
    /// Status Code Type (bits 10:8) and Status Code (bits 7:0).
    pub struct Status: u16 {
        SUCCESS = 0x000: "success",
        INVALID_OPCODE = 0x001: "invalid command opcode",
        INVALID_FIELD = 0x002: "invalid field in command",
        COMMAND_ID_CONFLICT = 0x003: "command id conflict",
        DATA_TRANSFER_ERROR = 0x004: "data transfer error",
        POWER_LOSS_ABORT = 0x005: "commands aborted due to power loss",
        INTERNAL_ERROR = 0x006: "internal error",
        ABORT_REQUESTED = 0x007: "command abort requested",
        ABORTED_SQ_DELETION = 0x008: "command aborted due to queue deletion",
        ABORTED_FAILED_FUSED = 0x009: "command aborted because the other of its pair failed",
        ABORTED_MISSING_FUSED = 0x00A: "command aborted because the other of its pair is missing",
        INVALID_NAMESPACE = 0x00B: "invalid namespace or format",
        COMMAND_SEQUENCE_ERROR = 0x00C: "command sequence error",
        SGL_COUNT_INVALID = 0x00E: "invalid number of SGL descriptors",
        SGL_LENGTH_INVALID = 0x00F: "data SGL length invalid",
        SGL_TYPE_INVALID = 0x011: "SGL descriptor type invalid",
        ATOMIC_UNIT_EXCEEDED = 0x014: "atomic write unit exceeded",
        OPERATION_DENIED = 0x015: "operation denied",
        SGL_OFFSET_INVALID = 0x016: "SGL offset invalid",
        KEEP_ALIVE_EXPIRED = 0x019: "keep alive timer expired",
        KEEP_ALIVE_INVALID = 0x01A: "keep alive timeout invalid",
        NAMESPACE_WRITE_PROTECTED = 0x020: "namespace is write protected",
        COMMAND_INTERRUPTED = 0x021: "command interrupted",
        TRANSIENT_TRANSPORT_ERROR = 0x022: "transient transport error",
        COMMAND_SET_MISMATCH = 0x02B: "I/O command set not supported",
        LBA_OUT_OF_RANGE = 0x080: "LBA out of range",
        CAPACITY_EXCEEDED = 0x081: "capacity exceeded",
        NAMESPACE_NOT_READY = 0x082: "namespace not ready",
        INVALID_VALUE_SIZE = 0x085: "invalid value size",
        INVALID_KEY_SIZE = 0x086: "invalid key size",
        KEY_DOES_NOT_EXIST = 0x087: "key does not exist",
        UNRECOVERED_ERROR = 0x088: "unrecovered error",
        KEY_EXISTS = 0x089: "key exists",
        COMPLETION_QUEUE_INVALID = 0x100: "completion queue invalid",
        INVALID_QUEUE_ID = 0x101: "invalid queue identifier",
        INVALID_QUEUE_SIZE = 0x102: "invalid queue size",
        ASYNC_EVENT_LIMIT = 0x105: "asynchronous event request limit exceeded",
        INVALID_LOG_PAGE = 0x109: "invalid log page",
        FEATURE_NOT_SAVEABLE = 0x10D: "feature identifier not saveable",
        FEATURE_NOT_CHANGEABLE = 0x10E: "feature not changeable",
        COMBINATION_REJECTED = 0x12B: "I/O command set combination rejected",
        INCOMPATIBLE_FORMAT = 0x180: "connect: incompatible format",
        CONTROLLER_BUSY = 0x181: "connect: controller busy",
        CONNECT_INVALID_PARAMETERS = 0x182: "connect: invalid parameters",
        COPY_LIMIT_EXCEEDED = 0x183: "command size limit exceeded",
        CONNECT_INVALID_HOST = 0x184: "connect: invalid host",
        INVALID_QUEUE_TYPE = 0x185: "invalid queue type",
        INCOMPATIBLE_NAMESPACE = 0x185: "incompatible namespace or format",
        OVERLAPPING_RANGE = 0x187: "overlapping I/O range",
        INSUFFICIENT_PROGRAM_RESOURCES = 0x18A: "insufficient program resources",
        INVALID_MEMORY_NAMESPACE = 0x18B: "invalid memory namespace",
        INVALID_RANGE_SET = 0x18C: "invalid memory range set",
        INVALID_RANGE_SET_ID = 0x18D: "invalid memory range set identifier",
        INVALID_PROGRAM_DATA = 0x18E: "invalid program data",
        INVALID_PROGRAM_INDEX = 0x18F: "invalid program index",
        INVALID_PROGRAM_TYPE = 0x190: "invalid program type",
        AUTHENTICATION_REQUIRED = 0x191: "authentication required, or too many memory ranges",
        RANGES_EXCEEDED = 0x191: "maximum memory ranges exceeded",
        RANGE_SETS_EXCEEDED = 0x192: "maximum memory range sets exceeded",
        ACTIVATED_EXCEEDED = 0x193: "maximum programs activated",
        PROGRAM_BYTES_EXCEEDED = 0x194: "maximum program bytes exceeded",
        RANGE_SET_IN_USE = 0x195: "memory range set in use",
        NO_PROGRAM = 0x196: "no program",
        OVERLAPPING_RANGES = 0x197: "overlapping memory ranges",
        PROGRAM_NOT_ACTIVATED = 0x198: "program not activated",
        PROGRAM_IN_USE = 0x199: "program in use",
        NOT_DOWNLOADABLE = 0x19A: "program index not downloadable",
        PROGRAM_TOO_BIG = 0x19B: "program too big",
        WRITE_FAULT = 0x280: "write fault",
        UNRECOVERED_READ_ERROR = 0x281: "unrecovered read error",
        COMPARE_FAILURE = 0x285: "compare failure",
        PROGRAM_FAILED = 0x7C0: "vendor: program failed",
        SOURCE_MISSING = 0x7C1: "vendor: a source of the execution does not exist",
        SOURCE_TYPE = 0x7C2: "vendor: a source does not hold whole elements of the stated type",
        SOURCE_ORDER = 0x7C3: "vendor: a source is not sorted, or holds NaN",
        NOT_NEWER = 0x7C4: "vendor: the key has this version, a later one or a value without one",
        PEER_UNKNOWN = 0x7C5: "vendor: a peer of the execution is not in the drive's file of peers",
        PEER_FAILED = 0x7C6: "vendor: a peer of the execution cannot be reached, or has refused it",
    }
}

impl Status {
    /// Makes a status from Status Code Type (0 to 7) and Status Code.
    pub const fn new(sct: u16, sc: u16) -> Self {
        Self((sct & 7) << 8 | (sc & 0xFF))
    }

    /// Status Code Type (SCT).
    pub const fn sct(self) -> u16 {
        self.0 >> 8
    }

    /// Status Code (SC).
    pub const fn sc(self) -> u16 {
        self.0 & 0xFF
    }

    /// Returns true for success.
    pub const fn is_success(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the same command may succeed later, so Do Not Retry stays clear.
    pub const fn retryable(self) -> bool {
        matches!(
            self,
            Self::ABORT_REQUESTED
                | Self::ABORTED_SQ_DELETION
                | Self::NAMESPACE_NOT_READY
                | Self::COMMAND_INTERRUPTED
                | Self::TRANSIENT_TRANSPORT_ERROR
                | Self::CONTROLLER_BUSY
        )
    }
}
