//! A replayed recording gives the view that the live session gave, bit for bit: from the start,
//! from a checkpoint, over damage, and however often somebody looked.

mod streams_reader;

use std::path::{Path, PathBuf};

use streams_reader::{PID, Stream};
use vramscope_collector::{
    Collector, Config, STATE_VERSION,
    replay::Replay,
    view::{Backend, View},
};
use vramscope_events::{Event, Holder, Holders, Record, Time};
use vramscope_recording::{CheckpointAt, End, FORMAT, Recording, SessionInfo, Writer};

/// Records a chunk, as a flush every 250 ms makes them.
const CHUNK: usize = 3_000;
/// Chunks between two checkpoints.
const CHECKPOINT_EVERY: usize = 4;

fn config() -> Config {
    let mut config = Config::new(Backend::Ebpf, Time(0), 1_700_000_000);
    config.read_sources = false;
    config
}

/// A live session with its recording.
struct Live {
    bytes: Vec<u8>,
    /// The moment after each chunk, and the view then.
    views: Vec<(Time, View)>,
}

/// Feeds `records` to a collector that is looked at after every chunk if `looks`, and at the end.
fn live(records: &[Record], looks: bool) -> Live {
    let config = config();
    let mut writer = Writer::default();
    let mut bytes = writer.session(&SessionInfo {
        format: FORMAT,
        program: "test".into(),
        started: config.started,
        started_unix: config.started_unix,
        backend: config.backend,
        processes: Vec::new(),
        probes: Vec::new(),
        settings: config.settings(),
    });
    let mut collector = Collector::new(config);
    let mut views = Vec::new();
    let mut checkpoints = Vec::new();
    let mut now = Time(0);
    let chunks = records.chunks(CHUNK);
    let count = chunks.len();
    for (index, chunk) in chunks.enumerate() {
        collector.ingest(chunk);
        bytes.extend(writer.records(chunk));
        now = chunk
            .iter()
            .map(|record| record.time)
            .max()
            .unwrap()
            .max(now);
        let view = (looks || index + 1 == count).then(|| collector.view(now));
        // A replay takes in all that is not later than the moment: the late definitions too.
        let next = records.get((index + 1) * CHUNK);
        if let Some(view) = view
            && next.is_none_or(|next| next.time > now)
        {
            views.push((now, view));
        }
        if index % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1 {
            checkpoints.push(CheckpointAt {
                offset: bytes.len() as u64,
                sequence: writer.sequence(),
                time: now,
            });
            bytes.extend(writer.checkpoint(&collector.checkpoint(now)));
        }
    }
    let end = End {
        until: now,
        events: writer.events(),
        reason: String::new(),
        checkpoints,
    };
    let offset = bytes.len() as u64;
    bytes.extend(writer.end(&end, offset));
    Live { bytes, views }
}

fn replay(bytes: &[u8]) -> Replay {
    Replay::new(Recording::from_bytes(bytes.to_vec()).unwrap()).unwrap()
}

/// Every bit of a view.
fn all(view: &View) -> String {
    format!("{view:#?}")
}

fn assert_same(replayed: &View, live: &View, what: &str) {
    let (replayed, live) = (all(replayed), all(live));
    if replayed != live {
        let mut lines = replayed.lines().zip(live.lines());
        let differs = lines.find(|(a, b)| a != b);
        panic!("{what}: the views differ first in {differs:?}");
    }
}

fn streams() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let entries = std::fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "gz"));
    paths.sort();
    assert!(paths.len() > 30);
    paths
}

#[test]
fn every_case_replays_to_the_live_view() {
    for path in streams() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let stream = Stream::read(&path);
        let records = stream.records(stream.len() / 20, stream.len());
        let live = live(&records, true);
        let (end, last) = live.views.last().unwrap();
        // To the end by the last checkpoint.
        let mut at_end = replay(&live.bytes);
        at_end.seek_end(&mut |_, _| {}).unwrap();
        assert_eq!(at_end.notes(), &[] as &[String], "{name}");
        assert_same(&at_end.view(), last, &format!("{name} at its end"));
        // Back to moments in between, forth again, and from moment to moment.
        let mut moving = replay(&live.bytes);
        for (moment, view) in live.views.iter().rev().step_by(3).chain(&live.views) {
            moving.seek(*moment, &mut |_, _| {}).unwrap();
            assert_same(&moving.view(), view, &format!("{name} at {moment}"));
        }
        assert_eq!(moving.moment(), *end);
    }
}

