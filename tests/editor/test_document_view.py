import pickle

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.snapshot import LoadedProfile, measure_kernel
from gpa_lsp.report.kernel_lines import find_body, find_hottest
from tests.editor.views import LISTING, SOURCE, make_profile, make_snapshot, make_view
from tests.report_builder import build_kernel

SAXPY = build_kernel(LISTING, name="saxpy(float*, float*)", mangled_name="_Z5saxpyPfS_")


def must(view: DocumentView | None) -> DocumentView:
    assert view is not None
    return view


def hot(view: DocumentView) -> list[tuple[int, int]]:
    return [(line, round(100 * found.share_ratio)) for line, found in view.find_hottest_lines()]


def test_lines_carry_what_is_inlined_into_them() -> None:
    assert hot(must(make_view(make_profile(SAXPY)))) == [(5, 64), (4, 20), (6, 15)]


def test_called_functions_count_as_estimated() -> None:
    kernel = build_kernel(LISTING, name="saxpy", called_samples={("saxpy.cu", 7): 40.0})
    view = must(make_view(make_profile(kernel)))
    assert (7, 41) in hot(view)
    assert view.hot_lines[7][0].is_mostly_called


def test_files_no_profile_mentions_have_no_view() -> None:
    assert make_view(make_profile(SAXPY), path="/project/other.cu") is None
    assert make_view(make_profile(SAXPY, texts={})) is None


def test_hot_lines_follow_edits_and_changed_ones_are_dropped() -> None:
    text = "// one more\n" + SOURCE.replace("int i = threadIdx.x", "int i = threadIdx.y")
    view = must(make_view(make_profile(SAXPY), text))
    assert hot(view) == [(6, 64), (7, 15)]
    assert view.hot_lines[6][0].is_edited
    assert not must(make_view(make_profile(SAXPY))).hot_lines[5][0].is_edited


def test_without_a_measured_text_lines_are_taken_as_they_are() -> None:
    view = must(make_view(make_profile(SAXPY, texts={"saxpy.cu": None}), "only\nfour\nlines\nhere"))
    assert hot(view) == [(4, 20)]


def test_the_lens_stands_on_the_definition() -> None:
    view = must(make_view(make_profile(SAXPY), "\n\n" + SOURCE))
    assert [(anchor.line, anchor.is_edited) for anchor in view.anchors] == [(4, True)]


def test_without_a_definition_the_lens_stays_with_the_body() -> None:
    kernel = build_kernel(LISTING, name="made_by_a_macro")
    text = SOURCE.replace("threadIdx.x", "threadIdx.y")
    assert [anchor.line for anchor in must(make_view(make_profile(kernel), text)).anchors] == [5]


def test_a_header_has_hot_lines_but_no_lens() -> None:
    profile = make_profile(SAXPY, texts={"saxpy.cu": SOURCE, "scale.h": "a\nb\n"})
    view = must(make_view(profile, "a\nb\n", path="/project/scale.h"))
    assert (hot(view), view.anchors) == ([(2, 15)], ())


def test_the_newest_measurement_of_a_kernel_is_shown() -> None:
    old = build_kernel("saxpy.cu:4  X  ; wait=1", name="saxpy", measured_unix_s=1_000)
    new = build_kernel("saxpy.cu:5  X  ; wait=1", name="saxpy", measured_unix_s=2_000)
    profiles = [make_profile(new, path="b.ncu-rep"), make_profile(old, path="a.ncu-rep")]
    assert hot(must(make_view(profiles))) == [(5, 100)]
    snapshot = make_snapshot(*profiles).without_profiles([profiles[0].path])
    assert [shown.profile.path for shown in snapshot.visible] == [profiles[1].path]


def test_without_a_time_of_its_own_a_kernel_is_as_old_as_its_profile() -> None:
    kernel = build_kernel(LISTING, name="saxpy", measured_unix_s=None)
    profiles = [make_profile(kernel, path=name, modified_ns=ns) for name, ns in (("new", 20), ("old", 10))]
    assert [str(shown.profile.path) for shown in make_snapshot(*profiles).visible] == ["new"]


def test_kernels_of_one_name_in_different_files_are_both_shown() -> None:
    one = make_profile(build_kernel("a.cu:1  X  ; wait=1", name="run"), path="a", texts={"a.cu": "x"})
    other = make_profile(build_kernel("b.cu:1  X  ; wait=1", name="run"), path="b", texts={"b.cu": "x"})
    assert len(make_snapshot(one, other).visible) == 2


def test_a_profile_read_again_replaces_itself() -> None:
    first = make_profile(SAXPY)
    second = make_profile(build_kernel("saxpy.cu:4  X  ; wait=1", name="other"))
    snapshot = make_snapshot(first, second)
    assert [shown.kernel.report.name for shown in snapshot.visible] == ["other"]
    assert snapshot.generation == 2


def test_a_line_hot_in_two_kernels_shows_the_hotter_one_first() -> None:
    small = build_kernel("saxpy.cu:5  X  ; wait=1\nsaxpy.cu:4  X  ; wait=99", name="small")
    view = must(make_view(make_profile(small, SAXPY)))
    assert [found.shown.kernel.report.name for found in view.hot_lines[5]] == ["saxpy(float*, float*)", "small"]


def test_the_hottest_instructions_of_every_frame_are_kept() -> None:
    hottest = find_hottest(SAXPY.instructions)
    assert hottest[("saxpy.cu", 6)] == hottest[("scale.h", 2)] == (2,)
    assert find_body(SAXPY) == ("saxpy.cu", (4, 5, 6, 7))


def test_a_kernel_is_at_home_in_its_own_source_though_libraries_have_most_of_it() -> None:
    base = "/home/me/.julia/packages/LLVM/WjSQG/src/interop/base.jl"
    listing = "".join(f"{base}:{line}  X  ; wait=5\n" for line in range(1, 9)) + "bb.jl:7  X  ; wait=1"
    assert find_body(build_kernel(listing)) == ("bb.jl", (7,))
    assert find_body(build_kernel(f"{base}:40  X  ; wait=5")) == (base, (40,))


def test_a_kernel_without_lines_has_no_place() -> None:
    kernel = build_kernel("-  ; wait=5", name="bare")
    assert (find_hottest(kernel.instructions), find_body(kernel)) == ({}, None)
    assert make_view(make_profile(kernel)) is None


def test_many_instructions_keep_a_few_of_the_hottest() -> None:
    listing = "\n".join(f"a.cu:1  X{number}  ; wait={number}" for number in range(1, 30))
    assert find_hottest(build_kernel(listing).instructions)[("a.cu", 1)] == (28, 27, 26, 25, 24)


def test_measured_kernels_cross_the_pipe() -> None:
    kernel = measure_kernel(SAXPY, 0)
    copy = pickle.loads(pickle.dumps(kernel, protocol=5))
    assert copy.hottest == kernel.hottest
    assert copy.report.lines == kernel.report.lines
    profile = LoadedProfile(path=make_profile().path, files=make_profile().files, kernels=(copy,))
    assert hot(must(make_view(profile))) == [(5, 64), (4, 20), (6, 15)]
