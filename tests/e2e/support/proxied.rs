//! An array of which a proxy cuts the connections to the second drive.

use csd_tests::proxy::Proxy;

use crate::support::data::small_i32;
use crate::support::harness::{Array, Done, address_of};

/// Execute Program of the compute namespace: namespace and opcode.
pub(crate) const EXECUTE: (u32, u8) = (5, 0x01);
/// Retrieve of the objects' namespace.
pub(crate) const RETRIEVE: (u32, u8) = (3, 0x02);

/// Store of the objects' namespace.
pub(crate) const STORE: (u32, u8) = (3, 0x01);

/// Array of two drives, and a proxy in front of the second one.
pub(crate) struct ProxiedArray {
    pub(crate) array: Array,
    pub(crate) proxy: Proxy,
}

impl ProxiedArray {
    pub(crate) fn new(array: Array) -> Self {
        let address = address_of(&array.url(1));
        let proxy = Proxy::before(address);
        let file = std::fs::read_to_string(array.path("csd-array.toml")).unwrap();
        let proxied = file.replace(&address.to_string(), &proxy.address.to_string());
        assert_ne!(file, proxied);
        array.file("proxied.toml", proxied.as_bytes());
        Self { array, proxy }
    }

    /// Runs `csd` through the proxy.
    pub(crate) fn csd(&self, line: &str) -> Done {
        self.array.csd(&Self::arguments(line))
    }

    /// Returns the words of a command that goes through the proxy.
    pub(crate) fn arguments(line: &str) -> Vec<&str> {
        line.split_whitespace().chain(["--array", "proxied.toml", "--json"]).collect()
    }

    /// Starts the second drive again, and leads the proxy to it.
    pub(crate) fn restart(&self) {
        self.array.csd(&["array", "up"]).expect(0, &[]);
        self.proxy.redirect(address_of(&self.array.url(1)));
    }

    /// Puts 8 MB of i32 in small chunks, `b` as `a` lies; returns the data and how many of them are
    /// 7.
    pub(crate) fn put(&self, name: &str, seed: u64) -> (Vec<u8>, u64) {
        let (bytes, sevens) = small_i32(seed, 2_000_000);
        self.array.file("x.bin", &bytes);
        let put = ["put", "x.bin", name, "--type", "i32", "--chunk", "64K"];
        let align: &[&str] = if name == "b" { &["--align", "a"] } else { &[] };
        self.array.csd(&[&put[..], align].concat()).expect(0, &[]);
        (bytes, sevens)
    }
}
