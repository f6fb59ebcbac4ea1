//! Device and host memory through the C API.

mod support;

use std::ffi::c_void;

use support::*;

#[test]
fn a_second_free_is_an_error_and_changes_nothing() {
    own_device();
    let _alone = alone();
    let address = allocate(5 * MIB).expect("room");
    let other = allocate(4096).expect("room");
    assert_eq!(used(), 6 * MIB + 4096);
    assert_eq!(free(address), 0);
    assert_eq!(free(address), INVALID_VALUE);
    assert_eq!(
        free(other + 512),
        INVALID_VALUE,
        "not the beginning of an allocation"
    );
    assert_eq!(used(), 4096);
    assert_eq!(free(other), 0);
    assert_eq!(used(), 0);
    assert_eq!(free(0), 0, "null is nothing to free");
}

#[test]
fn the_capacity_is_exact() {
    own_device();
    let _alone = alone();
    let blocks: Vec<usize> = (0..4).map(|_| allocate(64 * MIB).expect("room")).collect();
    assert_eq!(used(), CAPACITY);
    assert_eq!(allocate(1), Err(OUT_OF_MEMORY));
    assert_eq!(free(blocks[2]), 0);
    assert_eq!(allocate(65 * MIB), Err(OUT_OF_MEMORY));
    let again = allocate(64 * MIB).expect("what was freed is there again");
    assert_eq!(allocate(usize::MAX), Err(OUT_OF_MEMORY));
    assert_eq!(allocate(0), Err(INVALID_VALUE));
    for block in [blocks[0], blocks[1], blocks[3], again] {
        assert_eq!(free(block), 0);
    }
    assert_eq!(used(), 0);
}

#[test]
fn fresh_memory_is_zero_also_where_something_was() {
    own_device();
    let _alone = alone();
    let first = allocate(4 * MIB).expect("room");
    assert_eq!(read(first, 4 * MIB).expect("readable"), vec![0; 4 * MIB]);
    assert_eq!(write(first, &[7; 1000]), 0);
    assert_eq!(read(first, 1000).expect("readable"), [7; 1000]);
    assert_eq!(free(first), 0);
    let second = allocate(4 * MIB).expect("room");
    assert_eq!(second, first, "the lowest fitting addresses are used again");
    assert_eq!(read(second, 4 * MIB).expect("readable"), vec![0; 4 * MIB]);
    assert_eq!(free(second), 0);
}

#[test]
fn copies_and_sets_outside_live_memory_are_errors() {
    own_device();
    let _alone = alone();
    let block = allocate(2 * MIB).expect("room");
    assert_eq!(write(block + 2 * MIB - 10, &[1; 10]), 0);
    assert_eq!(write(block + 2 * MIB - 10, &[1; 11]), INVALID_VALUE);
    // SAFETY: the driver checks the ranges.
    unsafe {
        assert_eq!(cuMemsetD8_v2(block, 1, 2 * MIB + 1), INVALID_VALUE);
        assert_eq!(cuMemsetD32_v2(block + 4, 0x0102_0304, 100), 0);
    }
    assert_eq!(
        read(block, 12).expect("readable"),
        [0, 0, 0, 0, 4, 3, 2, 1, 4, 3, 2, 1]
    );
    assert_eq!(free(block), 0);
    assert_eq!(
        read(block, 100),
        Err(INVALID_VALUE),
        "freed memory must not be read"
    );
}

#[test]
fn zeroing_a_large_range_is_exact_at_its_edges() {
    own_device();
    let _alone = alone();
    let block = allocate(2 * MIB).expect("room");
    let (start, length) = (1001, MIB + 77);
    // SAFETY: the ranges lie in the block.
    unsafe {
        assert_eq!(cuMemsetD8_v2(block, 0xAB, 2 * MIB), 0);
        assert_eq!(cuMemsetD8_v2(block + start, 0, length), 0);
    }
    let bytes = read(block, 2 * MIB).expect("readable");
    let expected = |index: usize| {
        if (start..start + length).contains(&index) {
            0
        } else {
            0xAB
        }
    };
    assert!(
        bytes
            .iter()
            .enumerate()
            .all(|(index, byte)| *byte == expected(index))
    );
    assert_eq!(free(block), 0);
}

#[test]
fn small_reads_are_zero_once_a_kernel_may_have_written() {
    own_device();
    let _alone = alone();
    let block = allocate(4096).expect("room");
    assert_eq!(write(block, &42_u64.to_ne_bytes()), 0);
    assert_eq!(read(block, 8).expect("readable"), 42_u64.to_ne_bytes());
    // SAFETY: a kernel is only a number here.
    unsafe {
        let nothing = std::ptr::null_mut();
        assert_eq!(
            cuLaunchKernel(1, 1, 1, 1, 1, 1, 1, 0, 0, nothing, nothing),
            0
        );
    }
    assert_eq!(read(block, 8).expect("readable"), [0; 8]);
    assert_eq!(
        read(block, 9).expect("readable")[..8],
        42_u64.to_ne_bytes(),
        "larger reads are real"
    );
    assert_eq!(free(block), 0);
}

#[test]
fn host_memory_is_told_from_device_memory() {
    let device = own_device();
    let _alone = alone();
    let mut host: *mut c_void = std::ptr::null_mut();
    let block = allocate(4096).expect("room");
    let kind = |address: usize| {
        let mut value = 0_u32;
        // SAFETY: attribute 2 is an unsigned int.
        let code = unsafe { cuPointerGetAttribute((&raw mut value).cast(), 2, address) };
        (code, value)
    };
    // SAFETY: the places are valid.
    unsafe {
        assert_eq!(cuMemHostAlloc(&raw mut host, 10_000, 0), 0);
        let mut ordinal = -1;
        assert_eq!(
            cuPointerGetAttribute((&raw mut ordinal).cast(), 9, block),
            0
        );
        assert_eq!(ordinal, device);
    }
    assert_eq!(kind(host as usize + 9_999), (0, 1));
    assert_eq!(kind(block + 4095), (0, 2));
    assert_eq!(kind(block + 4096).0, INVALID_VALUE);
    assert_eq!(
        free(host as usize),
        INVALID_VALUE,
        "host memory is not freed as device memory"
    );
    // SAFETY: takes an address only to look it up.
    unsafe {
        assert_eq!(cuMemFreeHost(block as *mut c_void), INVALID_VALUE);
        assert_eq!(cuMemFreeHost(host), 0);
        assert_eq!(cuMemFreeHost(host), INVALID_VALUE);
    }
    assert_eq!(free(block), 0);
}

#[test]
fn threads_do_not_lose_memory() {
    let device = own_device();
    let _alone = alone();
    std::thread::scope(|scope| {
        for seed in 1..=4_usize {
            scope.spawn(move || {
                use_device(device);
                for round in 0..300 {
                    let size = 512 + (seed * 7919 + round * 104_729) % (3 * MIB);
                    let block = allocate(size).expect("room for four");
                    let pattern = vec![seed as u8; size];
                    assert_eq!(write(block, &pattern), 0);
                    assert_eq!(read(block, size).expect("readable"), pattern);
                    assert_eq!(free(block), 0);
                }
            });
        }
    });
    assert_eq!(used(), 0);
}
