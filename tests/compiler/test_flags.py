"""Compile commands as flags: what is kept, and that nothing gets through that runs a program or writes a file."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.execution.compiler.model import CompilerFlags, name_target, read_architectures
from gpa_lsp.execution.compiler.project import build_flags

HERE = Path("/project/build")


def build(line: str) -> CompilerFlags:
    return build_flags(line.split(), HERE)


def test_what_decides_device_code_is_kept() -> None:
    found = build(
        "-I../include -I /abs --include-path=more -isystem /sys -isystem=/sys2 -include pre.h -DA -D B=2 -UC -std=gnu++1z --use_fast_math "
        "-maxrregcount 40 --fmad=false -Xptxas -O2,-dlcm=cg --expt-relaxed-constexpr --expt-extended-lambda -rdc=true -arch=sm_86 -c k.cu"
    )
    assert found.includes == (HERE / "../include", Path("/abs"), HERE / "more")
    assert found.system_includes == (Path("/sys"), Path("/sys2"))
    assert found.forced_includes == (HERE / "pre.h",)
    assert found.macros == ("A", "B=2", "-C")
    assert found.standard == "c++17"
    assert found.optimisation == (
        "--use_fast_math",
        "-maxrregcount=40",
        "--fmad=false",
        "-Xptxas=-O2",
        "-Xptxas=-dlcm=cg",
    )
    assert found.language == ("--expt-relaxed-constexpr", "--extended-lambda", "-rdc=true")
    assert found.compute_capabilities == ((8, 6),)


@pytest.mark.parametrize(
    "line",
    [
        "-ccbin /evil", "-ccbin=/evil", "--compiler-bindir /evil", "-Xcompiler -fplugin=/evil.so", "-Xcompiler=-wrapper,/evil", "-o /out",
        "-odir /out", "-MF /out",
        "-keep", "--keep-dir=/out", "-dryrun", "--run", "--run-args x", "-time /out", "-Xcicc -o/out", "-Xptxas -o,/out", "-Xcudafe --x",
        "-Xlinker /evil", "--generate-dependencies", "-fplugin=/evil.so", "-B/evil", "--device-debug", "-G", "-L/evil", "-lx", "-lineinfo",
        "--use-local-env", "-include-pch /x", "--dont-use-profile", "-ldir /evil", "-nvvm-version=7", "--cudafe-options=x", "-prec-div=$(x)",
        "-maxrregcount=9;x", "-D1=2", "-DA\n=1", "-std=c++17;x", "--optix-ir", "-cuda", "-fatbin", "-lib",
    ],
)  # fmt: skip
def test_other_words_are_dropped_and_noted(line: str) -> None:
    words = line.split(" ") if "\n" in line else line.split()
    found = build_flags(words, HERE)
    assert found == CompilerFlags(directory=HERE, dropped=found.dropped)
    assert found.dropped


@given(
    st.lists(
        st.sampled_from(
            ["-I", "-D", "-ccbin", "=", "x", "-Xptxas", "-o", "-arch", "sm_80", "-std", "", "-", "--", "@", "$(x)"]
        ),
        max_size=12,
    )
)
def test_any_words_give_flags_or_a_clear_error(words: list[str]) -> None:
    found = build_flags([word for word in words if word != "@"], HERE)
    assert all("$" not in flag for flag in (*found.optimisation, *found.language))


@pytest.mark.parametrize(
    ("values", "capabilities", "names"),
    [
        (["arch=compute_80,code=sm_80", "arch=compute_90a,code=sm_90a"], ((8, 0), (9, 0)), ("sm_90a",)),
        (["arch=compute_70,code=[sm_70,sm_75]"], ((7, 0), (7, 5)), ()),
        (["compute_120"], ((12, 0),), ()),
        (["sm_100f"], ((10, 0),), ("sm_100f",)),
        (["native", "all-major", "sm_9999", "nonsense"], (), ()),
    ],
)
def test_architectures(values: list[str], capabilities: tuple[tuple[int, int], ...], names: tuple[str, ...]) -> None:
    assert read_architectures(values) == (capabilities, names)


def test_the_target_is_the_variant_that_the_command_names() -> None:
    assert [name_target(one, ("sm_90a", "sm_100f")) for one in ((9, 0), (10, 0), (8, 0))] == [
        "sm_90a",
        "sm_100f",
        "sm_80",
    ]


def test_folders_with_a_comma_are_one_folder(tmp_path: Path) -> None:
    (tmp_path / "a,b").mkdir()
    assert build_flags([f"-I{tmp_path}/a,b"], HERE).includes == (tmp_path / "a,b",)
    assert build_flags(["-Ic,d"], HERE).includes == (HERE / "c", HERE / "d")
