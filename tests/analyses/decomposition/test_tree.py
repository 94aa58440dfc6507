"""The top-down tree adds up at every node, and what it cannot know it says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.analyses.questions.top_down import OTHER_REASONS, build_issue_tree
from gpa_lsp.profile.model import LEAST_MEASURED
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from tests.analyses.decomposition.written_facts import write_facts
from tests.conftest import examples

STALLS = sorted(name for name, reason in STALL_REASONS.items() if reason.is_stall)


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


def test_reasons_beyond_the_eighth_are_one():
    notes = " ".join(f"{reason}={1000 - 10 * number}" for number, reason in enumerate(STALLS))
    tree = build_issue_tree(write_facts(f"    MOV R0, R1  # {notes}"))
    reasons = [node for node in tree.nodes if node.level == 1]
    assert len(reasons) == 9
    assert reasons[-1].name == OTHER_REASONS
    check_sums(tree.nodes)
