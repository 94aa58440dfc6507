"""Emulated findings in hover, hints, diagnostics, lens and actions: on the lines as they are now, called emulated, next to measured ones."""

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lsprotocol.types import CodeAction, Command, DiagnosticSeverity, TextEdit
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.diagnosis.analyses.access import REMEDIES, Pattern
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.kernel_page import MOST_LENS_CHARS
from gpa_lsp.editor.predicted.results import PredictedProblem, PredictedResult
from gpa_lsp.editor.predicted.view import make_state
from gpa_lsp.editor.protocol.safe_markdown import defuse
from gpa_lsp.editor.settings import Severity
from gpa_lsp.editor.source.actions import list_actions
from gpa_lsp.editor.source.diagnostics import list_diagnostics
from gpa_lsp.editor.source.hints import list_hints
from gpa_lsp.editor.source.hover import describe_hover, describe_line_page
from gpa_lsp.editor.source.lenses import list_lenses
from gpa_lsp.editor.static.results import StaticKernel, StaticResult
from gpa_lsp.editor.static.view import StaticState, take_result
from gpa_lsp.foundation.errors import ProblemSeverity
from tests.editor.predictions import (
    ACCESS,
    BRANCH,
    DESCRIPTION,
    FINE,
    JOB,
    LAUNCH,
    NAME,
    RACE,
    RESULT,
    SHARED,
    SOURCE,
    TEXT,
    TOML,
    TRIAL,
    change,
    view,
)
from tests.editor.sessions import NoVerifier
from tests.editor.views import LISTING, make_profile, make_snapshot
from tests.report_builder import build_kernel


def hints(seen: DocumentView) -> list[tuple[int, str]]:
    return [(hint.position.line, str(hint.label)) for hint in list_hints(seen, 1, 99)]


def lenses(seen: DocumentView) -> list[tuple[int, Command]]:
    return [(lens.range.start.line, lens.command) for lens in list_lenses(seen)]


def actions(seen: DocumentView, line: int) -> list[CodeAction]:
    return list_actions(seen, line, line, lambda kind: kind == "refactor.rewrite", NoVerifier())


def test_a_save_that_was_not_simulated_says_so_where_the_numbers_would_be() -> None:
    words = "not simulated on save: it took 3.2 s; click to simulate"
    (command,) = (one for line, one in lenses(replace(view(), unsimulated=words)) if line == 1 and one.title == words)
    assert (command.command, command.arguments) == ("gpaLsp.simulate", (SOURCE.as_uri(), NAME))


def codes(seen: DocumentView) -> list[tuple[int, str]]:
    return [(one.range.start.line, str(one.code)) for one in list_diagnostics(seen)]


def test_the_hover_says_what_an_access_costs() -> None:
    text = describe_hover(view(), 5)
    assert text is not None and text.startswith(
        "**Emulated** · `scale`, block 64, all 16 blocks, predicted for the A100"
    )
    assert "stores of `x`: 16 sectors per request, 2 at best, 8 lines, strided by 64 bytes" in text
    assert "predicted hits 50 % in L1; 32 requests of 16 lanes" in text
    assert "within 7 lines  ████████████      75 %\nfirst use       ████              25 %" in text
    assert "50 % of 32 branches diverge, with 32 lanes" in text
    shared = describe_hover(view(), 6)
    assert shared is not None and "stores of shared memory: 4 wavefronts per request, 1 at best" in shared
    assert "Race on shared memory: threads 0 and 33 store" in shared
    assert describe_hover(view(), 2) is None


@pytest.mark.parametrize(
    ("sectors", "grid", "words"),
    [
        (512, (16, 1, 1), "512 sectors measured, 512 emulated: they agree"),
        (
            400,
            (16, 1, 1),
            "400 sectors measured, 512 emulated: **they differ**; are the arguments those of the measured launch?",
        ),
        (512, (17, 1, 1), None),
    ],
)
def test_the_launch_that_was_measured_stands_beside_the_emulated_one(
    sectors: int, grid: tuple[int, int, int], words: str | None
) -> None:
    listing = LISTING.replace("saxpy.cu", "k.cu")
    measured: Any = build_kernel(listing, mangled_name=NAME, grid=(16, 1, 1), block=(64, 1, 1))
    counters = {"global_sectors": np.array([-1, sectors, -1, -1])}
    kernel = replace(measured, code=SimpleNamespace(counters=counters))
    launch = replace(LAUNCH, grid=grid, block=(64, 1, 1))
    snapshot = make_snapshot(make_profile(kernel, texts={"k.cu": TEXT}))
    text = describe_line_page(view(replace(RESULT, launches=(launch, *RESULT.launches[1:])), snapshot=snapshot), 5)
    assert text is not None and (words in text if words else "sectors measured" not in text)


