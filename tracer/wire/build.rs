//! Turns `wire.h` into Rust: one definition for both sides of a ring.

use std::{env, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=wire.h");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    bindgen::Builder::default()
        .header("wire.h")
        .allowlist_item("(vs|VS)_.*")
        .default_macro_constant_type(bindgen::MacroTypeVariation::Unsigned)
        .derive_default(false)
        .layout_tests(true)
        .generate_comments(false)
        .generate()
        .expect(
            "bindgen could not read wire.h; it needs libclang: install it with \
             `apt-get install libclang-dev`, or run `make setup`",
        )
        .write_to_file(out.join("wire.rs"))
        .expect("OUT_DIR is writable");
}
