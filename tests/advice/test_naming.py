"""Names of places in hints."""

import pytest

from gpa_lsp.diagnosis.advice.naming import describe_line, describe_place, describe_scope
from gpa_lsp.foundation.prose import Code, Place
from gpa_lsp.kernel.scopes import Scope, ScopeKind
from tests.advice.subjects import make_subject
from tests.rows.written import write_kernel

SOURCE = """void k(float* x, float* y) {
  a = x[i];
  y[i] = x[i] + x[j] + z[k] + w[l];
  atomicAdd(&h[b], 1);
}
"""

TEXT = """
    LDG.E R2, [R4.64]        # src/k.cu:2
    LDG.E R3, [R4.64]        # src/k.cu:3
    STG.E [R6.64], R3        # src/k.cu:3
    FFMA R2, R2, R3, R6      # src/k.cu:3
    LDG.E R2, [R4.64]
    EXIT                     # other.cu:9
    RED.E.ADD [R6.64], R3    # src/k.cu:4
    ATOMG.E.ADD PT, R2, [R6.64], R3
"""


SUBJECT = make_subject(write_kernel(TEXT, sources={"src/k.cu": SOURCE}))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (0, "the load of `x[i]` at line 2 of k.cu"),
        (2, "the store to `y[i]` at line 3 of k.cu"),
        (1, "a load (`x[i]`, `x[j]`, `z[k]` or another) at line 3 of k.cu"),
        (3, "the FFMA at line 3 of k.cu"),
        (4, "the load at 0x40"),  # without a line
        (5, "the EXIT at line 9 of other.cu"),  # without its source
        (6, "the atomic on `h[b]` at line 4 of k.cu"),
        (7, "the atomic at 0x70"),
    ],
)
def test_places(row: int, words: str) -> None:
    assert describe_place(SUBJECT, row) == words


def test_names_hold_their_code_and_their_place_as_values() -> None:
    place = Place(file="src/k.cu", line=2, shown_file="k.cu")
    assert describe_place(SUBJECT, 0).parts == ("the load of ", Code(text="x[i]"), " at ", place)
    assert describe_line(SUBJECT, 0).parts == (place,)
    assert describe_line(SUBJECT, 5) == "line 9 of other.cu"


def test_scopes() -> None:
    loop = Scope(kind=ScopeKind.LOOP, function="kernel", row=1, file="src/k.cu", line=3)
    assert describe_scope(SUBJECT, loop) == "the loop at line 3 of k.cu"
    assert describe_scope(SUBJECT, Scope(kind=ScopeKind.LOOP, function="kernel", row=4)) == "the loop at 0x40"
    assert describe_scope(SUBJECT, SUBJECT.scopes.scopes[0]) == "the kernel"
