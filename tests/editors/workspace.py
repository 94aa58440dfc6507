"""A small project with a profile and a profiler of its own, for the tests of every editor.

The project is described in ``project/README.md``. Its profiler is ``scripted_profiler.py``, copied into the workspace as ``measure.py``.
"""

import base64
import json
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.patience import wait_until

PROJECT = Path(__file__).resolve().parent / "project"
PROFILER = Path(__file__).resolve().parent / "scripted_profiler.py"
COMPILED_FOLDER = "/build/gpa_lsp/project"
"""Where the line tables say the sources were."""

CAUSE = "signal = in["
VICTIM = "value = 0.9f * value"
LOOP = "for (int step"
DOUBLES = "value * 0.7 + 0.1"
DIVIDING = "share_of(in[i]"
"""Text of the lines that matter; see :meth:`Workspace.find_line`."""

LAUNCH = """\
[[launch]]
kernel = "relax"
grid = 4
block = 256
arguments = [
  { name = "in", type = "float", count = 8192 },
  { name = "out", type = "float", count = 1024 },
  { name = "n", type = "int", value = 1024 },
  { name = "steps", type = "int", value = 8 },
]
"""
"""A description of a launch of the first kernel."""

KERNELS = ("relax", "normalise")
MANGLED = ("_Z5relaxPKfPfii", "_Z9normalisePKfS0_Pfi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Paths of one copy of the project.

    Attributes:
        folder: the workspace; profiles lie in its folder ``build``.
        source: the file with both kernels.
        header: the file with the functions they call.
        profile: what was "measured" before the test.
        measure: the scripted profiler.
        control: the folder through which the test and the profiler talk; see ``scripted_profiler.py``.
    """

    folder: Path
    source: Path
    header: Path
    profile: Path
    measure: Path
    control: Path

    @property
    def measure_command(self) -> list[str]:
        """The profiler's command line, without the path of the profile to write, which comes last."""
        return [sys.executable, str(self.measure)]

    def find_line(self, text: str, path: Path | None = None) -> int:
        """The first line (0-based) of a file, the source when None, that holds ``text``."""
        lines = (path or self.source).read_text(encoding="utf-8").split("\n")
        return next(number for number, line in enumerate(lines) if text in line)

    def behave(self, behaviour: str) -> None:
        """Set what the profiler does from now on: ``measure``, ``hang``, ``fail`` or ``sleep SECONDS``."""
        (self.control / "behaviour").write_text(behaviour, encoding="utf-8")

    @property
    def runs(self) -> int:
        """Number of times the profiler was started."""
        return len(self._read_lines("runs"))

    def find_running(self) -> list[int]:
        """Process ids of profilers, and of the processes they started, that still run."""
        return [pid for pid in map(int, self._read_lines("pids")) if _is_running(pid)]

    def wait_for_the_end(self) -> None:
        """Wait until no profiler, and no process that one started, runs any more."""
        wait_until(lambda: not self.find_running(), self.find_running)

    def _read_lines(self, name: str) -> list[str]:
        path = self.control / name
        return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []


def make_workspace(folder: Path) -> Workspace:
    """Copy the project into ``folder``, which is made when missing, with a profile that is an hour old."""
    workspace = Workspace(
        folder=folder,
        source=folder / "src" / "relax.cu",
        header=folder / "src" / "curves.cuh",
        profile=folder / "build" / "relax.gpa-profile.json",
        measure=folder / "measure.py",
        control=folder / ".measuring",
    )
    for path in (workspace.source, workspace.profile, workspace.control / "pids"):
        path.parent.mkdir(parents=True, exist_ok=True)
    for path in (workspace.source, workspace.header):
        shutil.copyfile(PROJECT / path.name, path)
        _make_old(path, hours=2)
    for name in ("original", "improved"):
        (workspace.control / f"{name}.json").write_text(json.dumps(_embed_image(name)), encoding="utf-8")
    (folder / "Makefile").write_text(
        "relax.cubin: src/relax.cu\n\tnvcc -arch=sm_80 -lineinfo -cubin $< -o $@\n", encoding="utf-8"
    )
    shutil.copyfile(PROFILER, workspace.measure)
    write_profile(workspace, "original", workspace.profile)
    _make_old(workspace.profile, hours=1)
    return workspace


def write_profile(workspace: Workspace, name: str, path: Path) -> None:
    """Write the profile ``original`` or ``improved`` of the project, with the sources as they are now, to ``path``."""
    profile = _embed_image(name)
    files = (workspace.source, workspace.header)
    profile["modules"][0]["sources"] = {f"{COMPILED_FOLDER}/{file.name}": file.read_text("utf-8") for file in files}
    path.write_text(json.dumps(profile), encoding="utf-8")


def add_reports(workspace: Workspace, count: int) -> None:
    """Older measurements of the same kernels, each of other counts: the workspace of somebody who keeps what they measured."""
    profile = json.loads(workspace.profile.read_text("utf-8"))
    duration = "gpu__time_duration.sum"
    for number in range(1, count + 1):
        for launch in profile["launches"]:
            launch["metrics"][duration] += 1000.0
        path = workspace.profile.with_name(f"before{number}.gpa-profile.json")
        path.write_text(json.dumps(profile), encoding="utf-8")
        _make_old(path, hours=1 + number)


def make_clone(folder: Path) -> Workspace:
    """The same as a clone leaves it: sources newer than the measurement, no copy of them in the profile, and here a word more at their ends."""
    workspace = make_workspace(folder)
    for path in (workspace.source, workspace.header):
        path.write_text(path.read_text("utf-8") + "// the end\n", encoding="utf-8")
    workspace.profile.write_text(json.dumps(_embed_image("original")), encoding="utf-8")
    _make_old(workspace.profile, hours=1)
    return workspace


def _embed_image(name: str) -> dict[str, Any]:
    """One of the project's profiles, with its cubin in it."""
    profile = json.loads((PROJECT / f"{name}.json").read_text(encoding="utf-8"))
    image = (PROJECT / f"{name}.sm_80.cubin").read_bytes()
    profile["modules"][0]["cubin"] = {"base64": base64.b64encode(image).decode("ascii")}
    return profile


def _make_old(path: Path, *, hours: float) -> None:
    """A file that has just been written is read only at the second look."""
    moment_s = time.time() - 3600 * hours
    os.utime(path, (moment_s, moment_s))


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


MOVING = """\
__global__ void transpose(const float *in, float *out, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    out[y * n + x] = in[x * n + y];
}
"""
MOVING_LAUNCH = """\
[[launch]]
kernel = "transpose"
block = [32, 8]
threads = [256, 256]
arguments = [
  { name = "in", type = "float", count = 65536 },
  { name = "out", type = "float", count = 65536 },
  { name = "n", type = "int", value = 256 },
]
"""
MOVING_LINE = 5
"""Of the access that warps scatter, 1-based."""


def write_moving(folder: Path) -> Path:
    """A source with a described launch, which nobody has measured."""
    source = folder / "moving.cu"
    source.write_text(MOVING)
    source.with_name("moving.launch.toml").write_text(MOVING_LAUNCH)
    return source


RELAX_LAUNCH = """\
[[launch]]
kernel = "relax"
block = 256
grid = 8
arguments = [
  { name = "in", type = "float", count = 65536 },
  { name = "out", type = "float", count = 2048 },
  { name = "n", type = "int", value = 2048 },
  { name = "steps", type = "int", value = 32 },
]
"""


def describe_relax(beside: Path) -> None:
    """Describe the launch of the first measured kernel, next to its source or its report, which names no GPU: one must be named to simulate it."""
    beside.with_suffix(".launch.toml").write_text(RELAX_LAUNCH)
