"""Findings of background jobs, as the scenes of :mod:`tests.editor.scenes` write it: one item on a line.

``static``, what a compiler and the checks of code say; behind the name ``has_failed`` and ``no_flags``::

    kernel 3 _Z5scalePfi scale(float*, int): 18 registers
    mark 5 double-constants certain loop _Z5scalePfi: Values are widened. ~ Write `0.5f`.
    error 5:9 #20: identifier "y" is undefined
    note 2 in /project/h.cuh: declared here

``predicted``, what was emulated, and ``timed``: members of :data:`PREDICTED` and :data:`TIMES`, with other fields::

    LAUNCH words="predicted: limited by L1"
    ACCESS share_ratio=0.01
    problem error 2 _Z5scalePfi: argument n is missing

A second block of a kind is what was found next, beside what is known.
"""

import ast
import re
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gpa_lsp.editor.predicted.results import LaunchFact, PredictedProblem, PredictedResult
from gpa_lsp.editor.predicted.view import PredictedState, make_state
from gpa_lsp.editor.static.view import StaticKernel, StaticMark, StaticResult, StaticState, take_result
from gpa_lsp.editor.timed.view import LaunchTime, TimedJob, TimedResult, TimedState
from gpa_lsp.editor.timed.view import make_state as make_timed_state
from gpa_lsp.execution.compiler.model import CompilerMessage
from gpa_lsp.foundation.errors import ProblemSeverity
from tests.editor.predictions import ACCESS, BRANCH, FINE, JOB, LAUNCH, NAME, RACE, SHARED, SOURCE, TRIAL, change

BEFORE = LaunchTime(
    mangled_name=NAME, name="scale", shape="<<<16, 64>>>", gpu="Made-up GPU", median_ns=41_200.0, error_ns=100.0,
    launches=30, code="old", launch="first",
)  # fmt: skip
TIMES = {"BEFORE": BEFORE, "NOW": replace(BEFORE, median_ns=36_256.0, code="new")}
PREDICTED: dict[str, tuple[str, Any]] = {  # name → list of the result that it belongs to
    "LAUNCH": ("launches", LAUNCH),
    "ACCESS": ("accesses", ACCESS),
    "FINE": ("accesses", FINE),
    "SHARED": ("accesses", SHARED),
    "BRANCH": ("branches", BRANCH),
    "RACE": ("faults", RACE),
    "TRIAL": ("trials", TRIAL),
}

_KERNEL = re.compile(r"kernel (?P<line>\d+) (?P<mangled_name>\S+) (?P<name>.+?): (?P<words>.+)")
_MARK = re.compile(
    r"mark (?P<line>\d+) (?P<check>\S+) (?P<certainty>\S+)(?P<loop> loop)? (?P<kernels>\S+):"
    r" (?P<message>.+?)(?: ~ (?P<remedy>.+))?"
)
_MESSAGE = re.compile(
    r"(?P<severity>error|warning|note) (?P<line>-|\d+)(?::(?P<column>\d+))?(?: #(?P<number>\d+))?"
    r"(?: in (?P<path>\S+))?: (?P<text>.+)"
)
_PROBLEM = re.compile(r"problem (?P<severity>\w+) (?P<line>\d+|-)(?: (?P<kernel>\S+))?: (?P<message>.+)")


def read_arguments(text: str) -> dict[str, Any]:
    """``a=1, b=(2, 3)`` as keyword arguments."""
    call = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    return {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}


def read_static(body: str, traits: set[str], path: str, text: str, known: StaticState | None) -> StaticState:
    kernels, marks, messages = [], [], []
    for row in filter(None, body.splitlines()):
        if found := _KERNEL.fullmatch(row):
            kernels.append(StaticKernel(**{**found.groupdict(), "line": int(found["line"]), "page": ""}))
        elif found := _MARK.fullmatch(row):
            members = found.groupdict()
            is_in_loop, remedy = bool(members.pop("loop")), members.pop("remedy") or ""
            changed = {"line": int(found["line"]), "kernels": tuple(found["kernels"].split(","))}
            marks.append(StaticMark(**{**members, **changed}, is_in_loop=is_in_loop, remedy=remedy))
        else:
            found = _MESSAGE.fullmatch(row)
            assert found is not None, row
            messages.append(
                CompilerMessage(
                    severity=ProblemSeverity(found["severity"]),
                    text=found["text"],
                    path=None if found["path"] is None else Path(found["path"]),
                    line=None if found["line"] == "-" else int(found["line"]),
                    column=found["column"] and int(found["column"]),
                    number=found["number"],
                )
            )
    result = StaticResult(
        path=Path(path), text=text, compiler="NVRTC 13.0", has_flags="no_flags" not in traits,
        has_failed="has_failed" in traits, kernels=tuple(kernels), marks=tuple(marks), messages=tuple(messages),
    )  # fmt: skip
    return take_result(known, result)


def read_predicted(body: str, text: str, launches_text: str, known: PredictedState | None) -> PredictedState:
    lists: dict[str, list[Any]] = {kind: [] for kind, _ in PREDICTED.values()}
    problems, undescribed = [], ()
    for row in filter(None, body.splitlines()):
        name, _, more = row.partition(" ")
        if found := _PROBLEM.fullmatch(row):
            problems.append(
                PredictedProblem(
                    severity=ProblemSeverity(found["severity"]),
                    message=found["message"],
                    described_line=None if found["line"] == "-" else int(found["line"]),
                    kernel=found["kernel"],
                )
            )
        elif name == "undescribed":
            undescribed = tuple(more.split())
        else:
            (kind, member), changes = PREDICTED[name], read_arguments(more)
            lists[kind].append((change if isinstance(member, LaunchFact) else replace)(member, **changes))
    trials = tuple(lists.pop("trials"))
    job = replace(JOB, text=text, launches_text=launches_text)
    found_lists = {name: tuple(rows) for name, rows in lists.items()}
    result = PredictedResult(job=job, problems=tuple(problems), undescribed=undescribed, **found_lists)
    return make_state(result, trials, known)


def read_timed(body: str, text: str, known: TimedState | None) -> TimedState:
    times = []
    for row in filter(None, body.splitlines()):
        name, _, more = row.partition(" ")
        times.append(replace(TIMES[name], **read_arguments(more)))
    base = replace(JOB, text=text)
    job = TimedJob(base=base, kept=SOURCE.with_name("kept"))
    return make_timed_state(TimedResult(job=job, times=tuple(times)), known)
