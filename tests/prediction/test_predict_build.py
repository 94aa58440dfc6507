"""Predictions from files that were built: NVRTC's own image and PTX in a fat binary made by hand would say little, so nvcc builds an object."""

import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.ptx import declarations
from gpa_lsp.code.ptx.bodies import Body, BodyReader
from gpa_lsp.execution.compiler.nvcc_location import build_environment, find_nvcc
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.model import DEFAULT_PREDICTION
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.execution.prediction.templates import write_templates
from gpa_lsp.foundation.errors import InputError
from tests.conftest import ROOT
from tests.emulator.kernels.compiling import compile_ptx
from tests.patience import LIMIT_S
from tests.prediction.kernels import LAUNCHES, SOURCE


@cache
def build(*flags: str) -> Path:
    """An object with code for 8.0 and 9.0 and PTX for both."""
    folder = Path(mkdtemp(prefix="gpa-lsp-built-"))
    source = folder / "kernels.cu"
    source.write_text(SOURCE)
    (folder / "kernels.launch.toml").write_text(LAUNCHES)
    nvcc = find_nvcc(source)
    if nvcc is None:
        pytest.skip("needs nvcc and a host compiler")
    targets = flags or ("-gencode", "arch=compute_80,code=[sm_80,compute_80]")
    command = [str(nvcc.program), "-c", "-lineinfo", *targets, str(source), "-o", str(folder / "kernels.o")]
    subprocess.run(command, check=True, capture_output=True, env=build_environment(nvcc, folder), timeout=LIMIT_S)
    return folder / "kernels.o"


def test_an_object_says_what_its_source_does():
    found = predict_code(build(), kernel="saxpy")
    assert [kernel.launch.title for kernel in found.kernels] == ["", "ragged"]
    (kernel, _) = found.kernels
    assert (kernel.registers is not None, kernel.warps_per_sm) == (True, 64)
    assert kernel.volumes is not None and kernel.volumes.volumes.dram_load == pytest.approx(8.0)
    assert {fact.line for fact in kernel.accesses} == {5}
    assert found.comparisons[0].launches == 2
    assert found.launches_path == build().with_name("kernels.launch.toml")


def test_a_gpu_of_another_architecture_is_noted():
    settings = replace(DEFAULT_PREDICTION, machine="H100 SXM5")
    found = predict_code(build(), kernel="transpose", settings=settings)
    assert found.kernels[0].machine == "H100 SXM5"
    assert "code for sm_80, but the H100 SXM5 is sm_90" in found.problems[0].message


def test_launches_can_be_chosen_and_kernels_without_one_are_named():
    found = predict_code(build(), kernel="saxpy", launches=LaunchChoice(number=2))
    assert [kernel.launch.title for kernel in found.kernels] == ["ragged"]
    assert not any("transpose" in name for name in predict_code(build(), launches=LaunchChoice(number=1)).undescribed)
    with pytest.raises(InputError, match="2 launches match"):
        predict_code(build(), kernel="saxpy", launches=LaunchChoice(is_single=True))
    with pytest.raises(InputError, match="no such file"):
        predict_code(build(), launches=LaunchChoice(path=Path("nowhere.launch.toml")))


def test_an_image_without_ptx_says_how_to_build_it(tmp_path: Path):
    cubin = min((ROOT / "fixtures" / "cubins").rglob("*.cubin"))
    assert predict_code(cubin).undescribed, "-lineinfo keeps the text in an image"
    bare = tmp_path / "bare.cubin"
    bare.write_bytes(cubin.read_bytes().replace(b".nv_debug_ptx_txt", b".nv_debug_ptx_off"))
    with pytest.raises(InputError, match=r"PTX.*-lineinfo"):
        predict_code(bare)


def test_a_file_of_ptx_is_emulated_at_the_lines_of_its_source(tmp_path: Path):
    ptx = compile_ptx(ROOT / "tests/traces/kernels/divergent.cu", 80)
    path = tmp_path / "divergent.ptx"
    path.write_text(ptx)
    written = write_templates(path)
    assert 'name = "argument1", type = "f32"' in written
    path.with_name("divergent.launch.toml").write_text(written.replace("threads = 1048576", "threads = 1024"))
    (kernel,) = predict_code(path).kernels
    assert {Path(fact.file).name for fact in kernel.accesses} == {"divergent.cu"}
    assert kernel.execution.executed_blocks == 4
    path.with_name("divergent.launch.toml").write_text("")
    assert write_templates(path) == written
    with pytest.raises(InputError, match=r"no kernel is named nosuch; there are: divergent"):
        write_templates(path, kernel="nosuch")
    with pytest.raises(InputError, match="has no kernel"):
        path.write_text(".version 8.0\n.target sm_80\n.address_size 64\n")
        write_templates(path)


class CountedWork:
    """Heads and bodies of functions that are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.heads = self.bodies = 0
        read_head, read_body = declarations.read_head_details, BodyReader.read

        def count_head(text: str) -> declarations.HeadDetails:
            self.heads += 1
            return read_head(text)

        def count_body(reader: BodyReader, start: int, end: int) -> Body:
            self.bodies += 1
            return read_body(reader, start, end)

        monkeypatch.setattr(declarations, "read_head_details", count_head)
        monkeypatch.setattr(BodyReader, "read", count_body)


ENTRIES = 2500


def write_entries(folder: Path, count: int) -> Path:
    """PTX with many kernels, and a launch of the first."""
    folder.mkdir()
    body = """ {
        .reg .b32 %r<2>; .reg .b64 %rd<4>;
        ld.param.u64 %rd1, [to];
        mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd2, %r1, 4;
        add.s64 %rd3, %rd1, %rd2;
        st.global.u32 [%rd3], %r1;
        ret;
    }
    """
    kernels = "".join(f".visible .entry number{place}(.param .u64 to) {body}" for place in range(count))
    launch = 'kernel = "number0"\nblock = 32\ngrid = 1\narguments = [{ name = "to", type = "int", count = 32 }]\n'
    (folder / "many.launch.toml").write_text(f"[[launch]]\n{launch}")
    path = folder / "many.ptx"
    path.write_text(f".version 8.0\n.target sm_80\n.address_size 64\n{kernels}")
    return path


def test_one_kernel_of_many_reads_and_assembles_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    work = CountedWork(monkeypatch)
    found = predict_code(write_entries(tmp_path / "many", ENTRIES), kernel="number0")
    assert [kernel.mangled_name for kernel in found.kernels] == ["number0"]
    assert (work.heads, work.bodies) == (1, 1)
    image = found.statics.unit.cubin
    assert image is None or set(read_cubin(image).functions) == {"number0"}