/// An answer about holders is an event as any other: after it, over a checkpoint, and before it.
#[test]
fn what_was_asked_replays() {
    let path = (streams().into_iter())
        .find(|path| path.ends_with("leak_optimizer_rebuilt.json.gz"))
        .unwrap();
    let stream = Stream::read(&path);
    let mut records = stream.records(0, stream.len());
    for share in [3, 2] {
        let at = records.len() / share;
        let used = records[..at]
            .iter()
            .filter_map(|record| match &record.event {
                Event::Alloc(alloc) => Some((alloc.device, alloc.stack)),
                _ => None,
            });
        let used: Vec<_> = used.collect();
        let holder = Holder {
            kind: "tensor".into(),
            words: "`__main__.kept[*]` (a list)".into(),
            short: "`__main__.kept`".into(),
            path: "__main__.kept[*]".into(),
            blocks: 10,
            bytes: 10 << 20,
            length: Some(at as u64),
            bound: None,
        };
        let holders = Holders {
            device: used[0].0,
            stacks: used.iter().map(|(_, stack)| *stack).collect(),
            survivors: 10,
            asked: 10,
            holders: vec![holder],
            ..Holders::default()
        };
        let record = Record {
            event: Event::Holders(holders.into()),
            ..records[at].clone()
        };
        records.insert(at, record);
    }
    let live = live(&records, true);
    let (_, last) = live.views.last().unwrap();
    let answers: Vec<_> = (last.processes[0].devices[0].sites.iter())
        .filter_map(|site| site.retained.as_ref())
        .collect();
    assert!(!answers.is_empty() && answers.iter().all(|answer| answer.grown(0).is_some()));
    let mut moving = replay(&live.bytes);
    for (moment, view) in live.views.iter().rev().chain(&live.views) {
        moving.seek(*moment, &mut |_, _| {}).unwrap();
        assert_same(&moving.view(), view, &format!("at {moment}"));
    }
}

#[test]
fn looking_changes_nothing() {
    for path in streams().into_iter().step_by(5) {
        let stream = Stream::read(&path);
        let records = stream.records(0, stream.len());
        let looked_at = live(&records, true);
        let alone = live(&records, false);
        let views = (looked_at.views.last().unwrap(), alone.views.last().unwrap());
        assert_same(&views.0.1, &views.1.1, &path.display().to_string());
    }
}

#[test]
fn after_damage_the_next_checkpoint_makes_all_right() {
    let path = streams()
        .into_iter()
        .find(|path| path.ends_with("fine_gan.json.gz"));
    let stream = Stream::read(&path.unwrap());
    let live = live(&stream.records(0, stream.len()), true);
    let recording = Recording::from_bytes(live.bytes.clone()).unwrap();
    let checkpoints = recording.checkpoints().to_vec();
    let mut bytes = live.bytes.clone();
    // In the middle of the second segment.
    let at = (checkpoints[0].offset + checkpoints[1].offset) as usize / 2;
    bytes[at] ^= 0x10;
    let mut damaged = replay(&bytes);
    // In steps, so that the damage is read and not jumped over.
    let mut wrong = 0;
    for (moment, view) in &live.views {
        damaged.seek(*moment, &mut |_, _| {}).unwrap();
        let same = all(&damaged.view()) == all(view);
        let within = checkpoints[0].time < *moment && *moment < checkpoints[1].time;
        assert!(same || within, "wrong at {moment}");
        wrong += usize::from(!same);
    }
    assert!(wrong > 0, "the damage hit something");
    assert!(damaged.is_corrupt());
    let note = &damaged.notes()[0];
    assert!(note.contains("byte"), "{note}");
}

#[test]
fn a_state_of_another_version_is_not_guessed_at() {
    let stream = Stream::read(&streams()[0]);
    let records = stream.records(0, stream.len());
    let mut collector = Collector::new(config());
    collector.ingest(&records);
    let mut checkpoint = collector.checkpoint(records.last().unwrap().time);
    assert!(Collector::restore(config(), &checkpoint).is_ok());
    checkpoint.state_version += 1;
    let error = Collector::restore(config(), &checkpoint).unwrap_err();
    assert!(error.to_string().contains("this program knows"), "{error}");
    // The survivors are all there without it.
    let mut restated = Collector::new(config());
    restated.ingest(&checkpoint.restated());
    let bytes = |collector: &Collector| -> u64 {
        let device = vramscope_events::DeviceId(0);
        collector
            .survivors(PID, device)
            .map(|block| block.size)
            .sum()
    };
    assert_eq!(bytes(&restated), bytes(&collector));
}

/// Checkpoints that an earlier build made are gone on from, or are of another version: a change of
/// what the collector keeps, or of what it makes of it, has to raise `STATE_VERSION`, and then
///
///     UPDATE_GOLDEN=1 cargo test -p vramscope-collector --test replay
///
/// writes the file for the new one.
#[test]
fn a_checkpoint_of_an_earlier_build_is_what_this_one_would_make() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let path = folder.join(format!("state-{STATE_VERSION}.vrs"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let stream = streams()
            .into_iter()
            .find(|path| path.ends_with("leak_optimizer_rebuilt.json.gz"));
        let stream = Stream::read(&stream.unwrap());
        let live = live(&stream.records(0, stream.len()), false);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&path, live.bytes).unwrap();
    }
    let recording = Recording::open(&path).unwrap();
    assert!(!recording.checkpoints().is_empty());
    let mut from_start = Collector::new(Config::of_recording(recording.info()).unwrap());
    for batch in recording.batches() {
        from_start.ingest(&batch.unwrap().records);
    }
    let mut replay = Replay::open(&path).unwrap();
    replay.seek_end(&mut |_, _| {}).unwrap();
    assert_eq!(replay.notes(), &[] as &[String]);
    let expected = from_start.view(replay.moment());
    assert_same(&replay.view(), &expected, "raise STATE_VERSION");
}
