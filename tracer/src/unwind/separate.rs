//! Files with the symbols that were stripped off other files.
//!
//! Debug packages put them by the build id, which both have, or beside a file of the name that the
//! stripped one tells (`.gnu_debuglink`), whose checksum it tells as well: gdb's manual, "Debugging
//! Information in Separate Files".

use std::{
    collections::HashMap,
    fs::File,
    io::Read as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    object::{CodeFile, Identity},
    tables,
};

/// Where packages put them.
const DEBUG: &str = "usr/lib/debug";
/// The longest name of a file.
const MAX_NAME: u64 = 256;
/// The largest file whose checksum is worth its time: a second or two.
const MAX_BYTES: u64 = 4 << 30;

/// What was found, by the stripped file: finding may take a checksum of gigabytes.
#[derive(Default)]
pub struct Separate {
    found: HashMap<Identity, Option<Arc<CodeFile>>>,
}

impl Separate {
    /// The file with what was stripped off `object`, which lies at `path`, under one of `roots` (the
    /// process's own, then ours).
    pub fn of(
        &mut self,
        object: &CodeFile,
        path: &Path,
        roots: &[PathBuf],
    ) -> Option<Arc<CodeFile>> {
        let identity = object.identity()?;
        let find = || find(object, path, roots).map(Arc::new);
        self.found.entry(identity).or_insert_with(find).clone()
    }

    /// Closes them; they are looked for again.
    pub fn forget(&mut self) {
        self.found.clear();
    }
}

fn find(object: &CodeFile, path: &Path, roots: &[PathBuf]) -> Option<CodeFile> {
    by_build_id(object, roots).or_else(|| by_name(object, path, roots))
}

fn by_build_id(object: &CodeFile, roots: &[PathBuf]) -> Option<CodeFile> {
    let (first, rest) = object.build_id().split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = format!("{DEBUG}/.build-id/{first:02x}/{rest}.debug");
    roots.iter().find_map(|root| {
        open(&root.join(&path)).filter(|file| file.build_id() == object.build_id())
    })
}

fn by_name(object: &CodeFile, path: &Path, roots: &[PathBuf]) -> Option<CodeFile> {
    let (name, checksum) = link(object.file())?;
    let folder = path.parent()?.strip_prefix("/").ok()?;
    let folders = [
        folder.to_owned(),
        folder.join(".debug"),
        Path::new(DEBUG).join(folder),
    ];
    let places = roots
        .iter()
        .flat_map(|root| folders.iter().map(|folder| root.join(folder).join(&name)));
    places
        .filter_map(|place| open(&place))
        .filter(|file| file.identity() != object.identity())
        .find(|file| {
            // Where both have an id it is the better witness, and costs nothing.
            match (file.build_id(), object.build_id()) {
                ([], _) | (_, []) => checksum_of(file.file()) == Some(checksum),
                (one, other) => one == other,
            }
        })
}

/// Opens a regular file: in its place may lie whatever waits for a writer.
fn open(path: &Path) -> Option<CodeFile> {
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).ok()?;
    let is_file = file.metadata().is_ok_and(|data| data.is_file());
    CodeFile::new(is_file.then_some(file)?)
}

/// The name and the checksum (CRC-32) of the file that a stripped one tells of: the name with its
/// zero, filled up to four bytes, then the checksum.
fn link(file: &File) -> Option<(String, u32)> {
    let data = tables::section(file, ".gnu_debuglink", MAX_NAME + 8)?;
    let end = data.iter().position(|byte| *byte == 0)?;
    let name = std::str::from_utf8(&data[..end]).ok()?;
    // It is the name of a file, and no way to another folder.
    if name.is_empty() || name == "." || name == ".." || name.contains('/') {
        return None;
    }
    let checksum = data.get((end + 1).next_multiple_of(4)..)?.first_chunk()?;
    Some((name.to_owned(), u32::from_le_bytes(*checksum)))
}

