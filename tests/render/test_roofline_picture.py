"""The small picture of a roofline for hovers."""

import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.roofline_model import KernelRoofline
from gpa_lsp.document.markdown_text import embed_picture
from gpa_lsp.document.roofline_picture import describe_roofline_picture, draw_roofline_picture
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from tests.conftest import examples
from tests.render.charts.roofline_examples import PEAKS, make_machine, make_roofline

FP32 = OperationKind.FP32
MOST_BYTES = 8192
"""Of the picture as it stands in the text of a hover."""


def make(**options: object) -> KernelRoofline:
    machine = make_machine()
    line = make_roofline(machine, **options)  # type: ignore[arg-type]
    return KernelRoofline(machine=machine, whole=line, launches=())


def test_picture_has_roofs_and_points() -> None:
    svg = draw_roofline_picture(make())
    assert svg is not None
    root = ElementTree.fromstring(svg)
    circles = root.findall("{http://www.w3.org/2000/svg}circle")
    assert len(circles) == 3
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"FP32: 32.0 TFLOP/s", "DRAM: 1.00 TB/s", "L2: 3.00 TB/s", "L1: 10.0 TB/s"} <= set(texts)


def test_points_stand_below_their_roofs() -> None:
    """0.8 of the DRAM's bandwidth: the point of DRAM is just right of its line; higher rates stand higher."""

    def find_height(rate: float) -> float:
        svg = draw_roofline_picture(
            make(rates={FP32: rate, OperationKind.INT32: 1e12}, traffic={MemoryLevel.DRAM: 1e12})
        )
        assert svg is not None
        return float(re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"', svg)[0])

    assert find_height(8e12) < find_height(4e12) < find_height(2e12)


def test_levels_of_one_bandwidth_share_a_name() -> None:
    traffic = {MemoryLevel.SHARED: 1e12, MemoryLevel.L1: 1e12}
    svg = draw_roofline_picture(make(traffic=traffic))
    assert svg is not None
    assert "shared memory, L1: 10.0 TB/s" in svg


def test_nothing_to_draw() -> None:
    assert draw_roofline_picture(make(rates={}, traffic={})) is None
    assert draw_roofline_picture(replace(make(), whole=None)) is None


def test_words_for_those_who_do_not_see_it() -> None:
    words = describe_roofline_picture(make())
    assert words.startswith("roofline: DRAM bandwidth at 80 %")
    assert "headroom 1.06×" in words


@examples(80)
@given(
    st.dictionaries(st.sampled_from(list(PEAKS)), st.floats(min_value=1, max_value=1e18), min_size=1),
    st.dictionaries(st.sampled_from(list(MemoryLevel)), st.floats(min_value=1, max_value=1e18), min_size=1),
)
def test_pictures_are_small_and_sound(rates: dict[OperationKind, float], traffic: dict[MemoryLevel, float]) -> None:
    svg = draw_roofline_picture(make(rates=rates, traffic=traffic))
    assert svg is not None
    ElementTree.fromstring(svg)
    assert "nan" not in svg
    assert "inf" not in svg
    assert len(embed_picture(svg, "roofline")) < MOST_BYTES
