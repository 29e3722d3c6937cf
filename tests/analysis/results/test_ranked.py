"""The one table of results: the same columns in an artifact and in a terminal, and no wider than these are."""

import io
import json

import pytest
from rich.console import Console

from prefect_assay.analysis.results import (
    ResultRow,
    describe_outcomes,
    make_markdown_table,
    make_rich_table,
    summarize,
)
from prefect_assay.analysis.results.ranked import make_ranked_table

DASH = "–"  # noqa: RUF001  the sign for "not reported"
LAB = json.dumps({"data_source": "model"})


def row(name, **fields):
    values = {"experiment_code": "E-1", "result_id": "r", "result_type": "affinity", "level": "summary"}
    return ResultRow.model_validate({**values, "name": name, "outcome": "measured", **fields})


def measured(name, *kds, reported=None, strengths=("strong",) * 5, **fields):
    """K_D in nM."""
    place = {"experiment_code": fields.get("experiment_code", "E-1")}
    rows = [
        row(name, level="replicate", replicate=number, kd_M=kd * 1e-9, binding_strength=word, **place)
        for number, (kd, word) in enumerate(zip(kds, strengths, strict=False), start=1)
    ]
    mean = reported * 1e-9 if reported else None
    return [
        row(name, binding="true", kd_M=mean, **({"outcome": "measured" if mean else "binding"} | fields)),
        *rows,
    ]


CAMPAIGN = [
    *measured("second", 30, 33, 36, reported=33),
    *measured("best", 1.0, 1.1, 1.2, reported=1.1),
    *measured("chosen", 40, 60, 66, reported=40, strengths=("strong", "medium", "medium")),
    *measured("faint", 2500, 2700, 2600, strengths=("weak",) * 3, binding_strength="weak"),
    *measured("EGF", 100, 110, 120, reported=110, control=True),
    row("bound", kd_M=1e-12, qualifier="<"),
    row("silent", outcome="no_expression"),
    row("none", outcome="no_binding"),
]
DESIGNS = summarize(CAMPAIGN, targets={"E-1": "Human EGFR"})


def terminal(designs, width=80, **options):
    console = Console(file=io.StringIO(), width=width)
    console.print(make_rich_table(designs, **options))
    return console.file.getvalue()


def test_the_columns_are_those_that_a_decision_needs_and_constants_are_in_the_title():
    table = make_ranked_table(DESIGNS)
    assert table.title == "Binding affinity against Human EGFR, E-1"
    assert table.titles == ("#", "Design", "K_D", "95 % interval", "Laboratory", "Fold")
    elsewhere = DESIGNS[0].model_copy(update={"target": None})
    assert make_ranked_table([*DESIGNS, elsewhere]).title == "Binding affinity, E-1", "no target of all"
    cells = {line.design.name: line.cells for line in table.lines}
    assert cells["bound"][:3] == ("1 A", "bound", "< 1.00 pM")
    assert cells["best"][0] == "2 B"
    assert cells["chosen"][4] == "40.0 nM (1/3)"
    assert cells["faint"][2:5:2] == ("2.60 µM", "no value (weak)")
    assert cells["EGF"][:2] == ("ctl", "EGF")
    assert cells["none"][2:] == ("no binding", *[DASH] * 3)
    assert [line.design.name for line in table.lines][-2:] == ["none", "silent"]


def test_a_table_whose_laboratory_uses_all_replicates_does_not_repeat_it():
    assert "Laboratory" not in make_ranked_table(summarize(measured("a", 1, 2, reported=1.5))).titles


