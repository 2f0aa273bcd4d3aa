//! NVMe wire formats and protocol state machines, without I/O or clock
