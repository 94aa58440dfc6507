"""Numbers everybody can check in NVIDIA's own pages, and what happens to a capability without a table."""

from typing import Any

import pytest

from gpa_lsp.foundation.errors import UnknownArchitectureError
from gpa_lsp.gpu.arch.lookup import find_architecture, list_architectures
from gpa_lsp.gpu.arch.sections import Figure, ScoreboardKind, Status, Unknown

PLANNED = ((7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))

KNOWN: list[tuple[tuple[int, int], str, str, Any]] = [
    # Tesla V100
    ((7, 0), "occupancy", "max_warps_per_sm", 64),
    ((7, 0), "occupancy", "max_blocks_per_sm", 32),
    ((7, 0), "occupancy", "shared_per_sm_bytes", 96 * 1024),
    ((7, 0), "occupancy", "shared_reserved_per_block_bytes", 0),
    ((7, 0), "sm", "fp64_lanes_per_sm", 32),
    ((7, 0), "caches", "unified_data_cache_bytes", 128 * 1024),
    (
        (7, 0),
        "caches",
        "l2_slice_bytes_per_cycle",
        32,
    ),  # 64 slices: the 2,048 bytes per cycle of NVIDIA's A100 white paper
    ((7, 0), "throughput", "tensor_fp16_flops_per_cycle", 1024.0),
    # Tesla T4
    ((7, 5), "occupancy", "max_warps_per_sm", 32),
    ((7, 5), "occupancy", "max_threads_per_sm", 1024),
    ((7, 5), "occupancy", "max_blocks_per_sm", 16),
    ((7, 5), "occupancy", "shared_carveouts_bytes", (32 * 1024, 64 * 1024)),
    ((7, 5), "throughput", "fp32_instructions_per_cycle", 0.5),
    # A100
    ((8, 0), "occupancy", "shared_per_sm_bytes", 164 * 1024),
    ((8, 0), "occupancy", "max_shared_per_block_bytes", 163 * 1024),
    ((8, 0), "occupancy", "max_blocks_per_sm", 32),
    ((8, 0), "throughput", "tensor_fp16_flops_per_cycle", 2048.0),
    ((8, 0), "throughput", "fp16_instructions_per_cycle", 1.0),  # 78 TFLOPS
    ((8, 0), "caches", "l2_slice_bytes_per_cycle", 64),  # 80 slices: 5,120 bytes per cycle
    ((8, 0), "caches", "unified_data_cache_bytes", 192 * 1024),
    # GeForce RTX 3090
    ((8, 6), "occupancy", "max_warps_per_sm", 48),
    ((8, 6), "occupancy", "max_blocks_per_sm", 16),
    ((8, 6), "sm", "fp32_lanes_per_sm", 128),
    ((8, 6), "sm", "fp64_lanes_per_sm", 2),
    # GeForce RTX 4090
    ((8, 9), "occupancy", "max_blocks_per_sm", 24),
    ((8, 9), "occupancy", "shared_per_sm_bytes", 100 * 1024),
    # H100
    ((9, 0), "occupancy", "max_warps_per_sm", 64),
    ((9, 0), "occupancy", "max_shared_per_block_bytes", 227 * 1024),
    ((9, 0), "occupancy", "max_cluster_blocks", 8),
    ((9, 0), "throughput", "fp64_instructions_per_cycle", 0.5),
    # B200
    ((10, 0), "occupancy", "shared_per_sm_bytes", 228 * 1024),
    # GeForce RTX 5090
    ((12, 0), "occupancy", "max_warps_per_sm", 48),
    ((12, 0), "occupancy", "max_shared_per_block_bytes", 99 * 1024),
    ((12, 0), "throughput", "fp64_instructions_per_cycle", 1 / 64),
    ((12, 0), "throughput", "tensor_fp64_flops_per_cycle", 256 / 73),  # as reports state it: 3.5068
]


@pytest.mark.parametrize(("capability", "section", "name", "value"), KNOWN)
def test_known_values(capability: tuple[int, int], section: str, name: str, value: object) -> None:
    figure = getattr(getattr(find_architecture(capability), section), name)
    assert figure.value == value
    assert type(figure.value) is type(value)


@pytest.mark.parametrize("capability", PLANNED)
def test_own_tables(capability: tuple[int, int]) -> None:
    architecture = find_architecture(capability)
    assert architecture.compute_capability == architecture.table_of == capability
    assert architecture.name == f"sm_{capability[0]}{capability[1]}"
    assert architecture.examples
    assert find_architecture(capability) is architecture


