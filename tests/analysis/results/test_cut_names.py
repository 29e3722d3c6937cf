"""Names that are cut for people or for a key: two that begin alike stay two."""

from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.analysis.results import make_markdown_table, summarize
from prefect_assay.analysis.results.row import ResultRow
from prefect_assay.campaigns.artifacts import label_of
from prefect_assay.orders.identity import experiment_name
from prefect_assay.service.bounds import cut

START = "d" * 80


@given(st.text(min_size=0), st.text(min_size=0), st.integers(min_value=20, max_value=60))
def test_two_names_stay_two_and_short_ones_stay_as_they_are(one, other, longest):
    first, second = cut(START + one, longest), cut(START + other, longest)
    assert (first == second) == (one == other)
    assert len(first) <= longest
    assert cut("short", longest) == "short"


def row(name):
    return ResultRow(
        experiment_code="E-1",
        result_id=f"r-{name[-1]}",
        result_type="affinity",
        level="summary",
        name=name,
        outcome="measured",
        kd_M=1e-9,
    )


def test_two_long_design_names_are_two_in_a_table():
    lines = {
        line
        for line in make_markdown_table(summarize([row(START + "1"), row(START + "2")])).splitlines()
        if "ddd" in line
    }
    assert len(lines) == 2


def test_campaigns_that_differ_in_case_or_punctuation_have_artifacts_of_their_own():
    ids = ["a-1", "a.1", "A-1", "a_1"]
    assert len({label_of(name) for name in ids}) == len(ids)
    assert label_of("a-1", 0) == "a-1-1"


def test_two_orders_of_long_labels_have_names_of_their_own():
    assert experiment_name(START + "1", 0, 1, "0" * 20) != experiment_name(START + "2", 0, 1, "1" * 20)
