//! `csd program`: loads the user's programs into drives and runs them.
//!
//! Uses only standard commands, so it works with any drive that supports them. Modules: [`new`]
//! makes a program's folder, [`parameter`] reads parameters, `run` runs a program over files,
//! `objects` over objects, `sandbox` runs it on this host.

mod new;
mod objects;
pub(crate) mod parameter;
mod run;
#[cfg(feature = "wasm")]
mod sandbox;

use std::collections::BTreeSet;
use std::path::Path;

use csd_drive::compute::digest;
use csd_initiator::{Address, Compute, Controller, NamespaceKind, ProgramSlot};
use csd_nvme::compute::{DEVICE_DEFINED, ProgramState};
use csd_nvme::wire::text_of;
use csd_reactor::block_on;
use csd_store::array::ArrayFile;
use serde_json::{Value, json};

use crate::cli::program::{Load, Program, Subject, Where};
use crate::context::Context;
use crate::report::{Failure, Report};
use crate::runtime::runtime;
use crate::table::{Align, Table};
use crate::units::{hex, program_id};

/// Name of the type of WebAssembly modules, and their first bytes.
const WASM: &str = "wasm";
const MAGIC: &[u8] = b"\0asm";

/// Runs one of the commands.
pub(crate) fn program(command: Program, context: &Context) -> Result<Report, Failure> {
    match command {
        Program::New(options) => new::new(&options),
        Program::Load(options) => load(options, context),
        Program::Unload(index) => each(
            &index.at,
            context,
            move |compute| Box::pin(compute.unload(index.index)),
            "unloaded",
        ),
        Program::Activate(index) => activate(index.index, true, &index.at, context),
        Program::Deactivate(index) => activate(index.index, false, &index.at, context),
        Program::List(at) => list(&at, context),
        Program::Run(options) => match (&options.program, options.object.is_empty()) {
            (Subject::Index(index), true) => run::run(*index, &options, context),
            (Subject::File(file), false) => objects::run(file, &options, context),
            (Subject::Index(_), false) => Err(Failure::usage(
                "--object takes a program from a file: name the module, not an index",
            )),
            (Subject::File(_), true) => Err(Failure::usage(
                "--input takes the index of a program that a drive has loaded: load the file \
                 first, or use --object",
            )),
        },
    }
}

/// Returns the addresses of the selected drives.
fn addresses(at: &Where, context: &Context) -> Result<Vec<Address>, Failure> {
    if let Some(address) = &at.drive {
        return Ok(vec![address.clone()]);
    }
    let file = ArrayFile::load(context.array_path())?;
    let parsed = file.drives.iter().map(|drive| {
        drive.url.parse().map_err(|error| Failure::usage(format!("{}: {error}", drive.url)))
    });
    parsed.collect()
}

/// Opens the compute namespace of a drive.
fn compute(controller: &Controller) -> Result<Compute, Failure> {
    let mut all = controller.namespaces().iter();
    let found = all.find(|namespace| namespace.kind == NamespaceKind::Compute);
    let missing = || format!("{} has no compute namespace", controller.address());
    let nsid = found.ok_or_else(|| Failure::run(missing()))?.nsid;
    Compute::open(controller, nsid).map_err(Failure::run)
}

/// Calls `act` for every drive, one after the other. Returns their results with their addresses.
fn with_each<T: Send + 'static>(
    context: &Context,
    addresses: Vec<Address>,
    act: impl AsyncFn(&Compute) -> Result<T, Failure> + Send + 'static,
) -> Result<Vec<(String, T)>, Failure> {
    let options = context.options()?;
    let done = block_on(&runtime(), move || async move {
        let mut all = Vec::new();
        for address in addresses {
            let controller = Controller::connect(&address, &options).await;
            let controller = controller.map_err(Failure::run)?;
            let done = match compute(&controller) {
                Ok(compute) => act(&compute).await,
                Err(failure) => Err(failure),
            };
            controller.disconnect().await;
            all.push((address.to_string(), done?));
        }
        Ok(all)
    });
    done.map_err(Failure::run)?
}

type Acting<'a> = std::pin::Pin<Box<dyn Future<Output = Result<(), csd_initiator::Error>> + 'a>>;

/// Calls `act`, which has no result, for every drive, and reports the drives.
fn each(
    at: &Where,
    context: &Context,
    act: impl Fn(&Compute) -> Acting<'_> + Send + 'static,
    what: &str,
) -> Result<Report, Failure> {
    let addresses = addresses(at, context)?;
    let act = async move |compute: &Compute| act(compute).await.map_err(Failure::run);
    let done = with_each(context, addresses, act)?;
    let line = |(drive, ()): &(String, ())| format!("{what} in {}\n", context.shown(drive));
    let text: String = done.iter().map(line).collect();
    let drives: Vec<&String> = done.iter().map(|(drive, ())| drive).collect();
    Ok(Report::new(text, json!({ "drives": drives })))
}

fn activate(index: u16, active: bool, at: &Where, context: &Context) -> Result<Report, Failure> {
    let what = if active { "activated" } else { "deactivated" };
    each(at, context, move |compute| Box::pin(compute.activate(index, active)), what)
}

