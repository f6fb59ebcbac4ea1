//! Beginning, ending, giving way.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use vramscope_injection::cupti::{
    Activity, ActivityKind, Options, StartError, others_subscribe, others_use_cupti, resume, start,
    start_with, taken_away, yield_to,
};
use vramscope_wire::{
    vs_driver_function_VS_MEM_ALLOC as MEM_ALLOC, vs_driver_function_VS_MEM_FREE as MEM_FREE,
};

use super::{call, calls, sink, told};
use crate::cuda::{Cuda, is_13};

#[test]
#[ignore = "run by the tests above"]
fn held() {
    let cuda = Cuda::load();
    let other = cuda.subscribe_as("another tool");
    let error = start(sink).expect_err("it is held");
    let StartError::Held { by, version } = &error else {
        panic!("{error}");
    };
    let name = is_13().then(|| "CUPTI for another tool".to_owned());
    assert_eq!(*by, name);
    assert_eq!(version.0, if is_13() { 130_200 } else { 26 });
    let text = error.to_string();
    assert!(
        text.contains(name.as_deref().unwrap_or("does not tell")),
        "{text}"
    );
    cuda.unsubscribe(other);
    let subscription = start(sink).expect("it is free now");
    assert!(matches!(start(sink), Err(StartError::AlreadyStarted)));
    assert!(
        cuda.try_subscribe().is_err(),
        "the first version knows one subscriber"
    );
    // Others who allow it can be there too, where CUPTI can.
    assert_eq!(cuda.try_subscribe_shared().is_ok(), is_13());
    drop(subscription);
    let subscription = start(sink).expect("a dropped one is gone");
    let block = cuda.runtime("cudaMalloc", &[5000]);
    assert_eq!(told(), [call(MEM_ALLOC, block, 5000, 0, 0)]);
    drop(subscription);
}

#[test]
#[ignore = "run by the tests above"]
fn threads() {
    const THREADS: usize = 12;
    const ROUNDS: usize = 500;
    let cuda = Cuda::load();
    let subscription = start(sink).expect("nobody else is there");
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let cuda = &cuda;
            scope.spawn(move || {
                cuda.use_device(0);
                for round in 0..ROUNDS {
                    let size = 512 * (1 + (number * 7 + round) % 50);
                    if (number + round) % 2 == 0 {
                        let block = cuda.runtime("cudaMalloc", &[size]);
                        cuda.free("cudaFree", &[block]);
                    } else {
                        let block = cuda.driver("cuMemAlloc_v2", &[size]);
                        cuda.driver_free("cuMemFree_v2", &[block]);
                    }
                }
            });
        }
    });
    let told = told();
    assert_eq!(told.len(), 2 * THREADS * ROUNDS);
    // Addresses are used again at once: a free that was told too late would come after the
    // allocation that got the same address.
    let mut live = std::collections::HashSet::new();
    for call in told {
        let changed = match call.function {
            MEM_ALLOC => live.insert(call.address),
            MEM_FREE => live.remove(&call.address),
            other => panic!("function {other}"),
        };
        assert!(changed, "{call:?}");
    }
    assert!(live.is_empty());
    assert_eq!(subscription.untracked(), 0);
}

