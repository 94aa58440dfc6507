"""The commit a measurement belongs to is read from git's log of the working tree, at the moment of the measurement."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gpa_lsp.report.history.model import Commit
from gpa_lsp.report.history.recording import find_commit
from tests.patience import LIMIT_S

SECOND_NS = 1_000_000_000
FIRST, SECOND, THIRD = ("1" * 40, "2" * 40, "3" * 40)
NOBODY = "0" * 40


def entry(old: str, new: str, seconds: int, message: str) -> str:
    return f"{old} {new} Ada L <ada@example.org> {seconds} +0100\t{message}\n"


LOG = (
    entry(NOBODY, FIRST, 100, "commit (initial): Add the stencil")
    + entry(FIRST, SECOND, 200, "commit: Tile the loop")
    + entry(SECOND, FIRST, 300, "checkout: moving from main to HEAD~1")
    + entry(FIRST, THIRD, 400, "commit (amend): Unroll by 4")
)


def make_tree(folder: Path, log: str = LOG) -> Path:
    (folder / ".git" / "logs").mkdir(parents=True)
    (folder / ".git" / "logs" / "HEAD").write_text(log)
    (folder / "src").mkdir()
    return folder / "src" / "k.cu"


def find(path: Path, seconds: float) -> Commit | None:
    return find_commit(path, int(seconds * SECOND_NS))


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (100, Commit(digest=FIRST, subject="Add the stencil")),
        (199.9, Commit(digest=FIRST, subject="Add the stencil")),
        (250, Commit(digest=SECOND, subject="Tile the loop")),
        (300, Commit(digest=FIRST, subject="Add the stencil")),
        (10_000, Commit(digest=THIRD, subject="Unroll by 4")),
        (99, None),
    ],
)
def test_what_was_checked_out_at_a_moment(tmp_path: Path, seconds: float, expected: Commit | None) -> None:
    assert find(make_tree(tmp_path), seconds) == expected


def test_a_clone_knows_nothing_of_before_and_no_subject(tmp_path: Path) -> None:
    source = make_tree(tmp_path, entry(NOBODY, SECOND, 200, "clone: from /elsewhere"))
    assert find(source, 150) is None
    assert find(source, 250) == Commit(digest=SECOND)


def test_the_log_is_read_again_when_it_has_grown(tmp_path: Path) -> None:
    source = make_tree(tmp_path)
    assert find(source, 900) == Commit(digest=THIRD, subject="Unroll by 4")
    with (tmp_path / ".git" / "logs" / "HEAD").open("a") as stream:
        stream.write(entry(THIRD, SECOND, 800, "reset: moving to HEAD~2"))
    assert find(source, 900) == Commit(digest=SECOND, subject="Tile the loop")


def test_linked_working_trees_and_submodules_have_a_log_of_their_own(tmp_path: Path) -> None:
    kept = tmp_path / "main" / ".git" / "worktrees" / "other"
    (kept / "logs").mkdir(parents=True)
    (kept / "logs" / "HEAD").write_text(LOG)
    linked = tmp_path / "other"
    linked.mkdir()
    for target in (str(kept), os.path.relpath(kept, linked)):
        (linked / ".git").write_text(f"gitdir: {target}\n")
        found = find(linked / "k.cu", 250)
        assert found is not None
        assert found.digest == SECOND


def test_the_innermost_repository_counts(tmp_path: Path) -> None:
    make_tree(tmp_path)
    source = make_tree(tmp_path / "vendored", entry(NOBODY, SECOND, 10, "commit (initial): Vendored"))
    assert find(source, 500) == Commit(digest=SECOND, subject="Vendored")


@pytest.mark.parametrize(
    "log",
    [
        "",
        "\n\n",
        "nonsense\n",
        entry(NOBODY, NOBODY, 5, "commit: nothing"),
        entry(NOBODY, "g" * 40, 5, "commit: no digits"),
        entry(NOBODY, FIRST, 10**15, "commit: the end of time"),
        "\0" * 10_000,
    ],
)
def test_logs_that_say_nothing(tmp_path: Path, log: str) -> None:
    assert find(make_tree(tmp_path, log), 1000) is None


def test_the_end_of_a_long_log_is_read_and_its_subjects_are_cut(tmp_path: Path) -> None:
    noise = "".join(entry(FIRST, FIRST, 50, f"checkout: {'x' * 1000}") for _ in range(3000))
    source = make_tree(tmp_path, noise + entry(FIRST, SECOND, 60, f"commit: {'y' * 5000}"))
    assert find(source, 100) == Commit(digest=SECOND, subject="y" * 120)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("name", [".git", ".git/logs/HEAD"])
def test_a_pipe_hangs_nobody(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / name)
    assert find(tmp_path / "k.cu", 1000) is None


@pytest.mark.parametrize("text", ["", "gitdir: ", "gitdir: /nowhere/at/all", "gitdir: a\0b", "elsewhere", "\x00\xff"])
def test_git_files_that_lead_nowhere(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").write_text(text)
    assert find(tmp_path / "k.cu", 1000) is None


def test_outside_of_working_trees(tmp_path: Path) -> None:
    assert find(tmp_path / "gone" / "k.cu", 1000) is None


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_what_git_itself_writes(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()

    def run(*words: str, seconds: int) -> str:
        command = (
            "git",
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.org",
            "-c",
            "init.defaultBranch=main",
            *words,
        )
        surroundings = {
            **os.environ,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_COMMITTER_DATE": f"@{seconds} +0000",
        }
        done = subprocess.run(
            command, cwd=folder, env=surroundings, check=True, capture_output=True, text=True, timeout=LIMIT_S
        )
        return done.stdout.strip()

    run("init", seconds=1000)
    run("commit", "--allow-empty", "-m", "First\n\nwith a body", seconds=1_000_000)
    first = run("rev-parse", "HEAD", seconds=1_000_000)
    run("commit", "--allow-empty", "-m", "Second", seconds=2_000_000)
    second = run("rev-parse", "HEAD", seconds=2_000_000)
    run("worktree", "add", "--detach", "../linked", first, seconds=3_000_000)
    assert find(folder / "k.cu", 1_500_000) == Commit(digest=first, subject="First")
    assert find(folder / "k.cu", 2_500_000) == Commit(digest=second, subject="Second")
    assert find(folder / "k.cu", 500_000) is None
    linked = find(tmp_path / "linked" / "k.cu", 3_500_000)
    assert linked is not None
    assert linked.digest == first
