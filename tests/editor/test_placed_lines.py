"""The lines of a view, against collecting them one by one."""

from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.snapshot import LoadedProfile
from gpa_lsp.report.line_map import map_lines
from tests.editor.views import make_profile, make_view
from tests.report_builder import build_kernel

_codes = st.lists(st.sampled_from(["a;", "b;", "c;", "d;", "e;", "}", ""]), min_size=1, max_size=8)
_kernels = st.lists(
    st.tuples(_codes, st.dictionaries(st.integers(1, 8), st.integers(1, 50), max_size=6)), min_size=1, max_size=4
)


def make_profiles(kernels: list[tuple[list[str], dict[int, int]]]) -> list[LoadedProfile]:
    profiles = []
    for number, (code, samples) in enumerate(kernels):
        lines = [f"saxpy.cu:{line}  X  ; wait={count}" for line, count in samples.items() if line <= len(code)]
        kernel = build_kernel(
            "\n".join(["other.h:1  Y  ; wait=7", *lines]), name=f"k{number}", mangled_name=f"k{number}"
        )
        profiles.append(make_profile(kernel, path=f"{number}.ncu-rep", texts={"saxpy.cu": "\n".join(code)}))
    return profiles


def collect(view: DocumentView) -> dict[int, list[tuple[str, float, bool]]]:
    return {
        line: [(hot.shown.name, hot.share_ratio, hot.is_edited) for hot in hots]
        for line, hots in view.hot_lines.items()
    }


@given(kernels=_kernels, current=_codes)
def test_every_line_holds_what_each_kernel_says_of_it_largest_first(
    kernels: list[tuple[list[str], dict[int, int]]], current: list[str]
) -> None:
    view = make_view(make_profiles(kernels), "\n".join(current))
    expected: dict[int, list[tuple[str, float, bool]]] = {}
    for number, (code, samples) in enumerate(kernels):
        mapped = map_lines(code, current)
        total = 7 + sum(count for line, count in samples.items() if line <= len(code))
        for line, count in samples.items():
            now = mapped.find_current(line)
            if now is not None:
                expected.setdefault(now, []).append((f"k{number}", count / total, not mapped.unchanged))
    if view is None:
        assert expected == {}
        return
    assert collect(view) == {line: sorted(found, key=lambda one: (-one[1], one[0])) for line, found in expected.items()}
    assert list(view.hot_lines) == sorted(expected)
    assert len(view.hot_lines) == len(expected)
    for line in range(1, len(current) + 2):
        assert (line in view.hot_lines) == (line in expected)
        top = view.hot_lines.find_top(line)
        assert (top is None) == (line not in expected)
        assert top is None or (top.shown.name, top.share_ratio) == collect(view)[line][0][:2]


@given(kernels=_kernels, current=_codes, least=st.sampled_from([0.0, 0.1, 0.3, 0.9]))
def test_lines_above_a_share_are_those_with_a_kernel_above_it(
    kernels: list[tuple[list[str], dict[int, int]]], current: list[str], least: float
) -> None:
    view = make_view(make_profiles(kernels), "\n".join(current))
    if view is None:
        return
    above = [line for line, hots in view.hot_lines.items() if hots[0].share_ratio >= least]
    assert view.hot_lines.list_above(least) == above
    assert [(line, top.shown.name) for line, top in view.hot_lines.list_tops(least)] == [
        (line, view.hot_lines[line][0].shown.name) for line in above
    ]


def test_a_text_nobody_has_a_copy_of_is_the_one_that_was_opened() -> None:
    kernel = build_kernel("saxpy.cu:2  X  ; wait=9", name="k")
    profile = make_profile(kernel, texts={"saxpy.cu": None})
    view = make_view(profile, "new;\na;\nb;", opened="a;\nb;")
    assert view is not None
    assert collect(view) == {3: [("k", 1.0, True)]}
