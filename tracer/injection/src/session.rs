//! One session with a vramscope: hooks in, messages, hooks out.

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    sync::atomic::{AtomicU32, AtomicU64},
    time::{Duration, Instant},
};

use vramscope_ring::tables::{CodeTable, StackCache};
use vramscope_wire::{
    self as wire, vs_hello, vs_hook_report, vs_hooked, vs_left, vs_plain, vs_setup,
};

use crate::{
    driver_layer,
    got::{self, Pointers},
    live::{self, Executing, Live},
    native::{self, FindObject, Unwinder},
    neighbour, report,
    shared::Shared,
    socket::Socket,
    zeroed::zeroed,
};

/// Code objects that are remembered: 4 MiB, touched as it fills.
const CODES: usize = 1 << 18;
/// Stacks that are remembered: 2 MiB, likewise.
const STACKS: usize = 1 << 18;
/// How long the end waits for threads in our code before it reports them.
const LEAVING: Duration = Duration::from_secs(2);
/// Between two looks at them.
const REST: Duration = Duration::from_millis(2);

/// Greets the vramscope at `path`, works until it takes leave or is gone, and undoes everything.
/// `subscribe` is called when CUPTI is wanted, `ready` when all is in place.
///
/// # Errors
/// Nobody is there, or it speaks another language.
pub fn run(path: &[u8], subscribe: impl FnOnce(), ready: impl FnOnce()) -> io::Result<()> {
    let socket = Socket::connect(path)?;
    socket.send(&vs_hello {
        message: wire::vs_message_VS_HELLO,
        protocol: wire::VS_PROTOCOL,
    })?;
    let (setup, bytes, memory) = socket.receive::<vs_setup>()?;
    let wanted = bytes == size_of::<vs_setup>() && setup.message == wire::vs_message_VS_SETUP;
    let memory = memory
        .filter(|_| wanted)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EPROTO))?;
    let shared = Shared::map(&memory)?;
    drop(memory);
    let bell = bell()?;
    let mut session = Session::begin(&setup, shared)?;
    neighbour::set_bell(bell.as_raw_fd());
    if setup.flags & wire::vs_setup_flag_VS_SETUP_CUPTI != 0 {
        subscribe();
    }
    let greeted = socket.send(&session.report(wire::vs_message_VS_HOOKED));
    ready();
    let left = greeted.and_then(|()| session.serve(&socket, &bell));
    neighbour::set_bell(-1);
    let (inside, detail) = session.end();
    if let Ok(true) = left {
        let detail = report::entry(0, 0, detail.unwrap_or_default()).detail;
        // Whether it arrives or not, there is nothing left to do.
        let _ = socket.send(&vs_left {
            message: wire::vs_message_VS_LEFT,
            inside: inside as u32,
            detail,
        });
    }
    Ok(())
}

/// What wakes us beside the socket.
fn bell() -> io::Result<OwnedFd> {
    // SAFETY: a new descriptor of ours.
    unsafe {
        let bell = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
        if bell < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(bell))
    }
}

