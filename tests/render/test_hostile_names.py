"""Predictions, emulated runs and findings in code, in every format, with every text hostile."""

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from msgspec.structs import replace

from gpa_lsp.document import prediction_json
from gpa_lsp.document.document_page import render_document_page
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.prediction_view import build_prediction, build_prediction_page
from gpa_lsp.document.sarif import build_sarif, write_github
from gpa_lsp.document.static_view import build_static, build_static_kernel, list_static_notices
from gpa_lsp.document.terminal import write_plain
from gpa_lsp.editor.protocol.safe_markdown import defuse
from gpa_lsp.execution.compiler.model import CompiledUnit, CompilerKind, CompilerMessage
from gpa_lsp.execution.prediction.model import SourcePrediction
from gpa_lsp.execution.prediction.static_source import examine_unit
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.visible_text import make_visible
from tests.conftest import examples
from tests.hostile_names import EVERYTHING, EVIL, count_elements, count_tokens, find_unseen, spoil
from tests.prediction.kernels import SOURCE
from tests.render.test_prediction_text import build_kernel

CUBIN = Path(__file__).parents[2] / "fixtures" / "cubins" / "sm_80" / "local_array_original.cubin"
KINDS = ["steering", "markup", "markup backwards", "kindly"]


@cache
def make_prediction() -> SourcePrediction:
    """A launch made by hand, of a source that was compiled once: the compiler complains, and the code has findings."""
    path = Path("/home/me/k.cu")
    message = CompilerMessage(severity=ProblemSeverity.WARNING, text="a variable is not used", path=path, line=3)
    unit = CompiledUnit(
        source=path,
        kind=CompilerKind.NVRTC,
        compiler="NVRTC 13.0",
        compute_capability=(8, 0),
        ptx="",
        cubin=CUBIN.read_bytes(),
        messages=(message,),
        notes=("include flags are unknown",),
    )
    return SourcePrediction(
        path=path,
        launches_path=None,
        statics=examine_unit(unit, path=path, text=SOURCE),
        kernels=(build_kernel(),),
        undescribed=("_Z5otherv",),
        problems=(Problem(severity=ProblemSeverity.WARNING, message="a doubt", path=path, remedy="look"),),
    )


def show(evil: str) -> dict[str, str]:
    """Every form, by its name."""
    prediction = spoil(make_prediction(), evil)
    statics = replace(prediction.statics, text=SOURCE + make_visible(evil))  # lines of the source are lines
    (kernel,) = prediction.kernels
    kernel = replace(kernel, execution=replace(kernel.execution, printed=make_visible(evil)))  # and so are printed ones
    prediction = replace(prediction, statics=statics, kernels=(kernel,))
    found = [one for kernel in statics.kernels for one in kernel.findings]
    return {
        "text": write_plain(build_prediction(prediction, Path("/"))),
        "narrow text": write_plain(build_prediction(prediction), 60),
        "json": json.dumps(prediction_json.make_prediction(prediction)),
        "html": render_document_page(*build_prediction_page(prediction)),
        "markdown": defuse("\n".join(write_markdown(build_prediction(prediction)))),
        "static text": write_plain(build_static([statics], found, PlaceNames())),
        "github": write_github(list_static_notices([statics], found), PlaceNames()),
        "sarif": json.dumps(build_sarif(list_static_notices([statics], found), PlaceNames(), Path("/"))),
        **{
            f"markdown {number}": defuse(
                "\n".join(write_markdown([build_static_kernel(kernel, statics.unit.compiler or "")], level=1))
            )
            for number, kernel in enumerate(statics.kernels)
        },
    }


def list_faults(evil: str) -> list[str]:
    forms, harmless = show(evil), show("k" * len(evil))
    faults = [f"{name}: {fault}" for name, text in forms.items() for fault in find_unseen(text, is_page=name == "html")]
    added = count_elements(forms["html"]) - count_elements(harmless["html"])
    faults += [f"html: {element}" for element in added if element != "code "]  # what stands between backticks is code
    lines = forms["github"].splitlines()
    if len(lines) != len(harmless["github"].splitlines()) or not all(line.startswith("::") for line in lines):
        faults.append("github: an annotation is not one line")
    for name, text in forms.items():
        if name.startswith("markdown"):
            more, less = (
                count_tokens(text) - count_tokens(harmless[name]),
                count_tokens(harmless[name]) - count_tokens(text),
            )
            faults += [f"{name}: {kind}" for kind in (*more, *less) if not kind.startswith(("strong", "s_", "inline"))]
    return faults


@pytest.mark.parametrize("evil", EVERYTHING, ids=KINDS)
def test_what_is_predicted_is_text_whatever_it_is_called(evil: str) -> None:
    assert list_faults(evil) == []


@examples(10)
@given(EVIL)
def test_nothing_steers_whatever_it_is_called(evil: str) -> None:
    assert list_faults(evil) == []
