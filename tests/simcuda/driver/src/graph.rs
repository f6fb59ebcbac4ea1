//! Stream capture and graphs. A graph is a list of nodes; launching one runs its host
//! functions, everything else being work that the device would do.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use simcuda_common::code::{
    ILLEGAL_STATE, INVALID_VALUE, NOT_SUPPORTED, Outcome, STREAM_CAPTURE_UNMATCHED,
    STREAM_CAPTURE_UNSUPPORTED,
};
use simcuda_common::ffi::{In, Out};
use simcuda_common::log;

use crate::driver::{Counters, Driver, driver};
use crate::graph_memory::GraphMemory;
use crate::stream::Stream;
use crate::types::{CaptureId, EdgeData, Handle};

/// What a node does.
#[derive(Clone, Copy, Debug)]
pub enum NodeKind {
    Kernel,
    Memcpy,
    Memset,
    Host {
        function: unsafe extern "C" fn(*mut c_void),
        user: usize,
    },
    MemAlloc,
    MemFree,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    handle: Handle,
    kind: NodeKind,
    /// The node before, in the order of submission; 0 for the first.
    dependency: Handle,
}

/// A graph.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: Mutex<Vec<Node>>,
    user_objects: Mutex<Vec<Arc<UserObject>>>,
    memory: Mutex<Vec<Arc<GraphMemory>>>,
}

impl Graph {
    /// Adds a node that no capture made; its dependencies are not looked at.
    pub fn add(&self, kind: NodeKind) -> Handle {
        let handle = new_node_handle();
        self.nodes.lock().expect("no panics").push(Node {
            handle,
            kind,
            dependency: 0,
        });
        handle
    }

    /// Keeps the addresses of a node as long as the graph and what is made of it.
    pub fn keep(&self, memory: GraphMemory) {
        self.memory
            .lock()
            .expect("no panics")
            .push(Arc::new(memory));
    }
}

/// A graph made ready to launch: a copy of it.
#[derive(Debug)]
pub struct GraphExec {
    nodes: Vec<Node>,
    _user_objects: Vec<Arc<UserObject>>,
    _memory: Vec<Arc<GraphMemory>>,
}

/// Something of the program's that lives as long as the graphs that need it.
#[derive(Debug)]
pub struct UserObject {
    pointer: usize,
    destroy: unsafe extern "C" fn(*mut c_void),
}

impl Drop for UserObject {
    fn drop(&mut self) {
        // SAFETY: the program gave this function to be called once with this pointer.
        unsafe { (self.destroy)(self.pointer as *mut c_void) };
    }
}

/// A capture under way, shared by the streams that take part.
#[derive(Debug)]
pub struct Capture {
    id: CaptureId,
    graph: Arc<Graph>,
    graph_handle: Handle,
    origin: Handle,
    active: AtomicBool,
    /// Last node; its address is what `cuStreamGetCaptureInfo` calls the dependencies.
    last_node: AtomicUsize,
}

static ACTIVE_CAPTURES: AtomicUsize = AtomicUsize::new(0);

impl Capture {
    /// Whether anything captures at all: one load on the path of every launch.
    pub fn any_active() -> bool {
        ACTIVE_CAPTURES.load(Ordering::Relaxed) != 0
    }

    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    pub fn add(&self, kind: NodeKind) {
        let mut nodes = self.graph.nodes.lock().expect("no panics");
        let handle = new_node_handle();
        let dependency = self.last_node.swap(handle, Ordering::Relaxed);
        nodes.push(Node {
            handle,
            kind,
            dependency,
        });
    }
}

/// Node handles look like those of the registry, with a kind of their own.
fn new_node_handle() -> Handle {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    const KIND: usize = 0x1f;
    (KIND << 40) | (NEXT.fetch_add(1, Ordering::Relaxed) << 4)
}

