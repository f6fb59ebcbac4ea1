//! Named shares of a device's memory: who has what of the bytes that the driver says a process
//! uses.

pub(crate) mod asker;
pub(crate) mod layout;
pub(crate) mod pending;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vramscope_events::{Bytes, DeviceUser};

use crate::{
    book::Book,
    device::Device,
    process::Mappings,
    snapshot::Names,
    view::{Bucket, BucketKind, ProcessInfo},
};
use asker::Asker;
use layout::{Cached, Largest, Segment};
use pending::SMALL_REQUEST;

/// What a device's shares are made of, beside its books.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Shares {
    told: Option<Told>,
    /// Segments that were given back since the framework last told its totals.
    released: Bytes,
    /// What the driver's pools keep, at least.
    pub pools_kept: Bytes,
    /// The other processes on the device.
    pub users: Arc<[DeviceUser]>,
    recent: Recent,
}

/// What the driver said of the process's use, and what was known of it at that moment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Told {
    used: Bytes,
    known: Bytes,
    /// Whether the process used the device already when this was asked for first.
    late: bool,
}

/// The largest requests of the running step and of the one before it that had any.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Recent {
    step: u32,
    now: (Bytes, Bytes),
    before: (Bytes, Bytes),
}

impl Recent {
    #[inline]
    fn see(&mut self, request: Bytes, step: u32) {
        if step != self.step {
            self.step = step;
            self.before = std::mem::take(&mut self.now);
        }
        let largest = match request <= SMALL_REQUEST {
            true => &mut self.now.0,
            false => &mut self.now.1,
        };
        *largest = request.max(*largest);
    }

    fn largest(&self) -> Largest {
        Largest {
            small: self.now.0.max(self.before.0),
            large: self.now.1.max(self.before.1),
        }
    }
}

impl Shares {
    /// A block of the framework's was asked for.
    #[inline]
    pub fn requested(&mut self, request: Bytes, step: u32) {
        self.recent.see(request, step);
    }

    /// A segment was given back.
    pub fn segment_freed(&mut self, size: Bytes) {
        self.released += size;
    }

    /// The framework told its totals; gives back what was released since it last did.
    #[inline]
    pub fn totals_told(&mut self) -> Bytes {
        std::mem::take(&mut self.released)
    }

    /// What the framework no longer holds although it has not said so yet.
    pub fn released(&self) -> Bytes {
        self.released
    }

    /// The driver said what the process uses while `known` of it was known.
    pub fn used(&mut self, used: Option<Bytes>, known: Bytes) {
        match (used, self.told) {
            (Some(used), Some(told)) => {
                self.told = Some(Told {
                    used,
                    known,
                    ..told
                })
            }
            (Some(used), None) => {
                let late = used > 0;
                self.told = Some(Told { used, known, late });
            }
            // It is not on the device yet: whatever comes will be seen from its beginning.
            (None, None) => {
                self.told = Some(Told {
                    used: 0,
                    known: 0,
                    late: false,
                });
            }
            // It was there before. A process that ends loses its memory before it goes: its last
            // numbers stay.
            (None, Some(_)) => {}
        }
    }

    pub fn renumber(&mut self, map: impl Fn(u32) -> u32) {
        self.recent.step = map(self.recent.step);
    }

    /// The largest recent request that the cache's large segments serve; of small ones, where there
    /// is none.
    fn largest_request(&self) -> Bytes {
        let largest = self.recent.largest();
        largest.large.max(largest.small)
    }
}

/// What is shown of a device's shares.
pub(crate) struct Shown {
    pub buckets: Vec<Bucket>,
    /// What the driver says that the process uses, and what it took since it was asked.
    pub used: Option<Bytes>,
    /// By how much the shares exceed that.
    pub excess: Bytes,
    pub largest_request: Bytes,
}

