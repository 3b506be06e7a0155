"""Charts: well formed, with every point inside, whatever the figures are."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from fairlane.lab.bench.charts import Chart, Point, svg, thinned

SPACE = "{http://www.w3.org/2000/svg}"


def drawn(series: dict[str, list[Point]], **more: bool) -> ET.Element:
    """Draw a chart and parse it."""
    chart = Chart(name="n", title="a < b & c", x="seconds", y="ms", series=series, **more)
    return ET.fromstring(svg(chart))  # noqa: S314 (our own text)


@pytest.mark.parametrize("is_log_x", [False, True])
@pytest.mark.parametrize("is_log_y", [False, True])
@pytest.mark.parametrize(
    "points",
    [[], [(1.0, 1.0)], [(5.0, 7.0)] * 2, [(0.001, 900_000.0), (1e6, 0.02)], [(3.0, 17.0), (9.0, 2.0)]],
)
def test_every_point_stands_inside_the_picture(
    points: list[Point],
    is_log_x: bool,
    is_log_y: bool,
) -> None:
    """None, one, equal ones, and ones that are far apart."""
    picture = drawn({"all": points}, is_log_x=is_log_x, is_log_y=is_log_y)
    _, _, width, height = (float(number) for number in picture.attrib["viewBox"].split())
    dots = picture.findall(f"{SPACE}circle")
    assert len(dots) == len(points)
    for dot in dots:
        assert 0 <= float(dot.attrib["cx"]) <= width
        assert 0 <= float(dot.attrib["cy"]) <= height


def test_a_longer_wait_stands_higher() -> None:
    """The vertical axis of a picture runs down, that of a chart up."""
    low, high = drawn({"all": [(1, 10), (2, 1_000)]}).findall(f"{SPACE}circle")
    assert float(high.attrib["cy"]) < float(low.attrib["cy"])


def test_a_logarithmic_axis_leaves_out_what_is_not_above_zero() -> None:
    """There is no place for it, and no reason to fail."""
    assert len(drawn({"all": [(0, 0), (1, 5)]}).findall(f"{SPACE}circle")) == 1


def test_names_are_text_and_each_series_is_named() -> None:
    """A tenant may be called anything."""
    picture = drawn({"<noisy>": [(1, 1)], "quiet": [(1, 2)]}, has_lines=True)
    texts = [one.text for one in picture.findall(f"{SPACE}text")]
    assert {"a < b & c", "<noisy>", "quiet", "seconds", "ms"} <= set(texts)
    assert len(picture.findall(f"{SPACE}polyline")) == 2


def test_a_picture_of_very_many_points_stays_small() -> None:
    """Every so-manieth is drawn."""
    assert len(thinned([(float(at), 1.0) for at in range(100_000)])) <= 1_000
