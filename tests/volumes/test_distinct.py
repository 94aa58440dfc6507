"""Distinct integers and lanes of warps are found as numpy's own, slower functions find them."""

import numpy as np
import pytest

from gpa_lsp.execution.accesses.lane_addresses import pack_lanes
from gpa_lsp.execution.volumes.groups import list_distinct
from gpa_lsp.execution.volumes.lane_rows import MOST_EXAMPLES, LaneRows, RowLanes, pick_examples
from tests.volumes.written_traces import WrittenAccess, write_trace


@pytest.mark.parametrize("size", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("high", [1, 3, 1 << 40])
def test_distinct_values_are_those_of_numpy(size, high):
    values = np.random.default_rng(size).integers(-high, high, size)
    assert list_distinct(values).tolist() == np.unique(values).tolist()
    assert list_distinct(values).dtype == values.dtype


def test_lanes_are_those_of_the_masks():
    """Some threads take part, of blocks that do not follow each other, in warps that are not whole."""

    def go(thread, block):
        return (
            [4 * thread[0] + 1000 * block[0] + 64 * turn for turn in range(1 + thread[0] % 3)] if thread[0] % 5 else []
        )

    trace = write_trace([WrittenAccess(addresses=go, width=4)], block=(50, 2, 1), grid=(9, 2, 1), traced=[1, 4, 17])
    rows = np.arange(len(trace.accesses))[::-1]
    lanes = RowLanes(trace, rows)
    accesses = LaneRows(trace=trace, rows=rows, lanes=lanes)
    picked = lanes.pick(np.arange(lanes.count))
    assert [column.tolist() for column in picked] == [lanes.request.tolist(), lanes.lane.tolist()]
    assert accesses.read(*picked).tolist() == accesses.read_all().tolist()
    filled = pack_lanes(trace.accesses, rows)
    at = 0
    for request, row in enumerate(rows.tolist()):
        first, mask = int(trace.accesses.first_address[row]), int(trace.accesses.lane_mask[row])
        block, warp = int(trace.accesses.block[row]), int(trace.accesses.warp[row])
        active = [lane for lane in range(32) if mask >> lane & 1]
        addresses = trace.accesses.addresses[first : first + len(active)].tolist()
        assert filled[request].tolist() == addresses + addresses[:1] * (32 - len(active))
        for rank, lane in enumerate(active):
            thread = 32 * warp + lane
            assert lanes.columns[at, :6].tolist() == [thread % 50, thread // 50, 0, block % 9, block // 9, 0]
            assert (lanes.request[at], lanes.lane[at], accesses.read_all()[at]) == (request, lane, addresses[rank])
            assert lanes.rank(lanes.request, lanes.lane)[at] == rank
            assert lanes.thread[at] == [1, 4, 17].index(block) * 100 + thread
            at += 1
    assert at == lanes.count
    assert lanes.executions[lanes.executions > 0].tolist() == np.unique(lanes.thread, return_counts=True)[1].tolist()


def test_examples_are_drawn_once_and_nobody_writes_into_them():
    examples = pick_examples(5000)
    assert len(examples) <= MOST_EXAMPLES
    assert (examples[0], examples[-1]) == (0, 4999)
    assert np.array_equal(examples, pick_examples(5000))
    with pytest.raises(ValueError, match="read-only"):
        examples[0] = 1
