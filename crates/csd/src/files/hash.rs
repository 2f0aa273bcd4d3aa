//! [`digest`]: the digest of an object's bytes as they come from the drives.
//!
//! They are hashed on the compute thread, as they are written by other commands there.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::object::{self, Form, GetOptions, Got, Progress};
use sha2::{Digest, Sha256};

use crate::interruptible::Interruptible;
use crate::report::Failure;

/// A digest of 32 bytes.
pub(crate) type Bytes = [u8; 32];

/// Function that is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Sha256,
    Blake3,
}

/// State of a function.
pub(crate) enum Hasher {
    Sha256(Sha256),
    Blake3(Box<blake3::Hasher>),
}

impl Hasher {
    pub(crate) fn new(function: Function) -> Self {
        match function {
            Function::Sha256 => Self::Sha256(Sha256::new()),
            Function::Blake3 => Self::Blake3(Box::default()),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Blake3(hasher) => drop(hasher.update(bytes)),
        }
    }

    pub(crate) fn finish(&self) -> Bytes {
        match self {
            Self::Sha256(hasher) => hasher.clone().finalize().into(),
            Self::Blake3(hasher) => hasher.finalize().into(),
        }
    }
}

/// A hasher that the sink of an object shares with its reader.
#[derive(Clone)]
struct Shared(Arc<Mutex<Hasher>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the digest of an object in this form, and warnings. Ends early once it is `asked` to.
///
/// # Errors
/// Those of [`object::get`].
pub(crate) async fn digest(
    array: &Array,
    entry: Entry,
    (form, function): (Form, Function),
    progress: &Progress,
    asked: &Arc<std::sync::atomic::AtomicBool>,
) -> Result<(Bytes, Vec<String>), Failure> {
    let shared = Shared(Arc::new(Mutex::new(Hasher::new(function))));
    let sink = Box::new(Interruptible::new(shared.clone(), asked));
    let got = object::get(array, entry, GetOptions::whole(form), sink, progress).await?;
    let Got { warnings, .. } = got;
    let bytes = shared.0.lock().unwrap_or_else(PoisonError::into_inner).finish();
    Ok((bytes, warnings))
}