/// Reads a program of this type.
fn read_module(file: &Path, ptype: &str) -> Result<Vec<u8>, Failure> {
    let bytes = std::fs::read(file).map_err(|error| Failure::os(file.display(), &error))?;
    if ptype == WASM && !bytes.starts_with(MAGIC) {
        let why = "is no WebAssembly module: it does not begin as one (00 61 73 6d)";
        return Err(Failure::usage(format!("{} {why}", file.display())));
    }
    Ok(bytes)
}

fn load(options: Load, context: &Context) -> Result<Report, Failure> {
    let addresses = addresses(&options.at, context)?;
    let file = options.file.display().to_string();
    let bytes = read_module(&options.file, &options.ptype)?;
    let digest = digest(&bytes);
    let head = u64::from_le_bytes(*digest.first_chunk().expect("32 bytes"));
    let pid = options.pid.unwrap_or(head);
    let (index, size) = (options.index, bytes.len());
    let done = with_each(context, addresses, async move |compute: &Compute| {
        let types = compute.program_types().await.map_err(Failure::run)?;
        let known = types.iter().find(|one| one.name == options.ptype);
        let ptype = known.map(|one| one.ptype).ok_or_else(|| {
            not_taken(&compute.controller().address().to_string(), &options.ptype)
        })?;
        let slot = ProgramSlot { index, ptype, pid };
        compute.load(slot, &bytes).await.map_err(Failure::run)?;
        if options.activate {
            compute.activate(index, true).await.map_err(Failure::run)?;
        }
        Ok(())
    })?;
    let hex = hex(&digest[..]);
    let drives: Vec<&String> = done.iter().map(|(drive, ())| drive).collect();
    let line =
        |drive: &&String| format!("loaded {file} at index {index} of {}\n", context.shown(drive));
    let text: String = drives.iter().map(line).collect();
    let result = json!({
        "drives": drives, "index": index, "pid": program_id(pid), "bytes": size, "digest": hex,
    });
    Ok(Report::new(format!("{text}digest {hex}\n"), result))
}

/// Returns the failure for a drive that takes no programs of a type. WebAssembly is missing if the
/// drive's `csd` was built without it.
fn not_taken(drive: &str, ptype: &str) -> Failure {
    let message = format!("drive {drive} takes no programs of type {ptype:?}");
    match (ptype, cfg!(feature = "wasm")) {
        (WASM, true) => Failure::run(format!("{message}: it was built without WebAssembly")),
        (WASM, false) => Failure::run(format!(
            "{message}: this csd was built without WebAssembly: cargo build --release -p csd"
        )),
        _ => Failure::usage(message),
    }
}

/// Returns the indexes of the programs that hosts have loaded into drives of the array.
pub(crate) fn loaded(context: &Context) -> Result<BTreeSet<u16>, Failure> {
    let every = addresses(&Where { drive: None }, context)?;
    let done = with_each(context, every, async |compute: &Compute| {
        compute.programs().await.map_err(Failure::run)
    })?;
    let is_loaded = |state: u8| !matches!(ProgramState(state).occupied(), 0 | DEVICE_DEFINED);
    let all = done.iter().flat_map(|(_, programs)| (0..).zip(programs));
    Ok(all.filter(|(_, one)| is_loaded(one.state())).map(|(index, _)| index).collect())
}

fn list(at: &Where, context: &Context) -> Result<Report, Failure> {
    let done = with_each(context, addresses(at, context)?, async |compute: &Compute| {
        let programs = compute.programs().await.map_err(Failure::run)?;
        let types = compute.program_types().await.map_err(Failure::run)?;
        Ok((programs, types))
    })?;
    let mut table = Table::new(&[
        ("drive", Align::Left),
        ("index", Align::Right),
        ("type", Align::Left),
        ("state", Align::Left),
        ("pid", Align::Right),
    ]);
    let mut drives = Vec::new();
    for (drive, (programs, types)) in done {
        let mut described = Vec::new();
        for (index, program) in programs.iter().enumerate() {
            let state = ProgramState(program.state());
            if state.occupied() == 0 {
                continue;
            }
            let own = text_of(&program.name()).unwrap_or_default().to_owned();
            let known = types.iter().find(|one| one.ptype == program.ptype());
            let ptype = match (state.occupied(), known) {
                (DEVICE_DEFINED, _) => own,
                (_, Some(known)) => known.name.clone(),
                (_, None) => format!("{:#04x}", program.ptype()),
            };
            let active = state.active() == 1;
            let word = if active { "active" } else { "loaded" };
            let cells = [context.shown(&drive), index.to_string(), ptype.clone(), word.to_owned()];
            table.row([&cells[..], &[program_id(program.pid())]].concat());
            described.push(json!({
                "index": index, "type": ptype, "active": active, "pid": program_id(program.pid()),
                "own": state.occupied() == DEVICE_DEFINED,
            }));
        }
        let types: Vec<Value> = types.into_iter().map(|one| one.name.into()).collect();
        drives.push(json!({ "drive": drive, "programs": described, "types": types }));
    }
    Ok(Report::new(table.render(), json!({ "drives": drives })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Class;

    #[test]
    fn a_drive_without_webassembly_says_so() {
        let failure = not_taken("10.0.0.7:4420", WASM);
        assert_eq!(failure.class, Class::Run);
        assert!(failure.message.contains("built without WebAssembly"), "{}", failure.message);
        assert_eq!(not_taken("10.0.0.7:4420", "elf").class, Class::Usage);
    }
}
