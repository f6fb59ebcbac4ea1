//! What runs in the middle of a program's allocation: everything that the built library can reach
//! from its recorders. It must lead to no lock, no allocation, no panic and nothing of Python's.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget,
    SymbolKind,
};

/// Where programs come in. The last one is CUPTI's callback.
const ENTRIES: [&str; 5] = [
    "vramscope_on_memory",
    "vramscope_on_oom",
    "vramscope_on_code_freed",
    "vramscope_on_step",
    "on_driver",
];
/// Functions of other libraries that may be called: they wait for nothing and keep nothing.
const ALLOWED: [&str; 9] = [
    "clock_gettime",
    "pthread_getspecific",
    "getpid",
    "syscall",
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "bcmp",
];
/// Where an unwinding would end that came to a recorder: not a call of its own, and nothing that a
/// recorder calls unwinds.
const GUARD: &str = "core::panicking::panic_cannot_unwind";
/// Is not followed: a new address's unwind rule is read by a parser of foreign bytes, once an
/// address, and whatever panics in it ends there (see `native/learn.rs`).
const COLD: [&str; 1] = ["native::learn::learn"];

struct Library {
    code: BTreeMap<u64, Function>,
    /// Names behind pointers that the dynamic linker fills, and addresses behind the others.
    pointers: HashMap<u64, Pointer>,
    bytes: Vec<(u64, Vec<u8>)>,
}

enum Pointer {
    Import(String),
    Here(u64),
}

struct Function {
    name: String,
    size: u64,
}

impl Library {
    fn read() -> Library {
        let test = std::env::current_exe().unwrap();
        let path = test.with_file_name("libvramscope_injection.so");
        let data = std::fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let file = object::File::parse(&*data).unwrap();
        let mut code = BTreeMap::new();
        for symbol in file.symbols() {
            if symbol.kind() == SymbolKind::Text && symbol.address() != 0 {
                let name = symbol.name().unwrap_or("?");
                let name = format!("{:#}", rustc_demangle::demangle(name));
                let size = symbol.size();
                code.entry(symbol.address())
                    .or_insert(Function { name, size });
            }
        }
        assert!(code.len() > 100, "the library has a symbol table");
        let mut pointers = HashMap::new();
        for (at, relocation) in file.dynamic_relocations().unwrap() {
            let pointer = match (relocation.target(), relocation.flags()) {
                (RelocationTarget::Symbol(index), _) => {
                    let table = file.dynamic_symbol_table().unwrap();
                    let symbol = object::ObjectSymbolTable::symbol_by_index(&table, index).unwrap();
                    Pointer::Import(symbol.name().unwrap().to_owned())
                }
                (_, RelocationFlags::Elf { .. }) => Pointer::Here(relocation.addend() as u64),
                _ => continue,
            };
            pointers.insert(at, pointer);
        }
        let text = file
            .sections()
            .filter(|section| section.kind() == object::SectionKind::Text);
        let bytes = text
            .map(|section| (section.address(), section.data().unwrap().to_vec()))
            .collect();
        Library {
            code,
            pointers,
            bytes,
        }
    }

    fn function(&self, address: u64) -> Option<(u64, &Function)> {
        let (start, function) = self.code.range(..=address).next_back()?;
        (address < start + function.size.max(1)).then_some((*start, function))
    }

    fn instructions(&self, start: u64, size: u64) -> Vec<Instruction> {
        let (base, bytes) = self
            .bytes
            .iter()
            .find(|(base, bytes)| (*base..base + bytes.len() as u64).contains(&start))
            .expect("code lies in a section");
        let offset = (start - base) as usize;
        let code = &bytes[offset..offset + size as usize];
        Decoder::with_ip(64, code, start, DecoderOptions::NONE)
            .into_iter()
            .collect()
    }

    /// Where an instruction may lead, outside of its own function.
    fn targets(&self, instruction: &Instruction) -> Vec<Target> {
        let leads = matches!(
            instruction.flow_control(),
            FlowControl::Call
                | FlowControl::IndirectCall
                | FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::ConditionalBranch
        );
        if !leads {
            // A pointer that is loaded may be called through a register.
            let loaded = instruction
                .is_ip_rel_memory_operand()
                .then(|| self.pointers.get(&instruction.ip_rel_memory_address()));
            return match loaded.flatten() {
                Some(Pointer::Import(name)) => vec![Target::Import(name.clone())],
                _ => Vec::new(),
            };
        }
        if matches!(instruction.op0_kind(), OpKind::NearBranch64) {
            return vec![Target::Here(instruction.near_branch_target())];
        }
        if instruction.is_ip_rel_memory_operand() {
            let at = instruction.ip_rel_memory_address();
            return match self.pointers.get(&at) {
                Some(Pointer::Import(name)) => vec![Target::Import(name.clone())],
                Some(Pointer::Here(address)) => vec![Target::Here(*address)],
                // A variable: the original of a hook, the program's own.
                None => vec![Target::Variable],
            };
        }
        vec![Target::Unknown]
    }
}

enum Target {
    Here(u64),
    Import(String),
    Variable,
    Unknown,
}

#[test]
fn recorders_lead_to_nothing_that_could_hurt() {
    let library = Library::read();
    let mut waiting: Vec<u64> = ENTRIES
        .iter()
        .map(|entry| {
            let found = library.code.iter().find(|(_, function)| {
                function.name == *entry || function.name.ends_with(&format!("::{entry}"))
            });
            *found.unwrap_or_else(|| panic!("no function {entry}")).0
        })
        .collect();
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut indirect = 0;
    while let Some(start) = waiting.pop() {
        if !seen.insert(start) {
            continue;
        }
        let function = &library.code[&start];
        for instruction in library.instructions(start, function.size) {
            for target in library.targets(&instruction) {
                match target {
                    Target::Here(address) => match library.function(address) {
                        Some((target, _)) if target == start => {}
                        Some((_, into)) if into.name == GUARD => {}
                        Some((_, into)) if COLD.iter().any(|cold| into.name.ends_with(cold)) => {}
                        Some((target, into)) if is_harmful(&into.name) => {
                            wrong.push(format!("{} -> {}", function.name, into.name));
                            seen.insert(target);
                        }
                        Some((target, _)) => waiting.push(target),
                        None => wrong.push(format!("{} -> {address:#x}", function.name)),
                    },
                    Target::Import(name) => {
                        let name = name.split('@').next().unwrap_or_default();
                        if !ALLOWED.contains(&name) {
                            wrong.push(format!("{} -> {name}", function.name));
                        }
                    }
                    Target::Variable => {}
                    // Through a register: `Py_IsFinalizing`, which the session holds, or a pointer
                    // that was loaded before.
                    Target::Unknown => indirect += 1,
                }
            }
        }
    }
    let names: Vec<_> = seen
        .iter()
        .map(|at| library.code[at].name.as_str())
        .collect();
    println!(
        "{} functions: {names:#?}, {indirect} calls through registers",
        names.len()
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(names.len() > ENTRIES.len(), "calls were followed");
    assert!(indirect <= 24, "{indirect} calls through registers");
}

fn is_harmful(name: &str) -> bool {
    [
        "panic",
        "unwrap_failed",
        "alloc",
        "Mutex",
        "mutex",
        "futex",
        "fmt",
        "Py",
        "expect",
    ]
    .iter()
    .any(|part| name.contains(part))
}
