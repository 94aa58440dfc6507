"""Places that become findings, and their sentences."""

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import AT_THE_LIMIT, Standing
from gpa_lsp.document.advice_words import describe_priced, find_first_suggestion
from gpa_lsp.document.check_view import describe_finding, list_first_suggestions
from gpa_lsp.document.findings import choose_reasons, find_findings, name_kernels
from gpa_lsp.foundation.prose import say
from gpa_lsp.report.changes import ReasonCount
from tests.render.advice_examples import make_advised
from tests.report_builder import build_kernel, build_report


def shown(listing: str, least: float = 0.05, **options: object) -> list[str]:
    report = build_report(build_kernel(listing, **options))  # type: ignore[arg-type]
    return [describe_finding(finding) for finding in find_findings(report, least)]


def test_hot_lines_only_hottest_first() -> None:
    listing = "\n".join(f"k.cu:{line}  NOP  ; wait={line}" for line in (1, 60, 30, 9))
    findings = find_findings(build_report(build_kernel(listing)), 0.09)
    assert [finding.place.line for finding in findings if finding.place] == [60, 30, 9]
    assert [finding.share.part_samples for finding in findings] == [60, 30, 9]


def test_the_limit_counts_inlined_and_called_code() -> None:
    listing = """
        in.h:1 < k.cu:5    NOP  ; wait=50
        k.cu:6             CALL.REL.NOINC 0x20  ; wait=1
        -                  NOP  ; wait=49
    """
    findings = find_findings(build_report(build_kernel(listing, called_samples={("k.cu", 6): 49.0})), 0.4)
    places = [(str(finding.place), finding.self_samples, finding.called_samples) for finding in findings]
    assert places == [("k.cu:5", 0, 0.0), ("k.cu:6", 1, 49.0), ("None", 49, 0.0)]


def test_kernels_without_samples_have_no_findings() -> None:
    assert find_findings(build_report(build_kernel("k.cu:1  NOP  ;")), 0.0) == ()
    assert find_findings(build_report(), 0.0) == ()


def test_a_limit_of_nothing_shows_every_sampled_line() -> None:
    assert len(shown("k.cu:1  NOP  ; wait=1\nk.cu:2  NOP  ; wait=99999\nk.cu:3  NOP  ;", 0.0)) == 2


def test_a_line_of_its_own() -> None:
    assert shown("k.cu:1  LDG.E R2, [R4.64]  ; membar=75 selected=25") == [
        "100 % (±3.7) of the samples of kernel; of these 75 % membar; hottest LDG.E R2, [R4.64]; 100 of 100 samples"
    ]


def test_inlined_code_and_calls_are_told_apart() -> None:
    listing = """
        in.h:1 < k.cu:5   NOP  ; membar=60
        k.cu:5            CALL.REL.NOINC 0x20  ; membar=20
        -                 NOP  ; membar=20
    """
    text = next(text for text in shown(listing, called_samples={("k.cu", 5): 20.0}) if text.startswith("80 %"))
    assert "; 20 % in the line itself, the rest inlined; " in text
    assert "; about 20 % more in functions it calls (estimate); " in text


def test_a_chain_of_wrappers_is_one_finding_at_its_outermost_line() -> None:
    listing = """
        core.h:9 < wrap.h:5 < k.cu:3   LDS R1, [R2]  ; membar=60
        core.h:9 < wrap.h:5 < k.cu:3   LDS R1, [R3]  ; membar=10
        other.h:1 < k.cu:4             NOP           ; membar=30
        k.cu:4                         NOP           ; membar=30
    """
    findings = find_findings(build_report(build_kernel(listing)))
    places = [(str(finding.place), [str(place) for place in finding.same_samples]) for finding in findings]
    assert places == [("k.cu:3", ["wrap.h:5", "core.h:9"]), ("k.cu:4", []), ("other.h:1", [])]
    assert "; all of it inlined from core.h:9; " in describe_finding(findings[0])


