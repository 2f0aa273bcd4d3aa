//! `csd run page-rank`: stores the graph if asked to, ranks its nodes, and shows the highest ranks.

use std::fmt::Write;
use std::io::Cursor;
use std::sync::Arc;

use csd_kernels::kernel::Arguments;
use csd_kernels::page_rank::{self, Options as RankOptions};
use csd_run::{Job, Ranks};
use csd_store::ElementType;
use csd_store::array::Array;
use csd_store::object::{self, Arrange, PutOptions};
use csd_store::source::Source;
use serde_json::json;

use super::{RunContext, look_up, report};
use crate::cli::run::PageRank;
use crate::context::Context;
use crate::edges;
use crate::report::{Failure, Report};
use crate::table::{Align, Table};
use crate::taken::Taken;
use crate::units::counted;

/// Stores the graph, if its edges are given, and returns what they were taken for.
pub(super) fn put_edges(options: &PageRank, context: &Context) -> Result<Option<Taken>, Failure> {
    let Some(path) = &options.edges else { return Ok(None) };
    let input = edges::input(path, &options.lines, None)?;
    put(context, &options.name, input.source, input.arrange, input.chunk_bytes)?;
    Ok(Some(input.taken))
}

/// Ranks the nodes, in one mode or in several that are compared; `None` if the graph was moved
/// meanwhile.
pub(super) fn page_rank(options: &PageRank, context: &Context) -> Result<Option<Report>, Failure> {
    let (plan, mut entries, warnings) = look_up(context, vec![options.name.clone()])?;
    let job =
        Arc::new(Job::new(&page_rank::KERNEL, vec![entries.remove(0)], &Arguments::default())?);
    let ranks = RankOptions {
        damping: options.damping,
        tolerance: options.tolerance,
        iterations_max: options.iterations,
    };
    let run_context = RunContext { context, plan, job, ways: options.ways.clone(), ranks };
    let Some(results) = run_context.run_all_in_place(None)? else { return Ok(None) };
    let ranks = results.outcomes[0].answer.ranks.as_ref().expect("page rank gives ranks");
    let top = top(&ranks.ranks, options.top);
    let more = json!({
        "iterations": ranks.iterations,
        "converged": ranks.converged,
        "distance": ranks.distance,
        "top": top.iter().map(|&node| json!({ "node": node, "rank": ranks.ranks[node] }))
            .collect::<Vec<_>>(),
    });
    let mut report = report(&run_context, &results, more, warnings)?;
    let mut table = Table::new(&[("node", Align::Right), ("rank", Align::Right)]);
    for node in top {
        table.row(vec![node.to_string(), format!("{:.6e}", ranks.ranks[node])]);
    }
    report.text += &table.render();
    let (steps, change) = (counted(ranks.iterations.into(), "step"), ranks.distance);
    if ranks.converged {
        let _infallible = writeln!(report.text, "settled after {steps}, change {change:.1e}");
    } else {
        // The ranks are usable, but a script must see that they have not converged.
        report.warn(format!(
            "not settled after {steps}: change {change:.1e}, tolerance {:e}; take more \
             --iterations or a larger --tolerance",
            options.tolerance
        ));
    }
    if let Some(name) = &options.output {
        put(context, name, vector(name, ranks), Arrange::Spread, None)?;
        report.result["output"] = name.as_str().into();
    }
    Ok(Some(report))
}

/// Returns the nodes with the highest ranks; of equal ranks the lower node comes first.
fn top(ranks: &[f64], count: usize) -> Vec<usize> {
    let mut nodes: Vec<usize> = (0..ranks.len()).collect();
    nodes.sort_by(|&a, &b| ranks[b].total_cmp(&ranks[a]).then(a.cmp(&b)));
    nodes.truncate(count);
    nodes
}

/// Returns the ranks as a source to store.
#[allow(clippy::cast_possible_truncation)] // dense ranks are f32, and come back as they were
fn vector(name: &str, ranks: &Ranks) -> Source {
    let (bytes, element): (Vec<u8>, _) = match ranks.dense {
        true => {
            let bytes = ranks.ranks.iter().flat_map(|rank| (*rank as f32).to_le_bytes());
            (bytes.collect(), ElementType::F32)
        }
        false => {
            let bytes = ranks.ranks.iter().flat_map(|rank| rank.to_le_bytes());
            (bytes.collect(), ElementType::F64)
        }
    };
    Source::raw(name, Box::new(Cursor::new(bytes)), element)
}

fn put(
    context: &Context,
    name: &str,
    source: Source,
    arrange: Arrange,
    chunk_bytes: Option<u64>,
) -> Result<(), Failure> {
    let options = PutOptions { chunk_bytes, arrange, ..PutOptions::new(name.to_owned()) };
    context.with_array(async move |array: &Array| {
        object::put(array, source, &options, &object::Progress::none()).await?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_come_first_and_equal_ones_by_node() {
        assert_eq!(top(&[0.1, 0.4, 0.1, 0.4], 3), [1, 3, 0]);
        assert!(top(&[], 3).is_empty());
    }
}
