"""NVIDIA's own word on lines, inline chains, PTX lines and calls: one annotated listing per image, parsed."""

import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.foundation.locations import join_source_path

VOLTA, TURING = 70, 75
PTX_PREFIX = ".nv_debug_ptx_txt"
HEADING = re.compile(r"\s*//-+ \.text\.(\S*)")
LINE = re.compile(r'\s*//## File "(.*?)", line (\d+)')
INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*);")
CALL = re.compile(r"\bCALL\S*\s+`\(([^.)]\S*)\)")


@dataclass(slots=True)
class ListedFunction:
    """The facts a listing states about one function section.

    Attributes:
        pc_offsets: of the instructions.
        chains: per instruction, the (file, line) frames last announced, innermost first; empty before the first one.
        ptx: per instruction, (section, line) of the PTX last announced, None before the first one.
        calls: pc offset → symbol, for calls of a symbol.
    """

    pc_offsets: list[int] = field(default_factory=list)
    chains: list[tuple[tuple[str, int], ...]] = field(default_factory=list)
    ptx: list[tuple[str, int] | None] = field(default_factory=list)
    calls: dict[int, str] = field(default_factory=dict)


@cache
def list_image(path: Path) -> dict[str, ListedFunction]:
    """Let nvdisasm annotate an image: function name → what it says. The test is skipped where the tool is not installed.

    ``-gi`` announces the same innermost lines as ``-g``, with the chain behind them.
    """
    tool = find_tool("nvdisasm")
    if tool is None:
        pytest.skip("nvdisasm is not installed")
    with tempfile.TemporaryDirectory() as folder:
        known = _pass_off_as_turing(path, Path(folder))
        command: list[str | Path] = [tool, "-c", "-gi", "-gp", known]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    functions: dict[str, ListedFunction] = {}
    current = ListedFunction()
    chain: list[tuple[str, int]] = []
    ptx: tuple[str, int] | None = None
    is_new = True
    for row in text.splitlines():
        if heading := HEADING.match(row):
            current = functions.setdefault(heading[1], ListedFunction())
            chain, ptx = [], None
        elif (place := LINE.match(row)) and place[1].startswith(PTX_PREFIX):
            ptx = (place[1], int(place[2]))
        elif place:
            chain = [] if is_new else chain
            chain = [*chain, (join_source_path("", place[1]), int(place[2]))]
            is_new = False
        elif instruction := INSTRUCTION.match(row):
            current.pc_offsets.append(int(instruction[1], 16))
            current.chains.append(tuple(chain))
            current.ptx.append(ptx)
            if call := CALL.search(instruction[2]):
                current.calls[int(instruction[1], 16)] = call[1]
            is_new = True
    return functions


def _pass_off_as_turing(path: Path, folder: Path) -> Path:
    """The image, or a copy for sm_75 of one for sm_70, which nvdisasm of CUDA 13 refuses although it decodes the instructions."""
    image = bytearray(path.read_bytes())
    if image[8] >= 8 or image[48] != VOLTA:
        return path
    image[48] = image[50] = TURING
    copy = folder / path.name
    copy.write_bytes(image)
    return copy
