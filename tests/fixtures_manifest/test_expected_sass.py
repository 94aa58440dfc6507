"""Each fixture's SASS shows its pattern, and the improved twin's does not: the manifest's expectations against nvdisasm."""

import re

import pytest

from gpa_lsp.code.binary.tool_location import find_tool
from tests.binary.seeds import read_fixture
from tests.binary.together import disassemble_fixtures

from .manifest import FIXTURES, Row, read_rows

INSTRUCTION = re.compile(r"(?:@!?U?P\w+ +)?(?P<opcode>[\w.]+)")


def disassemble(path: str) -> list[tuple[str, str]]:
    """Opcode with modifiers and whole text of each instruction, in order, without the padding."""
    functions = disassemble_fixtures()[read_fixture(FIXTURES / path).sha256]
    texts = [text for instructions in functions.values() for text in instructions.texts]
    found = [(match["opcode"], text) for text in texts if (match := INSTRUCTION.match(text))]
    return [pair for pair in found if pair[0] != "NOP"]


def count_opcode(pattern: str, opcodes: list[str]) -> int:
    """Number of opcodes that begin with `pattern`, a regular expression that ends at a dot or at the end.

    >>> count_opcode("LDG", ["LDG.E.128", "LDGSTS.E", "LDG"])
    2
    """
    return sum(re.match(f"(?:{pattern})(?:\\.|$)", opcode) is not None for opcode in opcodes)


def find_violations(row: Row, instructions: list[tuple[str, str]]) -> list[str]:
    """The expectations of one row that its instructions do not meet."""
    opcodes = [opcode for opcode, _ in instructions]
    listing = "".join(f"{text}\n" for _, text in instructions)
    violations = [f"no {pattern}" for pattern in row.get("expects", ()) if not count_opcode(pattern, opcodes)]
    violations += [f"has {pattern}" for pattern in row.get("absent", ()) if count_opcode(pattern, opcodes)]
    violations += [f"no line {pattern}" for pattern in row.get("expects_lines", ()) if not re.search(pattern, listing)]
    violations += [f"has line {pattern}" for pattern in row.get("absent_lines", ()) if re.search(pattern, listing)]
    for pattern, least in row.get("at_least", {}).items():
        violations += [f"fewer than {least} {pattern}"] if count_opcode(pattern, opcodes) < least else []
    for pattern, most in row.get("at_most", {}).items():
        violations += [f"more than {most} {pattern}"] if count_opcode(pattern, opcodes) > most else []
    return violations


@pytest.mark.oracle
@pytest.mark.skipif(find_tool("nvdisasm") is None, reason="nvdisasm's wheel is not installed")
def test_sass_shows_what_the_manifest_expects() -> None:
    rows = [row for row in read_rows() if "pattern" in row]
    listings = [disassemble(row["path"]) for row in rows]
    assert all(listings)
    found = {row["path"]: find_violations(row, listing) for row, listing in zip(rows, listings, strict=True)}
    assert {path: violations for path, violations in found.items() if violations} == {}


def test_every_twin_but_launch_and_resource_patterns_states_a_difference() -> None:
    # What these patterns show is in the launch, the resources or the data, not in the instructions.
    elsewhere = {"tiny_blocks", "low_occupancy", "branch_divergence", "inline_chain"}
    rows = [row for row in read_rows() if "pattern" in row and row["pattern"] not in elsewhere]
    for row in rows:
        twins = [other for other in rows if other["pattern"] == row["pattern"]]
        keys = ("expects", "absent", "expects_lines", "absent_lines", "at_least", "at_most")
        stated = {other["role"]: [other.get(key) for key in keys] for other in twins}
        assert stated["original"] != stated["improved"], row["pattern"]


def test_violations_are_found() -> None:
    row: Row = {"expects": ["STL"], "absent": ["LDG"], "expects_lines": ["R9"], "absent_lines": ["R1,"]}
    row |= {"at_least": {"LDG": 2}, "at_most": {"LDG": 0}}
    listing = [("LDG.E", "LDG.E R1, [R2.64]")]
    assert len(find_violations(row, listing)) == 6
    assert find_violations({"expects": ["LDG"], "absent": ["STL"]}, listing) == []
