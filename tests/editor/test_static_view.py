"""Findings from the code, on the lines as they are now, and not where a profile says better."""

from pathlib import Path

import pytest
from lsprotocol.types import DiagnosticSeverity
from msgspec.structs import replace

from gpa_lsp.editor.document_view import DocumentView, OpenDocument, build_view
from gpa_lsp.editor.settings import Settings, Severity
from gpa_lsp.editor.snapshot import Snapshot
from gpa_lsp.editor.source.diagnostics import list_diagnostics
from gpa_lsp.editor.source.hover import describe_hover
from gpa_lsp.editor.source.lenses import list_lenses
from gpa_lsp.editor.static.results import StaticKernel, StaticMark, StaticResult
from gpa_lsp.editor.static.view import StaticState, take_result
from gpa_lsp.execution.compiler.model import CompilerMessage
from gpa_lsp.foundation.errors import ProblemSeverity
from tests.editor.views import LISTING, make_knowledge, make_profile, make_snapshot
from tests.report_builder import build_kernel

PATH = "/project/k.cu"
TEXT = """\
// k.cu
__global__ void scale(float* x, int n)
{
    for (int i = 0; i < n; ++i)
        x[i] = x[i] * 0.5;
    x[0] = x[1] / n;
}
"""


def make_mark(line: int, **changes: object) -> StaticMark:
    values: dict[str, object] = {
        "line": line,
        "check": "double-constants",
        "message": "Values are widened.",
        "remedy": "Write `0.5f`.",
        "certainty": "certain",
        "is_in_loop": True,
        "kernels": ("_Z5scalePfi",),
        **changes,
    }
    return StaticMark(**values)  # type: ignore[arg-type]


def make_result(text: str = TEXT, **changes: object) -> StaticResult:
    kernel = StaticKernel(
        mangled_name="_Z5scalePfi", name="scale(float*, int)", line=3, words="18 registers", page="# scale\n"
    )
    values: dict[str, object] = {
        "path": Path(PATH),
        "text": text,
        "compiler": "NVRTC 13.0",
        "has_flags": True,
        "kernels": (kernel,),
        "marks": (make_mark(5), make_mark(6, is_in_loop=False, certainty="likely", check="accurate-arithmetic")),
        **changes,
    }
    return StaticResult(**values)  # type: ignore[arg-type]


def view(
    state: StaticState | None, text: str = TEXT, snapshot: Snapshot | None = None, **settings: object
) -> DocumentView:
    document = OpenDocument(uri=f"file://{PATH}", local_path=PATH, text=text, saved={None: text}, statics=state)
    found = build_view(document, make_knowledge(snapshot, Settings(**settings)))  # type: ignore[arg-type]
    assert found is not None
    return found


def titles(seen: DocumentView) -> list[tuple[int, str]]:
    return [(lens.range.start.line, lens.command.title) for lens in list_lenses(seen)]


def test_findings_are_marked_static_and_loud_only_in_loops() -> None:
    first, second = list_diagnostics(view(take_result(None, make_result())))
    assert (first.range.start.line, first.severity) == (4, DiagnosticSeverity.Information)
    assert (second.range.start.line, second.severity) == (5, DiagnosticSeverity.Hint)
    assert first.code == "static double-constants"
    assert first.message == "Values are widened. Write `0.5f`. (static)"
    assert second.message.endswith("(static, likely)")


def test_the_lens_says_resources_and_that_nothing_was_measured() -> None:
    state = take_result(None, make_result())
    assert titles(view(state)) == [(1, "18 registers · static")]
    edited = TEXT.replace("// k.cu", "// k.cu\n// a new line")
    assert titles(view(state, edited)) == [(2, "18 registers · static · before your edits")]


def test_lines_follow_edits_and_edited_lines_are_silent() -> None:
    state = take_result(None, make_result())
    shifted = "#include <x>\n\n" + TEXT
    assert [one.range.start.line for one in list_diagnostics(view(state, shifted))] == [6, 7]
    changed = TEXT.replace("* 0.5", "* 0.5f")
    assert [one.range.start.line for one in list_diagnostics(view(state, changed))] == [5]
    assert describe_hover(view(state, changed), 5) is None


def test_the_hover_says_it_too() -> None:
    text = describe_hover(view(take_result(None, make_result())), 5)
    assert text is not None and text.startswith("**Static** · from the code alone, not measured")
    assert "Values are widened. Write `0.5f`. (double-constants, certain)" in text
    assert describe_hover(view(take_result(None, make_result())), 2) is None


