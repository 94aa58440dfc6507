"""NVIDIA's own word on what each instruction reads and writes: nvdisasm's register life ranges, parsed.

``nvdisasm -plr -lrm narrow`` puts a table beside the listing, one column per register in groups for general registers, predicates, uniform
registers and uniform predicates: ``^`` written here, ``v`` read here, ``x`` both, ``:`` in use. Nothing is marked in code it cannot reach.

It refuses images of CUDA 12 and before, and starting it takes most of the time, so the code of many functions, of any CUDA, is wrapped into
one new image. Only functions with indirect jumps or relocated calls must come in an image of their own, whose tables say where those go.
"""

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from gpa_lsp.code.binary.model import ResourceKind, encode_resource
from gpa_lsp.code.binary.tool_location import find_tool
from tests.binary.elf_builder import ENTRY, EXECUTABLE, ElfBuilder

KINDS = {
    "GPR": ResourceKind.REGISTER,
    "PRED": ResourceKind.PREDICATE,
    "UGPR": ResourceKind.UNIFORM_REGISTER,
    "UPRED": ResourceKind.UNIFORM_PREDICATE,
}
HEADING = re.compile(r"\s*//-+ \.text\.(\S+)")
INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
LABEL = re.compile(r"(\.L_x_\d+):")
TABLE = "// |"
NEW_ABI = 8


@dataclass(slots=True)
class ListedFunction:
    """The facts a listing states about one function section, by pc offset.

    Attributes:
        texts: as listed, labels and all.
        reads: resource numbers.
        writes: resource numbers.
        labels: label → pc offset.
    """

    texts: dict[int, str] = field(default_factory=dict)
    reads: dict[int, frozenset[int]] = field(default_factory=dict)
    writes: dict[int, frozenset[int]] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)


def has_new_layout(path: Path) -> bool:
    """Whether nvdisasm prints life ranges for an image as it is."""
    return path.read_bytes()[8] >= NEW_ABI


def read_life_ranges(path: Path) -> dict[str, ListedFunction]:
    """Let nvdisasm list an image with life ranges: function name → what it says. The test is skipped where the tool is not installed."""
    tool = find_tool("nvdisasm")
    if tool is None:
        pytest.skip("nvdisasm is not installed")
    command = [str(tool), "-c", "-plr", "-lrm", "narrow", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return parse_life_ranges(text.splitlines())


def wrap_functions(codes: Mapping[str, bytes], sm: int) -> bytes:
    """An image of CUDA 13 with nothing but functions of the given names and code; sm_70 is passed off as sm_75."""
    builder = ElfBuilder(sm=max(sm, 75))
    for index, (name, code) in enumerate(codes.items(), start=1):
        section = builder.add(f".text.{name}", code, flags=2 | EXECUTABLE, info=255 << 24 | index)
        builder.add_symbol(name, section, other=ENTRY, size=len(code))
    return builder.build()


def parse_life_ranges(lines: Iterable[str]) -> dict[str, ListedFunction]:
    """Parse a listing with narrow life ranges."""
    functions: dict[str, ListedFunction] = {}
    current = ListedFunction()
    groups: list[tuple[str, int, int]] = []
    columns: list[tuple[ResourceKind, int, int]] = []
    pending: list[str] = []
    for line in lines:
        if heading := HEADING.match(line):
            current = functions.setdefault(heading[1], ListedFunction())
            columns = []
        code, separator, table = line.rpartition(TABLE)
        if label := LABEL.match(line):
            pending.append(label[1])
        if not separator:
            continue
        instruction = INSTRUCTION.match(code)
        if instruction is None:
            groups = _find_groups(table) or groups
            if "#" in table:
                columns = [(KINDS[name], table.index("#", start, end) + 2, end) for name, start, end in groups]
            continue
        pc_offset = int(instruction[1], 16)
        current.labels.update(dict.fromkeys(pending, pc_offset))
        pending.clear()
        marks = list(_read_marks(table, columns))
        current.texts[pc_offset] = instruction[2]
        current.reads[pc_offset] = frozenset(number for number, mark in marks if mark in "vx")
        current.writes[pc_offset] = frozenset(number for number, mark in marks if mark in "^x")
    return functions


def _find_groups(table: str) -> list[tuple[str, int, int]]:
    """The groups a line of the table's head names, with the span of each."""
    bounds = [-1, *(index for index, character in enumerate(table) if character == "|")]
    spans = [(table[start + 1 : end].strip(), start + 1, end) for start, end in pairwise(bounds)]
    return [span for span in spans if span[0] in KINDS]


def _read_marks(table: str, columns: Iterable[tuple[ResourceKind, int, int]]) -> Iterator[tuple[int, str]]:
    for kind, start, end in columns:
        for index, mark in enumerate(table[start:end]):
            if mark in "^vx":
                yield encode_resource(kind, index), mark
