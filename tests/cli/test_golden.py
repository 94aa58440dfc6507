"""Output of every command for the example report, byte for byte, in ``tests/golden/render``, and sessions in ``tests/golden/doors``."""

import re
import shlex
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.cli.main import main
from gpa_lsp.diagnosis.analyses.answers import Missing
from gpa_lsp.gpu.device.model import OperationKind
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.saved.store import write_report
from tests.golden_files import GOLDEN, check_golden
from tests.prediction.kernels import write_project
from tests.render.advice_examples import make_advice_example, make_advised, make_silent
from tests.render.charts.roofline_examples import make_machine, make_roofline, place, place_many
from tests.render.examples import SOURCE, make_example, make_smooth
from tests.report.test_compare import ADVICE, AFTER, BEFORE, measured
from tests.report_builder import build_kernel, build_report

MACHINE = make_machine()

FILES = {
    "example.json": make_example,
    "smooth.json": lambda: build_report(make_smooth()),
    "nothing.json": build_report,
    "advice.json": make_advice_example,
    "before.json": lambda: build_report(
        measured(build_kernel(BEFORE, advice=ADVICE, name="saxpy"), 8e6, unit="ns"),
        replace(build_kernel(BEFORE), name="old_one", mangled_name="old_one"),
    ),
    "after.json": lambda: build_report(measured(build_kernel(AFTER, name="saxpy"), 4e6, unit="ns")),
    "saxpy.json": lambda: build_report(place("saxpy", missing=[MISSING]), build_kernel(name="lost")),
    "half.json": lambda: build_report(place("saxpy", make_roofline(MACHINE, rates={OperationKind.FP32: 0.6e12}))),
    "elsewhere.json": lambda: build_report(
        replace(place("saxpy"), device=replace(place("f").device, name="NVIDIA A100"))
    ),
    "several.json": lambda: build_report(*place_many(4), build_kernel(name="lost")),
    "advised.json": lambda: build_report(make_advised(), make_silent()),
    "conv_base.json": lambda: build_report(time_kernel("conv_base", 8e6)),
    "conv_tiled.json": lambda: build_report(time_kernel("conv_tiled", 4e6, AFTER)),
    "gemms.json": lambda: build_report(time_kernel("gemm_naive", 8e6), time_kernel("gemm_tiled", 2e6, AFTER)),
    "doubtful.json": lambda: build_report(*make_example().kernels, problems=make_example().problems[1:]),
    "one.json": lambda: build_report(make_run(0, 4e6, "FFMA R2, R2, R3, R6")),
    "two.json": lambda: build_report(make_run(60, 3e6, "FMUL R2, R2, R3")),
    "three.json": lambda: build_report(make_run(120, 2e6, "FADD R2, R2, R3")),
}


def time_kernel(name: str, duration_ns: float, listing: str = BEFORE) -> KernelReport:
    """A kernel of one launch, whose time is all that is known of it."""
    kernel = build_kernel(listing)
    launch = replace(kernel.launches[0], duration_ns=duration_ns, elapsed_cycles=None)
    return replace(kernel, name=name, mangled_name=name, launches=(launch,), duration_ns=duration_ns)


def make_run(measured_s: int, duration_ns: float, text: str) -> KernelReport:
    """A kernel as it was measured so many seconds after noon of 2025-11-21."""
    listing = f"k.cu:1  LDG.E R2, [R4.64] ; selected=10\nk.cu:2  {text} ; long_scoreboard=80/70 selected=10"
    sources = {"k.cu": "load\nmultiply"}
    measured = 1_763_726_400 + measured_s
    return build_kernel(listing, name="saxpy", measured_unix_s=measured, durations_ns=(duration_ns,), sources=sources)


MISSING = Missing(what="FP64 operations", metrics=("a.sum",), section="InstructionStats")

SUFFIXES = {"json": ".json", "sarif": ".json", "markdown": ".md"}

