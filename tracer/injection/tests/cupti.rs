//! CUPTI's callbacks on the simulated CUDA 12 and 13.
//!
//! Every test runs one of the programs at the end of this file in a process of its own, once for
//! each CUDA: the library is found through the environment and belongs to a whole process.

mod cuda;

use std::process::Command;

/// Runs a program of this file with both CUDAs; `environment` names more variables for each run.
fn run(program: &str, environment: &[&[(&str, &str)]]) {
    let simulator = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/simcuda/run");
    let described = Command::new(simulator).arg("--env").output();
    let libraries = described
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("export LD_LIBRARY_PATH="))?;
            Some(line.to_owned())
        });
    let Some(libraries) = libraries else {
        eprintln!("SKIP: {program}: the simulated device cannot be set up ({simulator} --env)");
        return;
    };
    let once: &[&[(&str, &str)]] = &[&[]];
    for major in ["12", "13"] {
        for more in if environment.is_empty() {
            once
        } else {
            environment
        } {
            let done = Command::new(std::env::current_exe().expect("a path"))
                .args([
                    "--exact",
                    &format!("programs::{program}"),
                    "--ignored",
                    "--nocapture",
                ])
                .env("LD_LIBRARY_PATH", &libraries)
                .env("VRAMSCOPE_TEST_CUDA", major)
                .env("SIMCUDA_DEVICES", "2")
                .envs(more.iter().copied())
                .output()
                .expect("it starts");
            let output = String::from_utf8_lossy(&done.stdout);
            assert!(
                done.status.success() && output.contains("1 passed"),
                "{program} with CUDA {major}, {more:?}: {}\n{output}{}",
                done.status,
                String::from_utf8_lossy(&done.stderr)
            );
        }
    }
}

#[test]
fn every_operation_is_told_once() {
    // Whether driver calls beneath runtime calls have callbacks is not documented: both ways.
    run("every_operation", &[&[], &[("SIMCUDA_CUPTI_NESTED", "0")]]);
}

#[test]
fn who_holds_the_subscription_is_said() {
    run("held", &[]);
}

#[test]
fn threads_keep_their_order() {
    run("threads", &[]);
}

#[test]
fn a_stop_finalizes_at_the_end_of_a_call() {
    run("stopping", &[]);
}

#[test]
fn an_old_cupti_is_not_finalized() {
    run("old", &[&[("SIMCUDA_CUPTI_VERSION", "19")]]);
}

#[test]
fn it_lets_go_and_takes_up_again() {
    run("yielding", &[]);
}

#[test]
fn whoever_asks_gets_it() {
    run("asking", &[]);
}

#[test]
fn the_mapped_library_is_the_one_that_is_used() {
    run("finding", &[]);
}

#[test]
fn records_tell_of_pools_and_libraries() {
    run(
        "records",
        &[
            &[],
            &[("SIMCUDA_CUPTI_VERSION", "18")],
            &[("SIMCUDA_CUPTI_VERSION", "15")],
        ],
    );
}

mod programs {
    use std::ffi::CStr;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use vramscope_injection::cupti::{
        Activity, ActivityKind, DriverCall, Options, StartError, others_subscribe,
        others_use_cupti, resume, start, start_with, taken_away, yield_to,
    };
    use vramscope_wire as wire;

    use super::cuda::{Cuda, is_13};

    static CALLS: Mutex<Vec<DriverCall>> = Mutex::new(Vec::new());

    extern "C" fn sink(call: &DriverCall) {
        calls().push(*call);
    }

    fn calls() -> MutexGuard<'static, Vec<DriverCall>> {
        CALLS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was told since this was asked last.
    fn told() -> Vec<DriverCall> {
        std::mem::take(&mut *calls())
    }

    fn call(function: u32, address: usize, size: usize, extra: usize, device: i32) -> DriverCall {
        DriverCall {
            function,
            address: address as u64,
            size: size as u64,
            extra: extra as u64,
            device,
        }
    }

    fn alloc(function: u32, address: usize, size: usize) -> DriverCall {
        call(function, address, size, 0, 1)
    }

    fn free(function: u32, address: usize) -> DriverCall {
        call(function, address, 0, 0, -1)
    }

