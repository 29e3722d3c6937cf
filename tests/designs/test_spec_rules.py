import math

import pytest

from prefect_assay.designs import check_spec
from prefect_assay.service.assays import BINDING_TYPES, METHOD_TYPES
from prefect_assay.service.models.sequences import Batch, ProteinSequence
from prefect_assay.service.models.spec import Assay, ExperimentSpec, SequenceValue
from prefect_assay.service.models.vocabulary import ExperimentType, Method

TARGET = "a152981a-9bee-5f99-8978-d6ebfda0b88f"
KINDS = list(ExperimentType)


def sequences(count=4):
    return {f"d{n}": SequenceValue(aa_string="MK" + "A" * n) for n in range(count)}


def spec(kind, **changes):
    """A valid specification of a type, with some fields changed."""
    fields = {
        "experiment_type": kind,
        "method": Method.BLI if kind in METHOD_TYPES else None,
        "target_id": TARGET if kind in BINDING_TYPES else None,
        "sequences": sequences(),
    }
    return ExperimentSpec(**fields | changes)


def with_metadata(metadata, **more):
    value = SequenceValue(aa_string="MKT", metadata=metadata)
    return spec(ExperimentType.AFFINITY, sequences={"d": value, **more})


def only(findings):
    assert len(findings) == 1, findings
    return findings[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_valid_specification_has_no_findings(kind):
    assert check_spec(spec(kind)) == ()


@pytest.mark.parametrize("kind", KINDS)
def test_the_method_is_needed_or_refused(kind):
    other = spec(kind, method=None if kind in METHOD_TYPES else Method.SPR)
    assert only(check_spec(other)).startswith(f"method: {kind}")


@pytest.mark.parametrize("kind", KINDS)
def test_the_target_is_needed_or_refused(kind):
    other = spec(kind, target_id=None if kind in BINDING_TYPES else TARGET)
    assert only(check_spec(other)).startswith(f"target_id: {kind}")


@pytest.mark.parametrize("target", ["EGFR", "a152981a", ""])
def test_a_target_is_a_uuid(target):
    assert only(check_spec(spec(ExperimentType.AFFINITY, target_id=target))).startswith("target_id:")


@pytest.mark.parametrize(("count", "fine"), [(0, False), (1, True), (5, True), (6, False), (-1, False)])
def test_replicates_have_a_range(count, fine):
    assert (check_spec(spec(ExperimentType.SCREENING, n_replicates=count)) == ()) is fine


def test_binning_takes_no_replicates_not_even_valid_ones():
    assert only(check_spec(spec(ExperimentType.EPITOPE_BINNING, n_replicates=3))).startswith("n_replicates:")


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 7, 9, 27, 29, 30, 32])
def test_binning_takes_multiples_of_four(count):
    finding = only(check_spec(spec(ExperimentType.EPITOPE_BINNING, sequences=sequences(count))))
    assert finding.startswith(f"sequences: {count};")


@pytest.mark.parametrize("count", range(4, 29, 4))
def test_binning_takes_four_to_twenty_eight(count):
    assert check_spec(spec(ExperimentType.EPITOPE_BINNING, sequences=sequences(count))) == ()


@pytest.mark.parametrize("kind", [k for k in KINDS if k is not ExperimentType.AFFINITY])
def test_concentrations_are_for_affinity_only(kind):
    finding = only(check_spec(spec(kind, antigen_concentrations=(100.0, 0.0))))
    assert finding.startswith(f"antigen_concentrations: {kind}")


@pytest.mark.parametrize("values", [(), (-1.0,), (math.nan,), (math.inf, 1.0)])
def test_concentrations_are_finite_and_not_negative(values):
    finding = only(check_spec(spec(ExperimentType.AFFINITY, antigen_concentrations=values)))
    assert finding.startswith("antigen_concentrations:")


def test_concentrations_may_be_zero():
    assert check_spec(spec(ExperimentType.AFFINITY, antigen_concentrations=(1000.0, 0.0))) == ()


@pytest.mark.parametrize("kind", KINDS)
def test_at_least_one_sequence_is_needed(kind):
    assert only(check_spec(spec(kind, sequences={}))) == "sequences: none; an experiment needs at least one"


@pytest.mark.parametrize(
    ("residues", "says"),
    [
        ("", "no residues"),
        (":", "no residues"),
        ("MK:", "empty chain"),
        ("MK::T", "empty chain"),
        ("MKX", "not an amino acid: 'X'"),
        ("MK T", "not an amino acid: ' '"),
        ("MK*", "not an amino acid: '*'"),
        ("MK1-", "not an amino acid: '-', '1'"),
        ("MK\u017f", r"not an amino acid: '\u017f'"),  # upper-cased it would be an S
    ],
)
def test_residues_are_the_twenty_letters(residues, says):
    wrong = spec(ExperimentType.EXPRESSION, sequences={"d": SequenceValue(aa_string=residues)})
    assert says in only(check_spec(wrong))
    assert "sequences['d']" in only(check_spec(wrong))


