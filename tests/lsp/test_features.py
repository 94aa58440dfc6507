import re
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from lsprotocol import types

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.protocol.commands import load_commands
from gpa_lsp.editor.protocol.features import load_features
from gpa_lsp.editor.protocol.features.marks import answer_code_lens, answer_hover, answer_inlay_hint
from gpa_lsp.editor.protocol.server import Dispatcher
from gpa_lsp.editor.settings import Settings, Severity
from gpa_lsp.editor.snapshot import LoadedProfile, Snapshot
from gpa_lsp.editor.source.diagnostics import list_diagnostics
from gpa_lsp.editor.source.hints import list_hints
from gpa_lsp.editor.source.hover import describe_line_page
from tests.editor.sessions import Session
from tests.editor.views import LISTING, SOURCE, make_profile, make_snapshot, make_view
from tests.report_builder import build_kernel

SAXPY = build_kernel(LISTING, name="saxpy(float*, float*)", mangled_name="_Z5saxpyPfS_")
SAXPY_PROFILE = make_profile(SAXPY, texts={"saxpy.cu": SOURCE, "scale.h": "a\nb\n"})
PROTOCOL = Path(__file__).parent.parent.parent / "editors" / "PROTOCOL.md"
DOCUMENT = types.TextDocumentIdentifier("file:///project/saxpy.cu")
LENS_PARAMS = types.CodeLensParams(DOCUMENT)


def view(text: str = SOURCE, profile: LoadedProfile = SAXPY_PROFILE, **settings: Any) -> DocumentView:
    found = make_view(profile, text, settings=Settings(**settings))
    assert found is not None
    return found


def hover(document: DocumentView, line: int) -> str | None:
    found = answer_hover(document, types.HoverParams(DOCUMENT, types.Position(line - 1, 3)))
    if found is None:
        return None
    assert isinstance(found.contents, types.MarkupContent)
    return found.contents.value


def hints(document: DocumentView, first: int = 1, last: int = 1000) -> list[tuple[int, Any]]:
    span = types.Range(types.Position(first - 1, 0), types.Position(last, 0))
    found = answer_inlay_hint(document, types.InlayHintParams(DOCUMENT, span))
    return [(hint.position.line + 1, hint.label) for hint in found]


def lenses(document: DocumentView) -> list[tuple[int, str, str]]:
    found = answer_code_lens(document, LENS_PARAMS)
    assert all(lens.range.start.character == 0 and lens.command is not None for lens in found)
    return [(lens.range.start.line + 1, lens.command.title, lens.command.command) for lens in found if lens.command]


def test_the_catalogues_hold_what_the_server_offers() -> None:
    methods = [feature.method for feature in load_features().values()]
    assert len(set(methods)) == len(methods)
    assert set(methods) >= {
        "gpaLsp/heat",
        "textDocument/codeLens",
        "textDocument/hover",
        "textDocument/inlayHint",
        "textDocument/publishDiagnostics",
        "workspace/symbol",
    }


def test_every_command_is_documented_for_authors_of_clients() -> None:
    names = load_commands()
    documented = set(re.findall(r"gpaLsp\.\w+", PROTOCOL.read_text(encoding="utf-8")))
    assert set(names) <= documented


def page(document: DocumentView, line: int) -> str:
    found = describe_line_page(document, line)
    assert found is not None
    return found


def test_the_page_of_a_line_holds_the_stall_table() -> None:
    text = page(view(), 5)
    assert "64 %" in text and "`saxpy`" in text
    assert "| long_scoreboard |      60 |         50 |      60 % |" in text
    assert "/*0010*/ LDG.E R2, [R4.64]" in text and "stall 1" in text
    assert "profile.ncu-rep, measured 2023-11-14" in text and "before your edits" not in text


def test_the_hover_is_silent_away_from_hot_lines() -> None:
    assert [hover(view(), line) is None for line in (1, 2, 3, 4, 5, 6, 7, 99)] == [
        True, True, True, False, False, False, False, True,
    ]  # fmt: skip
    cold = make_profile(build_kernel("saxpy.cu:4  X  ; wait=1\nsaxpy.cu:5  Y  ; wait=999", name="saxpy"))
    assert hover(view(profile=cold), 4) is None


def test_the_hover_says_that_the_file_was_edited() -> None:
    text = hover(view("// new\n" + SOURCE), 6)
    assert text is not None and "measured before your edits; this line is as it was" in text


def test_the_hover_says_that_lines_may_have_moved() -> None:
    text = hover(view(profile=make_profile(SAXPY, saved_since=True)), 5)
    assert text is not None and "lines may have moved" in text


def test_the_hover_names_other_kernels_of_the_line() -> None:
    others = [build_kernel("saxpy.cu:5  X  ; barrier=3\nsaxpy.cu:4  X  ; wait=7", name=f"k{n}") for n in range(6)]
    short = hover(view(profile=make_profile(SAXPY, *others)), 5)
    assert short is not None and "also in 6 other kernels" in short
    text = page(view(profile=make_profile(SAXPY, *others)), 5)
    assert text.count("also 30 % of samples, mostly barrier of `k") == 3
    assert "and 3 more kernels" in text


