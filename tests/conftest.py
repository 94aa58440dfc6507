"""Fixtures that every test may ask for: the corpus of real reports, our own fixtures, and hypothesis' two profiles."""

import gc
import os
import re
import signal
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from gpa_lsp.code.binary.tool_location import find_tool
from tests.patience import set_limits

ROOT = Path(__file__).resolve().parent.parent

os.environ.pop(
    "COLUMNS", None
)  # whoever runs the tests may say how wide the screen is; what is printed elsewhere has no width

os.environ.update(set_limits())

# ignored where a shell runs the tests in its background, and then by programs that they start and interrupt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

IS_NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
"""One switch for all that is thorough rather than quick: fifty times as many examples, all fixtures instead of a sample, worst cases at full size."""

# The same examples every time: what passed once is not to fail for somebody who changed something else. New ones are tried by the other profile.
_OFTEN = 50
settings.register_profile(
    "ci", max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "nightly", max_examples=200 * _OFTEN, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("nightly" if IS_NIGHTLY else "ci")

# Hypothesis draws constants that it reads from the sources of every imported module: 3 s in each worker, and other examples after any change of
# any constant. It has no setting for that, so the ordinary run leaves its collection of constants empty; the nightly one tries them.
if not IS_NIGHTLY:
    providers._get_local_constants = lambda: providers._local_constants


def examples(count: int) -> settings:
    """Set the number of examples of a property that needs more or fewer than others, by their cost and how soon they find a fault.

    Args:
        count: in an ordinary run; the nightly one has fifty times as many.
    """
    return settings(max_examples=count * (_OFTEN if IS_NIGHTLY else 1))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores: editors wait for their servers, and servers for their workers."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores + 1, 4)


# rooms by the time of their longest module; those that are not named take less than ten seconds each
_LONG_FIRST = (
    "editors", "programs", "pages", "hybrid", "emulator", "record", "prediction", "house", "blame", "instrumentation", "lsp", "cli",
    "advice", "machine_code", "fixtures_manifest", "simulator", "collector", "binary", "collect", "device", "gpu", "compiler", "notebook",
    "release", "launches", "e2e", "pipeline", "analyses", "history", "processes", "volumes", "rewrites", "control_flow", "arch",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin early what takes long, so that no worker is left with it alone at the end; skip what needs the corpus where there is none."""
    order = {name: number for number, name in enumerate(_LONG_FIRST)}
    items.sort(key=lambda item: order.get(Path(item.nodeid).parts[1], len(order)))
    if find_corpus() is None:
        for item in items:
            if item.get_closest_marker("corpus"):
                item.add_marker(pytest.mark.skip(reason="the corpus of real reports is not at hand"))


def pytest_collection_finish() -> None:
    """Leave what was collected out of every later search for garbage: it stays, and looking through it takes a second."""
    gc.collect()
    gc.freeze()


class ExamplesOnly:
    """Collects doctests where there are examples. Elsewhere pytest would import and read every module to find none."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        found = yield
        if file_path.suffix == ".py" and not re.search(rb"^ *>>> ", file_path.read_bytes(), re.MULTILINE):
            return [one for one in found if type(one) is pytest.Module]  # those of doctest are of a kind of it
        return found


def pytest_configure(config: pytest.Config) -> None:
    """Let the above see the files of the package, too: hooks of this module are told of what lies beside it."""
    config.pluginmanager.register(ExamplesOnly())


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
    """Folder of our own fixtures."""
    return ROOT / "fixtures"


def find_shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this run that all its workers share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the tests away from the user's cache and history of measurements. The cache goes by content, and is one for all workers of a run."""
    shared = find_shared_folder(tmp_path_factory)
    cache = shared / "cache"
    cache.mkdir(exist_ok=True)
    libraries = shared.parent / "libraries"  # what one run compiled, the next has
    libraries.mkdir(exist_ok=True, mode=0o700)
    with suppress(FileExistsError):
        (cache / "libraries").symlink_to(libraries)
    os.environ["GPA_LSP_CACHE_DIR"] = str(cache)
    os.environ["GPA_LSP_DATA_DIR"] = str(tmp_path_factory.mktemp("data"))


def make_cache(folder: Path) -> str:
    """An empty cache of a test's own, but for what is compiled: that has no other answer elsewhere, and takes seconds."""
    (folder / "cache").mkdir()
    (folder / "cache" / "libraries").symlink_to(Path(os.environ["GPA_LSP_CACHE_DIR"]) / "libraries")
    return str(folder / "cache")


@pytest.fixture(autouse=True, scope="module")
def set_aside() -> None:
    """Leave what earlier modules made out of every search for garbage: a worker keeps so much of it that each takes a second."""
    gc.collect()
    gc.freeze()


_READ_FIXTURES = ("advice", "pairs", "control_flow", "rewrites")


@pytest.fixture(autouse=True, scope="module")
def listed_fixtures(request: pytest.FixtureRequest, own_cache: None) -> None:
    """Disassemble all fixtures in one go, into the cache, before rooms that read most of them one by one; a few tests better ask themselves."""
    room = request.path.relative_to(ROOT).parts[1]
    if room in _READ_FIXTURES and len(request.session.items) > 50 and find_tool("nvdisasm") is not None:
        from tests.binary.together import disassemble_fixtures

        disassemble_fixtures()
