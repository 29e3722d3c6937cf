"""The columns behind a name in a FASTA header."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.designs.readers.headers import header_fields


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", {}),
        ("n:0|mpnn:1.320|i_ptm:0.893", {"n": "0", "mpnn": "1.320", "i_ptm": "0.893"}),
        ("score=0.9 round=2", {"score": "0.9", "round": "2"}),
        ("score=0.9, chains=['A', 'B'], seed=37", {"score": "0.9", "chains": "['A', 'B']", "seed": "37"}),
        ("score=0.9; ", {"score": "0.9"}),
        (
            "Epidermal growth factor OS=Homo sapiens",
            {"description": "Epidermal growth factor OS=Homo sapiens"},
        ),
        ("12:30", {"description": "12:30"}),
        ("a=", {"a": ""}),
    ],
)
def test_pairs_are_columns_and_the_rest_is_a_description(text, columns):
    assert header_fields(text) == columns


@given(st.text(max_size=60))
def test_any_text_is_kept_or_taken_apart(text):
    fields = header_fields(text)
    assert bool(fields) == bool(text)
    assert all(value in text for value in fields.values())
