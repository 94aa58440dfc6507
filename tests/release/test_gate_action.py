"""The steps of the gate's action, run as a runner does: their shell, their variables, their files, in a repository with a base and a change."""

import os
import re
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.editors.workspace import make_workspace, write_profile
from tests.pairs.made_up_profile import FIXTURES
from tests.patience import LIMIT_S

yaml = pytest.importorskip("yaml", reason="needs PyYAML, which the pinned requirements hold")

FOLDER = ROOT / ".github" / "actions" / "gate"
ACTION: dict[str, Any] = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))
CUBINS = FIXTURES / "cubins" / "sm_80"
TIGHT = '[[gate.budget]]\nmetric = "spills"\nlimit = 0\n'
LOOSE = '[[gate.budget]]\nmetric = "spills"\nlimit = 4096\n'

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the steps are for bash")


@dataclass
class Runner:
    """State that a runner keeps between steps.

    Attributes:
        folder: its own; the checkout is in it.
        outputs: by step.
        log: of all steps.
    """

    folder: Path
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    log: str = ""

    @property
    def checkout(self) -> Path:
        """The repository."""
        return self.folder / "checkout"

    def run(self, **given: str) -> int:
        """Run the steps until one fails; the exit code."""
        inputs = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
        inputs["base-revision"] = ""
        inputs.update({name.replace("_", "-"): value for name, value in given.items()})
        for step in ACTION["runs"]["steps"]:
            if "uses" in step:
                assert step["if"] == "${{ inputs.program == '' }}"
                assert inputs["program"]
                continue
            code = self._run_step(step, inputs)
            if code:
                return code
        return 0

    def _run_step(self, step: dict[str, Any], inputs: dict[str, str]) -> int:
        assert "${{" not in step["run"]  # what is given reaches a shell through variables only
        files = {name: self.folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        files["GITHUB_OUTPUT"].write_text("")
        script = self.folder / "step.sh"
        script.write_text(step["run"])
        variables = {
            **os.environ,
            **{name: str(path) for name, path in files.items()},
            **{name: self._evaluate(text, inputs) for name, text in step["env"].items()},
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(FOLDER),
            "GITHUB_WORKSPACE": str(self.checkout),
            "RUNNER_TEMP": str(self.folder / "temp"),
        }
        (self.folder / "temp").mkdir(exist_ok=True)
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)]
        done = subprocess.run(
            command, cwd=self.checkout, env=variables, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        self.log += done.stdout + done.stderr
        lines = files["GITHUB_OUTPUT"].read_text().splitlines()
        self.outputs[step["id"]] = {name: value for name, _, value in (line.partition("=") for line in lines)}
        return done.returncode

    def _evaluate(self, text: str, inputs: dict[str, str]) -> str:
        def find(match: re.Match[str]) -> str:
            kind, *path = match[1].strip().split(".")
            return inputs[path[0]] if kind == "inputs" else self.outputs[path[0]][path[2]]

        return re.sub(r"\$\{\{([^}]*)\}\}", find, text)


def run_git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    made = Runner(tmp_path)
    made.checkout.mkdir()
    for role in ("original", "improved"):
        (made.checkout / f"{role} twin.cubin").write_bytes((CUBINS / f"register_spill_{role}.cubin").read_bytes())
    program = tmp_path / "gpa-lsp"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m gpa_lsp "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    run_git(made.checkout, "init", "--quiet")
    return made


def commit(runner: Runner, text: str | None) -> str:
    """A commit with this configuration, or with none."""
    path = runner.checkout / ".gpa-lsp.toml"
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_text(text)
    run_git(runner.checkout, "add", "-A")
    run_git(runner.checkout, "commit", "--quiet", "--allow-empty", "-m", "a change")
    return run_git(runner.checkout, "rev-parse", "HEAD")


TWINS = {"head": "original twin.cubin\n", "base": "\n  \nimproved twin.cubin\n"}


def run(runner: Runner, **given: str) -> int:
    return runner.run(program=str(runner.folder / "gpa-lsp"), **{**TWINS, **given})


def test_it_annotates_summarises_and_fails(runner: Runner) -> None:
    commit(runner, TIGHT)
    assert run(runner) == 1
    assert (
        "::error file=/build/gpa_lsp/fixtures/kernels/register_spill/original.cu,line=21,title=GPU gate" in runner.log
    )
    assert (runner.folder / "github_step_summary").read_text().startswith("## GPU gate failed:")
    assert (runner.checkout / runner.outputs["gate"]["sarif"]).is_file()


def test_an_improvement_passes(runner: Runner) -> None:
    commit(runner, TIGHT)
    assert run(runner, head=TWINS["base"], base=TWINS["head"]) == 0
    assert "::error" not in runner.log


EXAMPLES = {
    "slower": ('[[gate.budget]]\nmetric = "time"\nlimit = "+3 %"\n', "slow.json", "fast.json", "relax.cu"),
    "spilling": (TIGHT, "original twin.cubin", "improved twin.cubin", "register_spill/original.cu"),
    "scattered": ('[[gate.budget]]\nmetric = "sectors"\nlimit = "+10 %"\n', "before/k.cu", "after/k.cu", "before/k.cu"),
}


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_a_worse_twin_fails_on_its_line_and_the_better_one_passes(runner: Runner, name: str) -> None:
    budgets, worse, better, file = EXAMPLES[name]
    if name == "scattered":
        pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
        for folder, role in (("before", "original"), ("after", "improved")):
            source = runner.checkout / folder / "k.cu"
            source.parent.mkdir()
            source.write_bytes((FIXTURES / "kernels" / "strided_access" / f"{role}.cu").read_bytes())
    if name == "slower":
        workspace = make_workspace(runner.checkout / "project")
        write_profile(workspace, "original", runner.checkout / "slow.json")
        write_profile(workspace, "improved", runner.checkout / "fast.json")
    commit(runner, budgets)
    assert run(runner, head=worse, base=better) == 1, runner.log
    assert re.search(rf"^::error file=[^,]*{re.escape(file)},line=\d+,title=GPU gate", runner.log, re.MULTILINE)
    summary = (runner.folder / "github_step_summary").read_text()
    assert summary.startswith("## GPU gate failed:") and file in summary
    runner.log = ""
    assert run(runner, head=better, base=worse) == 0, runner.log
    assert "::error" not in runner.log


def test_a_change_does_not_loosen_its_own_budgets(runner: Runner) -> None:
    base = commit(runner, TIGHT)
    commit(runner, LOOSE)
    assert run(runner) == 0
    assert run(runner, base_revision=base) == 1


def test_a_base_without_budgets_has_the_default(runner: Runner) -> None:
    base = commit(runner, None)
    commit(runner, LOOSE)
    assert run(runner, base_revision=base) == 2  # device code has no time
    assert "nothing could be judged" in runner.log


def test_a_base_that_is_not_there_is_fetched(runner: Runner, tmp_path: Path) -> None:
    base = commit(runner, TIGHT)
    commit(runner, LOOSE)
    origin = runner.checkout.rename(tmp_path / "origin")
    run_git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    run_git(tmp_path, "clone", "--quiet", "--depth=1", origin.as_uri(), str(runner.checkout))
    assert run(runner, base_revision=base) == 1


@pytest.mark.parametrize("revision", ["main", "--upload-pack=touch owned", "$(touch owned)"])
def test_what_is_no_commit_is_refused(runner: Runner, revision: str) -> None:
    commit(runner, TIGHT)
    assert run(runner, base_revision=revision) == 2
    assert not (runner.checkout / "owned").exists()


def test_the_action_asks_for_what_its_page_says() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert ACTION["runs"]["using"] == "composite"
    assert {"head", "base"} == {name for name, one in ACTION["inputs"].items() if one.get("required")}
    assert all(f"`{metric}`" in page for metric in ("time", "spills", "sectors", "occupancy"))


@pytest.mark.parametrize("line", ["--help", "--version", "--config=loose.toml", "-h"])
@pytest.mark.parametrize("side", ["head", "base"])
def test_no_line_of_an_input_is_an_option(runner: Runner, side: str, line: str) -> None:
    commit(runner, TIGHT)
    (runner.checkout / "loose.toml").write_text(LOOSE)
    assert run(runner, **{side: f"{TWINS[side].strip()}\n{line}\n"}) != 0


def test_no_input_adds_an_output(runner: Runner) -> None:
    commit(runner, TIGHT)
    assert run(runner, sarif="log.sarif\nconfig=/dev/null") == 2
    assert "a path has a line break" in runner.log
