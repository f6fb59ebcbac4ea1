//! Every format is opened by the program it is for.
//!
//! `scripts/setup --consumers` installs them; a test whose consumer is missing says so.

#[path = "support/firefox.rs"]
mod firefox_session;
mod support;

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use firefox_session::FirefoxSession;
use serde_json::Value;
use support::{Stream, consume, consumers, hostile, python, recorded, run, small};
use vramscope_export::{
    Gathered, Weight, What, csv, firefox, html, parquet, perfetto, pprof, speedscope, svg,
    torch_snapshot,
};
use vramscope_test_support::{root, skip};

/// A real program, the made-up one, and the one with hostile names.
fn streams() -> Vec<Stream> {
    let mut all = recorded(&["01_running_loss_keeps_graph"]);
    all.push(small());
    all.push(hostile());
    all
}

/// A file of an export in a folder of its own.
struct Written {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn written(name: &str, write: impl FnOnce(File)) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    write(File::create(&path).unwrap());
    Written {
        _folder: folder,
        path,
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn total(gathered: &Gathered) -> u64 {
    gathered.selection.bytes()
}

/// No name holds what a terminal or a page would obey.
fn harmless(names: &Value) {
    let names = names.as_array().expect("names");
    assert!(!names.is_empty());
    for name in names {
        let name = name.as_str().unwrap();
        assert!(!name.chars().any(char::is_control), "{name:?}");
        assert!(
            !name.contains(['\u{202e}', '\u{2028}', '\u{feff}']),
            "{name:?}"
        );
        assert!(name.chars().count() <= 400, "{} characters", name.len());
    }
}

#[test]
fn speedscope_takes_it() {
    let Some(python) = python("speedscope_takes_it") else {
        return;
    };
    let schema = consumers().join("speedscope/package/dist/release/file-format-schema.json");
    for stream in streams() {
        let gathered = stream.survivors();
        let file = written("a.speedscope.json", |file| {
            speedscope::write(&gathered.selection, file).unwrap();
        });
        let seen = json(&consume(
            &python,
            "read_speedscope.py",
            &[&schema, &file.path],
        ));
        let profiles = seen["profiles"].as_array().unwrap();
        assert_eq!(profiles.len(), 2 * gathered.selection.parts.len());
        let sum = |unit| -> u64 {
            let of_unit = profiles.iter().filter(|profile| profile["unit"] == unit);
            of_unit
                .map(|profile| profile["sum"].as_u64().unwrap())
                .sum()
        };
        assert_eq!(sum("bytes"), total(&gathered), "{}", stream.name);
        assert_eq!(sum("none"), gathered.selection.count());
        harmless(&seen["names"]);
    }
}

#[test]
fn go_pprof_reads_it() {
    if Command::new("go").arg("version").output().is_err() {
        skip("go_pprof_reads_it", "no Go (`scripts/setup --consumers`)");
        return;
    }
    let pprof = |arguments: &[&str], path: &Path| {
        run(Command::new("go")
            .args(["tool", "pprof"])
            .args(arguments)
            .arg(path)
            // It keeps a copy of what it opens.
            .env("PPROF_TMPDIR", path.parent().unwrap()))
    };
    for stream in streams() {
        let gathered = stream.survivors();
        let file = written("a.pb.gz", |file| {
            pprof::write(&gathered.selection, file).unwrap()
        });
        let raw = pprof(&["-raw"], &file.path);
        assert!(raw.contains(
            "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes[dflt]"
        ));
        let mut sums = [0u64; 4];
        for line in raw.lines().skip_while(|line| *line != "Samples:") {
            if line == "Locations" {
                break;
            }
            let Some((values, _)) = line.split_once(':') else {
                continue;
            };
            let values: Vec<u64> = values.split_whitespace().flat_map(str::parse).collect();
            if values.len() == 4 {
                (0..4).for_each(|at| sums[at] += values[at]);
            }
        }
        assert_eq!(sums[3], total(&gathered), "{}", stream.name);
        assert_eq!(sums[2], gathered.selection.count());
        assert!(sums[1] >= sums[3]);
        assert!(!raw.chars().any(|char| char.is_control() && char != '\n'));
        let top = pprof(&["-top", "-unit=B"], &file.path);
        assert!(top.contains("Type: inuse_space"), "{top}");
        assert!(
            top.contains(&format!("of {}B total", total(&gathered))),
            "{top}"
        );
        if stream.name == "small" {
            for label in [
                "device:[0]",
                "device:[1]",
                "generation:[7]",
                "step:[step 000007]",
                "layer:[tensor]",
            ] {
                assert!(raw.contains(label), "{label}");
            }
            let some = pprof(&["-top", "-unit=B", "-tagfocus=generation=3:5"], &file.path);
            assert!(some.contains("4608B"), "{some}");
        }
    }
}

#[test]
fn the_firefox_profiler_reads_it() {
    let test = "the_firefox_profiler_reads_it";
    let tool = consumers().join("firefox/package/dist/profiler-cli.js");
    if !tool.exists() || Command::new("node").arg("--version").output().is_err() {
        skip(test, "no Firefox profiler (`scripts/setup --consumers`)");
        return;
    }
    for stream in streams() {
        let gathered = stream.survivors();
        let file = written("a.json", |file| firefox::write(&gathered, file).unwrap());
        let session = FirefoxSession::open(&tool, &file.path);
        let mut sum = 0;
        for thread in 0..gathered.selection.parts.len() {
            let tree = json(&run(&mut session.command(&[
                "thread",
                "samples-top-down",
                "--thread",
                &format!("t-{thread}"),
                "--strategy",
                "native-retained-allocations",
                "--json",
            ])));
            assert_eq!(tree["weightType"], "bytes");
            sum += tree["regularCallTree"]["totalSamples"].as_u64().unwrap();
        }
        assert_eq!(sum, total(&gathered), "{}", stream.name);
    }
}

#[test]
fn perfetto_decodes_it() {
    let Some(python) = python("perfetto_decodes_it") else {
        return;
    };
    for stream in streams() {
        let gathered = stream.survivors();
        let file = written("a.pftrace", |file| {
            perfetto::write(&gathered, file).unwrap()
        });
        let seen = json(&consume(&python, "read_perfetto.py", &[&file.path]));
        assert_eq!(seen["survivors"], total(&gathered), "{}", stream.name);
        harmless(&seen["names"]);
        for device in &gathered.view.processes[0].devices {
            for curve in ["allocated", "floor", "reserved"] {
                let name = format!("GPU {} {curve}", device.device);
                assert_eq!(
                    seen["counters"][&name],
                    device.series.points.len(),
                    "{name}"
                );
            }
            let most = device
                .series
                .points
                .iter()
                .map(|point| point.allocated)
                .max();
            assert_eq!(
                seen["most"][format!("GPU {} allocated", device.device)],
                most.unwrap()
            );
        }
        if stream.name == "small" {
            // Twelve calls of backward(), and an out-of-memory error.
            assert_eq!(seen["marks"], 13);
        }
    }
}

#[test]
fn pytorch_opens_its_snapshot() {
    let test = "pytorch_opens_its_snapshot";
    let Some(site) = torch() else {
        skip(test, "no PyTorch (`tests/simcuda/run --setup`)");
        return;
    };
    for stream in streams() {
        let gathered = stream.survivors();
        let file = written("a.pickle", |file| {
            let left_out = torch_snapshot::write(&gathered, file).unwrap();
            assert_eq!(left_out.events, 0);
        });
        let reader = site.join("torch/cuda/_memory_viz.py");
        let seen = json(&consume(
            Path::new("python3"),
            "read_memory_viz.py",
            &[&reader, &file.path],
        ));
        assert_eq!(seen["active"], total(&gathered), "{}", stream.name);
        assert_eq!(seen["alive"], total(&gathered), "{}", stream.name);
        assert_eq!(seen["protocol"], 2);
        harmless(&seen["names"]);
        if stream.name == "small" {
            assert_eq!(seen["segments"], 2);
            let actions = serde_json::json!(["alloc", "free_completed", "free_requested", "oom"]);
            assert_eq!(seen["actions"], actions);
        }
    }
}

/// The folder of packages that the simulator's PyTorch lies in.
fn torch() -> Option<PathBuf> {
    let run = Command::new(root().join("tests/simcuda/run"))
        .args(["--torch", "2.8.0", "--env"])
        .output()
        .ok()?;
    let text = String::from_utf8(run.stdout).ok()?;
    let line = text.lines().find(|line| line.contains("SIMCUDA_PYTHON="))?;
    let (_, python) = line.split_once('=')?;
    let python = PathBuf::from(python.trim_matches(['\'', '"', ';']));
    let library = fs::read_dir(python.parent()?.parent()?.join("lib")).ok()?;
    let mut folders = library
        .flatten()
        .map(|entry| entry.path().join("site-packages"));
    folders.find(|folder| folder.join("torch/cuda/_memory_viz.py").exists())
}

#[test]
fn duckdb_and_polars_read_the_tables() {
    let Some(python) = python("duckdb_and_polars_read_the_tables") else {
        return;
    };
    for stream in streams() {
        let gathered = stream.survivors();
        let folder = tempfile::tempdir().unwrap();
        let create = |name: &str| File::create(folder.path().join(name)).unwrap();
        let mut events = parquet::Events::new(create("events.parquet")).unwrap();
        for batch in stream.records.chunks(1000) {
            events.push(batch).unwrap();
        }
        events.finish().unwrap();
        parquet::stacks(&gathered.selection, create("stacks.parquet")).unwrap();
        parquet::sites(&gathered.selection, create("sites.parquet")).unwrap();
        let document = root().join("docs/exports.md");
        let seen = json(&consume(
            &python,
            "read_tables.py",
            &[&document, folder.path()],
        ));
        let expected = [total(&gathered), gathered.selection.count()];
        assert_eq!(seen["sites"], serde_json::json!(expected));
        let queries = &seen["queries"];
        assert_eq!(queries.as_array().unwrap().len(), 4);
        let alive = &queries[1][0];
        assert_eq!(alive["bytes"], expected[0].to_string(), "{}", stream.name);
        assert_eq!(alive["blocks"], expected[1].to_string());
        let by_line: u64 = (queries[0].as_array().unwrap().iter())
            .map(|row| row["bytes"].as_str().unwrap().parse::<u64>().unwrap())
            .sum();
        let by_polars: u64 = (seen["polars"][0].as_array().unwrap().iter())
            .map(|row| row["bytes"].as_u64().unwrap())
            .sum();
        assert_eq!(by_polars, expected[0]);
        assert!(by_line <= expected[0] && by_line > 0);
        assert!(!queries[2].as_array().unwrap().is_empty());
        harmless(&seen["names"]);
    }
}

#[test]
fn a_spreadsheet_gets_text() {
    for stream in streams() {
        let gathered = stream.survivors();
        let file = written("a.csv", |file| {
            csv::write(&gathered.selection, file).unwrap()
        });
        let seen = json(&consume(
            Path::new("python3"),
            "read_sheet.py",
            &[&file.path],
        ));
        assert_eq!(seen["bytes"], total(&gathered), "{}", stream.name);
    }
}

/// Chromium, and the Python that drives it.
fn chromium(test: &str) -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = names.into_iter().find_map(|name| {
        let output = Command::new("which").arg(name).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| PathBuf::from(path.trim()))
    });
    if found.is_none() {
        skip(test, "no Chromium (`scripts/setup --consumers`)");
    }
    found
}

