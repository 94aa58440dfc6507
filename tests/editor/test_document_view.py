import pickle

from msgspec.structs import replace

from gpa_lsp.editor.document_view import DocumentView, OpenDocument, build_view
from gpa_lsp.editor.snapshot import measure_kernel
from gpa_lsp.report.kernel_lines import find_body, find_hottest
from tests.editor.views import CAUSED, LISTING, make_knowledge, make_profile, make_snapshot, make_view
from tests.report_builder import build_kernel

SAXPY = build_kernel(LISTING, name="saxpy(float*, float*)", mangled_name="_Z5saxpyPfS_")


def must(view: DocumentView | None) -> DocumentView:
    assert view is not None
    return view


def hot(view: DocumentView) -> list[tuple[int, int]]:
    return [(line, round(100 * found.share_ratio)) for line, found in view.find_hottest_lines()]


def test_files_no_profile_mentions_have_no_view() -> None:
    assert make_view(make_profile(SAXPY), path="/project/other.cu") is None
    assert make_view(make_profile(SAXPY, texts={})) is None


def test_without_any_knowledge_there_is_no_view() -> None:
    document = OpenDocument(uri="file:///k.cu", local_path="/k.cu", text="", saved={})
    assert build_view(document, make_knowledge()) is None


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
    kernel = measure_kernel(CAUSED, 0)
    copy = pickle.loads(pickle.dumps(kernel, protocol=5))
    assert (copy.hottest, copy.causes, copy.report.lines) == (kernel.hottest, kernel.causes, CAUSED.lines)
    assert copy.remedies == {("saxpy.cu", 4): (0,), ("saxpy.cu", 5): (0,)}
    assert hot(must(make_view(replace(make_profile(), kernels=(copy,))))) == [(6, 60), (5, 24), (4, 10), (7, 6)]