def test_values_are_whole_at_eighty_columns_whatever_the_names_are():
    long = [design.model_copy(update={"name": design.name + "x" * 90 + design.name}) for design in DESIGNS]
    alike = [
        design.model_copy(update={"name": f"x{'y' * 90}{n}{'z' * 90}"}) for n, design in enumerate(DESIGNS)
    ]
    judged = [design.model_copy(update={"verdict": "not_1_to_1", "doubts": ("x",)}) for design in long]
    for designs in (DESIGNS, long, alike, judged):
        text = terminal(designs)
        assert max(map(len, text.splitlines())) <= 80
        for value in ("< 1.00 pM", "1.10 nM", "54.1 nM", "2.60 µM", "no expression", "917 pM–1.31 nM"):  # noqa: RUF001
            assert value in text
        names = [line.cells[1] for line in make_ranked_table(designs).lines]
        assert len({*names}) == len(DESIGNS), "two designs stay two"
        assert all(name in text for name in names), "no cell is cut"
    assert "40.0 nM (1/3)" in terminal(DESIGNS)
    assert "not 1:1 !" in terminal(judged)


def test_the_artifact_has_the_same_cells_and_its_names_are_no_markup():
    table = make_ranked_table(DESIGNS)
    lines = [line for line in make_markdown_table(DESIGNS).splitlines() if line.startswith("|")]
    assert lines[0] == "| # | Design | K<sub>D</sub> | 95 % interval | Laboratory | Fold |"
    assert [line.split(" | ")[2].replace("&lt;", "<") for line in lines[2:]] == [
        c.cells[2] for c in table.lines
    ]
    odd = make_markdown_table(summarize([row("a|b\n[x](http://y) <img>", kd_M=1e-9)]))
    assert "a\\|b \\[x\\](http://y) &lt;img>" in odd
    assert make_markdown_table([]) == "No results.\n"
    assert "\nK<sub>D</sub>: geometric mean of all replicates" in make_markdown_table(DESIGNS)
    assert "… and 7 more" in make_markdown_table(DESIGNS, limit=1)


def test_a_terminal_shows_names_as_they_are():
    assert "[red]x[/red]" in terminal(summarize([row("[red]x[/red]", kd_M=1e-9)]))


def test_simulated_values_are_marked():
    made = [*measured("a", 1, 2, reported=1.5, extra=LAB), *measured("b", 3, 4, reported=3.5, extra=LAB)]
    assert make_ranked_table(summarize(made)).title.endswith("simulated")
    real = measured("c", 5, 6, reported=5.5)
    names = [line.cells[1] for line in make_ranked_table(summarize([*made, *real])).lines]
    assert names == ["a *", "b *", "c"]
    assert "*: simulated, from a local lab" in make_markdown_table(summarize([*made, *real])).replace(
        "\\*", "*"
    )
    assert describe_outcomes(summarize(made)).endswith("; simulated")


def test_a_doubt_is_in_the_verdict_and_below_the_table():
    rows = [row("EGF", outcome="no_binding", control=True), row("silent", outcome="no_binding")]
    table = make_ranked_table(summarize(rows))
    assert table.lines[1].cells[-1] == "!"
    assert table.notes == (
        "ctl: control.",
        "!: in doubt; control EGF was expected to bind, and did not bind.",
    )
    assert (
        describe_outcomes(summarize(rows))
        == "0 of 1 measured; a control failed: EGF was expected to bind, and did not bind"
    )
    several = [*rows, row("EGF-2", outcome="unknown", control=True)]
    assert describe_outcomes(summarize(several)).endswith("; 2 controls failed: EGF, EGF-2")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (CAMPAIGN, "5 of 7 bind, 1 did not express; best < 1.00 pM (bound)"),
        (
            [row("a", outcome="no_binding", binding="false"), row("b", outcome="no_expression")],
            "0 of 2 bind, 1 did not express",
        ),
        ([row("a", tm_C=61.25, result_type="thermostability")], "1 of 1 measured; best 61.2 °C (a)"),
        (
            [
                row(name, concentration_nM=nM, result_type="expression")
                for name, nM in (("a", 90), ("b", 1700))
            ],
            "2 of 2 measured; best 1.70 µM (b)",
        ),
        (
            [row("a", outcome="no_binding", binding="false"), row("b", outcome="pending")],
            "0 of 1 bind, 1 pending",
        ),
        (
            [row("a", kd_M=1e-9), row("b", outcome="unknown"), row("c", outcome="missing")],
            "1 of 1 bind, 1 unknown, 1 not reported; best 1.00 nM (a)",
        ),
        ([row("a", outcome="pending")], "no outcome is known yet, 1 pending"),
        ([row("EGF", kd_M=1e-9, control=True)], ""),
    ],
)
def test_the_outcome_is_one_line(rows, sentence):
    assert describe_outcomes(summarize(rows)) == sentence


