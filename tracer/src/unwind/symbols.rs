//! Functions of files by their addresses.

use std::{
    collections::HashMap,
    fs::File,
    os::fd::AsRawFd as _,
    panic::{AssertUnwindSafe, catch_unwind},
};

use blazesym::symbolize::{
    Input, Symbolized, Symbolizer,
    source::{Elf, Source},
};

use super::{
    object::{CodeFile, Identity},
    tables::{self, Tables},
};

/// The symbols of files. They stay in memory until [`forget`](Symbols::forget).
#[derive(Default)]
pub struct Symbols {
    symbolizer: Symbolizer,
    /// None for files that have no symbols for us.
    copies: HashMap<Identity, Option<Tables>>,
}

impl Symbols {
    /// Looks addresses up in one file; where it has no name for one, `None`. The file is foreign:
    /// should it make the parser panic, or have changed since it was opened, it has no symbols.
    pub fn look_up(&mut self, file: &CodeFile, addresses: &[u64]) -> Vec<Option<String>> {
        self.try_look_up(file, addresses).unwrap_or_default()
    }

    fn try_look_up(&mut self, file: &CodeFile, addresses: &[u64]) -> Option<Vec<Option<String>>> {
        let identity = file.identity()?;
        if !self.copies.contains_key(&identity) {
            let copied = tables::copy(file.file()).ok();
            // What was written over meanwhile is half of this and half of that.
            let copied = copied.filter(|_| Identity::of(file.file()) == Some(identity));
            let held = |copies: &HashMap<_, Option<Tables>>| -> u64 {
                copies.values().flatten().map(|tables| tables.bytes).sum()
            };
            let bytes = copied.as_ref().map_or(0, |tables| tables.bytes);
            if held(&self.copies) + bytes > tables::MAX_BYTES {
                self.forget();
            }
            self.copies.insert(identity, copied);
        }
        let tables = self.copies.get(&identity)?.as_ref()?;
        let names = name(&self.symbolizer, &tables.file, addresses);
        if names.is_none() {
            self.forget();
        }
        names
    }

    /// Lets go of all symbols; they are read again when they are asked for.
    pub fn forget(&mut self) {
        self.copies.clear();
        self.symbolizer = Symbolizer::new();
    }
}

/// The names of addresses; `None` when the parser panicked.
fn name(symbolizer: &Symbolizer, file: &File, addresses: &[u64]) -> Option<Vec<Option<String>>> {
    let mut elf = Elf::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
    elf.debug_syms = false;
    let source = Source::Elf(elf);
    catch_unwind(AssertUnwindSafe(|| {
        let found = symbolizer.symbolize(&source, Input::VirtOffset(addresses));
        let names = found.into_iter().flatten().map(|found| match found {
            Symbolized::Sym(symbol) => Some(symbol.name.into_owned()),
            Symbolized::Unknown(_) => None,
        });
        names
            .map(|name| name.filter(|name| !name.is_empty()))
            .collect()
    }))
    .ok()
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::atomic::{AtomicBool, Ordering},
        thread,
        time::{Duration, Instant},
    };

    use super::*;

    /// Something with many symbols: this test's own program.
    fn program() -> Vec<u8> {
        fs::read("/proc/self/exe").unwrap()
    }

    fn addresses(bytes: u64) -> Vec<u64> {
        (0..4000).map(|index| index * (bytes / 4000)).collect()
    }

    #[test]
    fn names_are_those_of_the_file_itself() {
        let libraries = fs::read_to_string("/proc/self/maps").unwrap();
        let mut paths: Vec<&str> = libraries
            .lines()
            .filter(|line| line.contains(" r-xp "))
            .filter_map(|line| line.split_whitespace().nth(5))
            // What other tests of this process have mapped right now is not meant.
            .filter(|path| path.starts_with('/') && !path.starts_with("/memfd:"))
            .filter(|path| !std::path::Path::new(path).starts_with(std::env::temp_dir()))
            .collect();
        paths.dedup();
        let (mut named, mut nameless) = (0, 0);
        let mut symbols = Symbols::default();
        for path in paths {
            let file = CodeFile::new(File::open(path).unwrap()).unwrap();
            let wanted = addresses(file.file().metadata().unwrap().len());
            let expected = name(&Symbolizer::new(), file.file(), &wanted).unwrap();
            for piece in wanted.chunks(1000).zip(expected.chunks(1000)) {
                assert_eq!(symbols.look_up(&file, piece.0), piece.1, "{path}");
            }
            named += expected.iter().flatten().count();
            nameless += expected.iter().filter(|name| name.is_none()).count();
            symbols.forget();
            assert_eq!(symbols.look_up(&file, &wanted), expected, "{path} again");
        }
        assert!(named > 1000 && nameless > 0, "{named} {nameless}");
    }

    #[test]
    fn a_copy_is_small_and_keeps_its_length() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 40).unwrap();
        assert!(tables::copy(&file).is_ok_and(|tables| tables.bytes == 64));
        let whole = File::open("/proc/self/exe").unwrap();
        let tables = tables::copy(&whole).unwrap();
        let length = whole.metadata().unwrap().len();
        assert_eq!(tables.file.metadata().unwrap().len(), length);
        assert!(tables.bytes > 0 && tables.bytes < length / 2, "{tables:?}");
    }

    /// Files that are cut, or written over, while we read their symbols: before each look, and at
    /// any moment of it. With a mapping of the file itself this ends the process with SIGBUS.
    #[test]
    fn files_that_change_meanwhile_have_no_names() {
        let whole = program();
        let wanted = addresses(whole.len() as u64);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("library.so");
        let open = || {
            fs::write(&path, &whole).unwrap();
            CodeFile::new(File::open(&path).unwrap()).unwrap()
        };
        let file = open();
        let began = Instant::now();
        let names = Symbols::default().look_up(&file, &wanted);
        let one_look = began.elapsed();
        assert!(names.iter().flatten().count() > 100);

        let mut symbols = Symbols::default();
        assert_eq!(symbols.look_up(&file, &wanted), names);
        let writer = File::options().write(true).open(&path).unwrap();
        writer.set_len(8192).unwrap();
        assert_eq!(symbols.look_up(&file, &wanted), []);

        let rounds = std::env::var("VRAMSCOPE_REPEAT").map_or(12, |times| times.parse().unwrap());
        let (mut all, mut none) = (0, 0);
        for round in 0..rounds {
            let file = open();
            let writer = File::options().write(true).open(&path).unwrap();
            let asked = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !asked.load(Ordering::Acquire) {
                        std::hint::spin_loop();
                    }
                    // Often at the beginning, when the tables are read.
                    let wait = one_look * round * round / (rounds * rounds);
                    thread::sleep(wait.min(Duration::from_secs(5)));
                    writer.set_len(u64::from(round) * 4096).unwrap();
                });
                asked.store(true, Ordering::Release);
                let got = Symbols::default().look_up(&file, &wanted);
                match got.is_empty() {
                    true => none += 1,
                    false => {
                        assert_eq!(got, names);
                        all += 1;
                    }
                }
            });
        }
        println!("of {rounds} files {all} had all names, {none} none");
    }
}
