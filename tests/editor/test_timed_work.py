"""Files between the timing of launches and their sampling; times in hints stand in ``scenes/predicted.md``."""

import os
import pickle
from pathlib import Path

from gpa_lsp.editor.timed.view import SampleJob, SampleResult
from gpa_lsp.editor.timed.worker import WORK
from gpa_lsp.foundation.packed_records import pack_records


def test_what_is_kept_between_timing_and_sampling_runs_nothing(tmp_path: Path) -> None:
    """A file that somebody else put in the place of what was timed is refused, not executed."""

    class Trap:
        def __reduce__(self) -> object:
            return os.mkdir, (str(tmp_path / "sprung"),)

    kept = tmp_path / "timings"
    for content in (pickle.dumps(Trap()), pack_records(("no", "timings")), b"", b"\x80\x05garbage"):
        kept.write_bytes(content)
        result = WORK.do(SampleJob(kept=kept, target=tmp_path / "t.gpa-profile.json"), lambda _: None)
        assert isinstance(result, SampleResult)
        assert "timings: holds" in result.reason and "make it again" in result.reason
    assert not (tmp_path / "sprung").exists()
