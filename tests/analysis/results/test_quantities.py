"""One reader of quantities: limits stay limits, contradictions are refused, and nothing is guessed."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.analysis.results.quantities import Quantity, Unread, read_quantity
from prefect_assay.service.assays import KD, KOFF, KON, TM


@pytest.mark.parametrize(
    ("value", "unit", "qualifier", "expected"),
    [
        (7.4e-8, None, None, Quantity(7.4e-8)),
        (7.4e-8, "M", "=", Quantity(7.4e-8)),
        ("7.4e-8", None, "", Quantity(7.4e-8)),
        (5, "nM", None, Quantity(5e-9)),
        ("5 nM", None, None, Quantity(5e-9)),
        ("> 1 uM", None, None, Quantity(1e-6, ">")),
        ("≥1 µM", None, None, Quantity(1e-6, ">")),
        ("<=1e-9", "M", "<", Quantity(1e-9, "<")),
        (1e-6, None, ">=", Quantity(1e-6, ">")),
        (1e-6, None, "≤", Quantity(1e-6, "<")),
    ],
)
def test_a_listed_spelling_is_read(value, unit, qualifier, expected):
    quantity = read_quantity(value, unit=unit, qualifier=qualifier)
    assert isinstance(quantity, Quantity)
    assert (quantity.value, quantity.qualifier) == (pytest.approx(expected.value), expected.qualifier)


@pytest.mark.parametrize(
    ("value", "unit", "qualifier"),
    [
        *(
            (1e-6, None, word)
            for word in ("gt", "lt", "lower_bound", "upper", "greater than", "~", "?", "><", True)
        ),
        *(
            (text, None, None)
            for text in (
                "Kd > 1 uM",
                "&gt;1e-6",
                "~1e-6",
                "1e-6 or more",
                "1_000",
                "1,5",
                "1e-6*",
                "n.d.",
                "",
            )
        ),
        ("0x1p-30", None, None),
        ("inf", None, None),
        ({"value": 1e-6}, None, None),
        ([1e-6], None, None),
        (True, None, None),
        (math.inf, None, None),
        (math.nan, None, None),
        (10**400, None, None),
        ("1e400", None, None),
        (5, "ng/mL", None),
        (5, "nm", None),
        ("5 nM", "M", None),
        ("<5e-9", None, ">"),
        (">5e-9", None, "="),
    ],
)
def test_any_other_spelling_is_unread_and_quoted(value, unit, qualifier):
    unread = read_quantity(value, unit=unit, qualifier=qualifier)
    assert isinstance(unread, Unread)
    assert ascii(value).strip("'")[:20] in unread.reason or ascii(unit).strip("'") in unread.reason


@pytest.mark.parametrize(
    ("kind", "value", "unit"),
    [
        (KD, 0, None),
        (KD, -1e-09, None),
        (KD, 5, None),
        (KON, 0, None),
        (KON, 1000000000000.0, None),
        (KOFF, -1, None),
        (KOFF, 0, None),
        (TM, 335.1, None),
        (TM, -200, "C"),
        (KD, 5000000000.0, "nM"),
    ],
)
def test_an_impossible_value_is_refused(kind, value, unit):
    unread = read_quantity(value, unit=unit, quantity=kind)
    assert isinstance(unread, Unread)
    assert "possible" in unread.reason


@given(st.none() | st.floats() | st.text() | st.lists(st.floats()), st.text(), st.text())
def test_nothing_raises(value, unit, qualifier):
    assert isinstance(read_quantity(value, unit=unit, qualifier=qualifier), Quantity | Unread)
