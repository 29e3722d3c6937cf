"""A run's parameters are checked before Prefect is asked for the run, and no message quotes them."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.blocks.deployment_runs import _explain_refusal
from prefect_assay.blocks.run_parameters import bytes_max, check_parameters
from prefect_assay.errors import MESSAGE_MAX, AssayError, InputError, InvalidSpec, shortened

RESIDUES = "MKVLAAGTSESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE" * 30


def test_what_prefect_would_not_store_is_refused_without_being_quoted():
    check_parameters({"designs": "x" * (bytes_max() - 20)})
    with pytest.raises(InputError, match=r"'designs'.*give its path") as refused:
        check_parameters({"limit_cents": 5, "designs": RESIDUES * 400})
    assert len(str(refused.value)) < 1000
    assert "MKVLAAG" not in str(refused.value)


@pytest.mark.parametrize(
    ("value", "place"), [(2**60, "x"), ({"y": [float("nan")]}, "x.y.0"), ("a\0", "x"), ("\ud800", "x")]
)
def test_a_value_that_no_database_keeps_is_named_by_its_place(value, place):
    with pytest.raises(InputError, match=f": {place}: "):
        check_parameters({"x": value})


@given(st.lists(st.text(), max_size=5), st.integers(min_value=1, max_value=20))
def test_no_message_is_long_or_has_residues(words, repeats):
    text = f"{' '.join(words)} input_value='{RESIDUES * repeats}' {' '.join(words)}" * 3
    assert len(shortened(text)) <= MESSAGE_MAX
    for error in (AssayError(text), InvalidSpec([text] * 5)):
        assert len(str(error)) <= MESSAGE_MAX
        assert "SESELEAKRQELKELMEKTEEK" not in str(error)


def test_every_finding_is_kept_beside_a_short_message():
    error = InvalidSpec([f"sequences['design-{n}']: not an amino acid: '1'" for n in range(384)])
    assert len(error.findings) == 384
    assert error.whole.count("\n") == 384


def test_a_refusal_of_prefect_says_why_without_the_value():
    long = httpx.Response(
        409,
        json={"detail": f"Validation failed for field 'designs'. Failure reason: '{RESIDUES}' is too long"},
    )
    assert _explain_refusal(long) == "Validation failed for field 'designs'. Failure reason: is too long"
    short = httpx.Response(
        409, json={"detail": "Validation failed for field 'x'. Failure reason: None is not of type 'string'"}
    )
    assert "None is not of type 'string'" in _explain_refusal(short)
    size = httpx.Response(
        422,
        json={
            "exception_detail": [{"msg": "Value error, too large", "input": RESIDUES}],
            "request_body": RESIDUES,
        },
    )
    assert _explain_refusal(size) == "Value error, too large"
