"""Messages of Nsight Compute, shells and launchers, and our explanations."""

import pytest

from gpa_lsp.foundation.processes.watched_command import Ending
from gpa_lsp.profile.collect.explain import explain, read_catalogue
from gpa_lsp.profile.collect.model import CommandResult, Phase

APPLICATION_FAILED = "==ERROR== The application returned an error code (9)."
NOTHING = "==WARNING== No kernels were profiled."


def end(*tail: str, status: int | None = 1, signal: int | None = None, ending: Ending = Ending.ENDED) -> CommandResult:
    return CommandResult(ending=ending, status=status, signal=signal, duration_s=1.0, tail=tail)


def name(result: CommandResult, program: str = "ncu", phase: Phase = Phase.PROFILE) -> str | None:
    found = explain(result, program=program, phase=phase, timeout_s=600)
    return None if found is None else found.name


# What was printed, and the name of its explanation.
MESSAGES = """
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0. | counters-forbidden
==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is | counters-in-use
==ERROR== Failed to open/create lock file /tmp/nsight-compute-lock. Please check that this | lock-of-another-user
==ERROR== InterprocessLockFailed | lock-of-another-user
==ERROR== Cuda driver is not compatible with Nsight Compute. | driver-too-old
==ERROR== Failed to initialize the profiler: LibraryNotLoaded. Check that a compatible driver library is loaded. | driver-not-loaded
==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?). | driver-not-loaded
==ERROR== Profiling is not supported on device 0. To find out supported GPUs refer --list-chips option. | gpu-unsupported
==ERROR== Profiling is not supported on device 0 as it uses the Windows Subsystem for Linux (WSL). | wsl-unsupported
==ERROR== Failed to prepare kernel for profiling | profiler-and-gpu-disagree
==ERROR== Failed to lock clock frequencies on MIG! Try locking the clocks externally | clocks
==ERROR== Failed to save memory for replay. consider using --replay-mode application | memory-for-replay
==ERROR== Unhandled C++ exception: bad allocation | memory-for-replay
==ERROR== LaunchFailed | launch-failed
==ERROR== unrecognised option '--output'. Use --help for further details. | option-unknown
sudo: a password is required | password-needed
me@host: Permission denied (publickey,password). | ssh-login
srun: error: Unable to allocate resources: Invalid partition name specified | cluster
docker: Error response from daemon: could not select device driver | docker
./app: error while loading shared libraries: libcublas.so.12: cannot open shared object file: No such file or directory | library-missing
ModuleNotFoundError: No module named 'torch' | module-missing
"""


@pytest.mark.parametrize("line", MESSAGES.strip().splitlines(), ids=lambda line: line.rpartition(" | ")[2])
def test_messages_are_recognised_with_what_follows_them(line: str) -> None:
    printed, _, expected = line.rpartition(" | ")
    tail = ("==PROF== Connected to process 1 (/app)", printed, "step 1", APPLICATION_FAILED, NOTHING)
    assert name(end(*tail)) == expected


def test_what_was_looked_for_is_named() -> None:
    found = explain(end("==ERROR== Failed to find metric regex:^bad_metric_xyz(\\.(sum|min))?$"), program="ncu")
    assert found.summary.endswith("has no metric bad_metric_xyz")
    found = explain(end("==ERROR== Option '--section Tile' did not match any section."), program="ncu")
    assert found.summary.endswith("has no section Tile")
    found = explain(end(APPLICATION_FAILED), program="ncu")
    assert found.summary.endswith("ended with status 9")
    assert found.line == APPLICATION_FAILED


def test_a_run_that_ends_well_and_measures_nothing_is_explained_as_well() -> None:
    assert name(end("output of the program", NOTHING, status=0)) == "nothing-measured"
    assert name(end("==ERROR== ERR_NVGPUCTRPERM - The user", "result 5", NOTHING, status=0)) == "counters-forbidden"
    assert name(end("all done", status=0)) is None
    assert name(end("sudo: a password is required", status=0)) is None


def test_a_cluster_that_tells_of_a_failed_program_is_not_its_cause() -> None:
    assert name(end("srun: error: node7: task 0: Exited with exit code 9", APPLICATION_FAILED)) == (
        "nothing-measured-after-error"
    )


def test_children_are_mentioned_when_the_profiler_does() -> None:
    children = "==WARNING== Profiling kernels launched by child processes requires the --target-processes all option."
    assert name(end(NOTHING, children, status=0)) == "children-not-measured"


def test_exit_status_as_shells_and_launchers_give_it() -> None:
    assert name(end(status=127)) == "not-found"
    assert name(end(status=126)) == "not-executable"
    assert name(end(status=255), "/usr/bin/ssh") == "ssh-failed"
    assert name(end(status=255)) == "status"
    assert name(end(status=125), "docker") == "docker-failed"
    assert name(end(status=3)) == "status"


def test_a_program_that_is_not_there_is_named() -> None:
    found = explain(
        end("ncu: No such file or directory", status=127, ending=Ending.NOT_STARTED), program="ncu", phase=Phase.BUILD
    )
    assert found.name == "not-found"
    assert found.summary == "the command could not be started: ncu: No such file or directory"


def test_signals_are_named() -> None:
    found = explain(end(status=None, signal=9), program="ncu")
    assert found.summary.startswith(
        "the command was ended by SIGKILL: it was killed, most often because memory ran out"
    )
    found = explain(end(status=139), program="bash")
    assert found.summary.startswith("the command was ended by SIGSEGV")
    found = explain(end(status=None, signal=30), program="ncu")
    assert found.summary == "the command was ended by SIGPWR"


def test_time_limits_and_cancelling() -> None:
    found = explain(end(status=None, ending=Ending.TIMED_OUT), program="ncu", timeout_s=600.0)
    assert found.summary == "the command was ended after 600 s"
    assert "--launch-count 1" in found.remedies[0]
    building = explain(end(status=None, ending=Ending.TIMED_OUT), program="make", phase=Phase.BUILD, timeout_s=0.5)
    assert len(building.remedies) == 1
    assert name(end(APPLICATION_FAILED, ending=Ending.CANCELLED)) is None
    assert name(end(status=None, ending=Ending.LOST)) == "lost"


def test_what_a_compiler_prints_is_not_taken_for_the_profiler() -> None:
    printed = end("nvcc: No kernels were profiled", "ld: cannot open shared object file", status=2)
    assert name(printed, "make", Phase.BUILD) == "status"
    found = explain(printed, program="make", phase=Phase.BUILD)
    assert found.summary == "building failed with status 2; its output says more"


def test_the_catalogue_is_sound() -> None:
    entries = read_catalogue()
    assert len({entry.name for entry in entries}) == len(entries)
    for entry in entries:
        assert (entry.printed is None) != (entry.status is None), entry.name
        assert entry.remedies, entry.name
        assert not any(text.endswith(".") for text in (entry.summary, *entry.remedies)), entry.name
        assert "{name}" not in entry.summary or entry.printed is not None
        if "{name}" in entry.summary:
            assert "name" in entry.printed.groupindex, entry.name
