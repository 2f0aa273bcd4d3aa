//! ARMv8's CRC-32 instructions: one takes 8 bytes.
#![allow(unsafe_code)]

use super::instructions::instructions;

instructions!(aarch64, "crc", __crc32cd, __crc32cb);
