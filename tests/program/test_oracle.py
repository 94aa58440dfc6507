"""Our edges against nvdisasm's own basic-block graphs on our fixtures."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpa_lsp.binary.model import Instructions
from gpa_lsp.binary.tool_location import find_tool
from gpa_lsp.program.model import FlowGraph
from tests.binary.seeds import find_fixture_cubins, name_of
from tests.program.bbcfg import build_listed_graphs, compare_steps, read_block_graphs

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(find_tool("nvdisasm") is None, reason="nvdisasm is not installed"),
]

TOO_OLD = re.compile(r"_nvrtc12|sm_7[0-4]")


def choose_cubins() -> list[Path]:
    """Every fixture in the nightly profile; in the short one those with branches of an unusual kind, and every fifteenth of the others."""
    cubins = [path for path in find_fixture_cubins() if not TOO_OLD.search(str(path))]
    if os.environ.get("HYPOTHESIS_PROFILE") == "nightly":
        return cubins
    unusual = re.compile(r"(recursion|jump_table|indirect_call|huge_body|global_atomics)_original|relocatable|linked")
    return [path for number, path in enumerate(cubins) if number % 15 == 0 or unusual.search(path.name)]


def run_nvdisasm(path: Path, *flags: str) -> str:
    tool = find_tool("nvdisasm")
    assert tool is not None
    return subprocess.run([tool, *flags, path], capture_output=True, text=True, check=True, timeout=120).stdout


def build_graphs(path: Path) -> list[tuple[FlowGraph, Instructions]]:
    return build_listed_graphs(run_nvdisasm(path, "-c"))


def compare(path: Path) -> int:
    """Number of steps compared."""
    return compare_steps(build_graphs(path), read_block_graphs(run_nvdisasm(path, "-bbcfg", "-poff")))


def test_steps_as_nvdisasm_draws_them():
    cubins = choose_cubins()
    with ThreadPoolExecutor(2) as executor:
        compared = list(executor.map(compare, cubins))
    assert all(compared), [name_of(path) for path, count in zip(cubins, compared, strict=True) if not count]
