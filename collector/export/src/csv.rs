//! A table for spreadsheets: one line a stack.
//!
//! A cell that a spreadsheet would take for a formula (`=`, `+`, `-`, `@` first, also behind white
//! space) begins with an apostrophe, as OWASP's "CSV Injection" page recommends.

use crate::selection::{Selection, layer_name};

/// The columns, in order.
pub const COLUMNS: [&str; 17] = [
    "process",
    "rank",
    "device",
    "layer",
    "bytes",
    "blocks",
    "allocated_bytes",
    "allocated_blocks",
    "generations",
    "first_generation",
    "last_generation",
    "origin",
    "function",
    "file",
    "line",
    "command",
    "stack",
];

/// Writing the table failed.
#[derive(Debug, thiserror::Error)]
#[error("the CSV table could not be written")]
pub struct Error(#[from] csv::Error);

/// All parts of a selection, most bytes first.
///
/// # Errors
/// The writer's.
pub fn write(selection: &Selection, out: impl std::io::Write) -> Result<(), Error> {
    let mut table = csv::WriterBuilder::new()
        // Control characters are written out already; every text is quoted, so that no cell
        // depends on what a reader guesses.
        .quote_style(csv::QuoteStyle::NonNumeric)
        .from_writer(out);
    table.write_record(COLUMNS)?;
    for part in &selection.parts {
        let mut rows = part.by_stack();
        rows.sort_by_key(|row| (std::cmp::Reverse((row.bytes, row.blocks)), row.stack));
        for row in rows {
            let first = part.rows.partition_point(|other| other.stack < row.stack);
            let generations = part.rows[first..]
                .iter()
                .take_while(|other| other.stack == row.stack)
                .filter_map(|other| other.generation);
            let (mut count, mut bounds) = (0u64, None);
            for generation in generations {
                count += 1;
                let (first, _) = bounds.unwrap_or((generation, generation));
                bounds = Some((first, generation));
            }
            let total = part
                .totals
                .binary_search_by_key(&row.stack, |total| total.stack)
                .map_or((0, 0), |at| (part.totals[at].bytes, part.totals[at].blocks));
            let own = selection.table.own_frame(row.stack);
            table.write_record([
                part.key.process.to_string(),
                part.process
                    .rank
                    .map(|rank| rank.to_string())
                    .unwrap_or_default(),
                part.key.device.to_string(),
                layer_name(part.key.layer).into(),
                row.bytes.to_string(),
                row.blocks.to_string(),
                total.0.to_string(),
                total.1.to_string(),
                count.to_string(),
                bounds
                    .map(|(first, _)| first.to_string())
                    .unwrap_or_default(),
                bounds.map(|(_, last)| last.to_string()).unwrap_or_default(),
                own.origin.name().into(),
                cell(&own.function),
                cell(&own.file),
                own.line.to_string(),
                cell(&vramscope_collector::escape::line(
                    &part.process.command,
                    400,
                )),
                cell(&selection.table.folded(row.stack)),
            ])?;
        }
    }
    table.flush().map_err(csv::Error::from)?;
    Ok(())
}

/// Text that no spreadsheet takes for a formula. Full-width signs count: some programs fold them.
fn cell(text: &str) -> String {
    match text.trim_start().chars().next() {
        Some('=' | '+' | '-' | '@' | '\t' | '\r' | '＝' | '＋' | '－' | '＠') => {
            format!("'{text}")
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn formulas_become_text() {
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "＝1"] {
            assert_eq!(cell(formula), format!("'{formula}"));
        }
        for harmless in ["a=1", "", "f (x.py:1)", "'=1"] {
            assert_eq!(cell(harmless), harmless);
        }
    }
}
