"""The fixture ``uncalibrated``."""

from collections.abc import Iterator

import pytest

from tests.advice.uncalibrated import leave_uncalibrated


@pytest.fixture
def uncalibrated() -> Iterator[None]:
    with leave_uncalibrated():
        yield