def test_designs_of_several_campaigns_and_targets_say_whose_they_are():
    first = summarize(measured("a", 1, 2, reported=1.5), targets={"E-1": "EGFR"}, campaign_id="round-1")
    second = summarize(
        measured("b", 3, 4, reported=3.5, experiment_code="E-2"),
        targets={"E-2": "HER2"},
        campaign_id="round-2",
    )
    table = make_ranked_table([*first, *second])
    assert table.titles[-2:] == ("Campaign", "Target")
    assert table.lines[0].cells[-2:] == ("round-1", "EGFR")
    assert "Campaign" not in make_ranked_table(first).titles
    assert make_ranked_table(first).title.startswith("round-1, ")


def test_an_extrapolated_value_is_never_shown_as_one_that_the_curves_confirm():
    (design,) = summarize(measured("a", 6000, 6500, reported=6240), highest_molar={"E-1": 1e-6})
    assert design.extrapolated
    judged = design.model_copy(update={"verdict": "agrees"})
    table = make_ranked_table([judged])
    assert table.lines[0].cells[2] == "6.24 µM"
    assert table.lines[0].cells[-1] == "extrapolated"
    assert "extrapolated: K_D is above the highest concentration that was measured." in table.notes
    assert describe_outcomes([judged]) == "1 of 1 bind; best 6.24 µM, extrapolated (a)"
    review = judged.model_copy(update={"verdict": "review"})
    assert make_ranked_table([review]).lines[0].cells[-1] == "to review, extrapolated"


def test_rows_of_several_sources_say_each_theirs_and_those_of_one_do_not():
    (design,) = summarize(measured("a", 60, 65, reported=62))
    rows = [
        design.model_copy(update={"name": name, "data_source": word})
        for name, word in (("a", "model"), ("b", "measured"))
    ]
    table = make_ranked_table(rows)
    assert table.titles[-1] == "Source"
    assert [line.cells[-1] for line in table.lines] == ["model", "measured"]
    assert (
        "Source landscape or model: the lab made these values up, and they say nothing about real proteins."
        in table.notes
    )
    assert "Source" not in make_ranked_table(rows[:1]).titles


EXPRESSED = row("b", concentration_nM=20.0, result_type="expression")


@pytest.mark.parametrize(
    ("rows", "title", "values"),
    [
        (
            [row("a", koff_per_s=0.02, concentration_nM=900.0), row("b", kd_M=1e-7)],
            "K_D",
            ["100 nM", "measured"],
        ),
        ([row("a", kd_M=1e-7), EXPRESSED], "Result", ["100 nM", "20.0 nM expressed"]),
        (
            [row("a", tm_C=61.0, result_type="thermostability"), EXPRESSED],
            "Result",
            ["61.0 °C", "20.0 nM expressed"],
        ),
        ([EXPRESSED], "Concentration", ["20.0 nM"]),
        # A mapping says that the number is the measurement.
        ([row("a", concentration_nM=20.0, result_type="mass_photometry")], "Result", ["20.0 nM"]),
    ],
)
def test_a_concentration_is_never_shown_as_an_affinity(rows, title, values):
    table = make_ranked_table(summarize(rows))
    assert table.titles[2] == title
    assert [line.cells[2] for line in table.lines] == values


def test_the_best_of_an_affinity_without_k_d_is_not_its_concentration():
    designs = summarize([row("a", koff_per_s=0.02, concentration_nM=900.0, binding="true")])
    assert describe_outcomes(designs) == "1 of 1 bind"