def test_a_measured_kernel_has_neither_static_lens_nor_static_findings() -> None:
    listing = LISTING.replace("saxpy.cu", "k.cu")
    profile = make_profile(build_kernel(listing), texts={"k.cu": TEXT})
    measured = profile.kernels[0].report.mangled_name
    kernel = StaticKernel(mangled_name=measured, name="saxpy", line=3, words="18 registers", page="")
    other = StaticKernel(mangled_name="other", name="scale", line=3, words="9 registers", page="")
    marks = (
        make_mark(5, kernels=(measured,), message="Of the measured one."),
        make_mark(6, kernels=(measured, "other"), message="Of both."),
    )
    state = take_result(None, make_result(kernels=(kernel, other), marks=marks))
    seen = view(state, snapshot=make_snapshot(profile))
    messages = [one.message for one in list_diagnostics(seen) if str(one.code).startswith("static")]
    assert [message.split(".")[0] for message in messages] == ["Of both"]
    static = [title for _, title in titles(seen) if "static" in title]
    assert static == ["9 registers · static"]


def test_a_simulated_kernel_keeps_its_static_findings() -> None:
    listing = LISTING.replace("saxpy.cu", "k.cu")
    measured = build_kernel(listing)
    launches = (replace(one, sampling=replace(one.sampling, is_simulated=True)) for one in measured.launches)
    simulated = replace(measured, launches=tuple(launches))
    counts = []
    for kernel in (measured, simulated):
        profile = make_profile(kernel, texts={"k.cu": TEXT})
        name = profile.kernels[0].report.mangled_name
        statics = StaticKernel(mangled_name=name, name="saxpy", line=3, words="18 registers", page="")
        result = make_result(kernels=(statics,), marks=(make_mark(5, kernels=(name,)),))
        seen = view(take_result(None, result), snapshot=make_snapshot(profile))
        found = [one for one in list_diagnostics(seen) if one.code == "static double-constants"]
        lenses = [title for _, title in titles(seen) if title.endswith("static")]
        counts.append((len(found), len(lenses)))
    assert counts == [(0, 0), (1, 1)]


def make_message(line: int | None, **changes: object) -> CompilerMessage:
    values: dict[str, object] = {
        "severity": ProblemSeverity.ERROR,
        "text": 'identifier "y" is undefined',
        "line": line,
        "column": 9,
        "number": "20",
        **changes,
    }
    return CompilerMessage(**values)  # type: ignore[arg-type]


def test_errors_stand_at_their_place_and_name_the_compiler() -> None:
    result = make_result(has_failed=True, kernels=(), marks=(), messages=(make_message(5),))
    (error,) = list_diagnostics(view(take_result(None, result)))
    assert error.severity == DiagnosticSeverity.Error
    assert error.code == "NVRTC 13.0 20"
    assert (error.range.start.line, error.range.start.character, error.range.end.character) == (4, 8, 9)


def test_what_is_known_of_the_code_stays_while_it_does_not_compile() -> None:
    good = take_result(None, make_result())
    broken = TEXT.replace("// k.cu", "broken")
    bad = take_result(good, make_result(broken, has_failed=True, kernels=(), marks=(), messages=(make_message(1),)))
    seen = view(bad, broken)
    assert titles(seen) == [(1, "18 registers · static · before your edits")]
    assert [(one.range.start.line, one.severity) for one in list_diagnostics(seen)] == [
        (4, DiagnosticSeverity.Information),
        (5, DiagnosticSeverity.Hint),
        (0, DiagnosticSeverity.Error),
    ]
    fixed = take_result(bad, make_result())
    assert all(one.severity != DiagnosticSeverity.Error for one in list_diagnostics(view(fixed)))


INCLUDING = """\
#include "kernels/tile.h"
#include <cublas_v2.h>
#include "cublas_v2.h"
#include "wrapper.cuh"
"""


