//! Writes every format of a recorded program and of hostile names to a folder, for a look:
//! `cargo run --release -p vramscope-export --example exports DIR`.

#[path = "../tests/support/mod.rs"]
mod support;

use std::{fs, io::Write, path::Path};

use vramscope_export::{
    Weight, csv, firefox, folded, html, parquet, perfetto, pprof, speedscope, svg, torch_snapshot,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .ok_or("where to? give a folder")?;
    let mut streams = support::recorded(&["01_running_loss_keeps_graph", "fine_gan"]);
    streams.extend([support::small(), support::hostile()]);
    for stream in streams {
        write_all(&stream, &Path::new(&folder).join(&stream.name))?;
    }
    Ok(())
}

fn write_all(stream: &support::Stream, folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    fs::create_dir_all(folder)?;
    let create = |name: &str| fs::File::create(folder.join(name));
    let gathered = stream.survivors();
    let selection = &gathered.selection;
    create("stacks.folded")?.write_all(folded::write(selection, Weight::Bytes).as_bytes())?;
    csv::write(selection, create("sites.csv")?)?;
    speedscope::write(selection, create("run.speedscope.json")?)?;
    pprof::write(selection, create("run.pb.gz")?)?;
    firefox::write(&gathered, create("run.firefox.json")?)?;
    perfetto::write(&gathered, create("run.pftrace")?)?;
    torch_snapshot::write(&gathered, create("run.pickle")?)?;
    let mut events = parquet::Events::new(create("events.parquet")?)?;
    events.push(&stream.records)?;
    events.finish()?;
    parquet::stacks(selection, create("stacks.parquet")?)?;
    parquet::sites(selection, create("sites.parquet")?)?;
    create("page.html")?.write_all(html::write(&gathered).as_bytes())?;
    for part in &selection.parts {
        let picture = svg::write(selection, part, Weight::Bytes)?;
        create(&format!("gpu{}.svg", part.key.device))?.write_all(picture.as_bytes())?;
    }
    Ok(())
}