/// Puts together the shares of a device.
pub(crate) fn show(
    device: &Device,
    mappings: &Mappings,
    process: &ProcessInfo,
    names: &mut Names<'_>,
) -> Shown {
    let mut shares = Builder::default();
    let askers = askers(&device.driver, process, names);
    if device.tensor_layer {
        tensors(device, mappings, &mut shares);
    }
    for (name, bytes) in askers {
        shares.add(BucketKind::Library, name, bytes);
    }
    let kept = device.shares.pools_kept;
    shares.add(BucketKind::Pools, "kept in the driver's pools", kept);
    let known = shares.sum();
    let (mut used, mut excess) = (None, 0);
    if let Some(told) = device.shares.told.filter(|told| told.used > 0) {
        // What was not known when the driver was asked is still there; what was taken and given
        // back since then is known.
        let rest = told.used as i128 - told.known as i128;
        excess = Bytes::try_from(-rest).unwrap_or(0);
        let name = match told.late {
            true => "context, and what is from before the attach",
            false => "context and unknown",
        };
        let rest = Bytes::try_from(rest).unwrap_or(0);
        shares.add(BucketKind::Rest, name, rest);
        used = Some(known.saturating_add(rest).saturating_sub(excess));
    }
    Shown {
        buckets: shares.0,
        used,
        excess,
        largest_request: device.shares.largest_request(),
    }
}

#[derive(Default)]
struct Builder(Vec<Bucket>);

impl Builder {
    fn add(&mut self, kind: BucketKind, name: impl Into<String>, bytes: Bytes) {
        if bytes > 0 {
            let name = name.into();
            self.0.push(Bucket { kind, name, bytes });
        }
    }

    fn sum(&self) -> Bytes {
        let sizes = self.0.iter().map(|bucket| bucket.bytes);
        sizes.fold(0, Bytes::saturating_add)
    }
}

/// Live tensors and the framework's cache.
fn tensors(device: &Device, mappings: &Mappings, shares: &mut Builder) {
    let allocated = device.totals.allocated;
    let before = device.baseline().max(0) as Bytes;
    shares.add(
        BucketKind::Live,
        "live tensors",
        allocated.saturating_sub(before),
    );
    shares.add(
        BucketKind::LiveBefore,
        "live tensors from before the attach",
        before.min(allocated),
    );
    let all_cached = device.reserved().saturating_sub(allocated);
    let blocks = device.tensor.ledger.iter();
    let largest = device.shares.recent.largest();
    let mut cached = layout::cached(
        segments(device, mappings),
        blocks.map(|(address, block)| (address.0, block.size())),
        largest,
    );
    if cached.sum() > all_cached {
        // Events are missing, or a segment was just given back: nothing is known for certain.
        cached = Cached::default();
    }
    shares.add(BucketKind::Reusable, "cached, reusable", cached.reusable);
    shares.add(
        BucketKind::Fragmented,
        "cached, fragmented",
        cached.fragmented,
    );
    shares.add(
        BucketKind::Cached,
        "cached, of unknown use",
        all_cached - cached.sum(),
    );
    shares.add(
        BucketKind::GraphPools,
        "private pools of CUDA graphs",
        cached.graph,
    );
}

/// The framework's segments that lie at a known address.
fn segments(device: &Device, mappings: &Mappings) -> Vec<Segment> {
    let segments = device.driver.segments();
    let addressed = segments.filter(|(address, _)| !mappings.is_physical(*address));
    let whole = addressed.map(|(address, block)| Segment {
        start: address.0,
        size: block.size(),
        graph: block.is_graph(),
        piece: false,
    });
    let pieces = mappings.iter().filter_map(|(start, size, allocation)| {
        let block = device.driver.ledger.get(allocation)?;
        block.is_segment().then(|| Segment {
            start: start.0,
            size,
            graph: block.is_graph(),
            piece: true,
        })
    });
    whole.chain(pieces).collect()
}

/// Driver memory beside the framework's segments, by who asked for it, largest first.
fn askers(book: &Book, process: &ProcessInfo, names: &mut Names<'_>) -> Vec<(String, Bytes)> {
    let mut all: Vec<(String, Bytes)> = Vec::new();
    for site in book.sites() {
        let bytes = site.live_bytes.saturating_sub(site.segment_bytes);
        if bytes == 0 {
            continue;
        }
        let (stack, _) = names
            .stacks
            .named(site.stack, process, names.user_code, names.sources);
        let name = match asker::of(&stack) {
            Asker::Framework => "PyTorch's allocator".to_owned(),
            Asker::Named(name) => name,
            Asker::Unknown => "libraries, which ones is not known".to_owned(),
        };
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += bytes,
            None => all.push((name, bytes)),
        }
    }
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all
}