fn browse(chromium: &Path, page: &Path, what: &str) -> Value {
    let seen = json(&consume(
        Path::new("python3"),
        "use_browser.py",
        &[chromium, page, Path::new(what)],
    ));
    assert_eq!(seen["trouble"], serde_json::json!([]));
    seen
}

#[test]
fn the_page_works_in_a_browser() {
    let Some(chromium) = chromium("the_page_works_in_a_browser") else {
        return;
    };
    let stream = &recorded(&["01_running_loss_keeps_graph"])[0];
    let gathered = stream.survivors();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    fs::write(&page, html::write(&gathered)).unwrap();
    let seen = browse(&chromium, &page, "use");
    assert_eq!(seen["start"]["bytes"], total(&gathered));
    assert_eq!(seen["cleared"]["bytes"], total(&gathered));
    assert_eq!(
        seen["blocks"]["text"],
        format!("{} blocks", gathered.selection.count())
    );
    // The window that was dragged, by our own count.
    let bounds = seen["bounds"].as_str().unwrap();
    let (from, to) = bounds.split_once('-').unwrap();
    let (from, to) = (from.parse::<u64>().unwrap(), to.parse::<u64>().unwrap());
    assert!(
        (99..=101).contains(&from) && (199..=201).contains(&to),
        "{bounds}"
    );
    let end = gathered.selection.moment.0;
    let inside = gathered.selection.parts[0].blocks.iter().filter(|block| {
        let bucket = (block.born.0 * 400 / end).min(399);
        (from..to).contains(&bucket)
    });
    assert_eq!(
        seen["window"]["bytes"],
        inside.map(|block| block.size).sum::<u64>()
    );
    assert_eq!(seen["moved"], format!("{}-{}", from + 8, to + 8));
    assert_eq!(seen["wider"], format!("{}-{}", from + 8, to + 16));
    // The search, by our own count.
    let table = &gathered.selection.table;
    let found = gathered.selection.parts[0]
        .by_stack()
        .into_iter()
        .filter(|row| {
            let mut frames = table.frames_of(row.stack);
            frames
                .any(|frame| frame.label.contains("torch/nn/") && frame.label.contains("container"))
        });
    let found: u64 = found.map(|row| row.bytes).sum();
    let words = vramscope_collector::report::units::bytes(found);
    let said = seen["found"]["text"].as_str().unwrap();
    assert!(
        said.contains(&format!("found: {words}")),
        "{said} against {words}"
    );
    assert!(seen["hits"].as_u64().unwrap() > 0);
    assert_eq!(seen["wrong"], "wrong");
    assert_eq!(seen["zoomed"], "100%");
    assert_ne!(seen["shown"], seen["unzoomed"]);
    assert_ne!(seen["themes"][0], seen["themes"][1]);
}

