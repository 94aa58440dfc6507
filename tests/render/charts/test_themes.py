"""Colours are legible on both grounds, and told apart by people of any colour vision."""

from itertools import combinations

import pytest

from gpa_lsp.document.charts.themes import (
    DARK_GROUND,
    KIND_SHAPES,
    LEVEL_COLOURS,
    LIGHT_GROUND,
    SERIES_COLOURS,
    build_config,
)
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind

# Source: Machado, Oliveira and Fernandes (2009), severity 1.0: linear RGB as it is seen.
DEUTERANOPIA = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))
PROTANOPIA = ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998))
USUAL = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def read_linear(colour: str) -> tuple[float, ...]:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return tuple(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)


def measure_contrast(one: str, other: str) -> float:
    """WCAG 2.2's contrast ratio."""
    low, high = sorted(
        0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in map(read_linear, (one, other))
    )
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("ground", [LIGHT_GROUND, DARK_GROUND])
def test_marks_stand_out(ground: str) -> None:
    for colour in (*LEVEL_COLOURS.values(), *SERIES_COLOURS):
        assert measure_contrast(colour, ground) >= 3, colour


@pytest.mark.parametrize(("dark", "ground"), [(False, LIGHT_GROUND), (True, DARK_GROUND)])
def test_text_is_legible(dark: bool, ground: str) -> None:
    config = build_config(dark=dark)
    assert config["background"] == ground
    colours = [config["axis"]["labelColor"], config["legend"]["labelColor"], config["text"]["color"]]
    colours += [config["title"]["subtitleColor"], config["style"]["peak-label"]["color"]]
    for colour in colours:
        assert measure_contrast(colour, ground) >= 4.5, colour
    assert measure_contrast(config["rule"]["color"], ground) >= 3


@pytest.mark.parametrize("seen", [USUAL, DEUTERANOPIA, PROTANOPIA], ids=["usual", "deuteranopia", "protanopia"])
def test_levels_are_told_apart(seen: tuple[tuple[float, ...], ...]) -> None:
    def look(colour: str) -> tuple[float, ...]:
        linear = read_linear(colour)
        found = (sum(weight * part for weight, part in zip(row, linear, strict=True)) for row in seen)
        return tuple(max(0.0, part) ** (1 / 2.4) for part in found)

    for one, other in combinations(LEVEL_COLOURS.values(), 2):
        distance = sum((a - b) ** 2 for a, b in zip(look(one), look(other), strict=True)) ** 0.5
        assert distance > 0.15, (one, other, distance)


def test_every_level_and_type_has_a_look() -> None:
    assert set(LEVEL_COLOURS) == set(MemoryLevel)
    assert set(KIND_SHAPES) == set(OperationKind)
    assert len(set(KIND_SHAPES.values())) == len(KIND_SHAPES)