/// Waits for either; whether the bell has rung, and whether there is a message (or an end).
fn wait(socket: &Socket, bell: &OwnedFd) -> io::Result<(bool, bool)> {
    let mut both = [bell.as_raw_fd(), socket.descriptor()].map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: two entries.
    if unsafe { libc::poll(both.as_mut_ptr(), 2, -1) } < 0 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::Interrupted => Ok((false, false)),
            _ => Err(error),
        };
    }
    if both[0].revents != 0 {
        let mut count = 0_u64;
        // SAFETY: eight bytes, as an eventfd gives them.
        unsafe { libc::read(bell.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
    }
    Ok((both[0].revents != 0, both[1].revents != 0))
}

struct Session {
    pointers: Pointers,
    shared: Option<Shared>,
    native: vs_hook_report,
    step: bool,
}

impl Session {
    fn begin(setup: &vs_setup, shared: Shared) -> io::Result<Session> {
        let (ring, counters, header) = shared.parts()?;
        let is_finalizing = [c"Py_IsFinalizing", c"_Py_IsFinalizing"]
            .into_iter()
            .find_map(got::symbol_anywhere)
            // SAFETY: `Py_IsFinalizing` takes nothing and gives an int, under either of its names.
            .map(|address| unsafe {
                std::mem::transmute::<usize, extern "C" fn() -> i32>(address)
            });
        let wants_native = setup.flags & wire::vs_setup_flag_VS_SETUP_NATIVE != 0;
        let unwinder = wants_native.then(unwinder).flatten();
        let native = match (wants_native, &unwinder) {
            (false, _) => report::entry(wire::vs_hook_state_VS_HOOK_UNWANTED, 0, ""),
            (true, Some(_)) => report::entry(wire::vs_hook_state_VS_HOOK_PLACED, 0, ""),
            (true, None) => report::entry(
                wire::vs_hook_state_VS_HOOK_FAILED,
                0,
                "the process's C library has no _dl_find_object: glibc 2.35 has it",
            ),
        };
        live::publish(Box::new(Live {
            ring,
            counters,
            tsc: setup.flags & wire::vs_setup_flag_VS_SETUP_TSC != 0,
            python: header.python,
            interpreter: header.interpreter_start..header.interpreter_end,
            whole_stacks: setup.flags & wire::vs_setup_flag_VS_SETUP_NATIVE_WHOLE != 0,
            is_finalizing,
            unwinder,
            codes: CodeTable::new(zeroed(CODES), zeroed(CODES)),
            stacks: StackCache::new(zeroed(STACKS)),
            epoch: AtomicU64::new(1),
            replaced: AtomicU64::new(1),
            next_code: AtomicU32::new(1),
            next_stack: AtomicU32::new(1),
            executing: Executing::default(),
        }));
        let step = symbol(setup);
        let mut session = Session {
            step: step.is_some(),
            native,
            pointers: Pointers::new(step),
            shared: Some(shared),
        };
        session.pointers.scan();
        Ok(session)
    }

    fn report(&self, message: u32) -> vs_hooked {
        report::hooked(
            message,
            &self.pointers,
            driver_layer::report(),
            self.native,
            self.step,
        )
    }

    /// Does as it is told, until the other end takes leave (true) or is gone.
    fn serve(&mut self, socket: &Socket, bell: &OwnedFd) -> io::Result<bool> {
        loop {
            let (rung, told) = wait(socket, bell)?;
            if rung {
                driver_layer::look();
                socket.send(&self.report(wire::vs_message_VS_CUPTI))?;
            }
            if !told {
                continue;
            }
            let (message, bytes, _) = socket.receive::<vs_plain>()?;
            match message.message {
                _ if bytes == 0 => return Ok(false),
                wire::vs_message_VS_RESCAN | wire::vs_message_VS_REPLACED => {
                    self.pointers.scan();
                    // A library may have gone and another one come in its place.
                    let stacks = message.message == wire::vs_message_VS_REPLACED;
                    live::forget_code(stacks);
                    socket.send(&self.report(wire::vs_message_VS_HOOKED))?;
                }
                wire::vs_message_VS_LEAVE => return Ok(true),
                _ => {}
            }
        }
    }

    /// Undoes everything; how many threads are still in our code, and what could not be undone.
    fn end(&mut self) -> (u64, Option<&'static str>) {
        self.pointers.restore();
        let (quiet, note) = driver_layer::end();
        let mut ended = live::take();
        let until = Instant::now() + LEAVING;
        loop {
            ended = match ended.map(live::Ended::free) {
                Some(Err(still)) => Some(still),
                _ => None,
            };
            let inside = live::threads_inside() + u64::from(!quiet);
            if (inside == 0 && ended.is_none()) || Instant::now() >= until {
                // A session that could not be freed is left where it is: a thread uses it.
                if ended.is_none()
                    && let Some(shared) = self.shared.take()
                {
                    // SAFETY: it has been freed.
                    unsafe { shared.unmap() };
                }
                return (inside, note);
            }
            std::thread::sleep(REST);
        }
    }
}

/// What unwinding needs of the C library.
fn unwinder() -> Option<Unwinder> {
    if let Some(end) = got::symbol_anywhere(c"__libc_stack_end") {
        // SAFETY: a variable of the dynamic linker's, a pointer.
        native::set_main_stack_end(unsafe { *(end as *const usize) });
    }
    let find_object = got::symbol_anywhere(c"_dl_find_object")?;
    // SAFETY: the function of this name has this type in every glibc that has it.
    let find_object = unsafe { std::mem::transmute::<usize, FindObject>(find_object) };
    Some(Unwinder::new(find_object))
}

/// The function that marks a step, if one was named.
fn symbol(setup: &vs_setup) -> Option<CString> {
    let bytes: Vec<u8> = setup.step_symbol.iter().map(|byte| *byte as u8).collect();
    let name = CStr::from_bytes_until_nul(&bytes).ok()?;
    (!name.is_empty()).then(|| name.to_owned())
}
