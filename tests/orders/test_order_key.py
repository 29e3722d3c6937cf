"""The order key: the same order has the same key, any other has another."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.orders.identity import experiment_name, order_key, search_token
from prefect_assay.service.models.spec import ExperimentSpec

TARGET = "2f1a3c55-0000-4000-8000-00000000abcd"
NAMES = st.text(min_size=1, max_size=12)
RESIDUES = st.text(alphabet="ACDEFGHIKLMNPQRSTVWY", min_size=1, max_size=30)
SEQUENCES = st.dictionaries(NAMES, RESIDUES, min_size=1, max_size=6)
KEYS = st.text(alphabet="0123456789abcdef", min_size=20, max_size=20)
TWO = {"a": {"aa_string": "ACDEF"}, "b": {"aa_string": "GHIKL", "control": True}}
FAB = {"type": "FAB", "framework_regions": {"ch": "x", "cl": "y"}, "VH": None, "tag_location": ""}


def spec(sequences, **changes):
    values = {"experiment_type": "affinity", "method": "bli", "target_id": TARGET, "sequences": sequences}
    return ExperimentSpec.model_validate(values | changes)


def untargeted(kind, sequences=TWO, **changes):
    return spec(sequences, experiment_type=kind, method=None, target_id=None, **changes)


@given(SEQUENCES)
def test_order_of_sequences_and_spelled_out_defaults_do_not_count(sequences):
    backwards = dict(reversed(sequences.items()))
    spelled = spec(backwards, n_replicates=3, antigen_concentrations=[1000.0, 316.2, 100.0, 31.6, 0.0])
    assert order_key("c", 0, spec(sequences)) == order_key("c", 0, spelled)


@given(SEQUENCES, SEQUENCES)
def test_other_sequences_are_another_order(one, other):
    same = order_key("c", 0, spec(one)) == order_key("c", 0, spec(other))
    assert same == (one == other)


@st.composite
def spellings(draw, sequences):
    """Another way to write the same order."""

    def cased(text):
        return "".join(draw(st.sampled_from([letter.lower(), letter.upper()])) for letter in text)

    def value(residues):
        bare = cased(residues)
        fields = st.sampled_from([{}, {"control": False}, {"metadata": {}}, {"metadata": None}])
        return draw(st.one_of(st.just(bare), fields.map(lambda more: {"aa_string": bare} | more)))

    empty = draw(st.sampled_from([{}, {"parameters": {}}, {"parameters": None}]))
    names = draw(st.permutations(list(sequences)))
    return spec({name: value(sequences[name]) for name in names}, target_id=cased(TARGET), **empty)


@given(st.data(), SEQUENCES, SEQUENCES)
def test_spellings_that_the_service_treats_alike_have_one_key(data, one, other):
    first, second, third = (data.draw(spellings(sequences)) for sequences in (one, one, other))
    assert order_key("c", 0, first) == order_key("c", 0, second) == order_key("c", 0, spec(one))
    assert (order_key("c", 0, first) == order_key("c", 0, third)) == (one == other)


@pytest.mark.parametrize(
    ("campaign_id", "index", "specification", "key"),
    [
        ("c-1", 0, spec(TWO), "9db295bf5632e4cea364"),
        (
            "c-1",
            1,
            spec(TWO, method="spr", n_replicates=5, antigen_concentrations=[10, 2.5]),
            "cdd9d43daf5fef21e00e",
        ),
        ("c-1", 0, spec(TWO, experiment_type="screening"), "94743554b42240ef67d7"),
        (
            "c-1",
            0,
            untargeted("thermostability", parameters={"ramp": {"from": 25, "note": None}}),
            "2ccb6fc8030bc1e0ef3d",
        ),
        ("c-1", 0, untargeted("fluorescence"), "e8a8598effb8c7f9b8f2"),
        (
            "c-1",
            0,
            untargeted("expression", {"fab": {"aa_string": "ACD:EFG", "metadata": FAB}}),
            "9793357c154f73a48675",
        ),
        (
            "c-1",
            0,
            spec(
                {name: f"ACD{last}" for name, last in zip("abcd", "KLMN", strict=True)},
                experiment_type="epitope_binning",
                method=None,
            ),
            "5b5a0a0fbb5c44cee83c",
        ),
        ("c-1", 0, untargeted("enzyme_activity", n_replicates=1), "3a1528c64e66a0ad9f73"),
        ("Ünï", 3, untargeted("expression", {"ä": "ACD"}), "c50eec301b94cb1d727b"),
    ],
)
def test_the_key_of_an_order_never_changes(campaign_id, index, specification, key):
    """An order that waits, or is done, is found by it, also after an upgrade."""
    assert order_key(campaign_id, index, specification) == key


@pytest.mark.parametrize(
    "changes",
    [
        {"n_replicates": 2},
        {"method": "spr"},
        {"antigen_concentrations": [10.0]},
        {"experiment_type": "screening"},
        {"target_id": TARGET.replace("2", "3")},
        {"target_id": f" {TARGET}"},  # the service refuses it
        {"parameters": {"a": {}}},
        {"parameters": {"a": None}},
        {"sequences": {"A": "ACS"}},
        {"sequences": {"a": "ACS "}},
        {"sequences": {"a": "AC\u017f"}},  # a long s: upper() makes an S of it
        {"sequences": {"a": {"aa_string": "ACS", "control": True}}},
        {"sequences": {"a": {"aa_string": "ACS", "metadata": {"type": None}}}},
    ],
)
def test_everything_that_costs_something_counts(changes):
    base = spec({"a": "ACS"})
    changed = spec(**{"sequences": {"a": "ACS"}} | changes)
    keys = {order_key("c", 0, base), order_key("d", 0, base), order_key("c", 1, base)}
    assert len(keys | {order_key("c", 0, changed)}) == 4


@given(st.text(max_size=200))
def test_the_name_always_holds_the_search_token_as_a_word(label):
    key = order_key("c", 0, spec({"a": "ACD"}))
    name = experiment_name(label, 0, 3, key)
    assert search_token(key) in name.split()
    assert re.fullmatch(r"pa-[0-9a-f]{20}", search_token(key))
    assert len(name) < 100


@st.composite
def forged_labels(draw, key):
    """Text around tokens of a key, in any letter case, cut or joined anywhere."""
    token = search_token(key)
    pieces = st.sampled_from(
        [token, token.upper(), token.title(), f"{token}0", "pa-", key, "x", " ", "\t", "\x1f", "\u2003", "/"]
    )
    return "".join(draw(st.lists(st.one_of(pieces, st.text(max_size=40)), max_size=12)))


@given(st.data(), KEYS, KEYS)
def test_no_label_forges_the_key_of_another_order(data, key, other):
    name = experiment_name(data.draw(forged_labels(other)), 0, 3, key)
    assert search_token(key) in name.split()
    tokens = re.findall(r"pa-[0-9a-f]{20}", name.lower())
    assert tokens == [search_token(key)]
    assert len(name) < 100


@pytest.mark.parametrize(
    "label",
    [
        "c-0123456789abcdef",
        "round 3, panel A",
        "pa-round-2",
        "spa-treatment",
        "pa-0123456789abcdef012",
        "PA-loop_1.v",
    ],
)
def test_the_names_of_ordinary_labels_stay_as_they_were(label):
    assert experiment_name(label, 1, 4, "0" * 20) == f"{label} 2/4 pa-{'0' * 20}"
