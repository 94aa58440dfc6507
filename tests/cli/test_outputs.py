"""Files that commands write: a full disk costs nothing that was there, no input and no measurement is replaced, ``-`` is standard output."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from tests.conftest import ROOT
from tests.patience import LIMIT_S

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
pytest.importorskip("pyarrow", reason="needs pyarrow (the extra [traces])")
if sys.platform == "win32":
    pytest.skip("limits, links and devices of POSIX", allow_module_level=True)

SOURCE = "__global__ void gather(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x * 8]; }\n"
DESCRIPTION = """\
[[launch]]
kernel = "gather"
block = 64
threads = 64
arguments = [{ name = "x", type = "float", count = 8192 }, { name = "y", type = "float", count = 1024 }]
"""
PROFILE = ROOT / "fixtures" / "example.gpa-profile.json"

WRITING = {
    "advise": (["advise", "p.gpa-profile.json", "--details"], "-o", "made.txt"),
    "advise json": (["advise", "p.gpa-profile.json", "--format", "json"], "-o", "made.json"),
    "explore": (["predict", "explore", "k.cu", "--block", "32,64", "--jobs", "1"], "-o", "made.json"),
    "gate sarif": (["gate", "p.gpa-profile.json", "--base", "p.gpa-profile.json"], "--sarif", "made.sarif"),
    "graph": (["report", "graph", "p.gpa-profile.json", "--format", "json"], "-o", "made.json"),
    "history": (["history", "--html"], "-o", "made.html"),
    "memory": (["predict", "k.cu"], "-o", "made.txt"),
    "memory html": (["predict", "k.cu", "--format", "html"], "-o", "made.html"),
    "report": (["report", "p.gpa-profile.json"], "-o", "made.txt"),
    "report json": (["report", "p.gpa-profile.json", "--format", "json"], "-o", "made.json"),
    "report html": (["report", "p.gpa-profile.json", "--html"], "-o", "made.html"),
    "roofline": (["roofline", "p.gpa-profile.json"], "-o", "made.html"),
    "roofline svg": (["roofline", "p.gpa-profile.json"], "-o", "made.svg"),
    "simulate": (["predict", "stalls", "k.cu"], "-o", "made.gpa-profile.json"),
    "simulate page": (["predict", "stalls", "p.gpa-profile.json", "-o", "s.gpa-profile.json"], "--page", "made.html"),
}
"""Of each command that writes a file: how it is asked, the option, and a name."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    monkeypatch.chdir(made)
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path / "data"))
    (made / "k.cu").write_text(SOURCE)
    (made / "k.launch.toml").write_text(DESCRIPTION)
    shutil.copy(PROFILE, made / "p.gpa-profile.json")
    (made / "cubins" / "sm_80").mkdir(parents=True)
    for kernel in ("short_def_use", "inline_chain"):
        shutil.copy(PROFILE.parent / "cubins" / "sm_80" / f"{kernel}_original.cubin", made / "cubins" / "sm_80")
    return made


