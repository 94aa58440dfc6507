"""Observed launch → description with its data in files beside it: :func:`write_recording`."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import field

from gpa_lsp.code.binary.linkage_names import find_bare_name
from gpa_lsp.code.ptx.model import PtxVariable
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.source_parameters import SourceParameter
from gpa_lsp.execution.launches import DESCRIPTION_SUFFIX
from gpa_lsp.execution.launches.model import TextureInput
from gpa_lsp.execution.launches.pointer_uses import PointerUse
from gpa_lsp.execution.launches.type_names import find_type
from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.foundation.records import ColumnRecord

POINTER_BYTES = 8
_LONGEST_STEM = 80
_WORD_BYTES = 4
_FORMATS = {
    ScalarType.S8: "<b", ScalarType.U8: "<B", ScalarType.B8: "<B", ScalarType.S16: "<h", ScalarType.U16: "<H",
    ScalarType.B16: "<H", ScalarType.S32: "<i", ScalarType.U32: "<I", ScalarType.B32: "<I", ScalarType.F32: "<f",
    ScalarType.S64: "<q", ScalarType.U64: "<Q", ScalarType.B64: "<Q", ScalarType.F64: "<d",
}  # fmt: skip
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_NAMES = {ScalarType.B8: "u8", ScalarType.B16: "u16", ScalarType.B32: "u32", ScalarType.B64: "u64"}


class Recording(ColumnRecord, frozen=True, kw_only=True):
    """An observed launch."""

    kernel: str  # mangled name
    heading: str  # a sentence that says where it comes from
    grid: tuple[int, int, int]  # blocks in x, y, z
    block: tuple[int, int, int]  # threads in x, y, z
    shared_bytes: int  # dynamic shared memory
    cluster: tuple[int, int, int] | None = None  # blocks of a cluster in x, y, z; None as the kernel was compiled for
    parameters: tuple[PtxVariable, ...]  # of the kernel, in order
    content: bytes  # bytes of all of them
    arrays: Mapping[int, npt.NDArray[np.uint8]]  # address → what lay there before the launch
    variables: Mapping[int, str]  # address of those that are variables of the module → their names
    # names and types of the parameters, where the source is known; else empty
    sources: tuple[SourceParameter, ...] = ()
    uses: Mapping[str, PointerUse]  # name of a parameter → what is done with it as a pointer
    # handle → texture or surface, with texels of its own
    textures: Mapping[int, TextureInput] = field(default_factory=dict)
    origins: Mapping[int, str] = field(default_factory=dict)  # address → where the host allocated it, in words
    has_addresses: bool = False  # arrays hold addresses or handles, so that everything has to lie where it lay


def write_recording(recording: Recording, folder: Path, stem: str) -> Path:
    """Write a description and its data; returns the description's path.

    Raises:
        OSError: it cannot be written.
    """
    path = folder / f"{stem}{DESCRIPTION_SUFFIX}"
    text = _Writer(recording, folder, stem).write()
    with atomic_write(path) as stream:
        stream.write(text)
    return path


def choose_stem(kernel: str, taken: set[str]) -> str:
    """File name for a kernel's description that no other of the run has, by its mangled name; it is added to *taken*."""
    bare = find_bare_name(kernel)
    wanted = (
        "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in bare)[:_LONGEST_STEM] or "kernel"
    )
    stem, number = wanted, 1
    while stem in taken:
        number += 1
        stem = f"{wanted}_{number}"
    taken.add(stem)
    return stem


def is_program_variable(name: str) -> bool:
    """Whether a variable is the program's own, rather than a compiler's string or table."""
    return not name.startswith(("$", "__unnamed", ".L"))


