//! Writer of profiles: from [`Profile`] to TOML, in the order of the contract's page.
//!
//! Writes no unknown number. Invariant: a written profile is read back as the same profile.

use std::fmt::Write as _;

use toml::Value;

use super::{
    Device, Energy, Host, Meta, Overload, OverloadKind, Point, Profile, Provenance, Provenances,
    Timing,
};

pub(super) fn profile(profile: &Profile) -> String {
    let mut out = Lines(String::new());
    out.line("schema", profile.schema);
    out.table("[meta]");
    meta(&mut out, &profile.meta);
    out.table("[host]");
    host(&mut out, &profile.host);
    for (name, table) in &profile.device {
        out.table(&format!("[device.{name}]"));
        device(&mut out, table);
    }
    for table in &profile.point {
        out.table("[[point]]");
        point(&mut out, table);
    }
    out.0
}

fn meta(out: &mut Lines, meta: &Meta) {
    out.line("machine", meta.machine.clone());
    out.some("date", meta.date.clone());
    out.some("version", meta.version.clone());
    out.some("commit", meta.commit.clone());
    out.some("source", meta.source.clone());
    out.some("note", meta.note.clone());
}

fn host(out: &mut Lines, host: &Host) {
    out.whole("cores", Some(host.cores));
    out.whole("ingest_bw_Bps", host.ingest_bw_Bps);
    out.whole("dram_bytes", host.dram_bytes);
    out.some("idle_W", host.idle_W);
    out.some("core_W", host.core_W);
    out.some("price_usd", host.price_usd);
    out.provenances(host.prov.as_ref());
}

fn device(out: &mut Lines, device: &Device) {
    out.whole("cores", device.cores);
    out.whole("dram_bytes", device.dram_bytes);
    out.whole("int_read_Bps", device.int_read_Bps);
    out.whole("int_write_Bps", device.int_write_Bps);
    out.whole("ext_read_Bps", device.ext_read_Bps);
    out.whole("ext_write_Bps", device.ext_write_Bps);
    out.whole("link_bw_Bps", device.link_bw_Bps);
    out.some("idle_W", device.idle_W);
    out.some("active_W", device.active_W);
    out.some("price_usd", device.price_usd);
    out.whole("capacity_bytes", device.capacity_bytes);
    out.some("target", device.target.clone());
    out.some("note", device.note.clone());
    out.provenances(device.prov.as_ref());
}

fn point(out: &mut Lines, point: &Point) {
    out.line("kernel", point.kernel.clone());
    out.line("where", word(&point.r#where));
    out.line("device", point.device.clone());
    out.whole("units", Some(point.units));
    out.whole("bytes", Some(point.bytes));
    out.whole("work", point.work);
    out.some("layout", point.layout.as_ref().map(word));
    out.line("overlap", word(&point.overlap));
    out.timing("load_s", Some(&point.load_s));
    out.timing("comp_s", Some(&point.comp_s));
    out.timing("store_s", point.store_s.as_ref());
    out.timing("pipelined_s", point.pipelined_s.as_ref());
    if let Some(energy) = &point.energy_J {
        let Energy { median, p25, p75, n, source } = energy;
        let parts = [spread(*median, *p25, *p75, *n), quoted("source", &word(source))];
        out.raw("energy_J", &format!("{{ {} }}", parts.join(", ")));
    }
    if let Some(overload) = &point.overload {
        out.raw("overload", &overload_text(overload));
    }
    out.line("prov", word(&point.prov));
    out.some("note", point.note.clone());
}

fn overload_text(overload: &Overload) -> String {
    let kind = quoted("kind", &word(&overload.kind));
    match (overload.kind, overload.memory_bytes, overload.rivals) {
        (OverloadKind::Memory, Some(bytes), _) => format!("{{ {kind}, memory_bytes = {bytes} }}"),
        (_, _, Some(rivals)) => format!("{{ {kind}, rivals = {rivals} }}"),
        _ => format!("{{ {kind} }}"),
    }
}

/// Returns a key with its text value as `key = "text"`.
fn quoted(key: &str, text: &str) -> String {
    format!("{key} = {}", Value::from(text))
}

fn spread(median: f64, p25: Option<f64>, p75: Option<f64>, n: Option<u64>) -> String {
    let number = |number: f64| Value::from(number).to_string();
    let mut text = format!("median = {}", number(median));
    for (key, value) in [("p25", p25), ("p75", p75)] {
        if let Some(value) = value {
            let _infallible = write!(text, ", {key} = {}", number(value));
        }
    }
    if let Some(n) = n {
        let _infallible = write!(text, ", n = {n}");
    }
    text
}

/// Returns the contract's word for a variant.
fn word(value: &impl serde::Serialize) -> String {
    match Value::try_from(value) {
        Ok(Value::String(word)) => word,
        other => unreachable!("a variant without fields is a word: {other:?}"),
    }
}

/// Lines of `key = value`.
struct Lines(String);

impl Lines {
    fn table(&mut self, header: &str) {
        let _infallible = write!(self.0, "\n{header}\n");
    }

    fn raw(&mut self, key: &str, text: &str) {
        let _infallible = writeln!(self.0, "{key} = {text}");
    }

    fn line(&mut self, key: &str, value: impl Into<Value>) {
        self.raw(key, &value.into().to_string());
    }

    fn some(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.line(key, value);
        }
    }

    fn whole(&mut self, key: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.raw(key, &value.to_string());
        }
    }

    fn timing(&mut self, key: &str, timing: Option<&Timing>) {
        let Some(Timing { median, p25, p75, n, prov }) = timing else { return };
        let mut parts = vec![spread(*median, *p25, *p75, *n)];
        parts.extend(prov.as_ref().map(|prov| quoted("prov", &word(prov))));
        self.raw(key, &format!("{{ {} }}", parts.join(", ")));
    }

    fn provenances(&mut self, prov: Option<&Provenances>) {
        let Some(prov) = prov else { return };
        let entry = |(key, prov): (&String, &Provenance)| quoted(key, &word(prov));
        let entries: Vec<_> = prov.iter().map(entry).collect();
        self.raw("prov", &format!("{{ {} }}", entries.join(", ")));
    }
}
