"""Walks of measured launches count what the profiler counted."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpa_lsp.code.binary.embedded_ptx import read_embedded_ptx
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.simulator.walk_kernel import WalkSettings, walk_kernel
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.profile.read import read_profile
from tests.patience import LIMIT_S

_FOLDER = os.environ.get("GPA_LSP_CORPUS")
MEASURED = sorted((Path(_FOLDER) / "simulation").glob("*.launch.toml")) if _FOLDER else []
_DEPEND_ON_DATA = ("compute_tendencies_x",)
TAKE_MINUTES = ("julia_bb", "julia_frb")

pytestmark = MARKS = [
    pytest.mark.corpus,
    pytest.mark.skipif(not MEASURED, reason="the corpus of measured launches is not at hand (set GPA_LSP_CORPUS)"),
]


def read_truth(path: Path) -> tuple[dict[str, Any], Path]:
    """The measurement of a described launch, and the report it is of."""
    truth = json.loads(path.with_name(path.name.replace(".launch.toml", ".json")).read_text(encoding="utf-8"))
    return truth, next(path.parents[1].glob(f"*/{truth['report']}"))


@pytest.mark.parametrize("path", MEASURED, ids=lambda path: path.name.removesuffix(".launch.toml"))
def test_executions_are_those_of_the_profiler(path: Path) -> None:
    if any(name in path.name for name in (*_DEPEND_ON_DATA, *TAKE_MINUTES)):
        pytest.skip("its paths depend on data that nobody has, or it takes minutes")
    truth, report = read_truth(path)
    kernel = join_profile(read_profile(report), kernel_filter=lambda one: one.mangled_name == truth["kernel"])[0][0]
    assert kernel.cubin is not None
    modules = (parse_ptx(text, name="built") for text in read_embedded_ptx(kernel.cubin))
    module = next(one for one in modules if kernel.mangled_name in one.functions)
    (launch,) = read_launches(path)
    walk = walk_kernel(kernel, module, launch, WalkSettings(most_blocks=4, seconds=LIMIT_S))
    assert walk.not_simulated == ()
    measured = {one["pc"]: one.get("inst_executed", -1) for one in truth["instructions"] if "function" not in one}
    rows = np.flatnonzero(kernel.rows.function_index == 0)
    wanted = np.array([measured.get(int(kernel.rows.pc_offsets[row]), -1) for row in rows])
    found = walk.executed[rows]
    is_close = np.abs(found - wanted) <= 0.02 * wanted + 0.5
    assert is_close[wanted >= 0].mean() >= 0.95