/// How often it is stopped under load; more by hand.
fn stops() -> usize {
    let asked = std::env::var("VRAMSCOPE_TEST_STOPS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(50)
}

#[test]
#[ignore = "run by the tests above"]
fn stopping() {
    let cuda = Cuda::load();
    // Nobody calls: nothing to finalize at.
    let stopped = start(sink).expect("nobody else is there").stop();
    assert!(!stopped.finalized && stopped.quiet, "{stopped:?}");
    assert!(
        stopped
            .note
            .is_some_and(|note| note.contains("no CUDA call"))
    );
    let other = cuda.try_subscribe().expect("the subscription is free");
    cuda.unsubscribe(other);

    let running = AtomicBool::new(true);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                cuda.use_device(0);
                while running.load(Ordering::Relaxed) {
                    let block = cuda.runtime("cudaMalloc", &[5000]);
                    cuda.free("cudaFree", &[block]);
                }
            });
        }
        for _ in 0..stops() {
            let subscription = start(sink).expect("nobody else is there");
            while calls().is_empty() {
                std::thread::yield_now();
            }
            let stopped = subscription.stop();
            assert!(
                stopped.finalized && stopped.quiet && stopped.note.is_none(),
                "{stopped:?}"
            );
            told();
            let other = cuda.try_subscribe().expect("the subscription is free");
            cuda.unsubscribe(other);
            assert_eq!(told(), [], "nothing is told after the stop");
        }
        // Somebody else's use of CUPTI outlives ours.
        others_use_cupti(true);
        let stopped = start(sink).expect("nobody else is there").stop();
        assert!(!stopped.finalized && stopped.quiet, "{stopped:?}");
        assert!(
            stopped
                .note
                .is_some_and(|note| note.contains("somebody else"))
        );
        others_use_cupti(false);
        running.store(false, Ordering::Relaxed);
    });
    told();
    // A program that makes no memory call: any other will do.
    running.store(true, Ordering::Relaxed);
    std::thread::scope(|scope| {
        let subscription = start(sink).expect("nobody else is there");
        scope.spawn(|| {
            while running.load(Ordering::Relaxed) {
                cuda.free("cudaDeviceSynchronize", &[]);
            }
        });
        let stopped = subscription.stop();
        running.store(false, Ordering::Relaxed);
        assert!(stopped.finalized, "{stopped:?}");
    });
    assert_eq!(told(), []);
}

#[test]
#[ignore = "run by the tests above"]
fn old() {
    let cuda = Cuda::load();
    let subscription = start(sink).expect("nobody else is there");
    let block = cuda.runtime("cudaMalloc", &[5000]);
    assert_eq!(told(), [call(MEM_ALLOC, block, 5000, 0, 0)]);
    let stopped = subscription.stop();
    assert!(!stopped.finalized && stopped.quiet, "{stopped:?}");
    assert!(
        stopped.note.is_some_and(|note| note.contains("12.6")),
        "{stopped:?}"
    );
}

#[test]
#[ignore = "run by the tests above"]
fn yielding() {
    let cuda = Cuda::load();
    let subscription = start(sink).expect("nobody else is there");
    assert!(!subscription.lost() && subscription.is_watching());
    assert!(yield_to(&subscription));
    assert!(
        !yield_to(&subscription),
        "there is nothing left to let go of"
    );
    assert!(!subscription.is_watching() && !subscription.lost());
    let profiler = cuda.try_subscribe().expect("it is free");
    let block = cuda.runtime("cudaMalloc", &[5000]);
    cuda.free("cudaFree", &[block]);
    assert_eq!(told(), []);
    assert!(matches!(
        resume(&subscription),
        Err(StartError::Held { .. })
    ));
    cuda.unsubscribe(profiler);
    resume(&subscription).expect("it is free again");
    let block = cuda.runtime("cudaMalloc", &[5000]);
    cuda.free("cudaFree", &[block]);
    assert_eq!(told().len(), 2);
    // A hook sees the end of somebody else's profiler.
    taken_away();
    assert!(!subscription.is_watching() && !subscription.lost());
    cuda.cupti("cuptiFinalize");
    resume(&subscription).expect("nobody is there after a finalize");
    // A profiler that ends by finalizing takes it away.
    cuda.cupti("cuptiFinalize");
    assert!(subscription.lost());
    assert!(
        !subscription.lost() && !subscription.is_watching(),
        "it is said once"
    );
    resume(&subscription).expect("nobody else is there");
    resume(&subscription).expect("it is there already");
    let block = cuda.runtime("cudaMalloc", &[5000]);
    assert_eq!(told(), [call(MEM_ALLOC, block, 5000, 0, 0)]);
    yield_to(&subscription);
    let stopped = subscription.stop();
    assert!(!stopped.finalized && stopped.quiet, "{stopped:?}");
}

