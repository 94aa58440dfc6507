"""Kernels among the symbols of a source."""

from typing import Any

from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.source.symbols import list_symbols
from tests.editor.views import make_profile, make_view
from tests.report_builder import build_kernel

SOURCE = """\
__global__ void saxpy(float *x, float *y)
{
    for (int i = 0; i < 9; i++) {
        y[i] = 2 * x[i];
    }
    y[0] = 1;
}
"""
LISTING = """
    saxpy.cu:3  IADD3 R0, R0, 1, RZ    ; wait=10
    saxpy.cu:4  LDG.E R2, [R4.64]      ;
    saxpy.cu:4  FMUL R2, R2, R3        ; long_scoreboard=60
    saxpy.cu:6  STG.E [R4.64], R6      ; lg_throttle=30
"""
ADVICE = """
    loop_unrolling code 1.5x
        title: Unroll the loop
        region loop 0 1.4x to=4
            2 <- 1   long_scoreboard
"""
BLAME = "2 <- 1  long_scoreboard memory_global R2"


def symbols(text: str = SOURCE, *, count: int = 1, **settings: Any) -> list[Any]:
    kernels = [
        build_kernel(LISTING, name=f"saxpy<{n}>(float*)" if count > 1 else "saxpy(float*)", blame=BLAME, advice=ADVICE)
        for n in range(count)
    ]
    view = make_view(make_profile(*kernels, texts={"saxpy.cu": SOURCE}), text, settings=Settings(**settings))
    assert view is not None
    return list_symbols(view)


def lines(symbol: Any) -> tuple[int, int, int]:
    return symbol.range.start.line + 1, symbol.range.end.line + 1, symbol.selection_range.start.line + 1


def test_a_kernel_is_a_symbol_from_its_definition_to_its_last_line() -> None:
    (kernel,) = symbols()
    assert (kernel.name, kernel.detail) == ("saxpy", "6.19 ms · 60 % long_scoreboard")
    assert lines(kernel) == (1, 6, 1)


def test_its_loops_with_advice_lie_inside_it() -> None:
    (loop,) = symbols()[0].children
    assert (loop.name, loop.detail) == ("loop in line 3", "Unroll the loop: 1.36–1.44×")
    assert lines(loop) == (3, 4, 3)


def test_edits_move_symbols_along() -> None:
    (kernel,) = symbols("// new\n" + SOURCE)
    assert lines(kernel) == (2, 7, 2)
    assert lines(kernel.children[0]) == (4, 5, 4)


def test_a_symbol_shrinks_to_what_is_left_of_its_body() -> None:
    (kernel,) = symbols(SOURCE.replace("y[0] = 1;", "y[0] = 2;"))
    assert lines(kernel) == (1, 4, 1)
    (kernel,) = symbols("__global__ void saxpy(float *x, float *y)\n{\n}\n")
    assert lines(kernel) == (1, 1, 1)
    assert kernel.children == ()


def test_instantiations_are_listed_up_to_a_limit() -> None:
    found = symbols(count=30)
    assert len(found) == 20
    assert len({symbol.name for symbol in found}) == 20