#[test]
fn the_page_shows_every_kind_of_selection() {
    let Some(chromium) = chromium("the_page_shows_every_kind_of_selection") else {
        return;
    };
    let stream = small();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    for (what, words) in [
        (What::Growth, "/step"),
        (What::Allocated, "MB"),
        (What::Peak(stream.peaks()), "MB"),
        (What::At(vramscope_events::Time(1)), "Nothing"),
    ] {
        let gathered = stream.gather(support::blocks(what));
        fs::write(&page, html::write(&gathered)).unwrap();
        let seen = browse(&chromium, &page, "parts");
        let parts = seen["parts"].as_array().unwrap();
        assert_eq!(parts.len(), gathered.selection.parts.len());
        for (seen, part) in parts.iter().zip(&gathered.selection.parts) {
            assert_eq!(seen["bytes"], part.bytes(), "{}", part.name());
        }
        let text = parts[0]["text"].as_str().unwrap();
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn hostile_names_stay_text_in_a_browser() {
    let Some(chromium) = chromium("hostile_names_stay_text_in_a_browser") else {
        return;
    };
    let gathered = hostile().survivors();
    let selection = &gathered.selection;
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    fs::write(&page, html::write(&gathered)).unwrap();
    let seen = browse(&chromium, &page, "hostile");
    assert_eq!(seen["start"]["bytes"], total(&gathered));
    assert_eq!((&seen["foreign"], &seen["scripts"]), (&0.into(), &2.into()));
    let labels = seen["labels"].as_array().unwrap();
    assert!(labels.len() > 30);
    for frame in &selection.table.frames {
        let shown = (labels.iter()).any(|label| label.as_str().unwrap().starts_with(&frame.label));
        assert!(shown, "{}", frame.label);
    }
    let picture = folder.path().join("flame.svg");
    let svg = svg::write(selection, selection.largest().unwrap(), Weight::Bytes).unwrap();
    fs::write(&picture, svg).unwrap();
    let seen = browse(&chromium, &picture, "picture");
    assert_eq!(seen["foreign"], serde_json::json!([]));
    assert_eq!(
        (&seen["root"], &seen["scripts"]),
        (&"svg".into(), &1.into())
    );
}
