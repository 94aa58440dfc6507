"""Joining a profile with real code: sums, foreign addresses, and refusals."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.foundation.errors import ConservationError, ProblemSeverity
from gpa_lsp.kernel.join import check_kernel, join_profile
from gpa_lsp.kernel.model import OUTSIDE_MODULE
from gpa_lsp.profile.model import LoadedFunction, Metric, Module, Profile
from tests.rows.builders import BASE, KERNEL, make_executions, make_launch, make_profile, make_samples
from tests.rows.written import write_kernel

REASONS = {"wait": (4, 3), "selected": (2, 0)}


def test_launches_are_summed_per_instruction_and_reason(image):
    first = make_launch(
        KERNEL, samples=make_samples({BASE + 0x150: REASONS}), metrics=make_executions({BASE + 0x150: 10})
    )
    second = make_launch(
        KERNEL, index=1, samples=make_samples({BASE + 0x150: REASONS, BASE + 0x110: {"wait": (1, 1)}}),
        metrics=make_executions({BASE + 0x150: 5, BASE: 3}),
    )  # fmt: skip
    (kernel,), problems = join_profile(make_profile(image, first, second), with_text=False)
    assert problems == ()
    function = kernel.functions[0]
    row = 0x150 // 16
    assert kernel.reasons == ("selected", "wait")
    assert function.all_samples[row].tolist() == [4, 8]
    assert function.latency_samples[row].tolist() == [0, 6]
    assert function.all_samples[0x110 // 16].tolist() == [0, 1]
    assert (function.executions[row], function.executions[0], function.executions[1]) == (15, 3, -1)
    assert len(function.pc_offsets) == 56
    assert kernel.total_samples == 13


def test_a_module_loaded_elsewhere_for_each_launch_is_one_kernel(image):
    launch = make_launch(KERNEL, samples=make_samples({BASE + 0x150: REASONS}))
    (kernel,), _ = join_profile(make_profile(image, launch), with_text=False)
    moved = make_launch(KERNEL, samples=make_samples({0x9000 + 0x150: REASONS}))
    (other,), _ = join_profile(make_profile(image, moved, base=0x9000), with_text=False)
    assert (kernel.functions[0].all_samples == other.functions[0].all_samples).all()


def test_foreign_addresses_are_kept_apart(image):
    samples = make_samples({BASE + 0x150: REASONS, 0x10: {"wait": (9, 9)}, 0x7FFF00000000: {"wait": (1, 0)}})
    (kernel,), problems = join_profile(make_profile(image, make_launch(KERNEL, samples=samples)), with_text=False)
    assert problems == ()
    outside = kernel.functions[-1]
    assert outside.name == OUTSIDE_MODULE
    assert outside.pc_offsets.tolist() == [0x10, 0x7FFF00000000]
    assert outside.total_samples == 10
    assert kernel.total_samples == 16


def refused(image: bytes, **launch: Any) -> str:
    kernels, problems = join_profile(make_profile(image, make_launch(KERNEL, **launch)), with_text=False)
    assert kernels == ()
    (problem,) = problems
    assert problem.severity is ProblemSeverity.ERROR
    assert problem.path == Path("p.ncu-rep")
    assert problem.kernel == KERNEL
    assert problem.remedy
    return problem.message


def test_samples_between_the_instructions_of_a_callee_are_refused(fixtures):
    image = (fixtures / "containers" / "built" / "two_units_linked.sm_90.cubin").read_bytes()
    functions = read_cubin(image).functions
    kernel, callee = functions["_Z9two_unitsPKfPfi"], functions["_ZN5units4dampEff"]
    loaded = (LoadedFunction(name=kernel.name, address=0x1000), LoadedFunction(name=callee.name, address=0x100000))
    module = Module(module_id=1, image=image, compute_capability=(8, 0), functions=loaded)
    last = 0x100000 + callee.size_bytes - 8
    launch = make_launch(kernel.name, samples=make_samples({0x1000: REASONS, last: REASONS}))
    profile = Profile(path=None, format_name="test", tool_version=None, modules={1: module}, launches=(launch,))
    kernels, (problem,) = join_profile(profile, with_text=False)
    assert kernels == ()
    assert "between instructions" in problem.message


REGISTERS = "launch__registers_per_thread"


@pytest.mark.parametrize(
    ("address", "metrics", "message"),
    [
        (BASE + 0x158, {}, "between instructions"),
        (BASE + 0x390, {}, "912 bytes into a kernel that the cubin says is 896 bytes long"),
        (BASE, {REGISTERS: Metric(name=REGISTERS, value=8)}, "launched with 8 registers"),
        (0x10, {}, "no sample lies in the kernel"),
    ],
)
def test_samples_that_do_not_fit_the_code_are_refused(image, address, metrics, message):
    at_start = {} if address == 0x10 else {BASE: REASONS}
    assert message in refused(image, samples=make_samples({**at_start, address: REASONS}), metrics=metrics)


def test_a_kernel_of_another_name_is_refused(image):
    profile = make_profile(image, make_launch("_Z5otherv", samples=make_samples({BASE: REASONS})))
    kernels, (problem,) = join_profile(profile, with_text=False)
    assert kernels == ()
    assert "does not contain it" in problem.message


def test_a_refused_kernel_does_not_take_the_others_along(image):
    good = make_launch(KERNEL, samples=make_samples({BASE: REASONS}))
    kernels, problems = join_profile(make_profile(image, make_launch("_Z5otherv", index=1), good), with_text=False)
    assert [kernel.mangled_name for kernel in kernels] == [KERNEL]
    assert len(problems) == 1


def test_without_an_image_the_offsets_that_were_seen_are_the_rows():
    samples = make_samples({BASE + 0x150: REASONS, BASE + 0x20: REASONS})
    (kernel,), _ = join_profile(make_profile(None, make_launch(KERNEL, samples=samples)))
    assert kernel.functions[0].pc_offsets.tolist() == [0x20, 0x150]
    assert kernel.functions[0].instructions is None
    assert kernel.total_samples == 12


def test_a_broken_image_costs_the_code_but_not_the_samples(image):
    samples = make_samples({BASE + 0x150: REASONS})
    (kernel,), problems = join_profile(make_profile(image[:200], make_launch(KERNEL, samples=samples)))
    assert kernel.total_samples == 6
    assert [problem.path for problem in problems] == [Path("p.ncu-rep")]


def test_an_architecture_without_table_is_a_problem_that_lists_the_known_ones(image):
    device = make_launch(KERNEL).device
    foreign = type(device)(name="Future", compute_capability=(99, 9), sm_count=None, sm_clock_hz=None)
    launch = make_launch(KERNEL, device=foreign, samples=make_samples({BASE: REASONS}))
    (kernel,), (problem,) = join_profile(make_profile(image, launch), with_text=False)
    assert kernel.architecture is None
    assert "8.6" in str(problem)


@pytest.mark.parametrize(
    ("samples", "message"),
    [((3, 2), "4 samples of wait became 3"), ((4, 2), "3 not-issued samples of wait became 2")],
)
def test_lost_samples_are_noticed(samples, message):
    kernel = write_kernel(f"EXIT # wait={samples[0]}/{samples[1]}")
    launch = make_launch("kernel", samples=make_samples({0: {"wait": (4, 3)}}))
    with pytest.raises(ConservationError, match=message):
        check_kernel(replace(kernel, launches=(launch,)))


def test_columns_have_the_documented_types(image):
    launch = make_launch(KERNEL, samples=make_samples({BASE: REASONS}))
    (kernel,), _ = join_profile(make_profile(image, launch), with_text=False)
    function = kernel.functions[0]
    assert function.pc_offsets.dtype == np.int64
    assert function.all_samples.dtype == np.int64
    assert function.control is not None
