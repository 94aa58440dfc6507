"""``gpa-lsp profile`` with a profiler that is a script."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from tests.collect.processes import hear_interrupts, is_alive
from tests.collect.scripts import write_program
from tests.conftest import ROOT
from tests.patience import LIMIT_S, wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="programs are scripts with #!")

FAKE = """
import os, sys, time
arguments = sys.argv[1:]
if arguments == ["--help"]:
    print("  --sampling-interval arg (=auto)")
    sys.exit()
def write():
    report = arguments[arguments.index("--export") + 1]
    open(report, "w").write(os.environ.get("FAKE_CONTENT", "NVR"))
print("==PROF== Connected to process 1", flush=True)
"""


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPA_LSP_NCU", raising=False)
    return tmp_path


def run(folder: Path, body: str, *options: str) -> int:
    ncu = write_program(folder / "ncu", FAKE + body)
    return main(["profile", "--ncu", ncu, *options, "--", "./app", "--size", "3"])


def test_the_application_reads_our_standard_input(folder: Path) -> None:
    ncu = write_program(folder / "ncu", FAKE + "print('read', sys.stdin.read()); write()")
    done = subprocess.run(
        [sys.executable, "-m", "gpa_lsp", "profile", "--ncu", ncu, "--", "./app"],
        input="what was sent",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_S,
    )
    assert "read what was sent" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_ends_us_ends_the_profiler(folder: Path, number: int) -> None:
    ncu = write_program(folder / "ncu", FAKE + "open('started', 'w').write(str(os.getpid())); time.sleep(3600)")
    process = subprocess.Popen(
        [sys.executable, "-m", "gpa_lsp", "profile", "--ncu", ncu, "--", "./app"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - there are no threads here
    )
    started = folder / "started"
    wait_until(lambda: started.exists() and started.read_text(), started)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    _, error = process.communicate(timeout=LIMIT_S)
    assert process.returncode == (130 if number == signal.SIGINT else 1)
    assert ("ended by SIGTERM" in error) == (number == signal.SIGTERM)
    profiler = int((folder / "started").read_text())
    wait_until(lambda: not is_alive(profiler), "the end of the profiler")