def test_control_codes_are_in_words() -> None:
    assert "stall 1" in page(view(), 4)
    kernel = build_kernel("saxpy.cu:5  X  ; wait=9", name="saxpy")
    columns = kernel.instructions
    columns.wait_mask[0], columns.write_barrier[0], columns.read_barrier[0], columns.yield_flag[0] = 0b101, 3, 0, 1
    text = page(view(profile=make_profile(kernel)), 5)
    assert "waits SB0,SB2 · sets SB3 · read sets SB0 · stall 1 · yield" in text


def test_hints_stand_on_hot_lines_only_and_in_the_range_asked_for() -> None:
    assert hints(view()) == [(4, "20 % samples, wait"), (5, "64 % samples, long_scoreboard"), (6, "15 % samples, wait")]
    assert hints(view(), 5, 5) == [(5, "64 % samples, long_scoreboard")]
    assert len(hints(view(min_share_ratio=0.5))) == 3, "the three hottest lines of a kernel have one in any case"
    assert hints(view(show_inlay_hints=False)) == []


def test_a_hint_stands_behind_its_line() -> None:
    span = types.Range(types.Position(4, 0), types.Position(5, 0))
    (hint,) = answer_inlay_hint(view(), types.InlayHintParams(DOCUMENT, span))
    assert hint.position == types.Position(4, len("    y[i] = 2 * x[i] + y[i];"))


def test_costs_in_called_functions_are_marked_as_estimates() -> None:
    kernel = build_kernel(LISTING, name="saxpy", called_samples={("saxpy.cu", 7): 40.0})
    assert (7, "≈40 % in called functions") in hints(view(profile=make_profile(kernel)))
    kernel = build_kernel(LISTING, name="saxpy", called_samples={("saxpy.cu", 5): 20.0})
    profile = make_profile(kernel)
    assert (5, "64 % samples, long_scoreboard") in hints(view(profile=profile))
    (tooltip,) = [hint.tooltip for hint in list_hints(view(profile=profile), 5, 5)]
    assert str(tooltip).endswith("; ≈20 % in called functions, an estimate")


def test_diagnostics_are_information_with_the_reason_as_code() -> None:
    first, second, _ = list_diagnostics(view())
    assert (first.range.start.line, second.range.start.line) == (4, 3)
    assert first.severity is types.DiagnosticSeverity.Information
    assert first.code == "long_scoreboard"
    words = "64 % of the samples of saxpy are taken here, mostly long_scoreboard (waiting for data"
    assert first.message.startswith(words)


def test_diagnostics_lead_to_the_code_inlined_into_a_line() -> None:
    document = Session(SAXPY_PROFILE, {"/project/saxpy.cu": SOURCE, "/project/scale.h": "// new\na\nb\n"}).view(
        "file:///project/saxpy.cu"
    )
    assert document is not None
    third = list_diagnostics(document)[2]
    (related,) = third.related_information
    assert (related.location.uri, related.location.range.start.line) == ("file:///project/scale.h", 2)
    assert related.message == "hottest instruction: FMUL R2, R2, R3"


def test_related_code_of_the_same_document_is_where_the_edits_moved_it() -> None:
    kernel = build_kernel("saxpy.cu:4 < saxpy.cu:6  FMUL R2, R2, R3  ; wait=9", name="saxpy")
    moved = make_view(make_profile(kernel), "// one more line\n" + SOURCE)
    assert moved is not None
    caller = next(found for found in list_diagnostics(moved) if found.range.start.line == 6)
    (related,) = caller.related_information
    assert related.location.range.start.line == 4


def test_diagnostics_are_capped_thresholded_and_can_be_quiet() -> None:
    assert len(list_diagnostics(view(max_diagnostics_per_file=1))) == 1
    assert len(list_diagnostics(view(min_share_ratio=0.6))) == 1
    assert list_diagnostics(view(diagnostic_severity=Severity.OFF)) == ()
    hint = list_diagnostics(view(diagnostic_severity=Severity.HINT))[0]
    assert hint.severity is types.DiagnosticSeverity.Hint


def test_a_kernel_has_one_complete_lens() -> None:
    title = "saxpy · 6.19 ms · 63 % long_scoreboard"
    sass = ("SASS", "gpaLsp.openSass")
    assert lenses(view()) == [(2, title, "gpaLsp.showKernel"), (2, *sass)]
    edited = lenses(view("\n" + SOURCE))
    assert edited == [(3, f"{title} · before your edits", "gpaLsp.showKernel"), (3, *sass)]


def test_the_lens_counts_the_measured_lines_that_were_edited_in_its_kernel() -> None:
    edited = SOURCE.replace("2 * x", "3 * x").replace("scale(", "twice(")
    assert lenses(view(edited))[0][1].endswith(" · 2 lines edited since")
    assert lenses(view(edited.replace("__global__", "// one\n__global__")))[0][1].endswith(" · 2 lines edited since")
    assert lenses(view(SOURCE + "// behind\n"))[0][1].endswith(" · before your edits")


