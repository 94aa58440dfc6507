"""The hazard tables against what NVIDIA's assembler really encodes.

``encoded_distances.toml`` holds, per compute capability, distances at which the compiler left no slack. A table that asks for more would call
correct code wrong; one whose upper bound is lower would explain too little of a ``wait``.
"""

import tomllib
from pathlib import Path

import pytest

from gpa_lsp.gpu.arch.hazards import CycleBounds
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture

DISTANCES: dict[str, dict[str, int]] = tomllib.loads(
    (Path(__file__).parent / "encoded_distances.toml").read_text(encoding="utf-8")
)


def find_bounds(architecture: Architecture, pair: str) -> CycleBounds | None:
    writer, _, reader = pair.partition(" > ")
    is_guard = reader.startswith("@")
    reader = reader.removeprefix("@")
    result_register = 1 if writer.endswith(".1") else 0
    writer = writer.removesuffix(".1")
    if writer.startswith(("UISETP", "UPLOP3")):
        return architecture.find_uniform_predicate_latency(writer, reader, is_guard=is_guard)
    if is_guard or writer.endswith("SETP") or writer.startswith("PLOP3"):
        return architecture.find_predicate_latency(writer, reader, is_guard=is_guard)
    if writer.startswith("U") or writer == "R2UR":
        return architecture.find_uniform_latency(writer, reader)
    return architecture.find_register_latency(writer, reader, result_register=result_register)


@pytest.mark.parametrize("capability", DISTANCES)
def test_tables_allow_what_the_assembler_encodes(capability: str) -> None:
    major, _, minor = capability.partition(".")
    architecture = find_architecture((int(major), int(minor)))
    wrong = []
    for pair, cycles in DISTANCES[capability].items():
        bounds = find_bounds(architecture, pair)
        if bounds is None or not bounds.low_cycles <= cycles <= bounds.high_cycles:
            wrong.append(f"{pair}: {cycles} encoded, table {bounds}")
    assert not wrong
    assert len(DISTANCES[capability]) >= 45
