"""Opens a memory snapshot with PyTorch's own reader: _memory_viz.py SNAPSHOT. Prints what it holds."""

import importlib.util
import json
import pickle
import pickletools
import sys

reader, path = sys.argv[1:]
spec = importlib.util.spec_from_file_location("memory_viz", reader)
viz = importlib.util.module_from_spec(spec)
spec.loader.exec_module(viz)

with open(path, "rb") as file:
    raw = file.read()
protocol = max(opcode.proto for opcode, _, _ in pickletools.genops(raw))
snapshot = pickle.loads(raw)

lines = []
viz.memory(snapshot, format_flamegraph=lambda text: lines.extend(text.splitlines()))
active = sum(int(line.rsplit(" ", 1)[1]) for line in lines if ";active_allocated;" in line)
by_segment = []
viz.segments(snapshot, format_flamegraph=lambda text: by_segment.extend(text.splitlines()))
assert len(by_segment) == len(lines)
viz.segsum(snapshot)  # asserts that blocks fill their segments
viz.trace(snapshot)
for page in (viz.trace_plot(snapshot), viz.segment_plot(snapshot)):
    assert "snapshot.pickle" in page
alive = {}
for device, entries in enumerate(snapshot["device_traces"]):
    assert [entry["time_us"] for entry in entries] == sorted(entry["time_us"] for entry in entries)
    for entry in entries:
        key = device, entry["addr"] if "addr" in entry else None
        if entry["action"] == "alloc":
            assert key not in alive, "an address lives once"
            alive[key] = entry["size"]
        elif entry["action"] == "free_completed":
            assert alive.pop(key) == entry["size"]
print(
    json.dumps(
        {
            "protocol": protocol,
            "active": active,
            "alive": sum(alive.values()),
            "segments": len(snapshot["segments"]),
            "entries": sum(map(len, snapshot["device_traces"])),
            "actions": sorted({e["action"] for t in snapshot["device_traces"] for e in t}),
            "names": sorted(
                {f["name"] for s in snapshot["segments"] for b in s["blocks"] for f in b["frames"]}
            ),
        }
    )
)
