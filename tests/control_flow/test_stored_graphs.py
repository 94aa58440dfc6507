"""Edges of code with the rarer kinds of branches, compared with nvdisasm's stored graphs; needs no tool, see ``stored/warp_branches.cu``."""

import re

import pytest

from tests.conftest import ROOT
from tests.control_flow.bbcfg import build_listed_graphs, compare_steps, read_block_graphs

STORED = ROOT / "tests" / "control_flow" / "stored"


def read(architecture: int, suffix: str) -> str:
    return (STORED / f"warp_branches.sm_{architecture}.{suffix}").read_text(encoding="utf-8")


@pytest.mark.parametrize("architecture", [75, 80, 120])
def test_steps_as_nvdisasm_drew_them(architecture: int):
    graphs = build_listed_graphs(read(architecture, "sass"))
    assert compare_steps(graphs, read_block_graphs(read(architecture, "dot"))) > 100


@pytest.mark.parametrize(
    ("architecture", "kinds"),
    [
        (75, ["BRA.CONV `", "BRA.DIV `", "BRA.U `", "BPT.TRAP", "CALL.ABS", "WARPSYNC "]),
        (80, ["BRA.CONV UR", "BRA.DIV UR", "BPT.TRAP", "CALL.ABS"]),
        (120, ["BRA.DIV UR", "BRA.U U?P|BRA.U !UP", "WARPSYNC.COLLECTIVE", "BSYNC.RECONVERGENT", "@!?P\\d EXIT"]),
    ],
)
def test_the_rare_kinds_are_there(architecture: int, kinds: list[str]):
    listing = read(architecture, "sass")
    assert [kind for kind in kinds if not re.search(kind, listing)] == []


def test_a_missing_edge_is_noticed():
    changed = re.sub(r"BRA\.CONV", "BRA", read(75, "sass"), count=1)
    with pytest.raises(AssertionError):
        compare_steps(build_listed_graphs(changed), read_block_graphs(read(75, "dot")))
