#!/usr/bin/env python3
"""Writes ids.txt: the callback ids of the functions that the simulation has.

usage: ids.py INCLUDE_OF_CUDA_12 INCLUDE_OF_CUDA_13 > ids.txt

Each folder holds cupti_driver_cbid.h and cupti_runtime_cbid.h. A line is: major, domain, the
function's exported name, CUPTI's name of the callback, its number.
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEFINED = re.compile(r"^\s+fn ((?:cu|cuda)[A-Z]\w+(?:, \w+)*)\s*\(", re.MULTILINE)


def simulated(folder):
    """Names that the sources of a simulated library define."""
    names = set()
    for source in (HERE.parent / folder / "src").glob("*.rs"):
        for found in DEFINED.findall(source.read_text()):
            names.update(found.split(", "))
    return names


def listed(header, prefix):
    text = Path(header).read_text()
    return [(name, int(number)) for name, number in re.findall(rf"{prefix}(\w+)\s*=\s*(\d+)", text)]


def main():
    for major, include in zip((12, 13), sys.argv[1:3], strict=True):
        driver = dict(listed(f"{include}/cupti_driver_cbid.h", "CUPTI_DRIVER_TRACE_CBID_"))
        for name in sorted(simulated("driver")):
            if name in driver:
                print(major, "driver", name, name, driver[name])
        # cudaMalloc_v3020: the release since when the function is what it is. The latest counts.
        runtime = {}
        for name, number in listed(f"{include}/cupti_runtime_cbid.h", "CUPTI_RUNTIME_TRACE_CBID_"):
            base, _, release = name.rpartition("_v")
            if release.isdigit() and int(release) >= runtime.get(base, (0,))[0]:
                runtime[base] = (int(release), name, number)
        for name in sorted(simulated("runtime")):
            if name in runtime:
                print(major, "runtime", name, *runtime[name][1:])


main()
