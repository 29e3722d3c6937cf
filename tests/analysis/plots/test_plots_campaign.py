import math
from itertools import pairwise

import pytest

from prefect_assay.analysis.plots import (
    draw_calls,
    draw_measured_against_predicted,
    draw_overview,
    draw_ranked_affinities,
    find_score_columns,
    has_enough_measured,
)
from prefect_assay.analysis.plots.svg import (
    BLUE,
    GRID,
    INK,
    PAPER,
)
from prefect_assay.analysis.report.figures import campaign_figures
from prefect_assay.analysis.results.ranked import format_value
from prefect_assay.analysis.results.row import Level, Outcome
from support.reporting.campaigns import rows, summary
from support.reporting.figure import Figure

NAMES = [f"EGFR_l{number}_s{number * 7919}_mpnn{number % 7}" for number in range(96)]


def below_legend(figure, points):
    legend = figure.word("design").y
    return sorted((point for point in points if point[1] > legend), key=lambda point: point[1])


def test_a_lower_affinity_constant_is_drawn_further_left_and_higher_up():
    kds = {"weak": 2e-6, "tight": 3e-9, "middle": 1e-7}
    drawn = Figure(draw_ranked_affinities([summary(name, kd) for name, kd in kds.items()], []))
    heights = [drawn.word(name).y for name in ("tight", "middle", "weak")]
    assert heights == sorted(heights)
    xs = [x for x, _ in below_legend(drawn, drawn.marked(BLUE))]
    decade = drawn.word("1 µM").x - drawn.word("100 nM").x
    assert xs[1] - xs[0] == pytest.approx(decade * math.log10(1e-7 / 3e-9), rel=0.01)
    assert xs[2] - xs[1] == pytest.approx(decade * math.log10(2e-6 / 1e-7), rel=0.01)
    assert xs[1] == pytest.approx(drawn.word("100 nM").x, abs=0.3)


def test_replicates_and_interval_are_at_their_values_in_the_row_of_their_design():
    designs = [summary("a", 1e-8), summary("b", 1e-6)]
    mean = rows("a", 1e-8)[0].model_copy(update={"level": Level.SUMMARY})
    measured = [mean, *rows("a", 5e-9, 1.5e-8), *rows("b", 2e-6), *rows("c", 1e-9)]
    drawn = Figure(draw_ranked_affinities(designs, measured))
    points = below_legend(drawn, drawn.marked(BLUE))
    replicates = below_legend(drawn, drawn.marked(PAPER))
    decade = points[1][0] - points[0][0]
    assert len(replicates) == 3  # that of a design without a summary has no row
    first = sorted((x for x, y in replicates if y == points[0][1]))
    assert first == pytest.approx([points[0][0] + decade / 2 * math.log10(f) for f in (0.5, 1.5)], abs=0.3)
    assert [x for x, y in replicates if y == points[1][1]] == pytest.approx(
        [points[1][0] + decade / 2 * math.log10(2)], abs=0.3
    )
    interval = [p.points for p in drawn.lines(stroke=INK) if p.points[0][1] == points[0][1]]
    assert [x for x, _ in interval[0]] == pytest.approx(
        [points[0][0] + decade / 2 * math.log10(f) for f in (0.5, 2)], abs=0.3
    )


@pytest.mark.parametrize(("qualifier", "end"), [("<", min), (">", max)])
def test_a_limit_is_an_arrow_to_the_end_of_the_axis(qualifier, end):
    designs = [summary("a", 1e-9), summary("bound", 1e-8, qualifier=qualifier), summary("b", 1e-6)]
    drawn = Figure(draw_ranked_affinities(designs, []))
    assert f"{qualifier} 10.0 nM" in drawn.texts
    row = drawn.word("bound").y - 3.5
    arrow = [p.points for p in drawn.lines(stroke=BLUE) if abs(p.points[0][1] - row) < 1]
    axis = [x for path in drawn.lines(stroke=GRID) for x, _ in path.points]
    assert end(x for x, _ in arrow[0]) == pytest.approx(end(axis), abs=0.3)


def test_designs_without_a_number_are_listed_by_outcome_and_have_no_point():
    designs = [
        summary("measured", 1e-8),
        summary("flat"),
        summary("refused", 5e-9, Outcome.NO_BINDING),  # a negative call overrides the fitted number
        summary("absent", outcome=Outcome.NO_EXPRESSION),
        summary("blank", control=True),
    ]
    drawn = Figure(draw_ranked_affinities(designs, []))
    assert len(below_legend(drawn, drawn.marked(BLUE))) == 1
    titles = [drawn.word(text).y for text in ("no binding (3)", "no expression (1)")]
    assert titles[0] < drawn.word("flat, refused, blank (control)").y < titles[1] < drawn.word("absent").y


