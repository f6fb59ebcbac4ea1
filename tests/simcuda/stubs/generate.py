#!/usr/bin/env python3
"""Builds stub libraries for what an installed PyTorch wheel imports.

usage: generate.py SITE_PACKAGES OUTPUT_FOLDER

Every library that the wheel's libraries need and that neither the system, nor the wheel,
nor the simulation itself has becomes one shared library with all imported symbols under
the version that they are imported by. A symbol is written by hand in one of the C files
beside this script, or gets what rules.py says of its name.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import elf
import rules

HERE = Path(__file__).resolve().parent

# Libraries of the simulation, which are no stubs, and of the system.
NOT_STUBBED = re.compile(
    r"^(libcuda\.|libcudart\.|libcupti\.|libnvidia-ml\.|ld-linux|lib(c|m|dl|rt|pthread|util|z|gcc_s|stdc\+\+|gomp|numa|quadmath|gfortran)[.-])"
)

# Owners of symbols that carry no version, by the beginning of the symbol's name.
UNVERSIONED_OWNERS = [
    ("nccl", "libnccl.so"),
    ("cusparseLt", "libcusparseLt.so"),
    ("cuFile", "libcufile.so"),
    ("nvshmem", "libnvshmem_host.so"),
    ("nvtx", "libnvToolsExt.so"),
    ("curand", "libcurand.so"),
]

BODIES = {
    rules.CREATE: "EXPORT int {name}(void **object)\n{{\n\t*object = new_object();\n\treturn 0;\n}}\n",
    rules.COMPUTE: "EXPORT long {name}(void)\n{{\n\twork_was_done();\n\treturn 0;\n}}\n",
    rules.NOTHING: "EXPORT long {name}(void)\n{{\n\treturn 0;\n}}\n",
    rules.UNIMPLEMENTED: 'EXPORT long {name}(void)\n{{\n\tunimplemented("{name}");\n}}\n',
}


def imports_of(torch_lib):
    """SONAME of a missing library -> {symbol: Needed}."""
    files = [elf.Library(path) for path in sorted(torch_lib.glob("*.so*")) if path.is_file()]
    defined = set().union(*(file.defined for file in files))
    own = {path.name for path in torch_lib.iterdir()}
    missing = {
        name: {}
        for file in files
        for name in file.needed_libraries
        if name not in own and not NOT_STUBBED.match(name)
    }
    for file in files:
        for symbol in file.undefined:
            owner = symbol.library
            if owner is None and symbol.name not in defined:
                owner = owner_of_unversioned(symbol.name, missing)
            if owner in missing:
                missing[owner][symbol.name] = symbol
    return missing


def owner_of_unversioned(symbol, libraries):
    for prefix, base in UNVERSIONED_OWNERS:
        if symbol.startswith(prefix):
            return next((name for name in libraries if name.startswith(base)), None)
    return None


def handwritten_sources(soname):
    """The C files for a library: cudnn.c and cudnn_*.c for libcudnn.so.9."""
    base = soname.removeprefix("lib").split(".so")[0]
    return sorted([*HERE.glob(f"{base}.c"), *HERE.glob(f"{base}_*.c")])


def handwritten_symbols(source):
    """Names that a C file exports, macros expanded."""
    text = subprocess.run(["cc", "-E", "-P", str(source)], check=True, capture_output=True, text=True)
    exported = r'__attribute__\(\(visibility\("default"\)\)\)\s[^;{]*?(\w+)\s*\('
    return set(re.findall(exported, text.stdout))


def generated_source(symbols):
    parts = ['#include "stub.h"\n']
    for symbol in symbols:
        if symbol.is_object:
            parts.append(f"EXPORT char {symbol.name}[64];\n")
        else:
            parts.append(BODIES[rules.behaviour(symbol.name)].format(name=symbol.name))
    return "\n".join(parts)


def version_script(symbols):
    nodes = defaultdict(list)
    for symbol in symbols:
        if symbol.version:
            nodes[symbol.version].append(symbol.name)
    return "".join(
        f"{node} {{ global: {'; '.join(sorted(names))}; }};\n" for node, names in sorted(nodes.items())
    )


def build(soname, symbols, output, definitions):
    sources = handwritten_sources(soname)
    by_hand = set().union(*map(handwritten_symbols, sources))
    generated = output / f"{soname}.c"
    generated.write_text(generated_source([s for s in symbols if s.name not in by_hand]))
    command = ["cc", "-O1", "-g1", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]
    command += ["-Wno-unused-function", f"-I{HERE}", f"-Wl,-soname,{soname}", "-D_GNU_SOURCE", "-o", str(output / soname)]
    command += [*definitions, str(generated), *map(str, sources)]
    script = version_script(symbols)
    if script:
        (output / f"{soname}.map").write_text(script)
        command.append(f"-Wl,--version-script={output / (soname + '.map')}")
    subprocess.run(command, check=True)
    return by_hand


def versions_of(site_packages):
    """What the wheel was made for: (CUDA version, cuDNN version), as their libraries say them."""
    cuda = re.search(r"cuda[^=]*= '(\d+)\.(\d+)'", (site_packages / "torch/version.py").read_text())
    metadata = next(site_packages.glob("torch-*.dist-info/METADATA")).read_text()
    cudnn = re.search(r"nvidia-cudnn-cu\d+ ?\(?==(\d+)\.(\d+)\.(\d+)", metadata)
    if cuda is None or cudnn is None:
        sys.exit(f"{site_packages} holds no PyTorch wheel for CUDA: its version or its cuDNN is not stated")
    (cuda_major, cuda_minor), (major, minor, patch) = map(int, cuda.groups()), map(int, cudnn.groups())
    return cuda_major * 1000 + cuda_minor * 10, major * 10000 + minor * 100 + patch


def main():
    site_packages, output = Path(sys.argv[1]), Path(sys.argv[2])
    output.mkdir(parents=True, exist_ok=True)
    cuda, cudnn = versions_of(site_packages)
    definitions = [f"-DSIMCUDA_CUDA_VERSION={cuda}", f"-DSIMCUDA_CUDNN_VERSION={cudnn}"]
    unimplemented = []
    for soname, imports in sorted(imports_of(site_packages / "torch/lib").items()):
        symbols = [imports[name] for name in sorted(imports)]
        by_hand = build(soname, symbols, output, definitions)
        generated = [s.name for s in symbols if s.name not in by_hand]
        unimplemented += [name for name in generated if rules.behaviour(name) == rules.UNIMPLEMENTED]
        print(f"{soname}: {len(symbols)} symbols, {len(symbols) - len(generated)} by hand")
    (output / "unimplemented.txt").write_text("\n".join(unimplemented) + "\n")


if __name__ == "__main__":
    main()
