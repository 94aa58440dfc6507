"""Each fixture's SASS shows its pattern, and the improved twin's does not: the manifest's expectations against nvdisasm."""

import importlib.util
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .manifest import FIXTURES, Row, read_rows

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?P<text>(?:@!?U?P\w+ +)?(?P<opcode>[\w.]+).*?)\s*;", re.MULTILINE)


def find_nvdisasm() -> Path | None:
    """The nvdisasm of NVIDIA's wheel, or None."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec and spec.submodule_search_locations else []
    found = [Path(folder) / "cu13" / "bin" / name for folder in folders for name in ("nvdisasm", "nvdisasm.exe")]
    return next((path for path in found if path.is_file()), None)


def disassemble(path: str) -> list[tuple[str, str]]:
    """Opcode with modifiers and whole text of each instruction, in order, without the padding."""
    tool = find_nvdisasm()
    assert tool is not None
    done = subprocess.run([str(tool), "-c", str(FIXTURES / path)], capture_output=True, text=True, check=True)
    found = [(match["opcode"], re.sub(r"\s+", " ", match["text"])) for match in INSTRUCTION.finditer(done.stdout)]
    return [pair for pair in found if pair[0] != "NOP"]


def count_opcode(pattern: str, opcodes: list[str]) -> int:
    """How many opcodes begin with `pattern`, a regular expression that ends at a dot or at the end.

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


def choose_rows(*, every_architecture: bool) -> list[Row]:
    """Rows to disassemble: all of them, or one architecture a twin, in turn, since each run of nvdisasm costs a third of a second."""
    rows = [row for row in read_rows() if "pattern" in row]
    if every_architecture:
        return rows
    by_twin: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_twin.setdefault((row["pattern"], row["role"]), []).append(row)
    return [choices[turn % len(choices)] for turn, (_, choices) in enumerate(sorted(by_twin.items()))]


@pytest.mark.oracle
@pytest.mark.skipif(find_nvdisasm() is None, reason="nvdisasm's wheel is not installed")
def test_sass_shows_what_the_manifest_expects() -> None:
    rows = choose_rows(every_architecture=os.environ.get("HYPOTHESIS_PROFILE") == "nightly")
    with ThreadPoolExecutor(2) as executor:
        listings = list(executor.map(disassemble, [row["path"] for row in rows]))
    assert all(listings)
    found = {row["path"]: find_violations(row, listing) for row, listing in zip(rows, listings, strict=True)}
    assert {path: violations for path, violations in found.items() if violations} == {}


def test_the_short_run_sees_every_twin_and_every_architecture() -> None:
    rows = choose_rows(every_architecture=False)
    assert {row["architectures"][0] for row in rows} == set(ARCHITECTURES)
    assert {(row["pattern"], row["role"]) for row in rows} == {
        (row["pattern"], row["role"]) for row in choose_rows(every_architecture=True)
    }


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