def test_lines_that_only_call_are_findings_of_their_own() -> None:
    listing = """
        k.cu:5   CALL.REL.NOINC 0x20  ;
        k.cu:6   CALL.REL.NOINC 0x20  ;
        -        NOP                  ; membar=20
    """
    kernel = build_kernel(listing, called_samples={("k.cu", 5): 10.0, ("k.cu", 6): 10.0})
    places = [(str(finding.place), finding.same_samples) for finding in find_findings(build_report(kernel))]
    assert places == [("None", ()), ("k.cu:5", ()), ("k.cu:6", ())]


def test_functions_without_lines_are_named() -> None:
    (text,) = shown("[_Z4slowf]\n-  MUFU.RCP R1, R2  ; membar=5")
    assert text.startswith(
        "100 % (±43) of the samples of kernel in slow, which has no line information; of these 100 % membar"
    )


def test_a_kernel_without_lines_is_named_once() -> None:
    assert shown("-  NOP  ; membar=9")[0].startswith(
        "100 % (±30) of the samples of kernel, which has no line information; of these "
    )


def test_issuing_is_no_stall() -> None:
    assert shown("k.cu:1  NOP  ; selected=9")[0].startswith(
        "100 % (±30) of the samples of kernel: issuing, not stalled"
    )


def test_reasons_that_dominate() -> None:
    counts = {
        name: ReasonCount(all_samples=samples, latency_samples=0)
        for name, samples in [("selected", 90), ("wait", 50), ("barrier", 40), ("membar", 19), ("misc", 1)]
    }
    assert [(reason.name, reason.samples) for reason in choose_reasons(counts)] == [("wait", 50), ("barrier", 40)]
    assert choose_reasons({}) == ()


def test_the_hottest_instruction_is_the_lines_own_or_inlined_into_it() -> None:
    listing = """
        in.h:1 < k.cu:5   FADD R1, R2, R3  ; wait=60
        k.cu:5            FMUL R1, R2, R3  ; wait=10
        k.cu:6            NOP              ; wait=90
    """
    findings = find_findings(build_report(build_kernel(listing)))
    hottest = {str(finding.place): finding.hottest.text for finding in findings if finding.hottest}
    assert hottest == {"k.cu:6": "NOP", "k.cu:5": "FADD R1, R2, R3", "in.h:1": "FADD R1, R2, R3"}


def test_different_kernels_have_different_names() -> None:
    kernels = [build_kernel(name=f"void lib::Kernel<{letter * 90}>(int)", mangled_name=letter) for letter in "ab"]
    assert list(name_kernels(kernels).values()) == ["lib::Kernel<…>#1", "lib::Kernel<…>#2"]


def test_huge_numbers() -> None:
    (text,) = shown(f"k.cu:1  NOP  ; membar={10**15}")
    assert text.endswith("1,000,000,000,000,000 of 1,000,000,000,000,000 samples")


def test_a_kernel_at_its_limit_is_called_that() -> None:
    best, advised = find_first_suggestion(make_advised()), make_advised().advice
    assert best is not None and advised is not None
    advice = replace(best, optimizer=AT_THE_LIMIT, hint=say("DRAM is 95 % busy."))
    kernel = replace(make_advised(), advice=replace(advised, advice=(advice,)))
    assert list(list_first_suggestions(build_report(kernel))) == [
        "smooth is at its limit: DRAM is 95 % busy.",
        "what limits each kernel, and all suggestions: gpa-lsp advise",
    ]


def test_what_is_first_on_the_screen_is_first_in_every_list() -> None:
    advised = make_advised().advice
    assert advised is not None
    first, *others = advised.advice
    outside = replace(first, standing=Standing.OUTSIDE)
    kernel = replace(make_advised(), advice=replace(advised, advice=(outside, *others)))
    line, _ = list_first_suggestions(build_report(kernel))
    assert line == f"first suggestion for smooth: {describe_priced(others[0])}"
