"""Estimates as the model gives them, without what ``calibration.toml`` says of its errors, so that a reader can work them out."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from gpa_lsp.diagnosis.advice import pricing
from gpa_lsp.diagnosis.advice.pricing import Calibration

# Right in the middle, and between the square root and the power of one and a half
PLAIN = Calibration(edits=0, families=0, held=1.0, low=0.5, middle=1.0, high=1.5)


@contextmanager
def leave_uncalibrated() -> Iterator[None]:
    """Price without calibration as long as the block lasts."""
    with patch.object(pricing, "find_calibration", lambda _optimizer: PLAIN):
        yield