@pytest.mark.parametrize(
    ("line", "text", "has_flags", "severity"),
    [
        (1, "kernels/tile.h: No such file or directory", True, DiagnosticSeverity.Error),
        (1, "kernels/tile.h: No such file or directory", False, DiagnosticSeverity.Information),
        (2, 'cannot open source file "cublas_v2.h"', True, DiagnosticSeverity.Information),
        (3, 'cannot open source file "cublas_v2.h"', True, DiagnosticSeverity.Information),
        (3, 'cannot open source file "cublas_v2.h"', False, DiagnosticSeverity.Information),
    ],
)  # fmt: skip
@pytest.mark.parametrize("said", [ProblemSeverity.ERROR, ProblemSeverity.WARNING])
def test_a_header_that_only_we_may_lack_is_information_on_its_line(
    line: int, text: str, has_flags: bool, severity: DiagnosticSeverity, said: ProblemSeverity
) -> None:
    message = make_message(line, text=text, column=None, severity=said)
    result = make_result(INCLUDING, has_failed=True, has_flags=has_flags, kernels=(), marks=(), messages=(message,))
    (found,) = list_diagnostics(view(take_result(None, result), INCLUDING))
    assert found.range.start.line == line - 1
    if severity is DiagnosticSeverity.Information:
        assert found.severity == severity
        assert found.message.startswith("Only the advisor's own compile is known to lack this header: ")
    else:
        assert found.severity == {ProblemSeverity.ERROR: severity}.get(said, DiagnosticSeverity.Warning)


def test_a_header_that_a_header_lacks_stands_where_that_one_is_included() -> None:
    message = make_message(7, text="mpi.h: No such file or directory", column=None, path=Path("/project/wrapper.cuh"))
    result = make_result(INCLUDING, has_failed=True, kernels=(), marks=(), messages=(message,))
    (found,) = list_diagnostics(view(take_result(None, result), INCLUDING))
    assert (found.range.start.line, found.severity) == (3, DiagnosticSeverity.Information)


def test_names_that_a_missing_header_may_declare_are_no_errors_of_the_code() -> None:
    missing = make_message(2, text='cannot open source file "cublas_v2.h"', column=None)
    unknown = make_message(4, text='identifier "cublasHandle_t" is undefined', column=None)
    wrong = make_message(4, text="expected a declaration", column=None)
    result = make_result(INCLUDING, has_failed=True, kernels=(), marks=(), messages=(missing, unknown, wrong))
    severities = [one.severity for one in list_diagnostics(view(take_result(None, result), INCLUDING))]
    assert severities == [DiagnosticSeverity.Information, DiagnosticSeverity.Information, DiagnosticSeverity.Error]


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("nvcc failed: sh: 1: cicc: not found", DiagnosticSeverity.Information),
        ("NVRTC 13.0 failed (invalid option): --gpu-architecture=compute_50", DiagnosticSeverity.Information),
        ("ptxas error: Entry function 'k' uses too much shared data", DiagnosticSeverity.Error),
    ],
)
def test_what_the_compiler_itself_lacks_is_no_error_of_the_code(text: str, severity: DiagnosticSeverity) -> None:
    message = make_message(None, text=text, column=None, number=None)
    result = make_result(has_failed=True, kernels=(), marks=(), messages=(message,))
    (found,) = list_diagnostics(view(take_result(None, result)))
    assert (found.range.start.line, found.severity) == (0, severity)


def test_notes_go_with_their_message_and_other_files_stand_on_the_first_line() -> None:
    messages = (
        make_message(5),
        make_message(2, severity=ProblemSeverity.NOTE, text="declared here", number=None),
        make_message(7, column=None, path=Path("/project/h.cuh"), text="expected a ;", number=None),
    )
    result = make_result(has_failed=True, kernels=(), marks=(), messages=messages)
    first, second = list_diagnostics(view(take_result(None, result)))
    assert [one.message for one in first.related_information] == ["declared here"]
    assert second.range.start.line == 0
    assert second.message == "/project/h.cuh:7: expected a ;"


def test_as_many_findings_as_the_user_allows_and_columns_in_the_clients_units() -> None:
    marks = tuple(make_mark(5, message=f"Finding {number}.") for number in range(50))
    state = take_result(None, make_result(marks=marks))
    assert len(list_diagnostics(view(state, max_diagnostics_per_file=7))) == 7
    assert list_diagnostics(view(state, diagnostic_severity=Severity.OFF)) == ()
    text = "/* 𝄞 */ int a = b;\n"
    broken = make_result(text, has_failed=True, kernels=(), marks=(), messages=(make_message(1, column=17),))
    (error,) = list_diagnostics(view(take_result(None, broken), text))
    assert (error.range.start.character, error.range.end.character) == (17, 18)  # 𝄞 is two units of UTF-16


def test_without_any_knowledge_there_is_no_view() -> None:
    document = OpenDocument(uri="file:///k.cu", local_path="/k.cu", text="", saved={})
    assert build_view(document, make_knowledge()) is None
