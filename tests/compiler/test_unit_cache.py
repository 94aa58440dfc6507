"""Units are kept while nothing they depend on changes, and no longer."""

import os
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.execution.compiler.compile import compile_source
from gpa_lsp.execution.compiler.included_files import IncludedFiles, find_included_files
from gpa_lsp.execution.compiler.job import UNITS, CompileJob, UnitCache, make_key
from gpa_lsp.execution.compiler.model import CompiledUnit, CompilerChoice, CompilerFlags, CompilerKind, CompileSettings
from tests.compiler.installed import require_nvrtc
from tests.patience import LIMIT_S

NVRTC = CompileSettings(choice=CompilerChoice.NVRTC)
LONG_AGO_S = 1_000_000_000
NOTHING = IncludedFiles(headers={}, spellings={}, absent=(), is_whole=True)


def write(path: Path, text: str, *, at_s: float = LONG_AGO_S) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.utime(path, (at_s, at_s))
    return path


def compile_again(source: Path, flags: CompilerFlags) -> CompiledUnit:
    return compile_source(source, flags=flags, settings=NVRTC)


@pytest.fixture(autouse=True)
def empty() -> None:
    UNITS.clear()


def test_a_unit_is_kept_until_a_header_changes_or_appears(tmp_path: Path) -> None:
    require_nvrtc()
    write(tmp_path / "second/inner.cuh", "#define N 3\n")
    write(tmp_path / "outer.cuh", "#include <inner.cuh>\n")
    source = write(tmp_path / "k.cu", '#include "outer.cuh"\n__global__ void k(int* p) { p[0] = N + 40000; }\n')
    flags = CompilerFlags(directory=tmp_path, includes=(tmp_path / "first", tmp_path / "second"))
    first = compile_again(source, flags)
    assert "40003" in first.ptx
    assert compile_again(source, flags).ptx is first.ptx
    write(tmp_path / "second/inner.cuh", "#define N 4\n", at_s=LONG_AGO_S + 10)
    changed = compile_again(source, flags)
    assert "40004" in (changed.ptx or "")
    assert compile_again(source, flags).ptx is changed.ptx
    write(tmp_path / "first/inner.cuh", "#define N 5\n")
    assert "40005" in (compile_again(source, flags).ptx or "")


def test_other_flags_texts_and_architectures_are_other_units(tmp_path: Path) -> None:
    source = write(tmp_path / "k.cu", "")
    flags = CompilerFlags(directory=tmp_path)
    job = CompileJob(
        path=source, content=b"a", compute_capability=(8, 0), flags=flags, settings=NVRTC, included=NOTHING
    )
    others = [
        replace(job, content=b"b"),
        replace(job, path=tmp_path / "other.cu"),
        replace(job, compute_capability=(8, 6)),
        replace(job, settings=CompileSettings(choice=CompilerChoice.NVCC)),
        *(replace(job, flags=replace(flags, **change)) for change in (  # type: ignore[arg-type]
            {"macros": ("N",)}, {"includes": (tmp_path,)}, {"standard": "c++20"}, {"optimisation": ("--ftz=true",)}, {"language": ("-rdc=true",)},
            {"forced_includes": (source,)}, {"system_includes": (tmp_path,)},
        )),
    ]  # fmt: skip
    keys = {make_key(one, ("compiler",)) for one in [job, *others]}
    assert len(keys) == len(others) + 1
    assert make_key(job, ("another",)) not in keys
    assert make_key(replace(job), ("compiler",)) in keys


def make_unit(size: int) -> CompiledUnit:
    return CompiledUnit(
        source=None, kind=CompilerKind.NVRTC, compiler="", compute_capability=(8, 0), ptx="x" * size, cubin=None
    )


def test_what_cannot_be_watched_is_not_kept(tmp_path: Path) -> None:
    cache = UnitCache()
    young = write(tmp_path / "young.cuh", "", at_s=time.time() + LIMIT_S)
    for key, included in (
        ("macro", replace(NOTHING, is_whole=False)),
        ("young", replace(NOTHING, headers={young: b""})),
        ("gone", replace(NOTHING, headers={tmp_path / "gone.cuh": b""})),
    ):
        cache.keep(key, make_unit(1), included)
        assert cache.find(key) is None


def test_the_cache_stays_within_its_limit() -> None:
    cache = UnitCache(limit_bytes=1000)
    for number in range(10):
        cache.keep(str(number), make_unit(300), NOTHING)
    assert [number for number in range(10) if cache.find(str(number)) is not None] == [7, 8, 9]
    cache.keep("huge", make_unit(2000), NOTHING)
    assert cache.find("huge") is None


def test_includes_are_followed_conservatively(tmp_path: Path) -> None:
    write(tmp_path / "a.cuh", '#include "b.cuh"\n#if 0\n# include "skipped.cuh"\n#endif\n')
    write(tmp_path / "b.cuh", '#include "a.cuh"\n#include <vector>\n#include "k.cu"\n')
    write(tmp_path / "skipped.cuh", "")
    source = write(tmp_path / "k.cu", "")

    def find(text: bytes) -> IncludedFiles:
        return find_included_files(source, text, CompilerFlags(directory=tmp_path))

    found = find(b'#include "a.cuh"\n')
    assert {path.name for path in found.headers} == {"a.cuh", "b.cuh", "skipped.cuh"}
    assert found.is_whole
    assert not find(b"#include HEADER\n").is_whole
    assert find(b'#include "gone.cuh"\n').absent == (tmp_path / "gone.cuh",)
