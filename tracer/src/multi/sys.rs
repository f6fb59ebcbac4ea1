//! The FFI room of [`super`]: the three calls of bpf(2) that the loader's crate has no door for.
#![allow(unsafe_code)]

use std::{
    ffi::CStr,
    io, mem,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
};

use aya_obj::{
    Function,
    generated::{
        bpf_attach_type::BPF_TRACE_UPROBE_MULTI,
        bpf_attr,
        bpf_cmd::{self, BPF_BTF_LOAD, BPF_LINK_CREATE, BPF_PROG_LOAD},
        bpf_prog_type::BPF_PROG_TYPE_KPROBE,
    },
};

/// The program may wait for memory (linux/bpf.h).
const BPF_F_SLEEPABLE: u32 = 1 << 4;
/// The probes sit on returns (linux/bpf.h).
const BPF_F_UPROBE_MULTI_RETURN: u32 = 1;

/// Gives the types of an object file to the kernel.
pub fn load_types(types: &[u8]) -> io::Result<OwnedFd> {
    let mut attributes = empty();
    attributes.__bindgen_anon_7.btf = types.as_ptr() as u64;
    attributes.__bindgen_anon_7.btf_size = types.len() as u32;
    call(BPF_BTF_LOAD, &mut attributes)
}

/// Loads a program that is to sit on many places at once. On failure `log` has the verifier's
/// words.
pub fn load_program(
    function: &Function,
    name: &str,
    license: &CStr,
    types: BorrowedFd<'_>,
    sleepable: bool,
    log: &mut [u8],
) -> io::Result<OwnedFd> {
    let functions = function.func_info.func_info_bytes();
    let lines = function.line_info.line_info_bytes();
    let mut attributes = empty();
    // SAFETY: all variants of the union are integers and arrays of them, and all bits are set.
    let program = unsafe { &mut attributes.__bindgen_anon_3 };
    // The last byte stays zero.
    let room = program.prog_name.len() - 1;
    for (to, from) in program.prog_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as std::ffi::c_char;
    }
    program.prog_type = BPF_PROG_TYPE_KPROBE as u32;
    program.expected_attach_type = BPF_TRACE_UPROBE_MULTI as u32;
    program.prog_flags = if sleepable { BPF_F_SLEEPABLE } else { 0 };
    program.insns = function.instructions.as_ptr() as u64;
    program.insn_cnt = function.instructions.len() as u32;
    program.license = license.as_ptr() as u64;
    program.prog_btf_fd = types.as_raw_fd() as u32;
    program.func_info = functions.as_ptr() as u64;
    program.func_info_cnt = function.func_info.len() as u32;
    program.func_info_rec_size = function.func_info_rec_size as u32;
    program.line_info = lines.as_ptr() as u64;
    program.line_info_cnt = function.line_info.len() as u32;
    program.line_info_rec_size = function.line_info_rec_size as u32;
    if !log.is_empty() {
        program.log_level = 1;
        program.log_buf = log.as_mut_ptr() as u64;
        program.log_size = log.len() as u32;
    }
    call(BPF_PROG_LOAD, &mut attributes)
}

/// Has a program run at places of a file, in one process. `offsets` and `cookies` are as many.
/// Closing what is returned takes the probes off.
pub fn attach(
    program: BorrowedFd<'_>,
    file: &CStr,
    offsets: &[u64],
    cookies: &[u64],
    pid: u32,
    returns: bool,
) -> io::Result<OwnedFd> {
    assert_eq!(offsets.len(), cookies.len());
    let mut attributes = empty();
    // SAFETY: all variants of the union are integers, and all bits are set.
    let link = unsafe { &mut attributes.link_create };
    link.__bindgen_anon_1.prog_fd = program.as_raw_fd() as u32;
    link.attach_type = BPF_TRACE_UPROBE_MULTI as u32;
    // SAFETY: as above.
    let probes = unsafe { &mut link.__bindgen_anon_3.uprobe_multi };
    probes.path = file.as_ptr() as u64;
    probes.offsets = offsets.as_ptr() as u64;
    probes.cookies = cookies.as_ptr() as u64;
    probes.cnt = offsets.len() as u32;
    probes.flags = if returns {
        BPF_F_UPROBE_MULTI_RETURN
    } else {
        0
    };
    probes.pid = pid;
    call(BPF_LINK_CREATE, &mut attributes)
}

fn empty() -> bpf_attr {
    // SAFETY: a union of structs of integers.
    unsafe { mem::zeroed() }
}

/// A call of bpf(2) that makes a descriptor.
fn call(command: bpf_cmd, attributes: &mut bpf_attr) -> io::Result<OwnedFd> {
    // SAFETY: the attributes are as large as we say, and what they point to outlives the call: it
    // is borrowed by our callers. The kernel writes to the log alone, within the size given.
    let made = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_long,
            std::ptr::from_mut(attributes),
            size_of::<bpf_attr>(),
        )
    };
    let made = RawFd::try_from(made).map_err(io::Error::other)?;
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fresh from the kernel, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}
