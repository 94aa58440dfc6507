"""The costs of called functions on the instructions that call them."""

import pytest

from gpa_lsp.kernel.calls import estimate_called_samples
from tests.rows.written import write_kernel

RETURN = "RET.REL.NODEC R20 0x0"
CALL = "CALL.ABS.NOINC `({})"
LOCAL = "CALL.REL.NOINC `($slow)"


@pytest.mark.parametrize(
    ("text", "called"),
    [
        pytest.param(
            f"NOP # wait=5\n{CALL.format('slow')} # - | wait=0 | x=300\n{CALL.format('slow')} # - | wait=0 | x=100\nEXIT\n"
            f"[slow]\nNOP # wait=30\n{RETURN} # wait=10",
            {1: 30, 2: 10},
            id="shared by how often each site executed",
        ),
        pytest.param(
            f"{CALL.format('slow')}\n{CALL.format('slow')}\nEXIT\n[slow]\n{RETURN} # wait=40",
            {0: 20, 1: 20},
            id="evenly without counts",
        ),
        pytest.param(
            f"NOP # wait=1\n{CALL.format('outer')}\nEXIT\n[outer]\n{CALL.format('inner')} # wait=3\n{RETURN}\n"
            f"[inner]\n{RETURN} # wait=7",
            {1: 10, 3: 7},
            id="callees of callees count at the outermost site too",
        ),
        pytest.param(
            f"NOP # wait=4\n{LOCAL}\nEXIT\n$slow:\nNOP # wait=6\n{RETURN} # wait=6",
            {1: 12},
            id="local functions are callees",
        ),
        pytest.param(
            f"NOP # wait=1\n{LOCAL} # - | wait=0 | x=10\nEXIT\n$slow:\nNOP # wait=5\n{LOCAL} # - | wait=5 | x=90\n{RETURN}",
            {1: 10, 4: 0},
            id="recursion ends and counts nothing twice",
        ),
        pytest.param(
            "\n".join(f"[f{one}]\n{CALL.format(f'f{one + 1}')} # wait=1\n{RETURN}" for one in range(1000)),
            {0: 999},
            id="a long chain of calls needs no stack",
        ),
    ],
)
def test_what_callees_cost_where_they_are_called(text: str, called: dict[int, float]) -> None:
    found = estimate_called_samples(write_kernel(text, name="f0" if text.startswith("[f0]") else "kernel"))
    assert {row: found[row] for row in called} == pytest.approx(called)
