"""Compiled paths find their files, and never a wrong one."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.document.html_report.code_columns import SourceTexts
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.report.measured_files import Doubt, find_files
from gpa_lsp.report.source_paths import SourceLocator, parse_compiled_path
from tests.report_builder import build_kernel, build_report


def put(path: Path, text: str = "x\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "anchor", "parts"),
    [
        ("/home/me/k.cu", "/", ("home", "me", "k.cu")),
        ("/../a//./b/../k.cu", "/", ("a", "k.cu")),
        ("../src/k.cu", "", ("..", "src", "k.cu")),
        ("C:\\Work\\k.cu", "C:/", ("Work", "k.cu")),
        ("c:/Work/k.cu", "C:/", ("Work", "k.cu")),
        ("src\\k.cu", "", ("src", "k.cu")),
        ("\\\\server\\share\\k.cu", "//", ("server", "share", "k.cu")),
        ("", "", ()),
    ],
)
def test_paths_of_every_system_come_apart(text: str, anchor: str, parts: tuple[str, ...]) -> None:
    path = parse_compiled_path(text)
    assert (path.anchor, path.parts) == (anchor, parts)


def test_mapping_wins_over_everything(tmp_path: Path) -> None:
    mapped = put(tmp_path / "here" / "src" / "k.cu")
    original = put(tmp_path / "there" / "src" / "k.cu")
    locator = SourceLocator([tmp_path], [(str(tmp_path / "there"), str(tmp_path / "here"))])
    assert locator.locate(str(original)) == mapped


def test_mapping_whose_file_is_missing_is_passed_over(tmp_path: Path) -> None:
    original = put(tmp_path / "there" / "k.cu")
    locator = SourceLocator([], [(str(tmp_path / "there"), str(tmp_path / "nowhere"))])
    assert locator.locate(str(original)) == original


def test_mapping_ends_at_a_folder_border(tmp_path: Path) -> None:
    put(tmp_path / "here" / "k.cu")
    assert SourceLocator([], [("/build/pro", str(tmp_path / "here"))]).locate("/build/project/k.cu") is None


def test_windows_mapping_ignores_case(tmp_path: Path) -> None:
    mapped = put(tmp_path / "src" / "k.cu")
    assert SourceLocator([], [("c:\\WORK", str(tmp_path))]).locate("C:\\Work\\src\\k.cu") == mapped


def test_absolute_path_that_exists(tmp_path: Path) -> None:
    there = put(tmp_path / "k.cu")
    assert SourceLocator([]).locate(str(there)) == there


def test_relative_path_below_a_root(tmp_path: Path) -> None:
    there = put(tmp_path / "src" / "k.cu")
    assert SourceLocator([tmp_path / "empty", tmp_path]).locate("./src/k.cu") == there


def test_longest_tail_wins(tmp_path: Path) -> None:
    put(tmp_path / "old" / "k.cu")
    wanted = put(tmp_path / "clone" / "src" / "k.cu")
    assert SourceLocator([tmp_path]).locate("/home/me/project/src/k.cu") == wanted
    assert SourceLocator([tmp_path]).locate("D:\\project\\SRC\\K.cu") == wanted


def test_letter_case_counts_for_paths_that_are_not_windows(tmp_path: Path) -> None:
    if os.name == "nt":
        pytest.skip("names are alike there")
    put(tmp_path / "src" / "K.cu")
    assert SourceLocator([tmp_path]).locate("/home/me/src/k.cu") is None


def test_equal_tails_without_text_give_no_answer(tmp_path: Path) -> None:
    put(tmp_path / "a" / "src" / "k.cu")
    put(tmp_path / "b" / "src" / "k.cu")
    assert SourceLocator([tmp_path]).locate("/home/me/src/k.cu") is None


def test_embedded_text_decides_between_equal_tails(tmp_path: Path) -> None:
    put(tmp_path / "a" / "src" / "k.cu", "int a;\nint b;\n")
    wanted = put(tmp_path / "b" / "src" / "k.cu", "float c;\nfloat d;\nfloat f;\n")
    locator = SourceLocator([tmp_path])
    assert locator.locate("/home/me/src/k.cu", "float c;\r\nfloat d;\r\nfloat e;\r\n") == wanted
    assert locator.locate("/home/me/src/k.cu", "nothing alike\n") is None


def test_two_equal_copies_give_no_answer(tmp_path: Path) -> None:
    put(tmp_path / "a" / "src" / "k.cu", "same\n")
    put(tmp_path / "b" / "src" / "k.cu", "same\n")
    assert SourceLocator([tmp_path]).locate("/home/me/src/k.cu", "same\n") is None


def test_edited_file_in_the_same_place_is_still_the_file(tmp_path: Path) -> None:
    wanted = put(tmp_path / "src" / "k.cu", "rewritten\n")
    assert SourceLocator([tmp_path]).locate("/home/me/src/k.cu", "as it was\n") == wanted


def test_bare_name_is_believed_only_where_it_must_be_it(tmp_path: Path) -> None:
    at_root = put(tmp_path / "k.cu")
    deeper = put(tmp_path / "clone" / "deep" / "other.cu")
    cmath = put(tmp_path / "third_party" / "cmath")
    locator = SourceLocator([tmp_path])
    assert locator.locate("/home/me/project/k.cu") == at_root
    assert locator.locate("/home/me/project/other.cu") == deeper
    assert cmath.exists()
    assert locator.locate("/usr/include/c++/11/cmath") is None
    assert locator.locate("/home/me/other.cu", "no line in common") is None


def test_bounded_search_does_not_guess(tmp_path: Path) -> None:
    put(tmp_path / "a" / "k.cu")
    put(tmp_path / "b" / "k.cu")
    assert SourceLocator([tmp_path], max_files=1).locate("/home/me/project/k.cu") is None


def test_hidden_and_package_folders_are_not_searched(tmp_path: Path) -> None:
    for folder in (".git", ".venv", "node_modules", "__pycache__"):
        put(tmp_path / folder / "src" / "k.cu")
    assert SourceLocator([tmp_path]).locate("/home/me/src/k.cu") is None


def test_overlapping_roots_count_a_file_once(tmp_path: Path) -> None:
    wanted = put(tmp_path / "src" / "k.cu")
    assert SourceLocator([tmp_path, tmp_path / "src", tmp_path]).locate("/home/me/src/k.cu") == wanted


def test_links_in_circles_end(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    wanted = put(tmp_path / "src" / "k.cu")
    assert SourceLocator([tmp_path]).locate("/home/me/src/k.cu") == wanted


def test_pipes_are_not_opened(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes with names there")
    (tmp_path / "src").mkdir()
    os.mkfifo(tmp_path / "src" / "k.cu")
    assert SourceLocator([tmp_path]).locate("/home/me/src/k.cu", "text") is None


@pytest.mark.parametrize("text", ["", "/", ".", "..", "a\0b", "\\\\server\\share\\k.cu", "k" * 5000, "/" + "a/" * 3000])
def test_odd_paths_find_nothing(tmp_path: Path, text: str) -> None:
    assert SourceLocator([tmp_path]).locate(text) is None


def test_a_confined_locator_finds_only_what_lies_below_its_folders(tmp_path: Path) -> None:
    secret = tmp_path / "secret" / "passwd.cu"
    secret.parent.mkdir()
    secret.write_text("root")
    work = tmp_path / "work"
    work.mkdir()
    (work / "link.cu").symlink_to(secret)
    (work / "own.cu").write_text("x")
    locator = SourceLocator([work], is_confined=True)
    assert locator.locate("/build/own.cu") == work / "own.cu"
    assert locator.locate(str(secret)) is None
    assert locator.locate("/build/link.cu") is None
    assert locator.locate("../secret/passwd.cu") is None
    assert locator.locate_outside(str(secret)) == secret
    assert locator.locate_outside(str(work / "own.cu")) is None
    assert SourceLocator([work]).locate(str(secret)) == secret


def test_a_mapped_folder_belongs_to_what_a_confined_locator_may_read(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.h").write_text("x")
    locator = SourceLocator([tmp_path / "work"], [("/opt/lib", str(tmp_path / "lib"))], is_confined=True)
    assert locator.locate("/opt/lib/a.h") == tmp_path / "lib" / "a.h"


def test_of_two_checkouts_the_first_root_is_meant(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "src").mkdir(parents=True)
        (tmp_path / name / "src" / "k.cu").write_text(name)
    one, two = tmp_path / "one", tmp_path / "two"
    assert SourceLocator([one, two]).locate("/build/src/k.cu") == one / "src" / "k.cu"
    assert SourceLocator([two, one]).locate("/build/src/k.cu") == two / "src" / "k.cu"
    (one / "old" / "src").mkdir(parents=True)
    (one / "old" / "src" / "k.cu").write_text("older")
    assert SourceLocator([one, two]).locate("/build/src/k.cu") is None  # twice in one root: nobody can tell


LISTING = """
    kernel@/gone/x/k.cu:1   LDG.E R2, [R4.64]  ; selected=4
    kernel@/gone/x/k.cu:6   FMUL R2, R2, R2    ; long_scoreboard=96/90
