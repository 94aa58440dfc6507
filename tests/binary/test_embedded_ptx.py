"""The PTX that images keep is a text again: NVIDIA's assembler takes it, and its lines are where they were."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpa_lsp.binary.cubin import read_cubin
from gpa_lsp.binary.embedded_ptx import read_embedded_ptx
from gpa_lsp.binary.tool_location import find_tool
from gpa_lsp.profile.read import read_profile
from tests.conftest import ROOT

OLDEST = 75
"""The oldest architecture that CUDA 13 assembles for."""


def assemble(text: str, folder: Path) -> str:
    """What ptxas says of a text; empty when it takes it."""
    tool = find_tool("ptxas")
    if tool is None:
        pytest.skip("ptxas is not installed")
    path = folder / "restored.ptx"
    path.write_text(text, encoding="utf-8")
    found = re.search(r"^\.target\s+(sm_(\d+)\w*)", text, re.MULTILINE)
    assert found is not None
    target = found[1] if int(found[2]) >= OLDEST else f"sm_{OLDEST}"
    command = [tool, f"-arch={target}", "-lineinfo", path, "-o", folder / "restored.cubin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr + done.stdout


def list_statements(text: str) -> Iterator[tuple[str, str]]:
    """Each ``.loc`` with the code line before it."""
    before = ""
    for line in text.splitlines():
        code = line.partition("//")[0].strip()
        if code.startswith(".loc"):
            yield before, code
        elif code:
            before = code


def check_texts(texts: tuple[str, ...], folder: Path) -> None:
    for text in texts:
        places = list(list_statements(text))
        assert places and all(before.endswith((";", "{", "}", ":")) for before, _ in places)
        assert assemble(text, folder) == ""


@pytest.mark.oracle
@pytest.mark.parametrize(
    "path", sorted((ROOT / "fixtures" / "cubins" / "sm_80").glob("*.cubin")), ids=lambda path: path.stem
)
def test_our_own_images(path: Path, tmp_path: Path) -> None:
    texts = read_embedded_ptx(read_cubin(path.read_bytes()))
    if not texts:
        pytest.skip("it keeps no PTX")
    check_texts(texts, tmp_path)


@pytest.mark.oracle
@pytest.mark.corpus
def test_images_of_real_reports(corpus: Path, tmp_path: Path) -> None:
    count = 0
    for report in sorted(corpus.rglob("*.ncu-rep")):
        for module in read_profile(report).modules.values():
            if module.image is not None and len(module.image) < 1 << 20:
                texts = read_embedded_ptx(read_cubin(module.image))
                check_texts(texts, tmp_path)
                count += len(texts)
    assert count >= 20
