"""``gpa-lsp gate`` on the fixtures: a slower, a spilling and a more scattered twin fail on the right line, and the improved ones pass."""

import json
import re
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.diagnosis.analyses.analyse_kernel import analyse_kernel
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.report.gather import AnalysedKernel, gather_report
from gpa_lsp.report.saved.store import write_report
from tests.editors.workspace import DOUBLES, Workspace, make_workspace, write_profile
from tests.pairs.made_up_profile import FIXTURES, Circumstances, make_up_kernel

CUBINS = FIXTURES / "cubins" / "sm_80"


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def set_budgets(*rows: tuple[str, str], more: str = "") -> None:
    tables = [f'[[gate.budget]]\nmetric = "{metric}"\nlimit = {limit}\n' for metric, limit in rows]
    Path(".gpa-lsp.toml").write_text(f"[gate]\n{more}\n" + "".join(tables), encoding="utf-8")


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, list[dict[str, object]]]]:
    """The exit code, and the rows by outcome."""
    code = main(["gate", *map(str, words), "--format", "json"])
    rows: dict[str, list[dict[str, object]]] = {}
    for row in json.loads(capsys.readouterr().out)["rows"]:
        rows.setdefault(row["outcome"], []).append(row)
    return code, rows


def read_text(row: dict[str, object]) -> str:
    """The text of the line that a row is on."""
    path, line = str(row["file"]), row["line"]
    assert isinstance(line, int)
    found = FIXTURES / "kernels" / Path(path).parent.name / Path(path).name
    return found.read_text(encoding="utf-8").splitlines()[line - 1]


@pytest.fixture
def profiles(tmp_path: Path) -> Workspace:
    """Native profiles of the editors' project: ``slow.json`` and ``fast.json``."""
    workspace = make_workspace(tmp_path / "project")
    write_profile(workspace, "original", Path("slow.json"))
    write_profile(workspace, "improved", Path("fast.json"))
    return workspace


