"""Isolation from the current folder: no command, no child process and no server imports or runs anything from it."""

import ast
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.cli.main import list_names
from gpa_lsp.foundation.processes.python_children import isolate_module
from gpa_lsp.notebook.cell_runner import name_file
from tests.conftest import ROOT, make_cache
from tests.editors.made_up_gpu import make_gpu
from tests.house.count_house import parse_where
from tests.house.hostile_folder import HostileFolder, name_modules
from tests.lsp.raw_client import RawClient
from tests.lsp.test_robustness import make_project
from tests.patience import LIMIT_S, wait_until

RUNNER = Path(__file__).with_name("run_in_folder.py")
EXAMPLE = "example.gpa-profile.json"
CUBIN = "cubins/sm_80/short_def_use_original.cubin"

SOURCE = """\
__global__ void gather(const float* x, float* y)
{
    y[threadIdx.x] = x[threadIdx.x * 8];
}
"""
DESCRIPTION = """\
[[launch]]
kernel = "gather"
block = 64
threads = 64
arguments = [{ name = "x", type = "float", count = 8192 }, { name = "y", type = "float", count = 1024 }]
"""

CASES: dict[str, tuple[list[str], int]] = {
    "advise": ([EXAMPLE], 0),
    "serve allow": (["--list"], 0),
    "doctor cache": ([], 0),
    "roofline calibrate": (["--plan", "8.6"], 0),
    "check": (["k.cu"], 0),
    "compare": ([EXAMPLE, EXAMPLE], 0),
    "doctor": ([], 0),
    "emulate": (["--", "/bin/true"], 0),
    "predict explore": (["k.cu", "--block", "32,64x1..8", "--jobs", "2", "-o", "explored.html"], 0),
    "gate": ([EXAMPLE, "--base", EXAMPLE, "--summary", "gate.md", "--sarif", "gate.sarif"], 0),
    "report graph": ([EXAMPLE, "--format", "graphml"], 0),
    "history": (["--record", EXAMPLE], 0),
    "mcp": ([], 0),  # its client has left
    "predict": (["k.cu", "--cudaadvisor"], 0),
    "profile": (["--ncu", "/bin/true", "--sampling-interval", "1", "--", "/bin/true"], 1),
    "record": (["-o", "recorded", "--", "/bin/true"], 2),  # there is no driver, or there is one
    "report": ([EXAMPLE, "--html", "-o", "report.html"], 0),
    "roofline": ([EXAMPLE, "-o", "roofline.png"], 0),
    "report sass": ([CUBIN], 0),
    "predict stalls": (["k.cu"], 0),
    "predict trace": (["k.cu"], 0),
}
"""Of each command the arguments that make it start and import what it can, and its exit code."""

SERVED = {"serve"}
"""Commands with a test of their own below."""

WORKER = "gpa_lsp.foundation.processes.worker"
TIMED = ["profile", "--launches", "k.launch.toml"]
"""Starts the process that times launches; what it ends with depends on whether there is a GPU."""

OF_COMMANDS = {
    "gpa_lsp.execution.compiler.nvrtc_worker",
    "gpa_lsp.foundation.processes.supervision",
    "gpa_lsp.execution.local_gpu.timing_worker",
}
OF_THE_SERVER = {
    *("gpa_lsp.editor.protocol.profile_reader", "gpa_lsp.editor.protocol.page_writer"),
    *("gpa_lsp.editor.static.worker", "gpa_lsp.editor.predicted.worker", "gpa_lsp.report.fixes.trials"),
    "gpa_lsp.editor.simulated.worker",
}
"""What workers work by."""

WITH_A_GPU = "gpa_lsp.editor.timed.worker"
SAMPLED = "gpa_lsp.execution.local_gpu.timing_worker"
"""Started by that."""

CELL_RUNNER = "gpa_lsp.notebook.cell_runner"
"""Started under a profiler by what a notebook asks for."""

NOT_STARTED_BY_US = {
    *(
        "gpa_lsp.__main__",
        "gpa_lsp.cli.main",
        "gpa_lsp.editor.protocol.__main__",
    ),  # by the person, or by an editor; see below
    "gpa_lsp.foundation.processes.watchdog_windows" if os.name != "nt" else "gpa_lsp.foundation.processes.watchdog",
}


@pytest.fixture
def hostile(tmp_path: Path) -> HostileFolder:
    return fill(HostileFolder(tmp_path / "hostile", tmp_path / "mark", name_modules()))


def fill(hostile: HostileFolder) -> HostileFolder:
    """Give a hostile folder something to work on."""
    (hostile.path / "k.cu").write_text(SOURCE)
    (hostile.path / "k.launch.toml").write_text(DESCRIPTION)
    make_project(hostile.path)
    return hostile


