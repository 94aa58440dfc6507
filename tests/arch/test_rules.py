"""Rules no architecture can break, over all tables."""

import pytest

from gpa_lsp.gpu.arch.hazards import LatencyClass, ProducerGroup, name_register_reader, name_register_writer
from gpa_lsp.gpu.arch.lookup import find_architecture, list_architectures, load_opcode_classes
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import Figure, ScoreboardKind, Unknown


@pytest.fixture(params=list_architectures(), ids=lambda capability: f"{capability[0]}.{capability[1]}")
def architecture(request: pytest.FixtureRequest) -> Architecture:
    return find_architecture(request.param)


def test_occupancy(architecture: Architecture) -> None:
    rules, sm = architecture.occupancy, architecture.sm
    assert rules.max_threads_per_sm.value == rules.max_warps_per_sm.value * sm.warp_size_threads.value
    assert rules.max_warps_per_sm.value % sm.sub_partitions_per_sm.value == 0
    assert rules.max_blocks_per_sm.value <= rules.max_warps_per_sm.value
    assert rules.max_threads_per_block.value <= rules.max_threads_per_sm.value
    assert rules.max_registers_per_block.value <= rules.registers_per_sm.value
    assert rules.register_allocation_unit_registers.value % sm.warp_size_threads.value == 0
    assert rules.block_barriers_per_sm.value in {rules.max_blocks_per_sm.value, 2 * rules.max_blocks_per_sm.value}
    # one warp at the most registers fits into a sub-partition
    assert rules.max_registers_per_thread.value * 32 <= rules.registers_per_sm.value // sm.sub_partitions_per_sm.value


def test_shared_memory(architecture: Architecture) -> None:
    rules = architecture.occupancy
    carveouts = rules.shared_carveouts_bytes.value
    assert list(carveouts) == sorted(set(carveouts))
    assert carveouts[-1] == rules.shared_per_sm_bytes.value
    assert rules.default_shared_per_block_bytes.value <= rules.max_shared_per_block_bytes.value
    reserved = rules.shared_reserved_per_block_bytes.value
    assert rules.max_shared_per_block_bytes.value + reserved == rules.shared_per_sm_bytes.value
    assert all(size % rules.shared_allocation_unit_bytes.value == 0 for size in (*carveouts, reserved))
    assert rules.shared_per_sm_bytes.value <= architecture.caches.unified_data_cache_bytes.value


def test_throughput_is_what_the_lanes_allow(architecture: Architecture) -> None:
    sm, rates = architecture.sm, architecture.throughput
    lanes_per_instruction = sm.warp_size_threads.value * sm.sub_partitions_per_sm.value
    assert rates.fp32_instructions_per_cycle.value == min(1.0, sm.fp32_lanes_per_sm.value / lanes_per_instruction)
    assert rates.int32_add_instructions_per_cycle.value == sm.int32_lanes_per_sm.value / lanes_per_instruction
    if sm.fp64_lanes_per_sm.value is not None:
        assert rates.fp64_instructions_per_cycle.value == sm.fp64_lanes_per_sm.value / lanes_per_instruction


def test_farther_memory_is_slower(architecture: Architecture) -> None:
    levels = architecture.hierarchy
    chain = (
        *(levels.l1_hit_cycles, levels.l2_near_cycles, levels.l2_far_cycles),
        *(levels.dram_tlb_warm_cycles, levels.dram_tlb_cold_cycles),
    )
    known = [figure.value for figure in chain if figure.value is not None]
    assert known == sorted(known)
    constants = (levels.constant_l1_hit_cycles, levels.constant_l15_hit_cycles, levels.constant_miss_cycles)
    known = [figure.value for figure in constants if figure.value is not None]
    assert known == sorted(known)