def hold_addresses(arrays: Mapping[int, npt.NDArray[np.uint8]], bases: npt.NDArray[np.uint64]) -> bool:
    """Whether an array holds the address of an allocation's first byte; others are too easily numbers."""
    words = (data[: len(data) // POINTER_BYTES * POINTER_BYTES].view(np.uint64) for data in arrays.values())
    return any(np.isin(some, bases).any() for some in words)


class _Writer:
    """Writes the description of one launch."""

    def __init__(self, recording: Recording, folder: Path, stem: str) -> None:
        self._recording = recording
        self._folder = folder
        self._stem = stem
        self._written: dict[int, str] = {}
        self._placed: set[int] = set()
        self._names: set[str] = set()
        self._files = 0
        self._newest: list[int] = []  # arrays of the line that is being written

    def write(self) -> str:
        seen = self._recording
        lines = [
            f"# {seen.heading}",
            "",
            "[[launch]]",
            f"kernel = {json.dumps(seen.kernel)}",
            f"block = {list(seen.block)}",
            f"grid = {list(seen.grid)}",
            f"shared_bytes = {seen.shared_bytes}",
            *([] if seen.cluster is None else [f"cluster = {list(seen.cluster)}"]),
            "arguments = [",
        ]
        for number, parameter in enumerate(seen.parameters):
            lines.append(f"  {self._write_parameter(number, parameter)},{self._write_origin()}")
        lines.append("]")
        variables = [f"  {self._write_array(name, base, ScalarType.U8, 0)}," for base, name in seen.variables.items()]
        if variables:
            lines += ["variables = [", *variables, "]"]
        memory = self._write_memory()
        if memory:
            lines += ["memory = [", *memory, "]"]
        return "\n".join(lines) + "\n"

    def _write_memory(self) -> list[str]:
        """Arrays and textures that no argument named."""
        arrays = [base for base in self._recording.arrays if base not in self._written]
        lines = [
            f"  {self._write_array(self._choose_name(f'memory_{number + 1}'), base, ScalarType.U8, 0)},{self._write_origin()}"
            for number, base in enumerate(arrays)
        ]
        for handle, texture in self._recording.textures.items():
            if handle not in self._placed:
                lines.append(f"  {self._write_texture(self._choose_name('texture'), handle, texture)},")
        return lines

    def _write_parameter(self, number: int, parameter: PtxVariable) -> str:
        sources = self._recording.sources
        source = sources[number] if number < len(sources) else None
        name = self._choose_name(source.name if source is not None and source.name else f"argument{number}")
        content = self._recording.content[parameter.offset_bytes :][: parameter.size_bytes]
        if parameter.count > 1:
            return self._write_struct(name, content)
        if parameter.size_bytes == POINTER_BYTES:
            value = int.from_bytes(content, "little")
            if value in self._recording.textures:
                return self._write_texture(name, value, self._recording.textures[value])
            found = self._find(value)
            if found is not None:
                return self._write_array(name, found[0], self._choose_type(parameter, source, found[0]), found[1])
        return _write_scalar(name, _choose_scalar(parameter, source), content)

    def _write_origin(self) -> str:
        """Comment behind a line whose arrays the host is known to have allocated; empty behind others."""
        found = dict.fromkeys(origin for base in self._newest if (origin := self._recording.origins.get(base)))
        self._newest.clear()
        return f"  # {'; '.join(found)}" if found else ""

    def _choose_name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._names:
            number += 1
            name = f"{wanted}_{number}"
        self._names.add(name)
        return name

    def _choose_type(self, parameter: PtxVariable, source: SourceParameter | None, base: int) -> ScalarType:
        """Element type by the source, else by the kernel's accesses; bytes if neither fits the array."""
        size = len(self._recording.arrays[base])
        declared = None if source is None or not source.is_pointer else find_type(source.type)
        use = self._recording.uses.get(parameter.name)
        for kind in (None if declared is None else declared.scalar, None if use is None else use.type):
            if kind in _FORMATS and size % kind.bytes == 0:
                return kind
        return ScalarType.U8

    def _find(self, address: int) -> tuple[int, int] | None:
        """Array that contains an address, and the offset; None for variables, whose addresses are written as numbers."""
        for base, data in self._recording.arrays.items():
            if base <= address < base + len(data) and base not in self._recording.variables:
                return base, address - base
        return None

    def _write_array(self, name: str, base: int, kind: ScalarType, offset: int) -> str:
        if offset % kind.bytes:
            kind = ScalarType.U8
        data = self._recording.arrays[base]
        parts: dict[str, Any] = {"name": name, "type": _name_type(kind), "count": len(data) // kind.bytes}
        if base in self._written:
            del parts["count"]
            parts["alias_of"] = self._written[base]
        else:
            self._written[base] = name
            self._newest.append(base)
            if self._recording.has_addresses:
                parts["base_address"] = base
            parts |= self._write_data(data)
        if offset:
            parts["offset"] = offset // kind.bytes
        return _write_table(parts)

    def _write_data(self, data: npt.NDArray[Any]) -> dict[str, str]:
        """Keys that fill an array."""
        if not data.any():
            return {}
        self._files += 1
        file = f"{self._stem}.{self._files}.bin"
        with atomic_write(self._folder / file, encoding=None) as stream:
            stream.write(np.ascontiguousarray(data).data)
        return {"fill": "file", "file": file}

    def _write_texture(self, name: str, handle: int, texture: TextureInput) -> str:
        """A texture or surface with its own texels; another argument with the same handle gets a copy."""
        depth, height, width, channels = texture.texels.shape
        parts: dict[str, Any] = {"name": name, "type": _name_type(texture.element), "width": width}
        if texture.dimensions > 1:
            parts["height"] = height
        if texture.dimensions > 2:
            parts["depth"] = depth
        elif depth > 1:
            parts["layers"] = depth
        parts |= {
            "channels": channels,
            "filter": "linear" if texture.is_linear_filter else "nearest",
            "address": texture.address_mode,
            "normalized": texture.is_normalized,
            "reads_normalized": texture.reads_normalized,
        }
        if self._recording.has_addresses and handle not in self._placed:
            parts["handle"] = handle
        self._placed.add(handle)
        return _write_table(parts | self._write_data(texture.texels.view(_BITS[texture.texels.itemsize])))

    def _write_struct(self, name: str, content: bytes) -> str:
        members = []
        place = 0
        while place < len(content):
            value = int.from_bytes(content[place : place + POINTER_BYTES], "little")
            is_word = place % POINTER_BYTES == 0 and place + POINTER_BYTES <= len(content)
            found = self._find(value) if is_word else None
            member = self._choose_name(f"{name}_{place}")
            width = POINTER_BYTES
            if is_word and value in self._recording.textures:
                members.append((place, self._write_texture(member, value, self._recording.textures[value])))
            elif found is not None:
                members.append((place, self._write_array(member, found[0], ScalarType.U8, found[1])))
            else:
                width = _WORD_BYTES if place + _WORD_BYTES <= len(content) else 1
                kind = ScalarType.U32 if width == _WORD_BYTES else ScalarType.U8
                if any(content[place : place + width]):
                    members.append((place, _write_scalar(member, kind, content[place : place + width])))
            place += width
        listed = ", ".join(f"{{ at = {at}, {text[2:]}" for at, text in members)
        return f"{{ name = {json.dumps(name)}, size = {len(content)}, members = [{listed}] }}"


def _choose_scalar(parameter: PtxVariable, source: SourceParameter | None) -> ScalarType:
    """Type by the source if it fits the size, as PTX knows no signs; else the parameter's."""
    declared = None if source is None or source.is_pointer else find_type(source.type)
    fits = declared is not None and declared.lanes == 1 and declared.bytes == parameter.size_bytes
    return declared.scalar if declared is not None and fits and declared.scalar in _FORMATS else parameter.type


def _write_scalar(name: str, kind: ScalarType, content: bytes) -> str:
    (value,) = struct.unpack(_FORMATS.get(kind, "<Q"), content)
    shown = _write_float(value) if isinstance(value, float) else str(value)
    return f"{{ name = {json.dumps(name)}, type = {json.dumps(_name_type(kind))}, value = {shown} }}"


def _write_float(value: float) -> str:
    text = repr(value)
    return text if any(letter in text for letter in ".en") else f"{text}.0"


def _name_type(kind: ScalarType) -> str:
    return _NAMES.get(kind, kind.value)


def _write_table(parts: dict[str, Any]) -> str:
    return "{ " + ", ".join(f"{name} = {_write_value(name, value)}" for name, value in parts.items()) + " }"


def _write_value(name: str, value: object) -> str:
    return f"0x{value:x}" if name in ("base_address", "handle") else json.dumps(value)
