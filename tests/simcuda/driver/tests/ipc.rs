//! Memory and events between two processes: this one, and itself started once more.

mod support;

use std::ffi::{c_int, c_void};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use simcuda_common::usage::Usage;
use support::*;

const POSIX_DESCRIPTOR: c_int = 1;
const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;

/// The other process. It does what it is told, a line at a time.
struct Other {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Other {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().expect("a test has a file"))
            .args(["--ignored", "--exact", "the_other_process", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        Self {
            input: child.stdin.take().expect("piped"),
            output: BufReader::new(child.stdout.take().expect("piped")),
            child,
        }
    }

    /// What a call gave there: its numbers, or the error code.
    fn ask(&mut self, command: &str) -> Result<Vec<usize>, c_int> {
        writeln!(self.input, "{command}").expect("it listens");
        loop {
            let mut line = String::new();
            let bytes = self.output.read_line(&mut line).expect("UTF-8");
            assert!(bytes > 0, "it ended at {command}");
            // What the test runner prints comes in between, also on the same line.
            let Some((_, answer)) = line.split_once("= ") else {
                continue;
            };
            let numbers = |text: &str| -> Vec<i64> {
                let words = text.split_whitespace();
                words.map(|word| word.parse().expect("a number")).collect()
            };
            return match answer.split_once("error ") {
                Some((_, code)) => Err(numbers(code)[0] as c_int),
                None => Ok(numbers(answer).iter().map(|n| *n as usize).collect()),
            };
        }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn finish(self) {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        assert!(child.wait().expect("our child").success());
    }
}

fn text(handle: IpcHandle) -> String {
    handle.bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn handle(text: &str) -> IpcHandle {
    let byte = |n: usize| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).expect("hexadecimal");
    IpcHandle {
        bytes: std::array::from_fn(byte),
    }
}

fn checked<T>(code: c_int, value: T) -> Result<T, c_int> {
    if code == 0 { Ok(value) } else { Err(code) }
}

fn export(address: usize) -> Result<IpcHandle, c_int> {
    let mut handle = IpcHandle { bytes: [0; 64] };
    // SAFETY: the place is valid.
    let code = unsafe { cuIpcGetMemHandle(&raw mut handle, address) };
    checked(code, handle)
}

fn open(handle: IpcHandle, flags: u32) -> Result<usize, c_int> {
    let mut address = 0;
    // SAFETY: the place is valid.
    let code = unsafe { cuIpcOpenMemHandle_v2(&raw mut address, handle, flags) };
    checked(code, address)
}

fn close(address: usize) -> Result<(), c_int> {
    // SAFETY: takes no pointer.
    checked(unsafe { cuIpcCloseMemHandle(address) }, ())
}

fn event(flags: u32) -> Result<usize, c_int> {
    let mut event = 0;
    // SAFETY: the place is valid.
    let code = unsafe { cuEventCreate(&raw mut event, flags) };
    checked(code, event)
}

fn export_event(event: usize) -> Result<IpcHandle, c_int> {
    let mut handle = IpcHandle { bytes: [0; 64] };
    // SAFETY: the place is valid.
    let code = unsafe { cuIpcGetEventHandle(&raw mut handle, event) };
    checked(code, handle)
}

fn open_event(handle: IpcHandle) -> Result<usize, c_int> {
    let mut event = 0;
    // SAFETY: the place is valid.
    let code = unsafe { cuIpcOpenEventHandle(&raw mut event, handle) };
    checked(code, event)
}

fn create(device: c_int, size: usize, handle_types: c_int) -> Result<usize, c_int> {
    let properties = AllocationProp {
        kind: 1,
        handle_types,
        location: [1, device],
        rest: [0; 2],
    };
    let mut handle = 0;
    // SAFETY: the places are valid.
    let code = unsafe { cuMemCreate(&raw mut handle, size, &raw const properties, 0) };
    checked(code, handle)
}

/// Maps physical memory at a range of its own.
fn map(device: c_int, handle: usize, size: usize) -> Result<usize, c_int> {
    let access = AccessDesc {
        location: [1, device],
        flags: 3,
    };
    let mut address = 0;
    // SAFETY: the places are valid.
    unsafe {
        checked(cuMemAddressReserve(&raw mut address, size, 0, 0, 0), ())?;
        checked(cuMemMap(address, size, 0, handle, 0), ())?;
        checked(cuMemSetAccess(address, size, &raw const access, 1), ())?;
    }
    Ok(address)
}

fn unmap(address: usize, size: usize) -> Result<(), c_int> {
    // SAFETY: take no pointers.
    unsafe {
        checked(cuMemUnmap(address, size), ())?;
        checked(cuMemAddressFree(address, size), ())
    }
}

fn release(handle: usize) -> Result<(), c_int> {
    // SAFETY: takes no pointer.
    checked(unsafe { cuMemRelease(handle) }, ())
}

fn export_descriptor(handle: usize, kind: c_int) -> Result<c_int, c_int> {
    let mut descriptor: c_int = -1;
    let place = (&raw mut descriptor).cast();
    // SAFETY: the place is valid.
    let code = unsafe { cuMemExportToShareableHandle(place, handle, kind, 0) };
    checked(code, descriptor)
}

fn import_descriptor(descriptor: c_int) -> Result<usize, c_int> {
    let mut handle = 0;
    let value = descriptor as usize as *mut c_void;
    // SAFETY: the place is valid, and the pointer is a number.
    let code = unsafe { cuMemImportFromShareableHandle(&raw mut handle, value, POSIX_DESCRIPTOR) };
    checked(code, handle)
}

fn close_descriptor(descriptor: c_int) {
    // SAFETY: the descriptor is this test's.
    assert_eq!(unsafe { libc::close(descriptor) }, 0);
}

/// A descriptor of another process, got as PyTorch gets it.
fn descriptor_of(pid: i32, descriptor: i32) -> c_int {
    // SAFETY: take no pointers.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        assert!(process >= 0, "pidfd_open");
        let got = libc::syscall(libc::SYS_pidfd_getfd, process, descriptor, 0);
        assert!(got >= 0, "pidfd_getfd");
        close_descriptor(process as c_int);
        got as c_int
    }
}

/// What NVML says that a process has on a device.
fn charged(pid: u32, device: c_int) -> usize {
    let usage = Usage::open(None).expect("the table of processes");
    let processes = usage.processes(device as usize).into_iter();
    let of_it = processes.filter(|process| process.pid == pid);
    of_it.map(|process| process.bytes as usize).sum()
}

fn obey(device: c_int, words: &[&str]) -> Result<Vec<usize>, c_int> {
    let number = |index: usize| words[index].parse::<usize>().expect("a number");
    match words[0] {
        "open" => {
            let address = open(handle(words[1]), 1)?;
            let (mut base, mut size) = (0, 0);
            // SAFETY: the places are valid.
            let code =
                unsafe { cuMemGetAddressRange_v2(&raw mut base, &raw mut size, address + 1) };
            assert_eq!((code, base), (0, address));
            Ok(vec![address, size])
        }
        "close" => close(number(1)).map(|()| vec![]),
        "free" => checked(free(number(1)), vec![]),
        "export" => export(number(1)).map(|_| vec![]),
        "read" => {
            read(number(1), number(2)).map(|bytes| bytes.into_iter().map(usize::from).collect())
        }
        "write" => checked(write(number(1), &[number(2) as u8; 100]), vec![]),
        "zero" => {
            // SAFETY: the driver checks the range.
            checked(unsafe { cuMemsetD8_v2(number(1), 0, number(2)) }, vec![])
        }
        "allocate" => allocate(number(1)).map(|address| vec![address]),
        "event" => {
            let event = open_event(handle(words[1]))?;
            // SAFETY: take no pointers.
            unsafe {
                checked(cuEventQuery(event), ())?;
                checked(cuEventDestroy_v2(event), vec![])
            }
        }
        "import" => {
            let descriptor = descriptor_of(number(1) as i32, number(2) as i32);
            let imported = import_descriptor(descriptor);
            close_descriptor(descriptor);
            Ok(vec![imported?])
        }
        "map" => map(device, number(1), number(2)).map(|address| vec![address]),
        "unmap" => unmap(number(1), number(2)).map(|()| vec![]),
        "release" => release(number(1)).map(|()| vec![]),
        other => panic!("{other}?"),
    }
}

#[test]
#[ignore = "the other process of the tests here"]
fn the_other_process() {
    let device = own_device();
    for line in std::io::stdin().lines() {
        let line = line.expect("UTF-8");
        let words: Vec<&str> = line.split_whitespace().collect();
        match obey(device, &words) {
            Ok(numbers) => {
                let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                println!("\n= {}", words.join(" "));
            }
            Err(code) => println!("\n= error {code}"),
        }
    }
}

#[test]
fn an_import_has_the_exporters_bytes_and_costs_nothing() {
    let device = own_device();
    let _alone = alone();
    let block = allocate(4 * MIB).expect("room");
    assert_eq!(write(block, &[7; 1000]), 0);
    let handle = export(block).expect("a handle");
    assert_eq!(export(block + MIB), Ok(handle), "it is the allocation's");
    assert_eq!(read(block, 1000).expect("readable"), [7; 1000]);
    assert_eq!(used(), 4 * MIB);

    let mut other = Other::start();
    let opened = other
        .ask(&format!("open {}", text(handle)))
        .expect("opened");
    let (there, size) = (opened[0], opened[1]);
    assert_eq!(size, 4 * MIB);
    assert_eq!(charged(other.pid(), device), 0);
    assert_eq!(charged(std::process::id(), device), 4 * MIB);
    let read_there = |other: &mut Other, offset: usize| {
        let bytes = other.ask(&format!("read {} 100", there + offset));
        bytes.expect("readable")
    };
    assert_eq!(read_there(&mut other, 900), [7; 100]);
    assert_eq!(read_there(&mut other, 1000), [0; 100]);
    // Each sees what the other writes.
    assert_eq!(write(block + 2 * MIB, &[8; 100]), 0);
    assert_eq!(read_there(&mut other, 2 * MIB), [8; 100]);
    other.ask(&format!("write {there} 9")).expect("writable");
    assert_eq!(read(block, 100).expect("readable"), [9; 100]);
    // SAFETY: the driver checks the range.
    assert_eq!(unsafe { cuMemsetD8_v2(block + 2 * MIB, 0, 2 * MIB) }, 0);
    assert_eq!(read_there(&mut other, 2 * MIB), [0; 100]);
    other.ask(&format!("zero {there} {MIB}")).expect("writable");
    assert_eq!(read(block, 1000).expect("readable"), [0; 1000]);

    // Opened twice, it is mapped once and has to be closed twice.
    let again = other.ask(&format!("open {}", text(handle)));
    assert_eq!(again, Ok(opened));
    assert_eq!(other.ask(&format!("free {there}")), Err(INVALID_VALUE));
    assert_eq!(other.ask(&format!("export {there}")), Err(INVALID_VALUE));
    assert_eq!(other.ask(&format!("close {there}")), Ok(vec![]));
    assert_eq!(read_there(&mut other, MIB), [0; 100]);
    assert_eq!(other.ask(&format!("close {there}")), Ok(vec![]));
    let gone = other.ask(&format!("read {there} 100"));
    assert_eq!(gone, Err(INVALID_VALUE));
    assert_eq!(other.ask(&format!("close {there}")), Err(INVALID_VALUE));
    // The addresses serve again, for memory of its own.
    let own = other.ask("allocate 4194304").expect("room");
    assert_eq!(own[0], there);
    assert_eq!(free(block), 0);
    assert_eq!(used(), 0);
    other.finish();
}

#[test]
fn what_is_freed_or_gone_is_an_error_or_stays_readable() {
    let device = own_device();
    let _alone = alone();
    let block = allocate(2 * MIB).expect("room");
    assert_eq!(write(block, &[5; 100]), 0);
    let handle = export(block).expect("a handle");
    let open_it = format!("open {}", text(handle));
    let mut other = Other::start();
    let there = other.ask(&open_it).expect("opened")[0];
    let mut late = Other::start();

    assert_eq!(free(block), 0);
    assert_eq!(charged(std::process::id(), device), 0);
    assert_eq!(read(block, 100), Err(INVALID_VALUE));
    let bytes = other.ask(&format!("read {there} 100"));
    assert_eq!(bytes, Ok(vec![5; 100]), "still mapped there");
    assert_eq!(late.ask(&open_it), Err(INVALID_VALUE));
    // The same address, even the same descriptor: another handle.
    let next = allocate(2 * MIB).expect("room");
    assert_eq!(next, block);
    let newer = export(next).expect("a handle");
    assert_ne!(newer, handle);
    assert_eq!(late.ask(&open_it), Err(INVALID_VALUE));
    let opened = late.ask(&format!("open {}", text(newer))).expect("opened");
    let bytes = late.ask(&format!("read {} 100", opened[0]));
    assert_eq!(bytes, Ok(vec![0; 100]));
    assert_eq!(other.ask(&format!("close {there}")), Ok(vec![]));
    assert_eq!(free(next), 0);
    other.finish();
    late.finish();
}

#[test]
fn handles_of_nothing_are_refused() {
    own_device();
    let _alone = alone();
    let block = allocate(512).expect("room");
    let handle = export(block).expect("a handle");
    assert_eq!(open(handle, 1), Err(INVALID_CONTEXT), "one's own");
    assert_eq!(open(handle, 2), Err(INVALID_VALUE), "an unknown flag");
    assert_eq!(close(block), Err(INVALID_VALUE), "not an import");
    let garbage = IpcHandle { bytes: [1; 64] };
    assert_eq!(open(garbage, 1), Err(INVALID_HANDLE));
    let mut of_nobody = handle;
    of_nobody.bytes[8..16].copy_from_slice(&u64::from(u32::MAX / 2).to_ne_bytes());
    assert_eq!(open(of_nobody, 1), Err(INVALID_VALUE));
    assert_eq!(export(block + 512), Err(INVALID_VALUE), "not allocated");

    let (mut pooled, mut host) = (0, std::ptr::null_mut());
    // SAFETY: the places are valid.
    unsafe {
        assert_eq!(cuMemAllocAsync(&raw mut pooled, MIB, 0), 0);
        assert_eq!(cuMemHostAlloc(&raw mut host, MIB, 0), 0);
    }
    assert_eq!(export(pooled), Err(INVALID_VALUE), "of a pool");
    assert_eq!(export(host as usize), Err(INVALID_VALUE), "of the host");
    // SAFETY: both are allocated.
    unsafe {
        assert_eq!(cuMemFreeAsync(pooled, 0), 0);
        assert_eq!(cuMemFreeHost(host), 0);
    }

    // A small block has its own bytes too.
    assert_eq!(write(block, &[3; 512]), 0);
    let mut other = Other::start();
    let opened = other
        .ask(&format!("open {}", text(handle)))
        .expect("opened");
    assert_eq!(opened[1], 512);
    let bytes = other.ask(&format!("read {} 512", opened[0]));
    assert_eq!(bytes, Ok(vec![3; 512]));
    let beyond = other.ask(&format!("read {} 513", opened[0]));
    assert_eq!(beyond, Err(INVALID_VALUE));
    other.finish();
    assert_eq!(free(block), 0);
}

#[test]
fn events_can_be_handed_over() {
    own_device();
    assert_eq!(
        event(INTERPROCESS),
        Err(INVALID_VALUE),
        "they have no times"
    );
    let private = event(DISABLE_TIMING).expect("an event");
    assert_eq!(export_event(private), Err(INVALID_HANDLE));
    let shared = event(DISABLE_TIMING | INTERPROCESS).expect("an event");
    let handle = export_event(shared).expect("a handle");
    assert_eq!(open_event(handle), Err(INVALID_CONTEXT), "one's own");
    assert_eq!(open(handle, 1), Err(INVALID_HANDLE), "not memory");
    let mut other = Other::start();
    assert_eq!(other.ask(&format!("event {}", text(handle))), Ok(vec![]));
    other.finish();
}

#[test]
fn virtual_memory_is_shared_by_descriptor() {
    let device = own_device();
    let _alone = alone();
    let fabric = create(device, DEVICE_PAGE, 8);
    assert_eq!(fabric, Err(801), "there is no fabric");
    let private = create(device, DEVICE_PAGE, 0).expect("room");
    assert_eq!(
        export_descriptor(private, POSIX_DESCRIPTOR),
        Err(INVALID_VALUE),
        "not made for it"
    );
    assert_eq!(release(private), Ok(()));

    let handle = create(device, 2 * DEVICE_PAGE, POSIX_DESCRIPTOR).expect("room");
    let here = map(device, handle, 2 * DEVICE_PAGE).expect("mapped");
    assert_eq!(write(here + DEVICE_PAGE, &[6; 100]), 0);
    let descriptor = export_descriptor(handle, POSIX_DESCRIPTOR).expect("a descriptor");
    let bytes = read(here + DEVICE_PAGE - 50, 150).expect("readable");
    assert_eq!((&bytes[..50], &bytes[50..]), (&[0; 50][..], &[6; 100][..]));
    assert_eq!(used(), 2 * DEVICE_PAGE);

    let mut other = Other::start();
    let import = format!("import {} {descriptor}", std::process::id());
    let imported = other.ask(&import).expect("imported")[0];
    close_descriptor(descriptor);
    let mapped = other.ask(&format!("map {imported} {}", 2 * DEVICE_PAGE));
    let there = mapped.expect("mapped")[0];
    assert_eq!(charged(other.pid(), device), 0);
    let read_there = format!("read {} 100", there + DEVICE_PAGE);
    assert_eq!(other.ask(&read_there), Ok(vec![6; 100]));
    other
        .ask(&format!("write {} 4", there + DEVICE_PAGE))
        .expect("writable");
    assert_eq!(read(here + DEVICE_PAGE, 100).expect("readable"), [4; 100]);
    assert_eq!(other.ask(&format!("release {imported}")), Ok(vec![]));

    // Back where it came from it is the same memory, not more of it.
    let descriptor = export_descriptor(handle, POSIX_DESCRIPTOR).expect("a descriptor");
    assert_eq!(import_descriptor(descriptor), Ok(handle));
    close_descriptor(descriptor);
    assert_eq!(import_descriptor(0), Err(INVALID_VALUE), "no memory");
    assert_eq!(used(), 2 * DEVICE_PAGE);
    assert_eq!(release(handle), Ok(()));
    assert_eq!(release(handle), Ok(()));
    assert_eq!(release(handle), Err(INVALID_VALUE));
    assert_eq!(unmap(here, 2 * DEVICE_PAGE), Ok(()));
    assert_eq!(used(), 0);
    assert_eq!(charged(std::process::id(), device), 0);
    assert_eq!(other.ask(&read_there), Ok(vec![4; 100]), "still mapped");
    let unmapped = other.ask(&format!("unmap {there} {}", 2 * DEVICE_PAGE));
    assert_eq!(unmapped, Ok(vec![]));
    other.finish();
}
