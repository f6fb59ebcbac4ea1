//! Every byte explained: the shares of a device's memory against three truths: what NVML says of the
//! process, what PyTorch says of its own memory, and the simulated driver's ledger, which knows who
//! asked for what by a stack walk of its own.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use vramscope_test_support::{
    Program, Setup, TORCHES, Tool, has_its_turn, missing, root, simulated_nvml, skip,
};

const MIB: u64 = 1 << 20;
/// What a context takes on the simulated device in these tests; no other figure is like it.
const CONTEXT: u64 = 301 * MIB;

/// A program to be looked at.
struct Case {
    name: &'static str,
    script: &'static str,
    setup: Setup,
    /// What has to be there beyond what every program is asked: bucket and bytes, on device 0.
    expected: &'static [(&'static str, u64)],
}

fn cases(torch: &str) -> Vec<Case> {
    let setup = || {
        Setup::new(torch)
            .env("STEPS", "20")
            .env("SLEEP", "0.001")
            .env("SIMCUDA_CONTEXT_MEM", &CONTEXT.to_string())
    };
    let options = "PYTORCH_CUDA_ALLOC_CONF";
    let workspace = |setup: Setup| setup.env("SIMCUDA_CUBLAS_MEM", &(32 * MIB).to_string());
    let case = |name, script, setup, expected| Case {
        name,
        script,
        setup,
        expected,
    };
    vec![
        case("mlp", "train/mlp.py", setup(), &[]),
        case(
            "transformer",
            "train/transformer.py",
            workspace(setup()),
            &[],
        ),
        case(
            "expandable segments",
            "special/expandable.py",
            setup().env(options, "expandable_segments:True"),
            &[],
        ),
        case(
            "cudaMallocAsync",
            "special/malloc_async.py",
            setup().env(options, "backend:cudaMallocAsync"),
            &[],
        ),
        case("CUDA graphs", "special/graphs.py", workspace(setup()), &[]),
        case(
            "cuBLAS workspaces",
            "shares/workspaces.py",
            workspace(setup()),
            &[("cuBLAS", 64 * MIB)],
        ),
        case(
            "NCCL buffers",
            "shares/collective.py",
            setup().env("SIMCUDA_NCCL_MEM", &(48 * MIB).to_string()),
            &[("NCCL", 48 * MIB)],
        ),
        case(
            "two devices",
            "special/two_devices.py",
            workspace(setup().device("--devices", "2")),
            &[("cuBLAS", 64 * MIB)],
        ),
        case(
            "fragmentation",
            "shares/fragmented.py",
            setup(),
            &[("fragmented", 44 * MIB)],
        ),
        case(
            "a pool in Python",
            "shares/pool.py",
            setup(),
            &[("Python code, pool.py", 14 * MIB + 1024)],
        ),
        case(
            "plain C++",
            "shares/plain.cpp",
            setup().device("--devices", "2"),
            &[("pools", 32 * MIB)],
        ),
    ]
}

/// One backend's word and the truth of the same run.
struct Seen {
    report: Value,
    ledger: Value,
    /// PyTorch's own figures; null where there is no PyTorch.
    torch: Value,
}

fn compile(source: &Path, directory: &Path, libraries: &Path) -> PathBuf {
    let program = directory.join(source.file_stem().unwrap());
    let status = Command::new("c++")
        .args(["-O1", "-g", "-std=c++17", "-o"])
        .arg(&program)
        .arg(source)
        .arg(libraries.join("libcuda.so.1"))
        .status()
        .expect("a C++ compiler");
    assert!(status.success(), "{}", source.display());
    program
}

