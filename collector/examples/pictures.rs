//! Writes every report of the fixed views into a directory, to look at them:
//! `cargo run -p vramscope-collector --features fixture --example pictures DIRECTORY`.

use std::{error::Error, fs, path::PathBuf};

use vramscope_collector::{
    fixture,
    flamegraph::{Weight, svg},
    report::{Options, layout::Color, markdown, text},
};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .ok_or("name a directory to write into")?;
    fs::create_dir_all(&directory)?;
    let views = [
        ("leak", fixture::leak()),
        ("healthy", fixture::healthy()),
        ("growing", fixture::growing()),
        ("ranks", fixture::four_ranks()),
        ("hostile", fixture::hostile()),
        ("many", fixture::many(3000)),
    ];
    for (name, view) in views {
        let layout = text::Layout {
            width: 80,
            color: Color::Ansi,
        };
        let text = text::report(&view, Options::default(), layout);
        fs::write(directory.join(format!("{name}.txt")), text)?;
        let text = markdown::report(&view, Options::default());
        fs::write(directory.join(format!("{name}.md")), text)?;
        let process = &view.processes[0];
        for (kind, weight) in [
            ("bytes", Weight::Bytes),
            ("blocks", Weight::Blocks),
            ("growth", Weight::Growth),
        ] {
            let picture = svg(&view, process, &process.devices[0], weight)?;
            fs::write(directory.join(format!("{name}_{kind}.svg")), picture)?;
        }
    }
    Ok(())
}
