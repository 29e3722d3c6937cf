"""The summary of a report, its sequences, conditions and downloads, from small campaigns."""

import base64
import re
import shutil

import pytest

from prefect_assay.analysis.report.contents import collect_contents
from prefect_assay.analysis.report.decision import summarize_decision
from prefect_assay.analysis.report.details import list_conditions
from prefect_assay.analysis.report.documents import make_report
from prefect_assay.analysis.report.sequences import list_changes, sequences_of
from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.row import Level
from prefect_assay.analysis.results.summary import Scatters
from prefect_assay.archive import LocalStore
from support.reporting.campaigns import rows

CAMPAIGN = "round-1"


def designs(**residues):
    return [
        DesignSummary(name=name, experiment_code="E", outcome="measured", kd_M=1e-9, aa_string=text)
        for name, text in residues.items()
    ]


@pytest.mark.parametrize(
    ("base", "residues", "changes"),
    [
        ("ACDEF", "ACDEF", "the same residues"),
        ("ACDEF", "AGDEW", "C2G, F5W"),
        ("ACDEFGH", "ACGH", "3-5: DEF deleted"),
        ("ACGH", "ACDEFGH", "DEF inserted after 2"),
        ("ACDEFGH", "ACKKKKGH", "3-5: DEF to KKKK"),
        ("A" * 20, "G" * 20, ", ".join(f"A{position}G" for position in range(1, 13)) + ", and 8 more"),
    ],
)
def test_changes_lead_from_one_sequence_to_the_other(base, residues, changes):
    assert list_changes(base, residues) == changes


def test_a_design_is_compared_with_its_parent_or_with_the_nearest_measured_one():
    first, second, third = designs(a="ACDEFGHIKL", b="ACDEFGHIKV", c="WWWWWWWWWW:ACD")
    child = DesignSummary(
        name="child",
        experiment_code="E",
        outcome="pending",
        aa_string="ACDEWGHIKV",
        attributes={"parent": "a"},
    )
    sequences = {
        sequence.name: sequence
        for sequence in sequences_of([first, second, third, child], {"late": "ACDEFGHIKM"})
    }
    assert (sequences["child"].base, sequences["child"].is_parent, sequences["child"].changes) == (
        "a",
        True,
        "F5W, L10V",
    )
    assert (sequences["a"].base, sequences["a"].is_parent, sequences["a"].changes) == ("b", False, "V10L")
    assert (sequences["c"].lengths, sequences["c"].base, sequences["c"].changes) == ("10 + 3", "", "")
    assert sequences["late"].base == "a", "ordered, and not measured yet"


def judged(name, verdict, *, extrapolated=False):
    return DesignSummary(
        name=name,
        experiment_code="E",
        outcome="measured",
        kd_M=1e-6,
        verdict=verdict,
        extrapolated=extrapolated,
    )


def test_a_value_beyond_the_concentrations_is_not_counted_among_those_that_agree(archive, store):
    contents = collect_contents(store, "", CAMPAIGN)
    summaries = [judged("a", "agrees"), judged("b", "agrees", extrapolated=True)]
    lines = summarize_decision(contents, summaries, Scatters()).lines
    assert ("How sure", "Raw curves of the designs with a value: agrees (1), extrapolated (1).") in lines
    advice = (
        "K_D is extrapolated, above the highest concentration; measure it again with higher concentrations."
    )
    assert ("Next", f"b: {advice}") in lines


@pytest.mark.parametrize(
    ("fields", "is_of_curves"),
    [
        ({"verdict": "review", "reported_kd_M": 2e-10}, True),
        ({"verdict": "review", "reported_kd_M": 1e-9, "reported_qualifier": "<"}, False),
        ({"reported_kd_M": 1e-9, "reported_qualifier": "<"}, False),
        ({}, False),
    ],
)
def test_only_a_limit_of_the_curves_is_explained_by_them(archive, store, fields, is_of_curves):
    (design,) = designs(a="MKV")
    limit = design.model_copy(update={"qualifier": "<", **fields})
    lines = summarize_decision(collect_contents(store, "", CAMPAIGN), [limit], Scatters()).lines
    assert any("its curves do not bound" in line for _, line in lines) is is_of_curves


def test_a_pending_campaign_says_what_is_under_way(archive, store):
    for folder in (archive / CAMPAIGN).glob("LAB*"):
        shutil.rmtree(folder)
    contents = collect_contents(store, "", CAMPAIGN)
    lines = dict(summarize_decision(contents, (), Scatters()).lines)
    designs = sum(len(planned.spec.sequences) for planned in contents.plan.experiments)
    assert lines["Under way"].startswith(f"{designs} designs in 3 experiments without results: ")
    assert "1 ordered, not paid" in lines["Under way"]
    page = make_report(store, "", CAMPAIGN).page.decode()
    assert "No results yet." in page
    assert "0 of 0" not in page
    assert "Compared with" in page, "what was ordered is known"


def test_a_report_says_how_it_was_measured_and_has_its_tables_inside(lab_archive):
    made = make_report(LocalStore(lab_archive[0]), "", CAMPAIGN)
    page = made.page.decode()
    assert re.search(r"<dt>Replicates</dt><dd>\d( to \d)? per design</dd>", page)
    assert re.search(r"<dt>Concentrations</dt><dd>31\.6, 100, 316(\.2)?, 1000 nM", page)
    links = dict(re.findall(r'<a download="([^"]+)" href="data:[^;]+;base64,([^"]+)"', page))
    assert set(links) == {f"{CAMPAIGN}.csv"}
    table = base64.b64decode(links[f"{CAMPAIGN}.csv"])
    assert table == next(d.body for d in made.documents if d.path == "summary.csv")


def test_the_replicates_of_a_replaced_result_are_none_of_how_it_was_measured(archive, store):
    first = collect_contents(store, "", CAMPAIGN).experiments[0]
    (mean,) = rows("a", 1e-8)
    once = [mean.model_copy(update={"level": Level.SUMMARY}), *rows("a", 1e-8, 2e-8, 3e-8)]
    again = [row.model_copy(update={"result_id": "r-2"}) for row in once[:-1]]
    experiment = first.model_copy(update={"rows": (*once, *again, *rows("b", 1e-9, 2e-9))})
    assert list_conditions(experiment, ())[0] == ("Replicates", "2 per design")