def test_a_slower_twin_fails_without_a_configuration(profiles: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    code, rows = run(capsys, "slow.json", "--base", "fast.json")
    assert code == 1
    (row,) = rows["exceeded"]
    assert (row["metric"], row["origin"], row["name"]) == (
        "time",
        "measured",
        "relax(const float *, float *, int, int)",
    )
    assert row["line"] == 1 + profiles.find_line(DOUBLES)
    assert run(capsys, "fast.json", "--base", "slow.json")[0] == 0


def test_a_spilling_twin_fails_by_its_code_alone(capsys: pytest.CaptureFixture[str]) -> None:
    set_budgets(("spills", "0"), ("local_accesses", '"+3 %"'))
    twins = [CUBINS / f"register_spill_{role}.cubin" for role in ("original", "improved")]
    code, rows = run(capsys, twins[0], "--base", twins[1])
    assert code == 1
    assert [row["metric"] for row in rows["exceeded"]] == ["spills", "local_accesses"]
    for row in rows["exceeded"]:
        assert "state[k] = 0.5f * state[k]" in read_text(row)
        assert row["origin"] == "static"
    assert run(capsys, twins[1], "--base", twins[0])[0] == 0


def measure(role: str, sectors: int) -> str:
    """A saved report of a twin as a GPU would have measured it."""
    circumstances = Circumstances(grid=(256, 1, 1), sectors=(sectors, 4))
    kernel = make_up_kernel(CUBINS / f"strided_access_{role}.cubin", circumstances)
    blame = blame_kernel(kernel)
    analyses = analyse_kernel(Subject(kernel, blame, place_kernel(kernel, None)))
    path = Path(f"{role}.json")
    write_report(gather_report([AnalysedKernel(kernel=kernel, blame=blame, analyses=analyses)]), path)
    return str(path)


def test_a_more_scattered_twin_fails_as_measured(capsys: pytest.CaptureFixture[str]) -> None:
    set_budgets(("sectors", '"+10 %"'))
    twins = measure("original", 32), measure("improved", 4)
    code, rows = run(capsys, twins[0], "--base", twins[1])
    assert code == 1
    (row,) = rows["exceeded"]
    assert "sum += in[row * width" in read_text(row)
    assert (row["origin"], row["before"]) == ("measured", 4.0)
    assert run(capsys, twins[1], "--base", twins[0])[0] == 0


LAUNCH = """\
[[launch]]
kernel = "strided_access"
block = 256
grid = 2
arguments = [
  { name = "in", type = "float", count = 32768 },
  { name = "row_sums", type = "float", count = 512 },
  { name = "rows", type = "int", value = 512 },
]
"""


@pytest.mark.parametrize(("launch", "origin"), [("", "static"), (LAUNCH, "emulated")], ids=["code", "emulated"])
def test_a_more_scattered_source_fails_without_a_gpu(
    launch: str, origin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    set_budgets(("sectors", '"+10 %"'))
    for role in ("original", "improved"):
        folder = Path(role)
        folder.mkdir()
        text = (FIXTURES / "kernels" / "strided_access" / f"{role}.cu").read_text(encoding="utf-8")
        (folder / "k.cu").write_text(text, encoding="utf-8")
        if launch:
            (folder / "k.launch.toml").write_text(launch, encoding="utf-8")
    code, rows = run(capsys, "original/k.cu", "--base", "improved/k.cu")
    assert code == 1
    (row,) = rows["exceeded"]
    assert row["origin"] == origin
    assert row["place"] == "original/k.cu:15"
    assert run(capsys, "improved/k.cu", "--base", "original/k.cu")[0] == 0


def test_nothing_to_judge_is_no_pass(capsys: pytest.CaptureFixture[str]) -> None:
    cubin = CUBINS / "register_spill_original.cubin"
    assert main(["gate", str(cubin), "--base", str(cubin)]) == 2
    shown = capsys.readouterr()
    assert "gate undecided" in shown.out
    assert "nothing could be judged" in shown.err


def test_a_configuration_that_means_nothing_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    set_budgets(more="mising = 'fail'")
    cubin = CUBINS / "register_spill_original.cubin"
    assert main(["gate", str(cubin), "--base", str(cubin)]) == 2
    assert ".gpa-lsp.toml" in capsys.readouterr().err


def test_a_kernel_without_a_partner_fails_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    words = [CUBINS / "register_spill_original.cubin", CUBINS / "tiny_blocks_original.cubin"]
    for missing, code in (("say", 0), ("fail", 1)):
        set_budgets(("registers", '"+3 %"'), more=f'missing = "{missing}"')
        assert main(["gate", *map(str, words), "--base", str(words[0])]) == code
        assert "tiny_blocks is new" in capsys.readouterr().out


def test_annotations_sarif_and_summary_name_the_same_line(
    profiles: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    Path("summary.md").write_text("before\n", encoding="utf-8")
    words = ["slow.json", "--base", "fast.json", "--format", "github", "--sarif", "gate.sarif"]
    assert main(["gate", *words]) == 1
    line = 1 + profiles.find_line(DOUBLES)
    (error,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith("::error ")]
    assert f"file=project/src/relax.cu,line={line},title=GPU gate%3A time per launch::" in error
    (result,) = [
        one for one in json.loads(Path("gate.sarif").read_text())["runs"][0]["results"] if one["level"] == "error"
    ]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("project/src/relax.cu", line)
    summary = Path("summary.md").read_text(encoding="utf-8")
    assert summary.startswith("before\n## GPU gate failed: 1 budget exceeded")
    assert f"`project/src/relax.cu:{line}`" in summary
    assert re.search(r"\*\*exceeded\*\*.*`relax`.*\+78 %.*█", summary)


def test_the_history_is_a_base(
    profiles: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path / "data"))
    assert main(["history", "--record", "fast.json"]) == 0
    capsys.readouterr()
    code, rows = run(capsys, "slow.json", "--base", "history")
    assert code == 1
    assert [row["metric"] for row in rows["exceeded"]] == ["time"]
    assert main(["gate", "fast.json", "--base", "history"]) == 2  # its only run is that of this profile
