//! Namespace identification descriptors (CNS 03h).

use crate::opcode::Csi;

/// Types of namespace identification descriptor (NIDT, CNS 03h) with their lengths in bytes.
pub const DESCRIPTOR_NGUID: (u8, u8) = (2, 16);
/// UUID descriptor.
pub const DESCRIPTOR_UUID: (u8, u8) = (3, 16);
/// Command Set Identifier descriptor: Linux needs it to accept other than NVM namespaces.
pub const DESCRIPTOR_CSI: (u8, u8) = (4, 1);

/// Appends one namespace identification descriptor.
pub fn push_descriptor(data: &mut Vec<u8>, (kind, length): (u8, u8), value: &[u8]) {
    assert_eq!(value.len(), usize::from(length), "a descriptor has its fixed length");
    data.extend_from_slice(&[kind, length, 0, 0]);
    data.extend_from_slice(value);
}

/// Returns the command set of a namespace from its identification descriptors; NVM when none says.
pub fn descriptor_csi(data: &[u8]) -> Csi {
    let csi = descriptor(data, DESCRIPTOR_CSI).and_then(|value| value.first());
    csi.map_or(Csi::NVM, |csi| Csi(*csi))
}

/// Returns the NGUID in a namespace's descriptors; zeros if there is none.
pub fn descriptor_nguid(data: &[u8]) -> [u8; 16] {
    let nguid = descriptor(data, DESCRIPTOR_NGUID).and_then(|value| value.first_chunk());
    nguid.copied().unwrap_or_default()
}

fn descriptor(mut data: &[u8], (wanted, _): (u8, u8)) -> Option<&[u8]> {
    while let [kind, length, _, _, rest @ ..] = data {
        let (value, after) = rest.split_at_checked((*length).into()).filter(|_| *length > 0)?;
        if *kind == wanted {
            return Some(value);
        }
        data = after;
    }
    None
}
