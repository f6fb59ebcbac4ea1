//! Every format says the same: what it holds adds up to the selection, and the selection to what
//! a plain ledger counts.

mod support;

use std::{collections::HashMap, process::Command};

use prost::Message;
use support::{Stream, alive, blocks, hostile, recorded, small};
use vramscope_events::Time;
use vramscope_export::{
    Bound, Choice, Gather, Gathered, MOST_EVENTS, Weight, What, csv, firefox, folded, html,
    parquet, perfetto, pprof, speedscope, svg, torch_snapshot,
};

const PROGRAMS: [&str; 4] = [
    "01_running_loss_keeps_graph",
    "33_neg_adam_state_staged_unfreeze",
    "fine_gan",
    "leak_server_keeps_answers",
];

fn streams() -> Vec<Stream> {
    let mut all = recorded(&PROGRAMS);
    all.push(small());
    all.push(hostile());
    all
}

/// Bytes and blocks by format.
fn sums(stream: &Stream, gathered: &Gathered) -> Vec<(&'static str, u64, Option<u64>)> {
    let selection = &gathered.selection;
    let mut out = Vec::new();
    let fold = |weight| {
        let text = folded::write(selection, weight);
        let weights = text.lines().map(|line| {
            let (stack, weight) = line.rsplit_once(' ').expect("a weight");
            assert!(stack.ends_with([')', ']']), "{stack}");
            weight.parse::<u64>().expect("a number")
        });
        weights.sum::<u64>()
    };
    out.push(("folded", fold(Weight::Bytes), Some(fold(Weight::Blocks))));

    let mut bytes = Vec::new();
    csv::write(selection, &mut bytes).unwrap();
    let mut table = ::csv::Reader::from_reader(&bytes[..]);
    let (mut sum, mut count) = (0, 0);
    for row in table.records() {
        let row = row.unwrap();
        assert_eq!(row.len(), csv::COLUMNS.len());
        sum += row[4].parse::<u64>().unwrap();
        count += row[5].parse::<u64>().unwrap();
    }
    out.push(("csv", sum, Some(count)));

    let mut bytes = Vec::new();
    speedscope::write(selection, &mut bytes).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let total = |unit: &str| -> u64 {
        let profiles = file["profiles"].as_array().unwrap().iter();
        let weights = profiles
            .filter(|profile| profile["unit"] == unit)
            .flat_map(|profile| profile["weights"].as_array().unwrap());
        weights.map(|weight| weight.as_u64().unwrap()).sum()
    };
    out.push(("speedscope", total("bytes"), Some(total("none"))));

    let profile = decode_pprof(gathered);
    let values = |at: usize| {
        profile
            .sample
            .iter()
            .map(|one| one.value[at] as u64)
            .sum::<u64>()
    };
    out.push(("pprof", values(3), Some(values(2))));
    let ever: u64 = selection
        .parts
        .iter()
        .flat_map(|part| &part.totals)
        .map(|row| row.bytes)
        .sum();
    assert_eq!(values(1), ever);

    let mut bytes = Vec::new();
    firefox::write(gathered, &mut bytes).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let mut sum = 0i64;
    for thread in file["threads"].as_array().unwrap() {
        let weights = thread["nativeAllocations"]["weight"].as_array();
        sum += weights
            .into_iter()
            .flatten()
            .map(|weight| weight.as_i64().unwrap())
            .sum::<i64>();
    }
    out.push(("firefox", sum as u64, None));

    let mut bytes = Vec::new();
    perfetto::write(gathered, &mut bytes).unwrap();
    let trace = Trace::decode(&bytes[..]).unwrap();
    let weights = trace
        .packet
        .iter()
        .filter_map(|packet| packet.event.as_ref()?.weight);
    out.push(("perfetto", weights.sum::<f64>() as u64, None));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot.pickle");
    torch_snapshot::write(gathered, std::fs::File::create(&path).unwrap()).unwrap();
    let read = "import pickle,sys\n\
        b=[b for s in pickle.load(open(sys.argv[1],'rb'))['segments'] for b in s['blocks']\n\
           if b['state']=='active_allocated']\n\
        print(sum(x['size'] for x in b), len(b))";
    let printed = support::run(Command::new("python3").args(["-c", read]).arg(&path));
    let mut numbers = printed
        .split_whitespace()
        .map(|number| number.parse::<u64>().unwrap());
    out.push(("torch-snapshot", numbers.next().unwrap(), numbers.next()));

    let mut bytes = Vec::new();
    parquet::sites(selection, &mut bytes).unwrap();
    let rows = parquet_rows(bytes);
    let column = |name: &str| -> u64 { rows.iter().map(|row| row[name]).sum() };
    out.push(("parquet", column("bytes"), Some(column("blocks"))));

    let mut drawn = 0;
    for part in &selection.parts {
        let picture = svg::write(selection, part, Weight::Bytes).unwrap();
        let total = picture.split_once("total_samples=\"").map(|(_, rest)| rest);
        let total = total
            .and_then(|rest| rest.split_once('"'))
            .map(|(number, _)| number);
        drawn += total.map_or(0, |number| number.parse::<u64>().unwrap());
    }
    out.push(("svg", drawn, None));

    let page = html::write(gathered);
    let (bytes, count) = page_sum(&page);
    out.push(("html", bytes, Some(count)));
    let _ = stream;
    out
}

