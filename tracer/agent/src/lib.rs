//! Searches a Python process from the inside for what keeps blocks of GPU memory alive.
//!
//! Built as a shared object and loaded into a running process, where [`vramscope_agent_start`]
//! begins a thread and gives a descriptor to talk to it: lines of JSON, [`report::Request`] one way
//! and [`report::Reply`] the other. The thread ends when the other end of the connection is closed,
//! by intent or by death.
//!
//! What the process can rely on: the thread takes the GIL as any other does, for a slice at a time,
//! with rests between; it prints nothing, imports nothing, keeps no reference between two slices,
//! runs none of the program's code and causes no collection. Memory of C++ objects is read in a way
//! that cannot fault.
#![deny(unsafe_code)]

mod bounds;
mod garbage;
mod graph;
mod grouping;
mod labels;
mod pace;
mod paths;
mod peek;
mod python;
pub mod report;
mod roots;
mod rtti;
mod search;
mod serve;
mod start;
mod tensors;
mod turn;
mod walk;

pub use start::vramscope_agent_start;
