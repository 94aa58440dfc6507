"""Instructions that the innermost loops of a kernel execute, and what caches hold of them."""

import pytest

from gpa_lsp.diagnosis.advice.code_size import find_instruction_caches
from gpa_lsp.diagnosis.advice.loop_work import LoopWork, list_loop_work
from gpa_lsp.gpu.arch.lookup import find_architecture
from tests.advice.subjects import make_subject
from tests.rows.written import write_kernel


def work(text: str) -> tuple[LoopWork, ...]:
    return list_loop_work(make_subject(write_kernel(text)))


TWO_LOOPS = """
    B-:R-:W-:-:S04  MOV R0, RZ             # k.cu:2 | selected=1 | x=100
first:
    B-:R-:W0:-:S02  LDS R4, [R2]           # k.cu:4 | selected=2 | x=1000 shared_wavefronts=4000
    B-:R-:W1:-:S02  LDG.E R5, [R6.64]      # k.cu:4 | lg_throttle=3 | x=500 shared_wavefronts=0
    B01:R-:W-:-:S04 FFMA R0, R4, R5, R0    # k.cu:4 | long_scoreboard=5 | x=1000
    B-:R-:W-:-:S05  @P0 BRA `(first)       # k.cu:3 | selected=1 | x=1000
second:
    B-:R-:W-:-:S04  FMUL R8, R8, R9        # k.cu:7 | selected=1 | x=3000
    B-:R-:W-:-:S04  FADD R0, R0, R8        # k.cu:7 | selected=1 | x=2000
    B-:R-:W-:-:S05  @P1 BRA `(second)      # k.cu:6 | selected=1 | x=2000
    B-:R-:W-:-:S05  EXIT                   # k.cu:8
"""


def test_loops_are_counted_by_themselves_most_multiply_adds_first() -> None:
    second, first = work(TWO_LOOPS)
    assert (first.scope.line, first.rows.tolist()) == (3, [1, 2, 3, 4])
    assert (first.executions, first.multiply_adds) == (3500, 1000)
    assert (first.shared_loads, first.shared_wavefronts, first.global_loads) == (1000, 4000, 500)
    assert first.samples == 11
    assert (second.scope.line, second.executions) == (6, 7000)


def test_a_product_and_a_sum_are_a_multiply_add_that_was_not_fused() -> None:
    second, _ = work(TWO_LOOPS)
    assert second.multiply_adds == 2000, "the sums are fewer"


def test_where_wavefronts_were_not_counted_each_load_is_one() -> None:
    _, first = work(TWO_LOOPS.replace(" shared_wavefronts=4000", "").replace(" shared_wavefronts=0", ""))
    assert first.shared_wavefronts == 1000


def test_a_loop_with_few_of_the_multiply_adds_is_not_what_the_kernel_is_about() -> None:
    (only,) = work(TWO_LOOPS.replace("| long_scoreboard=5 | x=1000", "| long_scoreboard=5 | x=100"))
    assert only.scope.line == 6


def test_without_executions_nothing_is_known() -> None:
    assert work("B-:R-:W-:-:S04 FFMA R0, R4, R5, R0  # k.cu:4 | selected=5") == ()


@pytest.mark.parametrize(
    ("capability", "first_kib"), [((7, 0), 12), ((7, 5), 16), ((8, 6), 16), ((8, 9), 32), ((9, 0), 32)]
)
def test_cache_sizes(capability: tuple[int, int], first_kib: int) -> None:
    caches = find_instruction_caches(find_architecture(capability))
    assert caches.first_bytes == first_kib << 10
    assert caches.is_measured == (capability in ((7, 0), (7, 5), (8, 6)))
