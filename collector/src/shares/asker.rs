//! Which library asked the driver for memory, in words that people use for it.

use vramscope_events::FrameKind;

use crate::view::FrameView;

/// Who asked for driver memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The framework's allocator of tensors.
    Framework,
    /// A library, an extension, a program.
    Named(String),
    /// No frame says it.
    Unknown,
}

/// Libraries by the beginning of their file's name. The first that fits counts.
const LIBRARIES: &[(&str, &str)] = &[
    ("libnccl", "NCCL"),
    ("librccl", "NCCL"),
    ("libcublas", "cuBLAS"),
    ("libnvblas", "cuBLAS"),
    ("libcudnn", "cuDNN"),
    ("libcufft", "cuFFT"),
    ("libcusolver", "cuSOLVER"),
    ("libcusparseLt", "cuSPARSELt"),
    ("libcusparse", "cuSPARSE"),
    ("libcurand", "cuRAND"),
    ("libcutensor", "cuTENSOR"),
    ("libnvshmem", "NVSHMEM"),
    ("libcufile", "cuFile"),
    ("libnvinfer", "TensorRT"),
    ("libnvonnxparser", "TensorRT"),
    ("libnppc", "NPP"),
    ("libnpp", "NPP"),
    ("libnvjpeg", "nvJPEG"),
    ("libucp", "UCX"),
    ("libuct", "UCX"),
    ("libucs", "UCX"),
    ("librmm", "RMM"),
    ("libcudf", "cuDF"),
    ("libcuml", "cuML"),
    ("libcuvs", "cuVS"),
    ("libraft", "RAFT"),
    ("libonnxruntime", "ONNX Runtime"),
    ("libtensorflow", "TensorFlow"),
    ("libjax", "JAX"),
    ("libjaxlib", "JAX"),
    ("xla_extension", "JAX"),
    ("libdali", "DALI"),
    ("libtorch", "PyTorch"),
    ("libc10", "PyTorch"),
    ("libcaffe2", "PyTorch"),
];

/// The same by a folder on the way to the file (of a library, or of Python code).
const PACKAGES: &[(&str, &str)] = &[
    ("cupy", "CuPy"),
    ("cupy_backends", "CuPy"),
    ("rmm", "RMM"),
    ("cudf", "cuDF"),
    ("cuml", "cuML"),
    ("jax", "JAX"),
    ("jaxlib", "JAX"),
    ("jax_plugins", "JAX"),
    ("xla_cuda12", "JAX"),
    ("tensorflow", "TensorFlow"),
    ("numba", "Numba"),
    ("numba_cuda", "Numba"),
    ("pycuda", "PyCUDA"),
    ("triton", "Triton"),
    ("onnxruntime", "ONNX Runtime"),
    ("nvidia_dali", "DALI"),
    ("torch", "PyTorch"),
];

/// What hands a call on: never who asked.
const HANDS_ON: &[&str] = &[
    "libcuda.so",
    "libcudart",
    "libcudadebugger",
    "libcupti",
    "libvramscope_",
    "libnvidia-",
    "libc.so",
    "libpthread",
    "libdl.so",
    "ld-linux",
    "libm.so",
    "libstdc++",
    "libgcc_s",
    "libffi",
    "_ctypes",
    "_cffi_backend",
    "libpython",
    "[",
];

/// Who asked, by a stack, innermost frame first.
pub(crate) fn of(frames: &[std::sync::Arc<FrameView>]) -> Asker {
    let native = frames
        .iter()
        .filter(|frame| frame.kind == FrameKind::Native)
        .find(|frame| !hands_on(file_name(&frame.file)));
    if let Some(frame) = native {
        return library(&frame.file);
    }
    let python = frames
        .iter()
        .find(|frame| frame.kind == FrameKind::Python && !frame.file.starts_with(['<', '[']));
    let Some(frame) = python else {
        return Asker::Unknown;
    };
    match package(&frame.file) {
        // Below PyTorch's own Python there is machine code, which was not seen.
        Some("PyTorch") => Asker::Unknown,
        Some(name) => Asker::Named(name.to_owned()),
        // A call straight from Python, as ctypes makes it: the absence of a library says something
        // only where machine code was seen at all.
        None if frames.iter().any(|frame| frame.kind == FrameKind::Native) => {
            Asker::Named(format!("Python code, {}", file_name(&frame.file)))
        }
        None => Asker::Unknown,
    }
}