fn checksum_of(file: &File) -> Option<u32> {
    if file.metadata().ok()?.len() > MAX_BYTES {
        return None;
    }
    let mut from_start = file;
    std::io::Seek::rewind(&mut from_start).ok()?;
    let mut from_start = from_start.take(MAX_BYTES);
    let mut hasher = crc32fast::Hasher::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        match from_start.read(&mut piece).ok()? {
            0 => return Some(hasher.finalize()),
            got => hasher.update(&piece[..got]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;
    use crate::unwind::symbols::Symbols;

    /// A stripped library under a root of its own, and the file with what was stripped off.
    struct Made {
        root: tempfile::TempDir,
        debug: PathBuf,
    }

    const LIBRARY: &str = "/opt/lib/libmade.so";

    fn run(program: &str, arguments: &[&str]) {
        let status = Command::new(program).args(arguments).status();
        assert!(status.unwrap().success(), "{program} {arguments:?}");
    }

    impl Made {
        fn new(build_id: &str) -> Made {
            let root = tempfile::tempdir().unwrap();
            let at = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
            fs::create_dir_all(at("opt/lib")).unwrap();
            let (source, library, debug) = (at("made.c"), at("opt/lib/libmade.so"), at("x.debug"));
            let text = "static __attribute__((noinline)) int hidden(int a) { return a * 3; }\n\
                        int shown(int a) { return hidden(a) + 1; }\n";
            fs::write(&source, text).unwrap();
            let id = format!("-Wl,--build-id={build_id}");
            run(
                "cc",
                &["-shared", "-fPIC", "-O1", &id, "-o", &library, &source],
            );
            run("objcopy", &["--only-keep-debug", &library, &debug]);
            run("strip", &["--strip-unneeded", &library]);
            let link = format!("--add-gnu-debuglink={debug}");
            run("objcopy", &[&link, &library]);
            let debug = root.path().join("x.debug");
            Made { root, debug }
        }

        fn object(&self) -> CodeFile {
            open(&self.root.path().join(&LIBRARY[1..])).unwrap()
        }

        fn find(&self) -> Option<Arc<CodeFile>> {
            let roots = [
                self.root.path().join("no-root"),
                self.root.path().to_owned(),
            ];
            Separate::default().of(&self.object(), Path::new(LIBRARY), &roots)
        }

        /// Moves the file with the symbols to where it is looked for.
        fn put(&self, place: &str) -> PathBuf {
            let place = self.root.path().join(place);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::copy(&self.debug, &place).unwrap();
            place
        }
    }

    /// The names in a file, of all places in it.
    fn names(file: &CodeFile) -> Vec<String> {
        let wanted: Vec<u64> = (0..0x4000).collect();
        let found = Symbols::default().look_up(file, &wanted);
        let mut names: Vec<String> = found.into_iter().flatten().collect();
        names.sort();
        names.dedup();
        names
    }

    #[test]
    fn a_file_beside_is_found_by_its_name_and_its_checksum() {
        let made = Made::new("none");
        assert!(!names(&made.object()).contains(&"hidden".to_owned()));
        assert!(made.find().is_none(), "it lies nowhere");
        for place in [
            "opt/lib/x.debug",
            "opt/lib/.debug/x.debug",
            "usr/lib/debug/opt/lib/x.debug",
        ] {
            let place = made.put(place);
            let found = made.find().expect("the file with the symbols");
            assert!(names(&found).contains(&"hidden".to_owned()), "{place:?}");
            // Of another build.
            let mut bytes = fs::read(&place).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(&place, bytes).unwrap();
            assert!(made.find().is_none(), "{place:?}");
            fs::remove_file(&place).unwrap();
        }
        // Nothing waits for somebody to write.
        nix::unistd::mkfifo(
            &made.root.path().join("opt/lib/x.debug"),
            nix::sys::stat::Mode::S_IRWXU,
        )
        .unwrap();
        assert!(made.find().is_none());
    }

    #[test]
    fn a_build_id_tells_it_wherever_it_lies() {
        let made = Made::new("0xc0ffee0123");
        let place = made.put("usr/lib/debug/.build-id/c0/ffee0123.debug");
        assert!(names(&made.find().unwrap()).contains(&"hidden".to_owned()));
        // The id of another build, at that place and beside the library.
        let other = Made::new("0xc0ffee0124");
        fs::copy(&other.debug, &place).unwrap();
        assert!(made.find().is_none());
        fs::copy(&other.debug, made.root.path().join("opt/lib/x.debug")).unwrap();
        assert!(made.find().is_none());
        made.put("opt/lib/x.debug");
        assert!(made.find().is_some());
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_not_followed() {
        let made = Made::new("none");
        made.put("opt/x.debug");
        let library = made.root.path().join(&LIBRARY[1..]);
        let section = made.root.path().join("section");
        let checksum = checksum_of(&File::open(&made.debug).unwrap()).unwrap();
        for (name, followed) in [("../x.debug", false), ("x.debug", true)] {
            let mut bytes = name.as_bytes().to_vec();
            bytes.push(0);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes.extend(checksum.to_le_bytes());
            fs::write(&section, bytes).unwrap();
            let change = format!(".gnu_debuglink={}", section.display());
            run(
                "objcopy",
                &["--update-section", &change, library.to_str().unwrap()],
            );
            assert_eq!(link(made.object().file()).is_some(), followed, "{name}");
            assert!(made.find().is_none());
        }
    }
    #[test]
    fn damage_does_no_harm() {
        let made = Made::new("none");
        made.put("opt/lib/x.debug");
        let path = made.root.path().join(&LIBRARY[1..]);
        let whole = fs::read(&path).unwrap();
        let told = link(made.object().file()).unwrap();
        let (mut same, mut none) = (0, 0);
        // The header, and the headers of sections behind all sections.
        let damaged = (0..64).chain(whole.len() - 1800..whole.len());
        for at in damaged {
            for value in [0, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                fs::write(&path, bytes).unwrap();
                match link(&File::open(&path).unwrap()) {
                    Some(found) if found == told => same += 1,
                    Some(_) => {}
                    None => none += 1,
                }
                if let Some(object) = open(&path) {
                    let _ = Separate::default().of(&object, Path::new(LIBRARY), &[]);
                }
            }
        }
        assert!(same > 0 && none > 0, "{same} {none}");
    }
}
