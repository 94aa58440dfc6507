"""``gpa-lsp history`` from the shell."""

import base64
import gzip
import io
import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.cli.main import main
from gpa_lsp.report.history.store import History
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.saved.store import write_report
from tests.cli.test_commands import FakeTerminal
from tests.history.recordings import make_key, make_recording
from tests.report_builder import build_kernel, build_report

LISTING = """
    k.cu:1  LDG.E R2, [R4.64]     ; selected=10
    k.cu:2  {text}                ; long_scoreboard=80/70 selected=10
"""


@pytest.fixture(autouse=True)
def database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "GPA_LSP_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path / "data"))
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return tmp_path / "data" / "history.db"


def make_kernel(measured_s: int, duration_ns: float, text: str, name: str = "saxpy") -> KernelReport:
    return build_kernel(
        LISTING.format(text=text),
        name=name,
        measured_unix_s=1_763_726_400 + measured_s,
        durations_ns=(duration_ns,),
        sources={"k.cu": "load\nmultiply"},
    )


def save(name: str, *kernels: KernelReport) -> str:
    write_report(build_report(*kernels), Path(name))
    return name


def record_two() -> None:
    save("one.json", make_kernel(0, 4e6, "FFMA R2, R2, R3, R6"))
    save("two.json", make_kernel(60, 3e6, "FMUL R2, R2, R3"))
    assert main(["history", "--record", "one.json", "two.json"]) == 0


