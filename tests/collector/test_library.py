"""The library that is injected: compiled with the headers that are there, and not at all where they are others than it knows."""

import shutil
from pathlib import Path

import pytest

from gpa_lsp.foundation.errors import MissingToolError, ToolError
from gpa_lsp.foundation.native import c_compiler
from gpa_lsp.profile.collector import run
from gpa_lsp.profile.collector.records import NAME
from gpa_lsp.profile.collector.run import Cupti, build_library, find_cupti
from tests.collector.built import require_cupti


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPA_LSP_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_it_is_compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cupti = require_cupti()
    first = build_library(cupti, cache).read_bytes()
    monkeypatch.setattr(c_compiler, "_ask_process", None)  # would be called
    (cache / NAME).unlink()
    assert build_library(cupti, cache).read_bytes() == first


def test_it_holds_nothing_of_nvidia(cache: Path) -> None:
    content = build_library(require_cupti(), cache).read_bytes()
    assert b"InitializeInjection" in content
    assert b"NVIDIA" not in content
    assert b"libcupti.so.1" not in content  # found where it runs, not linked


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("uint32_t correlationId;\n} CUpti_PCSamplingPCData;", "} CUpti_PCSamplingPCData;"),
        ("uint64_t pcOffset;\n", "uint64_t pcOffset, another;\n"),
        ("uint8_t hardwareBufferFull;", "uint64_t another; uint8_t hardwareBufferFull;"),
    ],
)
def test_headers_with_other_layouts_are_refused(cache: Path, before: str, after: str) -> None:
    cupti = require_cupti()
    for folder in cupti.headers:
        for path in [*folder.glob("cupti*.h"), *folder.glob("generated*.h")]:
            shutil.copy(path, cache / path.name)
    header = cache / "cupti_pcsampling.h"
    text = header.read_text(encoding="utf-8")
    if before not in text:
        pytest.skip("an older header")
    header.write_text(text.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(ToolError) as raised:
        build_library(Cupti(headers=(cache, *cupti.headers), library=None), cache)
    assert "static assertion failed" in raised.value.output


def test_the_folder_that_is_named_comes_before_the_newest(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_cupti()
    monkeypatch.setenv("GPA_LSP_CUPTI", str(cache / "libcupti.so.12"))
    assert find_cupti().library == cache / "libcupti.so.12"


def test_without_headers_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_list_candidates", lambda: iter([]))
    with pytest.raises(MissingToolError, match=r"pip install 'gpa-lsp\[cupti\]'"):
        find_cupti()


def test_wheels_come_before_toolkits_and_the_newest_first(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cu12", "cu13", "cuda_cupti", "cuda_runtime"):
        folder = cache / "nvidia" / name / "include"
        folder.mkdir(parents=True)
        (folder / ("cuda.h" if name == "cuda_runtime" else "cupti_pcsampling.h")).touch()
    (cache / "nvidia" / "cu13" / "lib").mkdir()
    for name in ("libcupti.so.13", "libcupti.so.13.4", "libcupti_static.a"):
        (cache / "nvidia" / "cu13" / "lib" / name).touch()
    monkeypatch.setattr(run, "list_package_folders", lambda package: iter([cache / package]))
    monkeypatch.delenv("GPA_LSP_CUPTI", raising=False)
    found = find_cupti()
    assert found.headers == (cache / "nvidia" / "cu13" / "include", cache / "nvidia" / "cuda_runtime" / "include")
    assert found.library == cache / "nvidia" / "cu13" / "lib" / "libcupti.so.13"
