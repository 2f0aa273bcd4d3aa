//! Verify as a [`Kernel`].

use std::ops::Range;

use super::{NAME, PROGRAM_ID, Parameters, Plan as Pages, Spacing, Whole, program};
use crate::ElementType;
use crate::kernel::{
    Answer, Arguments, Choice, Description, Field, Input, Kernel, Kind, ObjectName, OutputUse,
    Plan, Position, Sample, Usage, Value, Wanted, Writes, mix,
};
use crate::program::{Failure, Program, SplitRule};

/// The kernel.
pub static KERNEL: VerifyKernel = VerifyKernel;

/// Verify: the CRC-32C of every page.
#[derive(Debug)]
pub struct VerifyKernel;

/// Size of a checksum, bytes.
const CHECKSUM_BYTES: u64 = 4;

static USAGE: Usage = Usage {
    about: "Compute the CRC-32C of every page",
    details: "\
Prints the digest: the CRC-32C of all checksums, little-endian and in order. It does not depend on \
drives, chunks, or how pages are worked on.",
    examples: "\
csd run verify data
csd run verify data --page-bytes 64K --unroll 4 --units 8 --check
csd run verify data --auto --on drives
csd run verify data -o checksums",
    inputs: &[ObjectName { name: "NAME", help: "Name of the object" }],
    options: &OPTIONS,
    output: OutputUse::Optional("Also store the checksums as an object of i32"),
    can_tune: true,
};

static OPTIONS: [Choice; 4] = [
    Choice {
        name: "page-bytes",
        value_name: "SIZE",
        help: "Size of a page, a power of two that divides the object's chunks",
        kind: Kind::Size,
        default: Some("4K"),
        is_required: false,
        is_tuned: false,
    },
    Choice {
        name: "pages-per-unit",
        value_name: "N",
        help: "Pages that an execution takes at a time, made whole chunks [default: by what is \
               left]",
        kind: Kind::Number(1, u32::MAX as u64),
        default: None,
        is_required: false,
        is_tuned: true,
    },
    Choice {
        name: "units",
        value_name: "N",
        help: "Executions of a drive under way at once [default: 4]",
        kind: Kind::Number(1, 64),
        default: None,
        is_required: false,
        is_tuned: true,
    },
    Choice {
        name: "unroll",
        value_name: "N",
        help: "Pages that advance together in one stream of instructions, 1 to 8",
        kind: Kind::Number(1, 8),
        default: Some("1"),
        is_required: false,
        is_tuned: true,
    },
];

