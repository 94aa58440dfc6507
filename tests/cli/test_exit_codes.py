"""Commands end with other than 0 where a part of the request failed."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpa_lsp.cli.main import join_words, list_names, main
from tests.conftest import ROOT

GOOD, JUNK = str(ROOT / "fixtures" / "example.gpa-profile.json"), "junk.ncu-rep"
KERNEL = "__global__ void k(float* x) { x[threadIdx.x] = 1; }\n"
ONE = '[[launch]]\nkernel = "k"\nblock = 64\nthreads = 64\narguments = [{ name = "x", type = "float", count = 64 }]\n'

# a part that fails beside parts that succeed, wherever a command takes several
CASES = [
    ["advise", GOOD, JUNK],
    ["advise", JUNK, GOOD, "--format", "json"],
    ["advise", GOOD, JUNK, "-o", "advice.txt"],
    ["serve", "allow", "--forget", "7"],
    ["serve", "allow", "--workspace", "missing", "--", "./app"],
    ["roofline", "calibrate", "--plan", "1.0"],
    ["check", GOOD, JUNK],
    ["check", GOOD, JUNK, "--fail-on", "finding"],
    ["check", "good.cu", "missing.cu"],
    ["check", "good.cu", "syntax.cu"],
    ["check", "good.cu", "folder.cu"],
    ["compare", GOOD, JUNK],
    ["compare", JUNK, GOOD],
    ["doctor", "--format", "none"],
    ["emulate", "--", "./missing"],
    ["emulate", "--", sys.executable, "-c", "raise SystemExit(5)"],
    ["predict", "explore", "missing.cu"],
    ["predict", "explore", "good.cu", "--launches", "other.launch.toml"],
    ["gate", GOOD, JUNK, "--base", GOOD],
    ["gate", GOOD, "--base", GOOD, JUNK],
    ["report", "graph", "--kernel", "short_def_use", GOOD, JUNK],
    ["report", "graph", "--kernel", "nothing_of_that_name", GOOD],
    ["history", "--record", GOOD, JUNK],
    ["history", "--record", "empty.gpa-profile.json"],
    ["history", "--compare", "1", "2"],
    ["history", "--delete", "@77"],
    ["mcp", "--nothing"],
    ["predict", "good.cu", "--sizes", "none = 3"],
    ["predict", "syntax.cu"],
    ["predict", "good.cu", "--launches", "other.launch.toml"],
    ["predict", "folder.cu"],
    ["profile", "--ncu", "./no-ncu", "--", "true"],
    ["profile", "--launches", "other.launch.toml", "--of", "good.cu"],
    ["record", "-o", "recorded", "--", "./missing"],
    ["report", GOOD, JUNK],
    ["report", GOOD, JUNK, "--html", "-o", "page.html"],
    ["report", GOOD, "--html", "-o", "page.html", "--before", JUNK],
    ["report", GOOD, JUNK, "--format", "json", "-o", "all.json"],
    ["roofline", GOOD, JUNK],
    ["roofline", GOOD, "--before", JUNK],
    ["roofline", GOOD, JUNK, "-o", "page.html"],
    ["report", "sass", GOOD, JUNK],
    ["serve", "--nothing"],
    ["predict", "stalls", "good.cu", "--launches", "other.launch.toml"],
    ["predict", "stalls", "good.cu", "--sizes", "none = 3"],
    ["predict", "stalls", JUNK, "--compare"],
    ["predict", "trace", "good.cu", "--sizes", "none = 3"],
    ["predict", "trace", "syntax.cu"],
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path / "data"))
    Path(JUNK).write_bytes(b"junk")
    Path("good.cu").write_text(KERNEL)
    Path("syntax.cu").write_text(KERNEL.replace(";", "", 1))
    Path("folder.cu").mkdir()
    Path("other.launch.toml").write_text(ONE.replace('"k"', '"another"'))
    Path("empty.gpa-profile.json").write_text('{"format": "gpa-lsp/profile/1", "modules": [], "launches": []}')
    return tmp_path


@pytest.mark.parametrize("words", CASES, ids=" ".join)
def test_what_failed_in_part_is_no_success(words: Sequence[str], capfd: pytest.CaptureFixture[str]) -> None:
    code = main(words)
    printed = capfd.readouterr()
    assert code not in (0, 70)
    said = printed.out + printed.err
    assert said.strip() and "Traceback" not in said and "internal error" not in said


def test_every_command_has_a_case() -> None:
    assert {join_words(words)[0] for words in CASES} | {"doctor cache"} == set(list_names())


def test_a_cache_that_cannot_be_removed_is_not_cleared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPA_LSP_CACHE_DIR", str(tmp_path / "cache"))
    assert main(["report", GOOD]) == 0
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".kept":
            raise PermissionError(13, os.strerror(13))
        unlink(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        assert main(["doctor", "cache", "--clear"]) == 2
    assert f"could not be removed: {os.strerror(13)}" in capsys.readouterr().err
    assert main(["doctor", "cache", "--clear"]) == 0
    assert capsys.readouterr().err == ""
