"""Estimates as the model gives them, without what ``calibration.toml`` says of its errors, so that a reader can work them out."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from gpa_lsp.diagnosis.advice import pricing
from gpa_lsp.diagnosis.advice.pricing import Calibration

# Right in the middle; a fifth of the root of its logarithm down and up
PLAIN = Calibration(edits=0, families=0, held=1.0, low=-0.2, middle=1.0, high=0.2)


@contextmanager
def leave_uncalibrated() -> Iterator[None]:
    """Price without calibration as long as the block lasts."""
    with patch.object(pricing, "find_calibration", lambda _optimizer: PLAIN):
        yield