def prepare_runner(tmp_path: Path, *, compiles: bool = False) -> tuple[Path, dict[str, str]]:
    """The runner in a folder of its own, and the environment to run it in; what it needs compiled is at hand, unless it compiles."""
    folder = tmp_path / "program"
    folder.mkdir()
    cache = str(tmp_path / "cache") if compiles else make_cache(tmp_path)
    kept = {"GPA_LSP_CACHE_DIR": cache, "GPA_LSP_DATA_DIR": str(tmp_path / "data")}
    return Path(shutil.copy(RUNNER, folder)), {**os.environ, **kept, "TMPDIR": str(tmp_path)}


def read_log(path: Path) -> dict[str, list[list[str]]]:
    """Read the runner's notes, by kind."""
    found: dict[str, list[list[str]]] = {"ran": [], "started": []}
    for line in path.read_text().splitlines():
        kind, *words = json.loads(line)
        found[kind].append(words)
    return found


def name_started(log: dict[str, list[list[str]]]) -> set[str]:
    """Modules that our Python processes ran; for workers, the modules that hold their work."""
    found = set()
    for words in log["started"]:
        if words[0] == sys.executable:
            script = next((Path(one) for one in words if one.endswith(".py")), None)
            module = words[words.index("-m") + 1] if "-m" in words else name_module(script) if script else "-c"
            found.add(words[words.index(WORKER) + 1] if module == WORKER else module)
    return found


def name_module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


STARTING = (
    r"__main__|WORK = |executable|multiprocessing|concurrent|which\(|import which|os\.system|venv|ensurepip|runpy"
)


@cache
def parse_package() -> dict[Path, ast.Module]:
    """The modules with words in them that starting a process takes."""
    return dict(parse_where(STARTING))


def test_every_command_has_its_arguments() -> None:
    assert set(list_names()) == {*CASES, *SERVED}


