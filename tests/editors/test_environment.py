"""The environment of the extension: what it is made from, and what is said where it cannot be made."""

import os
import re
import subprocess
import sys
import tomllib
import venv
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT
from tests.editors.package_index import PackageIndex

EXTENSION = ROOT / "editors" / "vscode"
TOOL = EXTENSION / "bundled" / "tool" / "make_environment.py"
PACKER = EXTENSION / "scripts" / "bundle_server.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = spec_from_file_location("make_environment", TOOL)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def packer() -> ModuleType:
    spec = spec_from_file_location("bundle_server", PACKER)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


QUIET_PIP = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_RETRIES": "1"}


def make(folder: Path, requirement: str, **environment: str) -> subprocess.CompletedProcess[str]:
    requirements = folder / "requirements.txt"
    requirements.write_text(requirement)
    variables = {**os.environ, **QUIET_PIP, **environment}
    command = [sys.executable, "-I", "-u", TOOL, folder / "made", requirements]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=variables)


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


def test_what_is_installed_is_what_the_server_needs_pinned_by_version_and_hash(packer: ModuleType) -> None:
    names = [packer.find_name(text) for text in packer.read_requirements()]
    pinned = packer.pin(names)
    entries = re.findall(r"^([\w.-]+)==\S+.*\\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", pinned, re.MULTILINE)
    assert {packer.normalise(name) for name in names} <= {name for name, _ in entries}
    assert "markupsafe" in {name for name, _ in entries}, "what those need in turn"
    assert not {"pytest", "pygls", "mypy"} & {name for name, _ in entries}
    lines = [line for line in pinned.splitlines() if not line.startswith("    --hash")]
    assert len(lines) == len(entries), "nothing without a hash"


def test_a_package_that_is_not_pinned_is_said(packer: ModuleType) -> None:
    with pytest.raises(ValueError, match="does not pin left-pad"):
        packer.pin(["numpy", "left-pad"])


def test_packing_with_a_python_without_the_server_says_what_to_do(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    done = subprocess.run([tmp_path / "bare" / "bin" / "python", PACKER], check=False, capture_output=True, text=True)
    assert last_line(done).startswith(f"pygls is not installed in {tmp_path / 'bare'}")
    assert "PYTHON=.venv/bin/python npm run package" in done.stderr


def test_the_environment_is_made_from_the_index(tmp_path: Path) -> None:
    how = tmp_path / "how"
    how.write_text("serve")
    with PackageIndex(how) as index:
        done = make(tmp_path, index.requirement, PIP_INDEX_URL=index.address)
    assert done.returncode == 0, done.stdout + done.stderr
    python = tmp_path / "made" / "bin" / "python"
    assert subprocess.run([python, "-I", "-c", "import numpy"], check=False).returncode == 0


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("refuse", "The package index cannot be reached. Check the network"),
        ("serve", "its hash differs"),
    ],
    ids=["without a network", "a package that was exchanged"],
)
def test_why_nothing_is_installed_is_said(
    tool: ModuleType,
    tmp_path: Path,
    *,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    how: str,
    said: str,
) -> None:
    (tmp_path / "how").write_text(how)
    with PackageIndex(tmp_path / "how") as index:
        for name, value in {**QUIET_PIP, "PIP_INDEX_URL": index.address}.items():
            monkeypatch.setenv(name, value)
        # pip of the tests' own Python: to install one into the environment takes longest, and is done by the test above
        pip = [sys.executable, "-I", "-u", "-m", "pip"]
        monkeypatch.setattr(tool, "find_pip", lambda python, folder: [*pip, "--python", str(python)])
        requirements = tmp_path / "requirements.txt"
        requirements.write_text(re.sub("sha256:....", "sha256:0000", index.requirement))
        assert tool.main(tmp_path / "made", requirements) == 1
    assert said in capsys.readouterr().err.strip().splitlines()[-1]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "made").write_text("a file is in the way")
    done = make(tmp_path, "")
    assert str(tmp_path / "made") in last_line(done)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "no space left"),
        ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "PIP_CERT"),
        ("ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 407", "HTTPS_PROXY"),
        ("ERROR: No matching distribution found for tree-sitter==0.26.1", "no tree-sitter for Python"),
        ("ERROR: Could not install packages due to an OSError: [Errno 30] Read-only file system: '/x'", "cannot be written"),
        ("something\nERROR: of another kind\n", "ERROR: of another kind"),
        ("", "printed nothing"),
    ],
)  # fmt: skip
def test_what_pip_prints_is_told_in_a_sentence(tool: ModuleType, tmp_path: Path, printed: str, said: str) -> None:
    sentence = tool.explain(printed, tmp_path / "made")
    assert said in sentence
    assert "\n" not in sentence


def test_a_python_without_pip_fetches_one_from_the_index(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = tmp_path / "how"
    how.write_text("serve")
    monkeypatch.setattr(tool, "run", lambda command: (1, "No module named ensurepip"))
    with PackageIndex(how, name=tool.PIP_WHEEL) as index:
        monkeypatch.setattr(tool, "INDEX", index.address)
        with pytest.raises(tool.MakingError, match="not the one"):
            tool.find_pip(tmp_path / "python", tmp_path)
        monkeypatch.setattr(tool, "PIP_SHA256", index.digest)
        *_, program = tool.find_pip(tmp_path / "python", tmp_path)
        assert Path(program) == tmp_path / tool.PIP_WHEEL / "pip"
        assert (tmp_path / tool.PIP_WHEEL).is_file()
        how.write_text("refuse")
        with pytest.raises(tool.MakingError, match="cannot be reached"):
            tool.find_pip(tmp_path / "python", tmp_path)


def test_every_release_brings_the_extension() -> None:
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    attach = workflow[workflow.index("\n  attach:") :]
    assert "needs: [package, extension, try]" in attach, "and not only where an index takes the package"
    assert "if: github.event_name == 'release'" in attach
    assert "path: editors/vscode/gpa-lsp.vsix" in workflow


def test_the_page_begins_with_installing() -> None:
    page = (EXTENSION / "README.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.+)", page, re.MULTILINE)
    assert sections[0] == "Install"
    section = page[page.index("## Install") : page.index(f"## {sections[1]}")]
    assert "code --install-extension gpa-lsp.vsix" in section
    assert "Install from VSIX" in section
    assert "npm run package" in section
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    assert version.removeprefix(">=") in section