def test_the_names_of_a_whole_plate_do_not_overlap():
    designs = [summary(name, 10 ** (-9 + number / 32)) for number, name in enumerate(NAMES)]
    drawn = Figure(draw_ranked_affinities(designs, []))
    names = [word for word in drawn.words if word.text.startswith("EGFR_")]
    assert len(names) == 96
    gaps = [b.y - a.y for a, b in pairwise(names)]
    assert min(gaps) > names[0].size * 1.2
    assert len({word.text for word in names}) == 96


def test_a_campaign_of_many_plates_says_what_is_left_out():
    designs = [summary(f"d{n}", 10 ** (-9 + n / 200)) for n in range(390)]
    designs += [summary(f"n{n}") for n in range(386)]
    drawn = Figure(draw_ranked_affinities(designs, []))
    assert "390 of 776 with a KD, tightest first; 384 are shown" in drawn.texts
    assert len(below_legend(drawn, drawn.marked(BLUE))) == 384
    assert drawn.words[-1].text.endswith("and 2 more")
    assert "the first 384; 390 with a KD, 386 no binding" in Figure(draw_overview(designs)).texts


def test_designs_of_several_targets_are_told_apart():
    designs = [summary("a", 1e-8, target="EGFR"), summary("a", 1e-6, target="HER2")]
    assert {"a (EGFR)", "a (HER2)"} <= set(Figure(draw_ranked_affinities(designs, [])).texts)
    assert {"a (EGFR)", "a (HER2)"} <= set(Figure(draw_overview(designs)).texts)


@pytest.mark.parametrize(
    "figure",
    [
        draw_overview,
        draw_calls,
        lambda s: draw_ranked_affinities(s, []),
        lambda s: draw_measured_against_predicted(s, "x"),
    ],
)
def test_a_campaign_without_designs_or_numbers_is_drawn(figure):
    assert Figure(figure([])).title
    assert Figure(figure([summary("a", outcome=Outcome.PENDING)])).title


def test_score_columns_are_the_designers_numbers():
    cells = [
        {"ipTM": "0.7", "method": "rfd", "pae": "4", "flag": "1", "some": "", "name": "1_1", "odd": "nan"},
        {
            "ipTM": "0.8",
            "method": "bind",
            "pae": "5",
            "flag": "0",
            "some": "1e3",
            "name": "1_2",
            "odd": "inf",
        },
        {"ipTM": "0.9", "method": "rfd", "pae": "high", "flag": "1", "some": "2", "name": "1_3", "odd": "1"},
        {"ipTM": "0.9", "method": "rfd", "pae": "6", "flag": "1", "some": "-3.5", "name": "1_4", "odd": "2"},
    ]
    designs = [summary(str(number), 1e-8, attributes=attributes) for number, attributes in enumerate(cells)]
    assert find_score_columns(designs) == ("ipTM", "some")
    assert not has_enough_measured(designs), "four points carry no comparison"
    assert has_enough_measured([*designs, *(summary(f"more {number}", 1e-8) for number in range(2))])


def test_known_scores_come_first_and_row_numbers_are_no_scores():
    titles = ["Rank", "Length", "Seed", "Helicity", "Average_pLDDT", "1_pLDDT", "Average_i_pTM", "Average_dG"]
    cells = [{title: str(number) for title in titles} for number in range(3)]
    designs = [summary(str(number), 1e-8, attributes=attributes) for number, attributes in enumerate(cells)]
    assert find_score_columns(designs) == (
        "Average_i_pTM",
        "Average_dG",
        "Average_pLDDT",
        "1_pLDDT",
        "Helicity",
    )


def scored(values):
    return [summary(f"d{n}", kd, attributes={"ipTM": str(score)}) for n, (score, kd) in enumerate(values)]


