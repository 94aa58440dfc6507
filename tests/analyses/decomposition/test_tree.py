"""The top-down tree adds up at every node, and what it cannot know it says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.analyses.answers import Weight
from gpa_lsp.diagnosis.analyses.questions import top_down
from gpa_lsp.diagnosis.analyses.questions.top_down import OTHER_REASONS, build_issue_tree
from gpa_lsp.profile.model import LEAST_MEASURED
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from tests.analyses.decomposition.written_facts import name_state, write_facts
from tests.conftest import examples

STALLS = sorted(name for name, reason in STALL_REASONS.items() if reason.is_stall)
CODE = """
    B-:R-:W2:-:S02  LDG.E R4, [R2.64]     # k.cu:4 | selected=100 | x=1000
    B2:R-:W-:-:S02  FADD R5, R4, R4       # k.cu:6 | long_scoreboard=600 wait=300 selected=100 | x=1000
"""


def check_sums(nodes):
    """Children add up to their parent, and the roots to 1."""
    assert sum(node.share_ratio for node in nodes if node.level == 0) == pytest.approx(1.0)
    reasons = [node for node in nodes if node.level == 1]
    if reasons:
        assert sum(node.share_ratio for node in reasons) == pytest.approx(nodes[1].share_ratio)
        assert sum(node.of_parent_ratio for node in reasons) == pytest.approx(1.0)
    parent, total = None, 0.0
    for node in [*nodes, None]:
        if node is None or node.level < 2:
            assert parent is None or total == 0 or total == pytest.approx(parent.share_ratio, abs=1e-5)
            parent, total = node, 0.0
        else:
            total += node.share_ratio


@examples(40)
@given(
    samples=st.dictionaries(st.sampled_from(STALLS), st.integers(min_value=1, max_value=10**5), min_size=1),
    used=st.one_of(st.none(), st.just(0.0), st.floats(min_value=LEAST_MEASURED, max_value=1)),
)
def test_nodes_add_up(samples, used):
    notes = " ".join(f"{reason}={count}" for reason, count in samples.items())
    metrics = {} if used is None else {"smsp__issue_active.avg.per_cycle_active": used}
    tree = build_issue_tree(write_facts(f"    MOV R0, R1  # k.cu:1 | selected=7 {notes}", metrics))
    check_sums(tree.nodes)
    if used is not None:
        assert tree.nodes[0].share_ratio == pytest.approx(used)


def test_empty_slots_are_shared_out_by_samples_taken_while_nothing_was_issued():
    """A quarter of the slots is used; of 800 samples without an issue 600 wait for memory, 200 for a fixed latency."""
    code = CODE.replace("long_scoreboard=600 wait=300", "long_scoreboard=700/600 wait=300/200")
    answer = top_down.ANALYSIS.ask(write_facts(code, {"smsp__issue_active.avg.per_cycle_active": 0.25}))
    assert answer.summary == "25 % of the issue slots are used; of the rest, 75 % is lost to long_scoreboard."
    assert [(bar.label, bar.ratio) for bar in answer.bars] == [
        ("issue slots used", 0.25),
        ("long_scoreboard", pytest.approx(0.75 * 0.75)),
        ("wait", pytest.approx(0.75 * 0.25)),
    ]
    assert [(row[0], row[1]) for row in answer.tables[0].rows] == [
        (0, "issue slots used"),
        (0, "issue slots empty"),
        (1, "long_scoreboard"),
        (2, "loads from global memory"),
        (1, "wait"),
        (2, "issue cost of loads from global memory"),
    ]


def test_few_samples_give_way_to_counters():
    states = {"selected": 1.0, "long_scoreboard": 1.0, "wait": 3.0}
    counted = {name_state(state): value for state, value in states.items()}
    few = CODE.replace("600", "60").replace("300", "30")
    tree = build_issue_tree(write_facts(few, {**counted, "smsp__issue_active.avg.per_cycle_active": 0.2}))
    assert [node.name for node in tree.nodes if node.level == 1] == ["wait", "long_scoreboard"]


def test_reasons_beyond_the_eighth_are_one():
    notes = " ".join(f"{reason}={1000 - 10 * number}" for number, reason in enumerate(STALLS))
    tree = build_issue_tree(write_facts(f"    MOV R0, R1  # {notes}"))
    reasons = [node for node in tree.nodes if node.level == 1]
    assert len(reasons) == 9
    assert reasons[-1].name == OTHER_REASONS
    check_sums(tree.nodes)


def test_what_holds_the_whole_back_comes_first():
    metrics = {
        "smsp__issue_active.avg.per_cycle_active": 0.25,
        "sm__cycles_active.avg": 500.0,
        "gpc__cycles_elapsed.max": 1000.0,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 95.0,
    }
    findings = top_down.ANALYSIS.ask(write_facts(CODE, metrics)).findings
    assert "95 % of its peak" in findings[0].text
    assert "has warps only 50 % of the time" in "".join(one.text for one in findings)
    assert [one.weight for one in findings] == sorted((one.weight for one in findings), key=list(Weight)[::-1].index)


def test_full_slots_are_good():
    findings = top_down.ANALYSIS.ask(write_facts(CODE, {"smsp__issue_active.avg.per_cycle_active": 0.9})).findings
    assert findings[-1].weight is Weight.GOOD
    assert "90 %" in findings[-1].text


def test_without_anything_it_is_unknown_and_names_the_section():
    answer = top_down.ANALYSIS.ask(write_facts("    MOV R0, R1"))
    assert not answer.is_known
    assert answer.missing[0].section == "WarpStateStats"