def test_measured_and_emulated_numbers_stay_apart() -> None:
    listing = LISTING.replace("saxpy.cu", "k.cu")
    snapshot = make_snapshot(make_profile(build_kernel(listing), texts={"k.cu": TEXT}))
    short = describe_hover(view(snapshot=snapshot), 5)
    assert short is not None and "\n**emulated** " in short and len(short.split("\n")) <= 12
    text = describe_line_page(view(snapshot=snapshot), 5)
    assert text is not None
    measured, heading, emulated = text.partition("**Emulated**")
    assert heading and "long_scoreboard" in measured and "sectors per request" not in measured
    assert "sectors per request" in emulated and "long_scoreboard" not in emulated


def test_a_line_with_two_hints_is_not_longer_than_editors_show() -> None:
    listing = LISTING.replace("saxpy.cu", "k.cu")
    snapshot = make_snapshot(make_profile(build_kernel(listing), texts={"k.cu": TEXT}))
    (hint,) = [hint for hint in list_hints(view(snapshot=snapshot), 1, 99) if hint.position.line == 4]
    assert hint.label == "64 % samples, long_scoreboard"
    assert "; emulated, not measured: " in (hint.tooltip or ""), "what has no room is not lost"


def test_hints_stand_where_there_is_more_than_need_be() -> None:
    assert hints(view()) == [
        (4, "16 sectors/req · 50 % diverge · emulated"),
        (5, "4 wavefronts/req · emulated"),
    ]
    everything = hints(view(shows_all_hints=True))
    assert (5, "4 sectors/req · 4 wavefronts/req · emulated") in everything
    assert hints(view(show_inlay_hints=False)) == []
    calm = replace(RESULT, accesses=(FINE,), branches=(change(BRANCH, divergent=0),))
    assert hints(view(calm)) == []


def test_the_worst_of_several_launches_is_told_and_named() -> None:
    other = replace(LAUNCH, what="block 32, its block")
    worse = change(ACCESS, launch=1, sectors_per_request=32.0, arrays=("y",))
    seen = view(replace(RESULT, launches=(LAUNCH, other), accesses=(ACCESS, worse), branches=()))
    (hint,) = list_hints(seen, 1, 99)
    assert hint.label == "32 sectors/req · emulated"
    assert isinstance(hint.tooltip, str) and "scale, block 32, its block" in hint.tooltip
    text = describe_hover(seen, 5)
    assert text is not None and text.count("**Emulated**") == 2


def test_a_hover_says_who_calls_the_function_of_a_line() -> None:
    shown = []
    for callers in ((), (("k.cu:9", 1.0),), (("k.cu:9 → k.cu:4", 0.5), ("k.cu:12", 0.25))):
        text = describe_hover(view(replace(RESULT, accesses=(change(ACCESS, callers=callers),))), 5)
        assert text is not None
        shown.append(text.partition("called from ")[2].partition("\n")[0])
    assert shown == ["", "`k.cu:9`", "`k.cu:9 → k.cu:4` (50 %), `k.cu:12` (25 %), others (25 %)"]


def test_costly_lines_are_information_and_faults_are_warnings() -> None:
    found = list_diagnostics(view())
    assert [(one.range.start.line, one.code, one.severity) for one in found] == [
        (5, "emulated race-on-shared-memory", DiagnosticSeverity.Warning),
        (4, "emulated uncoalesced", DiagnosticSeverity.Information),
        (5, "emulated bank-conflicts", DiagnosticSeverity.Information),
        (4, "emulated divergence", DiagnosticSeverity.Information),
    ]
    assert all(one.message.endswith("(emulated)") for one in found)
    race, uncoalesced = found[0], found[1]
    (related,) = race.related_information
    assert (related.location.uri, related.location.range.start.line) == (SOURCE.as_uri(), 4)
    assert uncoalesced.message == (
        "Uncoalesced: stores of “x” take 16 sectors per request where 2 would do, strided by 64 bytes, 80 % of the kernel's sectors.\n"
        f"{REMEDIES[Pattern.APART]} (emulated)"
    )