fn library(path: &str) -> Asker {
    let file = file_name(path);
    // The allocator itself; the rest of PyTorch has its own reasons.
    if file.starts_with("libc10_cuda") {
        return Asker::Framework;
    }
    let known = LIBRARIES
        .iter()
        .find(|(prefix, _)| file.starts_with(prefix));
    if let Some((_, name)) = known {
        return Asker::Named((*name).to_owned());
    }
    if let Some(name) = package(path) {
        return Asker::Named(name.to_owned());
    }
    Asker::Named(if file.contains(".so") {
        format!("extension {file}")
    } else {
        format!("program {file}")
    })
}

fn package(path: &str) -> Option<&'static str> {
    // The folder nearest to the file that is known: torch/ may contain what is not PyTorch's.
    let folders = path.rsplit('/').skip(1);
    folders
        .filter_map(|folder| PACKAGES.iter().find(|(name, _)| *name == folder))
        .map(|(_, name)| *name)
        .next()
}

fn hands_on(file: &str) -> bool {
    HANDS_ON.iter().any(|prefix| file.starts_with(prefix)) || is_interpreter(file)
}

/// `python3.12`, where the interpreter is the program itself.
fn is_interpreter(file: &str) -> bool {
    file.strip_prefix("python").is_some_and(|version| {
        version
            .chars()
            .all(|letter| letter.is_ascii_digit() || letter == '.')
    })
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn frame(kind: FrameKind, file: &str) -> Arc<FrameView> {
        Arc::new(FrameView {
            kind,
            file: file.into(),
            function: "f".into(),
            line: 0,
            user: false,
            source: None,
        })
    }

    fn asked(frames: &[&str]) -> String {
        let frames: Vec<_> = frames
            .iter()
            .map(|file| match file.ends_with(".py") {
                true => frame(FrameKind::Python, file),
                false => frame(FrameKind::Native, file),
            })
            .collect();
        match of(&frames) {
            Asker::Framework => "framework".into(),
            Asker::Unknown => "unknown".into(),
            Asker::Named(name) => name,
        }
    }

    #[test]
    fn the_first_library_that_does_not_hand_on_asked() {
        let driver = "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
        let runtime = "/v/nvidia/cuda_runtime/lib/libcudart.so.12";
        let nccl = "/v/nvidia/nccl/lib/libnccl.so.2";
        let torch = "/v/torch/lib/libtorch_cuda.so";
        assert_eq!(asked(&[driver, nccl, torch, "/v/torch/x.py"]), "NCCL");
        assert_eq!(asked(&[driver, runtime, torch]), "PyTorch");
        assert_eq!(
            asked(&[driver, runtime, "/v/torch/lib/libc10_cuda.so", torch]),
            "framework"
        );
        assert_eq!(asked(&["/opt/libcublasLt.so.12"]), "cuBLAS");
        assert_eq!(
            asked(&[driver, "/home/me/my_ops.cpython-312-x86_64-linux-gnu.so"]),
            "extension my_ops.cpython-312-x86_64-linux-gnu.so"
        );
        assert_eq!(asked(&[driver, "/home/me/solver"]), "program solver");
    }

    #[test]
    fn a_package_names_its_own() {
        let cupy = "/v/site-packages/cupy/cuda/memory.cpython-312-x86_64-linux-gnu.so";
        assert_eq!(asked(&["/x/libcudart.so.12", cupy]), "CuPy");
        assert_eq!(asked(&["/v/site-packages/jaxlib/cuda/_solver.so"]), "JAX");
    }

    #[test]
    fn a_call_from_python_is_pythons() {
        let ctypes = "/usr/lib/python3.12/lib-dynload/_ctypes.cpython-312-x86_64-linux-gnu.so";
        assert_eq!(
            asked(&["/x/libcuda.so.1", "libffi.so.8", ctypes, "/me/pool.py"]),
            "Python code, pool.py"
        );
        let numba = "/v/site-packages/numba/cuda/driver.py";
        assert_eq!(asked(&["/x/libcuda.so.1", ctypes, numba]), "Numba");
    }

    #[test]
    fn without_machine_code_nobody_can_tell() {
        assert_eq!(asked(&["/me/train.py"]), "unknown");
        assert_eq!(asked(&[]), "unknown");
        assert_eq!(
            asked(&["/x/libcuda.so.1", "/v/torch/nn/linear.py"]),
            "unknown"
        );
    }
}
