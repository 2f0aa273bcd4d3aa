//! [`NameError`]: reason why a name cannot be given, found or changed.

/// Why a name cannot be given, found or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// No object has this name.
    #[error("there is no object {name:?}")]
    Missing {
        /// Name asked for.
        name: String,
    },
    /// An object of this name exists, and objects are immutable.
    #[error("object {name:?} exists and is immutable: remove it with `csd rm` first")]
    Exists {
        /// Name asked for.
        name: String,
    },
    /// The name is invalid for an object.
    #[error("{why}")]
    Invalid {
        /// Rule that the name breaks.
        why: String,
    },
    /// Too few drives vote for a change of a name that more than a majority must hold.
    #[error(
        "object {name:?} survives the loss of {losses} drives, so each change of its name needs \
         {needed} of {drives} drives, and {up} are up and vote: bring drives back, or choose fewer \
         parity pieces; {}",
        .down.join("; ")
    )]
    Writers {
        /// The name.
        name: String,
        /// Number of losses that the name survives.
        losses: usize,
        /// Number of drives that must hold its entries.
        needed: usize,
        /// Number of drives of the array.
        drives: usize,
        /// Number of drives that are up and vote.
        up: usize,
        /// Drives that are down, each with its reason.
        down: Vec<String>,
    },
    /// Too few copies of the name's entry are sound to know its newest entry.
    #[error("{}", damaged(.name, .best.as_deref(), (*.sound, *.needed), .drives, .down))]
    Damaged {
        /// The name, or its key in hexadecimal digits if no copy tells the name.
        name: String,
        /// Contents of the highest copy that can be read, in words.
        best: Option<String>,
        /// Number of drives whose answer is sound.
        sound: usize,
        /// Number of sound answers that are needed.
        needed: usize,
        /// Drives with damaged copies.
        drives: Vec<String>,
        /// Drives that are down, each with its reason.
        down: Vec<String>,
    },
    /// Another writer of the name won, earlier or later.
    #[error("another put or rm of object {name:?} was under way and won")]
    Overtaken {
        /// The name.
        name: String,
    },
    /// Another writer of the name was interrupted, and its progress is known only to drives that
    /// are down.
    #[error(
        "another put or rm of object {name:?} was cut off, and a drive that is down must tell how \
         far it came: bring that drive back"
    )]
    Undecided {
        /// The name.
        name: String,
    },
    /// Other writers of the name were interrupted, and a damaged claim hides which of them has won.
    #[error(
        "another put or rm of object {name:?} was cut off, and its claim on {} is damaged, so \
         nobody can tell how far it came: while no host writes the object, `csd array rebuild \
         --accept-name {name:?}` goes on from what the drives hold",
        .drives.join(", ")
    )]
    DamagedClaims {
        /// The name.
        name: String,
        /// Drives with damaged claims.
        drives: Vec<String>,
    },
    /// The object was removed while it was being read.
    #[error("object {name:?} was removed while it was read")]
    Removed {
        /// The name.
        name: String,
    },
    /// The object was moved to other drives while it was being read.
    #[error("object {name:?} was moved to other drives while it was read: read it again")]
    Moved {
        /// The name.
        name: String,
    },
}

/// Returns the message of [`NameError::Damaged`].
fn damaged(
    name: &str,
    best: Option<&str>,
    (sound, needed): (usize, usize),
    drives: &[String],
    down: &[String],
) -> String {
    let knowing = if sound == 1 { "drive knows" } else { "drives know" };
    let mut text = format!(
        "the copies of name {name:?} on {} are damaged: {sound} {knowing} it, {needed} are \
         needed: ",
        drives.join(", ")
    );
    if !down.is_empty() {
        text += &format!("bring drives back ({}), or else ", down.join("; "));
    }
    text += &match best {
        Some(best) => format!(
            "`csd array rebuild --accept-name {name:?}` takes the highest sound copy ({best}), "
        ),
        None => "no copy can be read, ".to_owned(),
    };
    text + &format!("`csd rm --damaged {name:?}` drops the name")
}