@contextmanager
def full_disk(size_bytes: int = 64) -> Iterator[None]:
    """Limit files of this process and its children to a few bytes: writing more fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def list_contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", [name for name in WRITING if name not in ("simulate page", "history")])
def test_a_full_disk_leaves_what_was_there_and_nothing_new(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, option, target = WRITING[name]
    assert (
        main([*words, option, "first" + Path(target).suffix.replace(".json", ".gpa-profile.json")]) == 0
    )  # fills the cache
    capsys.readouterr()
    for is_there in (True, False):
        if is_there:
            (folder / target).write_bytes(b"OLD")
        else:
            (folder / target).unlink()
        before = list_contents(folder)
        with full_disk():
            code = main([*words, option, target])
        said = capsys.readouterr().err
        assert (code, list_contents(folder)) == (2, before), said
        assert f"{target}: cannot be written: " in said and "Traceback" not in said


def test_a_full_disk_leaves_an_earlier_trace(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "trace", "k.cu", "-o", "t"]) == 0
    before = list_contents(folder)
    with full_disk():
        assert main(["predict", "trace", "k.cu", "-o", "t"]) == 2
        assert main(["predict", "trace", "k.cu", "-o", "new"]) == 2
    assert list_contents(folder) == before and not (folder / "new").exists()
    assert "cannot be written" in capsys.readouterr().err


def test_a_full_disk_leaves_a_journal_that_can_be_resumed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    explore = ["predict", "explore", "k.cu", "--jobs", "1", "--resume", "j", "--block"]
    with full_disk():
        assert main([*explore, "32,64"]) == 2
    assert not (folder / "j").exists()
    assert main([*explore, "32,64"]) == 0
    before = (folder / "j").read_bytes()
    with full_disk(len(before) + 10):
        assert main([*explore, "32,64,128"]) == 2
    assert (folder / "j").read_bytes() == before
    capsys.readouterr()
    assert main([*explore, "32,64"]) == 0
    assert "1 configuration resumed" in capsys.readouterr().out


def test_a_full_disk_leaves_a_template_unwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "k.launch.toml").unlink()
    with full_disk():
        assert main(["predict", "trace", "k.cu", "--template", "-o", "k.launch.toml"]) == 2
    assert not (folder / "k.launch.toml").exists()
    assert "cannot be written" in capsys.readouterr().err


def test_a_full_disk_leaves_the_list_of_allowed_commands(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(folder / "data"))
    assert main(["serve", "allow", "--", "ncu", "./app"]) == 0
    before = list_contents(folder)
    with full_disk():
        assert main(["serve", "allow", "--", "ncu", "./another"]) == 2
    assert list_contents(folder) == before
    assert "cannot be written" in capsys.readouterr().err


def test_a_full_disk_leaves_the_history(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(folder / "data"))
    assert main(["history", "--record", "p.gpa-profile.json"]) == 0
    capsys.readouterr()
    assert main(["history", "--format", "json"]) == 0
    before = capsys.readouterr().out
    document = (folder / "p.gpa-profile.json").read_text()
    (folder / "q.gpa-profile.json").write_text(document.replace('"grid"', '"comment": "another", "grid"', 1))
    with full_disk():
        assert main(["history", "--record", "q.gpa-profile.json"]) == 2
    assert "measurements are not remembered" in capsys.readouterr().err
    assert main(["history", "--format", "json"]) == 0
    assert capsys.readouterr().out == before


@pytest.mark.parametrize("name", WRITING)
def test_a_folder_that_is_not_there_is_said(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, option, target = WRITING[name]
    assert main([*words, option, f"nowhere/{target}"]) == 2
    assert "there is no such folder; create it, or choose another place" in capsys.readouterr().err
    assert not (folder / "nowhere").exists()


@pytest.mark.parametrize("name", WRITING)
@pytest.mark.parametrize("link", ["same", "symlink", "hard link"])
def test_no_input_is_replaced(name: str, link: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, option, target = WRITING[name]
    given = next((word for word in words if word.endswith((".json", ".cu"))), None)
    if given is None:
        pytest.skip("has no input")
    suffix = Path(target).suffix
    source = folder / f"input{'.gpa-profile' if given.endswith('.json') else ''}{Path(given).suffix}"
    (folder / given).rename(source)
    output = folder / f"output{suffix}"
    if link == "symlink":
        output.symlink_to(source)
    elif link == "hard link":
        os.link(source, output)
    elif suffix == source.suffix:
        output = source
    else:
        pytest.skip("its name says that it is something else")
    before = source.read_bytes()
    words = [source.name if word == given else word for word in words]
    assert main([*words, option, str(output)]) == 2
    assert f"{output}: is an input of this command and would be replaced" in capsys.readouterr().err
    assert source.read_bytes() == before


@pytest.mark.parametrize("name", WRITING)
def test_no_measurement_is_replaced(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, option, target = WRITING[name]
    (folder / target).write_bytes(PROFILE.read_bytes())
    before = list_contents(folder)
    assert main([*words, option, target]) == 2
    assert f"{target}: is a measurement and would be replaced" in capsys.readouterr().err
    assert list_contents(folder) == before


def test_a_description_beside_the_source_is_an_input(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "k.cu", "-o", "k.launch.toml"]) == 2
    assert (folder / "k.launch.toml").read_text() == DESCRIPTION
    assert "is an input" in capsys.readouterr().err


def test_what_was_simulated_is_replaced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "stalls", "k.cu"]) == 0
    assert main(["predict", "stalls", "k.cu", "-o", "k.simulated.gpa-profile.json"]) == 0
    assert capsys.readouterr().err == ""


def test_two_outputs_are_two_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["gate", "p.gpa-profile.json", "--base", "p.gpa-profile.json", "--sarif", "both", "--summary", "./both"]
    assert main(words) == 2
    assert "is named twice" in capsys.readouterr().err
    assert not (folder / "both").exists()


def test_a_place_that_cannot_be_is_said_before_the_work(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for output, words in (
        ("no/such/r.txt", "there is no such folder"),
        (".", "is a folder"),
        ("x" * 5000, "cannot be written"),
    ):
        assert main(["report", "missing.ncu-rep", "-o", output]) == 2
        said = capsys.readouterr().err
        assert words in said and len(said.splitlines()) == 1, said


PRINTING = [name for name in WRITING if name.partition(" ")[0] not in ("simulate", "gate", "roofline", "explore")]


@pytest.mark.parametrize("name", PRINTING)
def test_a_dash_is_standard_output(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, option, _ = WRITING[name]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert main([*words, option, "-"]) == 0
    assert capsys.readouterr().out[:200] == printed[:200] != ""  # behind that it says how long it took
    assert not (folder / "-").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["predict", "trace", "k.cu"],
        ["predict", "stalls", "k.cu"],
        ["record", "--", "true"],
        ["profile", "--", "true"],
        ["roofline", "calibrate"],
    ],
)
def test_what_cannot_be_printed_says_so(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = words.index("--") if "--" in words else len(words)
    assert main([*words[:place], "-o", "-", *words[place:]]) == 2
    assert "cannot be written to standard output" in capsys.readouterr().err
    assert not (folder / "-").exists()


def test_a_device_or_pipe_is_written_to_and_stays(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    reader = subprocess.Popen(["cat", "pipe"], cwd=folder, stdout=subprocess.PIPE)
    try:
        assert main(["report", "p.gpa-profile.json", "-o", "pipe"]) == 0
        printed, _ = reader.communicate(timeout=LIMIT_S)
    finally:
        reader.kill()
    assert b"short_def_use" in printed
    assert (folder / "pipe").is_fifo()