"""


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        (
            "__global__ void kernel(float *p)\n{\n    int i = 0;\n    float a =\n        p[i];\n    p[i] = a * a;\n}\n",
            True,
        ),
        (
            "__global__ void other(float *p)\n{\n    int i = 0;\n    float a =\n        p[i];\n    p[i] = a * a;\n}\n",
            False,
        ),
        ("__global__ void kernel(float *p)\n{\n    *p = 0;\n}\n", False),  # line 6 is not there
        ("// kernel\n" * 40, False),  # comments have no code
        ("", False),
    ],
)
@pytest.mark.parametrize("where", ["another", "."])
def test_a_file_of_the_same_name_is_taken_only_where_it_holds_the_code(
    tmp_path: Path, text: str, is_it: bool, where: str
) -> None:
    there = put(tmp_path / where / "k.cu", text)
    os.utime(there, (1, 1))
    kernel, locator = build_kernel(LISTING), SourceLocator([tmp_path])
    shown = PlaceNames(locator, tmp_path).show_line(kernel, "/gone/x/k.cu", 6)
    assert (shown == f"{there.relative_to(tmp_path)}:6") is is_it
    (file,) = find_files(build_report(kernel), locator, 0)
    assert (file.fits, file.is_verified, file.doubt) == (is_it, is_it, None if is_it else Doubt.OTHER_CODE)
    assert (SourceTexts(locator).read(kernel, "/gone/x/k.cu")[0] is not None) is is_it


HELD = "__global__ void kernel(float *p)\n{\n    int i = 0;\n    float a =\n        p[i];\n    p[i] = a * a;\n}\n"


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        (HELD, True),
        (HELD.replace("kernel", "other"), False),
        (HELD.replace("kernel", "NAME(ker, nel)").replace("int i = 0;", "#define NAME(a, b) a##b"), True),
        ("__global__ void kernel(float *p)\n{\n    *p = 0;\n}\n", False),  # line 6 is not there
    ],
    ids=["it", "another kernel", "pasted", "shorter"],
)
def test_an_old_file_at_the_path_itself_is_a_guess_where_it_does_not_hold_the_code(
    tmp_path: Path, text: str, is_it: bool
) -> None:
    there = put(tmp_path / "k.cu", text)
    os.utime(there, (1, 1))
    kernel, locator = build_kernel(LISTING.replace("/gone/x/k.cu", str(there))), SourceLocator([tmp_path])
    kernel = replace(kernel, measured_unix_s=2)
    (file,) = find_files(build_report(kernel), locator, 0)
    assert (file.local_path, file.is_verified) == (str(there), is_it)
    assert file.doubt is (None if is_it else Doubt.OTHER_TEXT)
    assert (SourceTexts(locator).read(kernel, str(there))[0] is not None) is is_it
    length = len(text)
    compiled = replace(kernel, source_sizes={str(there): length})
    (file,) = find_files(build_report(compiled), locator, 0)
    assert file.is_verified, "the compiler wrote down how long it was"


def test_the_file_with_the_code_is_found_among_others_of_its_name(tmp_path: Path) -> None:
    code = "__global__ void kernel(float *p)\n{\n    int i = 0;\n    float a =\n        p[i];\n    p[i] = a * a;\n}\n"
    put(tmp_path / "a" / "k.cu", code.replace("kernel", "other"))
    there = put(tmp_path / "b" / "k.cu", code)
    put(tmp_path / "k.cu", "int main() {}\n" * 9)
    assert PlaceNames(SourceLocator([tmp_path])).locate(build_kernel(LISTING), "/gone/x/k.cu") == there


def test_a_relative_path_says_no_more_than_its_name(tmp_path: Path) -> None:
    put(tmp_path / "k.cu", "__global__ void other(float *p) { p[0] = 1; }\n" * 9)
    kernel = build_kernel(LISTING.replace("/gone/x/k.cu", "k.cu"))
    assert PlaceNames(SourceLocator([tmp_path])).locate(kernel, "k.cu") is None


@pytest.mark.parametrize(
    ("function", "file", "text"),
    [
        ("julia_scale_4477", "/gone/k.jl", "function scale(x)\n  x[1] = 2\nend\n"),
        (
            "_ZN8__main__5scaleB2v1B94cw51cXTLSUwv1sCUt9Ww0FEw09RRQPKzLTg4gaGKFsG2oMQGEYakJSQB1PQBk0Bynm21OiwU1a0UoLGhDpQE8oxrNQE_3dE5ArrayIfLi1E1C7mutable7alignedE",
            "/gone/k.py",
            "@cuda.jit\ndef scale(x):\n  x[0] = 2\n",
        ),
        ("solver_scale_", "/gone/k.cuf", "attributes(global) subroutine SCALE(x)\n  x(1) = 2\nend\n"),
        ("solver_step_2_gpu", "/gone/k.F90", "subroutine step(x)\n  !$acc loop\n  x(1) = 2\nend\n"),
        ("_ZN2ns5scaleIfEEvPT_", "/gone/k.cuh", "template <class T> __global__ void scale(T *x)\n{\n  x[0] = 2;\n}\n"),
    ],
)
def test_kernels_are_found_by_the_names_their_languages_give_them(
    tmp_path: Path, function: str, file: str, text: str
) -> None:
    there = put(tmp_path / "deep" / Path(file).name, text)
    kernel = build_kernel(f"    {function}@{file}:2   LDG.E R2, [R4.64]  ; selected=4\n")
    assert PlaceNames(SourceLocator([tmp_path])).locate(kernel, file) == there
    put(there, text.lower().replace("scale", "other").replace("step", "other"))
    assert PlaceNames(SourceLocator([tmp_path])).locate(kernel, file) is None
