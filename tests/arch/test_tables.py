"""The tables as they are written: the same keys in all, every value with a status and a source, units in the names."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.gpu.arch.lookup import TABLES, list_tables

STATUSES = {"measured", "documented", "fitted", "assumed"}
UNIT_ENDINGS = (
    *("_cycles", "_per_cycle", "_per_sm", "_per_warp", "_per_thread", "_per_block"),
    *("_bytes", "_threads", "_warps", "_registers", "_instructions", "_blocks", "_lines", "_ratio"),
)
COUNTS = {"scoreboard_max_count", "shared_banks", "l2_partitions", "l2_ways"}
"""Names that end with what they count."""
NOT_NUMBERS = {"barriers_limit_blocks", "reasons", "constant_miss_reason"}


def load(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def walk(table: dict[str, Any], place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every figure of a table with its place."""
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


def test_there_is_one_table_per_architecture() -> None:
    assert [path.stem for path in list_tables()] == [
        *("sm_100", "sm_120", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90"),
    ]


def test_all_tables_have_the_same_keys() -> None:
    places = {path.stem: {place for place, _ in walk(load(path))} for path in list_tables()}
    reference = places.pop("sm_80")
    assert len(reference) > 250
    for stem, found in places.items():
        assert found == reference, f"{stem}: missing {reference - found}, extra {found - reference}"


def test_all_matrices_have_the_same_readers() -> None:
    for matrix in ("register_latency", "predicate_latency", "uniform_latency", "uniform_predicate_latency"):
        assert len({tuple(load(path)[matrix]["readers"]) for path in list_tables()}) == 1


def test_every_value_has_one_status_and_listed_sources(table: dict[str, Any]) -> None:
    for place, figure in walk(table):
        if "unknown" in figure:
            assert figure.keys() == {"unknown"}, place
            assert figure["unknown"], place
            continue
        (status,) = figure.keys() & STATUSES
        named = figure[status] if isinstance(figure[status], list) else [figure[status]]
        assert named, place
        assert set(named) <= table["sources"].keys(), place


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


def test_rows_are_as_wide_as_their_readers(table: dict[str, Any]) -> None:
    for matrix in ("register_latency", "predicate_latency", "uniform_latency", "uniform_predicate_latency"):
        width = len(table[matrix]["readers"])
        for writer, row in table[matrix].items():
            if writer != "readers" and "value" in row:
                assert len(row["value"]) == width, f"{matrix}.{writer}"
                assert len(row.get("high", row["value"])) == width, f"{matrix}.{writer}"


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
