"""A reader of recordings, written from docs/recording-format.md alone.

    python3 read.py FILE [--from-checkpoint]

Prints JSON: what is live at the end by process, layer and device, PyTorch's last totals, how many
events of each kind there were, and a checksum over names. Needs the package `zstandard`.
"""
import io
import json
import struct
import sys

import zstandard

MASK = (1 << 64) - 1
TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


class Input:
    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self):
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def bytes(self):
        length = self.varint()
        self.at += length
        return self.data[self.at - length:self.at]


class Segment:
    """What is remembered from chunk to chunk."""

    def __init__(self):
        self.zstd = zstandard.ZstdDecompressor().decompressobj()
        self.shapes, self.strings, self.blocks = [], [None], []
        self.address, self.totals, self.stack = 0, {}, []

    def chunk(self, payload, length):
        raw = self.zstd.decompress(payload)
        assert len(raw) == length, "another number of bytes"
        return self.events(raw)

    def events(self, raw):
        head = Input(raw)
        count, unit, time = head.varint(), head.varint(), head.varint()
        for _ in range(head.varint()):
            fixed = [head.byte() for _ in range(5)]
            self.shapes.append((*fixed, head.varint(), head.varint(), head.varint()))
        columns = [Input(head.bytes()) for _ in range(7)]
        shapes, times, stacks, sizes, addresses, distances, rest = columns

        def string():
            number = rest.varint()
            if number == 0:
                self.strings.append(rest.bytes().decode())
                number = len(self.strings) - 1
            return self.strings[number]

        for _ in range(count):
            what, layer, totals, size, grains, device, process, thread = \
                self.shapes[shapes.varint()]
            time += times.signed() * unit
            event = {"what": what, "time": time, "process": process, "layer": layer,
                     "device": device - 1}

            def take_size(known=None):
                return {0: lambda: None, 1: lambda: known, 2: sizes.varint,
                        3: lambda: sizes.varint() * 512}[size]()

            def take_address():
                step = addresses.signed() * (512 if grains else 1)
                self.address = (self.address + step) & MASK
                return self.address

            known = None
            if what == 0:
                event["stack"] = stacks.varint()
                event["size"] = known = take_size()
                event["address"] = take_address()
                self.blocks.append((event["address"], event["size"]))
            elif what == 1:
                event["address"], known = self.blocks[-distances.varint()]
                event["size"] = take_size(known)
            elif what == 2:
                event["size"] = take_size()
                event["address"] = take_address()
            if what <= 2 and totals:
                key = process, device
                if totals == 1:
                    allocated, reserved = self.totals.get(key, (0, 0))
                    change = event["size"] if event["size"] is not None else known or 0
                    allocated += change if what == 0 else -change
                    told = allocated & MASK, reserved
                else:
                    told = rest.varint(), rest.varint()
                if device:
                    self.totals[key] = told
                event["totals"] = told
            if what == 3:
                event["id"], event["kind"], event["line"] = rest.varint(), rest.byte(), rest.varint()
                event["file"], event["function"] = string(), string()
            elif what == 4:
                event["id"], shared, own = rest.varint(), rest.varint(), rest.varint()
                frames = [rest.varint() for _ in range(own)]
                self.stack = frames + self.stack[len(self.stack) - shared:]
                event["frames"] = self.stack
            elif what == 5:
                event["frame"], event["text"] = rest.varint(), string()
            elif what == 6:
                event["numbers"] = [rest.varint() for _ in range(4)]
            elif what in (8, 9):
                event["stack"] = rest.varint()
            elif what == 10:
                event["cause"], event["count"] = rest.byte(), rest.varint()
            elif what == 11:
                event["numbers"] = [rest.varint(), rest.varint(), rest.byte(), rest.varint()]
            elif what == 13:
                event["answer"] = json.loads(rest.bytes())
            elif what == 14:
                event["users"] = [
                    (rest.varint(), string(), rest.byte(), rest.varint())
                    for _ in range(rest.varint())]
            elif what == 17:
                event["numbers"] = [rest.varint() for _ in range(3)]
            elif what == 18:
                event["numbers"] = [rest.varint() for _ in range(2)]
            elif what == 19:
                event["numbers"] = [rest.varint()]
            yield event
        assert all(column.at == len(column.data) for column in columns), "left over"


def checkpoint(raw):
    """The moment, the definitions, and the live blocks."""
    head = Input(raw)
    time = head.varint()
    definitions = list(Segment().events(head.bytes()))
    blocks = []
    for _ in range(head.varint()):
        process, layer, device, segment = head.varint(), head.byte(), head.varint(), head.byte()
        count, unit = head.varint(), head.varint()
        address = born = 0
        for _ in range(count):
            address = (address + head.signed() * unit) & MASK
            size, stack = head.varint() * unit, head.varint()
            born = (born + head.signed()) & MASK
            blocks.append((process, layer, device, address, size, stack, born, head.varint()))
    return time, definitions, blocks


def chunks(file):
    assert file.read(8) == b"\x89VRAM\r\n\x1a", "no recording"
    sequence = 0
    while True:
        head = file.read(48)
        if len(head) < 48:
            return
        magic, kind, flags, _, number, first, last, stored, raw, crc, own = \
            struct.unpack("<4sBBHQQQIIII", head)
        assert magic == b"vrsC" and crc32c(head[:44]) == own, "damaged"
        payload = file.read(stored)
        assert len(payload) == stored and crc32c(payload) == crc, "damaged"
        assert number == sequence or (sequence == 1 and kind == 3), "missing"
        sequence = number + 1
        yield kind, flags, payload, raw


def main():
    data = open(sys.argv[1], "rb").read()
    live, totals, counts, names = {}, {}, {}, []

    def take(event):
        counts[event["what"]] = counts.get(event["what"], 0) + 1
        key = event["process"], event["layer"], event.get("address")
        if event["what"] == 0:
            live[key] = event["device"], event["size"]
        elif event["what"] in (1, 2):
            live.pop(key, None)
        elif event["what"] == 3:
            names.append((event["file"], event["function"], event["line"]))
        if event.get("totals") and event["device"] >= 0:
            totals[f'{event["process"]}/{event["device"]}'] = event["totals"]

    jump = "--from-checkpoint" in sys.argv
    everything = list(chunks(io.BytesIO(data)))
    if jump:
        last = max(i for i, chunk in enumerate(everything) if chunk[0] == 3)
        everything = everything[last:]
    segment = None
    for index, (kind, flags, payload, raw) in enumerate(everything):
        if kind == 2:
            if flags & 1:
                segment = Segment()
            for event in segment.chunk(payload, raw):
                take(event)
        elif kind == 3 and index == 0:
            _, definitions, blocks = checkpoint(
                zstandard.ZstdDecompressor().decompress(payload, max_output_size=raw))
            for event in definitions:
                take(event)
            for process, layer, device, address, size, *_ in blocks:
                live[process, layer, address] = device, size
    sums = {}
    for (process, layer, _), (device, size) in live.items():
        blocks, size_sum = sums.get((process, layer, device), (0, 0))
        sums[process, layer, device] = blocks + 1, size_sum + size
    print(json.dumps({
        "live": sorted([*key, *value] for key, value in sums.items()),
        "totals": totals,
        "counts": {str(what): count for what, count in sorted(counts.items())},
        "names": crc32c(repr(sorted(names)).encode()) if not jump else len(names),
    }))


main()
