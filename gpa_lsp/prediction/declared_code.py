"""Machine code without PTX → PTX that declares its kernels and variables, and holds none of its instructions: :func:`declare_code`."""

import re
from pathlib import Path

import numpy as np

from gpa_lsp.binary.cubin import Symbols
from gpa_lsp.binary.elf import ElfImage, read_elf
from gpa_lsp.binary.elf_attributes import walk_records

_INFO = ".nv.info."
_PARAMETER = 0x17
_PARAMETER_BYTES = 12
_SIZE_SHIFT = 18
"""Source: EIATTR_KPARAM_INFO as cuobjdump and nvdisasm 13.0 show it: index, ordinal, offset, and the size in the highest 14 bits."""
_WORDS = {1: ".b8", 2: ".b16", 4: ".b32", 8: ".b64"}
_MOST_ALIGNED = 16
_MOST_INITIAL_BYTES = 1 << 20
_NAME = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_SPACES = ((".nv.global.init", ".global"), (".nv.global", ".global"), (".nv.constant3", ".const"))
_OBJECT = 1
_HEAD = ".version 8.0\n.target sm_{capability}\n.address_size 64\n"


def declare_code(image: bytes, capability: tuple[int, int], *, path: Path | None = None) -> str:
    """Declare what an image has; kernels whose parameters it does not tell are left out.

    Args:
        image: of machine code.
        capability: it is for.
        path: for messages.

    Raises:
        InputError: it is damaged.
    """
    elf = read_elf(image, path=path)
    lines = [_HEAD.format(capability=capability[0] * 10 + capability[1]), *_declare_variables(elf)]
    for index, name in enumerate(elf.section_names):
        if name.startswith(_INFO) and _NAME.fullmatch(name.removeprefix(_INFO)):
            declared = _declare_parameters(elf, index)
            if declared is not None:
                lines.append(f".visible .entry {name.removeprefix(_INFO)}({declared}) {{ ret; }}")
    return "\n".join(lines) + "\n"


def _declare_parameters(elf: ElfImage, section: int) -> str | None:
    """None where they are not laid out as PTX does."""
    found: dict[int, tuple[int, int]] = {}
    for attribute, _, payload in walk_records(elf.section_bytes(section), path=elf.path, place=elf.place(section)):
        if attribute == _PARAMETER and len(payload) >= _PARAMETER_BYTES:
            number, offset = (int.from_bytes(payload[at : at + 2], "little") for at in (4, 6))
            found[number] = (offset, int.from_bytes(payload[8:12], "little") >> _SIZE_SHIFT)
    if sorted(found) != list(range(len(found))):
        return None
    parts, end = [], 0
    for number in range(len(found)):
        offset, size = found[number]
        alignment = size if size in _WORDS else min(_MOST_ALIGNED, offset & -offset or _MOST_ALIGNED)
        if size not in _WORDS:
            alignment = next(one for one in (8, 4, 2, 1) if one <= alignment and -(-end // one) * one == offset)
        if -(-end // alignment) * alignment != offset or not size:
            return None
        word = _WORDS.get(size)
        parts.append(
            f".param {word} parameter{number}" if word else f".param .align {alignment} .b8 parameter{number}[{size}]"
        )
        end = offset + size
    return ", ".join(parts)


def _declare_variables(elf: ElfImage) -> list[str]:
    symbols = Symbols.of(elf)
    lines = []
    for number in np.flatnonzero((symbols.table["info"] & 15) == _OBJECT).tolist():
        row = symbols.table[number]
        index, size, name = int(row["section"]), int(row["size"]), symbols.name(number)
        if index >= len(elf.section_names) or not size or not _NAME.fullmatch(name):
            continue
        space = next((space for begin, space in _SPACES if elf.section_names[index].startswith(begin)), None)
        if space is not None:
            start = int(row["value"])
            content = (
                b"" if elf.section_names[index] == ".nv.global" else elf.section_bytes(index)[start : start + size]
            )
            listed = ", ".join(map(str, content)) if any(content) and size <= _MOST_INITIAL_BYTES else ""
            lines.append(f"{space} .align 16 .b8 {name}[{size}]{f' = {{{listed}}}' if listed else ''};")
    return lines
