//! Memory that another process can map: an anonymous file for each piece that is handed out.
//!
//! Most memory is never handed out, so a piece gets its file when that is first asked for, and its
//! content moves there. The file lives as long as a process has it open or mapped: whoever imported
//! a piece keeps bytes to read when the exporter frees it or dies.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};

use simcuda_common::code::{INVALID_VALUE, OUT_OF_MEMORY, Outcome};

use crate::arena::HOST_PAGE;

/// Begins the files' names; the number of the device follows. The kernel shows the name with the
/// descriptor, so that another process can tell the file from any other, and whose memory it is.
const NAME: &str = "simcuda-shared-";
/// What is copied at a time, in bytes.
const CHUNK: usize = 1 << 20;
/// Bits of an entry of `/proc/self/pagemap`: the page is in memory, or swapped out.
const TOUCHED: u64 = 3 << 62;

/// The file behind a piece of device memory.
#[derive(Debug)]
pub struct SharedFile {
    file: File,
    /// Bytes of the piece.
    size: usize,
    /// The device, by its number on the machine: the order in which a process sees devices is its own.
    device: usize,
}

impl SharedFile {
    /// A new file of `size` zero bytes.
    pub fn new(size: usize, device: usize) -> Result<Self, c_int> {
        let name = format!("{NAME}{device}\0");
        // SAFETY: the name is a C string.
        let descriptor = unsafe { libc::memfd_create(name.as_ptr().cast(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(OUT_OF_MEMORY);
        }
        // SAFETY: the descriptor is new and nobody else's.
        let file = unsafe { File::from_raw_fd(descriptor) };
        file.set_len(size as u64).map_err(|_| OUT_OF_MEMORY)?;
        Ok(Self { file, size, device })
    }

    /// The file behind a descriptor of this process, which stays the caller's.
    pub fn of_descriptor(descriptor: RawFd) -> Result<Self, c_int> {
        Self::open(format!("/proc/self/fd/{descriptor}"))
    }

    /// The file behind a descriptor of another process of the same user.
    pub fn of_process(pid: u32, descriptor: RawFd) -> Result<Self, c_int> {
        Self::open(format!("/proc/{pid}/fd/{descriptor}"))
    }

    fn open(path: String) -> Result<Self, c_int> {
        let name = std::fs::read_link(&path).map_err(|_| INVALID_VALUE)?;
        let name = name.to_str().ok_or(INVALID_VALUE)?;
        // "/memfd:simcuda-shared-3 (deleted)"
        let device = name
            .strip_prefix("/memfd:")
            .and_then(|name| name.strip_prefix(NAME))
            .and_then(|rest| rest.split(' ').next()?.parse().ok())
            .ok_or(INVALID_VALUE)?;
        let file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|_| INVALID_VALUE)?;
        let size = file.metadata().map_err(|_| INVALID_VALUE)?.len() as usize;
        Ok(Self { file, size, device })
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn device(&self) -> usize {
        self.device
    }

    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Tells the file from every other, also from one that has its descriptor later.
    pub fn inode(&self) -> Result<u64, c_int> {
        let metadata = self.file.metadata().map_err(|_| INVALID_VALUE)?;
        Ok(metadata.ino())
    }

    /// Another descriptor of the file, which is the caller's to close.
    pub fn duplicate(&self) -> Result<RawFd, c_int> {
        // SAFETY: takes no pointer.
        match unsafe { libc::fcntl(self.descriptor(), libc::F_DUPFD_CLOEXEC, 0) } {
            -1 => Err(OUT_OF_MEMORY),
            descriptor => Ok(descriptor),
        }
    }

    /// Maps a part of the file, in whole pages, over what is mapped at `address`, which lies in the
    /// arena and is the caller's.
    pub fn map(&self, address: usize, size: usize, offset: usize, protection: c_int) -> Outcome {
        // SAFETY: the range lies in the arena, where only this library maps anything, and was taken
        // by the caller, so no one else's memory is replaced.
        let mapped = unsafe {
            libc::mmap(
                address as *mut c_void,
                size.next_multiple_of(HOST_PAGE),
                protection,
                libc::MAP_SHARED | libc::MAP_FIXED,
                self.descriptor(),
                offset as libc::off_t,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(OUT_OF_MEMORY);
        }
        Ok(())
    }

    /// Copies the touched pages of a piece of private memory, which nobody writes to meanwhile.
    pub fn fill_from_memory(&self, address: usize) -> Outcome {
        let pages = self.size.div_ceil(HOST_PAGE);
        let map = File::open("/proc/self/pagemap").map_err(|_| OUT_OF_MEMORY)?;
        let mut entries = vec![0; pages * size_of::<u64>()];
        map.read_exact_at(
            &mut entries,
            (address / HOST_PAGE * size_of::<u64>()) as u64,
        )
        .map_err(|_| OUT_OF_MEMORY)?;
        let (entries, _) = entries.as_chunks();
        for (page, _) in (entries.iter().enumerate())
            .filter(|(_, entry)| u64::from_ne_bytes(**entry) & TOUCHED != 0)
        {
            let offset = page * HOST_PAGE;
            let length = HOST_PAGE.min(self.size - offset);
            // SAFETY: the page is live device memory, as the caller holds the ledger's lock, and
            // nobody writes to it.
            let bytes =
                unsafe { std::slice::from_raw_parts((address + offset) as *const u8, length) };
            self.file
                .write_all_at(bytes, offset as u64)
                .map_err(|_| OUT_OF_MEMORY)?;
        }
        Ok(())
    }

    /// Copies a part of another file, leaving its holes out.
    pub fn fill_from_file(&self, source: RawFd, offset: usize) -> Outcome {
        let seek = |from: usize, whence: c_int| -> Option<usize> {
            // SAFETY: takes no pointer. Nobody uses the file's position.
            usize::try_from(unsafe { libc::lseek(source, from as libc::off_t, whence) }).ok()
        };
        let end = offset + self.size;
        let mut buffer = vec![0; CHUNK];
        let mut next = offset;
        while let Some(start) = seek(next, libc::SEEK_DATA).filter(|start| *start < end) {
            let stop = seek(start, libc::SEEK_HOLE).map_or(end, |hole| hole.min(end));
            next = start;
            while next < stop {
                let length = CHUNK.min(stop - next);
                // SAFETY: the buffer has room for `length` bytes.
                let read = unsafe {
                    libc::pread(
                        source,
                        buffer.as_mut_ptr().cast(),
                        length,
                        next as libc::off_t,
                    )
                };
                let read = usize::try_from(read).map_err(|_| OUT_OF_MEMORY)?;
                if read == 0 {
                    return Ok(());
                }
                self.file
                    .write_all_at(&buffer[..read], (next - offset) as u64)
                    .map_err(|_| OUT_OF_MEMORY)?;
                next += read;
            }
        }
        Ok(())
    }
}
