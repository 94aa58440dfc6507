"""The extension in a real VS Code: its server, its web client in Chromium, a workspace with a profile, and a neighbour that answers for CUDA C++.

Each test of ``vscode/suite`` is a test here; all tests of a suite run in one window, one after the other.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import ZipFile

import pytest

from gpa_lsp.binary.tool_location import find_tool
from tests.bench.many_kernels import make_workspace as make_many_kernels
from tests.conftest import find_corpus
from tests.editors.made_up_gpu import make_gpu
from tests.editors.package_index import PackageIndex
from tests.editors.vscode.code import (
    EXTENSION,
    HERE,
    Result,
    Tools,
    bundle,
    check_nothing_stays,
    find_tools,
    run_npm,
    run_suite,
)
from tests.editors.workspace import (
    CAUSE,
    DIVIDING,
    DOUBLES,
    LAUNCH,
    LOOP,
    VICTIM,
    Workspace,
    add_reports,
    describe_relax,
    make_clone,
    make_workspace,
    write_moving,
)
from tests.programs.built import SOURCES, require_compiler

Results = dict[str, Result]

WINDOWS = ("first", "second")

CROWD = 170
"""Kernels in one source: 1,800 lines, of which 300 and more are hot."""

CLANGD_FLAGS = """\
-xc++
-D__global__=
-D__device__=
-D__restrict__=
"""
"""Enough for clangd to know the names of the project without a CUDA toolkit."""


def find_names(suite: str) -> list[str]:
    """Names of a suite's tests, as they stand in its text, and before them those of the parts it is put together from."""
    text = (HERE / "suite" / f"{suite}.ts").read_text(encoding="utf-8")
    parts = re.findall(rf'from "\./({suite}/\w+)"', text)
    return [
        *(name for part in parts for name in find_names(part)),
        *re.findall(r'^  \["(.+)", async', text, re.MULTILINE),
    ]


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return find_tools(tmp_path_factory.mktemp("vscode"))


@pytest.fixture(scope="session")
def built(tools: Tools) -> Tools:
    """The tools, after the extension was built."""
    done = run_npm("run", "build")
    assert done.returncode == 0, done.stdout + done.stderr
    return tools


def tell_facts(workspace: Workspace) -> dict[str, object]:
    texts = {
        "cause": CAUSE,
        "victim": VICTIM,
        "loop": LOOP,
        "doubles": DOUBLES,
        "dividing": DIVIDING,
        "kernel": "void relax(",
    }
    return {
        "source": str(workspace.source),
        "control": str(workspace.control),
        "lines": {name: workspace.find_line(text) for name, text in texts.items()},
    }


def choose_settings(workspace: Workspace) -> dict[str, object]:
    return {
        "gpaLsp.interpreter": sys.executable,
        "gpaLsp.pollSeconds": 0.1,
        "gpaLsp.emulation.exploreSeconds": 60,  # enough on a slow machine, too
        "gpaLsp.profile.command": [*workspace.measure_command, "${output}"],
        "gpaLsp.profile.debounceSeconds": 0.1,
    }


def name_results(results: list[Result], suite: str) -> Results:
    assert [result.name for result in results] == find_names(suite)
    return {result.name: result for result in results}


