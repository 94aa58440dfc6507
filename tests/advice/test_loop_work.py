"""Instructions that the innermost loops of a kernel execute."""

from gpa_lsp.diagnosis.advice.loop_work import LoopWork, list_loop_work
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.function_split import OPTIMIZER
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.kernel.scopes import ScopeKind
from tests.advice.blamed_by_hand import forget_code, write_subject
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
    assert [
        one.scope.line
        for one in work(
            TWO_LOOPS.replace(
                "FFMA R0, R4, R5, R0    # k.cu:4 | long_scoreboard=5 | x=1000",
                "FFMA R0, R4, R5, R0    # k.cu:4 | long_scoreboard=5 | x=100",
            )
        )
    ] == [6]


def test_without_executions_nothing_is_known() -> None:
    assert work("B-:R-:W-:-:S04 FFMA R0, R4, R5, R0  # k.cu:4 | selected=5") == ()


FILLER = 1100
"""Instructions of the kernel's own: 17 KiB, where the cache holds 16."""


def write_inlined(
    rare_instructions: int, *, filler: int = FILLER, rare_executions: int = 3, counted: bool = True
) -> Subject:
    def line(code: str, place: str, samples: str, executions: int) -> str:
        return f"        {code}  # {place} | {samples}" + (f" | x={executions}" if counted else "")

    hot = [
        line("FFMA R2, R2, R3, R4", f"norm@math.h:{10 + n % 3} < k.cu:5", "no_instructions=2", 100) for n in range(20)
    ]
    rare = [
        line("FMUL R6, R6, R7", f"norm@math.h:{30 + n % 5} < k.cu:5", "no_instructions=1", rare_executions)
        for n in range(rare_instructions)
    ]
    own = [line("FADD R8, R8, R9", "k.cu:7", "no_instructions=1", 100) for _ in range(filler)]
    return write_subject("\n".join([*hot, *rare, *own, line("EXIT", "k.cu:9", "selected=1", 100)]), {})


def test_the_fetches_of_an_inlined_function_with_rare_code_count() -> None:
    found = OPTIMIZER.match(write_inlined(60))
    assert isinstance(found, EliminationMatch)
    (region,) = found.regions
    assert region.samples == 20 * 2 + 60
    assert (region.scope.kind, region.scope.function) == (ScopeKind.INLINED, "norm")
    assert (region.scope.file, region.scope.line, region.scope.last_line) == ("math.h", 10, 34)
    assert "`norm` (line 10 to line 34 of math.h) is 1.25 KiB of code" in found.hint
    assert "75 % of it, at line 30 to line 34 of math.h, is executed less than a tenth as often" in found.hint


def test_a_function_that_is_hot_throughout_is_not_worth_splitting() -> None:
    silence = OPTIMIZER.match(write_inlined(60, rare_executions=90))
    assert isinstance(silence, Silence)
    assert "no rarely executed code" in silence.message
    few = OPTIMIZER.match(write_inlined(4))
    assert isinstance(few, Silence)


def test_without_counts_the_reader_has_to_know_what_is_rare() -> None:
    found = OPTIMIZER.match(write_inlined(60, counted=False))
    assert isinstance(found, EliminationMatch)
    assert "Move rarely executed parts" in found.hint


def test_code_that_fits_the_cache_waits_for_other_reasons() -> None:
    silence = OPTIMIZER.match(write_inlined(60, filler=100))
    assert isinstance(silence, Silence)
    assert silence.stage is SilenceStage.NOT_MATCHED
    assert "16 KiB" in silence.message


def test_silences() -> None:
    calm = OPTIMIZER.match(write_subject("FADD R2, R2, R3  # k.cu:3 | wait=4\nEXIT", {}))
    assert isinstance(calm, Silence)
    assert calm.message == "no warp is stalled on instruction fetch"
    own = OPTIMIZER.match(write_subject("FADD R2, R2, R3  # k.cu:3 | no_instructions=4\nEXIT", {}))
    assert isinstance(own, Silence)
    assert own.message == "4 samples stalled on instruction fetch, but in no inlined function"
    blind = OPTIMIZER.match(forget_code(write_inlined(4)))
    assert isinstance(blind, Silence)
    assert blind.stage is SilenceStage.NO_CODE
