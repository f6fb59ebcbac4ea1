//! What each format looks like, byte for byte, in `tests/golden/`.
//!
//! After a wanted change: `UPDATE_GOLDEN=1 cargo test -p vramscope-export --test golden`, and look
//! at the difference. Compressed formats are kept unpacked: how well a library packs is not ours.

mod support;

use std::{fs, path::PathBuf};

use support::{Stream, blocks, hostile, small};
use vramscope_export::{
    Choice, Weight, What, csv, firefox, folded, html, parquet, perfetto, pprof, speedscope, svg,
    torch_snapshot,
};

fn check(name: &str, bytes: &[u8]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).unwrap();
        fs::write(&path, bytes).unwrap();
        return;
    }
    let golden = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if golden == bytes {
        return;
    }
    let at = golden.iter().zip(bytes).take_while(|(a, b)| a == b).count();
    let around = |bytes: &[u8]| {
        let part = &bytes[at.saturating_sub(60).min(bytes.len())..(at + 60).min(bytes.len())];
        String::from_utf8_lossy(part).into_owned()
    };
    panic!(
        "{name} differs from byte {at} on:\n  is     {:?}\n  golden {:?}\n\
         if that is wanted: UPDATE_GOLDEN=1 cargo test -p vramscope-export --test golden",
        around(bytes),
        around(&golden)
    );
}

fn bytes(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    bytes(|out| {
        let mut reader = flate2::read::GzDecoder::new(packed);
        std::io::Read::read_to_end(&mut reader, out).unwrap();
    })
}

/// Rows as text: the encoding is the library's.
fn rows(bytes: Vec<u8>) -> String {
    use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let mut out = String::new();
    for row in reader.get_row_iter(None).unwrap() {
        out.push_str(&row.unwrap().to_string());
        out.push('\n');
    }
    out
}

fn check_stream(stream: &Stream) {
    let gathered = stream.survivors();
    let selection = &gathered.selection;
    let name = |rest: &str| format!("{}.{rest}", stream.name);
    let folded = folded::write(selection, Weight::Bytes);
    check(&name("folded"), folded.as_bytes());
    check(
        &name("csv"),
        &bytes(|out| csv::write(selection, out).unwrap()),
    );
    let speedscope = bytes(|out| speedscope::write(selection, out).unwrap());
    check(&name("speedscope.json"), &speedscope);
    let pprof = bytes(|out| pprof::write(selection, out).unwrap());
    check(&name("pprof.pb"), &unpacked(&pprof));
    let firefox = bytes(|out| firefox::write(&gathered, out).unwrap());
    check(&name("firefox.json"), &firefox);
    let perfetto = bytes(|out| perfetto::write(&gathered, out).unwrap());
    check(&name("pftrace"), &perfetto);
    let snapshot = bytes(|out| {
        torch_snapshot::write(&gathered, out).unwrap();
    });
    check(&name("pickle"), &snapshot);
    let events = bytes(|out| {
        let mut events = parquet::Events::new(out).unwrap();
        events.push(&stream.records).unwrap();
        events.finish().unwrap();
    });
    let stacks = bytes(|out| parquet::stacks(selection, out).unwrap());
    let sites = bytes(|out| parquet::sites(selection, out).unwrap());
    for (table, bytes) in [("events", events), ("stacks", stacks), ("sites", sites)] {
        check(&name(&format!("{table}.txt")), rows(bytes).as_bytes());
    }
    let part = selection.largest().expect("a part");
    let svg = svg::write(selection, part, Weight::Bytes).unwrap();
    check(&name("svg"), svg.as_bytes());
    // The page without its style and script, which the browser's test covers.
    let page = html::write(&gathered);
    let (_, rest) = page.split_once("id=\"data\">").expect("data");
    let (data, _) = rest.split_once("</script>").expect("the end of the data");
    check(&name("page.json"), data.as_bytes());
}

#[test]
fn the_small_run() {
    check_stream(&small());
}

#[test]
fn hostile_names() {
    check_stream(&hostile());
}

#[test]
fn a_difference() {
    let stream = small();
    let middle = vramscope_events::Time(stream.end().0 / 2);
    let before = stream.gather(blocks(What::At(middle))).selection;
    let after = stream.survivors().selection;
    let folded = folded::write_difference(&before, &after, Weight::Bytes);
    check("difference.folded", folded.as_bytes());
    let picture = svg::write_difference(
        (&before, &before.parts[0]),
        (&after, &after.parts[0]),
        Weight::Bytes,
    );
    check("difference.svg", picture.unwrap().as_bytes());
}

#[test]
fn growth_by_stack() {
    let choice = Choice {
        what: What::Growth,
        ..Choice::default()
    };
    let selection = small().gather(choice).selection;
    let text = folded::write(&selection, Weight::Bytes);
    check("growth.folded", text.as_bytes());
}
