"""Explorations as JSON values: ``gpa-lsp/exploration-result/1``."""

from typing import Any

from gpa_lsp.prediction.exploration.explore import Exploration
from gpa_lsp.report_file.json_records import make_record

EXPLORATION_FORMAT = "gpa-lsp/exploration-result/1"


def make_exploration(exploration: Exploration) -> dict[str, Any]:
    """All configurations, fastest first; times in seconds, volumes in bytes of the launch."""
    return {
        "format": EXPLORATION_FORMAT,
        "kernel": exploration.kernel,
        "device": exploration.device,
        "mode": exploration.mode,
        "current": None if exploration.current is None else make_record(exploration.current),
        "notes": list(exploration.notes),
        "configurations": [make_record(one) for one in exploration.ranked],
    }