def test_the_rank_correlation_is_that_of_the_measured_designs():
    designs = scored([(0.4, 3e-6), (0.45, 2e-6), (0.5, 1e-6), (0.6, 4e-7), (0.7, 5e-7), (0.8, 1e-8)])
    extra = [
        summary("limit", 1e-5, qualifier=">", attributes={"ipTM": "0.99"}),
        summary("control", 1e-5, control=True, attributes={"ipTM": "0.98"}),
        summary("flat", attributes={"ipTM": "0.97"}),
        summary("without", 1e-5),
    ]
    drawn = Figure(draw_measured_against_predicted([*designs, *extra], "ipTM"))
    # Ranks 1 to 6 against 6 5 4 2 3 1: 1 - 6 (25 + 9 + 1 + 4 + 4 + 25) / (6 * 35)
    assert "Spearman ρ = −0.94 over 6 designs (higher is tighter)" in drawn.texts  # noqa: RUF001
    assert "no binding" in drawn.texts


@pytest.mark.parametrize(
    "values",
    [[(n, 10.0**-n) for n in range(5, 10)], [(0.5, 1e-6)] * 6, [(n, 1e-6) for n in range(6)]],
)
def test_no_correlation_is_claimed_for_too_few_or_equal_values(values):
    drawn = Figure(draw_measured_against_predicted(scored(values), "ipTM"))
    assert not [text for text in drawn.texts if "Spearman" in text]
    assert [text for text in drawn.texts if text.startswith("no rank correlation")]


def test_a_tighter_binder_is_drawn_higher_and_a_higher_score_further_right():
    drawn = Figure(draw_measured_against_predicted(scored([(0.5, 1e-6), (0.7, 1e-9), (0.6, 1e-8)]), "ipTM"))
    points = sorted(below_legend(drawn, drawn.marked(BLUE)))
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)
    assert points[1][0] - points[0][0] == pytest.approx(points[2][0] - points[1][0], abs=0.3)


@pytest.mark.parametrize("measured", [{"tm_C": 55.0}, {"kd": 1e-8}])
def test_a_score_that_no_measured_design_has_gets_no_figure(measured):
    silent = [
        summary(f"silent {n}", outcome=Outcome.NO_EXPRESSION, attributes={"plddt": f"{80 + n}"})
        for n in range(3)
    ]
    scored = [
        summary(f"d{n}", outcome=Outcome.MEASURED, attributes={"ipTM": f"0.{n}"}, **measured)
        for n in range(6)
    ]
    assert {*campaign_figures((*silent, *scored), ()).predicted} == {"ipTM"}
    assert Figure(draw_measured_against_predicted([*silent, *scored], "plddt")).title


@pytest.mark.parametrize("scores", [[-999.0] * 4, [1e20] * 4, [1e-20] * 4, [0.0, 1e17, 1e17, 1e17]])
def test_equal_and_very_large_scores_are_drawn(scores):
    drawn = Figure(draw_measured_against_predicted(scored([(score, 1e-8) for score in scores]), "ipTM"))
    assert len(below_legend(drawn, drawn.marked(BLUE))) == 4


def test_a_melting_campaign_is_compared_by_its_temperatures():
    designs = [
        summary(str(n), outcome=Outcome.MEASURED, tm_C=50.0 + n, attributes={"predicted": str(40 + n)})
        for n in range(6)
    ]
    drawn = Figure(draw_measured_against_predicted(designs, "predicted"))
    assert "Spearman ρ = 1.00 over 6 designs (higher is more stable)" in drawn.texts  # noqa: RUF001
    heights = [y for _, y in sorted(below_legend(drawn, drawn.marked(BLUE)))]
    assert heights == sorted(heights, reverse=True)


def test_each_cell_of_the_overview_says_its_value_in_words_and_has_a_step_of_color():
    designs = [
        summary("a", 5e-10),
        summary("b", 5e-8, qualifier="<"),
        summary("c", 5e-6),
        summary("d", outcome=Outcome.BINDING, binding_strength="weak"),
        summary("e", outcome=Outcome.MEASURED, tm_C=61.26),
        summary("f", outcome=Outcome.NO_EXPRESSION),
    ]
    drawn = Figure(draw_overview(designs))
    values = ["500 pM", "< 50.0 nM", "5.00 µM", "binds, weak", "61.3 °C", "no expression"]
    assert [drawn.word(value).y for value in values] == [drawn.word(values[0]).y] * 6
    xs = [drawn.word(value).x for value in values]
    assert xs == sorted(xs)

    assert [fill(drawn, x) for x in xs] == ["#00224e", PAPER, "#fee838", PAPER, PAPER, PAPER]


def fill(drawn, x):
    cells = [
        p
        for p in drawn.paths
        if p.points[0][1] > 70 and min(q[0] for q in p.points) < x < max(q[0] for q in p.points)
    ]
    return cells[-1].attributes["fill"]