impl Kernel for VerifyKernel {
    fn name(&self) -> &'static str {
        NAME
    }

    fn program_id(&self) -> u64 {
        PROGRAM_ID
    }

    fn start(&self, parameters: &[u8], _: Wanted) -> Result<Box<dyn Program>, Failure> {
        program::start(parameters)
    }

    /// Returns a rule that splits pages anywhere; parts begin where a gap of the digest ends.
    fn split(&self, parameters: &[u8], wanted: Wanted) -> Option<SplitRule> {
        let Parameters { plan, spacing } = Parameters::parse(parameters).ok()?;
        // No useful digest has a longer gap.
        u32::try_from(spacing.gap).ok()?;
        let written_bytes = if wanted == Wanted::Result { 0 } else { CHECKSUM_BYTES };
        let unit_items = spacing.every.max(1).into();
        let rule = SplitRule::elements(plan.page_bytes() as usize);
        Some(SplitRule { written_bytes, unit_items, ..rule })
    }

    fn join(&self, parameters: &[u8], parts: &[(Range<u64>, u64)]) -> u64 {
        let Ok(Parameters { plan, spacing }) = Parameters::parse(parameters) else { return 0 };
        let page_bytes = u64::from(plan.page_bytes());
        let pages = parts.last().map_or(0, |(bytes, _)| bytes.end.div_ceil(page_bytes));
        let items = spacing.span(pages);
        let mut whole = Answer::default();
        for (bytes, result) in parts {
            let before = bytes.start / page_bytes;
            // Parts begin where a gap ends.
            let first = before + spacing.gaps(before);
            let position = Position { first, every: spacing.every, gap: spacing.gap, items };
            let answer = Answer { result: *result, bytes: Vec::new() };
            self.combine(&mut whole, self.place(&position, answer));
        }
        u64::from(digest(&whole, items)) | pages << 32
    }

    fn usage(&self) -> Option<&'static Usage> {
        Some(&USAGE)
    }

    fn plan(&self, inputs: &[Input<'_>], arguments: &Arguments) -> Result<Plan, String> {
        let input = &inputs[0];
        let pages = Pages::new(
            arguments.number("page-bytes")?.unwrap_or(4096),
            arguments.number("pages-per-unit")?.unwrap_or(1),
            arguments.number("units")?.unwrap_or(1),
            arguments.number("unroll")?.unwrap_or(1),
        );
        let pages = pages.map_err(|malformed| malformed.to_string())?;
        if !input.chunk_bytes.is_multiple_of(pages.page_bytes()) {
            return Err(format!(
                "pages of {} bytes do not divide the chunks of {:?}, which have {} bytes: use a \
                 power of two",
                pages.page_bytes(),
                input.name,
                input.chunk_bytes
            ));
        }
        let plan = Plan::over_chunks(Vec::new(), input.element);
        let writes = Writes::PerItem { element: ElementType::I32 };
        Ok(with_pages(&Plan { writes, ..plan }, pages))
    }

    fn replan(&self, plan: &Plan, parameters: Vec<u8>) -> Plan {
        match Pages::parse(&parameters) {
            Ok(pages) => with_pages(plan, pages),
            Err(_) => plan.clone(),
        }
    }

    fn parameters_at(&self, parameters: &[u8], position: &Position) -> Vec<u8> {
        let Ok(parsed) = Parameters::parse(parameters) else { return parameters.to_vec() };
        let spacing = Spacing { every: position.every, gap: position.gap };
        Parameters { spacing, ..parsed }.encode()
    }

    /// Converts the answer into the number of pages and the linear part of the whole's digest.
    fn place(&self, position: &Position, answer: Answer) -> Answer {
        let pages = answer.result >> 32;
        let spacing = Spacing { every: position.every, gap: position.gap };
        let mut whole = Whole::new(position.items);
        if pages > 0 {
            let digest = u32::try_from(answer.result & u64::from(u32::MAX)).expect("masked");
            whole.add(position.first, spacing.span(pages), digest);
        }
        Answer { result: pages, bytes: whole.linear().to_le_bytes().to_vec() }
    }

    fn combine(&self, whole: &mut Answer, other: Answer) {
        whole.result += other.result;
        let linear = (linear(whole) ^ linear(&other)).to_le_bytes();
        whole.bytes = linear.to_vec();
    }

    fn describe(&self, _: &[u8], answer: &Answer, items: u64) -> Description {
        let digest = format!("{:08x}", digest(answer, items));
        Description {
            shown: Some(("digest", digest.clone())),
            fields: vec![("digest", Value::Text(digest))],
            ..Description::count("pages", answer.result)
        }
    }

    fn settings(&self, parameters: &[u8]) -> Vec<Field> {
        let Ok(Parameters { plan, .. }) = Parameters::parse(parameters) else { return Vec::new() };
        vec![
            ("page_bytes", Value::Count(plan.page_bytes().into())),
            ("pages_per_unit", Value::Count(plan.pages_per_unit().into())),
            ("units", Value::Count(plan.units().into())),
            ("unroll", Value::Count(plan.unroll().into())),
        ]
    }

    fn settings_in_words(&self, parameters: &[u8]) -> String {
        match Parameters::parse(parameters) {
            Ok(Parameters { plan, .. }) if plan.unroll() == 0 => {
                "the drives change units and unrolling while they work".to_owned()
            }
            Ok(Parameters { plan, .. }) => format!(
                "{} pages a unit, {} units, {} pages together",
                plan.pages_per_unit(),
                plan.units(),
                plan.unroll()
            ),
            Err(_) => String::new(),
        }
    }

    fn adaptive(&self, parameters: &[u8]) -> Option<Vec<u8>> {
        let Parameters { plan, .. } = Parameters::parse(parameters).ok()?;
        Some(Pages::adaptive(plan.page_bytes()).encode())
    }

    fn adapted(&self, parameters: &[u8], unroll: u8) -> Option<Vec<u8>> {
        let parsed = Parameters::parse(parameters).ok()?;
        Some(Parameters { plan: parsed.plan.adapted(unroll)?, ..parsed }.encode())
    }

    fn alternatives(&self, parameters: &[u8], executions_max: u16) -> Vec<Vec<u8>> {
        let Ok(Parameters { plan, .. }) = Parameters::parse(parameters) else { return Vec::new() };
        let candidates = Pages::candidates(plan.page_bytes(), executions_max);
        candidates.iter().map(Pages::encode).collect()
    }

    fn sample(&self) -> Sample {
        let plan = Pages::new(4096, 8, 1, 1).expect("all numbers are within their bounds");
        let fill = |_, offset: u64, piece: &mut [u8]| {
            for (index, bytes) in (offset / 8..).zip(piece.as_chunks_mut::<8>().0) {
                *bytes = mix(index).to_le_bytes();
            }
        };
        let note = Some("CRC-32C of 4 KiB pages");
        Sample { note, ..Sample::new(plan.encode(), fill) }
    }
}

/// Returns a plan that divides pages as `pages` says.
fn with_pages(plan: &Plan, pages: Pages) -> Plan {
    let (page_bytes, at_a_time) = (pages.page_bytes(), pages.pages_per_unit());
    Plan {
        parameters: pages.encode(),
        item_bytes: page_bytes,
        execution_bytes: (at_a_time > 1).then(|| u64::from(page_bytes) * u64::from(at_a_time)),
        in_flight: (pages.units() > 1).then(|| pages.units().min(64)),
        ..plan.clone()
    }
}

fn linear(answer: &Answer) -> u32 {
    answer.bytes.first_chunk().map_or(0, |linear| u32::from_le_bytes(*linear))
}

/// Returns the digest of `items` checksums from their combined answer.
fn digest(answer: &Answer, items: u64) -> u32 {
    let mut whole = Whole::new(items);
    whole.join(linear(answer));
    whole.value()
}