@pytest.mark.parametrize(
    ("waiting", "severity", "words"),
    [
        (60, DiagnosticSeverity.Information, " 60 % of the samples are stalled on this line (simulated)."),
        (0, DiagnosticSeverity.Hint, " Hidden: 0 % of the samples are stalled on this line (simulated)."),
    ],
)
def test_findings_say_whether_their_line_is_waited_for(waiting: int, severity: DiagnosticSeverity, words: str) -> None:
    listing = f"""
        k.cu:5   LDG.E R2, [R4.64]   ; selected=4
        k.cu:6   FADD R2, R2, R3     ; selected=6 long_scoreboard={waiting}/{waiting}
        k.cu:7   EXIT                ; wait={90 - waiting}/9
    """
    kernel = build_kernel(listing, blame="1 <- 0  long_scoreboard memory_global R2" if waiting else "2 <- 1  wait")
    (launch,) = kernel.launches
    kernel = replace(kernel, launches=(replace(launch, sampling=replace(launch.sampling, is_simulated=True)),))
    seen = view(snapshot=make_snapshot(make_profile(kernel, texts={"k.cu": TEXT})))
    found = {one.code: one for one in list_diagnostics(seen)}
    assert words in found["emulated uncoalesced"].message
    assert words in found["emulated divergence"].message
    assert {found[code].severity for code in ("emulated uncoalesced", "emulated divergence")} == {severity}
    assert f"- {words.strip()}" in (describe_line_page(seen, 5) or "")


def test_what_costs_little_is_no_diagnostic() -> None:
    small = change(ACCESS, share_ratio=0.01)
    inlined = change(ACCESS, is_nested=True)
    rare = change(BRANCH, executions=1, divergent=1)
    frequent = change(BRANCH, line=4, executions=1000, divergent=0)
    seen = view(replace(RESULT, accesses=(small, inlined, FINE), branches=(rare, frequent), faults=()))
    assert codes(seen) == []
    ended = replace(RACE, kind="time budget reached", is_ending=True, other=None)
    (ending,) = list_diagnostics(view(replace(RESULT, accesses=(), branches=(), faults=(ended,))))
    assert ending.severity == DiagnosticSeverity.Information


def test_the_settings_bound_and_silence_diagnostics() -> None:
    assert len(list_diagnostics(view(max_diagnostics_per_file=2))) == 2
    assert codes(view(diagnostic_severity=Severity.OFF)) == []


def test_lines_follow_edits_and_edited_lines_are_silent() -> None:
    shifted = view(text=f"#include <x>\n\n{TEXT}")
    assert [line for line, _ in codes(shifted)] == [7, 6, 7, 6]
    race = next(one for one in list_diagnostics(shifted) if one.related_information)
    assert race.related_information[0].location.range.start.line == 6
    changed = view(text=TEXT.replace("8 * i", "9 * i"))
    assert [line for line, _ in codes(changed)] == [5, 5]
    assert describe_hover(changed, 5) is None
    ((line, command),) = lenses(shifted)
    assert (line, command.title) == (3, f"{LAUNCH.words} · before your edits")


def test_the_lens_opens_the_page_of_its_launch() -> None:
    other = replace(LAUNCH, words="predicted: L1 limits")
    found = lenses(view(replace(RESULT, launches=(LAUNCH, other))))
    assert [line for line, _ in found] == [1, 1]
    assert [command.arguments for _, command in found] == [(SOURCE.as_uri(), 0), (SOURCE.as_uri(), 1)]
    assert {command.command for _, command in found} == {"gpaLsp.showPrediction"}


def test_a_lens_is_cut_between_its_parts_and_never_loses_how_much_was_emulated() -> None:
    parts = [
        "predicted “a long name of a launch”: global loads limit",
        "12.0 B in, 4.0 B out/update",
        "≥12.3 µs on H100",
    ]
    limits = "emulated 22 of 16,384 blocks, not to the end"
    for room in range(len(parts)):
        words = " · ".join(parts[: room + 1])
        for text in (TEXT, f"// new\n{TEXT}"):
            ((_, command),) = lenses(
                view(replace(RESULT, launches=(replace(LAUNCH, words=words, limits=limits),)), text)
            )
            assert len(command.title) <= MOST_LENS_CHARS
            edited = " · before your edits" if text != TEXT else ""
            assert command.title.endswith(f" · {limits}{edited}")


