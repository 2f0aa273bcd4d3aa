//! `csd meter`: its exit codes, and what it counts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::harness::{Array, binary, finish, signal, wait_until};
use crate::support::json_page::Page;
use crate::support::os::{image, skipped};

/// A command that computes for a moment, and leaves a process behind that does so as well.
const WORK: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done";

/// Reads a record, and compares it with the page that describes it.
fn record(array: &Array, name: &str) -> Value {
    let text = fs::read_to_string(array.path(name)).unwrap();
    let object: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&object["schema"], &object["command"]), (&1.into(), &"meter".into()));
    let wrong = Page::read().wrong("meter", "csd meter", &object["result"]);
    assert!(wrong.is_empty(), "{wrong:#?}\n{object}");
    object["result"].clone()
}

#[test]
fn the_exit_code_is_the_commands_own() {
    let array = Array::without_drives();
    let meter = |words: &[&str]| array.csd(&[&["meter", "-o", "job.json", "--"], words].concat());
    let done =
        meter(&["sh", "-c", "echo out; echo err >&2; exit 3"]).expect(3, &["err", "exit code 3"]);
    assert_eq!(done.text(), "out\n");
    let failed = record(&array, "job.json");
    assert_eq!((&failed["failed"], &failed["exit_code"]), (&true.into(), &3.into()));
    meter(&["sh", "-c", "kill -KILL $$"]).expect(137, &["signal 9"]);
    let killed = record(&array, "job.json");
    assert_eq!((&killed["exit_code"], &killed["signal"]), (&Value::Null, &9.into()));
    meter(&["true"]).expect(0, &[]);
    assert_eq!(record(&array, "job.json")["failed"], false);
    // The codes of `env`.
    let plain = array.file("plain", b"").to_owned();
    fs::set_permissions(array.path("plain"), fs::Permissions::from_mode(0o644)).unwrap();
    let plain = format!("./{plain}");
    meter(&["no-such-program"]).expect(127, &["no-such-program"]);
    meter(&[&plain]).expect(126, &["plain"]);
    array.csd(&["meter", "-o", "none/job.json", "--", "true"]).expect(125, &["none"]);
    array.csd(&["meter", "--no-such-option", "--", "true"]).expect(125, &["--no-such-option"]);
    array.csd(&["meter"]).expect(125, &["COMMAND"]);
    array.csd(&["meter", "--pid", "4294967295", "--", "true"]).expect(125, &["no such process"]);
    array.csd(&["meter", "--profile", "none.toml", "--", "true"]).expect(125, &["none.toml"]);
    let said = array.csd(&["meter", "--json", "--", "sh", "-c", "exit 2"]).expect(2, &[]);
    assert_eq!(said.json()["result"]["exit_code"], 2);
    let wrong = array.csd(&["meter", "--json", "--", "no-such-program"]).expect(127, &[]);
    assert_eq!(wrong.json()["error"]["exit_code"], 127);
}

#[test]
fn processor_time_and_energy_are_those_of_the_counters() {
    let array = Array::without_drives();
    let zone = array.path("powercap/intel-rapl:0");
    fs::create_dir_all(&zone).unwrap();
    let set = |file: &str, value: &str| fs::write(zone.join(file), value).unwrap();
    set("name", "package-0\n");
    set("max_energy_range_uj", "10000000\n");
    set("energy_uj", "9000000\n");
    // The counter wraps: 1 J to its end, and 1.5 J after it.
    let script = format!("{WORK}; echo 1500000 > powercap/intel-rapl:0/energy_uj");
    let powercap = ["meter", "--powercap", "powercap", "-o", "job.json"];
    array.csd(&[&powercap[..], &["--", "sh", "-c", &script]].concat()).expect(0, &["--idle"]);
    let found = record(&array, "job.json");
    let energy = &found["energy"];
    assert_eq!((&energy["source"], &energy["gross_joules"]), (&"rapl".into(), &2.5.into()));
    assert_eq!(energy["joules"], Value::Null, "the rest of the machine is not known");
    assert!(found["cpu_s"]["host"].as_f64().unwrap() > 0.0, "{found}");
    // A counter that stands still draws no power at rest.
    set("energy_uj", "1000000\n");
    let script = "echo 3000000 > powercap/intel-rapl:0/energy_uj";
    let idle = [&powercap[..], &["--idle", "300ms", "--", "sh", "-c", script]].concat();
    array.csd(&idle).expect(0, &[]);
    assert_eq!(record(&array, "job.json")["energy"]["joules"], 2.0);
    // One that vanishes is none.
    let script = "rm -r powercap/intel-rapl:0";
    array
        .csd(&[&powercap[..], &["--", "sh", "-c", script]].concat())
        .expect(0, &["no longer be read"]);
    assert_eq!(record(&array, "job.json")["energy"]["source"], Value::Null);
    // Watts of a profile are named as what they are.
    let watts = [&powercap[..], &["--profile", "catalina", "--", "sh", "-c", WORK]].concat();
    array.csd(&watts).expect(0, &["not measured, but CPU time by the profile's watts"]);
    let found = record(&array, "job.json");
    // A core of its host has 10.625 W, and there are no drives.
    let expected = 10.625 * found["cpu_s"]["host"].as_f64().unwrap();
    assert_eq!(found["energy"]["source"], "cpu-seconds");
    assert!((found["energy"]["joules"].as_f64().unwrap() - expected).abs() < 1e-6, "{found}");
}

