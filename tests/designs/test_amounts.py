"""An amount in USD is read to the cent; a part of a cent is refused and never rounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from prefect_assay.designs.options import Usd, usd_to_cents
from prefect_assay.service.bounds import CENTS_MAX

read_usd = TypeAdapter(Usd).validate_python
amounts = st.integers(0, CENTS_MAX)


@given(amounts)
def test_an_amount_gives_its_cents(cents):
    assert usd_to_cents(read_usd(cents / 100)) == cents
    assert usd_to_cents(read_usd(f"{cents // 100}.{cents % 100:02}")) == cents


@given(amounts.filter(bool), st.integers(1, 9))
def test_a_part_of_a_cent_is_refused(cents, tenths):
    written = f"{(cents - 1) // 100}.{(cents - 1) % 100:02}{tenths}"
    for value in (written, float(written)):
        with pytest.raises(ValidationError, match="at most two decimals"):
            read_usd(value)


def test_a_sum_that_is_off_by_its_last_bits_is_read():
    assert read_usd(0.1 + 0.2) == 0.3


@pytest.mark.parametrize(
    "value", [-0.01, CENTS_MAX / 100 + 1, "5,000", "1e3 USD", float("nan"), float("inf")]
)
def test_what_is_no_amount_is_refused(value):
    with pytest.raises(ValidationError):
        read_usd(value)
