"""Compile commands found in what builds leave behind."""

import json
from pathlib import Path

import pytest

from gpa_lsp.execution.compiler.commands import ninja
from gpa_lsp.execution.compiler.commands.ninja import read_ninja
from gpa_lsp.execution.compiler.commands.recorded import read_compile_commands, read_recorded_lines
from gpa_lsp.execution.compiler.project import find_flags, search_flags
from gpa_lsp.foundation.errors import InputError
from tests.patience import in_bounded_time


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with sources in two folders and an empty build folder."""
    for name in ("src/near", "src/far", "build"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "src/near/k.cu").write_text('#include "shared.cuh"\n__global__ void k() {}\n')
    (tmp_path / "src/far/other.cu").write_text("__global__ void other() {}\n")
    (tmp_path / "src/shared.cuh").write_text("#pragma once\n")
    return tmp_path


def write_database(project: Path, entries: object) -> Path:
    path = project / "build" / "compile_commands.json"
    path.write_text(json.dumps(entries))
    return path


def test_a_database_in_a_build_folder_is_found(project: Path) -> None:
    (project / "build/flags.rsp").write_text("-DRESPONSE -I../inc")
    source = project / "src/near/k.cu"
    command = f"/usr/local/cuda/bin/nvcc -forward-unknown-to-host-compiler --options-file flags.rsp -arch=sm_86 -x cu -c {source} -o k.o"
    write_database(project, [{"directory": str(project / "build"), "file": str(source), "command": command}])
    found = find_flags(source)
    assert (found.macros, found.includes, found.compute_capabilities) == (
        ("RESPONSE",),
        (project / "build/../inc",),
        ((8, 6),),
    )
    assert found.origin == "build/compile_commands.json"
    assert found.doubts == ()


def test_arguments_and_relative_files_are_understood(project: Path) -> None:
    entry = {"directory": "../src/near", "file": "k.cu", "arguments": ["ccache", "nvcc", "-DX=a b", "-c", "k.cu"]}
    write_database(project, [entry])
    found = find_flags(project / "src/near/k.cu")
    assert found.macros == ("X=a b",)


def test_headers_take_the_flags_of_a_source_that_includes_them(project: Path) -> None:
    entries = [
        {"directory": str(project), "file": f"src/{name}", "command": f"nvcc -D{macro} -c src/{name}"}
        for name, macro in (("far/other.cu", "FAR"), ("near/k.cu", "NEAR"))
    ]
    write_database(project, entries)
    found = find_flags(project / "src/shared.cuh")
    assert found.macros == ("NEAR",)
    assert "k.cu" in found.origin
    assert "no compile command names this file" in found.doubts[0]


def test_sources_no_command_names_take_the_flags_of_the_nearest(project: Path) -> None:
    entries = [
        {"directory": str(project), "file": f"src/{name}", "command": f"nvcc -D{macro} -c src/{name}"}
        for name, macro in (("far/other.cu", "FAR"), ("near/k.cu", "NEAR"))
    ]
    write_database(project, entries)
    new = project / "src/far/new.cu"
    new.write_text("")
    found = find_flags(new)
    assert found.macros == ("FAR",)


def test_recorded_make_lines_are_found(project: Path) -> None:
    (project / "compile.log").write_text(
        f"make[1]: Entering directory '{project}/src'\n"
        "echo building; nvcc -DFIRST \\\n  -I../inc -gencode arch=compute_80,code=sm_80 \\\n  -c near/k.cu -o k.o && touch x\n"
        "make[1]: Leaving directory 'x'\ng++ -c main.cpp\ncd src && nvcc -DSECOND -c far/other.cu\n"
    )
    near, far = find_flags(project / "src/near/k.cu"), find_flags(project / "src/far/other.cu")
    assert (near.macros, near.includes, near.compute_capabilities) == (("FIRST",), (project / "src/../inc",), ((8, 0),))
    assert far.macros == ("SECOND",)


def test_ninja_files_are_read_with_rules_variables_and_includes(project: Path) -> None:
    build = project / "build"
    (build / "rules.ninja").write_text(
        "rule cuda\n  depfile = $out.d\n  command = ${launcher}$nvcc $DEFINES $\n      $FLAGS -x cu -c $in -o $out\n"
        "rule rsp\n  command = nvcc @$out.rsp -c $in\n  rspfile = $out.rsp\n  rspfile_content = $DEFINES -DRSP\n"
    )
    (build / "build.ninja").write_text(
        "# generated\nnvcc = /opt/cuda/bin/nvcc\nlauncher =\ninclude rules.ninja\n"
        "build obj/k.o: cuda ../src/near/k.cu | dep.h || order\n  DEFINES = -DNAME=$$x -DN=3\n  FLAGS = -O3 -arch=sm_90a\n"
        "build obj/o$ ther.o: rsp ../src/far/other.cu\n  DEFINES = -DFAR\n"
        "build all: phony obj/k.o\ndefault all\n"
    )
    near, far = find_flags(project / "src/near/k.cu"), find_flags(project / "src/far/other.cu")
    assert (near.macros, near.architectures, near.origin) == (("NAME=$x", "N=3"), ("sm_90a",), "build/build.ninja")
    assert far.macros == ("FAR", "RSP")


def test_flags_for_all_sources_are_found(project: Path) -> None:
    (project / "compile_flags.txt").write_text("-DALL\n# comment\n\n-Iinc\n")
    found = find_flags(project / "src/near/k.cu")
    assert (found.macros, found.includes, found.doubts) == (("ALL",), (project / "inc",), ())


def test_nothing_is_found_where_nothing_is(project: Path) -> None:
    assert search_flags(project / "src/near/k.cu") == (None, ())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[" * 200_000, "not valid JSON"), (b"{not json", "not valid JSON"), (b'{"a": 1}', "not a list"),
        (b"\xff\xfe\x00", "not valid JSON"), (b"", "not valid JSON"), (b"\0" * 100, "not valid JSON"),
    ],
)  # fmt: skip
def test_databases_that_are_none_become_a_doubt(project: Path, content: bytes, words: str) -> None:
    (project / "build/compile_commands.json").write_bytes(content)
    flags, doubts = search_flags(project / "src/near/k.cu")
    assert flags is None
    assert words in doubts[0]


def test_entries_that_are_none_are_passed_over(project: Path) -> None:
    good = {"directory": str(project), "file": "src/near/k.cu", "command": "nvcc -DGOOD -c src/near/k.cu"}
    bad: list[object] = [
        None, 3, [], {}, {"file": 3}, {"file": "x"}, {"file": "a\0b", "command": "nvcc"}, {"file": "x", "arguments": [1]},
        {"file": "src/near/k.cu", "directory": 5, "command": "nvcc"}, {"file": "k", "arguments": []}, {"file": "k", "command": "a\0"},
    ]  # fmt: skip
    write_database(project, [*bad, good])
    found = find_flags(project / "src/near/k.cu")
    assert found.macros == ("GOOD",)


def test_a_missing_response_file_is_a_doubt_and_the_search_goes_on(project: Path) -> None:
    source = project / "src/near/k.cu"
    write_database(
        project, [{"directory": str(project), "file": str(source), "command": "nvcc --options-file gone.rsp -c k.cu"}]
    )
    (project / "compile_flags.txt").write_text("-DFALLBACK\n")
    flags, doubts = search_flags(source)
    assert flags.macros == ("FALLBACK",)
    assert "gone.rsp" in doubts[0]


def test_large_databases_are_read_fast(project: Path) -> None:
    source = project / "src/near/k.cu"
    entries = [
        {"directory": "/x", "file": f"f{number}.cu", "command": f"nvcc -c f{number}.cu"} for number in range(20_000)
    ]
    write_database(
        project, [*entries, {"directory": str(project), "file": str(source), "command": "nvcc -DLAST -c k.cu"}]
    )
    with in_bounded_time():
        found = find_flags(source)
    assert found.macros == ("LAST",)


def test_ninja_files_that_read_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text("include a.ninja\n")
    (tmp_path / "a.ninja").write_text("subninja build.ninja\n")
    with pytest.raises(InputError, match="endlessly"):
        list(read_ninja(tmp_path / "build.ninja"))


def test_variables_that_double_again_and_again_stay_bounded(tmp_path: Path) -> None:
    lines = ["v0 = xxxxxxxxxxxxxxxx", *(f"v{number} = $v{number - 1}$v{number - 1}" for number in range(1, 60))]
    (tmp_path / "build.ninja").write_text(
        "\n".join([*lines, "rule c", "  command = nvcc $v59 -c $in", "build k.o: c k.cu", ""])
    )
    [found] = read_ninja(tmp_path / "build.ninja")
    assert sum(map(len, found.words)) <= 1 << 20


def test_many_short_lines_that_stand_for_long_commands_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ninja, "_MOST_EXPANDED_CHARACTERS", 8 << 20)
    lines = ["x = -DA ", *["x = $x $x"] * 17, "rule c", "  command = nvcc $x -c $in"]
    edges = [f"build {number}.o: c k.cu" for number in range(50)]
    (tmp_path / "build.ninja").write_text("\n".join([*lines, *edges, ""]))
    (tmp_path / "k.cu").write_text("")
    with pytest.raises(InputError, match="expand to more than 8 MiB"):
        list(read_ninja(tmp_path / "build.ninja"))
    assert "expand to more than" in " ".join(search_flags(tmp_path / "k.cu")[1])


def test_response_files_that_a_command_names_again_and_again_stay_bounded(tmp_path: Path) -> None:
    lines = ["x = @r", *["x = $x$x"] * 18, "y = -DA ", *["y = $y $y"] * 17]
    rule = ["rule c", "  command = nvcc -c $in $x", "  rspfile = r", "  rspfile_content = $y", "build k.o: c k.cu", ""]
    (tmp_path / "build.ninja").write_text("\n".join([*lines, *rule]))
    [found] = read_ninja(tmp_path / "build.ninja")
    assert sum(map(len, found.words)) <= 1 << 20


def test_readers_take_any_lines(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(
        b"nvcc \\\n" * 5000
        + b"\0 nvcc k.cu\nbuild :\nrule\n  x\n= =\nbuild $: c d.cu\nsubninja\n"
        + b"&& ; || nvcc\n'" * 50
    )
    assert list(read_recorded_lines(path)) == []
    with pytest.raises(InputError):
        list(read_compile_commands(path))