def test_the_lens_to_the_sass_names_the_first_kernel_and_needs_room() -> None:
    kernels = [build_kernel(LISTING, name=f"saxpy<{n}>(float*)", mangled_name=f"k{n}") for n in range(4)]
    found = answer_code_lens(view(profile=make_profile(*kernels[:3])), LENS_PARAMS)
    assert [lens.command.arguments for lens in found if lens.command] == [("k0",), ("k1",), ("k2",), ("k0",)]
    assert "SASS" not in [title for _, title, _ in lenses(view(profile=make_profile(*kernels)))]


def test_a_header_without_a_kernel_of_its_own_has_no_lens() -> None:
    header = Session(SAXPY_PROFILE, {"/project/scale.h": "a\nb\n"}).view("file:///project/scale.h")
    assert header is not None
    assert (header.anchors, lenses(header)) == ((), [])


def test_several_launches_are_averaged_in_the_lens() -> None:
    kernel = build_kernel(LISTING, name="saxpy", durations_ns=[1e6, 3e6])
    assert "2.00 ms × 2" in lenses(view(profile=make_profile(kernel)))[0][1]


def test_many_instantiations_share_a_few_lenses() -> None:
    kernels = [build_kernel(LISTING, name=f"saxpy<{n}>(float*)", mangled_name=f"k{n}") for n in range(9)]
    found = lenses(view(profile=make_profile(*kernels)))
    assert [line for line, _, _ in found] == [2, 2, 2, 2]
    assert found[3][1:] == ("and 6 more kernels", "gpaLsp.showReport")


class Desk:
    """A desk that remembers what a command did."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.shown: list[tuple[str, str]] = []
        self.said: list[str] = []
        self.warnings: list[str] = []
        self.reloads = 0
        self.client = self.loader = self

    def reload(self) -> None:
        self.reloads += 1

    def show_document(self, title: str, markdown: str) -> str:
        self.shown.append((title, markdown))
        return markdown

    def inform(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def run(name: str, desk: Desk, *arguments: Any) -> Any:
    return load_commands()[f"gpaLsp.{name}"](desk, arguments)


def test_a_kernel_can_be_shown() -> None:
    desk = Desk(make_snapshot(SAXPY_PROFILE))
    page = run("showKernel", desk, "_Z5saxpyPfS_")
    assert desk.shown == [("saxpy", page)]
    assert "| `saxpy.cu:5` |" in page and "grid 128 · block 256" in page


@pytest.mark.parametrize("arguments", [(), ("other",), (None,), ([],), ({"a": 1},)])
def test_a_kernel_that_is_not_there_is_said_to_be_missing(arguments: tuple[Any, ...]) -> None:
    desk = Desk(make_snapshot(SAXPY_PROFILE))
    assert run("showKernel", desk, *arguments) is None
    assert (desk.shown, len(desk.said)) == ([], 1)


def test_all_kernels_can_be_shown() -> None:
    desk = Desk(make_snapshot(SAXPY_PROFILE))
    assert "| saxpy " in run("showReport", desk, "ignored")
    assert "No profile was found" in run("showReport", Desk(Snapshot()))


def test_reload_reloads() -> None:
    desk = Desk(Snapshot())
    run("reload", desk)
    assert desk.reloads == 1


def test_a_broken_feature_is_told_once_and_takes_nothing_with_it() -> None:
    desk = Desk(Snapshot())
    dispatcher = Dispatcher(lambda: desk)  # type: ignore[arg-type, return-value]

    def fail() -> None:
        raise ZeroDivisionError

    assert [dispatcher.guard("hover", fail, "default") for _ in range(3)] == ["default"] * 3
    assert dispatcher.guard("lens", lambda: "fine", None) == "fine"
    assert desk.warnings == ["hover failed; see the log of the language server"]


def test_features_take_and_give_what_the_protocol_says() -> None:
    """Types of the protocol let mypy check every answer. ``gpaLsp/heat`` is ours alone."""
    checked = 0
    for feature in load_features().values():
        if feature.method not in types.METHOD_TO_TYPES:
            assert feature.method.startswith("gpaLsp/")
            continue
        params, result = get_args(feature.method.__orig_class__)  # type: ignore[attr-defined]
        request, response = types.METHOD_TO_TYPES[feature.method][:2]
        assert params is get_type_hints(request)["params"]
        said = type(None) if response is None else get_type_hints(response)["result"]
        assert list_choices(result) == list_choices(said), feature.method
        checked += 1
    assert checked >= 15


def list_choices(kind: Any) -> set[tuple[Any, ...]]:
    """The members of a union, sequences with what they are of."""
    members = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return {
        (get_origin(one), *map(frozenset, map(list_choices, get_args(one)))) if get_args(one) else (one,)
        for one in members
    }


def test_the_legend_names_every_colour() -> None:
    from gpa_lsp.editor.protocol.features.outlines import SEMANTIC_TOKENS

    standard = {one.value for one in types.SemanticTokenTypes} | {"label"}
    assert set(SEMANTIC_TOKENS.options.token_types) <= standard
    own = {"hot", "warm"}
    assert set(SEMANTIC_TOKENS.options.token_modifiers) - own <= {one.value for one in types.SemanticTokenModifiers}
