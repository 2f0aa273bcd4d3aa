//! Options of `csd secret`.

use clap::{Args, Subcommand};
use csd_nvme::auth::{Group, Hash};

use super::parse_nqn;

#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Print a new secret, from the kernel's random source
    #[command(after_help = "\
Examples:
  csd secret new --nqn nqn.2026-11.io.csdstore:host > secrets && chmod 600 secrets
  echo \"controller $(csd secret new)\" >> secrets")]
    New(NewSecret),
}

/// Options of `csd secret new`.
#[derive(Args, Debug)]
pub(crate) struct NewSecret {
    /// Hash that transforms the secret, which gives its length: 256, 384 or 512 bits
    #[arg(long, value_name = "BITS", default_value = "256", value_parser = parse_hash)]
    pub(crate) hash: Hash,
    /// Print the line of a secrets file for the host of this name
    #[arg(long, value_name = "NQN", value_parser = parse_nqn)]
    pub(crate) nqn: Option<String>,
}

pub(super) fn parse_hash(text: &str) -> Result<Hash, String> {
    match text {
        "256" => Ok(Hash::Sha256),
        "384" => Ok(Hash::Sha384),
        "512" => Ok(Hash::Sha512),
        _ => Err("a hash is 256, 384 or 512".to_owned()),
    }
}

pub(super) fn parse_group(text: &str) -> Result<Group, String> {
    let named = Group::ALL.into_iter().find(|group| group.name() == text);
    named.ok_or_else(|| format!("a group is one of {}", Group::ALL.map(Group::name).join(", ")))
}
