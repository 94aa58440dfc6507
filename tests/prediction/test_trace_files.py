"""Traces in files: what goes in comes out, and damaged files are told, not believed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.cli.main import main
from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind, StaticInstruction
from gpa_lsp.execution.emulator.model import (
    ACCESS_DTYPES,
    BRANCH_DTYPES,
    ENTRY_DTYPES,
    Accesses,
    Branches,
    Buffer,
    Entries,
    Trace,
)
from gpa_lsp.execution.prediction.trace_files import NAMES, TraceWriter, read_pieces
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.foundation.locations import Frame
from tests.conftest import examples

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

INSTRUCTIONS = (
    StaticInstruction(
        index=0,
        function="k",
        text="ld.global.f32 %f1, [%rd1]",
        kind=AccessKind.LOAD,
        space=Space.GLOBAL,
        bytes_per_lane=4,
        chain=(Frame(file="a.cuh", line=3, function="f"), Frame(file="a.cu", line=9, function="k")),
        column=17,
    ),
    StaticInstruction(index=1, function="k", text="bra L", kind=None, space=Space.GENERIC, bytes_per_lane=0),
)
BUFFERS = (Buffer(name="in", space=Space.GLOBAL, base=1 << 40, size_bytes=4096, element_bytes=4, argument=0),)


def make_piece(blocks: list[int], masks: list[int], *, is_complete: bool = True) -> Trace:
    """One access, branch and entry per mask, by the first of the blocks."""
    count = len(masks)
    lanes = np.bitwise_count(np.array(masks, dtype=np.uint32)).astype(np.int64)
    columns = {name: np.arange(count).astype(dtype) for name, dtype in ACCESS_DTYPES.items() if name != "first_address"}
    block = np.full(count, blocks[0], dtype=np.uint32)
    columns |= {"lane_mask": np.array(masks, dtype=np.uint32), "instruction": np.zeros(count, dtype=np.uint32)}
    columns["block"] = block
    branches = {name: np.arange(count).astype(dtype) for name, dtype in BRANCH_DTYPES.items()}
    branches |= {"instruction": np.ones(count, dtype=np.uint32), "block": block}
    entries = {name: np.arange(count).astype(dtype) for name, dtype in ENTRY_DTYPES.items()} | {"block": block}
    return Trace(
        kernel="k",
        grid=(4, 1, 1),
        block_threads=(64, 1, 1),
        instructions=INSTRUCTIONS,
        buffers=BUFFERS,
        accesses=Accesses(
            **columns,
            first_address=(np.cumsum(lanes) - lanes).astype(np.uint64),
            addresses=np.arange(int(lanes.sum()), dtype=np.uint64) * 4 + (1 << 40),
        ),
        branches=Branches(**branches),
        entries=Entries(**entries),
        traced_blocks=np.array(blocks, dtype=np.uint32),
        is_complete=is_complete,
    )


def assert_same(left: Trace, right: Trace) -> None:
    for name in ("kernel", "grid", "block_threads", "instructions", "buffers", "is_complete", "origin"):
        assert getattr(left, name) == getattr(right, name)
    np.testing.assert_array_equal(left.traced_blocks, right.traced_blocks)
    for table, names in (("accesses", ACCESS_DTYPES), ("branches", BRANCH_DTYPES), ("entries", ENTRY_DTYPES)):
        for name, dtype in names.items():
            found = getattr(getattr(right, table), name)
            assert found.dtype == dtype, name
            np.testing.assert_array_equal(getattr(getattr(left, table), name), found)
    np.testing.assert_array_equal(left.accesses.addresses, right.accesses.addresses)


def write(folder: Path, *pieces: Trace) -> None:
    with TraceWriter(folder) as writer:
        for piece in pieces:
            writer.add(piece)


@examples(25)
@given(st.lists(st.lists(st.integers(1, 0xFFFFFFFF), max_size=20), min_size=1, max_size=4))
def test_what_goes_in_comes_out(tmp_path_factory, masks):
    folder = tmp_path_factory.mktemp("trace")
    pieces = [make_piece([number], found) for number, found in enumerate(masks)]
    write(folder, *pieces)
    read = list(read_pieces(folder))
    assert len(read) == len(pieces)
    for written, found in zip(pieces, read, strict=True):
        assert_same(written, found)


def test_one_incomplete_piece_makes_the_trace_incomplete(tmp_path):
    write(tmp_path / "t", make_piece([0], [1]), make_piece([1], [1], is_complete=False))
    assert [piece.is_complete for piece in read_pieces(tmp_path / "t")] == [False, False]


def test_an_unfinished_trace_has_no_head(tmp_path):
    with pytest.raises(RuntimeError), TraceWriter(tmp_path / "t") as writer:
        writer.add(make_piece([0], [1]))
        raise RuntimeError("stopped")
    with pytest.raises(InputError, match="cannot be read"):
        list(read_pieces(tmp_path / "t"))


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="holds other things"):
        TraceWriter(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_an_earlier_trace_is_replaced(tmp_path):
    write(tmp_path / "t", make_piece([0], [1]), make_piece([1], [3]))
    write(tmp_path / "t", make_piece([2], [7]))
    (found,) = read_pieces(tmp_path / "t")
    assert found.traced_blocks.tolist() == [2]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kept", [0, 4, 100])
def test_a_truncated_file_is_told_with_its_name(tmp_path, name, kept):
    write(tmp_path / "t", make_piece([0], [1, 2, 3]))
    file = tmp_path / "t" / name
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(InputError, match=name):
        list(read_pieces(tmp_path / "t"))


def test_files_of_two_traces_do_not_go_together(tmp_path):
    write(tmp_path / "a", make_piece([0], [1]), make_piece([1], [3]))
    write(tmp_path / "b", make_piece([0], [1]))
    (tmp_path / "a" / "branches.parquet").write_bytes((tmp_path / "b" / "branches.parquet").read_bytes())
    with pytest.raises(InputError, match=r"branches.parquet: holds 1 pieces, not 2"):
        list(read_pieces(tmp_path / "a"))


def change_head(folder: Path, **changes: object) -> None:
    head = json.loads((folder / "trace.json").read_text())
    (folder / "trace.json").write_text(json.dumps({**head, **changes}))


def test_a_trace_without_columns_is_read(tmp_path):
    write(tmp_path / "t", make_piece([0], [1]))
    head = json.loads((tmp_path / "t" / "trace.json").read_text())
    assert [one.pop("column") for one in head["instructions"]] == [17, 0]
    change_head(tmp_path / "t", instructions=head["instructions"])
    (piece,) = read_pieces(tmp_path / "t")
    assert [one.column for one in piece.instructions] == [0, 0]
    assert piece.instructions[0].chain == INSTRUCTIONS[0].chain


def test_instructions_nobody_knows_are_refused(tmp_path):
    write(tmp_path / "t", make_piece([0], [1]))
    change_head(tmp_path / "t", instructions=[])
    with pytest.raises(InputError, match="names instruction 0 of 0"):
        list(read_pieces(tmp_path / "t"))


@pytest.mark.parametrize("name", ["accesses", "branches", "entries", "blocks"])
def test_blocks_outside_the_grid_are_refused(tmp_path, name):
    outside = np.array([0xFFFF_FFFF], dtype=np.uint32)
    piece = make_piece([1], [1])
    changed = {"traced_blocks": outside} if name == "blocks" else {name: replace(getattr(piece, name), block=outside)}
    write(tmp_path / "t", make_piece([0], [1]), replace(piece, **changed))
    with pytest.raises(InputError, match=rf"{name}\.parquet: piece 1: names block 4,294,967,295 of 4,"):
        list(read_pieces(tmp_path / "t"))


def test_another_version_is_unsupported(tmp_path):
    write(tmp_path / "t", make_piece([0], [1]))
    change_head(tmp_path / "t", format="gpa-lsp/trace/9")
    with pytest.raises(UnsupportedInputError, match=r"this version reads gpa-lsp/trace/1"):
        list(read_pieces(tmp_path / "t"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"format": "gpa-lsp/trace/1"}', "[" * 100_000])
def test_a_head_that_is_none_is_an_input_error(tmp_path, text):
    write(tmp_path / "t", make_piece([0], [1]))
    (tmp_path / "t" / "trace.json").write_text(text)
    with pytest.raises(InputError, match=r"trace\.json"):
        list(read_pieces(tmp_path / "t"))


TABLES = {
    "accesses.parquet": [*(name for name in ACCESS_DTYPES if name != "first_address"), "addresses"],
    "branches.parquet": list(BRANCH_DTYPES),
    "entries.parquet": list(ENTRY_DTYPES),
    "blocks.parquet": ["block"],
}


def damage(table: Any, name: str, how: str) -> Any:
    """A table with one column that is not what it should be."""
    place, column = table.column_names.index(name), table.column(name)
    values = column.to_pylist()
    is_list = isinstance(values[0], list)
    if how == "missing":
        return table.drop_columns([name])
    if how == "null":
        changed = pyarrow.array([None, *values[1:]], type=column.type)
    elif how == "null inside":
        changed = pyarrow.array(
            [[None] * len(values[0]), *values[1:]] if is_list else [None, *values[1:]], type=column.type
        )
    elif how == "text":
        changed = pyarrow.array([[str(one)] if is_list else str(one) for one in values])
    else:
        kind = pyarrow.large_list(pyarrow.float64()) if is_list else pyarrow.float64()
        changed = pyarrow.array([[1.5] * len(one) if is_list else 1.5 for one in values], type=kind)
    return table.set_column(place, name, changed)


@pytest.mark.parametrize("how", ["missing", "null", "null inside", "text", "fractions"])
@pytest.mark.parametrize(("file", "column"), [(file, column) for file, columns in TABLES.items() for column in columns])
def test_a_column_that_is_none_is_told_on_one_line(tmp_path: Path, file: str, column: str, how: str) -> None:
    write(tmp_path / "t", make_piece([0, 1], [1, 3]))
    path = tmp_path / "t" / file
    parquet.write_table(damage(parquet.read_table(path), column, how), path)
    with pytest.raises(InputError, match=rf"^.*{file}: piece 0, column {column}: .*; trace the kernel again") as caught:
        list(read_pieces(tmp_path / "t"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_what_pyarrow_says_stands_on_one_line(tmp_path: Path, name: str) -> None:
    write(tmp_path / "t", make_piece([0], [1, 2, 3] * 100))
    path = tmp_path / "t" / name
    content = path.read_bytes()
    for place in range(4, len(content), max(1, len(content) // 60)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            list(read_pieces(tmp_path / "t"))
        except InputError as error:
            assert "\n" not in str(error)


def ask_memory(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["predict", str(folder)])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def edit_head(folder: Path, key: str, value: object) -> None:
    path = folder / "trace.json"
    document = json.loads(path.read_text())
    *holders, last = key.split("/")
    held = document
    for one in holders:
        held = held[int(one)] if isinstance(held, list) else held[one]
    held[last] = value
    path.write_text(json.dumps(document))


def make_plain_piece() -> Trace:
    """A load by both warps of a block, each with one branch, none of whose numbers is out of bounds."""
    piece = make_piece([0], [0xFFFFFFFF, 0xFFFFFFFF])
    bytes_each = np.full(2, 4, dtype=ACCESS_DTYPES["bytes"])
    return replace(
        piece, accesses=replace(piece.accesses, bytes=bytes_each, space=np.full_like(bytes_each, int(Space.GLOBAL)))
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("instructions/0/chain", []),
        ("instructions/0/chain", None),
        ("instructions/0/chain", [{"file": "", "line": 0, "function": ""}]),
        ("buffers", []),
        ("buffers/0/size_bytes", 0),
        ("buffers/0/name", ""),
        ("kernel", ""),
        ("origin", ""),
    ],
)
def test_what_a_trace_may_lack_costs_no_answer(tmp_path, capsys, key, value):
    write(tmp_path / "t", make_plain_piece())
    edit_head(tmp_path / "t", key, value)
    code, text = ask_memory(tmp_path / "t", capsys)
    assert code == 0, text
    assert "Arrays" in text
    assert "failed" not in text


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("grid", [0, 1, 1], "/grid"),
        ("grid", [-4, 1, 1], "/grid"),
        ("grid", [1 << 31, 65535, 65535], "/grid"),
        ("block_threads", [0, 1, 1], "/block_threads"),
        ("block_threads", [2048, 1, 1], "/block_threads"),
        ("block_threads", [32, 1, 1], "names warp 1 of 1"),
        ("buffers/0/base", -1, "/buffers/0/base"),
        ("buffers/0/size_bytes", -1, "/buffers/0/size_bytes"),
        ("pieces", 0, "holds 1 pieces"),
        ("instructions", [], "names instruction"),
    ],
)
def test_sizes_that_are_none_are_told_with_their_place(tmp_path, capsys, key, value, place):
    write(tmp_path / "t", make_plain_piece())
    edit_head(tmp_path / "t", key, value)
    code, text = ask_memory(tmp_path / "t", capsys)
    assert code == 2
    assert place in text
    assert "fault of gpa-lsp" not in text


def test_a_question_that_fails_leaves_no_success(tmp_path, capsys, monkeypatch):
    def fail(analyses):
        raise ValueError("nobody expected it")

    write(tmp_path / "t", make_plain_piece())
    monkeypatch.setattr("gpa_lsp.execution.traces.ask.list_line_facts", fail)
    code, text = ask_memory(tmp_path / "t", capsys)
    assert code == 2
    assert "the facts of lines failed" in text
    assert "Arrays" in text
