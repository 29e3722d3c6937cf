import math

import pytest

from prefect_assay.service.assays import BINDING_TYPES, METHOD_TYPES
from prefect_assay.service.models.sequences import Batch, ProteinSequence
from prefect_assay.service.models.spec import Assay, ExperimentSpec, SequenceValue
from prefect_assay.service.models.spec_rules import check_spec
from prefect_assay.service.models.vocabulary import ExperimentType, Method

TARGET = "a152981a-9bee-5f99-8978-d6ebfda0b88f"


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


def with_metadata(metadata):
    value = SequenceValue(aa_string="MKT", metadata=metadata)
    return spec(ExperimentType.AFFINITY, sequences={"d": value})


def only(findings):
    assert len(findings) == 1, findings
    return findings[0]


@pytest.mark.parametrize("values", [(), (-1.0,), (math.nan,), (math.inf, 1.0)])
def test_concentrations_are_finite_and_not_negative(values):
    finding = only(check_spec(spec(ExperimentType.AFFINITY, antigen_concentrations=values)))
    assert finding.startswith("antigen_concentrations:")


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


def pair(first, second, residues="MKT"):
    return spec(
        ExperimentType.AFFINITY,
        sequences={
            "a": SequenceValue(aa_string=residues, metadata=first),
            "b": SequenceValue(aa_string=residues.lower(), metadata=second),
        },
    )


FAB = {"type": "FAB"}


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


def test_metadata_that_is_not_json_is_refused():
    assert "not JSON" in only(check_spec(with_metadata({"weight": math.nan})))


def test_parameters_are_json():
    assert only(check_spec(spec(ExperimentType.EXPRESSION, parameters={"x": math.nan}))).startswith(
        "parameters:"
    )


def test_what_the_forms_make_of_their_defaults_is_valid():
    batch = Batch(index=0, count=1, items=(ProteinSequence(name="d", aa_string="MKT"),))
    assert check_spec(ExperimentSpec.of(Assay(target="x"), batch, TARGET)) == ()
