"""Self, inclusive and called samples of source lines."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.foundation.locations import Frame
from gpa_lsp.report.count import list_lines
from gpa_lsp.report.model import InstructionColumns


def make_columns(rows, functions=("kernel",)):
    """Columns from (chain or None, samples) rows; a chain is a list of (file, line) pairs, innermost first."""
    chains: dict = {}
    index = []
    for chain, _ in rows:
        if chain is None:
            index.append(-1)
            continue
        frames = tuple(Frame(file=file, line=line, function=f"{file}_f") for file, line in chain)
        index.append(chains.setdefault(frames, len(chains)))
    count = len(rows)
    every = np.array([samples for _, samples in rows], dtype=np.int64).reshape(count, 1)
    zeros = np.zeros(count, dtype=np.uint8)
    return InstructionColumns(
        functions=functions,
        function_index=np.zeros(count, dtype=np.int32),
        pc_offsets=16 * np.arange(count, dtype=np.int64),
        texts=("NOP",) * count,
        chains=tuple(chains),
        chain_index=np.array(index, dtype=np.int32),
        reasons=("wait",),
        all_samples=every,
        latency_samples=every // 2,
        executions=np.full(count, -1, dtype=np.int64),
        stall_cycles=zeros,
        yield_flag=zeros,
        write_barrier=zeros + 7,
        read_barrier=zeros + 7,
        wait_mask=zeros,
        loop_depths=zeros.astype(np.uint16),
        has_control=zeros.astype(np.bool_),
    )


def list_all(columns, called):
    return list_lines(columns, called, (columns.functions, columns.function_index))


def by_place(rows):
    return {(row.file, row.line): row for row in rows}


def test_self_goes_to_the_innermost_frame_and_inclusive_to_all():
    columns = make_columns([([("lib.h", 5), ("user.cu", 40)], 10), ([("user.cu", 40)], 4), ([("user.cu", 41)], 1)])
    rows = by_place(list_all(columns, np.zeros(3)))
    assert (rows["lib.h", 5].samples, rows["lib.h", 5].inclusive_samples) == (10, 10)
    assert (rows["user.cu", 40].samples, rows["user.cu", 40].inclusive_samples) == (4, 14)
    assert rows["user.cu", 40].latency_samples == 2
    assert rows["user.cu", 40].inclusive_latency_samples == 7
    assert (rows["user.cu", 41].samples, rows["user.cu", 41].inclusive_samples) == (1, 1)


def test_a_line_twice_in_one_chain_counts_once():
    columns = make_columns([([("rec.h", 3), ("rec.h", 3), ("user.cu", 9)], 6)])
    rows = by_place(list_all(columns, np.zeros(1)))
    assert rows["rec.h", 3].inclusive_samples == 6
    assert rows["rec.h", 3].samples == 6


def test_samples_without_a_line_have_their_own_row():
    rows = list_all(make_columns([(None, 3), ([("user.cu", 1)], 2), (None, 5)]), np.zeros(3))
    lost = by_place(rows)[None, None]
    assert (lost.samples, lost.function) == (8, "kernel")


def test_called_samples_reach_every_line_of_the_calls_chain_even_when_it_was_never_sampled():
    columns = make_columns([([("lib.h", 5), ("user.cu", 40)], 0), ([("user.cu", 1)], 2)])
    rows = by_place(list_all(columns, np.array([7.5, 0.0])))
    assert rows["user.cu", 40].called_samples == 7.5
    assert rows["lib.h", 5].called_samples == 7.5
    assert rows["user.cu", 1].called_samples == 0


places = st.tuples(st.sampled_from(["a.cu", "b.h", "c.h"]), st.integers(1, 4))
chains = st.one_of(st.none(), st.lists(places, min_size=1, max_size=4))


@given(st.lists(st.tuples(chains, st.integers(0, 50)), min_size=1, max_size=30))
def test_self_samples_add_up_and_inclusive_never_exceeds_the_kernel(rows):
    columns = make_columns(rows)
    listed = list_all(columns, np.zeros(len(rows)))
    total = sum(samples for _, samples in rows)
    assert sum(row.samples for row in listed) == total
    for row in listed:
        assert row.samples <= row.inclusive_samples <= total
        assert sum(count.all_samples for count in row.inclusive_by_reason.values()) == row.inclusive_samples


def test_samples_without_a_line_are_told_apart_by_local_function():
    columns = make_columns([(None, 3), (None, 5), ([("user.cu", 1)], 2), (None, 0)])
    routines = (("kernel", "$slow", "$never"), np.array([0, 1, 0, 2], dtype=np.int32))
    lost = [row for row in list_lines(columns, np.zeros(4), routines) if row.file is None]
    assert [(row.function, row.samples) for row in lost] == [("$slow", 5), ("kernel", 3)]
