"""A package of others, installed beside ours, adds an optimizer, an analysis and a reader; a broken one costs only itself."""

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.conftest import ROOT

EXAMPLE = ROOT / "fixtures" / "example.gpa-profile.json"

MODULES = {
    "tall_blocks": """
        from gpa_lsp.diagnosis.advice.matches import IdleMatch
        from gpa_lsp.diagnosis.advice.model import Category
        from gpa_lsp.diagnosis.advice.optimizers import Optimizer

        def match(subject):
            return IdleMatch(
                saved_ratio=0.2, bound=1.25, bound_reason="they are taller", hint="Make blocks taller."
            )

        OPTIMIZER = Optimizer(
            name="tall_blocks", title="Taller blocks", category=Category.PARALLEL, group="idle", find=match
        )
        """,
    "height": """
        from gpa_lsp.diagnosis.analyses.answers import Answer
        from gpa_lsp.diagnosis.analyses.questions import Analysis

        def ask(facts):
            return Answer(analysis="height", title="Height", summary=f"{facts.kernel.mangled_name} is tall.")

        ANALYSIS = Analysis(name="height", order=99, answer=ask)
        """,
    "reader": """
        from pathlib import Path

        from gpa_lsp.profile.native.parse import read_native
        from gpa_lsp.profile.readers import Reader

        def read(path):
            return read_native(Path(path.read_text().removeprefix("TALL ")))

        READER = Reader(name="tall", description="tall profile", suffixes=(".tall",),
                        recognises=lambda head, path: head.startswith(b"TALL "), read=read)
        """,
    "broken": "import no_such_module",
}

ENTRY_POINTS = """
    [console_scripts]
    tall = tall_stories:main

    [gpa_lsp.advice.optimizers]
    tall_blocks = tall_stories.tall_blocks:OPTIMIZER
    broken = tall_stories.broken:OPTIMIZER
    fast_math = tall_stories.broken:OPTIMIZER

    [gpa_lsp.analyses.questions]
    height = tall_stories.height:ANALYSIS

    [gpa_lsp.profile.readers]
    tall = tall_stories.reader:READER
    """


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder as pip leaves it."""
    folder = tmp_path / "site"
    (folder / "tall_stories").mkdir(parents=True)
    (folder / "tall_stories" / "__init__.py").write_text("")
    for name, text in MODULES.items():
        (folder / "tall_stories" / f"{name}.py").write_text(dedent(text))
    facts = folder / "tall_stories-1.2.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: tall-stories\nVersion: 1.2\n")
    (facts / "entry_points.txt").write_text(dedent(ENTRY_POINTS))
    return folder


def run(site: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    variables = {"PYTHONPATH": str(site), "GPA_LSP_CACHE_DIR": str(site.parent / "cache")}
    command = [sys.executable, "-P", "-m", "gpa_lsp", *map(str, arguments)]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=True)


def read_kernels(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    kernels: list[dict[str, object]] = json.loads(done.stdout)["kernels"]
    return kernels


def test_an_optimizer_an_analysis_and_a_reader_are_added(site: Path) -> None:
    profile = site.parent / "run.tall"
    profile.write_text(f"TALL {EXAMPLE}")
    done = run(site, "report", "--format", "json", profile)
    kernels = read_kernels(done)
    assert kernels
    for kernel in kernels:
        advice = {one["optimizer"]: one for one in [*kernel["advice"], *kernel["advice_silences"]]}  # type: ignore[misc]
        assert advice["tall_blocks"]["speedup"]["high"] == pytest.approx(1.25)
        assert "fast_math" in advice  # ours, whatever others call theirs
        answers = {one["analysis"]: one for one in kernel["analyses"]["answers"]}  # type: ignore[index]
        assert answers["height"]["summary"] == f"{kernel['mangled_name']} is tall."
    assert "tall_stories.broken:OPTIMIZER, added to gpa_lsp.advice.optimizers, cannot be imported" in done.stderr


def test_what_was_analysed_without_it_is_analysed_with_it_and_again_when_it_changes(site: Path) -> None:
    (facts,) = site.glob("*.dist-info")
    facts.rename(hidden := facts.with_suffix(".hidden"))
    assert "Taller blocks" not in run(site, "advise", EXAMPLE).stdout
    hidden.rename(facts)
    assert "Taller blocks" in run(site, "advise", EXAMPLE).stdout
    code = site / "tall_stories" / "tall_blocks.py"
    code.write_text(code.read_text().replace("Taller blocks", "The tallest blocks"))
    assert "The tallest blocks" in run(site, "advise", EXAMPLE).stdout


def test_doctor_names_the_package_and_what_is_wrong_with_it(site: Path) -> None:
    parts = {part["name"]: part for part in json.loads(run(site, "doctor", "--format", "json").stdout)["components"]}
    assert parts["tall-stories"]["state"] == "broken"
    assert "tall_stories.broken" in parts["tall-stories"]["detail"]
    (points,) = site.glob("*.dist-info/entry_points.txt")
    points.write_text("\n".join(line for line in points.read_text().splitlines() if "broken" not in line))
    parts = {part["name"]: part for part in json.loads(run(site, "doctor", "--format", "json").stdout)["components"]}
    assert parts["tall-stories"]["state"] == "found"
    assert "advice.optimizers: tall_blocks" in parts["tall-stories"]["detail"]


@pytest.mark.parametrize(
    "damage", [b"\xff\xfe[gpa_lsp.", b"[gpa_lsp.advice.optimizers]\nno equals sign\n", b"gpa_lsp."]
)
def test_damaged_metadata_of_others_is_passed_over(site: Path, damage: bytes) -> None:
    (points,) = site.glob("*.dist-info/entry_points.txt")
    points.write_bytes(damage)
    assert "kernel" in run(site, "advise", EXAMPLE).stdout
