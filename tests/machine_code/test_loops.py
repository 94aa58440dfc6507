"""Loops over arrays do what Python and numpy do: integers wrap at 64 bits, quotients round down, records and views are written in place."""

import random
import time
import zlib
from enum import IntEnum
from math import ceil, inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gpa_lsp.foundation import kept_files
from gpa_lsp.foundation.machine_code import loops
from gpa_lsp.foundation.machine_code.loops import Loops, compiled, part
from gpa_lsp.foundation.machine_code.types import leading_zeros, unrolled
from gpa_lsp.foundation.machine_code.values import TranslationError
from gpa_lsp.foundation.work_time import preparing, work_time

Integers = np.ndarray[Any, Any]
ENTRY = np.dtype([("key", np.int32), ("seen", np.uint8), ("ready", np.float64, (3,))])
_MOST = 7


class Kind(IntEnum):
    """Two."""

    FEW = 3
    MANY = 4


class Table(NamedTuple):
    """Columns."""

    entries: Integers
    marks: Integers
    grid: Integers
    limit: int


@compiled
def quotients(values: Integers, found: Integers) -> int:
    """Quotient and remainder of each value by each other, and the value put together from them."""
    place = 0
    for one in values:
        for other in values:
            if other != 0:
                found[0, place], found[1, place] = one // other, one % other
                place += 1
    return place


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16])
def test_quotients_round_down(dtype: type) -> None:
    values = np.array([-9, -8, -1, 0, 1, 2, 7, 8], dtype)
    found = np.zeros((2, 64), np.int64)
    pairs = [(int(one), int(other)) for one in values for other in values if other]
    assert quotients(values, found) == len(pairs)
    assert found[:, : len(pairs)].tolist() == [[a // b for a, b in pairs], [a % b for a, b in pairs]]


@part
def _find_ends(row: Integers) -> tuple[int, float]:
    lowest, most = row[0], 0.0
    for one in row:
        lowest = min(lowest, one)
        if one > most:
            most = one + 0.5
    if most == 0.0:
        return -1, inf
    return lowest, most


@compiled
def fill(table: Table, times: float) -> bool:
    """Records, columns of truth values, and rows of an array of two dimensions."""
    for number in range(len(table.entries)):
        entry, row = table.entries[number], table.grid[number]
        lowest, most = _find_ends(row)
        entry.key = lowest * table.limit
        entry.seen |= 1 << number
        entry.ready[:] = times
        entry.ready[1] += most / 2
        table.marks[number] = entry.key < 0 or number == Kind.FEW
        row[row.shape[0] - 1] = number
    total = 0
    for place in unrolled(2):
        total += table.grid[place, 0]
    for reason, until in ((1, times), (2, 9.0)):
        total += reason if until > 5 else 100
    return total == table.grid[0, 0] + table.grid[1, 0] + 102 and not table.marks[0]


def test_records_columns_and_rows_are_written_in_place() -> None:
    grid = np.arange(20).reshape(4, 5)[:, ::2].copy()
    grid[2] = -1
    table = Table(np.zeros(4, ENTRY), np.zeros(4, bool), grid, 10)
    before = grid.copy()
    assert fill(table, 2.0) == 1
    assert table.entries["key"].tolist() == [0, 50, -10, 150]
    assert table.entries["seen"].tolist() == [1, 2, 4, 8]
    assert table.marks.tolist() == [False, False, True, True]
    assert table.grid[:, -1].tolist() == [0, 1, 2, 3]
    assert table.grid[:, :-1].tolist() == before[:, :-1].tolist()
    assert table.entries["ready"][2].tolist() == [2.0, inf, 2.0]
    assert table.entries["ready"][0, 0] == 2.0


@compiled
def add_up(values: Integers, share: float) -> int:
    """Strided views, unsigned numbers, floats, and what Python has built in."""
    total = 0
    for place in range(len(values) - 1, -1, -1):
        total += int(values[place]) if values[place] > 3 else -_MOST
    digits = 64 - leading_zeros(total)
    return max(total, 1, digits) * 1000 + ceil(total / 2 * share) * 10 + min(digits, 9)


@pytest.mark.parametrize("dtype", [np.uint64, np.int64, np.uint8, np.float64])
def test_views_of_every_type_are_read(dtype: type) -> None:
    values = np.arange(40).astype(dtype)[3::5]
    total = sum(int(one) if one > 3 else -_MOST for one in values)
    assert add_up(values, 0.5) == total * 1000 + ceil(total / 4) * 10 + min(total.bit_length(), 9)


@compiled
def mix(values: Integers, found: Integers) -> None:
    """Products that wrap, and shifts of signed numbers."""
    for place in range(len(values)):
        mixed = values[place] * -7046029254386353131
        found[place] = (mixed ^ (mixed >> 32)) & ((1 << 40) - 1)


def test_products_wrap() -> None:
    random_ = random.Random(3)
    values = np.array([random_.randint(-(1 << 62), 1 << 62) for _ in range(100)])
    found = np.zeros(100, np.int64)
    mix(values, found)
    for value, one in zip(values.tolist(), found.tolist(), strict=True):
        mixed = (value * -7046029254386353131 + (1 << 63)) % (1 << 64) - (1 << 63)
        assert one == (mixed ^ (mixed >> 32)) & ((1 << 40) - 1)


def read(text: str, folder: Path, **names: Any) -> Any:
    folder = folder / str(zlib.crc32(text.encode()))  # a module is read once
    folder.mkdir(exist_ok=True)
    path = folder / "made.py"
    path.write_text(text)
    space: dict[str, Any] = {"compiled": compiled, "part": part, "np": np, "__name__": "made", **names}
    exec(compile(text, str(path), "exec"), space)
    return space["f"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x = 0\nx = 1.5\nreturn x", "1.5 is no s64"),
        ("return sorted(values)", "sorted is unknown"),
        ("while True:\n    yield 1", "there is no Yield"),
        ("return values[0], values[1]", "only an integer can be given back"),
        ("return values.mean", "there is no mean"),
        (
            "one = values\nfor place in range(2):\n    one = values[1:]\nreturn 0",
            "one stands for another array already",
        ),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_its_place(body: str, message: str, tmp_path: Path) -> None:
    text = "@compiled\ndef f(values):\n" + "\n".join(f"    {line}" for line in body.splitlines())
    with pytest.raises(TranslationError, match=r"made\.py:\d+: ") as caught:
        read(text, tmp_path)(np.zeros(3))
    assert message in str(caught.value)


def test_it_is_compiled_once_on_a_machine_and_again_when_anything_of_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(kept_files.FOLDER_VARIABLE, str(tmp_path / "cache"))
    made: list[str] = []
    translate = Loops._translate

    def note(self: Loops, kinds: list[Any]) -> Any:
        made.append(self.function.__name__)
        return translate(self, kinds)

    monkeypatch.setattr(loops.Loops, "_translate", note)
    text = "@part\ndef g(x):\n    return x + MOST\n@compiled\ndef f(values):\n    return g(values[0])"
    processor, before = time.thread_time(), work_time()
    for _ in range(2):
        assert read(text, tmp_path, MOST=2)(np.array([40])) == 42
    assert work_time() - before < (time.thread_time() - processor) / 2
    assert made == ["f"]
    assert read(text, tmp_path, MOST=3)(np.array([40])) == 43
    assert len(made) == 2
    assert read(text.replace("x +", "x *"), tmp_path, MOST=2)(np.array([40])) == 80
    assert len(made) == 3


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