    use wire::{
        vs_driver_function_VS_ADDRESS_FREE as ADDRESS_FREE,
        vs_driver_function_VS_ADDRESS_RESERVE as ADDRESS_RESERVE,
        vs_driver_function_VS_ALLOC_ASYNC as ALLOC_ASYNC,
        vs_driver_function_VS_ALLOC_MANAGED as ALLOC_MANAGED,
        vs_driver_function_VS_ALLOC_PITCH as ALLOC_PITCH,
        vs_driver_function_VS_ALLOC_POOL as ALLOC_POOL,
        vs_driver_function_VS_FREE_ASYNC as FREE_ASYNC,
        vs_driver_function_VS_HOST_ALLOC as HOST_ALLOC,
        vs_driver_function_VS_HOST_FREE as HOST_FREE, vs_driver_function_VS_MEM_ALLOC as MEM_ALLOC,
        vs_driver_function_VS_MEM_FREE as MEM_FREE,
        vs_driver_function_VS_POOL_CREATE as POOL_CREATE,
        vs_driver_function_VS_POOL_DESTROY as POOL_DESTROY,
        vs_driver_function_VS_POOL_TRIM as POOL_TRIM,
        vs_driver_function_VS_VMM_CREATE as VMM_CREATE, vs_driver_function_VS_VMM_MAP as VMM_MAP,
        vs_driver_function_VS_VMM_RELEASE as VMM_RELEASE,
        vs_driver_function_VS_VMM_RETAIN as VMM_RETAIN,
        vs_driver_function_VS_VMM_UNMAP as VMM_UNMAP,
    };

    #[test]
    #[ignore = "run by the tests above"]
    fn every_operation() {
        let cuda = Cuda::load();
        // The second device, so that a device that is not told would be seen.
        cuda.use_device(1);
        let subscription = start(sink).expect("nobody else is there");
        runtime(&cuda);
        driver(&cuda);
        virtual_memory(&cuda);
        nothing(&cuda);
        assert_eq!(subscription.untracked(), 0);
    }

    fn runtime(cuda: &Cuda) {
        let block = cuda.runtime("cudaMalloc", &[5000]);
        cuda.free("cudaFree", &[block]);
        assert_eq!(
            told(),
            [alloc(MEM_ALLOC, block, 5000), free(MEM_FREE, block)]
        );
        let (block, pitch) = cuda.pitched(&cuda.runtime, "cudaMallocPitch", &[1000, 7]);
        cuda.free("cudaFree", &[block]);
        assert_eq!(
            told(),
            [alloc(ALLOC_PITCH, block, pitch * 7), free(MEM_FREE, block)]
        );
        let block = cuda.runtime("cudaMallocManaged", &[5000, 1]);
        cuda.free("cudaFree", &[block]);
        assert_eq!(
            told(),
            [alloc(ALLOC_MANAGED, block, 5000), free(MEM_FREE, block)]
        );
        for (function, arguments) in [
            ("cudaMallocHost", &[5000][..]),
            ("cudaHostAlloc", &[5000, 0]),
        ] {
            let block = cuda.runtime(function, arguments);
            cuda.free("cudaFreeHost", &[block]);
            assert_eq!(
                told(),
                [call(HOST_ALLOC, block, 5000, 0, -1), free(HOST_FREE, block)]
            );
        }
        for suffix in ["", "_ptsz"] {
            let block = cuda.runtime(&format!("cudaMallocAsync{suffix}"), &[5000, 0]);
            cuda.free(&format!("cudaFreeAsync{suffix}"), &[block, 0]);
            assert_eq!(
                told(),
                [alloc(ALLOC_ASYNC, block, 5000), free(FREE_ASYNC, block)]
            );
        }
        let pool = cuda.pool(&cuda.runtime, "cudaMemPoolCreate", 1);
        let block = cuda.runtime("cudaMallocFromPoolAsync", &[5000, pool, 0]);
        cuda.free("cudaFreeAsync", &[block, 0]);
        cuda.free("cudaMemPoolTrimTo", &[pool, 4096]);
        cuda.free("cudaMemPoolDestroy", &[pool]);
        assert_eq!(
            told(),
            [
                call(POOL_CREATE, pool, 0, 0, 1),
                call(ALLOC_POOL, block, 5000, pool, 1),
                free(FREE_ASYNC, block),
                call(POOL_TRIM, pool, 4096, 0, -1),
                free(POOL_DESTROY, pool),
            ]
        );
    }