fn begin(driver: &Driver, stream: Handle, graph_handle: Handle, graph: Arc<Graph>) -> Outcome {
    static NEXT_ID: AtomicU64 = AtomicU64::new(1);
    if stream < 2 {
        return Err(STREAM_CAPTURE_UNSUPPORTED);
    }
    let captured = driver.streams.get(stream)?;
    let mut slot = captured.capture.lock().expect("no panics");
    if slot.is_some() {
        return Err(ILLEGAL_STATE);
    }
    *slot = Some(Arc::new(Capture {
        id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        graph,
        graph_handle,
        origin: stream,
        active: AtomicBool::new(true),
        last_node: AtomicUsize::new(0),
    }));
    ACTIVE_CAPTURES.fetch_add(1, Ordering::Relaxed);
    log!("stream {stream:#x} begins to capture");
    Ok(())
}

fn end(driver: &Driver, stream: Handle) -> Result<Handle, c_int> {
    let captured = driver.streams.get(stream)?;
    let capture = captured
        .capture
        .lock()
        .expect("no panics")
        .clone()
        .ok_or(ILLEGAL_STATE)?;
    if capture.origin != stream {
        return Err(STREAM_CAPTURE_UNMATCHED);
    }
    let leave = |stream: &Stream| {
        let mut slot = stream.capture.lock().expect("no panics");
        if slot
            .as_ref()
            .is_some_and(|found| Arc::ptr_eq(found, &capture))
        {
            *slot = None;
        }
    };
    driver
        .streams
        .created
        .all()
        .iter()
        .for_each(|stream| leave(stream));
    leave(&driver.streams.per_thread);
    capture.active.store(false, Ordering::Relaxed);
    ACTIVE_CAPTURES.fetch_sub(1, Ordering::Relaxed);
    log!(
        "stream {stream:#x} captured {} nodes",
        capture.graph.nodes.lock().expect("no panics").len()
    );
    Ok(capture.graph_handle)
}

/// Stores what a stream captures; without a capture only the status is defined.
fn capture_info(
    stream: Handle,
    status: Out<c_int>,
    id: Out<CaptureId>,
    graph: Out<Handle>,
    dependencies: Out<*const Handle>,
    count: Out<usize>,
) -> Outcome {
    let stream = driver()?.streams.get(stream)?;
    let slot = stream.capture.lock().expect("no panics");
    let Some(capture) = slot.as_ref() else {
        return status.set(0);
    };
    status.set(1)?;
    id.set_if_wanted(capture.id);
    graph.set_if_wanted(capture.graph_handle);
    dependencies.set_if_wanted(capture.last_node.as_ptr().cast_const());
    count.set_if_wanted(usize::from(capture.last_node.load(Ordering::Relaxed) != 0));
    Ok(())
}

fn instantiate(exec: Out<Handle>, graph: Handle) -> Outcome {
    let driver = driver()?;
    let graph = driver.graphs.get(graph)?;
    exec.set(driver.graph_execs.insert(GraphExec {
        nodes: graph.nodes.lock().expect("no panics").clone(),
        _user_objects: graph.user_objects.lock().expect("no panics").clone(),
        _memory: graph.memory.lock().expect("no panics").clone(),
    }))
}

fn launch(exec: Handle, stream: Handle) -> Outcome {
    let driver = driver()?;
    let exec = driver.graph_execs.get(exec)?;
    driver.streams.get(stream)?;
    Counters::add(&driver.counters.launches);
    driver.known.work_was_done();
    for node in &exec.nodes {
        if let NodeKind::Host { function, user } = node.kind {
            // SAFETY: the program captured this call to be made at every launch.
            unsafe { function(user as *mut c_void) };
        }
    }
    Ok(())
}

/// Fills `list[..*count]`, or says with a null list how many there are.
fn store_list(items: &[Handle], list: Out<Handle>, count: Out<usize>) -> Outcome {
    if !list.is_null() {
        let room = count.get()?;
        for (index, item) in items.iter().take(room).enumerate() {
            Out::new(list.pointer().wrapping_add(index)).set(*item)?;
        }
    }
    count.set(items.len())
}

