"""Decodes a Perfetto trace by Perfetto's own definitions: FILE. Prints what it holds."""

import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

with open(sys.argv[1], "rb") as file:
    trace = pb.Trace.FromString(file.read())


def unknown(message):
    """Whether anything was written that the definitions do not know."""
    copy = type(message)()
    copy.CopyFrom(message)
    copy.DiscardUnknownFields()
    return copy.ByteSize() != message.ByteSize()


assert not unknown(trace)
names, frames, stacks, tracks = {}, {}, {}, {}
survivors = marks = 0
counters, weighted, found = {}, set(), set()
for packet in trace.packet:
    for item in packet.interned_data.function_names:
        names[item.iid] = item.str.decode()
    for item in packet.interned_data.frames:
        assert item.mapping_id == 1
        frames[item.iid] = names[item.function_name_id]
    for item in packet.interned_data.callstacks:
        stacks[item.iid] = [frames[frame] for frame in item.frame_ids]
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid not in tracks
        assert not track.parent_uuid or track.parent_uuid in tracks
        tracks[track.uuid] = track
    if packet.HasField("track_event"):
        event = packet.track_event
        track = tracks[event.track_uuid]
        if event.type == pb.TrackEvent.TYPE_COUNTER:
            assert track.counter.unit == pb.CounterDescriptor.UNIT_SIZE_BYTES
            counters.setdefault(track.name, []).append(event.counter_value)
        elif event.HasField("callstack_weight"):
            weighted.add(event.track_uuid)
            survivors += event.callstack_weight
            found.update(stacks[event.callstack_iid])
        else:
            assert event.type == pb.TrackEvent.TYPE_INSTANT
            assert event.track_uuid not in weighted, "a track's events have a weight all or none"
            marks += 1
print(
    json.dumps(
        {
            "survivors": int(survivors),
            "marks": marks,
            "counters": {name: len(values) for name, values in counters.items()},
            "most": {name: max(values) for name, values in counters.items()},
            "names": sorted(found),
        }
    )
)