COMMANDS = [
    "advise advice.json",
    "advise advice.json --details",
    "advise advice.json --details --format markdown",
    "advise advice.json --details --limit 1",
    "advise advice.json --details --limit 1 --format markdown",
    "advise advice.json --details --kernel smooth --color always",
    "COLUMNS=80 advise advice.json --details",
    "COLUMNS=160 advise advice.json --details",
    "advise advice.json --format github",
    "advise advice.json --format markdown",
    "advise advice.json --format sarif",
    "advise advice.json --kernel smooth --color always",
    "advise advice.json --kernel smooth --format json",
    "advise advice.json --limit 2",
    "advise advice.json --limit 2 --format markdown",
    "advise nothing.json",
    "advise nothing.json --format markdown",
    "COLUMNS=80 advise advice.json",
    "COLUMNS=160 advise advice.json",
    "check advice.json",
    "report advice.json --details --kernel smooth --limit 3",
    "check example.json",
    "check example.json --min-share 1.5",
    "check example.json --min-share 90",
    "check nothing.json",
    "check smooth.json --color always",
    "check example.json --format github",
    "check example.json --format sarif",
    "check smooth.json --format json",
    "report example.json --details",
    "report example.json --details --limit 2",
    "report nothing.json --details",
    "report smooth.json --details --color always",
    "report smooth.json --format json --indent 1 --no-sources",
    "report advice.json",
    "report example.json",
    "report nothing.json",
    "COLUMNS=80 report advice.json",
    "COLUMNS=120 report advice.json --kernel smooth --limit 2",
    "report sass example.json",
    "report sass smooth.json --color always",
    "COLUMNS=60 report smooth.json --details",
    "COLUMNS=60 report sass smooth.json",
    "COLUMNS=100 report sass smooth.json",
    "COLUMNS=140 report smooth.json --details",
]


# Sessions with the other doors, one in each file of ``tests/golden/doors``; what some of them cannot do without
DOORS = sorted(path.stem for path in (GOLDEN / "doors").glob("*.txt"))
NEEDS = dict.fromkeys(("predict", "sources"), "cuda.bindings.nvrtc")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, make in FILES.items():
        write_report(make(), tmp_path / name)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "smooth.cu").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return tmp_path


def run(command: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a command as it is written in a shell, with variables in front; the exit code."""
    words = shlex.split(command)
    with monkeypatch.context() as patch:
        while words and "=" in words[0]:
            patch.setenv(*words.pop(0).split("=", 1))
        return main(words)


@pytest.mark.parametrize("command", COMMANDS)
def test_printed(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(command, monkeypatch)
    printed = capsys.readouterr()
    assert printed.err == ""
    suffix = next((suffix for form, suffix in SUFFIXES.items() if f"--format {form}" in command), ".txt")
    name = command.replace(".json", "").replace(" --", "_").replace(" ", "-").replace("=", "-") + suffix
    check_golden(f"render/{name}", printed.out.replace(folder.as_uri(), "file:///folder"))


def read_steps(door: str) -> list[tuple[str, str]]:
    """Read the commands of a session, each with the text of its here-document (empty without one)."""
    text = (GOLDEN / "doors" / f"{door}.txt").read_text(encoding="utf-8")
    return re.findall(r"^\$ (.+)\n(?:((?:> .*\n)+)|)", text, re.MULTILINE)


@pytest.mark.parametrize("door", DOORS)
def test_door(door: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """A step is a line ``$ gpa-lsp …``, or ``$ cat > FILE`` before lines ``> …`` that it holds; ``UPDATE_GOLDEN=1`` adds what is printed."""
    if door in NEEDS:
        pytest.importorskip(NEEDS[door])
        write_project(folder)
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(folder / "data"))
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    said = []
    for typed, text in read_steps(door):
        if typed.startswith("cat > "):
            path = folder / typed.removeprefix("cat > ")
            path.write_text(re.sub(r"^> ", "", text, flags=re.MULTILINE), encoding="utf-8")
            path.chmod(0o755)
            said.append(f"$ {typed}\n{text}")
        else:
            code = run(re.sub(r"gpa-lsp ?", "", typed, count=1), monkeypatch)
            printed = capfd.readouterr()
            errors = re.sub(r"^usage: .*\n(?=gpa-lsp[a-z ]*: error: )", "usage: …\n", printed.err, flags=re.M | re.S)
            errors = re.sub(r"^gpa-lsp: compiling lib\S+ .* once on this machine: .*\n", "", errors, flags=re.M)
            said.append(f"$ {typed}\n{printed.out}{errors}[{code}]\n")
    shown = (
        re.sub(r'("recorded_unix_ns":) \d+', r"\1 …", "\n".join(said))
        .replace(str(folder), "/folder")
        .replace(time.strftime("%Y-%m-%d"), "TODAY")
    )
    check_golden(f"doors/{door}.txt", shown)