fn look(case: &Case, backend: &[&str], nvml: &Path) -> Seen {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (truth, ledger) = (file("truth.json"), file("ledger.json"));
    let script = root().join("tests/programs").join(case.script);
    let script_path = script.to_str().unwrap();
    let setup = case.setup.clone().env("SIMCUDA_CALLERS", "1");
    let setup = setup.env("QUIET_LEDGER", &ledger);
    let mut program = match case.script {
        "shares/pool.py" => Program::start(&setup, &script, &[&ledger]),
        "shares/plain.cpp" => {
            let built = compile(&script, directory.path(), nvml.parent().unwrap());
            let exec = root().join("tests/programs/shares/exec.py");
            Program::start(&setup, &exec, &[built.to_str().unwrap(), &ledger])
        }
        _ => {
            let quiet = root().join("tests/programs/quiet.py");
            Program::start(&setup, &quiet, &[&truth, "--from-start", script_path])
        }
    };
    program.expect("ready");
    let mut tool = Tool::new(env!("CARGO_BIN_EXE_vramscope"));
    tool = tool.env("VRAMSCOPE_NVML", nvml.to_str().unwrap());
    if setup.device.contains(&"--devices".into()) {
        tool = tool.env("SIMCUDA_DEVICES", "2");
    }
    let attached = tool.attach(program.pid(), backend);
    program.say("go");
    program.expect("quiet");
    let run = attached.interrupt();
    assert!(run.status.success(), "{}: {run:?}", case.name);
    program.say("end");
    assert!(program.finish().success(), "{} failed", case.name);
    let read = |path: &str| -> Value {
        std::fs::read(path).map_or(Value::Null, |bytes| {
            serde_json::from_slice(&bytes).expect("JSON")
        })
    };
    Seen {
        report: run.json(),
        ledger: read(&ledger),
        torch: read(&truth),
    }
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The name that a person is told, by the file that the simulated driver saw.
fn known_as(caller: &str) -> String {
    let names = [
        ("libcublas", "cuBLAS"),
        ("libnccl", "NCCL"),
        ("libc10_cuda", "PyTorch's allocator"),
        ("libffi", "Python code, pool.py"),
        ("plain", "program plain"),
    ];
    let known = names.iter().find(|(file, _)| caller.starts_with(file));
    known.map_or_else(|| format!("? {caller}"), |(_, name)| (*name).to_owned())
}

/// What an allocation is, in every run of a program.
fn what(row: &Value) -> (u64, String, u64) {
    let kind = row["kind"].as_str().unwrap().to_owned();
    (number(&row["device"]), kind, number(&row["asked"]))
}

fn callers_of(ledger: &Value) -> BTreeMap<(u64, String, u64), Vec<String>> {
    let mut out: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for row in list(&ledger["live"]) {
        let caller = row["caller"].as_str().unwrap().to_owned();
        out.entry(what(row)).or_default().push(caller);
    }
    out
}

/// What the report has to say of one device, by bucket; the name is the kind, of a library its name.
fn expected(seen: &Seen, callers: &Value, device: usize) -> BTreeMap<String, u64> {
    let mut out: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |name: &str, bytes: u64| {
        if bytes > 0 {
            *out.entry(name.to_owned()).or_default() += bytes;
        }
    };
    let own = |row: &&Value| number(&row["device"]) == device as u64;
    let torch = &seen.torch[device.to_string()];
    let segments = list(&torch["segments"]);
    // The same run without return probes: a stack walk inside the process does not get past them.
    let mut named = callers_of(callers);
    let mut rounding = 0;
    for row in list(&seen.ledger["live"]).iter().filter(own) {
        let caller = named.get_mut(&what(row)).and_then(Vec::pop);
        let caller = caller.expect("the same program does the same");
        let (asked, charged) = (number(&row["asked"]), number(&row["charged"]));
        if row["kind"] == "host" {
            continue;
        }
        if row["kind"] != "pooled" {
            rounding += charged - asked;
        }
        let name = known_as(&caller);
        if segments.is_empty() || name != "PyTorch's allocator" {
            add(&name, asked);
        }
    }
    if !segments.is_empty() {
        let free = |private: bool| -> u64 {
            let segments = segments.iter().filter(|one| one["private"] == private);
            let blocks = segments.flat_map(|one| list(&one["blocks"]));
            let free = blocks.filter(|block| block[1] == "inactive");
            free.map(|block| number(&block[0])).sum()
        };
        add("live", number(&torch["allocated"]));
        add("reusable + fragmented", free(false));
        add("graph_pools", free(true));
        let reserved: u64 = segments.iter().map(|one| number(&one["size"])).sum();
        assert_eq!(reserved, number(&torch["reserved"]));
    }
    let pools = list(&seen.ledger["pools"]).iter().filter(own);
    let slack: u64 = pools
        .map(|pool| number(&pool["reserved"]) - number(&pool["used"]))
        .sum();
    let context = number(&seen.ledger["devices"][device]["context"]);
    add("rest + pools", context + rounding + slack);
    out
}

/// The report's buckets, under the same names.
fn told(device: &Value) -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    for bucket in list(&device["buckets"]) {
        let name = match bucket["kind"].as_str().unwrap() {
            "library" => bucket["name"].as_str().unwrap(),
            "reusable" | "fragmented" => "reusable + fragmented",
            "rest" | "pools" => "rest + pools",
            kind => kind,
        };
        *out.entry(name.to_owned()).or_default() += number(&bucket["bytes"]);
    }
    out
}

