//! Compiles the BPF programs twice: sleepable, and not, for kernels before 6.0.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const WIRE: &str = "../tracer/wire";

fn main() {
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    println!("cargo:rerun-if-changed=c");
    println!("cargo:rerun-if-changed={WIRE}/wire.h");
    // A directory's own stamp does not change when a file in it is edited.
    for entry in fs::read_dir("c").expect("the sources lie in c/") {
        println!(
            "cargo:rerun-if-changed={}",
            entry.expect("a readable entry").path().display()
        );
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    compile(&out.join("vramscope.bpf.o"), &[]);
    compile(&out.join("vramscope.sleepable.bpf.o"), &["-DVS_SLEEPABLE"]);
}

fn compile(object: &Path, extra: &[&str]) {
    let clang = env::var("BPF_CLANG").unwrap_or_else(|_| "clang".into());
    let status = Command::new(&clang)
        .args(["-g", "-O2", "-target", "bpf", "-mcpu=v3"])
        .args(["-D__TARGET_ARCH_x86", "-Wall", "-Werror"])
        .args(["-Ic", "-I", WIRE])
        .args(extra)
        .args(["-c", "c/vramscope.bpf.c", "-o"])
        .arg(object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!(
            "{clang} ended with {status}; it needs the headers of libbpf: \
             `apt-get install libbpf-dev`, or `make setup`"
        ),
        Err(error) => panic!(
            "{clang}: {error}; install it with `apt-get install clang`, run `make setup`, or \
             name another one in BPF_CLANG"
        ),
    }
}
