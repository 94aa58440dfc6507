"""A trace that is kept says what the prediction it was made with said."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from gpa_lsp.execution.emulator.model import join_pieces, keep_blocks
from gpa_lsp.execution.prediction.model import SourcePrediction
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.execution.prediction.trace_files import TraceWriter, analyse_saved, read_pieces
from gpa_lsp.foundation.errors import InputError
from tests.prediction.kernels import NVRTC, find_project

pytest.importorskip("pyarrow", reason="needs pyarrow (the extra [traces])")
pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")


@cache
def keep() -> tuple[Path, SourcePrediction]:
    """The folder of a trace, and what was predicted while it was made."""
    folder = Path(mkdtemp(prefix="gpa-lsp-kept-"))
    with TraceWriter(folder) as writer:
        found = predict_code(find_project(), kernel="transpose", compile_settings=NVRTC, sinks=[writer])
    return folder, found


def test_lines_and_answers_are_those_of_the_prediction():
    folder, found = keep()
    saved, kernel = analyse_saved(folder), found.kernels[0]
    assert (saved.short_name, saved.grid, saved.traced_blocks) == ("transpose<float, 32>", (4, 4, 1), 16)
    assert [(one.line, one.kind, one.sectors, one.wavefronts_per_request) for one in saved.accesses] == [
        (one.line, one.kind, one.sectors, one.wavefronts_per_request) for one in kernel.accesses
    ]
    for name in ("traced_memory", "traced_banks", "traced_branches"):
        assert kernel.find(name) == next((one for one in saved.answers if one.analysis == name), None)
    assert "neither the registers nor the shared memory" in saved.problems[0].message


def test_volumes_come_from_the_addresses_of_the_trace():
    saved = analyse_saved(keep()[0], machine="V100 PCIe")
    volumes = next(one for one in saved.answers if one.analysis == "volumes")
    assert saved.machine == "V100 PCIe"
    assert "loads 4.0 bytes from DRAM, stores 4.0 bytes there" in volumes.summary


def test_the_papers_counts_too():
    saved = analyse_saved(keep()[0], is_paper=True)
    answer = saved.answers[-1]
    assert (answer.analysis, answer.tables[0].rows[0]) == ("traced_paper", (1, 1.0, 0.0))
    assert [one.what for one in answer.missing] == ["branch divergence"]


def test_rows_of_some_blocks_keep_their_addresses():
    pieces = list(read_pieces(keep()[0]))
    piece = join_pieces(pieces)
    assert piece.traced_blocks.tolist() == list(range(16))
    parts = [part for one in pieces if (part := keep_blocks(one, (3, 7, 1000))) is not None]
    kept = join_pieces(parts)
    assert kept.traced_blocks.tolist() == [3, 7]
    assert set(kept.accesses.block.tolist()) == {3, 7}
    for row in (0, len(kept.accesses) - 1):
        before = int(np.flatnonzero(np.isin(piece.accesses.block, [3, 7]))[row])
        first, old = int(kept.accesses.first_address[row]), int(piece.accesses.first_address[before])
        assert kept.accesses.addresses[first] == piece.accesses.addresses[old]
    assert len(kept.accesses.addresses) == 32 * len(kept.accesses)
    assert keep_blocks(piece, (1000,)) is None


def test_a_folder_that_is_no_trace_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="give the folder that gpa-lsp predict trace wrote"):
        analyse_saved(tmp_path)
    (tmp_path / "trace.json").write_text('{"format": "gpa-lsp/trace/1"}')
    with pytest.raises(InputError, match=r"trace\.json"):
        analyse_saved(tmp_path)


def test_nothing_traced_leaves_no_folder(tmp_path: Path):
    with TraceWriter(tmp_path / "t"):
        pass
    assert not (tmp_path / "t").exists()