#[test]
fn tasks_are_those_of_the_frameworks_counters() {
    let array = Array::without_drives();
    let meter = |code, script: &str, said: &[&str]| {
        array.csd(&["meter", "-o", "job.json", "--", "sh", "-c", script]).expect(code, said);
        record(&array, "job.json")["tasks"].clone()
    };
    assert_eq!(meter(0, "true", &[]), Value::Null);
    let counters = "\\tJob Counters \\n\\t\\tLaunched map tasks=3\\n\\t\\tData-local map tasks=2\\n\
                    \\t\\tOther local map tasks=1\\n";
    let job = &format!("printf 'Counters: 3\\n{counters}' >> \"$CSD_TASKS\"");
    let said = "3 maps (2 data-local, 0 rack-local, 1 other), 0 reduces";
    let expected = serde_json::json!({
        "framework": "hadoop", "jobs": 1, "maps": 3, "reduces": 0,
        "maps_data_local": 2, "maps_rack_local": 0, "maps_other": 1,
    });
    assert_eq!(meter(0, job, &[said]), expected);
    // Those of a command that fails too, of all its jobs; and a file that is gone has none.
    assert_eq!(meter(1, &format!("{job}; {job}; exit 1"), &[])["maps"], 6);
    assert_eq!(meter(0, &format!("{job}; rm \"$CSD_TASKS\""), &[]), Value::Null);
}

#[test]
fn processes_that_are_left_behind_and_named_ones_are_counted() {
    let array = Array::without_drives();
    // The second one ends after the first, which does not wait for it.
    let script =
        format!("(sh -c '{WORK}'; echo > left) & while ! [ -e left ]; do sleep 0.01; done");
    array.csd(&["meter", "-o", "job.json", "--", "sh", "-c", &script]).expect(0, &[]);
    let left = record(&array, "job.json")["cpu_s"]["host"].as_f64().unwrap();
    assert!(left > 0.0);
    // One that goes on is put back to where the meter is, whose groups are gone.
    let script = "sleep 1000 > /dev/null 2>&1 & echo $! > pid";
    array.csd(&["meter", "--", "sh", "-c", script]).expect(0, &[]);
    let pid: u32 = fs::read_to_string(array.path("pid")).unwrap().trim().parse().unwrap();
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    signal(pid, Signal::KILL);
    assert!(!groups.contains("csd-meter"), "{groups}");
    let mut daemon = std::process::Command::new("sh").args(["-c", WORK]).spawn().unwrap();
    let pid = daemon.id().to_string();
    let wait = format!(
        "while kill -0 {pid} && [ \"$(cut -d' ' -f3 /proc/{pid}/stat)\" != Z ]; do sleep 0.01; done"
    );
    array.csd(&["meter", "-o", "job.json", "--pid", &pid, "--", "sh", "-c", &wait]).expect(0, &[]);
    daemon.wait().unwrap();
    assert!(record(&array, "job.json")["cpu_s"]["host"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_request_to_stop_reaches_the_command_and_is_recorded() {
    let array = Array::without_drives();
    let script = "trap 'exit 7' TERM; echo > begun; while :; do sleep 0.01; done";
    let running =
        array.spawn(&["meter", "-o", "job.json", "--", "sh", "-c", script], Stdio::null());
    wait_until("it runs", || array.path("begun").exists());
    signal(running.child.id(), Signal::TERM);
    assert_eq!(finish(running).code, 7);
    assert_eq!(record(&array, "job.json")["exit_code"], 7);
}

#[test]
fn drives_of_an_array_are_counted_with_their_systems() {
    if skipped() {
        return;
    }
    let array = Array::without_drives();
    let image = image();
    let up = ["array", "up", "--drives", "1", "--size", "256M", "--kv", "20%", "--os", &image];
    array.csd(&up).expect(0, &[]);
    let program = binary().to_str().unwrap();
    let inside = format!("dd if=/dev/zero of=big bs=1M count=32 2>/dev/null; sync big; {WORK}");
    let meter = ["meter", "-o", "job.json", "--", program, "os", "exec", "d0", "--", "sh", "-c"];
    array.csd(&[&meter[..], &[&inside]].concat()).expect(0, &[]);
    let found = record(&array, "job.json");
    let drive = &found["drives"][0];
    assert_eq!(drive["name"], "d0");
    for field in ["os_cpu_s", "drive_cpu_s", "os_memory_peak_bytes"] {
        assert!(drive[field].as_f64().unwrap() > 0.0, "{field}: {found}");
    }
    assert_eq!(found["cpu_s"]["os"], drive["os_cpu_s"]);
    assert_eq!(drive["tunnel_sent_bytes"], 0.0, "it has none");
    // Bytes that were in no memory are read of the drive.
    let read = "dd if=big of=/dev/null bs=1M iflag=direct";
    array.csd(&[&meter[..], &[read]].concat()).expect(0, &[]);
    let inside = record(&array, "job.json")["drives"][0]["read_inside_bytes"].as_f64().unwrap();
    assert!(inside >= 32.0 * 1_048_576.0, "{inside}");
    // Its operating system ends meanwhile: the record says so.
    let down = ["meter", "-o", "job.json", "--", program, "os", "down", "d0"];
    array.csd(&down).expect(0, &["drive d0: its operating system went away"]);
    record(&array, "job.json");
}