@pytest.fixture(scope="session")
def main_results(built: Tools, packaged: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("main")
    workspace = make_workspace(folder / "workspace")
    results = run_suite(
        built,
        "main",
        folder,
        workspace=workspace.folder,
        settings={**choose_settings(workspace), "gpaLsp.importStrategy": "useBundled"},
        facts=tell_facts(workspace),
        extension=packaged,
    )
    check_nothing_stays(folder)
    return name_results(results, "main")


@pytest.mark.parametrize("name", find_names("main"))
def test_main(name: str, main_results: Results) -> None:
    assert main_results[name].error is None, main_results[name].error


@pytest.fixture(scope="session")
def clone_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("clone")
    workspace = make_clone(folder / "workspace")
    settings = {"gpaLsp.interpreter": sys.executable, "gpaLsp.pollSeconds": 0.1, "gpaLsp.static.enable": False}
    results = run_suite(
        built, "clone", folder, workspace=workspace.folder, settings=settings, facts=tell_facts(workspace)
    )
    check_nothing_stays(folder)
    return name_results(results, "clone")


@pytest.mark.parametrize("name", find_names("clone"))
def test_clone(name: str, clone_results: Results) -> None:
    assert clone_results[name].error is None, clone_results[name].error


@pytest.fixture(scope="session")
def fixes_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("fixes")
    workspace = make_workspace(folder / "workspace")
    workspace.source.with_suffix(".launch.toml").write_text(LAUNCH)
    results = run_suite(
        built,
        "fixes",
        folder,
        workspace=workspace.folder,
        settings=choose_settings(workspace),
        facts=tell_facts(workspace),
    )
    check_nothing_stays(folder)
    return name_results(results, "fixes")


@pytest.mark.parametrize("name", find_names("fixes"))
def test_fixes(name: str, fixes_results: Results) -> None:
    assert fixes_results[name].error is None, fixes_results[name].error


@pytest.fixture(scope="session")
def narrow_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A window as wide as half a screen, with source and SASS in it."""
    folder = tmp_path_factory.mktemp("narrow")
    workspace = make_workspace(folder / "workspace")
    results = run_suite(
        built,
        "narrow",
        folder,
        workspace=workspace.folder,
        settings=choose_settings(workspace),
        facts=tell_facts(workspace),
        window={"viewport": {"width": 900, "height": 640}},
    )
    check_nothing_stays(folder)
    return name_results(results, "narrow")


@pytest.mark.parametrize("name", find_names("narrow"))
def test_narrow(name: str, narrow_results: Results) -> None:
    assert narrow_results[name].error is None, narrow_results[name].error


@pytest.fixture(scope="session")
def restricted_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A workspace whose settings name a command to measure with, and an interpreter that leaves a trace when it is started."""
    folder = tmp_path_factory.mktemp("restricted")
    workspace = make_workspace(folder / "workspace")
    interpreter = workspace.folder / "python"
    interpreter.write_text(
        f'#!/bin/sh\ntouch "{workspace.control}/workspace-interpreter"\nexec "{sys.executable}" "$@"\n'
    )
    interpreter.chmod(0o755)
    users = {name: value for name, value in choose_settings(workspace).items() if not name.startswith("gpaLsp.profile")}
    own = {**choose_settings(workspace), "gpaLsp.interpreter": str(interpreter)}
    (workspace.folder / ".vscode").mkdir()
    (workspace.folder / ".vscode" / "settings.json").write_text(json.dumps(own))
    results = run_suite(
        built,
        "restricted",
        folder,
        workspace=workspace.folder,
        settings=users,
        facts=tell_facts(workspace),
        trusted=False,
    )
    check_nothing_stays(folder)
    return name_results(results, "restricted")


@pytest.mark.parametrize("name", find_names("restricted"))
def test_restricted(name: str, restricted_results: Results) -> None:
    assert restricted_results[name].error is None, restricted_results[name].error


@pytest.fixture(scope="session")
def packaged(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension as users get it, unpacked."""
    done = run_npm("run", "package", PYTHON=sys.executable)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = tmp_path_factory.mktemp("packaged")
    with ZipFile(EXTENSION / "gpa-lsp.vsix") as archive:
        archive.extractall(folder)
    return folder / "extension"


@pytest.fixture(scope="session")
def bundled_results(built: Tools, packaged: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("bundled")
    workspace = make_workspace(folder / "workspace")
    venv.create(folder / "bare", with_pip=False)
    settings = {**choose_settings(workspace), "gpaLsp.importStrategy": "useBundled"}
    results = run_suite(
        built,
        "bundled",
        folder,
        workspace=workspace.folder,
        settings=settings,
        facts={**tell_facts(workspace), "bareInterpreter": str(folder / "bare" / "bin" / "python")},
        extension=packaged,
    )
    check_nothing_stays(folder)
    return name_results(results, "bundled")


@pytest.mark.parametrize("name", find_names("bundled"))
def test_bundled(name: str, bundled_results: Results) -> None:
    assert bundled_results[name].error is None, bundled_results[name].error


@pytest.fixture(scope="session")
def setup_results(built: Tools, packaged: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Where the only Python on the path has no packages, with a package index on the loopback interface."""
    folder = tmp_path_factory.mktemp("setup")
    workspace = make_workspace(folder / "work" / "space")
    venv.create(folder / "bare", with_pip=False)
    extension = folder / "extension"
    shutil.copytree(packaged, extension)
    how = folder / "index"
    how.write_text("refuse")
    with PackageIndex(how) as index:
        (extension / "bundled" / "requirements.txt").write_text(index.requirement)
        results = run_suite(
            built,
            "setup",
            folder,
            workspace=workspace.folder,
            settings={
                "gpaLsp.importStrategy": "useBundled",  # the lent packages hold one that only the tests can import
                "gpaLsp.pollSeconds": 0.1,
                "gpaLsp.static.enable": False,
            },
            facts={
                **tell_facts(workspace),
                "index": str(how),
                "storage": str(folder / "user-data" / "User" / "globalStorage" / "gpa-lsp.gpa-lsp"),
            },
            extension=extension,
            environment={
                "PATH": str(folder / "bare" / "bin"),
                "PIP_CONFIG_FILE": os.devnull,
                "PIP_FIND_LINKS": "",
                "PIP_INDEX_URL": index.address,
                "PIP_RETRIES": "1",
            },
        )
    check_nothing_stays(folder)
    return name_results(results, "setup")


@pytest.mark.parametrize("name", find_names("setup"))
def test_setup(name: str, setup_results: Results) -> None:
    assert setup_results[name].error is None, setup_results[name].error


@pytest.fixture(scope="session")
def clangd_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    installed = built.editors / "clangd"
    clangd = str(installed) if installed.exists() else shutil.which("clangd")
    if clangd is None:
        pytest.skip("clangd is not installed: tests/editors/install_neovim.sh also installs it")
    folder = tmp_path_factory.mktemp("clangd")
    workspace = make_workspace(folder / "workspace")
    (workspace.folder / "compile_flags.txt").write_text(CLANGD_FLAGS)
    shutil.copytree(HERE / "clangd", folder / "clangd-client")
    bundle(HERE / "clangd" / "extension.ts", folder / "clangd-client" / "extension.cjs")
    results = run_suite(
        built,
        "clangd",
        folder,
        workspace=workspace.folder,
        settings=choose_settings(workspace),
        facts=tell_facts(workspace),
        neighbour=folder / "clangd-client",
        environment={"GPA_TEST_CLANGD": clangd},
    )
    check_nothing_stays(folder)
    return name_results(results, "clangd")


@pytest.mark.parametrize("name", find_names("clangd"))
def test_clangd(name: str, clangd_results: Results) -> None:
    assert clangd_results[name].error is None, clangd_results[name].error


@pytest.fixture(scope="session")
def crowd_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Many kernels in one long source; GPA_TEST_CROWD names a folder with another such workspace."""
    if find_tool("nvcc") is None or find_corpus() is None:
        pytest.skip("nvcc or the corpus of real reports (GPA_LSP_CORPUS) is missing")
    folder = tmp_path_factory.mktemp("crowd")
    workspace = Path(os.environ.get("GPA_TEST_CROWD", folder / "workspace"))
    workspace.mkdir(exist_ok=True)
    source, _ = make_many_kernels(workspace, CROWD)
    settings = {"gpaLsp.interpreter": sys.executable, "gpaLsp.static.enable": False}
    facts = {"source": str(source), "control": str(folder), "lines": {}}
    results = run_suite(built, "crowd", folder, workspace=workspace, settings=settings, facts=facts)
    check_nothing_stays(folder)
    print((folder / "crowd.json").read_text())
    return name_results(results, "crowd")


@pytest.mark.parametrize("name", find_names("crowd"))
def test_crowd(name: str, crowd_results: Results) -> None:
    assert crowd_results[name].error is None, crowd_results[name].error


@pytest.fixture(scope="session")
def access_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """In a workspace with a hundred reports, whose older ones are none of a reader's business."""
    folder = tmp_path_factory.mktemp("access")
    workspace = make_workspace(folder / "workspace")
    add_reports(workspace, 99)
    results = run_suite(
        built,
        "access",
        folder,
        workspace=workspace.folder,
        settings=choose_settings(workspace),
        facts=tell_facts(workspace),
    )
    check_nothing_stays(folder)
    return name_results(results, "access")


@pytest.mark.parametrize("name", find_names("access"))
def test_access(name: str, access_results: Results) -> None:
    assert access_results[name].error is None, access_results[name].error


@pytest.fixture(scope="session")
def simulation_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A workspace with a source whose launch is described, and no profile of it, and one that was measured and is described, too."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    folder = tmp_path_factory.mktemp("simulation")
    workspace = make_workspace(folder / "workspace")
    write_moving(workspace.folder)
    describe_relax(workspace.profile)  # beside its source it would be emulated, too
    results = run_suite(
        built,
        "simulation",
        folder,
        workspace=workspace.folder,
        settings={
            **choose_settings(workspace),
            "gpaLsp.simulation.seconds": 60,
            "gpaLsp.emulation.exploreSeconds": 0,
            "gpaLsp.emulation.machine": "A100",
        },
        facts=tell_facts(workspace),
    )
    check_nothing_stays(folder)
    return name_results(results, "simulation")


@pytest.mark.parametrize("name", find_names("simulation"))
def test_simulation(name: str, simulation_results: Results) -> None:
    assert simulation_results[name].error is None, simulation_results[name].error


@pytest.fixture(scope="session")
def timing_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A workspace with a source whose launch is described, and a GPU that is made up."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    folder = tmp_path_factory.mktemp("timing")
    workspace = make_workspace(folder / "workspace")
    write_moving(workspace.folder)
    gpu = make_gpu(folder / "gpu")
    quiet = {"gpaLsp.simulation.onSave": False, "gpaLsp.emulation.exploreSeconds": 0}
    results = run_suite(
        built,
        "timing",
        folder,
        workspace=workspace.folder,
        settings={**choose_settings(workspace), **quiet, "gpaLsp.profile.onSave": False},
        facts={**tell_facts(workspace), "times": str(gpu.times)},
        environment=gpu.variables,
    )
    check_nothing_stays(folder)
    return name_results(results, "timing")


@pytest.mark.parametrize("name", find_names("timing"))
def test_timing(name: str, timing_results: Results) -> None:
    assert timing_results[name].error is None, timing_results[name].error


@pytest.fixture(scope="session")
def recording_results(built: Tools, packaged: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A workspace with the source of a program that is built for the emulator and run there, by the server that comes along."""
    require_compiler()
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    folder = tmp_path_factory.mktemp("recording")
    workspace = make_workspace(folder / "workspace")
    for name in ("symbols.cu", "checking.h"):
        shutil.copy(SOURCES / name, workspace.folder)
    build = ["nvcc", "-std=c++17", "symbols.cu", "-o", "symbols"]
    results = run_suite(
        built,
        "recording",
        folder,
        workspace=workspace.folder,
        settings={
            **choose_settings(workspace),
            "gpaLsp.importStrategy": "useBundled",
            "gpaLsp.emulation.recordBuildCommand": build,
        },
        facts=tell_facts(workspace),
        extension=packaged,
    )
    check_nothing_stays(folder)
    return name_results(results, "recording")


@pytest.mark.parametrize("name", find_names("recording"))
def test_recording(name: str, recording_results: Results) -> None:
    assert recording_results[name].error is None, recording_results[name].error


def count_remembered(data: Path, kernel: str) -> int:
    """Measurements of a kernel in a history."""
    command = [sys.executable, "-m", "gpa_lsp", "history", "--format", "json"]
    environment = {**os.environ, "GPA_LSP_DATA_DIR": str(data)}
    printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return next(len(one["runs"]) for one in json.loads(printed)["kernels"] if one["name"].startswith(f"{kernel}("))


@pytest.fixture(scope="session")
def window_results(built: Tools, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    """Two windows at once on one workspace, with one history."""
    folder = tmp_path_factory.mktemp("windows")
    workspace = make_workspace(folder / "workspace")
    shared = {"GPA_LSP_DATA_DIR": str(folder / "data"), "GPA_LSP_CACHE_DIR": str(folder / "cache")}

    def open_window(name: str) -> list[Result]:
        return run_suite(
            built,
            "window",
            folder / name,
            workspace=workspace.folder,
            settings=choose_settings(workspace),
            facts=tell_facts(workspace),
            environment={**shared, "GPA_TEST_WINDOW": name},
        )

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(open_window, WINDOWS))
    check_nothing_stays(folder)
    results = {name: name_results(each, "window") for name, each in zip(WINDOWS, found, strict=True)}
    assert workspace.runs == 2
    assert count_remembered(folder / "data", "relax") == 2  # before and after: neither lost nor twice
    return results


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", find_names("window"))
def test_two_windows(name: str, window: str, window_results: dict[str, Results]) -> None:
    assert window_results[window][name].error is None, window_results[window][name].error


def test_package_is_small_and_complete(packaged: Path) -> None:
    # Nine tenths of it are the server: its code, its tables with their sources, the templates of its pages and the script of their
    # charts, a quarter of a megabyte in place of a package of 84 MB that users downloaded.
    assert (EXTENSION / "gpa-lsp.vsix").stat().st_size < 3.5 * 2**20
    assert not [path for path in packaged.rglob("*") if path.suffix in (".so", ".pyc", ".ts", ".map")]
    manifest = json.loads((packaged / "package.json").read_text())
    steps = manifest["contributes"]["walkthroughs"][0]["steps"]
    wanted = [medium for step in steps for kind, medium in step["media"].items() if kind in ("image", "markdown")]
    wanted += re.findall(r"!\[[^]]*\]\((images/[^)]+)\)", (packaged / "readme.md").read_text())
    assert [name for name in [*wanted, manifest["icon"]] if not (packaged / name).exists()] == []
    _, *notices = (packaged / "dist" / "ThirdPartyNotices.txt").read_text().split(f"\n{'-' * 80}\n\n")
    assert {"vscode-languageclient", "vscode-jsonrpc"} <= {notice.split()[0] for notice in notices}
    assert all(len(notice) > 500 for notice in notices)  # whole texts
    with ZipFile(packaged / "bundled" / "server.zip") as archive:
        names = set(archive.namelist())
    assert {"server/gpa_lsp/lsp/start.py", "libs/pygls/lsp/server.py", "libs/lsprotocol/types.py"} <= names


def test_the_server_that_comes_along_has_what_it_imports(packaged: Path, tmp_path: Path) -> None:
    with ZipFile(packaged / "bundled" / "server.zip") as archive:
        archive.extractall(tmp_path / "unpacked")
    server = tmp_path / "unpacked" / "server"
    there = {path.relative_to(server).with_suffix("") for path in server.rglob("*.py")}
    modules = {".".join(path.parts).removesuffix(".__init__") for path in there}
    missing = {
        f"{module} in {path.relative_to(server)}"
        for path in server.rglob("*.py")
        for module in re.findall(r"^from (gpa_lsp[\w.]*) import", path.read_text(encoding="utf-8"), re.MULTILINE)
        if module not in modules
    }
    assert missing == set()


def test_types_and_generated_parts(built: Tools) -> None:
    suite = subprocess.run(
        [EXTENSION / "node_modules" / ".bin" / "tsc", "--noEmit", "-p", HERE / "suite"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert suite.returncode == 0, suite.stdout
    assert not re.findall(
        r":\s*any\b|<any>|as any\b", "".join(path.read_text() for path in (EXTENSION / "src").glob("*.ts"))
    )


def test_unit_tests(tools: Tools) -> None:
    done = run_npm("test")
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"^# pass (\d+)", done.stdout, re.MULTILINE)[1]) >= 14  # type: ignore[index]
