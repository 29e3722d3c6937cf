"""An experiment and the specification it is taken for: a real lab's detail record, and records from elsewhere."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.orders.identity import evidence
from prefect_assay.service.assays import BINDING_TYPES, METHOD_TYPES
from prefect_assay.service.models.experiment import CreateRequest, Experiment
from prefect_assay.service.models.sequences import ProteinSequence
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import ExperimentType

FOUR = {
    "One": "MKTAYIAKQR",
    "two": {"aa_string": "gshmklvffa", "control": True},
    "fab": {"aa_string": "ACD:EFG", "metadata": {"type": "FAB", "framework_regions": {"ch": "x", "cl": "y"}}},
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
    return [target.id for target in service.targets.iterate()]


@pytest.fixture
def ordered(service):
    """The detail record of a new draft."""

    def make(specification):
        request = CreateRequest(experiment_spec=specification, name="agreement")
        return service.experiments.get(service.experiments.create(request).experiment_id)

    return make


@pytest.mark.parametrize("kind", ExperimentType)
def test_what_was_ordered_agrees_in_every_spelling(kind, ordered, targets):
    specification = spec(kind, targets[0])
    spelled = {"parameters": {}, "sequences": dict(reversed(FOUR.items())) | {"One": "mktayiakqr"}}
    if kind in BINDING_TYPES:
        spelled["target_id"] = targets[0].upper()
    if kind != ExperimentType.EPITOPE_BINNING:
        spelled["n_replicates"] = 3
    if kind == ExperimentType.AFFINITY:
        spelled["antigen_concentrations"] = [0, 31.6, 100, 316.2, 1000]
    other = ExperimentSpec.model_validate(specification.wire() | spelled)
    for record in (ordered(specification), ordered(other)):
        assert evidence(specification, record).differs == ()
        assert evidence(other, record).differs == ()


@pytest.mark.parametrize("kind", ExperimentType)
def test_every_changed_field_is_named_alone(kind, service, ordered, targets):
    draft = ordered(spec(kind, targets[0]))

    def changed(**changes):
        return [line.split(": ", 1) for line in evidence(spec(kind, targets[0], **changes), draft).differs]

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
    specification = spec(target=targets[0])
    draft = ordered(specification)
    many = [ProteinSequence(name=f"n{i}", aa_string="ACDEFGHI" + "K" * i) for i in range(20)]
    service.experiments.modify(
        draft.id, n_replicates=5, antigen_concentrations=[10, 2.5], target_id=None, sequences=many
    )
    assert evidence(specification, service.experiments.get(draft.id)).differs == (
        "n_replicates: 5, not 3",
        "antigen_concentrations: [2.5, 10.0], not [0.0, 31.6, 100.0, 316.2, 1000.0]",
        "sequences: the experiment has 20, the specification 4; they differ in 'fab', 'four', 'n0' and 21 more",
    )


def test_the_type_alone_can_differ():
    lines = evidence(spec("screening"), experiment(spec("affinity").wire())).differs
    assert lines == ("experiment_type: 'affinity', not 'screening'",)


@pytest.mark.parametrize(
    ("record", "unread"),
    [
        (None, ()),
        ({}, ()),
        ({"sequences": None, "method": None, "target": {}}, ()),
        ({"sequences": {}}, ("sequences",)),
        ({"sequences": 3}, ("sequences",)),
        ({"sequences": ["ACD"]}, ("sequences",)),
        ({"sequences": {"a": None}}, ("sequences",)),
        ({"sequences": {"a": {"name": "a"}}}, ("sequences",)),
        ({"sequences": [{"name": "a", "aa_preview": "ACD", "length": 3}]}, ("sequences",)),
        ({"sequences": {"a": {"aa_string": "A", "control": "?"}}}, ("sequences",)),
        ({"sequences": FOUR, "method": "octet"}, ("method",)),
        ({"sequences": FOUR, "n_replicates": "many"}, ("n_replicates",)),
        ({"sequences": FOUR, "experiment_type": "stability"}, ("experiment_type",)),
        ({"sequences": FOUR, "target": "EGFR"}, ("target_id",)),
        ("see the portal", ("experiment_spec",)),
    ],
)
def test_what_is_absent_contradicts_nothing_and_what_cannot_be_read_is_not_absent(record, unread):
    comparison = evidence(spec(), experiment(record, experiment_type="affinity"))
    assert (comparison.differs, comparison.unread) == ((), unread)
    assert not comparison.proves_identity(spec())


@pytest.mark.parametrize("where", ["inside", "beside"])
def test_the_contract_does_not_show_the_record_so_each_field_is_read_wherever_it_is(where):
    """Contract 2.1: the detail record carries target and sequence details; their form is not shown."""
    specification = spec()
    entries = [
        {"name": name, "aa_string": value.aa_string, "control": value.control}
        for name, value in specification.sequences.items()
    ]
    fields = {"target": {"id": TARGET}, "method": "BLI", "sequences": entries, "n_replicates": 3}
    record = experiment(fields) if where == "inside" else experiment(None, **fields)
    record = record.model_copy(update={"experiment_type": "affinity"})
    assert evidence(specification, record).proves_identity(specification)
    nameless = [{key: value for key, value in one.items() if key != "name"} for one in entries]
    assert evidence(
        specification, experiment({**fields, "sequences": nameless}, experiment_type="affinity")
    ).proves_identity(specification)
    other = experiment({**fields, "sequences": entries[1:]}, experiment_type="affinity")
    assert evidence(specification, other).differs


def test_published_shapes_are_read_tolerantly():
    specification = spec(parameters={"x": 1})
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
    assert evidence(specification, experiment(record)).differs == ()
    # The catalog id of a resolved target is optional (service-shapes).
    assert evidence(specification, experiment(record | {"target": {"name": "EGFR"}})).differs == ()
    del record["experiment_type"]
    assert evidence(specification, experiment(record, experiment_type="affinity")).differs == ()
    resolved = record | {"experiment_type": "affinity", "target": None, "target_id": OTHER}
    assert evidence(specification, experiment(resolved)).differs == (f"target_id: '{OTHER}', not '{TARGET}'",)


def test_what_the_type_does_not_take_is_the_service_s_business():
    for kind, more in (
        ("epitope_binning", {"n_replicates": 1}),
        ("screening", {"antigen_concentrations": [1000.0]}),
        ("thermostability", {"method": "dsf", "target": {"name": "none"}}),
    ):
        assert evidence(spec(kind), experiment(spec(kind).wire() | more)).differs == ()


def test_names_that_differ_only_in_letter_case_are_two():
    both = {"a": "ACD", "A": "ACE"}
    specification = spec(sequences=both)
    assert evidence(specification, experiment(spec(sequences={"A": "ACD", "a": "ACE"}).wire())).differs == ()
    (line,) = evidence(specification, experiment(spec(sequences={"a": "ACD"}).wire())).differs
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

    agreed = evidence(spec(sequences=one), experiment(spec(sequences=other).wire())).differs == ()
    assert agreed == (plain(one) == plain(other))
