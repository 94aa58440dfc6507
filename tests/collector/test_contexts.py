"""Places of launches: lines of a C program and of a Python program, with the interpreter's lock held or not."""

import inspect
import shutil
import subprocess
from pathlib import Path

import pytest

from gpa_lsp.profile.collector.document import build_call_stacks, find_common
from gpa_lsp.profile.collector.host_lines import find_places
from gpa_lsp.profile.model import HostFrame
from tests.collector.built import CUBIN, FAKES, KERNEL, Run, build, run
from tests.collector.fakes import application as python_application
from tests.interpreters import find_interpreter
from tests.patience import LIMIT_S


def _find_line(text: str, source: Path = FAKES / "application.c") -> int:
    (number,) = [number for number, line in enumerate(source.read_text().splitlines(), 1) if text in line]
    return number


def _list_stacks(found: Run) -> list[tuple[HostFrame, ...]]:
    stacks = build_call_stacks(found.process.paths)
    return [stacks[number] for number in found.process.launches["path"].tolist()]


def test_a_c_program_by_functions_and_lines(tmp_path: Path) -> None:
    first, second, *_ = _list_stacks(run(tmp_path))
    assert [frame.function for frame in first] == ["launch_small", "train", "main"]
    assert [frame.function for frame in second] == ["launch_large", "train", "main"]
    assert first[0].line == _find_line("CUresult result = cuLaunchKernel(")
    assert first[1].line != second[1].line
    assert first[2].line == second[2].line == _find_line("int launches = atoi") + 1
    assert {Path(frame.file or "").name for frame in first} == {"application.c"}
    assert {frame.module for frame in first} == {"application"}


def test_without_debugging_information_there_are_names(tmp_path: Path) -> None:
    strip = shutil.which("strip")
    if strip is None:
        pytest.skip("strip is not installed")
    stripped = tmp_path / "application"
    subprocess.run([strip, "--strip-debug", str(build().application), "-o", str(stripped)], check=True, timeout=LIMIT_S)
    found = run(tmp_path, command=[str(stripped), str(CUBIN), KERNEL, "1"])
    (stack,) = _list_stacks(found)
    assert [frame.function for frame in stack] == ["launch_small", "train", "main"]
    assert {(frame.file, frame.line) for frame in stack} == {(None, None)}


def test_a_file_that_is_no_program_has_no_places(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x7fELF" + bytes(100))
    assert not find_places(tmp_path / "a", [1, 2])
    assert not find_places(tmp_path / "missing", [1])
    whole = build().application.read_bytes()
    for size in range(64, len(whole), len(whole) // 60):
        (tmp_path / "a").write_bytes(whole[:size])
        find_places(tmp_path / "a", [0x1234, 0x1300])  # says what it can, and raises nothing


@pytest.mark.parametrize("minor", [9, 10, 11, 12, 13, 14])
def test_a_python_program_by_its_own_frames(tmp_path: Path, minor: int) -> None:
    interpreter = find_interpreter(minor)
    program = FAKES / "application.py"
    command = [interpreter, str(program), str(build().folder / "libcuda.so.1"), str(CUBIN), KERNEL]
    found = run(tmp_path, command=command)
    assert (found.status, found.complaints) == (0, ())
    stacks = [
        [(frame.function, frame.line) for frame in stack if frame.module is None] for stack in _list_stacks(found)
    ]
    main = inspect.getsourcelines(python_application.main)[1]
    method = "Trainer.step" if minor >= 11 else "step"
    lines = [
        _find_line(text, program)
        for text in ("return driver", "return launch(", "yield trainer", "Trainer(free", "Trainer(locked")
    ]
    call, step, forward, free, locked = lines
    assert stacks[0] == [
        ("launch", call),
        (method, step),
        ("forward", forward),
        ("main", free),
        ("<module>", stacks[0][-1][1]),
    ]
    assert stacks[1] == stacks[0]
    assert stacks[2] == [("launch", call), (method, step), ("forward", forward), ("main", locked), stacks[0][-1]]
    assert [function for function, _ in stacks[4]] == ["launch", "main", "<module>"]
    assert main < free < locked
    assert {Path(frame.file or "").name for frame in _list_stacks(found)[0] if frame.module is None} == {
        "application.py"
    }


def test_the_frames_that_stacks_share() -> None:
    def frame(name: str) -> HostFrame:
        return HostFrame(function=name, module=None, file=None, line=None, address=None)

    stacks = [tuple(map(frame, names)) for names in ("abx", "cbx", "dx")]
    assert [one.function for one in find_common(stacks)] == ["x"]
    assert [one.function for one in find_common(stacks[:2])] == ["b", "x"]
    assert find_common([]) == ()
