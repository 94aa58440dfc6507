"""What every test may ask for: the corpus of real reports, our own fixtures, and hypothesis' two profiles."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

os.environ.pop(
    "COLUMNS", None
)  # whoever runs the tests may say how wide the screen is; what is printed elsewhere has no width

# The same examples every time: what passed once is not to fail for somebody who changed something else. New ones are tried by the other profile.
settings.register_profile(
    "ci", max_examples=500, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("nightly", max_examples=10_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def find_corpus() -> Path | None:
    """The folder with the real reports (``expected_samples.json`` and ``ncu/``), or None where it is not at hand."""
    folder = Path(os.environ.get("GPA_LSP_CORPUS", ROOT.parent / "shared" / "corpus"))
    return folder if (folder / "expected_samples.json").is_file() else None


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The corpus; the test is skipped where there is none."""
    folder = find_corpus()
    if folder is None:
        pytest.skip("the corpus of real reports is not at hand (set GPA_LSP_CORPUS)")
    return folder


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """Our own fixtures folder."""
    return ROOT / "fixtures"


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the tests away from the user's cache of disassemblies and history of measurements."""
    os.environ["GPA_LSP_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["GPA_LSP_DATA_DIR"] = str(tmp_path_factory.mktemp("data"))
