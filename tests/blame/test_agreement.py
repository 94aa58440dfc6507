"""Agreement of the published blamer and the one that follows the scoreboards, where a stall can have one cause only."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.diagnosis.blame.model import BlameEdges, Dependency
from gpa_lsp.kernel.model import Kernel
from tests.conftest import examples
from tests.real_reports import REPORTS, join
from tests.rows.written import write_kernel

LONG, SHORT, WAIT = "long_scoreboard", "short_scoreboard", "wait"


def find_single_causes(kernel: Kernel, edges: BlameEdges) -> dict[tuple[int, str], int]:
    """(use, reason) → def, for those with one cause other than themselves."""
    causes: dict[tuple[int, str], set[int]] = {}
    for use, reason, definition, dependency in zip(
        edges.use_row.tolist(), edges.reason.tolist(), edges.def_row.tolist(), edges.dependency.tolist(), strict=True
    ):
        if dependency != Dependency.ITSELF:
            causes.setdefault((use, kernel.reasons[reason]), set()).add(definition)
    return {key: min(found) for key, found in causes.items() if len(found) == 1}


def blame_by_both(kernel: Kernel) -> tuple[dict[tuple[int, str], int], dict[tuple[int, str], int]]:
    return (
        find_single_causes(kernel, blame_kernel(kernel, "paper").edges),
        find_single_causes(kernel, blame_kernel(kernel, "scoreboard").edges),
    )


@st.composite
def compiled_sections(draw: st.DrawFn) -> tuple[str, dict[tuple[int, str], int]]:
    """Straight code as a compiler schedules it, each result waited for by its one consumer: the text, and who waits for whom."""
    lines: list[str] = []
    expected: dict[tuple[int, str], int] = {}
    for number in range(draw(st.integers(1, 6))):
        register, barrier = 10 + number, number % 6
        kind = draw(st.sampled_from([LONG, SHORT, WAIT]))
        fillers = draw(st.integers(0, 3))
        producer = len(lines)
        if kind == WAIT:
            lines.append(f"B-:R-:W-:-:S04  IADD3 R{register}, R2, R3, RZ  # selected=3")
            fillers = 0
        else:
            text = f"LDG.E R{register}, [R4.64]" if kind == LONG else f"LDS R{register}, [R4]"
            lines.append(f"B-:R-:W{barrier}:-:S02  {text}  # selected=3")
        lines += ["B-:R-:W-:-:S01  NOP"] * fillers
        mask = "-" if kind == WAIT else str(barrier)
        expected[len(lines), kind] = producer
        lines.append(f"B{mask}:R-:W-:-:S05  IADD3 R{30 + number}, R{register}, R3, RZ  # {kind}=7/5")
    return "\n".join([*lines, "EXIT"]), expected


@examples(80)
@given(compiled_sections())
def test_both_blame_the_one_producer(section):
    text, expected = section
    published, measured = blame_by_both(write_kernel(text))
    assert published == expected
    assert measured == expected


@pytest.mark.corpus
@pytest.mark.parametrize("name", REPORTS)
def test_on_real_reports_they_agree_on_every_scoreboard_and_barrier_with_one_cause(name):
    compared: Counter[str] = Counter()
    for kernel in join(name):
        published, measured = blame_by_both(kernel)
        for key in published.keys() & measured.keys():
            if key[1] in (LONG, SHORT, "barrier"):
                compared[key[1]] += 1
                assert published[key] == measured[key], (kernel.mangled_name, key)
    assert compared.total() > 0
