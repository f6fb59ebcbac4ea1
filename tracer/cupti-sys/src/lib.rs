//! CUPTI, NVIDIA's interface for tools that watch CUDA calls, as far as memory tracing needs it.
//!
//! Nothing is linked and no header is needed: the bindings are in the repository, and the library
//! is found when it is wanted ([`Cupti::load`]), preferably the copy that the process has already.
//! What a version lacks is an error of the call that needs it.
//!
//! The caller must keep to CUPTI's rules: one subscriber a process (see [`SubscribeError::Held`]),
//! no call of a blocking function from within a callback, and [`Cupti::finalize`] best at the end
//! of an API call.

mod cupti;
mod find;
mod version;

#[allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    missing_docs,
    dead_code,
    unsafe_op_in_unsafe_fn,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
pub mod raw {
    //! What bindgen made. Names and layouts are NVIDIA's.
    include!(concat!(env!("OUT_DIR"), "/cupti.rs"));
}

pub use cupti::{Cupti, Error, SubscribeError, Subscriber};
pub use find::LoadError;
pub use version::Version;
