//! Who is at fault: what every error of this crate can be asked.

/// Whose fault an error is, which decides the exit code of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The user asked for something that cannot be: a wrong type, an unknown name, a bad file.
    Usage,
    /// The run failed: a drive, the network, the media or a stored value is at fault.
    Run,
}
