//! What is asked and what is answered, as lines of JSON.

use serde::{Deserialize, Serialize};

/// One question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Where the surviving blocks begin, as the GPU numbers its memory.
    pub addresses: Vec<u64>,
    /// Their sizes in bytes, in the same order; may be shorter.
    pub sizes: Vec<u64>,
    /// The most time that the search may hold the GIL, in milliseconds, all slices together.
    pub budget_ms: u64,
    /// The longest time that it may hold the GIL at once, in milliseconds.
    pub slice_ms: u64,
    /// The most memory that the search may take, in bytes.
    pub memory: u64,
}

/// How a block is kept alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A tensor (or a storage) that Python objects hold.
    Tensor,
    /// The `.grad` of such a tensor.
    Gradient,
    /// Saved by the autograd graph behind such a tensor.
    Graph,
    /// A tensor that no root leads to: a cycle that waits for the garbage collector.
    Garbage,
    /// A tensor that no root and no Python object leads to: something outside of Python holds it.
    Extension,
    /// No Python tensor has it, and no graph that Python leads to.
    Native,
    /// The search ended before it was found.
    Unknown,
}

/// Blocks that are kept alive in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// How.
    pub kind: Kind,
    /// The way from a root that a person knows, positions in containers as `[*]` where there are
    /// several: `__main__.window.values[*]`. Empty where there is none.
    pub path: String,
    /// The same for one of the blocks.
    pub example: String,
    /// The nodes of the autograd graph from the tensor at the end of `path` to one that saved a
    /// block, the nearest first. Long ways are cut in the middle.
    pub graph: Vec<String>,
    /// How many nodes that way has in all.
    pub graph_length: u64,
    /// What else is known of the holder: a container's length, its bound, a view's size.
    pub notes: Vec<String>,
    /// Length of the container that holds the blocks, where one does.
    pub container_length: Option<u64>,
    /// Its bound, such as a deque's `maxlen`.
    pub container_bound: Option<u64>,
    /// Which of the asked addresses, by position.
    pub members: Vec<u32>,
}

/// What the search cost the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// How often the GIL was taken.
    pub slices: u64,
    /// Time with the GIL, in all, in microseconds.
    pub held_us: u64,
    /// The longest time with the GIL at once, in microseconds: what a thread of the process waits
    /// for at most.
    pub longest_us: u64,
    /// From the question to the answer, in microseconds.
    pub wall_us: u64,
    /// Objects that were looked into.
    pub objects: u64,
    /// Tensors that were found.
    pub tensors: u64,
    /// Nodes of autograd graphs that were looked into.
    pub graph_nodes: u64,
    /// The most memory that the search took, in bytes.
    pub memory: u64,
}

/// The answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// The holders, those of most blocks first.
    pub holders: Vec<Holder>,
    /// Why the answer is not complete; None when it is.
    pub partial: Option<String>,
    /// What the reader should know of the process: the collector is off, sub-interpreters.
    pub notes: Vec<String>,
    /// What it cost.
    pub cost: Cost,
}

/// A line from the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The agent is there: its thread, and the Python it found.
    Hello {
        /// Its thread's id, in the process's own pid namespace.
        thread: u32,
        /// `Py_GetVersion`'s first word.
        python: String,
        /// The thread's stack, which is given back by whoever asked once the thread has ended: its
        /// address and length.
        stack: (u64, u64),
    },
    /// It cannot work here, and why.
    Refused(String),
    /// The answer to a question.
    Answer(Box<Answer>),
}
