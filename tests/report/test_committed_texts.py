"""Text of a source at the time of measurement, from real git repositories, hostile ones included."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.report.committed_texts import CommittedTexts
from gpa_lsp.report.measured_files import Doubt, MeasuredFile, find_files
from gpa_lsp.report.model import Report
from gpa_lsp.report.source_paths import SourceLocator
from tests.report_builder import build_kernel

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

THEN = "__global__ void k(float *x)\n{\n    x[0] *= 2;\n}\n"
NOW = "// a word\n" + THEN
MEASURED_S = 1_700_000_000


def git(folder: Path, *arguments: str, when_s: int = MEASURED_S) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    environment.update({f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")})
    environment.update({f"GIT_{who}_DATE": f"{when_s} +0000" for who in ("AUTHOR", "COMMITTER")})
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One with a commit before the measurement."""
    source = tmp_path / "src" / "k.cu"
    source.parent.mkdir()
    source.write_text(THEN)
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "one", when_s=MEASURED_S - 3600)
    return tmp_path


def ask(folder: Path, moment_s: int = MEASURED_S) -> str | None:
    return CommittedTexts().find(folder / "src" / "k.cu", moment_s * 1_000_000_000)


def find(folder: Path, size_bytes: int | None = None) -> MeasuredFile:
    kernel = build_kernel("src/k.cu:3  FMUL R2, R2, R3  ; wait=10", name="k", measured_unix_s=MEASURED_S)
    if size_bytes is not None:
        kernel = replace(kernel, source_sizes={"src/k.cu": size_bytes})
    report, locator = Report(problems=(), kernels=(kernel,)), SourceLocator([folder])
    (file,) = find_files(report, locator, 0, find_committed=CommittedTexts().find)
    return file


def test_the_last_commit_before_the_measurement_counts(repository: Path) -> None:
    (repository / "src" / "k.cu").write_text(NOW)
    git(repository, "commit", "--quiet", "-am", "two", when_s=MEASURED_S + 3600)
    assert ask(repository) == THEN
    assert ask(repository, MEASURED_S + 7200) == NOW
    assert ask(repository, MEASURED_S - 7200) is None


def test_a_clone_of_what_was_measured_is_verified_whatever_its_times_and_line_ends(repository: Path) -> None:
    assert find(repository).is_verified
    (repository / "src" / "k.cu").write_bytes(THEN.replace("\n", "\r\n").encode())
    assert find(repository).is_verified


def test_a_file_that_was_changed_since_is_not(repository: Path) -> None:
    (repository / "src" / "k.cu").write_text(NOW)
    found = find(repository)
    assert (found.is_verified, found.doubt) == (False, Doubt.SAVED_SINCE)
    assert found.lines == tuple(NOW.split("\n"))


def test_a_commit_as_long_as_what_was_compiled_is_the_copy(repository: Path) -> None:
    (repository / "src" / "k.cu").write_text(NOW)
    found = find(repository, len(THEN))
    assert found.is_verified
    assert found.lines == tuple(THEN.split("\n"))
    other = find(repository, 7)
    assert (other.is_verified, other.doubt) == (False, Doubt.OTHER_LENGTH)


def test_without_a_repository_nothing_is_known(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "k.cu").write_text(THEN)
    assert ask(tmp_path) is None


def test_who_is_not_trusted_is_not_asked(repository: Path) -> None:
    assert CommittedTexts(is_asked=False).find(repository / "src" / "k.cu", MEASURED_S * 1_000_000_000) is None


def test_nothing_a_repository_names_is_run(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = repository / "trace"
    touch = f"touch {trace}"
    for name in (
        "core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "core.gitProxy", "diff.external", "gpg.program",
        "alias.rev-list", "alias.cat-file", "filter.x.smudge", "filter.x.process", "credential.helper", "remote.origin.uploadpack",
        "diff.x.textconv", "core.askPass", "pager.rev-list", "pager.cat-file",
    ):  # fmt: skip
        git(repository, "config", name, f"!{touch}" if name.startswith("alias") else touch)
    for name, value in (
        ("remote.origin.url", "ssh://nowhere.invalid/x"),
        ("remote.origin.promisor", "true"),
        ("extensions.partialClone", "origin"),
        ("core.repositoryFormatVersion", "1"),
        ("log.showSignature", "true"),
    ):
        git(repository, "config", name, value)
    (repository / ".gitattributes").write_text("*.cu filter=x diff=x\n")
    monkeypatch.setenv("GIT_SSH_COMMAND", touch)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert ask(repository) == THEN
    objects = repository / ".git" / "objects"
    for folder in [one for one in objects.iterdir() if len(one.name) == 2]:
        shutil.rmtree(folder)  # what is missing would be fetched by the program the repository names
    assert ask(repository) is None
    assert not trace.exists()