def test_problems_stand_in_the_description_and_point_there_from_the_source() -> None:
    known = PredictedProblem(
        severity=ProblemSeverity.ERROR, message="argument n is missing", described_line=2, kernel=NAME
    )
    whole = PredictedProblem(severity=ProblemSeverity.NOTE, message="no GPU is known")
    result = PredictedResult(job=JOB, launches=(LAUNCH,), problems=(known, whole))
    (there,) = list_diagnostics(view(result, path=DESCRIPTION))
    assert (there.range.start.line, there.severity) == (1, DiagnosticSeverity.Warning)
    assert there.message == "argument n is missing"
    here, note = list_diagnostics(view(result))
    assert (here.range.start.line, here.severity) == (1, DiagnosticSeverity.Information)
    assert here.message == "k.launch.toml:2: argument n is missing (emulated)"
    assert [(one.location.uri, one.location.range.start.line) for one in here.related_information] == [
        (DESCRIPTION.as_uri(), 1)
    ]
    assert note.severity == DiagnosticSeverity.Hint
    moved = view(result, f"# more\n\n{TOML}", path=DESCRIPTION)
    assert [one.range.start.line for one in list_diagnostics(moved)] == [3]


def test_what_was_emulated_stays_while_the_description_cannot_be_read() -> None:
    problem = PredictedProblem(severity=ProblemSeverity.ERROR, message="is no TOML", described_line=3)
    typing = PredictedResult(job=replace(JOB, launches_text=f"{TOML}grid ="), problems=(problem,))
    state = make_state(typing, known=make_state(RESULT, (TRIAL,)))
    seen = view(state)
    assert [command.title for _, command in lenses(seen)] == [f"{LAUNCH.words} · before your edits"]
    assert hints(seen) == hints(view()) and actions(seen, 5) == []
    assert [code for _, code in codes(seen)][-1] == "emulated launch"
    (there,) = list_diagnostics(view(state, f"{TOML}grid =", path=DESCRIPTION))
    assert there.range.start.line == 2
    assert make_state(RESULT, known=state) == make_state(RESULT)
    assert hints(view(make_state(typing))) == []


def test_a_block_worth_a_try_is_one_edit_of_the_description() -> None:
    state = make_state(RESULT, (TRIAL,))
    (action,) = actions(view(state), 5)
    assert action.title == "Try block 128: predicted −31 % DRAM traffic, 1.25× as fast"
    assert action.edit is not None and action.edit.changes is not None
    ((uri, (edit,)),) = action.edit.changes.items()
    assert uri == DESCRIPTION.as_uri()
    assert apply_edit(TOML, edit) == TOML.replace("64", "128")
    assert actions(view(state), 1) == []
    moved = f"# more\n{TOML}"
    (there,) = actions(view(state, moved, path=DESCRIPTION), 4)
    assert there.edit is not None and there.edit.changes is not None
    assert apply_edit(moved, there.edit.changes[DESCRIPTION.as_uri()][0]) == moved.replace("64", "128")


def apply_edit(text: str, edit: TextEdit) -> str:
    lines = text.split("\n")
    span = edit.range
    line = lines[span.start.line]
    lines[span.start.line] = line[: span.start.character] + edit.new_text + line[span.end.character :]
    return "\n".join(lines)


def make_statics() -> StaticState:
    kernel = StaticKernel(mangled_name=NAME, name=LAUNCH.name, line=4, words="18 registers", page="")
    return take_result(None, StaticResult(path=SOURCE, text=TEXT, kernels=(kernel,)))


def test_a_launch_can_be_described_where_there_is_none() -> None:
    nothing = PredictedResult(job=replace(JOB, launches_text=""))
    (action,) = actions(view(nothing, statics=make_statics()), 2)
    assert action.title == "Describe a launch of scale"
    assert action.command is not None
    assert (action.command.command, action.command.arguments) == ("gpaLsp.describeLaunch", (SOURCE.as_uri(), NAME))
    assert actions(view(nothing, statics=make_statics()), 6) == [], "only on the head of the kernel"
    (simulation,) = actions(view(RESULT, statics=make_statics()), 2)
    assert simulation.title == "Simulate the described launches of scale"
    assert simulation.command is not None
    assert simulation.command.arguments == (SOURCE.as_uri(), NAME)
    assert len(actions(view(replace(RESULT, undescribed=(NAME,)), statics=make_statics()), 2)) == 1


def test_names_of_strangers_lead_nowhere() -> None:
    hostile = change(SHARED, space=Space.GLOBAL, arrays=("`[here](command:evil)<img src=x>",))
    text = describe_hover(view(replace(RESULT, accesses=(hostile,))), 6)
    assert text is not None and "](command" in text
    assert "](command" not in re.sub(r"`[^`\n]*`", "", defuse(text)).replace("\\](", "")