@pytest.mark.parametrize(
    ("kd", "qualifier", "color"),
    [
        (1e-6, ">", "#fee838"),
        (5e-6, ">", "#fee838"),
        (5e-7, ">", PAPER),
        (1e-9, "<", "#00224e"),
        (5e-9, "<", PAPER),
        (1e-6, None, "#bcaf6f"),
    ],
)
def test_a_limit_has_a_color_only_where_all_its_values_have_it(kd, qualifier, color):
    design = summary("a", kd, qualifier=qualifier)
    drawn = Figure(draw_overview([design]))
    assert fill(drawn, drawn.word(format_value(design)).x) == color


@pytest.mark.parametrize("changed", [{"result_id": "r-2"}, {"extra": '{"one_of_targets": "HER2"}'}])
def test_replicates_of_a_result_that_a_later_one_replaces_are_not_drawn(changed):
    (mean,) = rows("a", 1e-8)
    first = [mean.model_copy(update={"level": Level.SUMMARY}), *rows("a", 1e-8, 2e-8)]
    later = [row.model_copy(update=changed) for row in first]
    drawn = Figure(draw_ranked_affinities([summary("a", 1e-8)], [*first, *later]))
    assert len(below_legend(drawn, drawn.marked(PAPER))) == 2


def test_a_replicate_is_drawn_as_what_it_is_counted_as():
    exact, limit, refused = rows("a", 1e-8, 1e-9, 5e-6)
    measured = [
        exact,
        limit.model_copy(update={"qualifier": "<"}),
        refused.model_copy(update={"outcome": Outcome.NO_BINDING}),
    ]
    drawn = Figure(draw_ranked_affinities([summary("a", 1e-8)], measured))
    marks = [
        mark.tag.rpartition("}")[2]
        for group in drawn.root.iterfind("{*}g")
        if group.get("fill") == PAPER
        for mark in group
    ]
    assert marks == ["circle", "circle", "path"]  # the first is that of the legend
    assert "10 µM" not in drawn.texts, "the axis ends at what is drawn"


def test_calls_are_counted_by_expression_and_binding():
    designs = [
        *(summary(f"s{n}", 1e-9, expression="high", binding_strength="strong") for n in range(3)),
        summary("w", 1e-6, expression="low", binding_strength="weak"),
        summary("n", expression="High"),
        summary("x", outcome=Outcome.NO_EXPRESSION, expression="none"),
        summary("c", 1e-9, control=True, expression="high", binding_strength="strong"),
    ]
    drawn = Figure(draw_calls(designs))
    assert "6 designs, controls left out: 1" in drawn.texts

    def count(expression, binding):
        x, y = drawn.word(binding).x, max(w.y for w in drawn.words if w.text == expression and w.x == 10)
        return [word.text for word in drawn.words if word.x == x and word.y == y]

    assert count("high", "strong") == ["3"]
    assert count("low", "weak") == ["1"]
    assert count("none", "untested") == ["1"]
    assert count("high", "untested") == ["0"]
    assert count("all", "strong") == ["3"]
    bars = sorted(p.points[1][0] - p.points[0][0] for p in drawn.lines(fill=BLUE))
    assert bars[-1] == pytest.approx(3 * bars[0], abs=0.2)


def test_the_ranking_names_each_verdict_and_its_sign():
    designs = [
        summary("a", 1e-9, verdict="agrees"),
        summary("b", 1e-8, verdict="not_1_to_1"),
        summary("c", 1e-7),
    ]
    drawn = Figure(draw_ranked_affinities(designs, []))
    assert "✓ agrees; ≠ not 1:1" in drawn.texts
    assert {"1.00 nM ✓", "10.0 nM ≠", "100 nM"} <= {*drawn.texts}


def test_a_value_that_the_curves_do_not_reach_is_drawn_as_extrapolated_and_not_as_agreeing():
    designs = [
        summary("a", 1e-6, verdict="agrees", extrapolated=True),
        summary("b", 2e-6, verdict="review", extrapolated=True),
    ]
    drawn = Figure(draw_ranked_affinities(designs, []))
    assert "? to review; ↑ extrapolated" in drawn.texts
    assert {"1.00 µM ↑", "2.00 µM ?↑"} <= {*drawn.texts}
    assert not any("agrees" in text or "✓" in text for text in drawn.texts)