@pytest.mark.parametrize(("capability", "table_of"), [((8, 8), (8, 6)), ((10, 3), (10, 0)), ((12, 1), (12, 0))])
def test_the_same_sm_under_another_number(capability: tuple[int, int], table_of: tuple[int, int]) -> None:
    architecture = find_architecture(capability)
    assert architecture.compute_capability == capability
    assert architecture.table_of == table_of
    assert architecture.occupancy == find_architecture(table_of).occupancy


def test_what_differs_under_another_number_is_unknown() -> None:
    b200, b300 = find_architecture((10, 0)), find_architecture((10, 3))
    assert b200.throughput.fp64_instructions_per_cycle.value == 0.5
    assert isinstance(b300.throughput.fp64_instructions_per_cycle, Unknown)
    assert "10.3" in b300.throughput.fp64_instructions_per_cycle.why
    assert b300.find_register_latency("DFMA", "DFMA") is None
    assert b300.find_scoreboard("DFMA") is None
    assert b300.find_register_latency("FFMA", "FFMA") == b200.find_register_latency("FFMA", "FFMA")


@pytest.mark.parametrize("capability", [(6, 1), (7, 2), (8, 7), (11, 0), (13, 0), (0, 0), (8, -6), (12, 10)])
def test_an_unknown_architecture_is_an_error_that_lists_the_known_ones(capability: tuple[int, int]) -> None:
    with pytest.raises(UnknownArchitectureError) as caught:
        find_architecture(capability)
    message = str(caught.value)
    assert f"{capability[0]}.{capability[1]}" in message
    for major, minor in list_architectures():
        assert f"{major}.{minor}" in message


def test_the_list_holds_tables_and_their_relatives() -> None:
    assert list_architectures() == tuple(sorted({*PLANNED, (8, 8), (10, 3), (12, 1)}))


def test_every_listed_architecture_can_be_read() -> None:
    for capability in list_architectures():
        assert find_architecture(capability).compute_capability == capability


def test_scoreboards_as_measured() -> None:
    """Which reason a wait shows under: counted on real reports for 7.0, 8.0, 8.6 and 9.0."""
    for capability in ((7, 0), (8, 0), (8, 6), (9, 0)):
        architecture = find_architecture(capability)
        for mnemonic in ("LDG.E.64", "STG.E", "ATOMG.E.ADD.STRONG.GPU"):
            assert architecture.find_scoreboard(mnemonic) is ScoreboardKind.LONG
        for mnemonic in ("LDS.128", "MUFU.RCP", "SHFL.IDX", "S2R", "F2I.TRUNC.NTZ", "LDC.64"):
            assert architecture.find_scoreboard(mnemonic) is ScoreboardKind.SHORT
        assert architecture.find_scoreboard("FFMA") is ScoreboardKind.NONE
    assert find_architecture((7, 0)).find_scoreboard("DFMA") is ScoreboardKind.NONE
    assert find_architecture((8, 0)).find_scoreboard("DFMA") is ScoreboardKind.NONE
    assert find_architecture((8, 6)).find_scoreboard("DFMA") is ScoreboardKind.SHORT
    assert find_architecture((8, 6)).find_scoreboard("NOSUCHOPCODE") is None


def test_stall_reasons_by_generation() -> None:
    for capability in PLANNED:
        reasons = find_architecture(capability).stalls.reasons.value
        assert list(reasons) == sorted(reasons)
        assert {"long_scoreboard", "short_scoreboard", "wait", "selected", "not_selected"} <= set(reasons)
        assert ("imc_miss" in reasons) == (capability <= (9, 0))
        assert ("warpgroup_arrive" in reasons) == (capability == (9, 0))


def test_figures_say_where_they_come_from() -> None:
    architecture = find_architecture((9, 0))
    figure = architecture.hierarchy.l2_near_cycles
    assert isinstance(figure, Figure)
    assert figure.status is Status.MEASURED
    assert figure.spread is not None
    assert all(architecture.sources[key] for key in figure.sources)


def test_nothing_is_known_of_a_uniform_data_path_on_volta() -> None:
    volta = find_architecture((7, 0))
    assert volta.find_uniform_latency("UIADD3", "FFMA") is None
    assert all(isinstance(row, Unknown) for row in volta.uniform_latency.rows.values())
