//! This host's default NVMe Qualified Name.
//!
//! Drives store a host's programs under its name, so every `csd` of a machine uses the same one:
//! that of nvme-cli if it has one, or else one derived from the machine's id. Reads no options.
//! Invariant: the machine's id cannot be derived from the name.

use std::fs;

use csd_nvme::controller::connect::is_nqn;

use crate::SettingsError;

/// File in which nvme-cli keeps the host's NQN.
const NQN_FILE: &str = "/etc/nvme/hostnqn";
/// The machine's id, 32 hexadecimal digits; unique and confidential, see machine-id(5).
const MACHINE_ID_FILE: &str = "/etc/machine-id";
/// Context string of the hash, which separates it from other hashes of machine ids.
const CONTEXT: &str = "csdstore 2026-11-22 host NQN of a machine";

/// Returns this machine's NQN; a random one if it has no id.
///
/// # Errors
/// If nvme-cli's file holds something other than an NQN.
pub fn machine_nqn() -> Result<String, SettingsError> {
    let first_line = |path: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().next().unwrap_or_default().trim().to_owned()
    };
    let named = first_line(NQN_FILE);
    if !named.is_empty() {
        let wrong =
            |why| SettingsError::usage(format!("{NQN_FILE}: {why}; --host-nqn overrides it"));
        return parse_nqn(&named).map_err(wrong);
    }
    match derived(&first_line(MACHINE_ID_FILE)) {
        Some(nqn) => Ok(nqn),
        None => random().map(nqn_of),
    }
}

/// Returns random bytes from the reactor.
fn random() -> Result<[u8; 16], SettingsError> {
    let random = csd_reactor::block_on(&csd_reactor::Config::default(), || async {
        let mut bytes = [0; 16];
        csd_reactor::random_bytes(&mut bytes);
        bytes
    });
    random.map_err(|error| SettingsError::system(error.to_string()))
}

/// Returns the NQN derived from a machine's id; `None` if the id is invalid.
fn derived(machine_id: &str) -> Option<String> {
    let is_hex = machine_id.bytes().all(|digit| digit.is_ascii_hexdigit());
    (is_hex && machine_id.len() == 32).then(|| {
        let hash = blake3::derive_key(CONTEXT, machine_id.to_ascii_lowercase().as_bytes());
        let (uuid, _) = hash.split_first_chunk::<16>().expect("a hash has 32 bytes");
        nqn_of(*uuid)
    })
}

/// Returns an NQN with these bytes as a UUID of version 8 (custom).
fn nqn_of(mut uuid: [u8; 16]) -> String {
    uuid[6] = uuid[6] & 0x0F | 0x80;
    uuid[8] = uuid[8] & 0x3F | 0x80;
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let groups = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    format!("nqn.2014-08.org.nvmexpress:uuid:{}", groups.join("-"))
}

/// Parses an NVMe Qualified Name.
///
/// # Errors
/// The form of a name, in words.
pub fn parse_nqn(text: &str) -> Result<String, String> {
    match is_nqn(text) {
        true => Ok(text.to_owned()),
        false => Err("an NQN begins with `nqn.` and has at most 223 bytes".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_name_that_does_not_tell_its_id() {
        let id = "3d1219c7c4c5404aaa1f6d2a48adfda4";
        let name = derived(id).expect("32 digits");
        assert_eq!(derived(&id.to_uppercase()), Some(name.clone()));
        let other = derived("3d1219c7c4c5404aaa1f6d2a48adfda5").expect("32 digits");
        assert_ne!(name, other);
        let uuid = name.strip_prefix("nqn.2014-08.org.nvmexpress:uuid:").expect("by UUID");
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!((lengths, &uuid[14..15]), (vec![8, 4, 4, 4, 12], "8"));
        assert!(parse_nqn(&name).is_ok() && !name.contains(&id[..8]));
        for none in ["", "uninitialized", &id[1..], &format!("{id}0")] {
            assert_eq!(derived(none), None, "{none}");
        }
    }
}
