"""Candidates and choices: what a designer says about a design survives the way from a file to the next campaign."""

import pytest

from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.selection import Choice
from prefect_assay.service.models.sequences import ProteinSequence


@pytest.mark.parametrize(
    ("columns", "parents"),
    [({"parents": "a; b,1;"}, ("a", "b,1")), ({"parent": "a"}, ("a",)), ({"ipTM": "0.9"}, ())],
)
def test_parents_come_from_the_designers_columns(columns, parents):
    candidate = Candidate.of(ProteinSequence("d", "ACD", attributes=columns))

    assert candidate.parents == parents
    assert Candidate.of(ProteinSequence("d", "ACD", attributes=candidate.attributes())) == candidate


def test_a_choice_is_a_design_with_its_reason():
    design = ProteinSequence("d", "ACD", True, {"tag_location": "N"}, {"ipTM": "0.9"})

    chosen = Choice(candidate=Candidate.of(design), rank=1, reason="ipTM 0.9").design()

    assert chosen == ProteinSequence(
        "d", "ACD", True, {"tag_location": "N"}, {"ipTM": "0.9", "selection_reason": "ipTM 0.9"}
    )
