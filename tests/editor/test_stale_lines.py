"""Lines that were changed since they were measured (``scenes/stale.md``), and that no number stands on a line it was not measured on."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.editor.document_view import list_gaps
from gpa_lsp.editor.model import Freshness
from gpa_lsp.editor.protocol.features.marks import list_heat
from gpa_lsp.editor.settings import Settings, UnverifiedChoice
from gpa_lsp.report.line_map import map_lines
from tests.editor.views import make_profile, make_view
from tests.report_builder import build_kernel

SOURCE = """\
__global__ void saxpy(float *x, float *y)
{
    int i = threadIdx.x;
    float a = x[i];
    float b = a * a;
    y[i] = a + b;
}
"""
LISTING = "saxpy.cu:5  FMUL R3, R2, R2  ; long_scoreboard=900"


def test_a_line_another_measurement_found_is_not_stale() -> None:
    old = build_kernel(LISTING, name="old(float*)", mangled_name="old")
    new = build_kernel(LISTING, name="new(float*)", mangled_name="new")
    edited = SOURCE.replace("a * a", "a * 2")
    profiles = [
        make_profile(old, path="old.ncu-rep", texts={"saxpy.cu": SOURCE}),
        make_profile(new, path="new.ncu-rep", texts={"saxpy.cu": edited}),
    ]
    found = make_view(profiles, edited)
    assert found is not None
    assert found.stale == ()
    assert [hot.shown.name for hot in found.hot_lines[5]] == ["new"]


def test_a_text_that_may_not_be_what_was_measured_has_no_stale_lines() -> None:
    kernel = build_kernel(LISTING, name="saxpy")
    profile = make_profile(kernel, texts={"saxpy.cu": SOURCE})
    profile = replace(profile, files={"saxpy.cu": replace(profile.files["saxpy.cu"], is_verified=False)})
    edited = SOURCE.replace("a * a", "a * 2")
    withheld = make_view(profile, edited, settings=Settings(unverified_lines=UnverifiedChoice.NONE))
    shown = make_view(profile, edited, settings=Settings())
    assert withheld is not None and shown is not None
    assert (withheld.stale, shown.stale) == ((), (5,))


lines_of_code = st.sampled_from(["a;", "b;", "c;", "  a;", "x = y;", "{", "}", "", "for (;;)", "d;", "e;", "f;"])
texts = st.lists(lines_of_code, min_size=1, max_size=14)


@given(measured=texts, current=texts, hot=st.sets(st.integers(1, 14), max_size=5))
def test_no_number_stands_on_a_line_it_was_not_measured_on(
    measured: list[str], current: list[str], hot: set[int]
) -> None:
    listing = "\n".join(f"saxpy.cu:{line}  X ; wait={10 * line}" for line in sorted(hot | {1}))
    found = make_view(make_profile(build_kernel(listing), texts={"saxpy.cu": "\n".join(measured)}), "\n".join(current))
    assert found is not None
    heat = list_heat(found)
    marked = {mark.line for mark in heat if mark.freshness is not Freshness.STALE}
    for line in marked:
        for entry in found.hot_lines[line]:
            assert entry.row.line is not None and entry.row.line <= len(measured)
            assert measured[entry.row.line - 1].strip() == current[line - 1].strip()
    assert marked.isdisjoint(found.stale)
    assert list(found.stale) == sorted(_find_slowly(measured, current, hot | {1}))


def _find_slowly(measured: list[str], current: list[str], hot: set[int]) -> set[int]:
    """Stale lines by asking of each line for its nearest neighbours with partners."""
    partner = {new: old for old, new in enumerate(map_lines(measured, current).current_lines, start=1) if new}
    stale = set()
    for line, text in enumerate(current, start=1):
        if line in partner or not any(character.isalnum() for character in text):
            continue
        above = max((new for new in partner if new < line), default=0)
        below = min((new for new in partner if new > line), default=len(current) + 1)
        first, last = partner.get(above, 0) + 1, partner.get(below, len(measured) + 1) - 1
        lost = [old for old in range(first, last + 1) if old in hot]
        if last - first == below - above - 2:
            lost = [old for old in lost if old - first == line - above - 1]
        if lost and text.strip() not in {measured[old - 1].strip() for old in range(first, last + 1)}:
            stale.add(line)
    return stale


@given(measured=texts, current=texts)
def test_gaps_hold_exactly_the_lines_without_partners(measured: list[str], current: list[str]) -> None:
    line_map = map_lines(measured, current)
    gaps = list(list_gaps(line_map, len(current)))
    partners = set(line_map.current_lines) - {0}
    lost = {line for line, now in enumerate(line_map.current_lines, start=1) if not now}
    for gap in gaps:
        assert set(range(gap.old_start, gap.old_end)) <= lost
        assert partners.isdisjoint(range(gap.new_start, gap.new_end))
        assert gap.old_start < gap.old_end and gap.new_start < gap.new_end
    assert all(one.old_end <= other.old_start and one.new_end <= other.new_start for one, other in pairwise(gaps))