#[test]
#[ignore = "run by the tests above"]
fn asking() {
    // A profiler that begins and ends again and again, while this side takes up whenever it
    // can: it must never be refused.
    let cuda = Cuda::load();
    let subscription = start(sink).expect("nobody else is there");
    std::thread::scope(|scope| {
        let profiler = scope.spawn(|| {
            for round in 0..2000 {
                others_subscribe(true);
                match cuda.try_subscribe() {
                    Ok(profiler) => cuda.unsubscribe(profiler),
                    Err(code) => panic!("round {round}: refused with {code}"),
                }
                others_subscribe(false);
                // Most rounds fall where they fall; in some the other side is sure to have it.
                while round % 4 == 0 && !subscription.is_watching() {
                    std::thread::yield_now();
                }
            }
        });
        while !profiler.is_finished() {
            match resume(&subscription) {
                Ok(()) | Err(StartError::Yielded) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    resume(&subscription).expect("nobody else is there");
    let block = cuda.runtime("cudaMalloc", &[5000]);
    assert_eq!(told().len(), 1, "{block:#x}");
}

#[test]
#[ignore = "run by the tests above"]
fn finding() {
    // By name, since nothing is mapped yet but the runtime, which decides the major.
    let cuda = Cuda::load_without_cupti();
    let subscription = start(sink).expect("nobody else is there");
    let text = subscription.to_string();
    let (number, release) = if is_13() {
        (130_200, "13.2")
    } else {
        (26, "12.8")
    };
    let major = if is_13() { "13" } else { "12" };
    assert_eq!(
        text,
        format!("CUPTI {number} of CUDA {release} (libcupti.so.{major}, loaded for this)")
    );
    drop(subscription);
    // The copy that is there now, by its path.
    let subscription = start(sink).expect("nobody else is there");
    let text = subscription.to_string();
    assert!(
        text.ends_with(&format!("/libcupti.so.{major}, the process's own)")),
        "{text}"
    );
    let block = cuda.runtime("cudaMalloc", &[5000]);
    assert_eq!(told(), [call(MEM_ALLOC, block, 5000, 0, 0)]);
}

/// Kind, address, bytes, size of the pool, what is used of it, library.
type Seen = (ActivityKind, u64, u64, u64, u64, Option<String>);

static RECORDS: Mutex<Vec<Seen>> = Mutex::new(Vec::new());

extern "C" fn record(activity: &Activity) {
    let source = (!activity.source.is_null()).then(|| {
        // SAFETY: the name is valid while this runs.
        let source = unsafe { CStr::from_ptr(activity.source) };
        source.to_string_lossy().into_owned()
    });
    let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
    records.push((
        activity.kind,
        activity.address,
        activity.bytes,
        activity.pool_size,
        activity.pool_used,
        source,
    ));
}

#[test]
#[ignore = "run by the tests above"]
fn records() {
    let cuda = Cuda::load();
    let options = Options {
        activity: Some(record),
    };
    let subscription = start_with(sink, options).expect("nobody else is there");
    let version = subscription.version().0;
    let pool = cuda.pool(&cuda.runtime, "cudaMemPoolCreate", 0);
    let block = cuda.runtime("cudaMallocFromPoolAsync", &[5000, pool, 0]);
    cuda.free("cudaFreeAsync", &[block, 0]);
    cuda.free("cudaMemPoolTrimTo", &[pool, 0]);
    cuda.free("cudaMemPoolDestroy", &[pool]);
    for _ in 0..2000 {
        let block = cuda.runtime("cudaMalloc", &[7000]);
        cuda.free("cudaFree", &[block]);
    }
    assert_eq!(subscription.dropped_records(), 0);
    subscription.stop();
    assert_eq!(told().len(), 4005);
    let records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(records.len(), 4005, "also those of the last buffer");
    let (pool, block) = (pool as u64, block as u64);
    let used = if version >= 17 { 5120 } else { 0 };
    let chunk = 32 << 20;
    let source = |record: &Option<String>| record.as_deref().map(|path| path.contains("cupti-"));
    let seen: Vec<_> = records
        .iter()
        .map(|(kind, address, bytes, size, used, from)| {
            (*kind, *address, *bytes, *size, *used, source(from))
        })
        .collect();
    let named = (version >= 24).then_some(true);
    assert_eq!(
        seen[..5],
        [
            (ActivityKind::PoolCreated, pool, 0, 0, 0, None),
            (ActivityKind::Alloc, block, 5000, chunk, used, named),
            (ActivityKind::Free, block, 5000, chunk, used, named),
            (ActivityKind::PoolTrimmed, pool, 0, 0, 0, None),
            (ActivityKind::PoolDestroyed, pool, 0, 0, 0, None),
        ]
    );
    let alternate = seen[5..].chunks(2).all(|pair| {
        (pair[0].0, pair[1].0) == (ActivityKind::Alloc, ActivityKind::Free)
            && pair[0].1 == pair[1].1
            && pair[0].2 == 7000
    });
    assert!(alternate);
}
