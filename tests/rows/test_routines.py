"""Local functions inside a section, and the lines they do not have."""

import numpy as np

from gpa_lsp.code.binary.model import LineTable
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.kernel.scatter import index_chains, index_routines
from tests.rows.builders import make_function, make_sub_function

OFFSETS = 16 * np.arange(12, dtype=np.int64)
CHAINS = tuple((Frame(file="k.cu", line=line),) for line in (1, 2, 3))


def make_lines(*rows):
    return LineTable(
        row_offsets=np.array([16 * first for first, _ in rows], dtype=np.int64),
        row_chain=np.array([chain for _, chain in rows], dtype=np.int32),
        chains=CHAINS,
    )


def test_a_local_function_without_rows_does_not_take_the_line_before_it():
    function = make_function("kernel", 12, sub_functions=(make_sub_function("$slow", 8, 3),))
    found = index_chains(function, make_lines((0, 0), (4, 1)), OFFSETS)
    assert found.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, -1, -1, -1, 1]


def test_a_local_function_has_its_own_rows_from_the_first_on():
    function = make_function("kernel", 12, sub_functions=(make_sub_function("$recursive", 6, 6),))
    found = index_chains(function, make_lines((0, 0), (7, 2)), OFFSETS)
    assert found.tolist() == [0, 0, 0, 0, 0, 0, -1, 2, 2, 2, 2, 2]


def test_no_table_no_line():
    assert index_chains(make_function("kernel", 12), None, OFFSETS).tolist() == [-1] * 12


def test_routines_are_numbered_and_overlaps_go_to_the_first():
    subs = (make_sub_function("$a", 4, 4), make_sub_function("$b", 6, 4))
    found = index_routines(make_function("kernel", 12, sub_functions=subs), OFFSETS)
    assert found.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 0, 0]
