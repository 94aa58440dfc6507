"""Library code that was compiled into a kernel without a chain to its caller: what of it stands on the calling line."""

from msgspec.structs import replace

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.callees import credit_callers
from gpa_lsp.editor.source.hints import list_hints
from tests.editor.views import make_profile, make_view
from tests.report_builder import build_kernel

SOURCE = """\
@triton.jit
def silu(x_ptr, y_ptr):
    x = tl.load(x_ptr)
    # what takes the time
    y = x * tl.sigmoid(x)
    tl.store(y_ptr, y)
"""
LISTING = """
    silu.py:3      LDG.E R2, [R4.64]   ; wait=5
    standard.py:47  FMUL R3, R2, R5     ; long_scoreboard=60
    standard.py:47  MUFU.EX2 R3, R3     ; wait=5
    silu.py:5      FMUL R2, R2, R3     ; wait=2
    silu.py:6      STG.E [R6.64], R2   ; drain=28
"""


def view_of(listing: str = LISTING, source: str = SOURCE) -> DocumentView:
    kernel = build_kernel(listing, name="silu", blame="1 <- 0  long_scoreboard  memory_global R2 8c 1i")
    profile = make_profile(kernel, texts={"silu.py": source})
    measured = tuple(credit_callers(one, profile.files) for one in profile.kernels)
    view = make_view(replace(profile, kernels=measured), source, path="/project/silu.py")
    assert view is not None
    return view


def words(view: DocumentView) -> dict[int, str]:
    return {
        hint.position.line + 1: hint.label
        if isinstance(hint.label, str)
        else "".join(part.value for part in hint.label)
        for hint in list_hints(view, 1, 100)
    }


def test_the_calling_line_says_how_much_and_where_and_the_cause_says_where() -> None:
    assert words(view_of()) == {
        3: "→ standard.py:47 · causes 65 %",
        5: "≈65 % in standard.py:47",
        6: "28 % samples, drain",
    }


def test_a_line_without_instructions_of_its_own_is_the_caller_where_it_calls() -> None:
    source = SOURCE.replace("y = x * tl.sigmoid(x)", "y = tl.sigmoid(x)")
    listing = "\n".join(line for line in LISTING.split("\n") if "silu.py:5" not in line)
    assert words(view_of(listing, source))[5].startswith("≈66 % in standard.py:47")


def test_code_with_a_chain_to_its_caller_is_not_credited_twice() -> None:
    kernel = build_kernel(LISTING.replace("standard.py:47", "standard.py:47 < silu.py:5"), name="silu")
    profile = make_profile(kernel, texts={"silu.py": SOURCE})
    (measured,) = profile.kernels
    assert credit_callers(measured, profile.files) is measured
