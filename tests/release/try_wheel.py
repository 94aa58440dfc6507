"""Install a built wheel into a fresh environment, as a user would, and run every command from a folder of its own.

    python tests/release/try_wheel.py WHEEL [--python PYTHON …] [--extras cuda,traces,dask]

``WHEEL`` is a wheel, or a folder that holds one. There is one environment per ``--python`` (default: the interpreter that runs this). Nothing of the
source tree is importable there but what the wheel holds, and no development tool is installed. Needs the standard library only. Exit status: 0
everything did what it should, 1 something did not.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent.parent / "fixtures"
LIMIT_S = 300
FAULT = "this is a fault of gpa-lsp"

SOURCE = """\
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""
LAUNCH = """\
[[launch]]
kernel = "saxpy"
block = 256
threads = 4096
arguments = [
  { name = "n", type = "int", value = 4096 },
  { name = "a", type = "float", value = 2.0 },
  { name = "x", type = "float", count = 4096, fill = "uniform" },
  { name = "y", type = "float", count = 4096, fill = "uniform" },
]
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of ``gpa-lsp``.

    Attributes:
        arguments: after the program's name; the first is the command.
        shows: must be among what it prints, when it exits with 0.
        writes: a file it must leave.
        needs: the extra (or a GPU, or a profiler) without which it may exit with 2, saying that something is not installed; None: it needs nothing.
    """

    arguments: tuple[str, ...]
    shows: str = ""
    writes: str | None = None
    needs: str | None = None


TRIALS = (
    Trial(("advise", "example.gpa-profile.json"), shows="Unroll the loop"),
    Trial(("advise", "--format", "sarif", "example.gpa-profile.json"), shows='"2.1.0"'),
    Trial(("serve", "allow", "--list"), shows="nothing is allowed"),
    Trial(
        (
            "doctor",
            "cache",
        )
    ),
    Trial(("doctor", "cache", "--clear")),
    Trial(("roofline", "calibrate", "--plan", "8.6"), needs="cuda"),
    Trial(
        (
            "roofline",
            "calibrate",
        ),
        needs="a GPU",
    ),
    Trial(("check", "example.gpa-profile.json"), shows="info:"),
    Trial(("check", "saxpy.cu"), shows="saxpy", needs="cuda"),
    Trial(("compare", "example.gpa-profile.json", "example.gpa-profile.json"), shows="no change"),
    Trial(("doctor",), shows="nvdisasm"),
    Trial(("emulate", "--", "true"), shows="0 launches", needs="cuda"),
    Trial(("predict", "explore", "saxpy.cu", "--block", "128,256", "--jobs", "2"), shows="256", needs="cuda"),
    Trial(("gate", "example.gpa-profile.json", "--base", "example.gpa-profile.json"), shows="gate passed"),
    Trial(("report", "graph", "example.gpa-profile.json"), shows="digraph"),
    Trial(("history", "--record", "example.gpa-profile.json")),
    Trial(("history",), shows="short_def_use"),
    Trial(("mcp",)),
    Trial(("predict", "saxpy.cu"), shows="saxpy", needs="cuda"),
    Trial(("profile", "--print", "--", "./app"), shows="--section"),
    Trial(("profile", "--", "./app"), needs="Nsight Compute"),
    Trial(("record", "-o", "recorded", "--", "true"), needs="a GPU"),
    Trial(("report", "example.gpa-profile.json"), shows="short_def_use"),
    Trial(("report", "--html", "-o", "report.html", "example.gpa-profile.json"), writes="report.html"),
    Trial(("roofline", "example.gpa-profile.json"), shows="short_def_use"),
    Trial(("roofline", "-o", "roofline.svg", "example.gpa-profile.json"), writes="roofline.svg", needs="charts"),
    Trial(("roofline", "-o", "roofline.html", "example.gpa-profile.json"), writes="roofline.html"),
    Trial(("report", "sass", "example.gpa-profile.json"), shows="LDG"),
    Trial(("predict", "stalls", "saxpy.cu", "-o", "saxpy.gpa-profile.json"), shows="(simulated)", needs="cuda"),
    Trial(("predict", "trace", "saxpy.cu", "-o", "saxpy.trace"), needs="cuda, traces"),
)
SERVED = "serve"
"""Tried by its handshake."""

MESSAGES = (
    {
        "id": 1,
        "method": "initialize",
        "params": {"processId": None, "rootUri": None, "capabilities": {}},
    },
    {"method": "initialized", "params": {}},
    {"id": 2, "method": "shutdown"},
    {"method": "exit"},
)

LIST_COMMANDS = (
    "import pathlib, gpa_lsp.cli.commands as commands; "
    "print(*(path.stem for path in pathlib.Path(commands.__file__).parent.glob('[!_]*.py')))"
)

SHOW_LICENCE = (
    "from importlib import metadata; print(metadata.metadata('gpa-lsp')['License-Expression'], "
    "sum(file.name == 'LICENSE' and 'END OF TERMS' in file.read_text() for file in metadata.files('gpa-lsp')))"
)