@pytest.mark.parametrize(
    ("variables", "names"),
    [(["PATH"], list(CASES)), (["PATH", "PYTHONPATH", "LD_LIBRARY_PATH"], ["doctor", "predict explore"])],
    ids=["all", "empty-entries"],
)
def test_no_command_and_no_child_runs_what_lies_in_the_folder(
    hostile: HostileFolder, tmp_path: Path, variables: list[str], names: list[str]
) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    pytest.importorskip("pyarrow", reason="needs pyarrow (the extra [traces])")
    runner, environment = prepare_runner(tmp_path, compiles=True)
    log_path = tmp_path / "log"
    words = json.dumps([TIMED, *([*name.split(), *CASES[name][0]] for name in names)])
    done = subprocess.run(
        [sys.executable, runner, log_path, json.dumps(variables), words],
        cwd=hostile.path, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert hostile.list_run() == []
    assert done.returncode == 0, done.stdout + done.stderr
    log = read_log(log_path)
    codes = {name: int(code) for name, code in log["ran"][1:]}
    assert codes == {name: CASES[name][1] for name in names}, done.stdout + done.stderr
    assert (
        sum("gpa_lsp.foundation.processes.supervision" in started for started in log["started"]) == 2
    )  # of the exploration
    assert {*OF_COMMANDS, "gpa_lsp.foundation.processes.watchdog", "-c"} <= name_started(log)


def test_no_server_and_no_worker_runs_what_lies_in_the_workspace(hostile: HostileFolder, tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    runner, environment = prepare_runner(tmp_path)
    log_path = tmp_path / "log"
    client = RawClient(
        module=f'run_in_folder {log_path} ["PATH","PYTHONPATH","LD_LIBRARY_PATH"] []',
        environment={**environment, "PYTHONPATH": str(runner.parent)},
        cwd=hostile.path,
    )
    try:
        options = {
            "static": {"enable": True},
            "emulation": {"enable": True},
            "client": {"status": True, "trusted": True},
        }
        client.initialize(hostile.path, initializationOptions=options)
        uri = client.open(hostile.path / "k.cu")
        client.wait_for_diagnostics(uri, lambda found: any(is_emulated(one) for one in found))
        client.wait_for("gpaLsp/status", lambda status: status["kernels"] >= 1)
        profile = next(hostile.path.rglob("*.gpa-profile.json"))
        asked = {"command": "gpaLsp.openReport", "arguments": [profile.as_uri()]}
        assert "uri" in client.request("workspace/executeCommand", asked)
        assert client.request("workspace/executeCommand", {"command": "gpaLsp.simulate", "arguments": [uri]}) is True
        client.wait_for_message("simulated")
        measured = [client.open(source) for source in sorted(hostile.path.glob("kernels/*/*.cu"))]
        wait_until(lambda: any(is_tried(client, one) for one in measured), "a fix that was tried")
        assert client.shut_down() == 0
    finally:
        client.kill()
    assert hostile.list_run() == []
    assert name_started(read_log(log_path)) >= OF_THE_SERVER


def test_what_times_and_samples_launches_runs_nothing_of_the_workspace(hostile: HostileFolder, tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    gpu = make_gpu(tmp_path / "gpu")
    runner, environment = prepare_runner(tmp_path)
    log_path = tmp_path / "log"
    client = RawClient(
        module=f'run_in_folder {log_path} ["PATH","PYTHONPATH","LD_LIBRARY_PATH"] []',
        environment={**environment, **gpu.variables, "PYTHONPATH": str(runner.parent)},
        cwd=hostile.path,
    )
    client.replies["window/showMessageRequest"] = lambda _: {"title": "Run once"}
    try:
        options = {"emulation": {"enable": True}, "client": {"status": True, "questions": True, "trusted": True}}
        client.initialize(hostile.path, initializationOptions=options)
        uri = client.open(hostile.path / "k.cu")
        client.wait_for_diagnostics(uri, lambda found: any(is_emulated(one) for one in found))
        client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        client.wait_for("gpaLsp/status", lambda status: "gather measured" in status["text"])
        client.wait_for_diagnostics(uri, lambda found: any("long_scoreboard" in one["message"] for one in found))
        assert client.shut_down() == 0
    finally:
        client.kill()
    assert hostile.list_run() == []
    assert WITH_A_GPU in name_started(read_log(log_path))


def is_tried(client: RawClient, uri: str) -> bool:
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 1000, "character": 0}}
    context = {"diagnostics": [], "only": ["quickfix"]}
    params = {"textDocument": {"uri": uri}, "range": whole, "context": context}
    actions = client.request("textDocument/codeAction", params) or ()
    resolved = (client.request("codeAction/resolve", one) for one in actions)
    return any(one["data"]["state"] != "pending" for one in resolved)


def is_emulated(diagnostic: Any) -> bool:
    return str(diagnostic["code"]).startswith("emulated")


@pytest.mark.parametrize("module", ["gpa_lsp", "gpa_lsp.editor.protocol"])
def test_typed_with_m_it_imports_nothing_of_the_folder_once_it_runs(module: str, tmp_path: Path) -> None:
    """Python itself imports from the folder before our first line runs; from then on nothing is imported from it."""
    program = "import runpy, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    before = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True).stdout
    hostile = fill(
        HostileFolder(tmp_path / "hostile", tmp_path / "mark", name_modules() - {*before.split(), "gpa_lsp"})
    )
    words = ["doctor"] if module == "gpa_lsp" else []
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=hostile.path, input="", capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert hostile.list_run() == []
    assert done.returncode == (0 if words else 1), done.stderr


def test_what_runs_cells_imports_nothing_of_the_folder_before_they_do(hostile: HostileFolder, tmp_path: Path) -> None:
    """A cell itself may, as in the notebook."""
    cells = tmp_path / "cells"
    cells.mkdir()
    words, environment = isolate_module(CELL_RUNNER, str(cells))
    for code, is_run in (("1 + 1", False), (f"import {sorted(name_modules())[0]}", True)):
        (cells / name_file(1)).write_text(code, encoding="utf-8")
        subprocess.run(words, cwd=hostile.path, env=environment, capture_output=True, timeout=LIMIT_S, check=False)
        assert bool(hostile.list_run()) == is_run


def test_every_way_to_start_a_process_of_ours_was_tried() -> None:
    """A module that can be run, and one that a worker works by, is one of those that the tests above saw started."""
    runnable = {
        name_module(path)
        for path, tree in parse_package().items()
        if any(isinstance(node, ast.If) and "'__main__'" in ast.dump(node.test) for node in tree.body)
    }
    assert runnable == {WORKER, CELL_RUNNER, SAMPLED, "gpa_lsp.foundation.processes.watchdog"} | NOT_STARTED_BY_US
    working = {
        name_module(path)
        for path, tree in parse_package().items()
        if any(isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WORK" for node in tree.body)
    }
    assert working == OF_COMMANDS | OF_THE_SERVER | {WITH_A_GPU}


def test_python_is_started_in_one_place() -> None:
    """Modules elsewhere know no interpreter, no library that starts one by itself, and no search that begins in the current folder."""
    starters = {"multiprocessing", "concurrent.futures.process", "venv", "ensurepip", "runpy"}
    found = []
    for path, tree in parse_package().items():
        shown = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
        for node in ast.walk(tree):
            names: set[str] = set()
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and id(node) not in shown:
                names = {f"{node.value.id}.{node.attr}"} & {
                    "sys.executable",
                    "sys._base_executable",
                    "shutil.which",
                    "os.system",
                }
            elif isinstance(node, ast.Import):
                names = {one.name for one in node.names if one.name.partition(".")[0] in starters}
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                whole = {f"{node.module}.{one.name}" for one in node.names}
                names = {
                    one for one in whole if one.rpartition(".")[0] in starters or one.partition(".")[0] in starters
                }
                names |= whole & {"concurrent.futures.ProcessPoolExecutor", "sys.executable", "shutil.which"}
            found += [f"{name_module(path)}: {name}" for name in sorted(names)]
    assert sorted(set(found)) == [
        "gpa_lsp.foundation.processes.python_children: sys.executable",
    ]
