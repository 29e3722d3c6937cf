"""The order key: the same order has the same key, any other has another."""

import re

from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.ordering import experiment_name, order_key, search_token

RESIDUES = st.text(alphabet="ACDEFGHIKLMNPQRSTVWY", min_size=1, max_size=30)
SEQUENCES = st.dictionaries(st.text(min_size=1, max_size=12), RESIDUES, min_size=1, max_size=6)


def spec(sequences, **changes):
    values = {
        "experiment_type": "affinity",
        "method": "bli",
        "target_id": "2f1a3c55-0000-4000-8000-000000000001",
        "sequences": {name: {"aa_string": residues} for name, residues in sequences.items()},
    }
    return ExperimentSpec.model_validate(values | changes)


@given(SEQUENCES)
def test_order_of_sequences_and_spelled_out_defaults_do_not_count(sequences):
    backwards = dict(reversed(sequences.items()))
    spelled = spec(backwards, n_replicates=3, antigen_concentrations=[1000.0, 316.2, 100.0, 31.6, 0.0])
    assert order_key("c", 0, spec(sequences)) == order_key("c", 0, spelled)


@given(SEQUENCES, SEQUENCES)
def test_other_sequences_are_another_order(one, other):
    same = order_key("c", 0, spec(one)) == order_key("c", 0, spec(other))
    assert same == (one == other)


def test_everything_that_costs_something_counts():
    base = spec({"a": "ACD"})
    keys = {
        order_key("c", 0, base),
        order_key("d", 0, base),
        order_key("c", 1, base),
        order_key("c", 0, spec({"a": "ACD"}, n_replicates=2)),
        order_key("c", 0, spec({"a": "ACD"}, method="spr")),
        order_key("c", 0, spec({"a": "ACD"}, antigen_concentrations=[10.0])),
        order_key("c", 0, spec({"b": "ACD"})),
    }
    assert len(keys) == 7


@given(st.text(max_size=200))
def test_the_name_always_holds_the_search_token_as_a_word(label):
    key = order_key("c", 0, spec({"a": "ACD"}))
    name = experiment_name(label, 0, 3, key)
    assert search_token(key) in name.split()
    assert re.fullmatch(r"pa-[0-9a-f]{20}", search_token(key))
    assert len(name) < 100
