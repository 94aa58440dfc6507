"""A table with any fault in it is refused by name and place, never half read."""

import copy
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.foundation.errors import CatalogueError
from gpa_lsp.gpu.arch.lookup import TABLES, load_opcode_classes, read_architecture, read_opcode_classes
from tests.conftest import examples

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
