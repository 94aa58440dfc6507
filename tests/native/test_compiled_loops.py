"""Loops that numba compiles: once on a machine, and off every budget."""

import time
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.foundation import kept_files
from gpa_lsp.foundation.work_time import preparing, work_time


def work() -> int:
    """Enough for any clock to see."""
    return sum(range(400_000))


def test_what_is_prepared_is_left_out() -> None:
    before = work_time()
    with preparing():
        work()
        with preparing():  # a function that is compiled may compile another one
            work()
        work()
        assert work_time() == pytest.approx(before, abs=1e-3)
    assert work_time() == pytest.approx(before, abs=1e-3)
    work()
    assert work_time() > before + 1e-3


def test_a_preparation_ends_where_it_failed() -> None:
    with pytest.raises(ValueError, match="no"), preparing():
        raise ValueError("no")
    before = work_time()
    work()
    assert work_time() > before + 1e-3


def test_compiling_is_left_out_once_and_loaded_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(kept_files.FOLDER_VARIABLE, str(tmp_path))
    from gpa_lsp.foundation.native.compiled_loops import compiled

    def add(values: np.ndarray) -> float:
        total = 0.0
        for value in values:
            total += value
        return total

    processor, before = time.thread_time(), work_time()
    for _ in range(2):
        assert compiled(add)(np.arange(10.0)) == 45.0
    assert work_time() - before < (time.thread_time() - processor) / 2
    assert len([one for one in caplog.messages if "once on this machine" in one]) == 1
    before = work_time()
    work()
    assert work_time() > before + 1e-3, "the clock goes on"
