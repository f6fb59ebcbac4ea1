//! `export`: a recording as other tools read it.

use std::{
    fs::File,
    io::BufWriter,
    path::{Path, PathBuf},
    process::ExitCode,
};

use vramscope_collector::report::units;
use vramscope_events::{ProcessInfo, Record};
use vramscope_export::{
    Gathered, MOST_EVENTS, Weight, csv, firefox, folded, parquet, perfetto, pprof, speedscope,
    torch_snapshot,
};
use vramscope_recording::Checkpoint;

use crate::{
    cli::{ExportArgs, ExportFormat},
    output,
    selecting::{self, Recorded, Selecting, Visitor},
};

/// `vramscope export FILE --to FORMAT`.
pub fn export(options: &ExportArgs) -> anyhow::Result<ExitCode> {
    let path = match &options.output {
        Some(path) => path.clone(),
        None => beside(&options.file.path, options.to),
    };
    let to_stdout = path == Path::new("-");
    anyhow::ensure!(
        !(to_stdout && options.to == ExportFormat::Parquet),
        "Parquet is a folder of tables and cannot go to standard output\n  name one: -o DIR"
    );
    output::check_free(&path, options.force)?;
    let recorded = Recorded::open(&options.file, None)?;
    let blocks = matches!(
        options.to,
        ExportFormat::Firefox | ExportFormat::TorchSnapshot
    );
    let choice = recorded.choice(&options.select, blocks)?;
    if options.to == ExportFormat::Parquet {
        output::folder(&path, options.force, |folder| {
            tables(&recorded, recorded.selecting(choice, 0), folder)
        })?;
    } else {
        let events = match options.to {
            ExportFormat::Firefox | ExportFormat::TorchSnapshot | ExportFormat::Perfetto => {
                MOST_EVENTS
            }
            _ => 0,
        };
        let gathered = recorded.gather(choice, events)?;
        let weight = selecting::weight(&options.select);
        output::stream(&path, options.force, |out| {
            write(&gathered, options.to, weight, out)
        })?;
    }
    if !to_stdout {
        eprintln!("written: {}; {}", path.display(), hint(options.to, &path));
    }
    Ok(recorded.exit_code())
}

fn write(
    gathered: &Gathered,
    to: ExportFormat,
    weight: Weight,
    out: &mut dyn std::io::Write,
) -> anyhow::Result<()> {
    let selection = &gathered.selection;
    match to {
        ExportFormat::Speedscope => speedscope::write(selection, out)?,
        ExportFormat::Pprof => pprof::write(selection, out)?,
        ExportFormat::Firefox => firefox::write(gathered, out)?,
        ExportFormat::Perfetto => perfetto::write(gathered, out)?,
        ExportFormat::TorchSnapshot => {
            let left_out = torch_snapshot::write(gathered, out)?;
            if left_out.events > 0 {
                eprintln!(
                    "note: {} older events are left out: the viewer shows {} at most",
                    units::count(left_out.events),
                    units::count(MOST_EVENTS as u64)
                );
            }
        }
        ExportFormat::Folded => out.write_all(folded::write(selection, weight).as_bytes())?,
        ExportFormat::Csv => csv::write(selection, out)?,
        ExportFormat::Parquet => unreachable!("tables are written as the records go by"),
    }
    Ok(())
}

/// The three tables; events as they go by, so that a long recording needs no more memory.
fn tables(recorded: &Recorded, selecting: Selecting<'_>, folder: &Path) -> anyhow::Result<()> {
    let create = |name: &str| File::create_new(folder.join(name)).map(BufWriter::new);
    let mut both = Tables {
        events: parquet::Events::new(create("events.parquet")?)?,
        selecting,
    };
    recorded.visit("writing events", &mut both)?;
    both.events.finish()?;
    let gathered = both.selecting.finish()?;
    parquet::stacks(&gathered.selection, create("stacks.parquet")?)?;
    parquet::sites(&gathered.selection, create("sites.parquet")?)?;
    Ok(())
}

struct Tables<'a, W: std::io::Write + Send> {
    events: parquet::Events<W>,
    selecting: Selecting<'a>,
}

impl<W: std::io::Write + Send> Visitor for Tables<'_, W> {
    fn records(&mut self, records: &[Record]) -> anyhow::Result<()> {
        self.events.push(records)?;
        self.selecting.records(records)
    }

    fn restart(&mut self, checkpoint: &Checkpoint) {
        self.selecting.restart(checkpoint);
    }

    fn process(&mut self, info: &ProcessInfo) {
        self.selecting.process(info);
    }
}

/// A file of the recording's name, in the folder where the user is.
fn beside(recording: &Path, to: ExportFormat) -> PathBuf {
    let extension = match to {
        ExportFormat::Speedscope => "speedscope.json",
        ExportFormat::Pprof => "pb.gz",
        ExportFormat::Firefox => "firefox.json",
        ExportFormat::Perfetto => "pftrace",
        ExportFormat::TorchSnapshot => "pickle",
        ExportFormat::Folded => "folded",
        ExportFormat::Csv => "csv",
        ExportFormat::Parquet => "parquet",
    };
    let mut name = recording.file_stem().unwrap_or_default().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

/// Where to open it.
fn hint(to: ExportFormat, path: &Path) -> String {
    match to {
        ExportFormat::Speedscope => "open it at https://www.speedscope.app".into(),
        ExportFormat::Pprof => format!("open it with: go tool pprof -http=: {}", path.display()),
        ExportFormat::Firefox => "open it at https://profiler.firefox.com".into(),
        ExportFormat::Perfetto => "open it at https://ui.perfetto.dev".into(),
        ExportFormat::TorchSnapshot => "open it at https://pytorch.org/memory_viz".into(),
        ExportFormat::Folded => "open it at https://www.speedscope.app, or with inferno".into(),
        ExportFormat::Csv => "open it in a spreadsheet".into(),
        ExportFormat::Parquet => format!(
            "query it, such as: duckdb -c \"SELECT * FROM '{}/sites.parquet' ORDER BY bytes DESC\"",
            path.display()
        ),
    }
}
