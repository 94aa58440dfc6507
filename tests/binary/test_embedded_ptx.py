"""The PTX that images keep is a text again: NVIDIA's assembler takes it, and its lines are where they were."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.embedded_ptx import _restore, read_embedded_ptx
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.profile.read import read_profile
from tests.conftest import ROOT

OLDEST = 75  # The oldest architecture that CUDA 13 assembles for


def assemble(text: str, folder: Path) -> str:
    """The messages of ptxas about a text; empty when it takes it."""
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


MULTI_LINE = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(
\t.param .u64 k_param_0
)
{
\t.reg .b32 %r<40>;
\t.reg .f32 %f<20>;
\t.reg .b64 %rd<4>;
\tld.param.u64 %rd1, [k_param_0];
$L__BB0_1: wmma.load.a.sync.aligned.row.m16n16k16.global.f16
\t\t{
\t\t%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8
\t\t}
\t\t, [%rd1], 16;
\tmov.u32 %r30, 16; wmma.load.b.sync.aligned.row.m16n16k16.global.f16 {
\t\t%r9, %r10, %r11, %r12, %r13, %r14, %r15, %r16 },
\t\t[%rd1], %r30;
\t{ // a block
\twmma.mma.sync.aligned.row.row.m16n16k16.f32.f32
\t\t{%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8},
\t\t{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8},
\t\t{%r9, %r10, %r11, %r12, %r13, %r14, %r15, %r16},
\t\t{%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};
\t}
\tret;
}
"""


@pytest.mark.oracle
@pytest.mark.parametrize("every", [1, 2, 3])
def test_no_place_is_written_into_a_statement(every: int, tmp_path: Path) -> None:
    """A place on each line, of which each statement keeps its first."""
    lines = tuple(MULTI_LINE.splitlines())
    places = {number: (Frame(file="k.cu", line=number),) for number in range(1, len(lines) + 1, every)}
    unit = _restore(".nv_debug_ptx_txt", lines, places)
    assert unit is not None
    restored = unit.text
    assert assemble(restored, tmp_path) == ""
    kept = [(number, line) for number, line in zip(unit.kept_lines, restored.splitlines(), strict=True) if number]
    assert [number for number, _ in kept] == [*range(1, len(lines) + 1)]
    assert all(line == lines[number - 1] for number, line in kept)
    if every == 1:
        assert re.findall(r"^\t\.loc\t1 (\d+) 0\n(.*)", restored, re.MULTILINE)[4:8] == [
            ("12", lines[11]), ("17", lines[16]), ("20", lines[19]), ("21", lines[20]),
        ]  # fmt: skip
