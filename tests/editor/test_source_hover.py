"""Roofs in hovers, and how little a hover does; what it says of a line stands in ``scenes``."""

import sys
from types import FrameType

import pytest
from msgspec.structs import replace

from gpa_lsp import api
from gpa_lsp.diagnosis.advice.model import UnitUse
from gpa_lsp.editor.settings import Abilities
from gpa_lsp.editor.source.hover import describe_hover
from tests.conftest import ROOT
from tests.editor.sessions import Session
from tests.editor.views import CAUSED, make_profile, make_view

UNITS = (
    UnitUse(name="DRAM", achieved_ratio=0.873, ceiling_ratio=0.85),
    UnitUse(name="SM", achieved_ratio=0.31, ceiling_ratio=1.0),
)


@pytest.mark.parametrize("units", [UNITS, ()], ids=["measured", "not measured"])
def test_the_nearest_roof_is_named_where_it_was_measured(units: tuple[UnitUse, ...]) -> None:
    assert CAUSED.advice is not None
    advice = replace(CAUSED.advice, units=units, is_bandwidth_bound=bool(units))
    view = make_view(make_profile(replace(CAUSED, advice=advice)))
    assert view is not None
    text = describe_hover(view, 5) or ""
    assert ("DRAM at 87 % of its peak" in text) == ("; the SMs' busiest unit 31 %" in text) == bool(units)
    assert "ceilings" not in text


# of the package, that one hover enters: it words its line, and takes ready what is said of the kernel
MOST_MODULES = 20


def test_a_hover_enters_few_modules() -> None:
    kernel = api.load(ROOT / "fixtures" / "example.gpa-profile.json").kernels[0]
    compiled = kernel.instructions.chains[0][0].file
    text = (ROOT / "fixtures" / "kernels" / "short_def_use" / "original.cu").read_text(encoding="utf-8")
    profile = make_profile(kernel, texts={compiled: text})
    (file,) = profile.files.values()
    profile = replace(profile, files={compiled: replace(file, local_path=compiled)})
    view = Session(profile, {compiled: text}, abilities=Abilities(links=True)).view(f"file://{compiled}")
    assert view is not None
    lines = {line: describe_hover(view, line) for line in (6, 9, 22)}
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and str(frame.f_globals["__name__"]).startswith("gpa_lsp"):
            entered.add(frame.f_globals["__name__"])

    for line, text_before in lines.items():
        entered.clear()
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            found = describe_hover(view, line)
        finally:
            sys.setprofile(before)
        assert found == text_before is not None
        assert len(entered) <= MOST_MODULES, sorted(entered)
