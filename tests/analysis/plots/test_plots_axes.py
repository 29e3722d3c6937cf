"""Axes, lines and what is in no figure: a point outside its panel, a coordinate that is not a number."""

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.analysis.plots import draw_dose_response, draw_melting_curve, draw_sensorgrams
from prefect_assay.analysis.plots.curves import draw_readings
from prefect_assay.analysis.plots.scales import make_linear_scale, make_molar_scale
from prefect_assay.analysis.plots.sheet import Line, Sheet
from prefect_assay.analysis.plots.svg import write_path, write_pixels
from support.reporting.campaigns import melt, replicate
from support.reporting.figure import Figure, decoded

ends = st.tuples(st.floats(-1e9, 1e9), st.floats(-9, 9)).map(lambda e: (e[0], e[0] + 10 ** e[1]))
spans = ends.filter(lambda e: e[1] - e[0] > abs(e[0]) * 1e-9)


def read_tick(label):
    return float(label.replace("−", "-"))  # noqa: RUF001


@given(spans, st.integers(3, 9))
def test_a_linear_axis_has_two_ticks_or_more_at_round_values(span, most):
    scale = make_linear_scale(*span, most=most)
    values, labels = zip(*scale.ticks, strict=True)
    assert 2 <= len(values) <= most
    assert all(span[0] <= value <= span[1] for value in values)
    assert len(set(labels)) == len(labels)
    assert [read_tick(label) for label in labels] == pytest.approx(values, rel=1e-12, abs=1e-12)
    steps = [after - before for before, after in pairwise(values)]
    assert steps == pytest.approx([steps[0]] * len(steps), rel=1e-5)
    assert round(steps[0] / 10 ** math.floor(math.log10(steps[0]) + 1e-4), 3) in {1, 2, 2.5, 5}
    assert max(values) - min(values) >= (span[1] - span[0]) / 3, "the ticks cover the data"


@pytest.mark.parametrize(
    ("span", "labels"),
    [
        ((-0.02, 0.021), ["−0.02", "−0.01", "0.00", "0.01", "0.02"]),  # noqa: RUF001
        ((0, 479), ["0", "100", "200", "300", "400"]),
        ((0, 1.5e6), ["0", "5e5", "1e6", "1.5e6"]),
        ((0, 3e-5), ["0", "1e−5", "2e−5", "3e−5"]),  # noqa: RUF001
        ((0.1, 0.3), ["0.10", "0.15", "0.20", "0.25", "0.30"]),
    ],
)
def test_labels_have_equally_many_decimals_or_an_exponent(span, labels):
    assert [label for _, label in make_linear_scale(*span, most=5).ticks] == labels


@given(st.floats(-14, -2), st.floats(0.35, 12))
def test_a_molar_axis_has_a_label_and_mostly_several_that_are_apart(power, decades):
    scale = make_molar_scale(10**power, 10 ** (power + decades), "")
    shares = [scale.get_share(value) for value, _ in scale.ticks]
    assert 1 <= len(shares) <= 9
    assert all(-1e-6 <= share <= 1 + 1e-6 for share in shares)
    assert all(after - before > 0.05 for before, after in pairwise(shares))
    assert len(shares) > 1 or decades < 0.5


coordinates = st.floats(-2000, 2000)


@given(st.lists(st.tuples(st.floats(0, 3), coordinates), min_size=1, max_size=60))
def test_a_path_passes_every_point_within_half_a_pixel(steps):
    xs = np.cumsum([step for step, _ in steps]).tolist()
    points = list(zip(xs, (y for _, y in steps), strict=True))
    kept = decoded(write_path(points))
    assert kept[0] == pytest.approx(points[0], abs=0.051)
    assert kept[-1] == pytest.approx(points[-1], abs=0.051)
    for x, y in points:
        near = [(a, b) for a, b in pairwise(kept) if a[0] - 0.06 <= x <= b[0] + 0.06] or [(kept[0], kept[0])]
        heights = [
            a[1] + (b[1] - a[1]) * (min(max(x, a[0]), b[0]) - a[0]) / (b[0] - a[0])
            for a, b in near
            if b[0] > a[0]
        ]
        heights += [end[1] for pair in near for end in pair]
        steep = max(abs(b[1] - a[1]) / (b[0] - a[0]) if b[0] > a[0] else 0 for a, b in near)
        assert min(abs(height - y) for height in heights) <= 0.31 + 0.1 * steep


def test_a_point_that_is_no_number_leaves_a_gap():
    assert write_path([(0, 0), (1, 1), (math.nan, 1), (3, 3), (4, 3)]) == "M0 0l1 1M3 3l1 0"
    assert write_path([(math.inf, 0), (0, math.nan)]) == ""


@given(st.floats(-5000, 5000))
def test_a_number_has_at_most_one_decimal_and_is_as_short_as_svg_allows(value):
    text = write_pixels(value)
    assert float(text) == pytest.approx(value, abs=0.0501)
    assert re.fullmatch(r"-?([1-9]\d*(\.[1-9])?|\.[1-9])|0", text)


readings = st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(math.nan)), min_size=2, max_size=300)


@given(readings, st.floats(0, 1))
def test_readings_are_drawn_within_the_panel_with_their_extremes(values, start):
    ys = np.array(values)
    xs = np.linspace(0, 1, len(ys))
    finite = ys[np.isfinite(ys)]
    if not len(finite):
        return
    sheet = Sheet(440, 300)
    low, high = float(finite.min()), float(finite.max() + 1)
    panel = sheet.add_panel(50, 20, 300, 200, make_linear_scale(0, 1), make_linear_scale(low, high))
    before = len(Figure(sheet.write_svg("t")).paths)
    draw_readings(panel, xs, ys, Line("#010203"), column_px=9, starts=(0.0, start))
    paths = Figure(sheet.write_svg("t")).paths[before:]
    drawn = [point for path in paths for point in path.points]
    assert all(49.9 <= x <= 350.1 and 19.9 <= y <= 220.1 for x, y in drawn)
    for extreme in (finite.min(), finite.max()):
        assert min(abs(y - panel.place_y(extreme)) for _, y in drawn) <= 0.31
    assert len(drawn) <= 2 * (2 * 9 + 300 / 9 + 3) + 2 * int(np.isnan(ys).sum())


@pytest.mark.parametrize("noise", [0, 0.01, 5])
def test_no_figure_of_a_curve_draws_outside_its_panels_or_what_is_no_number(noise):
    some = replicate(noise=noise)
    some.curves[0].curve.signal[100:110] = np.nan
    for svg in (draw_sensorgrams(some), draw_dose_response(some), draw_melting_curve(melt())):
        assert not re.search(
            r"nan|inf(?!o)|\de[+-]?\d", re.sub(r"<t(itle|ext)[^>]*>[^<]*|#\w+", "", svg).lower()
        )
        drawn = Figure(svg)
        width, height = float(drawn.root.get("width")), float(drawn.root.get("height"))
        points = [point for path in drawn.paths for point in path.points]
        points += [(x, y) for x, y, _ in drawn.markers]
        assert all(0 <= x <= width and 0 <= y <= height for x, y in points)
