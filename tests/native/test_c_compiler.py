"""A library is compiled once on a machine, apart from whoever asked."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpa_lsp.foundation.errors import MissingToolError, ToolError
from gpa_lsp.foundation.native import c_compiler
from gpa_lsp.foundation.native.c_compiler import Library, find_c_compiler, obtain_library, open_failures
from tests.patience import wait_until

needs_compiler = pytest.mark.skipif(find_c_compiler() is None, reason="there is no C compiler")
LIBRARY = Library(
    title="a small library",
    needed_for="this test",
    arguments=("-shared", "-fPIC", "number.c"),
    files={"number.c": b"int number(void) { return 7; }\n"},
    usual_s=1,
)


def load_library(library: Library) -> bytes | None:
    """Content of the kept library."""
    return c_compiler.open_libraries().load(c_compiler._digest(library, c_compiler.find_c_compiler()))


def find_failure(library: Library) -> str | None:
    """Reason why it could not be compiled the last time."""
    return c_compiler._load_failure(c_compiler._digest(library, c_compiler.find_c_compiler()))


class Compiler:
    """Stands before the system's compiler, and notes when it begins.

    Args:
        folder: for it and what it notes.
        script: what it does then, in a shell; "$@" are its arguments.
    """

    def __init__(self, folder: Path, script: str) -> None:
        self._begun = folder / "begun"
        self.path = folder / "cc"
        self.path.write_text(f"#!/bin/sh\necho $$ >> {self._begun}\n{script}\n")
        self.path.chmod(0o700)

    @property
    def begun(self) -> int:
        """Number of starts."""
        return len(self._begun.read_text().split()) if self._begun.exists() else 0


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("GPA_LSP_CACHE_DIR", str(folder))
    return folder


def start_asking(compiler: Compiler) -> "subprocess.Popen[bytes]":
    """A process that asks for the library and waits."""
    code = f"""
from pathlib import Path
from gpa_lsp.foundation.native.c_compiler import obtain_library
from tests.native.test_c_compiler import LIBRARY
obtain_library(LIBRARY, tell=lambda _: print(file=Path({str(compiler.path.with_name("asked"))!r}).open("a"), flush=True))
"""
    environment = {**os.environ, "PATH": f"{compiler.path.parent}:{os.environ['PATH']}", "PYTHONPATH": str(Path.cwd())}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, start_new_session=True)


@needs_compiler
def test_what_was_compiled_is_kept_and_looked_up_without_compiling(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = Compiler(tmp_path, 'exec gcc "$@"')
    monkeypatch.setattr(c_compiler, "find_c_compiler", lambda: compiler.path)
    assert load_library(LIBRARY) is None
    told: list[str] = []
    content = obtain_library(LIBRARY, tell=told.append)
    assert told == ["compiling a small library, once on this machine: about 1 s of processor time"]
    assert obtain_library(LIBRARY, tell=told.append) == content == load_library(LIBRARY)
    assert len(told) == compiler.begun == 1


@needs_compiler
def test_a_build_goes_on_when_whoever_asked_is_killed_and_nobody_begins_another(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = Compiler(tmp_path, f'while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exec gcc "$@"')
    first = start_asking(compiler)
    wait_until(lambda: compiler.begun == 1, "it began")
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    others = [start_asking(compiler) for _ in range(2)]
    wait_until(lambda: len((tmp_path / "asked").read_text().splitlines()) == 3, "both ask, too")
    time.sleep(1)  # in which a process of theirs would begin to compile
    (tmp_path / "go").touch()
    assert [one.wait() for one in others] == [0, 0]
    assert compiler.begun == 1
    monkeypatch.setattr(c_compiler, "find_c_compiler", lambda: compiler.path)
    assert load_library(LIBRARY) is not None


def test_a_failure_is_kept_told_and_forgotten(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = Compiler(tmp_path, "echo number.c: no; exit 1")
    monkeypatch.setattr(c_compiler, "find_c_compiler", lambda: compiler.path)
    for _ in range(2):
        with pytest.raises(ToolError, match="could not compile a small library: the compiler failed") as failed:
            obtain_library(LIBRARY)
        assert "number.c: no" in failed.value.output
        assert compiler.begun == 1
    assert (find_failure(LIBRARY) or "").startswith("the compiler failed")
    open_failures().clear()
    assert find_failure(LIBRARY) is None
    with pytest.raises(ToolError):
        obtain_library(LIBRARY)
    assert compiler.begun == 2


@needs_compiler
def test_another_compiler_is_tried_after_a_failure(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(c_compiler, "find_c_compiler", lambda: tmp_path / "cc")
    Compiler(tmp_path, "exit 1")
    with pytest.raises(ToolError):
        obtain_library(LIBRARY)
    Compiler(tmp_path, 'exec gcc "$@"')
    assert obtain_library(LIBRARY)


def test_without_a_compiler_it_is_said_what_to_install(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_compiler, "find_c_compiler", lambda: None)
    with pytest.raises(MissingToolError, match="install gcc or clang"):
        obtain_library(LIBRARY)


def test_a_process_that_is_never_asked_ends_without_a_word() -> None:
    command = [sys.executable, "-P", "-m", "gpa_lsp.foundation.native"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
