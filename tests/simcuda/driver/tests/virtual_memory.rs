//! The virtual memory API: what expandable segments use.

mod support;

use std::ffi::{c_int, c_void};

use support::*;

fn properties(device: c_int) -> AllocationProp {
    AllocationProp {
        kind: 1,
        handle_types: 0,
        location: [1, device],
        rest: [0; 2],
    }
}

fn reserve(size: usize) -> usize {
    let mut address = 0;
    // SAFETY: the place is valid.
    let code = unsafe { cuMemAddressReserve(&raw mut address, size, 0, 0, 0) };
    assert_eq!(code, 0);
    address
}

fn create(device: c_int, size: usize) -> Result<usize, c_int> {
    let mut handle = 0;
    let properties = properties(device);
    // SAFETY: the places are valid.
    match unsafe { cuMemCreate(&raw mut handle, size, &raw const properties, 0) } {
        0 => Ok(handle),
        code => Err(code),
    }
}

fn map(address: usize, size: usize, handle: usize) -> c_int {
    // SAFETY: takes no pointer.
    unsafe { cuMemMap(address, size, 0, handle, 0) }
}

fn allow(device: c_int, address: usize, size: usize) -> c_int {
    let access = AccessDesc {
        location: [1, device],
        flags: 3,
    };
    // SAFETY: one description is given.
    unsafe { cuMemSetAccess(address, size, &raw const access, 1) }
}

fn unmap(address: usize, size: usize) -> c_int {
    // SAFETY: takes no pointer.
    unsafe { cuMemUnmap(address, size) }
}

fn release(handle: usize) -> c_int {
    // SAFETY: takes no pointer.
    unsafe { cuMemRelease(handle) }
}

#[test]
fn physical_memory_keeps_its_content_where_it_is_mapped_next() {
    let device = own_device();
    let range = reserve(4 * DEVICE_PAGE);
    let handle = create(device, DEVICE_PAGE).expect("room");
    assert_eq!(
        used(),
        DEVICE_PAGE,
        "physical memory is charged when it is made"
    );

    assert_eq!(map(range, DEVICE_PAGE, handle), 0);
    assert_eq!(write(range, &[9; 100]), INVALID_VALUE, "no access yet");
    assert_eq!(allow(device, range, DEVICE_PAGE), 0);
    assert_eq!(write(range, &[9; 100]), 0);
    assert_eq!(unmap(range, DEVICE_PAGE), 0);
    assert_eq!(read(range, 100), Err(INVALID_VALUE));

    let there = range + 2 * DEVICE_PAGE;
    assert_eq!(map(there, DEVICE_PAGE, handle), 0);
    assert_eq!(allow(device, there, DEVICE_PAGE), 0);
    assert_eq!(read(there, 100).expect("readable"), [9; 100]);

    assert_eq!(release(handle), 0);
    assert_eq!(used(), DEVICE_PAGE, "a mapping keeps it");
    assert_eq!(unmap(there, DEVICE_PAGE), 0);
    assert_eq!(used(), 0);
    // SAFETY: takes no pointer.
    assert_eq!(unsafe { cuMemAddressFree(range, 4 * DEVICE_PAGE) }, 0);
}

#[test]
fn a_range_over_two_mappings_is_one_piece_of_memory() {
    let device = own_device();
    let range = reserve(2 * DEVICE_PAGE);
    for page in 0..2 {
        let handle = create(device, DEVICE_PAGE).expect("room");
        assert_eq!(map(range + page * DEVICE_PAGE, DEVICE_PAGE, handle), 0);
        assert_eq!(release(handle), 0);
    }
    assert_eq!(allow(device, range, 2 * DEVICE_PAGE), 0);
    let across = range + DEVICE_PAGE - 50;
    assert_eq!(write(across, &[5; 100]), 0);
    assert_eq!(read(across, 100).expect("readable"), [5; 100]);
    // SAFETY: the range is mapped.
    assert_eq!(unsafe { cuMemsetD8_v2(range, 0, 2 * DEVICE_PAGE) }, 0);
    assert_eq!(read(across, 100).expect("readable"), [0; 100]);
    assert_eq!(unmap(range, 2 * DEVICE_PAGE), 0);
    assert_eq!(used(), 0);
    // SAFETY: takes no pointer.
    assert_eq!(unsafe { cuMemAddressFree(range, 2 * DEVICE_PAGE) }, 0);
}

#[test]
fn misuse_is_refused() {
    let device = own_device();
    let range = reserve(2 * DEVICE_PAGE);
    let handle = create(device, DEVICE_PAGE).expect("room");
    assert_eq!(
        create(device, DEVICE_PAGE + 1),
        Err(INVALID_VALUE),
        "not whole pages"
    );
    assert_eq!(create(device, CAPACITY), Err(OUT_OF_MEMORY));
    assert_eq!(
        // Before the range may lie another test's.
        map(DEVICE_PAGE, DEVICE_PAGE, handle),
        INVALID_VALUE,
        "not reserved"
    );
    assert_eq!(
        map(range, 2 * DEVICE_PAGE, handle),
        INVALID_VALUE,
        "more than there is"
    );
    assert_eq!(
        map(range + 4096, DEVICE_PAGE, handle),
        INVALID_VALUE,
        "not aligned"
    );
    assert_eq!(map(range, DEVICE_PAGE, handle), 0);
    assert_eq!(
        map(range, DEVICE_PAGE, handle),
        INVALID_VALUE,
        "mapped already"
    );
    assert_eq!(free(range), INVALID_VALUE, "not from cuMemAlloc");
    // SAFETY: takes no pointer.
    let code = unsafe { cuMemAddressFree(range, 2 * DEVICE_PAGE) };
    assert_eq!(code, INVALID_VALUE, "in use");
    assert_eq!(
        unmap(range, 2 * DEVICE_PAGE),
        INVALID_VALUE,
        "half of it is not mapped"
    );
    assert_eq!(unmap(range, DEVICE_PAGE), 0);
    assert_eq!(unmap(range, DEVICE_PAGE), INVALID_VALUE);
    assert_eq!(release(handle), 0);
    assert_eq!(release(handle), INVALID_VALUE);
    // SAFETY: takes no pointer.
    unsafe {
        assert_eq!(
            cuMemAddressFree(range, DEVICE_PAGE),
            INVALID_VALUE,
            "not as reserved"
        );
        assert_eq!(cuMemAddressFree(range, 2 * DEVICE_PAGE), 0);
    }
    assert_eq!(used(), 0);
}

#[test]
fn a_handle_can_be_had_again_from_its_mapping() {
    let device = own_device();
    let range = reserve(DEVICE_PAGE);
    let handle = create(device, DEVICE_PAGE).expect("room");
    assert_eq!(map(range, DEVICE_PAGE, handle), 0);
    assert_eq!(release(handle), 0);
    let mut again = 0;
    // SAFETY: the place is valid.
    let code = unsafe { cuMemRetainAllocationHandle(&raw mut again, range as *mut c_void) };
    assert_eq!(code, 0);
    assert_eq!(again, handle);
    assert_eq!(unmap(range, DEVICE_PAGE), 0);
    assert_eq!(used(), DEVICE_PAGE, "the handle keeps it");
    assert_eq!(release(again), 0);
    assert_eq!(used(), 0);
    // SAFETY: takes no pointer.
    assert_eq!(unsafe { cuMemAddressFree(range, DEVICE_PAGE) }, 0);
}