@pytest.mark.parametrize("residues", ["ACDEFGHIKLMNPQRSTVWY", "acdefghiklmnpqrstvwy", "MK:TT", "mK:tT:A"])
def test_letters_come_in_any_case_and_chains_with_colons(residues):
    assert (
        check_spec(spec(ExperimentType.EXPRESSION, sequences={"d": SequenceValue(aa_string=residues)})) == ()
    )


def test_a_sequence_needs_a_name():
    assert "without a name" in only(
        check_spec(spec(ExperimentType.EXPRESSION, sequences={" ": SequenceValue(aa_string="MK")}))
    )


def pair(first, second, residues="MKT"):
    return spec(
        ExperimentType.AFFINITY,
        sequences={
            "a": SequenceValue(aa_string=residues, metadata=first),
            "b": SequenceValue(aa_string=residues.lower(), metadata=second),
        },
    )


FAB = {"type": "FAB", "framework_regions": {"ch": "CH1", "cl": "kappa"}}


@pytest.mark.parametrize(
    ("first", "second", "duplicate"),
    [
        (None, None, True),
        (None, {}, True),
        (None, {"tag_location": "N"}, False),
        ({"tag_location": "C"}, {"tag_location": "N"}, False),
        ({"tag_location": "N"}, {"tag_location": "N"}, True),
        (FAB, FAB, False),
        (FAB, FAB | {"type": "fab"}, False),
        (FAB, None, False),
        ({"type": "IgG"}, {"type": "igg"}, True),
    ],
)
def test_duplicates_share_residues_and_tag_location_fabs_exempt(first, second, duplicate):
    findings = check_spec(pair(first, second))
    assert (findings != ()) is duplicate
    assert all("same residues and tag location as 'a'" in finding for finding in findings)


def test_every_further_duplicate_is_named():
    same = {name: SequenceValue(aa_string="MKT") for name in "abc"}
    assert len(check_spec(spec(ExperimentType.EXPRESSION, sequences=same))) == 2


@pytest.mark.parametrize(
    "metadata",
    [
        {"type": "ScFv", "VH": "E", "VL": "D", "linker": "GS"},
        FAB,
        {"type": "SingleChain"},
        {"type": "single_chain", "tag_location": "C"},
        {"type": "IgG"},
        {"type": "VHH", "tag_location": "N-terminal"},
        {"type": "FAB"},
        {"type": "ScFv", "VL": "D"},
        {"type": 3, "tag_location": ["N"]},
        {"batch": 7, "notes": ["free", None]},
        {},
        None,
    ],
)
def test_metadata_is_free(metadata):
    assert check_spec(with_metadata(metadata)) == ()


def test_metadata_that_is_not_json_is_refused():
    assert "not JSON" in only(check_spec(with_metadata({"weight": math.nan})))


def test_chains_joined_by_a_colon_are_a_fab_and_no_duplicate():
    same = {name: SequenceValue(aa_string="MKT:GHI") for name in "ab"}
    assert check_spec(spec(ExperimentType.EXPRESSION, sequences=same)) == ()


def test_parameters_are_json():
    assert only(check_spec(spec(ExperimentType.EXPRESSION, parameters={"x": math.nan}))).startswith(
        "parameters:"
    )


def test_everything_that_is_wrong_is_said_at_once():
    wrong = ExperimentSpec(
        experiment_type=ExperimentType.THERMOSTABILITY,
        method=Method.BLI,
        target_id="EGFR",
        n_replicates=9,
        antigen_concentrations=(1.0,),
        sequences={
            "a": SequenceValue(aa_string="MK1"),
            "b": SequenceValue(aa_string="MK", metadata={"weight": math.nan}),
            "c": SequenceValue(aa_string="mk"),
        },
    )
    places = [finding.partition(":")[0] for finding in check_spec(wrong)]
    assert places == [
        "method",
        "target_id",
        "n_replicates",
        "antigen_concentrations",
        "sequences['a']",
        "sequences['b'].metadata",
        "sequences['c']",
    ]


def test_what_the_forms_make_of_their_defaults_is_valid():
    batch = Batch(index=0, count=1, items=(ProteinSequence(name="d", aa_string="MKT"),))
    assert check_spec(ExperimentSpec.of(Assay(target="x"), batch, TARGET)) == ()