def read_history(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict]:
    capsys.readouterr()
    assert main(["history", "--format", "json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)["kernels"]


def test_recording_keeps_the_source_below_the_current_folder(capsys: pytest.CaptureFixture[str]) -> None:
    Path("k.cu").write_text("load\nmultiply")
    os.utime("k.cu", (0, 0))
    kernel = replace(make_kernel(0, 4e6, "EXIT"), embedded_sources={})
    save("one.json", kernel)
    assert main(["history", "--record", "one.json", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], [run["run"] for run in document["runs"]]) == ("gpa-lsp/recorded/1", [1])
    with History() as history:
        run = history.expect_run(1)
        assert run.measurement.key.home == os.path.realpath("k.cu")
        assert history.read_lines(run).files[0].text == "load\nmultiply"


def test_the_list_of_one_file_folder_or_kernel(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with History() as history:
        for name, home in (("_Z3onePf", "project/one.cu"), ("_Z3twoPf", "project/sub/two.cu")):
            history.record(make_recording(key=make_key(name=name, home=os.path.realpath(tmp_path / home))))
    for arguments, expected in (
        (["."], ["_Z3onePf", "_Z3twoPf"]),
        (["sub"], ["_Z3twoPf"]),
        (["one.cu"], ["_Z3onePf"]),
        (["elsewhere"], []),
        (["--kernel", "two"], ["_Z3twoPf"]),
    ):
        assert sorted(kernel["mangled_name"] for kernel in read_history(capsys, *arguments)) == expected


def test_runs_that_are_hardly_comparable_are_compared_with_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    with History() as history:
        history.record(make_recording(0))
        other = make_key(name="_Z5otherPf", device="NVIDIA A100")
        history.record(make_recording(1, key=other, grid=(7, 1, 1)))
    assert main(["history", "--compare", "@1", "@2"]) == 2
    text = capsys.readouterr().out
    assert "not compared" in text
    assert "other GPU: NVIDIA GeForce RTX 3070 → NVIDIA A100" in text
    assert "the kernels differ" in text


def test_a_doubt_about_the_work_says_the_ratio_of_instructions_once(capsys: pytest.CaptureFixture[str]) -> None:
    with History() as history:
        history.record(make_recording(0, times_ns=(2e6,)))
        history.record(make_recording(10, times_ns=(9e6,), grid=(1024, 1, 1), executed=2000.0))
    assert main(["history", "--compare", "@1", "@2"]) == 0
    text = capsys.readouterr().out
    assert "work may differ: grid 128 → 1,024, 2.00× the instructions" in text
    assert text.count("the instructions") == 1


def test_delete_and_clear(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    record_two()
    assert main(["history", "--delete", "1"]) == 0
    assert "1 run was deleted" in capsys.readouterr().err
    assert [run["run"] for run in read_history(capsys)[0]["runs"]] == [2]
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert main(["history", "--clear"]) == 2
    assert "--yes" in capsys.readouterr().err
    for answer, code, left in (("\n", 1, 1), ("n\n", 1, 1), ("y\n", 0, 0)):
        monkeypatch.setattr("sys.stdin", FakeTerminal(answer))
        assert main(["history", "--clear"]) == code
        assert len(read_history(capsys)) == left
    record_two()
    assert main(["history", "--clear", "--yes"]) == 0
    assert read_history(capsys) == []


def test_where(capsys: pytest.CaptureFixture[str], database: Path) -> None:
    record_two()
    capsys.readouterr()
    assert main(["history", "--where", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["database"], document["bytes"]) == (str(database), database.stat().st_size)


def test_a_damaged_history_is_said_once(capsys: pytest.CaptureFixture[str], database: Path) -> None:
    database.parent.mkdir()
    database.write_bytes(b"rubbish" * 1000)
    assert main(["history"]) == 0
    assert "damaged" in capsys.readouterr().err
    assert main(["history"]) == 0
    assert capsys.readouterr().err == ""


def test_a_history_that_cannot_be_had_is_one_line(capsys: pytest.CaptureFixture[str], database: Path) -> None:
    database.mkdir(parents=True)
    assert main(["history"]) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert "GPA_LSP_DATA_DIR" in printed.err


def test_names_in_the_database_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str], database: Path) -> None:
    with History() as history:
        history.record(make_recording(key=make_key(name="k", home="/p/\x1b[2J.cu", device="\x1b]0;x\x07")))
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE run SET facts = replace(facts, 'Unroll', 'Un\\u001b[31mroll')")
    assert main(["history"]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "Un\\x1b[31mroll" in text


def test_a_page_of_every_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    record_two()
    save("other.json", make_kernel(0, 1e6, "FMUL R2, R2, R3", name="other</script>"))
    assert main(["history", "--record", "other.json"]) == 0
    capsys.readouterr()
    assert main(["history", "--html", "-o", "page.html"]) == 0
    assert capsys.readouterr().out == ""
    page = Path("page.html").read_text(encoding="utf-8")
    assert "4.00 ms → 3.00 ms over 2 runs; no regression" in page
    assert "other</script>" not in page
    assert main(["history", "--format", "html", "--kernel", "saxpy", "--limit", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("<!doctype html>")
    assert "1 run more, older" in printed
    assert "other&lt;/script&gt;" in page and "other&lt;/script&gt;" not in printed


def test_json_tells_the_commit(capsys: pytest.CaptureFixture[str]) -> None:
    log = Path(".git/logs/HEAD")
    log.parent.mkdir(parents=True)
    log.write_text(f"{'0' * 40} {'a' * 40} A <a@example.org> 1763726430 +0000\tcommit (initial): Begin\n")
    record_two()
    runs = read_history(capsys)[0]["runs"]
    assert [(run["commit"], run["commit_subject"]) for run in runs] == [("a" * 40, "Begin"), (None, None)]


def test_the_page_of_a_report_has_its_past_when_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    record_two()
    assert main(["report", "--html", "--history", "two.json", "-o", "with.html"]) == 0
    assert main(["report", "--html", "two.json", "-o", "without.html"]) == 0
    pages = [read_packed(Path(name)) for name in ("with.html", "without.html")]
    assert [" over 2 runs" in page for page in pages] == [True, False]
    capsys.readouterr()
    assert main(["report", "--history", "two.json"]) == 2
    assert "--html" in capsys.readouterr().err


def read_packed(page: Path) -> str:
    """Unpack the compressed kernels of a page."""
    found = re.findall(r'id="packed\d+">([^<]+)<', page.read_text(encoding="utf-8"))
    return "".join(gzip.decompress(base64.b64decode(packed)).decode() for packed in found)


def record_three_sizes() -> None:
    """One kernel measured on 1,000 elements, on 282,000, and on 1,000 again, now faster."""
    with History() as history:
        for second, blocks, time_ns in ((0, 8, 1630.0), (10, 2256, 460e3), (20, 8, 1200.0)):
            code = "a" * 32 if second < 20 else "b" * 32
            history.record(
                make_recording(
                    second,
                    code=code + f"{blocks:032}",
                    grid=(blocks, 1, 1),
                    times_ns=(time_ns, time_ns, time_ns),
                    executed=100.0 * blocks,
                )
            )


def test_sizes_are_not_compared_with_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    record_three_sizes()
    assert main(["history"]) == 0
    text = capsys.readouterr().out
    assert "not compared (other size)" in text
    assert "+" not in text
    (kernel,) = read_history(capsys)
    newest, large, first = kernel["runs"]
    assert (newest["since_previous"]["run"], newest["since_previous"]["verdict"]) == (1, "faster")
    assert (large["since_previous"]["verdict"], large["since_previous"]["time"]) == ("other_work", None)
    assert large["since_previous"]["note"] == "other size: grid 8 → 2,256, 282× the instructions"
    assert first["since_previous"] is None
    assert main(["history", "--html"]) == 0
    page = capsys.readouterr().out
    assert "slower in run" not in page
    assert "1.63 µs → 1.20 µs over 2 runs; no regression" in page
    assert main(["history", "--compare", "1", "2"]) == 2
    text = capsys.readouterr().out
    assert "not compared" in text
    assert "other size: grid 8 → 2,256" in text


def test_runs_have_the_numbers_of_their_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    with History() as history:
        for second in range(3):
            history.record(make_recording(second, key=make_key(name="_Z5otherPf")))
        for second in range(3, 5):
            history.record(make_recording(second))
    assert main(["history", "--kernel", "saxpy"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split()[0] for row in rows] == ["2", "1"]
    assert [word for row in rows for word in row.split() if word.startswith("@")] == ["@5", "@4"]
    assert main(["history", "--pin", "1"]) == 2
    complaint = capsys.readouterr().err
    assert "several kernels have a run 1" in complaint
    assert "@1 (other)" in complaint
    assert main(["history", "--pin", "1", "--kernel", "saxpy"]) == 0
    assert main(["history", "--pin", "@2"]) == 0
    assert main(["history", "--pin", "3"]) == 0
    assert main(["history", "--pin", "4"]) == 2
    with History() as history:
        assert [run.run_id for run in history.list_runs() if run.is_baseline] == [4, 3]