/// Bytes of a bucket, by kind or by a library's name.
fn bucket(device: &Value, name: &str) -> u64 {
    let found = list(&device["buckets"])
        .iter()
        .filter(|bucket| bucket["kind"] == name || bucket["name"] == name);
    found.map(|bucket| number(&bucket["bytes"])).sum()
}

/// What is wrong with what a backend said.
fn compare(case: &Case, seen: &Seen, callers: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let report = &seen.report;
    if report["lost"]["events"] != 0 {
        wrong.push(format!("lost {}", report["lost"]));
    }
    let devices = list(&seen.ledger["devices"]);
    assert!(!devices.is_empty());
    for (index, truth) in devices.iter().enumerate() {
        let used = number(&truth["used"]);
        let Some(device) = list(&report["devices"])
            .iter()
            .find(|device| device["device"] == index)
        else {
            wrong.push(format!("device {index} is missing"));
            continue;
        };
        let sum: u64 = list(&device["buckets"])
            .iter()
            .map(|bucket| number(&bucket["bytes"]))
            .sum();
        if device["used"] != used || sum != used || device["excess"] != 0 {
            wrong.push(format!(
                "device {index}: used {used}, told {} with an excess of {} and shares of {sum}",
                device["used"], device["excess"]
            ));
        }
        let (told, expected) = (told(device), expected(seen, callers, index));
        if told != expected {
            wrong.push(format!(
                "device {index}: told {told:?}, expected {expected:?}"
            ));
        }
        if index == 0 {
            for (name, bytes) in case.expected {
                let told = bucket(device, name);
                if told != *bytes {
                    wrong.push(format!("{name}: {told} told, {bytes} expected"));
                }
            }
        }
    }
    let host = list(&seen.ledger["live"])
        .iter()
        .filter(|row| row["kind"] == "host")
        .map(|row| number(&row["asked"]));
    let (host, told) = (host.sum::<u64>(), number(&report["process"]["host_bytes"]));
    if host != told {
        wrong.push(format!("{host} B of host memory, {told} told"));
    }
    wrong
}

#[test]
fn every_byte_of_eleven_programs_is_explained() {
    let tool = Tool::new(env!("CARGO_BIN_EXE_vramscope"));
    if let Some(reason) = missing(&tool) {
        skip("every_byte", &reason);
        return;
    }
    let only = std::env::var("VRAMSCOPE_TEST_SCRIPTS").unwrap_or_default();
    let mut failures = Vec::new();
    for (number, case) in cases(TORCHES[0]).iter().enumerate() {
        if !case.script.contains(&only) || (only.is_empty() && !has_its_turn(number)) {
            continue;
        }
        let nvml = simulated_nvml(&case.setup.torch);
        let injected = look(case, &["--inject"], &nvml);
        let probed = look(case, &[], &nvml);
        for (backend, seen) in [("injection", &injected), ("eBPF", &probed)] {
            // Probes do not know yet which device a call of the driver is about.
            if backend == "eBPF" && case.setup.device.contains(&"--devices".into()) {
                continue;
            }
            let wrong = compare(case, seen, &injected.ledger);
            failures.extend(
                wrong
                    .iter()
                    .map(|what| format!("{}, {backend}: {what}", case.name)),
            );
        }
        println!("{}: done", case.name);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