/// What the page's data add up to.
fn page_sum(page: &str) -> (u64, u64) {
    let (_, rest) = page.split_once("id=\"data\">").expect("data");
    let (data, _) = rest.split_once("</script>").expect("the end of the data");
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    let (mut bytes, mut blocks) = (0, 0);
    for part in data["parts"].as_array().unwrap() {
        for row in part["rows"].as_array().unwrap() {
            bytes += row[2].as_u64().unwrap();
            blocks += row[3].as_u64().unwrap();
        }
    }
    (bytes, blocks)
}

/// The columns of unsigned 64-bit numbers.
fn parquet_rows(bytes: Vec<u8>) -> Vec<HashMap<String, u64>> {
    use ::parquet::{
        file::reader::{FileReader as _, SerializedFileReader},
        record::Field,
    };
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    rows.map(|row| {
        let numbers = row
            .get_column_iter()
            .filter_map(|(name, value)| match value {
                Field::ULong(number) => Some((name.clone(), *number)),
                _ => None,
            });
        numbers.collect()
    })
    .collect()
}

#[derive(Clone, PartialEq, prost::Message)]
struct Profile {
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Sample {
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Packet {
    #[prost(message, optional, tag = "11")]
    event: Option<TrackEvent>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TrackEvent {
    #[prost(double, optional, tag = "57")]
    weight: Option<f64>,
}

fn decode_pprof(gathered: &Gathered) -> Profile {
    let mut bytes = Vec::new();
    pprof::write(&gathered.selection, &mut bytes).unwrap();
    let mut plain = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(&bytes[..]);
    std::io::Read::read_to_end(&mut reader, &mut plain).unwrap();
    Profile::decode(&plain[..]).unwrap()
}

fn check(stream: &Stream, gathered: &Gathered, (bytes, count): (u64, u64)) {
    let selection = &gathered.selection;
    let name = format!("{}, {}", stream.name, selection.title);
    assert_eq!(
        (selection.bytes(), selection.count()),
        (bytes, count),
        "{name}"
    );
    for (format, sum, blocks) in sums(stream, gathered) {
        assert_eq!(sum, bytes, "{format} of {name}: bytes");
        if let Some(blocks) = blocks {
            assert_eq!(blocks, count, "{format} of {name}: blocks");
        }
    }
}

#[test]
fn survivors_at_the_end() {
    for stream in streams() {
        let expected = alive(&stream.records, |_, _| false);
        assert!(expected.0 > 0);
        check(&stream, &stream.survivors(), expected);
        // The same when most of the events were not kept.
        let few = stream.gather_last(blocks(What::Survivors), 100);
        check(&stream, &few, expected);
    }
}

#[test]
fn alive_at_a_time() {
    for stream in streams() {
        let time = Time(stream.end().0 / 3);
        let expected = alive(&stream.records, |_, record| record.time > time);
        check(&stream, &stream.gather(blocks(What::At(time))), expected);
    }
}

#[test]
fn allocated_in_a_window_and_still_alive() {
    for stream in streams() {
        let (from, to) = (Time(stream.end().0 / 4), Time(stream.end().0 / 2));
        let all = stream.survivors();
        let parts = all.selection.parts.iter();
        let inside: Vec<_> = parts
            .flat_map(|part| &part.blocks)
            .filter(|block| from <= block.born && block.born < to)
            .collect();
        let expected = (
            inside.iter().map(|block| block.size).sum(),
            inside.len() as u64,
        );
        let window = What::Window(Bound::Time(from), Bound::Time(to));
        check(&stream, &stream.gather(blocks(window)), expected);
    }
}

#[test]
fn windows_of_steps_part_the_survivors() {
    for stream in recorded(&PROGRAMS[..1]) {
        let all = stream.survivors().selection;
        let part = |from, to| {
            let window = What::Window(Bound::Step(from), Bound::Step(to));
            stream.gather(blocks(window)).selection.bytes()
        };
        let middle = all.parts[0].steps / 2;
        assert!(part(0, middle) > 0 && part(middle, u64::MAX) > 0);
        assert_eq!(part(0, middle) + part(middle, u64::MAX), all.bytes());
    }
}

#[test]
fn alive_at_the_peak() {
    for stream in recorded(&PROGRAMS) {
        let peaks = stream.peaks();
        let (key, peak) = peaks.iter().next().expect("a peak");
        assert!(peaks.iter().count() == 1, "{key:?}");
        let at = peak.record as usize;
        let expected = alive(&stream.records, |index, _| index > at);
        assert_eq!(expected.0, peak.bytes);
        let higher = (0..stream.records.len())
            .step_by(997)
            .any(|end| alive(&stream.records, |index, _| index > end).0 > peak.bytes);
        assert!(!higher);
        check(&stream, &stream.gather(blocks(What::Peak(peaks))), expected);
    }
    // Each device at its own moment.
    let small = small();
    let gathered = small.gather(blocks(What::Peak(small.peaks())));
    let bytes: Vec<u64> = gathered
        .selection
        .parts
        .iter()
        .map(|part| part.bytes())
        .collect();
    assert_eq!(bytes, [(4 + 3 + 1) * (1 << 20) + 12 * 1536, 2 << 20]);
}

#[test]
fn all_allocations() {
    for stream in recorded(&PROGRAMS[..2]) {
        let ever = stream
            .records
            .iter()
            .filter_map(|record| match &record.event {
                vramscope_events::Event::Alloc(alloc) => Some(alloc.size),
                _ => None,
            });
        let choice = Choice {
            what: What::Allocated,
            ..Choice::default()
        };
        let gathered = stream.gather(choice);
        assert_eq!(gathered.selection.bytes(), ever.sum::<u64>());
        let profile = decode_pprof(&gathered);
        let sum: i64 = profile.sample.iter().map(|sample| sample.value[1]).sum();
        assert_eq!(sum as u64, gathered.selection.bytes());
        assert!(matches!(
            firefox::write(&gathered, Vec::new()),
            Err(firefox::Error::NotBlocks)
        ));
    }
}

#[test]
fn a_stream_goes_on_after_a_gap() {
    use vramscope_collector::{Collector, Config, view::Backend};
    for stream in recorded(&PROGRAMS[..2]) {
        let (quarter, half) = (stream.records.len() / 4, stream.records.len() / 2);
        let fresh = |records: &[vramscope_events::Record]| {
            let mut collector = Collector::new(Config::new(Backend::Recording, Time(0), 0));
            collector.add_process(stream.info.clone());
            collector.ingest(records);
            collector
        };
        let resumed = stream.records[half].time;
        let with_gap = |what| {
            let mut gather = Gather::new(fresh(&[]), blocks(what), MOST_EVENTS);
            gather.push(&stream.records[..quarter]);
            gather.restart(fresh(&stream.records[..half]), resumed);
            gather.push(&stream.records[half..]);
            gather.finish().unwrap()
        };
        // The end is known as if nothing were missing.
        check(
            &stream,
            &with_gap(What::Survivors),
            alive(&stream.records, |_, _| false),
        );
        // Of a moment within the gap, what was known before it.
        let inside = Time((stream.records[quarter].time.0 + resumed.0) / 2);
        let before = alive(&stream.records, |index, _| index >= quarter);
        check(&stream, &with_gap(What::At(inside)), before);
    }
}

#[test]
fn growth_names_the_leaking_line() {
    let stream = &recorded(&PROGRAMS[..1])[0];
    let choice = Choice {
        what: What::Growth,
        ..Choice::default()
    };
    let selection = stream.gather(choice).selection;
    assert!(selection.bytes() > 0);
    let rows = &selection.parts[0].rows;
    let own = |row: &&vramscope_export::Row| selection.table.own_frame(row.stack).file.clone();
    assert!(
        rows.iter()
            .any(|row| own(&row).ends_with("01_running_loss_keeps_graph.py"))
    );
}
