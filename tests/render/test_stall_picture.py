"""The picture of a line's stalls and its kernel's roofs."""

import base64
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.advice.model import UnitUse
from gpa_lsp.document.markdown_text import embed_picture
from gpa_lsp.document.stall_picture import (
    COLOURS,
    TEXT_COLOUR,
    StallPart,
    describe_picture,
    draw_stall_picture,
)

SVG = "{http://www.w3.org/2000/svg}"
PARTS = [StallPart(reason="long_scoreboard", ratio=0.75), StallPart(reason="wait", ratio=0.25)]
ROOFS = [
    UnitUse(name="DRAM", achieved_ratio=0.87, ceiling_ratio=0.85),
    UnitUse(name="SM", achieved_ratio=0.31, ceiling_ratio=1.0),
]
LIGHT, DARK = "#ffffff", "#1e1e1e"
MOST_BYTES = 4096
"""Of the picture as it stands in the text of a hover."""


def read_texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


def read_boxes(svg: str) -> list[tuple[str, float]]:
    boxes = ET.fromstring(svg).iter(f"{SVG}rect")
    return [(box.attrib["fill"], float(box.attrib["width"])) for box in boxes if box.attrib["fill"] != "none"]


def test_it_names_what_it_shows() -> None:
    assert read_texts(draw_stall_picture(PARTS, ROOFS)) == [
        "long_scoreboard 75 %", "wait 25 %", "DRAM", "87 %", "SM", "31 %",
    ]  # fmt: skip
    assert (
        describe_picture(PARTS, ROOFS)
        == "stalls of the line, of the kernel's samples: long_scoreboard 75 %, wait 25 %; of their peak: DRAM 87 %, SM 31 %"
    )


def test_bars_are_as_long_as_what_they_stand_for() -> None:
    (_, long), (_, short), *_ = read_boxes(draw_stall_picture(PARTS, []))
    assert long / short == pytest.approx(3, rel=0.02)
    half, whole = (UnitUse(name="L2", achieved_ratio=ratio, ceiling_ratio=1.0) for ratio in (0.5, 1.0))
    widths = [width for _, width in read_boxes(draw_stall_picture([], [half, whole]))]
    assert widths[1] == pytest.approx(2 * widths[0])


def test_a_unit_at_its_roof_stands_out() -> None:
    dram, sm = read_boxes(draw_stall_picture([], ROOFS))
    assert dram[0] != sm[0]


def test_many_reasons_share_one_box() -> None:
    parts = [StallPart(reason=f"r{number}", ratio=0.1) for number in range(10)]
    assert read_texts(draw_stall_picture(parts, []))[-1] == "others 60 %"


def test_what_holds_nothing_is_left_out() -> None:
    assert read_texts(draw_stall_picture([StallPart(reason="wait", ratio=0.0)], ROOFS[:1])) == ["DRAM", "87 %"]
    assert describe_picture([], ROOFS[:1]) == "of their peak: DRAM 87 %"


def measure_contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours. Source: WCAG 2.1, definitions of relative luminance and contrast ratio."""
    bright, dim = sorted((measure_luminance(one), measure_luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def measure_luminance(colour: str) -> float:
    channels = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colour", [*COLOURS.values(), TEXT_COLOUR])
def test_every_colour_reads_on_light_and_on_dark_ground(colour: str) -> None:
    assert measure_contrast(colour, LIGHT) >= 3
    assert measure_contrast(colour, DARK) >= 3


names = st.text(max_size=60)
ratios = st.floats(0, 1.5)


@given(
    parts=st.lists(st.builds(StallPart, reason=names, ratio=ratios), max_size=25),
    roofs=st.lists(st.builds(UnitUse, name=names, achieved_ratio=ratios, ceiling_ratio=ratios), max_size=8),
)
def test_whatever_a_profile_says_is_a_small_well_formed_picture(parts: list[StallPart], roofs: list[UnitUse]) -> None:
    svg = draw_stall_picture(parts, roofs)
    image = embed_picture(svg, describe_picture(parts, roofs))
    assert len(image.encode()) < MOST_BYTES
    assert "\n" not in image and image.count("](") == 1
    data = image.rpartition("base64,")[2].removesuffix(")")
    assert base64.b64decode(data).decode() == svg
    root = ET.fromstring(svg)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {"svg", "rect", "text", "path"}
    height = float(root.attrib["height"])
    assert all(0 <= float(box.attrib["y"]) <= height for box in root.iter(f"{SVG}rect"))


def test_names_are_escaped() -> None:
    svg = draw_stall_picture([StallPart(reason="</text><a>", ratio=1.0)], [])
    assert read_texts(svg) == ["</text><a> 100 %"]
