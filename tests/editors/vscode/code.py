"""Runs a suite of ``suite/`` in a real VS Code, and gives back what it reported.

Each test of a suite is a test here; all tests of a suite run in one window, one after the other.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.editors.workspace import CAUSE, DIVIDING, DOUBLES, LOOP, VICTIM, Workspace, make_workspace
from tests.patience import LIMIT_S as ONE_LIMIT_S
from tests.patience import PATIENCE, set_limits, wait_until

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
EXTENSION = ROOT / "editors" / "vscode"
LIMIT_S = 6 * ONE_LIMIT_S
"""Of a whole suite: each of its tests has a limit of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Result of one test of a suite; ``error`` is None when it passed."""

    name: str
    error: str | None
    milliseconds: int

    def check(self) -> None:
        """Fail as the suite did: its message and the lines of TypeScript, without those of the test that reads them here."""
        if self.error is not None:
            pytest.fail(f"{self.name} ({self.milliseconds / 1000:.1f} s)\n{self.error}", pytrace=False)


Results = dict[str, Result]
"""By name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The programs of the tests.

    Attributes:
        editors: where the install scripts put VS Code and Chromium.
        node: Node.js.
        screenshots: where pictures go.
    """

    editors: Path
    node: str
    screenshots: Path


def find_tools(tmp: Path) -> Tools:
    """The tools; skips the test with a line that says what is missing."""
    editors = Path(os.environ.get("GPA_LSP_EDITORS", "~/.cache/gpa-lsp-editors")).expanduser()
    for name, script in (
        ("vscode", "install_vscode.sh"),
        ("playwright", "install_vscode.sh"),
        ("chromium", "install_chromium.sh"),
    ):
        if not (editors / name).exists():
            pytest.skip(f"no {name} in {editors} (GPA_LSP_EDITORS): run tests/editors/{script} {editors}")
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node on the path")
    if not (EXTENSION / "node_modules").is_dir():
        pytest.skip(
            "the extension's libraries are missing: run tests/editors/install_vscode.sh, or `npm ci` in editors/vscode"
        )
    screenshots = Path(os.environ.get("GPA_LSP_SCREENSHOTS", tmp / "screenshots"))
    screenshots.mkdir(parents=True, exist_ok=True)
    return Tools(editors=editors, node=node, screenshots=screenshots)


def run_npm(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script of the extension's."""
    return subprocess.run(
        ["npm", "--silent", *arguments],
        cwd=EXTENSION,
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
    )


def bundle(source: Path, target: Path) -> Path:
    """A TypeScript file and what it imports as one file that the extension host can load."""
    program = EXTENSION / "node_modules" / ".bin" / "esbuild"
    options = [
        "--bundle",
        "--platform=node",
        "--format=cjs",
        "--target=node20",
        "--external:vscode",
        "--log-level=warning",
    ]
    environment = {**os.environ, "NODE_PATH": str(EXTENSION / "node_modules")}
    subprocess.run([program, source, *options, f"--outfile={target}"], env=environment, check=True)
    return target


def run_suite(
    tools: Tools,
    name: str,
    folder: Path,
    *,
    workspace: Path,
    settings: dict[str, Any],
    facts: dict[str, Any],
    trusted: bool = True,
    extension: Path = EXTENSION,
    environment: dict[str, str] | None = None,
    window: dict[str, Any] | None = None,
) -> list[Result]:
    """Open a workspace in VS Code with the extension and its neighbour, and run a suite there.

    Args:
        tools: VS Code and what drives it.
        name: of the suite.
        folder: for everything the run leaves.
        workspace: is opened.
        settings: the user's.
        facts: what the suite is told.
        trusted: whether the workspace is.
        extension: the folder of the extension.
        environment: more variables.
        window: ``viewport`` and ``scale`` of the window, where a suite needs others than usual.
    """
    for kind in ("User", "Machine"):  # those of scope "machine" are read from the second only
        (folder / "user-data" / kind).mkdir(parents=True)
        (folder / "user-data" / kind / "settings.json").write_text(json.dumps({**QUIET, **settings}), encoding="utf-8")
    configuration = {
        "name": name,
        "editors": str(tools.editors),
        "extension": str(extension),
        "neighbours": [str(HERE / "neighbour")],
        "suite": str(bundle(HERE / "suite" / f"{name}.ts", folder / f"{name}.cjs")),
        "workspace": str(workspace),
        "scratch": str(folder),
        "screenshots": str(tools.screenshots),
        "limitSeconds": LIMIT_S,
        "trusted": trusted,
        "environment": {
            "GPA_LSP_TEST_PATIENCE": str(PATIENCE),
            "EXTENSIONS_GALLERY": json.dumps({"serviceUrl": ""}),  # nothing outside is asked
            "GPA_TEST_FACTS": json.dumps(facts),
            **set_limits(exploration_s=60),  # enough on a slow machine, too
            "GPA_LSP_DATA_DIR": str(folder / "data"),
            **(environment or {}),
        },
        **(window or {}),
    }
    path = folder / "configuration.json"
    path.write_text(json.dumps(configuration), encoding="utf-8")
    done = subprocess.run(
        [tools.node, HERE / "drive.mjs", path], check=False, capture_output=True, text=True, timeout=LIMIT_S + 60
    )
    reported = [json.loads(line) for line in done.stdout.splitlines()]
    assert reported and reported[-1] == {"action": "end", "code": 0}, done.stdout[-2000:] + done.stderr[-4000:]
    return [
        Result(name=line["name"], error=line["error"], milliseconds=line["milliseconds"])
        for line in reported
        if "name" in line
    ]