fn find_node(driver: &Driver, handle: Handle) -> Result<Node, c_int> {
    let graphs = driver.graphs.all();
    let mut nodes = graphs.iter().filter_map(|graph| {
        graph
            .nodes
            .lock()
            .expect("no panics")
            .iter()
            .find(|node| node.handle == handle)
            .copied()
    });
    nodes.next().ok_or(INVALID_VALUE)
}

crate::driver_api! {
    fn cuStreamBeginCapture, cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz(
        stream: Handle, _mode: c_int,
    ) {
        let driver = driver()?;
        let (handle, graph) = driver.graphs.insert_with(|_| Graph::default());
        begin(driver, stream, handle, graph).inspect_err(|_| drop(driver.graphs.remove(handle)))
    }

    fn cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz(
        stream: Handle, graph: Handle, _dependencies: *const Handle, _edges: *const EdgeData,
        _count: usize, _mode: c_int,
    ) {
        let driver = driver()?;
        begin(driver, stream, graph, driver.graphs.get(graph)?)
    }

    fn cuStreamEndCapture, cuStreamEndCapture_ptsz(stream: Handle, graph: Out<Handle>) {
        graph.set(end(driver()?, stream)?)
    }

    fn cuStreamIsCapturing, cuStreamIsCapturing_ptsz(stream: Handle, status: Out<c_int>) {
        let stream = driver()?.streams.get(stream)?;
        let capturing = stream.capture.lock().expect("no panics").is_some();
        status.set(c_int::from(capturing))
    }

    fn cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz(
        stream: Handle, status: Out<c_int>, id: Out<CaptureId>, graph: Out<Handle>,
        dependencies: Out<*const Handle>, count: Out<usize>,
    ) {
        capture_info(stream, status, id, graph, dependencies, count)
    }

    fn cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz(
        stream: Handle, status: Out<c_int>, id: Out<CaptureId>, graph: Out<Handle>,
        dependencies: Out<*const Handle>, edges: Out<*const EdgeData>, count: Out<usize>,
    ) {
        edges.set_if_wanted(std::ptr::null());
        capture_info(stream, status, id, graph, dependencies, count)
    }

    fn cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_ptsz(
        stream: Handle, _dependencies: *const Handle, _count: usize, _flags: c_uint,
    ) {
        driver()?.streams.get(stream).map(|_| ())
    }

    fn cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2_ptsz(
        stream: Handle, _dependencies: *const Handle, _edges: *const EdgeData, _count: usize,
        _flags: c_uint,
    ) {
        driver()?.streams.get(stream).map(|_| ())
    }

    fn cuThreadExchangeStreamCaptureMode(mode: Out<c_int>) {
        thread_local! {
            static MODE: std::cell::Cell<c_int> = const { std::cell::Cell::new(0) };
        }
        driver()?;
        let new = mode.get()?;
        mode.set(MODE.replace(new))
    }

    fn cuGraphCreate(graph: Out<Handle>, _flags: c_uint) {
        graph.set(driver()?.graphs.insert(Graph::default()))
    }

    fn cuGraphDestroy(graph: Handle) {
        driver()?.graphs.remove(graph).map(|_| ())
    }

    fn cuGraphInstantiateWithFlags(exec: Out<Handle>, graph: Handle, _flags: c_ulonglong) {
        instantiate(exec, graph)
    }

    fn cuGraphInstantiate_v2(
        exec: Out<Handle>, graph: Handle, _node: *mut Handle, _log: *mut c_char, _size: usize,
    ) {
        instantiate(exec, graph)
    }

    fn cuGraphExecDestroy(exec: Handle) {
        driver()?.graph_execs.remove(exec).map(|_| ())
    }

    fn cuGraphUpload, cuGraphUpload_ptsz(exec: Handle, stream: Handle) {
        let driver = driver()?;
        driver.graph_execs.get(exec)?;
        driver.streams.get(stream).map(|_| ())
    }

    fn cuGraphLaunch, cuGraphLaunch_ptsz(exec: Handle, stream: Handle) {
        launch(exec, stream)
    }

    fn cuGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        let graph = driver()?.graphs.get(graph)?;
        let handles: Vec<Handle> =
            graph.nodes.lock().expect("no panics").iter().map(|node| node.handle).collect();
        store_list(&handles, nodes, count)
    }

    fn cuGraphNodeGetType(node: Handle, kind: Out<c_int>) {
        kind.set(match find_node(driver()?, node)?.kind {
            NodeKind::Kernel => 0,
            NodeKind::Memcpy => 1,
            NodeKind::Memset => 2,
            NodeKind::Host { .. } => 3,
            NodeKind::MemAlloc => 10,
            NodeKind::MemFree => 11,
        })
    }

    fn cuGraphNodeGetDependencies(node: Handle, dependencies: Out<Handle>, count: Out<usize>) {
        let dependency = find_node(driver()?, node)?.dependency;
        let list = [dependency];
        store_list(&list[..usize::from(dependency != 0)], dependencies, count)
    }

    fn cuGraphNodeGetDependencies_v2(
        node: Handle, dependencies: Out<Handle>, _edges: *mut EdgeData, count: Out<usize>,
    ) {
        let dependency = find_node(driver()?, node)?.dependency;
        let list = [dependency];
        store_list(&list[..usize::from(dependency != 0)], dependencies, count)
    }

    fn cuGraphDebugDotPrint(graph: Handle, path: *const c_char, _flags: c_uint) {
        let graph = driver()?.graphs.get(graph)?;
        let mut text = String::from("digraph captured {\n");
        for node in graph.nodes.lock().expect("no panics").iter() {
            text += &format!("  n{:x} [label=\"{:?}\"];\n", node.handle, node.kind);
            if node.dependency != 0 {
                text += &format!("  n{:x} -> n{:x};\n", node.dependency, node.handle);
            }
        }
        text += "}\n";
        std::fs::write(simcuda_common::ffi::text(path)?, text).map_err(|_| INVALID_VALUE)
    }

    // The caller's own references count as one: it is given up with the first release.
    fn cuUserObjectCreate(
        object: Out<Handle>, pointer: *mut c_void, destroy: crate::stream::HostFunction,
        _references: c_uint, _flags: c_uint,
    ) {
        let destroy = destroy.ok_or(INVALID_VALUE)?;
        object.set(driver()?.user_objects.insert(UserObject { pointer: pointer as usize, destroy }))
    }

    fn cuUserObjectRetain(object: Handle, _count: c_uint) {
        driver()?.user_objects.get(object).map(|_| ())
    }

    fn cuUserObjectRelease(object: Handle, _count: c_uint) {
        driver()?.user_objects.remove(object).map(|_| ())
    }

    fn cuGraphRetainUserObject(graph: Handle, object: Handle, _count: c_uint, flags: c_uint) {
        const MOVE: c_uint = 1;
        let driver = driver()?;
        let graph = driver.graphs.get(graph)?;
        let object = if flags & MOVE != 0 {
            driver.user_objects.remove(object)?
        } else {
            driver.user_objects.get(object)?
        };
        graph.user_objects.lock().expect("no panics").push(object);
        Ok(())
    }

    fn cuGraphConditionalHandleCreate(
        _handle: Out<c_ulonglong>, _graph: Handle, _context: Handle, _default: c_uint,
        _flags: c_uint,
    ) {
        Err(NOT_SUPPORTED)
    }

    fn cuGraphAddNode_v2(
        _node: Out<Handle>, _graph: Handle, _dependencies: *const Handle, _edges: *const EdgeData,
        _count: usize, _params: In<u8>,
    ) {
        Err(NOT_SUPPORTED)
    }
}
