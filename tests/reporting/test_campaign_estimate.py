"""The estimate of a campaign warns of what is worth a second look, once per design."""

import pytest

from prefect_assay.models.sequences import Duplicate, ProteinSequence, Sequences
from prefect_assay.models.spec import Assay
from prefect_assay.models.vocabulary import ExperimentType
from prefect_assay.reporting import artifacts
from prefect_assay.tasks.read import plan_campaign

PLAIN = "MKVLAAEIEKWLEEAKKLIEEAKKLAEEGRLE"


@pytest.fixture
def shown(monkeypatch):
    lines = []
    monkeypatch.setattr(artifacts, "_show", lambda given, **_: lines.extend(given))
    return lines


def plan(*designs: ProteinSequence):
    assay = Assay(experiment_type=ExperimentType.EXPRESSION)
    sequences = Sequences(source="designs.fasta", items=designs)
    return plan_campaign.fn(sequences, assay, None, campaign_id="c", per_experiment=2)


def test_a_control_of_every_experiment_is_counted_once(shown):
    control = ProteinSequence("control", PLAIN + "C", control=True)
    designs = [ProteinSequence(f"d{n}", PLAIN + "A" * (n + 1)) for n in range(3)]
    artifacts.show_campaign_estimate(plan(control, *designs), {})
    assert "Source: `designs.fasta`" in shown
    warning = "- `1 of 4 designs has an odd number of cysteines, so at least one is unpaired: 'control'`"
    assert shown[-4:] == ["", "Worth a second look:", "", warning]


def test_a_name_in_the_list_of_duplicates_is_no_markup(shown):
    given = plan(ProteinSequence("d", PLAIN))
    name = "<img src=x>"
    odd = given.model_copy(update={"duplicates": (Duplicate(name=name, same_as="[d](http://y)"),)})
    artifacts.show_campaign_estimate(odd, {})
    assert [line for line in shown if "img" in line] == [f"- `{name}` (same as `[d](http://y)`)"]


def test_plain_designs_have_no_such_section(shown):
    artifacts.show_campaign_estimate(plan(ProteinSequence("d", PLAIN)), {})
    assert "Worth a second look:" not in shown


def test_how_the_designs_were_read_is_in_the_artifact_and_in_the_form(shown):
    given = plan(ProteinSequence("d|1", PLAIN), ProteinSequence("d2", f"{PLAIN}A:{PLAIN}"))
    artifacts.show_campaign_estimate(given, {})
    assert "- `2 designs: 32 to 65 residues, median 48.5; 1 with 1 chain; 1 with 2 chains`" in shown
    figures = artifacts.reading_figures(given)
    assert figures["designs"].startswith("`2 designs: 32 to 65 residues")
    given = given.model_copy(
        update={"reading": ("2 designs", "first letters", "read as CSV", "1 row is left out", "variants?")}
    )
    assert artifacts.reading_figures(given) == {
        "designs": "`2 designs`",
        "read": "`1 row is left out; variants?`",
        "artifact": "`assay-campaign-estimate-c, with 2 more such lines`",
    }
