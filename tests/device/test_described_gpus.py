"""A GPU that a file describes: what is taken from its base, what its errors say, and that every ``--machine`` reads it."""

from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.execution.traces.model import build_trace_context
from gpa_lsp.execution.volumes.devices import build_device, build_paper_device
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.gpu.device.find import find_machine_by_name
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from gpa_lsp.gpu.device.products import find_product, note_choice
from tests.conftest import ROOT

BASE = 'base = "A100 SXM4 40GB"\n'
WHOLE = """
compute_capability = "9.0"
sm_count = 64
sm_boost_mhz = 1500
memory_bus_bits = 4096
memory_gb_per_s = 2000
l2_kib = "30 * 1024"
"""


def write(folder: Path, text: str, name: str = "gpu.toml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_without_figures_is_its_base(tmp_path: Path) -> None:
    base, found = find_product("A100 SXM4 40GB"), find_product(write(tmp_path, BASE))
    assert found.name == "gpu (hypothetical)" and found.base == base
    own = {"name", "device_names", "peaks", "sources", "described_in", "base"}
    for name in set(base.__struct_fields__) - own:
        assert getattr(found, name) == getattr(base, name), name
    for build in (build_device, build_paper_device):
        device, taken = build(base), build(found)
        for name in set(device.__struct_fields__) - {"name", "source"}:
            assert getattr(taken, name) == getattr(device, name), name


def test_figures_of_the_file_take_the_place_of_the_base_s(tmp_path: Path) -> None:
    text = 'name = "wide"\nsm_count = 216\nl2_kib = 81920\nmemory_gb_per_s = 3110\nl1_kib = 256\n'
    base, found = find_product("A100 SXM4 40GB"), find_product(write(tmp_path, BASE + text))
    for build in (build_device, build_paper_device):
        before, after = build(base), build(found)
        assert after.name == "wide (hypothetical)"
        assert after.sm_count == 216 and after.l1_bytes == 256 << 10
        assert after.l2_bytes == 2 * before.l2_bytes
        assert after.l2_bytes_per_s == 2 * before.l2_bytes_per_s and "taken to grow" in str(after.doubts[-1])
        assert after.dram_bytes_per_s == pytest.approx(2 * before.dram_bytes_per_s)
    before_roofs, roofs = find_machine_by_name("A100 SXM4 40GB"), find_machine_by_name(write(tmp_path, BASE + text))
    for level, ratio in ((MemoryLevel.DRAM, 2), (MemoryLevel.L1, 2), (MemoryLevel.L2, 1)):
        one, other = before_roofs.find_bandwidth(level), roofs.find_bandwidth(level)
        assert one.bytes_per_s and other.bytes_per_s
        assert other.bytes_per_s == pytest.approx(ratio * one.bytes_per_s, rel=1e-3)
    assert roofs.find_peak(OperationKind.FP64) != before_roofs.find_peak(OperationKind.FP64)


def test_bandwidths_that_kernels_reach_are_taken_as_given(tmp_path: Path) -> None:
    name = write(tmp_path, BASE + "sm_count = 216\nl2_gb_per_s = 6000\ndram_gb_per_s = 1500\n")
    device = build_device(find_product(name))
    assert (device.l2_bytes_per_s, device.dram_bytes_per_s, device.doubts) == (6e12, 1.5e12, ())


def test_a_gpu_without_a_base_is_described_whole(tmp_path: Path) -> None:
    found = find_product(write(tmp_path, WHOLE + "l1_kib = 128\nl2_gb_per_s = 3000\n", "own.toml"))
    assert found.name == "own (hypothetical)" and found.compute_capability == (9, 0) and found.l2_bytes == 30 << 20
    device = build_device(found)
    assert device.l1_bytes == 128 << 10 and device.l2_bytes_per_s == 3e12
    assert device.dram_bytes_per_s == pytest.approx(0.89 * 2e12)
    context = build_trace_context((9, 0), block_threads=(256, 1, 1), product=found)
    assert context.gpu == "own (hypothetical)" and context.l1_bytes == (128 - 8) << 10  # less the least carve-out
    with pytest.raises(InputError, match="the published model has no device"):
        build_paper_device(found)


def test_the_file_is_named_where_a_choice_is_told(tmp_path: Path) -> None:
    name = write(tmp_path, BASE)
    assert note_choice(name) == (f"gpu (hypothetical) is described in {name}, starting from the A100 SXM4 40GB",)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("sm_count = 4\n", 1, "'sm_boost_mhz' is missing"),
        (BASE + "sm_cuont = 4\n", 2, "did you mean 'sm_count'?"),
        (BASE + "\nsm_count = 0\n", 3, "give a number of at least 1"),
        (BASE + "sm_boost_mhz = -1\n", 2, "sm_boost_mhz is -1; give a number above 0"),
        (BASE + 'memory_gb_per_s = "nan"\n', 2, "memory_gb_per_s is nan"),
        (BASE + 'l2_kib = "2 * n"\n', 2, "'n' is not defined"),
        ('base = "A100 SXM9"\n', 1, "no known GPU is named 'A100 SXM9'"),
        ('base = "other.toml"\n', 1, "start from a GPU that is known by name"),
        (WHOLE.replace("9.0", "9.9"), 2, "no architecture of compute capability 9.9 is known; choose among"),
        (BASE + 'fp32_accumulation = "some"\n', 2, "fp32_accumulation is 'some'"),
        (BASE + f'name = "{"x" * 81}"\n', 2, "at most 80 characters"),
        ("base = \n", 1, "is not TOML"),
    ],
)
def test_errors_say_file_line_and_remedy(tmp_path: Path, text: str, line: int, words: str) -> None:
    name = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        find_product(name)
    message = str(caught.value)
    assert message.startswith(f"{name}: line {line}: ") and words in message and caught.value.remedy


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        find_product(str(tmp_path / "absent.toml"))
    with pytest.raises(InputError, match=r"or a \.toml file"):
        find_product("A1000000")


def test_roofline_takes_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = ROOT / "fixtures" / "example.gpa-profile.json"
    assert main(["roofline", str(report), "--machine", write(tmp_path, BASE + 'name = "odd"\nsm_count = 50\n')]) == 0
    assert "odd (hypothetical)" in capsys.readouterr().out
    assert main(["roofline", str(report), "--machine", write(tmp_path, BASE + "sm_count = 0\n")]) != 0
    assert "line 2: sm_count is 0" in capsys.readouterr().err


def test_the_gpus_of_a_paper_have_their_caches() -> None:
    """Table 1 of CUDAAdvisor's paper: the smaller L1, the more of it misses in any model that knows a size."""
    kepler, pascal = (find_product(str(ROOT / f"fixtures/machines/tesla_{name}.toml")) for name in ("k40c", "p100"))
    volta = find_product("V100 SXM2")
    sizes = [
        build_trace_context((7, 0), block_threads=(256, 1, 1), product=one).l1_bytes for one in (kepler, pascal, volta)
    ]
    assert sizes[:2] == [16 << 10, 24 << 10] and sizes[2] > sizes[1]
    assert [one.sm_count for one in (kepler, pascal)] == [15, 56]
    assert [build_device(one).l2_bytes for one in (kepler, pascal)] == [1536 << 10, 4096 << 10]
    assert all("hypothetical" in one.name for one in (kepler, pascal))
