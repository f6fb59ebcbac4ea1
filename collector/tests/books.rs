//! The books of the collector, under random programs.

mod synthetic;

use proptest::prelude::*;
use synthetic::{PID, Program};
use vramscope_events::Time;

/// One thing a random program does.
#[derive(Clone, Debug)]
enum Move {
    Alloc(u32, u64),
    Free(usize),
    Backward(u32),
    User,
    Blind(bool),
    Lost,
    Wait(u64),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        6 => (0u32..12, 1u64..5000).prop_map(|(stack, size)| Move::Alloc(stack, size * 512)),
        6 => any::<usize>().prop_map(Move::Free),
        2 => (20u32..23).prop_map(Move::Backward),
        1 => Just(Move::User),
        1 => any::<bool>().prop_map(Move::Blind),
        1 => Just(Move::Lost),
        1 => (0u64..20_000_000_000).prop_map(Move::Wait),
    ];
    proptest::collection::vec(one, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever happens, however much is missed: nothing panics, the books agree with the
    /// framework's totals, and sites add up to the ledger.
    #[test]
    fn the_books_balance_whatever_happens(moves in moves()) {
        let mut program = Program::new();
        let mut live = Vec::new();
        let mut blind = false;
        let mut ever_blind = false;
        for (index, one) in moves.into_iter().enumerate() {
            match one {
                Move::Alloc(stack, size) => live.push(program.alloc(stack, size)),
                Move::Free(at) if !live.is_empty() => {
                    let block = live.swap_remove(at % live.len());
                    program.free(block);
                }
                Move::Free(_) => {}
                Move::Backward(stack) => program.backward(stack),
                Move::User => program.user_mark(),
                Move::Blind(now_blind) => {
                    blind = now_blind;
                    ever_blind |= blind;
                    program.attached = !blind;
                }
                Move::Lost => program.lost(3),
                Move::Wait(time) => program.time += time,
            }
            if blind || index % 7 != 0 {
                continue;
            }
            let view = program.view();
            for device in view.processes.iter().flat_map(|process| &process.devices) {
                let sites: u64 = device.sites.iter().map(|site| site.live_bytes).sum();
                prop_assert_eq!(sites, device.live_bytes);
                for site in device.sites.iter() {
                    let spans: u64 = site.spans.iter().map(|span| span.bytes).sum();
                    prop_assert_eq!(spans, site.live_bytes);
                    let generations: u64 = site.spans.iter().map(|span| span.generations).sum();
                    prop_assert_eq!(generations, site.generations);
                }
                let survivors = program.collector.survivors(PID, device.device);
                prop_assert_eq!(survivors.map(|s| s.size).sum::<u64>(), device.live_bytes);
                if !ever_blind {
                    prop_assert_eq!(device.live_bytes + device.baseline, device.allocated);
                    prop_assert_eq!(device.check.corrected, 0);
                }
            }
        }
        let _ = program.collector.view(Time(u64::MAX));
    }
}
