import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest

from prefect_assay.analysis.kinetics.analysis import Verdict
from prefect_assay.analysis.plots import draw_dose_response, draw_melting_curve, draw_sensorgrams
from prefect_assay.analysis.plots.svg import (
    BLUE,
    INK,
    MUTED,
    VERMILLION,
)
from support.reporting.campaigns import ASSOCIATION_S, CONCENTRATIONS_M, melt, replicate
from support.reporting.figure import Figure

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")


def curves(figure, color):
    """The measured curve of one concentration and its residuals, told apart by their height."""
    lines = [path.points for path in figure.lines(stroke=color, stroke_width="1.3")]
    return sorted((points for points in lines if points[0][0] > 50), key=lambda points: points[0][1])


def long_lines(figure, dashed):
    return [
        path.points
        for path in figure.lines(stroke=INK)
        if len(path.points) > 8 and ("stroke-dasharray" in path.attributes) is dashed
    ]


def test_each_concentration_has_a_curve_as_high_as_its_signal():
    drawn = Figure(draw_sensorgrams(replicate(noise=0)))
    tops = []
    for color, concentration in zip(COLORS, CONCENTRATIONS_M, strict=True):
        points = curves(drawn, color)[0]
        base = points[0][1]  # every curve starts at a signal of zero
        rate = 7e4 * (concentration + 7e-8)
        expected = concentration / (concentration + 7e-8) * -math.expm1(-rate * ASSOCIATION_S)
        tops.append((base - min(y for _, y in points)) / expected)
    assert tops == pytest.approx([tops[0]] * 5, rel=0.03)


def test_a_curve_starts_and_ends_at_the_times_of_the_axis():
    drawn = Figure(draw_sensorgrams(replicate()))
    points = curves(drawn, COLORS[0])[0]
    ticks = {text: drawn.word(text).x for text in ("0", "100", "400")}
    per_second = (ticks["400"] - ticks["100"]) / 300
    assert points[0][0] == pytest.approx(ticks["100"] - 100 * per_second, abs=0.2)
    assert points[-1][0] == pytest.approx(ticks["400"] + 79 * per_second, abs=20 * per_second)


@pytest.mark.parametrize("kd", [7e-8, 1e-6, 3e-6])
def test_a_drawn_curve_is_within_a_pixel_of_the_measured_one(kd):
    some = replicate(kd=kd, noise=0, points=2400)
    drawn = Figure(draw_sensorgrams(some))
    ticks = [word for word in drawn.words if word.text.replace(".", "").isdigit() and word.x < 55]
    upper = [word for word in ticks if word.y < drawn.word("residual (nm)").y - 60]
    (low, high) = (min(upper, key=lambda w: float(w.text)), max(upper, key=lambda w: float(w.text)))
    per_nm = (low.y - high.y) / (float(high.text) - float(low.text))
    zero = low.y - 3.5 + per_nm * float(low.text)
    for color, curve in zip(COLORS, some.curves, strict=True):
        xs, ys = zip(*curves(drawn, color)[0], strict=True)
        times = curve.curve.time_s * (xs[-1] - xs[0]) / curve.curve.time_s[-1] + xs[0]
        near = [np.interp(times + pixels, xs, ys) for pixels in (-0.7, 0, 0.7)]
        heights = zero - per_nm * curve.curve.signal
        assert (np.min(near, axis=0) - 0.7 < heights).all()
        assert (heights < np.max(near, axis=0) + 0.7).all()


def test_a_reading_that_stands_out_is_drawn():
    some = replicate(noise=0.01)
    some.curves[2].curve.signal[700] = 2.0
    drawn = Figure(draw_sensorgrams(some))
    highest = {color: min(y for _, y in curves(drawn, color)[0]) for color in COLORS}
    assert min(highest, key=highest.get) == COLORS[2]
    top = drawn.word("1.5").y - (drawn.word("1.0").y - drawn.word("1.5").y)
    assert highest[COLORS[2]] == pytest.approx(top - 3.5, abs=0.3)


def test_a_curve_without_binding_is_drawn_with_the_threshold():
    some = replicate(binds=False, noise=0.002)
    drawn = Figure(draw_sensorgrams(some))
    assert "threshold 0.05 nm" in drawn.texts
    high = drawn.word("0.04").y
    readings = [y for color in COLORS for _, y in curves(drawn, color)[0]]
    assert min(readings) > high, "the axis reaches the threshold, so flat curves look flat"
    assert "threshold 0.05 nm" not in Figure(draw_sensorgrams(replicate())).texts


def test_a_limit_is_the_value_of_a_caption():
    some = replicate()
    fit = some.kinetics.fit
    limit = fit.kd_uncertainty_M.model_copy(update={"value": None, "low": None})
    bound = fit.model_copy(update={"kd_M": limit, "kd_uncertainty_M": limit})
    kinetics = some.kinetics.model_copy(update={"fit": bound})
    drawn = Figure(draw_sensorgrams(type(some)(kinetics, some.curves, ASSOCIATION_S)))
    assert "replicate 2 · agrees · KD < 77.0 nM" in drawn.texts


def test_the_residuals_are_those_of_the_fit():
    exact = Figure(draw_sensorgrams(replicate(noise=0)))
    some = replicate(noise=0)
    lower = tuple(dataclasses.replace(curve, fitted=0.9 * curve.fitted) for curve in some.curves)
    missed = Figure(draw_sensorgrams(dataclasses.replace(some, curves=lower)))

    def spread(figure):
        return [
            max(y for _, y in c[1]) - min(y for _, y in c[1])
            for c in (curves(figure, k) for k in COLORS)
            if len(c) == 2
        ]

    assert spread(exact) == [0] * len(spread(exact))
    assert max(spread(missed)) > 20


