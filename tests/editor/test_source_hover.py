"""Content of hovers beyond the stall table: roofs, pictures, names of lines as they are now, edited lines."""

import re
import sys
from types import FrameType

from msgspec.structs import replace

from gpa_lsp import api
from gpa_lsp.diagnosis.advice.model import UnitUse
from gpa_lsp.editor.abilities import Abilities
from gpa_lsp.editor.protocol.safe_markdown import defuse
from gpa_lsp.editor.source.hover import describe_hover
from tests.conftest import ROOT
from tests.editor.sessions import Session
from tests.editor.test_causes import LISTING
from tests.editor.views import SOURCE, make_profile
from tests.report_builder import build_kernel

BLAME = "2 <- 1  long_scoreboard  memory_global R2 8c 1i"
KERNEL = build_kernel(LISTING, name="saxpy(float*, float*)", blame=BLAME, advice="")
UNITS = (
    UnitUse(name="DRAM", achieved_ratio=0.873, ceiling_ratio=0.85),
    UnitUse(name="SM", achieved_ratio=0.31, ceiling_ratio=1.0),
)
URI = "file:///project/saxpy.cu"


def hover(line: int, text: str = SOURCE, units: tuple[UnitUse, ...] = UNITS, **abilities: bool) -> str | None:
    assert KERNEL.advice is not None
    kernel = replace(KERNEL, advice=replace(KERNEL.advice, units=units, is_bandwidth_bound=bool(units)))
    profile = make_profile(kernel, texts={"saxpy.cu": SOURCE, "scale.h": "a\nb\n"})
    opened = {"/project/saxpy.cu": text, "/project/scale.h": "// new\na\nb\n"}
    view = Session(profile, opened, abilities=Abilities(**abilities)).view(URI)
    assert view is not None
    return describe_hover(view, line)


def must(text: str | None) -> str:
    assert text is not None
    return text


def test_the_nearest_roof_is_named() -> None:
    assert "DRAM at 87 % of its peak" in must(hover(5))
    assert "; the SMs' busiest unit 31 %" in must(hover(5))


def test_roofs_nobody_measured_are_for_the_page_of_the_kernel() -> None:
    assert "of its peak" in must(hover(5))
    assert "ceilings" not in must(hover(5, units=()))


def test_other_lines_are_named_by_where_they_are_now() -> None:
    rows = must(hover(7, "// new\n" + SOURCE)).splitlines()
    (row,) = [row for row in rows if "data from global memory" in row]
    assert "line 6: " in row
    (row,) = [row for row in must(hover(5)).splitlines() if "data from global memory" in row]
    assert "line 6: " in row


def test_a_cause_that_was_edited_away_is_not_given_a_number() -> None:
    text = must(hover(6, SOURCE.replace("2 * x[i]", "3 * x[i]")))
    assert "← stalled on a line edited since: " in text and "line 5" not in text


def test_an_edited_line_says_so_and_carries_no_number() -> None:
    text = must(hover(5, SOURCE.replace("2 * x[i]", "3 * x[i]")))
    assert text == "_edited since it was measured; its numbers come back with the next measurement_"
    assert hover(1, SOURCE.replace("2 * x[i]", "3 * x[i]")) is None


def test_a_hover_has_twelve_lines_at_most_and_links_open_the_rest() -> None:
    text = must(hover(5, links=True))
    rows = text.split("\n")
    assert len(rows) <= 12 and "" not in rows
    assert [row for row in rows if "](command:" in row] == [rows[-1]] and defuse(text) == text
    assert re.findall(r"\[(.*?)\]\(command:(\w+\.\w+)\?", rows[-1]) == [
        ("table", "gpaLsp.showLine"),
        ("SASS", "gpaLsp.openSass"),
        ("page", "gpaLsp.showPage"),
        ("history", "gpaLsp.showHistory"),
    ]
    assert "](command:" not in must(hover(5))


MOST_MODULES = (
    20  # of the package, that one hover enters: it words its line, and takes ready what is said of the kernel
)


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