def test_producers_are_slower_at_worst_than_at_best(architecture: Architecture) -> None:
    for group, producer in architecture.producers.items():
        low, high = producer.min_cycles.value, producer.unloaded_max_cycles.value
        assert low is None or high is None or low <= high, group
    loads = architecture.producers[ProducerGroup.GLOBAL_LOAD]
    assert loads.scoreboard.value is ScoreboardKind.LONG
    assert loads.min_cycles.value is not None
    cold = architecture.hierarchy.dram_tlb_cold_cycles
    if isinstance(cold, Figure) and cold.spread is not None:
        assert loads.unloaded_max_cycles.value is not None
        assert loads.unloaded_max_cycles.value >= cold.spread[1]


def test_fixed_latency_of_ordinary_code(architecture: Architecture) -> None:
    """What the vendor's sheets agree on from Volta to Blackwell."""
    for writer, reader, low_cycles in (
        *(("FFMA", "FADD", 4), ("IADD3", "LOP3.LUT", 4), ("IMAD.MOV.U32", "FFMA", 4)),
        *(("FFMA", "IADD3", 5), ("IADD3", "IMAD", 5), ("SHF.R.U32.HI", "FMUL", 5)),
    ):
        bounds = architecture.find_register_latency(writer, reader)
        assert bounds is not None
        assert bounds.low_cycles == low_cycles
        assert bounds.high_cycles <= low_cycles + 1
    halves = [architecture.find_register_latency("IMAD.WIDE", "IADD3", result_register=half) for half in (0, 1)]
    assert [half.low_cycles for half in halves if half is not None] == [3, 5]


def test_guards_are_the_longest_ordinary_hazard(architecture: Architecture) -> None:
    guard = architecture.find_predicate_latency("ISETP.GE.AND", "BRA", is_guard=True)
    operand = architecture.find_predicate_latency("ISETP.GE.AND", "SEL", is_guard=False)
    assert guard is not None
    assert operand is not None
    assert guard.low_cycles == (12 if architecture.table_of < (8, 0) else 13)
    assert operand.high_cycles < guard.low_cycles
    assert architecture.find_predicate_latency("ISETP.GE.AND", "NOSUCHOPCODE", is_guard=True) == guard


def test_every_class_has_a_place_in_the_register_matrix(architecture: Architecture) -> None:
    """No writer or reader that a class maps to is missing from the matrix by a slip of the pen."""
    matrix = architecture.register_latency
    no_registers = {
        *(LatencyClass.UNIFORM, LatencyClass.UNIFORM_MOVE, LatencyClass.UNIFORM_CONSTANT, LatencyClass.VOTE_UNIFORM),
        *(LatencyClass.TO_UNIFORM, LatencyClass.R2UR, LatencyClass.TENSOR_MEMORY_MMA),
    }
    reads_none = no_registers | {LatencyClass.DISPATCH, LatencyClass.DISPATCH_64}
    for latency_class in LatencyClass:
        if latency_class not in no_registers:
            assert name_register_writer(latency_class) in matrix.rows, latency_class
        if latency_class not in reads_none:
            assert name_register_reader(latency_class) in matrix.readers, latency_class


def test_variable_producers_have_scoreboards_and_fixed_ones_do_not(architecture: Architecture) -> None:
    opcodes = load_opcode_classes()
    for opcode in ("LDG", "LDS", "MUFU", "SHFL", "S2R", "I2F", "TEX"):
        latency_class = opcodes.find_latency_class(opcode)
        assert latency_class is not None
        assert architecture.scoreboard[latency_class].value is True
    for opcode in ("FFMA", "IADD3", "ISETP", "HFMA2", "IMAD.WIDE"):
        latency_class = opcodes.find_latency_class(opcode)
        assert latency_class is not None
        assert architecture.scoreboard[latency_class].value is False


def test_every_producer_has_a_latency_class() -> None:
    opcodes = load_opcode_classes()
    for group, figure in opcodes.producers.items():
        for opcode in figure.value:
            assert opcodes.find_latency_class(opcode) is not None, f"{group}: {opcode}"


def test_unknown_values_have_reasons(architecture: Architecture) -> None:
    unknown = [figure for figure in architecture.scoreboard.values() if isinstance(figure, Unknown)]
    assert all(figure.why and figure.value is None for figure in unknown)
    known = [figure for figure in architecture.scoreboard.values() if isinstance(figure, Figure)]
    assert len(known) > 15
