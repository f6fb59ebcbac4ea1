"""What a shared library needs: its undefined symbols, with library and version."""

import mmap
import struct
from typing import NamedTuple

DT_NEEDED, SHT_DYNSYM, SHT_DYNAMIC = 1, 11, 6
SHT_GNU_VERNEED, SHT_GNU_VERSYM = 0x6FFFFFFE, 0x6FFFFFFF
SHN_UNDEF, STT_OBJECT = 0, 1
HIDDEN_BIT = 0x8000


class Needed(NamedTuple):
    """An undefined symbol; library and version are None if it is not versioned."""

    name: str
    library: str | None
    version: str | None
    is_object: bool


class Library:
    """The dynamic symbols of a 64-bit little-endian ELF file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is not a 64-bit little-endian ELF file")
        self.sections = self._read_sections()
        self.needed_libraries = self._read_needed_libraries()
        self.defined, self.undefined = self._read_symbols()

    def _read_sections(self):
        (offset,) = struct.unpack_from("<Q", self.data, 0x28)
        size, count = struct.unpack_from("<HH", self.data, 0x3A)
        fields = "<IIQQQQIIQQ"
        return [struct.unpack_from(fields, self.data, offset + i * size) for i in range(count)]

    def _section(self, kind):
        return next((section for section in self.sections if section[1] == kind), None)

    def _strings_of(self, section):
        return self.sections[section[6]][4]

    def _text(self, strings, offset):
        start = strings + offset
        return self.data[start : self.data.find(b"\0", start)].decode()

    def _read_needed_libraries(self):
        section = self._section(SHT_DYNAMIC)
        if section is None:
            return []
        strings = self._strings_of(section)
        entries = struct.iter_unpack("<QQ", self.data[section[4] : section[4] + section[5]])
        return [self._text(strings, value) for tag, value in entries if tag == DT_NEEDED]

    def _read_versions(self):
        """Version index -> (library, version)."""
        versions = {}
        section = self._section(SHT_GNU_VERNEED)
        if section is None:
            return versions
        strings, position = self._strings_of(section), section[4]
        for _ in range(section[7]):
            _, count, file, first, following = struct.unpack_from("<HHIII", self.data, position)
            entry = position + first
            for _ in range(count):
                _, _, index, name, step = struct.unpack_from("<IHHII", self.data, entry)
                versions[index] = (self._text(strings, file), self._text(strings, name))
                entry += step
            position += following
        return versions

    def _read_symbols(self):
        section = self._section(SHT_DYNSYM)
        if section is None:
            return set(), []
        versions, indices = self._read_versions(), self._section(SHT_GNU_VERSYM)
        strings, defined, undefined = self._strings_of(section), set(), []
        for i in range(section[5] // section[9]):
            name, info, _, where = struct.unpack_from("<IBBH", self.data, section[4] + i * section[9])
            text = self._text(strings, name)
            if not text:
                continue
            if where != SHN_UNDEF:
                defined.add(text)
                continue
            index = 0
            if indices is not None:
                (index,) = struct.unpack_from("<H", self.data, indices[4] + 2 * i)
            library, version = versions.get(index & ~HIDDEN_BIT, (None, None))
            undefined.append(Needed(text, library, version, info & 0xF == STT_OBJECT))
        return defined, undefined
