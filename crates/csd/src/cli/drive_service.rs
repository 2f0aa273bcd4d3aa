//! The command line of `csd drive service`.

use clap::{Args, Subcommand};
use csd_sched::Policy;

use super::scrub::rate;
use crate::units::parse_percent;

/// Options of `csd drive service`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd drive service                            all services of all drives of the array
  csd drive service pause clean d1
  csd drive service rate scrub 50M/s
  csd drive service share clean 25%
  csd drive service policy dedup adaptive
  csd drive service resume clean d1")]
pub(crate) struct Service {
    #[command(subcommand)]
    pub(crate) order: Option<Order>,
}

/// Orders to a drive's services. Settings last until the drive stops.
#[derive(Debug, Subcommand)]
pub(crate) enum Order {
    /// Show state, limits and counts of every service
    List {
        /// A drive's name in the array, or its URL [default: all drives of the array]
        #[arg(value_name = "NAME|URL")]
        drive: Option<String>,
    },
    /// Let a service begin no further step
    Pause(Named),
    /// Let a service work again, also one that failed
    Resume(Named),
    /// Limit the bytes per second of a service
    Rate {
        /// Name of the service
        service: String,
        /// Bytes per second of all cores together, such as 50M/s; `none` for no limit
        #[arg(value_name = "RATE", value_parser = parse_rate)]
        rate: Rate,
        /// A drive's name in the array, or its URL [default: all drives of the array]
        #[arg(value_name = "NAME|URL")]
        drive: Option<String>,
    },
    /// Limit the part of the time in which a service works
    Share {
        /// Name of the service
        service: String,
        /// Part of the time of all cores, 1% to 100%; 100% is no limit
        #[arg(value_name = "PERCENT", value_parser = parse_share)]
        percent: u8,
        /// A drive's name in the array, or its URL [default: all drives of the array]
        #[arg(value_name = "NAME|URL")]
        drive: Option<String>,
    },
    /// Have the core of a service's work chosen by another rule
    ///
    /// `csd drive trace` shows the choices.
    Policy {
        /// Name of the service: only `dedup` can work on another core than its data's
        service: String,
        /// Rule, as `--policy` of `csd drive serve` explains it
        #[arg(value_name = "inline|local|bts|adaptive")]
        policy: Policy,
        /// A drive's name in the array, or its URL [default: all drives of the array]
        #[arg(value_name = "NAME|URL")]
        drive: Option<String>,
    },
}

/// A service of some drives.
#[derive(Args, Debug)]
pub(crate) struct Named {
    /// Name of the service
    pub(crate) service: String,
    /// A drive's name in the array, or its URL [default: all drives of the array]
    #[arg(value_name = "NAME|URL")]
    pub(crate) drive: Option<String>,
}

impl Service {
    /// Returns the command's words, as JSON output names it.
    pub(crate) fn words(&self) -> &'static str {
        match self.order {
            None | Some(Order::List { .. }) => "drive service list",
            Some(Order::Pause(_)) => "drive service pause",
            Some(Order::Resume(_)) => "drive service resume",
            Some(Order::Rate { .. }) => "drive service rate",
            Some(Order::Share { .. }) => "drive service share",
            Some(Order::Policy { .. }) => "drive service policy",
        }
    }
}

/// A limit of bytes per second; `None` for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate(pub(crate) Option<u64>);

fn parse_rate(text: &str) -> Result<Rate, String> {
    match text {
        "none" => Ok(Rate(None)),
        text => {
            let bytes = rate(text.strip_suffix("/s").unwrap_or(text));
            bytes.map(|bytes| Rate(Some(bytes))).map_err(|why| format!("{why}, or none"))
        }
    }
}

fn parse_share(text: &str) -> Result<u8, String> {
    match parse_percent(text)? {
        0 => Err("a share is at least 1%: pause the service instead".to_owned()),
        percent => Ok(percent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_people_write_them() {
        let rates = [("50M/s", Some(50 << 20)), ("64K", Some(65_536)), ("none", None)];
        for (text, bytes) in rates {
            assert_eq!(parse_rate(text), Ok(Rate(bytes)), "{text}");
        }
        for text in ["0", "-1", "fast", "50M/h", ""] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        assert_eq!((parse_share("1%"), parse_share("100")), (Ok(1), Ok(100)));
        for text in ["0%", "101%", "half"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }
}