    fn driver(cuda: &Cuda) {
        for (function, arguments, kind) in [
            ("cuMemAlloc_v2", &[5000][..], MEM_ALLOC),
            ("cuMemAllocManaged", &[5000, 1], ALLOC_MANAGED),
        ] {
            let block = cuda.driver(function, arguments);
            cuda.driver_free("cuMemFree_v2", &[block]);
            assert_eq!(told(), [alloc(kind, block, 5000), free(MEM_FREE, block)]);
        }
        let (block, pitch) = cuda.pitched(&cuda.driver, "cuMemAllocPitch_v2", &[1000, 7, 4]);
        cuda.driver_free("cuMemFree_v2", &[block]);
        assert_eq!(
            told(),
            [alloc(ALLOC_PITCH, block, pitch * 7), free(MEM_FREE, block)]
        );
        for (function, arguments) in [
            ("cuMemHostAlloc", &[5000, 0][..]),
            ("cuMemAllocHost_v2", &[5000]),
        ] {
            let block = cuda.driver(function, arguments);
            cuda.driver_free("cuMemFreeHost", &[block]);
            assert_eq!(
                told(),
                [call(HOST_ALLOC, block, 5000, 0, -1), free(HOST_FREE, block)]
            );
        }
        for suffix in ["", "_ptsz"] {
            let block = cuda.driver(&format!("cuMemAllocAsync{suffix}"), &[5000, 0]);
            cuda.driver_free(&format!("cuMemFreeAsync{suffix}"), &[block, 0]);
            assert_eq!(
                told(),
                [alloc(ALLOC_ASYNC, block, 5000), free(FREE_ASYNC, block)]
            );
        }
        let pool = cuda.pool(&cuda.driver, "cuMemPoolCreate", 1);
        let block = cuda.driver("cuMemAllocFromPoolAsync", &[5000, pool, 0]);
        cuda.driver_free("cuMemFreeAsync", &[block, 0]);
        cuda.driver_free("cuMemPoolTrimTo", &[pool, 0]);
        cuda.driver_free("cuMemPoolDestroy", &[pool]);
        assert_eq!(
            told(),
            [
                call(POOL_CREATE, pool, 0, 0, 1),
                call(ALLOC_POOL, block, 5000, pool, 1),
                free(FREE_ASYNC, block),
                free(POOL_TRIM, pool),
                free(POOL_DESTROY, pool),
            ]
        );
    }

    fn virtual_memory(cuda: &Cuda) {
        const PAGE: usize = 2 << 20;
        let addresses = cuda.driver("cuMemAddressReserve", &[2 * PAGE, 0, 0, 0]);
        // Physical memory of the other device than the context's.
        let handle = cuda.physical(PAGE, 0);
        cuda.driver_free("cuMemMap", &[addresses, PAGE, 0, handle, 0]);
        let retained = cuda.driver("cuMemRetainAllocationHandle", &[addresses]);
        cuda.driver_free("cuMemRelease", &[retained]);
        cuda.driver_free("cuMemUnmap", &[addresses, PAGE]);
        cuda.driver_free("cuMemRelease", &[handle]);
        cuda.driver_free("cuMemAddressFree", &[addresses, 2 * PAGE]);
        assert_eq!(
            told(),
            [
                call(ADDRESS_RESERVE, addresses, 2 * PAGE, 0, -1),
                call(VMM_CREATE, handle, PAGE, 0, 0),
                call(VMM_MAP, addresses, PAGE, handle, -1),
                free(VMM_RETAIN, retained),
                free(VMM_RELEASE, retained),
                call(VMM_UNMAP, addresses, PAGE, 0, -1),
                free(VMM_RELEASE, handle),
                call(ADDRESS_FREE, addresses, 2 * PAGE, 0, -1),
            ]
        );
    }

    /// Calls that change nothing.
    fn nothing(cuda: &Cuda) {
        assert_eq!(cuda.runtime("cudaMalloc", &[0]), 0);
        cuda.free("cudaFree", &[0]);
        cuda.free("cudaFreeHost", &[0]);
        cuda.driver_free("cuMemFree_v2", &[0]);
        let more_than_there_is = 1_usize << 50;
        assert_ne!(
            cuda.try_alloc(&cuda.runtime, "cudaMalloc", more_than_there_is),
            0
        );
        assert_ne!(
            cuda.try_alloc(&cuda.driver, "cuMemAlloc_v2", more_than_there_is),
            0
        );
        cuda.free("cudaDeviceSynchronize", &[]);
        assert_eq!(told(), []);
    }

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
        let profiling = AtomicBool::new(true);
        let mut taken_up = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..2000 {
                    others_subscribe(true);
                    match cuda.try_subscribe() {
                        Ok(profiler) => cuda.unsubscribe(profiler),
                        Err(code) => panic!("round {round}: refused with {code}"),
                    }
                    others_subscribe(false);
                }
                profiling.store(false, Ordering::Relaxed);
            });
            while profiling.load(Ordering::Relaxed) {
                match resume(&subscription) {
                    Ok(()) => taken_up += 1,
                    Err(StartError::Yielded) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        assert!(taken_up > 0);
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
        let source =
            |record: &Option<String>| record.as_deref().map(|path| path.contains("cupti-"));
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
}
