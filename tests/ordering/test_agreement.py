"""An experiment and the specification it is taken for: a real lab's detail record, and records from elsewhere."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.models.experiment import CreateRequest, Experiment
from prefect_assay.models.sequences import ProteinSequence
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import BINDING_TYPES, METHOD_TYPES, ExperimentType
from prefect_assay.ordering.identity import differences

FOUR = {
    "One": "MKTAYIAKQR",
    "two": {"aa_string": "gshmklvffa", "control": True},
    "fab": {
        "aa_string": "ACD:EFG",
        "metadata": {"type": "FAB", "framework_regions": {"ch": "x", "cl": "y"}},
    },
    "four": {"aa_string": "ACDEFGHIKL", "metadata": {}},
}
TARGET = "2f1a3c55-0000-4000-8000-00000000abcd"
OTHER = "2f1a3c55-0000-4000-8000-00000000abce"


def spec(kind=ExperimentType.AFFINITY, target=TARGET, **changes):
    values = {"experiment_type": kind, "sequences": FOUR}
    if kind in METHOD_TYPES:
        values["method"] = "bli"
    if kind in BINDING_TYPES:
        values["target_id"] = target
    return ExperimentSpec.model_validate(values | changes)


def experiment(record, **changes):
    values = {
        "id": "e-1",
        "code": "LAB-001-001",
        "status": "in_queue",
        "created_at": datetime(2026, 1, 1, tzinfo=UTC),
        "experiment_spec": record,
    }
    return Experiment.model_validate(values | changes)


@pytest.fixture(scope="module")
def targets(service):
    return [target.id for target in service.iter_targets()]


@pytest.fixture
def ordered(service):
    """The detail record of a new draft."""

    def make(wanted):
        request = CreateRequest(experiment_spec=wanted, name="agreement")
        return service.experiment(service.create(request).experiment_id)

    return make


@pytest.mark.parametrize("kind", ExperimentType)
def test_what_was_ordered_agrees_in_every_spelling(kind, ordered, targets):
    wanted = spec(kind, targets[0])
    spelled = {"parameters": {}, "sequences": dict(reversed(FOUR.items())) | {"One": "mktayiakqr"}}
    if kind in BINDING_TYPES:
        spelled["target_id"] = targets[0].upper()
    if kind != ExperimentType.EPITOPE_BINNING:
        spelled["n_replicates"] = 3
    if kind == ExperimentType.AFFINITY:
        spelled["antigen_concentrations"] = [0, 31.6, 100, 316.2, 1000]
    other = ExperimentSpec.model_validate(wanted.wire() | spelled)
    for record in (ordered(wanted), ordered(other)):
        assert differences(wanted, record) == ()
        assert differences(other, record) == ()


@pytest.mark.parametrize("kind", ExperimentType)
def test_every_changed_field_is_named_alone(kind, service, ordered, targets):
    found = ordered(spec(kind, targets[0]))

    def changed(**changes):
        return [line.split(": ", 1) for line in differences(spec(kind, targets[0], **changes), found)]

    if kind in METHOD_TYPES:
        assert changed(method="spr") == [["method", "'bli', not 'spr'"]]
    if kind in BINDING_TYPES:
        assert changed(target_id=targets[1]) == [["target_id", f"'{targets[0]}', not '{targets[1]}'"]]
    if kind != ExperimentType.EPITOPE_BINNING:
        assert changed(n_replicates=5) == [["n_replicates", "3, not 5"]]
    if kind == ExperimentType.AFFINITY:
        assert changed(antigen_concentrations=[10]) == [
            ["antigen_concentrations", "[0.0, 31.6, 100.0, 316.2, 1000.0], not [10.0]"]
        ]
    same = "the experiment has 4, the specification 4; they differ in "
    assert changed(sequences=FOUR | {"One": "MKTAYIAKQK"}) == [["sequences", f"{same}'one'"]]
    assert changed(sequences=FOUR | {"two": "GSHMKLVFFA"}) == [["sequences", f"{same}'two'"]]
    fewer = {name: value for name, value in FOUR.items() if name != "One"}
    assert changed(sequences=fewer | {"1": FOUR["One"]}) == [["sequences", f"{same}'1', 'one'"]]
    assert changed(sequences=fewer) == [
        ["sequences", "the experiment has 4, the specification 3; they differ in 'one'"]
    ]


def test_a_draft_that_was_changed_later_is_named(service, ordered, targets):
    wanted = spec(target=targets[0])
    found = ordered(wanted)
    many = [ProteinSequence(name=f"n{i}", aa_string="ACDEFGHI" + "K" * i) for i in range(20)]
    service.modify(found.id, n_replicates=5, antigen_concentrations=[10, 2.5], target_id=None, sequences=many)
    assert differences(wanted, service.experiment(found.id)) == (
        f"target_id: none, not '{targets[0]}'",
        "n_replicates: 5, not 3",
        "antigen_concentrations: [2.5, 10.0], not [0.0, 31.6, 100.0, 316.2, 1000.0]",
        "sequences: the experiment has 20, the specification 4; they differ in 'fab', 'four', 'n0' and 21 more",
    )


def test_the_type_alone_can_differ():
    lines = differences(spec("screening"), experiment(spec("affinity").wire()))
    assert lines == ("experiment_type: 'affinity', not 'screening'",)


@pytest.mark.parametrize(
    ("record", "word"),
    [
        (None, "sequences"),
        ({}, "sequences"),
        ({"sequences": {}}, "sequences"),
        ({"sequences": None}, "sequences"),
        ({"sequences": ["ACD"]}, "sequences"),
        ({"sequences": {"a": None}}, "sequences.a"),
        ({"sequences": {"a": {"name": "a"}}}, "sequences.a.aa_string"),
        ({"sequences": {"a\nb": {"aa_string": "A", "control": "?"}}}, "sequences.a\\nb.control"),
        ({"sequences": FOUR, "method": "octet"}, "method"),
        ({"sequences": FOUR, "n_replicates": "many"}, "n_replicates"),
        ({"sequences": FOUR, "experiment_type": "stability"}, "experiment_type"),
    ],
)
def test_a_record_that_cannot_be_compared_says_so_in_one_line(record, word):
    found = experiment(record, experiment_type="affinity")
    (line,) = differences(spec(), found)
    assert line.startswith(f"experiment LAB-001-001 cannot be compared: its record has no valid '{word}' (")
    assert "\n" not in line


def test_a_record_without_anything_says_so_too():
    (line,) = differences(spec(), experiment(None))
    assert "cannot be compared" in line


def test_published_shapes_are_read_tolerantly():
    wanted = spec(parameters={"x": 1})
    record = {
        "experiment_type": "Affinity",
        "method": "BLI",
        "target": {"name": "EGFR", "supplier_url": None, "target_catalog_id": TARGET.upper()},
        "target_id": None,
        "n_replicates": None,
        "antigen_concentrations": None,
        "parameters": None,
        "note": "unknown",
        "sequences": {
            "one": {"id": 7, "aa_string": "MKTAYIAKQR", "control": None, "metadata": "free text"},
            "two": {"aa_string": "GSHMKLVFFA", "control": True},
            "fab": "ACD:EFG",
            "FOUR": "acdefghikl",
        },
    }
    assert differences(wanted, experiment(record)) == ()
    # The catalog id of a resolved target is optional (service-shapes).
    assert differences(wanted, experiment(record | {"target": {"name": "EGFR"}})) == ()
    del record["experiment_type"]
    assert differences(wanted, experiment(record, experiment_type="affinity")) == ()
    resolved = record | {"experiment_type": "affinity", "target": None, "target_id": OTHER}
    assert differences(wanted, experiment(resolved)) == (f"target_id: '{OTHER}', not '{TARGET}'",)


def test_what_the_type_does_not_take_is_the_service_s_business():
    for kind, more in (
        ("epitope_binning", {"n_replicates": 1}),
        ("screening", {"antigen_concentrations": [1000.0]}),
        ("thermostability", {"method": "dsf", "target": {"name": "none"}}),
    ):
        assert differences(spec(kind), experiment(spec(kind).wire() | more)) == ()


def test_names_that_differ_only_in_letter_case_are_two():
    both = {"a": "ACD", "A": "ACE"}
    wanted = spec(sequences=both)
    assert differences(wanted, experiment(spec(sequences={"A": "ACD", "a": "ACE"}).wire())) == ()
    (line,) = differences(wanted, experiment(spec(sequences={"a": "ACD"}).wire()))
    assert line == "sequences: the experiment has 1, the specification 2; they differ in 'a'"


NAMES = st.text(alphabet="abcABC-1 ", min_size=1, max_size=6)
VALUES = st.fixed_dictionaries(
    {"aa_string": st.text("ACDacd", min_size=1, max_size=4), "control": st.booleans()}
)
SEQUENCES = st.dictionaries(NAMES, VALUES, min_size=1, max_size=4)


@given(SEQUENCES, SEQUENCES)
def test_only_the_same_sequences_agree(one, other):
    def plain(sequences):
        return sorted((n.lower(), v["aa_string"].upper(), v["control"]) for n, v in sequences.items())

    agreed = differences(spec(sequences=one), experiment(spec(sequences=other).wire())) == ()
    assert agreed == (plain(one) == plain(other))