QUIET: dict[str, Any] = {
    "workbench.colorTheme": "Default Dark Modern",
    "workbench.startupEditor": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.tips.enabled": False,
    "chat.disableAIFeatures": True,
    "editor.minimap.enabled": False,
    "editor.stickyScroll.enabled": False,
    "files.autoSave": "off",
    "workbench.reduceMotion": "on",
    "editor.cursorBlinking": "solid",
    "security.workspace.trust.startupPrompt": "never",
    "security.workspace.trust.banner": "never",
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoCheckUpdates": False,
    "extensions.autoUpdate": False,
    "extensions.ignoreRecommendations": True,
    "git.enabled": False,
}
"""Settings of a user who wants to see the file and nothing else."""


def check_nothing_stays(folder: Path) -> None:
    """Every process of a run in ``folder`` ends; VS Code's own watch their parent, and need a moment to see that it is gone."""
    wait_until(lambda: not _find_left_over(folder), lambda: _find_left_over(folder))


def _find_left_over(folder: Path) -> list[str]:
    """Command lines of processes that a run in ``folder`` left behind."""
    wanted = f"GPA_LSP_DATA_DIR={folder / 'data'}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:  # ended meanwhile, or somebody else's
            continue
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Folder and tools with which a suite runs.

    Attributes:
        folder: empty, for everything the run leaves.
        tools: VS Code and what drives it.
        packaged: the extension as users get it, unpacked.
    """

    folder: Path
    tools: Tools
    packaged: Path

    def make_workspace(self) -> Workspace:
        """The usual one, with a measured source and its profile."""
        return make_workspace(self.folder / "workspace")

    def run(
        self,
        name: str,
        workspace: Workspace,
        *,
        usual: dict[str, Any] | None = None,
        settings: dict[str, Any] | None = None,
        **how: Any,
    ) -> Results:
        """Run a suite on a workspace.

        Args:
            name: of the suite.
            workspace: is opened.
            usual: the user's settings; None for an interpreter and the command that measures.
            settings: more of them.
            how: as :func:`run_suite` takes it, with the usual facts where there are no others.
        """
        every = {**(choose_settings(workspace) if usual is None else usual), **(settings or {})}
        how = {"facts": tell_facts(workspace), **how}
        found = run_suite(self.tools, name, self.folder, workspace=workspace.folder, settings=every, **how)
        return name_results(found, name)


FindResults = Callable[[str, Callable[[Place], Results]], Results]
"""Gives the results of a suite, by its name and what runs it."""


def list_tests(*suites: str) -> list[tuple[str, str]]:
    """Suites and their tests, as parameters of one test."""
    return [(suite, name) for suite in suites for name in find_names(suite)]


def find_names(suite: str) -> list[str]:
    """Names of a suite's tests, as they stand in its text, and before them those of the parts it is put together from."""
    text = (HERE / "suite" / f"{suite}.ts").read_text(encoding="utf-8")
    parts = re.findall(rf'from "\./({suite}/\w+)"', text)
    return [
        *(name for part in parts for name in find_names(part)),
        *re.findall(r'^  \["(.+)", async', text, re.MULTILINE),
    ]


def name_results(results: list[Result], suite: str) -> Results:
    assert [result.name for result in results] == find_names(suite)
    return {result.name: result for result in results}


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
        "gpaLsp.profile.command": [*workspace.measure_command, "${output}"],
    }
