"""The tables as they are written: the same keys in all, every value with a status and a source, units in the names."""

import copy
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.foundation.errors import CatalogueError, UnknownArchitectureError
from gpa_lsp.gpu.arch.hazards import (
    CycleBounds,
    LatencyClass,
    ProducerGroup,
    name_register_reader,
    name_register_writer,
)
from gpa_lsp.gpu.arch.lookup import (
    TABLES,
    find_architecture,
    list_architectures,
    list_tables,
    load_opcode_classes,
    read_architecture,
    read_opcode_classes,
)
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import Figure, ScoreboardKind, Status, Unknown
from tests.conftest import examples

UNIT_ENDINGS = (
    *("_cycles", "_per_cycle", "_per_sm", "_per_warp", "_per_thread", "_per_block"),
    *("_bytes", "_threads", "_warps", "_registers", "_instructions", "_blocks", "_lines", "_ratio"),
)
COUNTS = {"scoreboard_max_count", "shared_banks", "l2_partitions", "l2_ways"}  # Names that end with what they count
NOT_NUMBERS = {"barriers_limit_blocks", "reasons", "constant_miss_reason"}


def load(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def walk(table: dict[str, Any], place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every figure of a table with its place. That tables are complete, and cite what they list, is what reading them checks."""
    for key, value in table.items():
        if key in {"sources", "also"} or not isinstance(value, dict):
            continue
        where = f"{place}.{key}" if place else key
        if value.keys() & {"value", "unknown"}:
            yield where, value
        else:
            yield from walk(value, where)


@pytest.fixture(params=list_tables(), ids=lambda path: path.stem)
def table(request: pytest.FixtureRequest) -> dict[str, Any]:
    return load(request.param)


def test_all_matrices_have_the_same_readers() -> None:
    for matrix in ("register_latency", "predicate_latency", "uniform_latency", "uniform_predicate_latency"):
        assert len({tuple(load(path)[matrix]["readers"]) for path in list_tables()}) == 1


def test_sources_are_citations_of_public_origins(table: dict[str, Any]) -> None:
    for key, citation in table["sources"].items():
        assert len(citation) > 20, key
        assert "/work" not in citation, key
        assert ".md " not in citation.replace("README.md ", ""), key


def test_numbers_end_with_their_unit(table: dict[str, Any]) -> None:
    for section in ("sm", "occupancy", "caches", "hierarchy", "throughput", "issue", "simulation"):
        for name in table[section]:
            assert name.endswith(UNIT_ENDINGS) or name in COUNTS | NOT_NUMBERS, name
    for producer in table["producers"].values():
        assert all(name.endswith("_cycles") for name in producer if name != "scoreboard")


def test_spreads_hold_their_value(table: dict[str, Any]) -> None:
    for place, figure in walk(table):
        if "spread" in figure:
            low, high = figure["spread"]
            assert low <= figure["value"] <= high, place


def test_every_opcode_entry_is_upper_case_and_in_one_class() -> None:
    document = load(TABLES / "opcode_classes.toml")
    for section in ("latency_classes", "producers"):
        entries = [entry for figure in document[section].values() for entry in figure["value"]]
        assert len(entries) == len(set(entries))
        assert all(entry == entry.upper() and not entry.endswith(".") for entry in entries)


TEXT = (TABLES / "sm_86.toml").read_text(encoding="utf-8")


def read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sm_86.toml"
    path.write_text(text, encoding="utf-8")
    read_architecture(path, load_opcode_classes(), (8, 6))


FAULTS = {
    "not TOML": (r"\[sm\]", "[sm", "sm_86.toml"),
    "a value is missing": (r"max_warps_per_sm = .*\n", "", "missing max_warps_per_sm"),
    "a value too many": (
        r"max_warps_per_sm = ",
        "max_wraps_per_sm = { value = 1, measured = 'guide' }\nmax_warps_per_sm = ",
        "max_wraps_per_sm",
    ),
    "a section is missing": (r"\[issue\]\n(.+\n)+", "", "missing issue"),
    "no status": (r'(max_warps_per_sm = \{ value = 48), documented = "[^"]*"', r"\1", "exactly one of measured"),
    "two statuses": (r"(max_warps_per_sm = \{ value = 48,)", r'\1 measured = "guide",', "exactly one of measured"),
    "a status nobody knows": (
        r"(max_warps_per_sm = \{ value = 48), documented",
        r"\1, guessed",
        "exactly one of measured",
    ),
    "a source nobody lists": (
        r'(max_warps_per_sm = \{ value = 48, documented = )"[^"]*"',
        r'\1"hearsay"',
        "'hearsay' is not listed",
    ),
    "no source": (r'(max_warps_per_sm = \{ value = 48, documented = )"[^"]*"', r"\1[]", "cites no source"),
    "text for a number": (r"(max_warps_per_sm = \{ value = )48", r'\1"48"', "Expected `int`, got `str`"),
    "true for a number": (r"(max_warps_per_sm = \{ value = )48", r"\1true", "Expected `int`, got `bool`"),
    "a negative number": (r"(max_warps_per_sm = \{ value = )48", r"\1-48", "Expected `int` >= 0"),
    "infinity": (r"(l1_hit_cycles = \{ value = )33", r"\1inf", "Expected `float` <= "),
    "a bare number": (r"max_warps_per_sm = .*", "max_warps_per_sm = 48", "not a table"),
    "unknown, but must be known": (r"max_warps_per_sm = .*", 'max_warps_per_sm = { unknown = "so" }', "must be known"),
    "unknown without a reason": (r"l1_hit_cycles = .*", 'l1_hit_cycles = { unknown = "" }', "has its reason"),
    "a row too short": (r"(\nfma = \{ value = \[)\d+, ", r"\1", "one per reader"),
    "a row with text": (r"(\nfma = \{ value = \[)\d+, ", r'\1"many", ', "Invalid enum value 'many'"),
    "upper below lower": (r"(\nhmma_2x = \{ .*?high = \[)24", r"\g<1>2", "not an upper bound"),
    "a spread upside down": (r"(l1_hit_cycles = .*spread = )\[33, 39\]", r"\1[39, 33]", "above"),
    "a scoreboard nobody knows": (r'(scoreboard = \{ value = )"long"', r'\1"wide"', "wide"),
    "a citation for nothing": (
        r"(\[sources\]\n)",
        r'\1spare = "a book that nobody read"' + "\n",
        "cited nowhere: spare",
    ),
    "sources are no table": (r"\[sources\]\n(.+\n)+", "", "missing sources"),
    "no capability": (r'\ncompute_capability = "8.6"', "", "compute_capability"),
    "a capability that is none": (r'\ncompute_capability = "8.6"', '\ncompute_capability = "ampere"', "ampere"),
    "another capability": (r'\ncompute_capability = "8.6"', '\ncompute_capability = "8.5"', "not a table for 8.6"),
    "also without a reason": (r"\nwhy = .*", "", "missing why"),
    "also unlike nothing listed": (r"unlike = \[", "unlike = 3\nrest = [", "also"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_table_is_refused(fault: str, tmp_path: Path) -> None:
    pattern, replacement, message = FAULTS[fault]
    text, count = re.subn(pattern, replacement, TEXT, count=1)
    assert count == 1, "the fault was not put in"
    with pytest.raises(CatalogueError, match=re.escape(message)) as caught:
        read(tmp_path, text)
    assert "sm_86.toml" in str(caught.value)


def test_a_difference_in_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sm_86.toml"
    path.write_text(TEXT.replace('"hierarchy.l1_hit_cycles"', '"hierarchy.l7_hit_cycles"'), encoding="utf-8")
    with pytest.raises(CatalogueError, match="l7_hit_cycles"):
        read_architecture(path, load_opcode_classes(), (8, 8))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"sm_99\.toml"):
        read_architecture(tmp_path / "sm_99.toml", load_opcode_classes(), (9, 9))


def test_an_opcode_in_two_classes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "opcode_classes.toml"
    text = (TABLES / "opcode_classes.toml").read_text(encoding="utf-8")
    path.write_text(text.replace('fma = { value = ["FFMA"', 'fma = { value = ["IADD3", "FFMA"', 1), encoding="utf-8")
    with pytest.raises(CatalogueError, match="IADD3 is both in"):
        read_opcode_classes(path)


def to_toml(value: Any) -> str:
    """Enough TOML for a mutated table: inline below the top level."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {to_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(to_toml(item) for item in value) + "]"
    return json.dumps(value)


DOCUMENT = tomllib.loads(TEXT)
JUNK = st.sampled_from([0, -1, 1.5, "", "?", True, [], [1], ["x"], {}, {"value": 1}, {"unknown": "x"}])


@examples(60)
@given(data=st.data(), junk=JUNK)
def test_no_damage_escapes_as_another_error(
    data: st.DataObject, junk: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Replace or drop any one entry: the table is read, or refused with a CatalogueError."""
    document = copy.deepcopy(DOCUMENT)
    container, key = document, data.draw(st.sampled_from(sorted(document)))
    while isinstance(container[key], dict) and data.draw(st.integers(0, 3)) > 0 and container[key]:
        container = container[key]
        key = data.draw(st.sampled_from(sorted(container)))
    if data.draw(st.booleans()):
        del container[key]
    else:
        container[key] = junk
    path = tmp_path_factory.getbasetemp() / "damaged.toml"
    path.write_text("\n".join(f"{name} = {to_toml(value)}" for name, value in document.items()), encoding="utf-8")
    capability = data.draw(st.sampled_from([(8, 6), (8, 8)]))
    try:
        architecture = read_architecture(path, load_opcode_classes(), capability)
    except CatalogueError as error:
        assert "damaged.toml" in str(error)
    else:
        assert architecture.compute_capability == capability


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


def test_scoreboards_as_measured() -> None:
    """The reason under which a wait shows was counted on real reports for 7.0, 8.0, 8.6 and 9.0."""
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
    """The vendor's sheets agree on it from Volta to Blackwell."""
    for writer, reader, low_cycles in (
        *(("FFMA", "FADD", 4), ("IADD3", "LOP3.LUT", 4), ("IMAD.MOV.U32", "FFMA", 4)),
        *(("FFMA", "IADD3", 5), ("IADD3", "IMAD", 5), ("SHF.R.U32.HI", "FMUL", 5)),
    ):
        bounds = architecture.find_register_latency(writer, reader)
        assert bounds.low_cycles == low_cycles
        assert bounds.high_cycles <= low_cycles + 1
    halves = [architecture.find_register_latency("IMAD.WIDE", "IADD3", result_register=half) for half in (0, 1)]
    assert [half.low_cycles for half in halves if half is not None] == [3, 5]


def test_guards_are_the_longest_ordinary_hazard(architecture: Architecture) -> None:
    guard = architecture.find_predicate_latency("ISETP.GE.AND", "BRA", is_guard=True)
    operand = architecture.find_predicate_latency("ISETP.GE.AND", "SEL", is_guard=False)
    assert guard.low_cycles == (12 if architecture.table_of < (8, 0) else 13)
    assert operand.high_cycles < guard.low_cycles
    assert architecture.find_predicate_latency("ISETP.GE.AND", "NOSUCHOPCODE", is_guard=True) == guard


def test_every_class_has_a_place_in_the_register_matrix(architecture: Architecture) -> None:
    """Every writer and reader that a class maps to is in the matrix."""
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


DISTANCES: dict[str, dict[str, int]] = tomllib.loads(
    (Path(__file__).parent / "encoded_distances.toml").read_text(encoding="utf-8")
)


def find_bounds(architecture: Architecture, pair: str) -> CycleBounds | None:
    writer, _, reader = pair.partition(" > ")
    is_guard = reader.startswith("@")
    reader = reader.removeprefix("@")
    result_register = 1 if writer.endswith(".1") else 0
    writer = writer.removesuffix(".1")
    if writer.startswith(("UISETP", "UPLOP3")):
        return architecture.find_uniform_predicate_latency(writer, reader, is_guard=is_guard)
    if is_guard or writer.endswith("SETP") or writer.startswith("PLOP3"):
        return architecture.find_predicate_latency(writer, reader, is_guard=is_guard)
    if writer.startswith("U") or writer == "R2UR":
        return architecture.find_uniform_latency(writer, reader)
    return architecture.find_register_latency(writer, reader, result_register=result_register)


@pytest.mark.parametrize("capability", DISTANCES)
def test_tables_allow_what_the_assembler_encodes(capability: str) -> None:
    major, _, minor = capability.partition(".")
    architecture = find_architecture((int(major), int(minor)))
    wrong = []
    for pair, cycles in DISTANCES[capability].items():
        bounds = find_bounds(architecture, pair)
        if bounds is None or not bounds.low_cycles <= cycles <= bounds.high_cycles:
            wrong.append(f"{pair}: {cycles} encoded, table {bounds}")
    assert not wrong
    assert len(DISTANCES[capability]) >= 45
