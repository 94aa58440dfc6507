"""The core is compiled once, and numpy does without it."""

from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.native import shared_library as core
from gpa_lsp.native.c_compiler import find_c_compiler

needs_compiler = pytest.mark.skipif(find_c_compiler() is None, reason="there is no C compiler")


@needs_compiler
def test_the_core_is_compiled_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPA_LSP_CACHE_DIR", str(tmp_path))
    first = core._build()
    monkeypatch.setattr(core, "compile_library", lambda *_, **__: pytest.fail("compiled again"))
    assert core._build() == first
    found = core.Core(core._open(first, "core"))
    numbers = np.empty(4, np.int64)
    assert found.has_done("number_by_key", np.array([7, 3, 7, 7], np.int64), 4, numbers)
    assert numbers.tolist() == [0, 0, 1, 2]


def test_without_a_compiler_there_is_no_core_and_it_is_said_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPA_LSP_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv(core.VARIABLE, raising=False)
    monkeypatch.setattr(core, "find_c_compiler", lambda: None)
    monkeypatch.setattr(core, "_FINDER", core._Finder())
    assert core.find_core() is None
    assert "cc" in core.describe_core()


def test_a_variable_leaves_all_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(core.VARIABLE, "0")
    assert core.find_core() is None
    assert core.describe_core() == "GPA_LSP_COMPILED_CORE=0"


@needs_compiler
def test_what_leads_nowhere_is_refused() -> None:
    found = core.find_core()
    assert found is not None
    masks, first, addresses = np.array([3], np.uint32), np.array([1], np.uint64), np.zeros(2, np.uint64)
    rows, room = np.zeros(1, np.int64), np.zeros((1, 32), np.uint64)
    lanes, counts = np.zeros((1, 32), np.int64), np.zeros(1, np.int64)
    assert not found.has_done("gather_lanes", masks, first, addresses, 2, rows, 1, room, lanes, counts)
    assert not found.has_done(
        "sum_columns", np.array([2], np.int64), np.ones((1, 1), np.int64), 1, 1, 2, np.zeros((2, 1), np.int64)
    )