@pytest.mark.parametrize(
    ("verdict", "word"),
    [
        (Verdict.AGREES, "agrees"),
        (Verdict.REVIEW, "to review"),
        (Verdict.NOT_1_TO_1, "not 1:1"),
        (Verdict.NO_BINDING, "no response"),
    ],
)
def test_name_verdict_and_interval_are_in_the_heading(verdict, word):
    drawn = Figure(draw_sensorgrams(replicate("EGFR_7", verdict=verdict)))
    assert drawn.texts.count("EGFR_7") == 1
    assert f"replicate 2 · {word} · KD 70.0 nM (63.0 to 77.0 nM)" in drawn.texts
    assert drawn.title == f"Sensorgrams of EGFR_7: replicate 2 · {word} · K_D 70.0 nM (63.0 to 77.0 nM)"


def test_the_dose_response_has_a_logarithmic_axis_and_the_measured_heights():
    drawn = Figure(draw_dose_response(replicate(noise=0)))
    legend = drawn.word("measured").y
    points = [point for point in sorted(drawn.marked(BLUE)) if point[1] > legend]
    steps = [b[0] - a[0] for a, b in pairwise(points)]
    assert len(points) == 5
    assert steps == pytest.approx([steps[0]] * 4, abs=0.3)
    assert steps[0] * 2 == pytest.approx(drawn.word("1 µM").x - drawn.word("100 nM").x, rel=0.01)
    heights = [y for _, y in points]
    assert heights == sorted(heights, reverse=True)


def test_the_isotherm_is_at_half_its_height_at_the_affinity():
    drawn = Figure(draw_dose_response(replicate(noise=0)))
    isotherm, at_end = long_lines(drawn, dashed=False)[0], long_lines(drawn, dashed=True)[0]
    zero = drawn.word("0.0").y
    whole = zero - drawn.word("1.0").y
    kd = next(
        path.points[0][0] for path in drawn.lines(stroke=MUTED) if path.attributes.get("stroke-dasharray")
    )
    xs, ys = zip(*isotherm, strict=True)
    assert zero - 3.5 - np.interp(kd, xs, ys) == pytest.approx(whole / 2, abs=1.5)
    assert (
        at_end[0][1] > isotherm[0][1]
    )  # below: at a low concentration equilibrium takes longer than association


def test_the_measured_points_lie_on_the_curve_expected_at_the_end_of_association():
    drawn = Figure(draw_dose_response(replicate(noise=0)))
    xs, ys = zip(*long_lines(drawn, dashed=True)[0], strict=True)
    legend = drawn.word("measured").y
    for x, y in drawn.marked(BLUE):
        if y > legend:
            assert y == pytest.approx(np.interp(x, xs, ys), abs=1.5)


def test_a_blank_and_a_missing_fit_do_not_end_the_dose_response():
    some = replicate(binds=False)
    blank = type(some.curves[0])(type(some.curves[0].curve)(0.0, *_readings(some)), {})
    drawn = Figure(draw_dose_response(type(some)(some.kinetics, (blank, *some.curves), ASSOCIATION_S)))
    assert "1:1 isotherm" not in drawn.texts
    assert len([y for _, y in drawn.marked(BLUE) if y > drawn.word("measured").y]) == 5


def _readings(some):
    return some.curves[0].curve.time_s, some.curves[0].curve.signal


def test_the_melting_temperature_is_where_the_axis_says():
    drawn = Figure(draw_melting_curve(melt(tm=60.0)))
    tick = {text: drawn.word(text).x for text in ("40", "60", "80")}
    tm = [p.points for p in drawn.lines(stroke=MUTED) if p.attributes.get("stroke-dasharray")]
    assert {round(points[0][0]) for points in tm if points[0][0] == points[1][0]} == {round(tick["60"])}
    steepest = [p.points[0][0] for p in drawn.lines(stroke=VERMILLION) if p.points[0][0] == p.points[1][0]]
    assert steepest == pytest.approx([tick["60"] + 3 * (tick["80"] - tick["40"]) / 40], abs=0.3)
    assert "replicate 1 · agrees · Tm 60.0 °C (59.0 to 61.0)" in drawn.texts


def test_a_curve_that_could_not_be_fitted_is_drawn_without_a_temperature():
    drawn = Figure(draw_melting_curve(melt(fitted=False)))
    assert not {"fit", "Tm", "residual"} & set(drawn.texts)
    assert "fit" in Figure(draw_melting_curve(melt())).texts, "of whatever model describes the curve"
    assert len(drawn.marked(BLUE)) > 40


@pytest.mark.parametrize("level", [0.0, 1e20])
def test_readings_that_are_all_equal_are_drawn(level):
    some, flat = replicate(), melt()
    for readings in (*(item.curve.signal for item in some.curves), flat.signal):
        readings[:] = level
    for svg in (draw_sensorgrams(some), draw_dose_response(some), draw_melting_curve(flat)):
        assert Figure(svg).title


def test_readings_that_are_no_numbers_leave_a_gap():
    some = replicate(binds=False)
    some.curves[1].curve.signal[-10:] = np.nan
    some.curves[2].curve.signal[:] = np.nan
    for svg in (draw_sensorgrams(some), draw_dose_response(some)):
        assert "nan" not in svg.lower()
