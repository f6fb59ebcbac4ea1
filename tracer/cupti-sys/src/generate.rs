// From headers to bindings. Included by the build script and by the test that compares, so no
// `//!` comment can stand here.

use std::path::Path;

use bindgen::callbacks::{EnumVariantCustomBehavior, EnumVariantValue, ParseCallbacks};

use crate::wanted::{
    DRIVER_CALLS, DRIVER_ID, ENUMS, FUNCTIONS, IDS_ONLY, RUNTIME_CALLS, RUNTIME_ID, STRUCTS,
};

/// Keeps the enumerators that are wanted. Those of other enumerations are kept out by the
/// allow-list, except where a wanted struct has such a field: then it needs no names.
#[derive(Debug)]
struct Wanted;

impl ParseCallbacks for Wanted {
    fn enum_variant_behavior(
        &self,
        _enumeration: Option<&str>,
        name: &str,
        _value: EnumVariantValue,
    ) -> Option<EnumVariantCustomBehavior> {
        let call = name
            .strip_prefix(DRIVER_ID)
            .or_else(|| name.strip_prefix(RUNTIME_ID));
        let wanted = call.is_some_and(|call| {
            [DRIVER_CALLS, RUNTIME_CALLS, IDS_ONLY]
                .iter()
                .any(|calls| calls.contains(&call))
        }) || ENUMS.iter().any(|(_, values)| values.contains(&name));
        (!wanted).then_some(EnumVariantCustomBehavior::Hide)
    }
}

/// The bindings, from headers below `include` (the first that has a name wins). `stand_ins` holds
/// `wanted.h` and what it needs that no wheel carries. `pretty` needs rustfmt.
pub fn bindings(
    include: &[&Path],
    stand_ins: &Path,
    pretty: bool,
) -> Result<String, bindgen::BindgenError> {
    let mut builder = bindgen::Builder::default()
        .header(stand_ins.join("wanted.h").to_string_lossy())
        .parse_callbacks(Box::new(Wanted))
        .generate_comments(false)
        .layout_tests(true)
        .derive_default(false)
        .derive_copy(true)
        .prepend_enum_name(false)
        .allowlist_recursively(true)
        .dynamic_library_name("Functions")
        .dynamic_link_require_all(false)
        // The version of libclang decides how size_t is spelled otherwise.
        .size_t_is_usize(true)
        .rust_target(bindgen::RustTarget::stable(85, 0).expect("a version that bindgen knows"))
        .rust_edition(bindgen::RustEdition::Edition2024)
        .formatter(if pretty {
            bindgen::Formatter::Rustfmt
        } else {
            bindgen::Formatter::None
        })
        .disable_header_comment()
        // Bindgen takes these along for no reason that it tells.
        .blocklist_type("CUstreamBatchMemOpParams.*")
        // Arguments that nobody looks into.
        .opaque_type("cudaMemPoolProps")
        .opaque_type("cudaGraphEdgeData_st")
        .opaque_type("CUgraphEdgeData_st");
    for folder in include.iter().chain([&stand_ins]) {
        builder = builder.clang_arg(format!("-I{}", folder.display()));
    }
    for function in FUNCTIONS {
        builder = builder.allowlist_function(function);
    }
    for name in STRUCTS {
        builder = builder.allowlist_type(name);
    }
    for call in DRIVER_CALLS.iter().chain(RUNTIME_CALLS) {
        builder = builder.allowlist_type(format!("{call}_params"));
    }
    for (name, _) in ENUMS {
        builder = builder.allowlist_type(name);
    }
    for name in [
        "CUpti_driver_api_trace_cbid",
        "CUpti_runtime_api_trace_cbid",
    ] {
        builder = builder.allowlist_type(name);
    }
    builder.generate().map(|bindings| bindings.to_string())
}

/// What `cupti_version.h` below a folder says, as `CUPTI_API_VERSION`.
pub fn version_of(include: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(include.join("cupti_version.h")).ok()?;
    let definition = text
        .lines()
        .find_map(|line| line.strip_prefix("#define CUPTI_API_VERSION "))?;
    definition.trim().parse().ok()
}