def main() -> int:
    """Try the wheel with each interpreter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument(
        "--python", action="append", metavar="PYTHON", help="an interpreter; may be given several times"
    )
    parser.add_argument("--extras", default="", metavar="LIST", help="extras to install along, such as cuda,traces")
    options = parser.parse_args()
    wheels = sorted(options.wheel.glob("gpa_lsp-*.whl")) if options.wheel.is_dir() else [options.wheel]
    if len(wheels) != 1:
        parser.error(f"{options.wheel} holds {len(wheels)} wheels of gpa_lsp, and one is needed")
    complaints = []
    for python in options.python or [sys.executable]:
        with tempfile.TemporaryDirectory(prefix="gpa-lsp-wheel-") as folder:
            environment = Environment(Path(folder), python)
            found = environment.install(wheels[0].resolve(), options.extras) or environment.try_everything()
        complaints += found
        print(f"{environment.version}: {'; '.join(found) or 'every command did what it should'}", flush=True)
    return 1 if complaints else 0


class Environment:
    """A fresh virtual environment, and an empty folder to work in."""

    def __init__(self, folder: Path, python: str) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        subprocess.run([python, "-m", "venv", folder / "venv"], check=True, timeout=LIMIT_S)
        programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self.python = programs / "python"
        self.program = programs / "gpa-lsp"
        hidden = ("PYTHON", "GPA_LSP", "VIRTUAL_ENV")
        self.variables = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        self.variables |= {"GPA_LSP_CACHE_DIR": str(folder / "cache"), "GPA_LSP_DATA_DIR": str(folder / "data")}
        self.variables |= {"PYTHONUTF8": "1"}
        self.version = self.run([str(self.python), "--version"]).stdout.strip()

    def install(self, wheel: Path, extras: str) -> list[str]:
        """Install the wheel and what it asks for; complaints, when that fails."""
        wanted = f"{wheel}[{extras}]" if extras else str(wheel)
        done = self.run([str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted])
        if done.returncode != 0:
            return [f"pip install {wanted}: {done.stderr.strip()[-2000:]}"]
        example = "example.gpa-profile.json"
        modules = json.loads((FIXTURES / example).read_text(encoding="utf-8"))["modules"]
        for name in (example, *(module["cubin"]["path"] for module in modules)):
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(FIXTURES / name, self.work / name)
        (self.work / "saxpy.cu").write_text(SOURCE, encoding="utf-8")
        (self.work / "saxpy.launch.toml").write_text(LAUNCH, encoding="utf-8")
        return []

    def try_everything(self) -> list[str]:
        """Complaints about the commands."""
        listed = set(self.run([str(self.python), "-P", "-c", LIST_COMMANDS]).stdout.split())
        tried = {trial.arguments[0] for trial in TRIALS} | {SERVED}
        complaints = [f"no trial of {name}" for name in sorted(listed - tried)]
        complaints += [f"{name} is not in the wheel" for name in sorted(tried - listed)]
        if self.run([str(self.python), "-P", "-c", SHOW_LICENCE]).stdout.split() != ["Apache-2.0", "1"]:
            complaints.append("the wheel does not hold its licence, or does not name it")
        for trial in TRIALS:
            complaint = self.try_command(trial)
            if complaint is not None:
                complaints.append(f"gpa-lsp {' '.join(trial.arguments)}: {complaint}")
        handshake = self.try_server()
        return complaints if handshake is None else [*complaints, f"gpa-lsp serve: {handshake}"]

    def try_command(self, trial: Trial) -> str | None:
        """Run a command; returns what is wrong with it, or None."""
        done = self.run([str(self.program), *trial.arguments])
        printed = done.stdout + done.stderr
        if FAULT in printed or "Traceback" in printed:
            return printed.strip()[-2000:]
        if done.returncode == 2 and trial.needs is not None and "is not installed" in printed:
            print(f"  {self.version}: gpa-lsp {' '.join(trial.arguments)} needs {trial.needs}, and says so", flush=True)
            return None
        if done.returncode != 0:
            return f"exit status {done.returncode}: {printed.strip()[-2000:]}"
        if trial.shows not in printed:
            return f"does not show {trial.shows!r}: {printed.strip()[-2000:]}"
        if trial.writes is not None and not (self.work / trial.writes).stat().st_size:
            return f"leaves {trial.writes} empty"
        return None

    def try_server(self) -> str | None:
        """Say hello and goodbye to the language server; what is wrong with its answers, or None."""
        sent = b"".join(frame({"jsonrpc": "2.0", **message}) for message in MESSAGES)
        done = subprocess.run(
            [self.program, "serve"],
            cwd=self.work,
            env=self.variables,
            input=sent,
            capture_output=True,
            check=False,
            timeout=LIMIT_S,
        )
        answers = {message.get("id"): message for message in unframe(done.stdout)}
        if "hoverProvider" not in answers.get(1, {}).get("result", {}).get("capabilities", {}):
            return f"no answer to initialize: {done.stdout[-500:]!r} {done.stderr[-1500:]!r}"
        if 2 not in answers or done.returncode != 0:
            return f"does not end as it should (exit status {done.returncode}): {done.stderr[-1500:]!r}"
        return None

    def run(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        """Run something in the empty folder."""
        return subprocess.run(
            command,
            cwd=self.work,
            env=self.variables,
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="replace",
            timeout=LIMIT_S,
            stdin=subprocess.DEVNULL,
        )


def frame(message: dict[str, object]) -> bytes:
    """A message of the protocol's wire."""
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def unframe(stream: bytes) -> list[dict[str, dict[str, dict[str, object]]]]:
    """The messages of what was received."""
    messages = []
    while stream:
        head, _, rest = stream.partition(b"\r\n\r\n")
        length = int(
            next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")).split(b":")[1]
        )
        messages.append(json.loads(rest[:length]))
        stream = rest[length:]
    return messages


if __name__ == "__main__":
    sys.exit(main())
