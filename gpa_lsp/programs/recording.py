"""The heaviest launch of each kernel, or a chosen one, kept with its data as a description that the emulator reads: :class:`Recorder`."""

import json
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_bytes, format_count_of
from gpa_lsp.basis.whole_files import open_whole
from gpa_lsp.binary.linkage_names import find_bare_name
from gpa_lsp.emulator.resident import ResidentMemory
from gpa_lsp.launches.model import TextureInput
from gpa_lsp.launches.pointer_uses import PointerUse, find_pointer_uses
from gpa_lsp.launches.source_parameters import SourceParameter
from gpa_lsp.launches.type_names import find_type
from gpa_lsp.programs.loaded_code import find_source
from gpa_lsp.programs.messages import LaunchRequest
from gpa_lsp.programs.model import RecordedLaunch
from gpa_lsp.programs.reached_memory import find_reached_memory
from gpa_lsp.programs.session import KernelTally
from gpa_lsp.ptx.model import PtxVariable
from gpa_lsp.ptx.scalar_types import ScalarType

_POINTER_BYTES = 8
_WORD_BYTES = 4
_TIME_SHARE = 0.1
"""Copies of data may take this part of the time a program runs."""
_MOST_HELD = 4
"""Launches of the largest size that are held at once, of all kernels."""
_FORMATS = {
    ScalarType.S8: "<b", ScalarType.U8: "<B", ScalarType.B8: "<B", ScalarType.S16: "<h", ScalarType.U16: "<H",
    ScalarType.B16: "<H", ScalarType.S32: "<i", ScalarType.U32: "<I", ScalarType.B32: "<I", ScalarType.F32: "<f",
    ScalarType.S64: "<q", ScalarType.U64: "<Q", ScalarType.B64: "<Q", ScalarType.F64: "<d",
}  # fmt: skip
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_NAMES = {ScalarType.B8: "u8", ScalarType.B16: "u16", ScalarType.B32: "u32", ScalarType.B64: "u64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    """The launch and what its memory held before it."""

    request: LaunchRequest
    number: int
    arrays: dict[int, npt.NDArray[np.uint8]]
    """Base of the allocation or variable → its bytes."""
    names: dict[int, str]
    """Of variables."""
    textures: dict[int, TextureInput]
    """Handle → the texture, with texels of its own."""
    has_addresses: bool
    """Arrays hold addresses or handles: everything has to lie where it lay."""

    @property
    def size_bytes(self) -> int:
        """Of all arrays and texels."""
        return sum(data.nbytes for data in self.arrays.values()) + sum(
            one.texels.nbytes for one in self.textures.values()
        )


@dataclass(slots=True, kw_only=True)
class _Kept:
    snapshot: _Snapshot
    warp_instructions: int


class Recorder:
    """Copies what launches read, and keeps that of the heaviest.

    Args:
        limit_bytes: of the data of one launch.
        chosen: the launch of each kernel to keep instead, from 1; None for the heaviest.
    """

    def __init__(self, limit_bytes: int, chosen: int | None = None) -> None:
        self._limit_bytes = limit_bytes
        self._chosen = chosen
        self._started = time.monotonic()
        self._spent_s = 0.0
        self._kept: dict[int, _Kept] = {}
        self._refused: dict[int, str] = {}
        self._stems: set[str] = set()

    def watch(self, tally: KernelTally, request: LaunchRequest, memory: ResidentMemory) -> Callable[[int], None] | None:
        """Copy what a launch reads, where there is time for it; gives what is to be told of its cost."""
        key = id(tally)
        if self._chosen not in (None, tally.launches):
            return None
        begun = time.monotonic()
        if key in self._kept and self._spent_s > _TIME_SHARE * (begun - self._started):
            return None
        snapshot = self._take(tally, request, memory)
        self._spent_s += time.monotonic() - begun
        if snapshot is None:
            return None

        def judge(warp_instructions: int) -> None:
            before = self._kept.get(key)
            if before is None and self._count_held_bytes() + snapshot.size_bytes > _MOST_HELD * self._limit_bytes:
                self._refused.setdefault(key, "too much is kept of other kernels")
            elif before is None or warp_instructions > before.warp_instructions:
                self._kept[key] = _Kept(snapshot=snapshot, warp_instructions=warp_instructions)
                self._refused.pop(key, None)

        return judge

    def _take(self, tally: KernelTally, request: LaunchRequest, memory: ResidentMemory) -> _Snapshot | None:
        memory.refresh_textures()
        reached = find_reached_memory(tally, request, memory)
        held = reached.size_bytes
        if held > self._limit_bytes:
            limit = format_bytes(self._limit_bytes)
            self._refused.setdefault(id(tally), f"its arrays have {format_bytes(held)}; up to {limit} are kept")
            return None
        return _Snapshot(
            request=request,
            number=tally.launches,
            arrays={base: memory.bytes_at(base, size).copy() for base, size in reached.arrays.items()},
            names=reached.names,
            textures={handle: replace(one, texels=one.texels.copy()) for handle, one in reached.textures.items()},
            has_addresses=reached.has_addresses,
        )

    def explain(self, tally: KernelTally) -> str:
        """Why no launch of a kernel was kept; empty where one was."""
        if id(tally) in self._kept:
            return ""
        is_short = self._chosen is not None and tally.launches < self._chosen
        otherwise = f"it was launched {format_count_of(tally.launches, 'time')}" if is_short else "none ran to its end"
        return self._refused.get(id(tally), otherwise)

    def write(self, tally: KernelTally, folder: Path) -> RecordedLaunch | None:
        """Write the description of a kernel's heaviest launch and its data into a folder; None where none was kept.

        Raises:
            OSError: it cannot be written.
        """
        kept = self._kept.get(id(tally))
        if kept is None:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        module = folder / tally.module.path.name
        module.write_bytes(tally.module.path.read_bytes())
        stem = self._choose_stem(find_bare_name(tally.facts.kernel.name))
        path = folder / f"{stem}.launch.toml"
        text = _Writer(tally, kept.snapshot, folder, stem).write()
        with open_whole(path) as stream:
            stream.write(text)
        return RecordedLaunch(
            description=path,
            module=module,
            warp_instructions=kept.warp_instructions,
            number=kept.snapshot.number,
            source=find_source(tally.facts.kernel),
            is_heaviest=self._chosen is None,
        )

    def _count_held_bytes(self) -> int:
        return sum(one.snapshot.size_bytes for one in self._kept.values())

    def _choose_stem(self, name: str) -> str:
        """A name that no other kernel of this run has; files of earlier runs are replaced."""
        wanted = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name)[:80] or "kernel"
        stem, number = wanted, 1
        while stem in self._stems:
            number += 1
            stem = f"{wanted}_{number}"
        self._stems.add(stem)
        return stem


class _Writer:
    """The description of one launch."""

    def __init__(self, tally: KernelTally, snapshot: _Snapshot, folder: Path, stem: str) -> None:
        self._tally = tally
        self._snapshot = snapshot
        self._folder = folder
        self._stem = stem
        self._kernel = tally.facts.kernel
        self._sources = tally.facts.sources
        self._uses: dict[str, PointerUse] = find_pointer_uses(self._kernel)
        self._written: dict[int, str] = {}
        self._placed: set[int] = set()
        self._names: set[str] = set()
        self._files = 0

    def write(self) -> str:
        request = self._snapshot.request
        lines = [
            f"# Launch {self._snapshot.number} of this kernel, recorded while the program ran.",
            "",
            "[[launch]]",
            f"kernel = {json.dumps(self._kernel.name)}",
            f"block = {list(request.block)}",
            f"grid = {list(request.grid)}",
            f"shared_bytes = {request.shared_bytes}",
            "arguments = [",
        ]
        for number, parameter in enumerate(self._kernel.parameters):
            lines.append(f"  {self._write_parameter(number, parameter)},")
        lines.append("]")
        variables = [
            f"  {self._write_array(name, base, ScalarType.U8, 0)}," for base, name in self._snapshot.names.items()
        ]
        if variables:
            lines += ["variables = [", *variables, "]"]
        memory = self._write_memory()
        if memory:
            lines += ["memory = [", *memory, "]"]
        return "\n".join(lines) + "\n"

    def _write_memory(self) -> list[str]:
        """What no argument named."""
        arrays = [base for base in self._snapshot.arrays if base not in self._written]
        lines = [
            f"  {self._write_array(self._choose_name(f'memory_{number + 1}'), base, ScalarType.U8, 0)},"
            for number, base in enumerate(arrays)
        ]
        for handle, texture in self._snapshot.textures.items():
            if handle not in self._placed:
                lines.append(f"  {self._write_texture(self._choose_name('texture'), handle, texture)},")
        return lines

    def _write_parameter(self, number: int, parameter: PtxVariable) -> str:
        source = self._sources[number] if number < len(self._sources) else None
        name = self._choose_name(source.name if source is not None and source.name else f"argument{number}")
        content = self._snapshot.request.parameters[parameter.offset_bytes :][: parameter.size_bytes]
        if parameter.count > 1:
            return self._write_struct(name, content)
        if parameter.size_bytes == _POINTER_BYTES:
            number = int.from_bytes(content, "little")
            if number in self._snapshot.textures:
                return self._write_texture(name, number, self._snapshot.textures[number])
            found = self._find(number)
            if found is not None:
                return self._write_array(name, found[0], self._choose_type(parameter, source, found[0]), found[1])
        return _write_scalar(name, parameter.type, content)

    def _choose_name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._names:
            number += 1
            name = f"{wanted}_{number}"
        self._names.add(name)
        return name

    def _choose_type(self, parameter: PtxVariable, source: SourceParameter | None, base: int) -> ScalarType:
        """Of the source, else as the kernel accesses it; bytes where neither goes with the array."""
        size = len(self._snapshot.arrays[base])
        declared = None if source is None or not source.is_pointer else find_type(source.type)
        use = self._uses.get(parameter.name)
        for kind in (None if declared is None else declared.scalar, None if use is None else use.type):
            if kind in _FORMATS and size % kind.bytes == 0:
                return kind
        return ScalarType.U8

    def _find(self, address: int) -> tuple[int, int] | None:
        """The array an address lies in, and how far; None for a variable, whose address is written as the number it is."""
        for base, data in self._snapshot.arrays.items():
            if base <= address < base + len(data) and base not in self._snapshot.names:
                return base, address - base
        return None

    def _write_array(self, name: str, base: int, kind: ScalarType, offset: int) -> str:
        if offset % kind.bytes:
            kind = ScalarType.U8
        data = self._snapshot.arrays[base]
        parts: dict[str, Any] = {"name": name, "type": _name_type(kind), "count": len(data) // kind.bytes}
        if base in self._written:
            del parts["count"]
            parts["alias_of"] = self._written[base]
        else:
            self._written[base] = name
            if self._snapshot.has_addresses:
                parts["base_address"] = base
            parts |= self._write_data(data)
        if offset:
            parts["offset"] = offset // kind.bytes
        return _write_table(parts)

    def _write_data(self, data: npt.NDArray[Any]) -> dict[str, str]:
        """What fills an array."""
        if not data.any():
            return {}
        self._files += 1
        file = f"{self._stem}.{self._files}.bin"
        data.tofile(self._folder / file)
        return {"fill": "file", "file": file}

    def _write_texture(self, name: str, handle: int, texture: TextureInput) -> str:
        """A texture or surface with texels of its own; another argument of the same handle has a copy of them."""
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
        if self._snapshot.has_addresses and handle not in self._placed:
            parts["handle"] = handle
        self._placed.add(handle)
        return _write_table(parts | self._write_data(texture.texels.view(_BITS[texture.texels.itemsize])))

    def _write_struct(self, name: str, content: bytes) -> str:
        members = []
        place = 0
        while place < len(content):
            value = int.from_bytes(content[place : place + _POINTER_BYTES], "little")
            is_word = place % _POINTER_BYTES == 0 and place + _POINTER_BYTES <= len(content)
            found = self._find(value) if is_word else None
            member = self._choose_name(f"{name}_{place}")
            if is_word and value in self._snapshot.textures:
                members.append((place, self._write_texture(member, value, self._snapshot.textures[value])))
                place += _POINTER_BYTES
                continue
            if found is not None:
                members.append((place, self._write_array(member, found[0], ScalarType.U8, found[1])))
                place += _POINTER_BYTES
                continue
            width = _WORD_BYTES if place + _WORD_BYTES <= len(content) else 1
            if any(content[place : place + width]):
                kind = ScalarType.U32 if width == _WORD_BYTES else ScalarType.U8
                members.append((place, _write_scalar(member, kind, content[place : place + width])))
            place += width
        listed = ", ".join(f"{{ at = {at}, {text[2:]}" for at, text in members)
        return f"{{ name = {json.dumps(name)}, size = {len(content)}, members = [{listed}] }}"


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
