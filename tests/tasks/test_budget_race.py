"""Ten experiments race for one cap on the real ledgers; the one on a Prefect server is in e2e/test_approval.py."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefect_assay.errors import BudgetExceeded
from prefect_assay.models.job import PaymentState
from prefect_assay.payments import FileLedger, MemoryLedger, RollingCap
from support.races import NOW, SINCE, claims, entry


@pytest.mark.parametrize("kind", [MemoryLedger, FileLedger])
@pytest.mark.parametrize("cap", ["rolling", "campaign"])
def test_ten_threads_fill_a_cap_to_the_cent_and_never_pass_it(tmp_path, kind, cap):
    ledger = kind(tmp_path) if kind is FileLedger else kind()
    large = 10**9
    limits = RollingCap(
        max_cents=70_003 if cap == "rolling" else large,
        since=SINCE,
        campaign_cents=70_003 if cap == "campaign" else None,
    )
    won = claims(ledger, limits, [(10_000, "c")] * 10)
    assert sum(won) == 70_000
    assert claims(ledger, limits, [(4, "c")], "over") == [0]
    assert claims(ledger, limits, [(3, "c")], "fits") == [3]
    assert ledger.spent_cents(SINCE) == 70_003
    other = claims(ledger, limits, [(10_000, "another")], "other")
    assert other == ([0] if cap == "rolling" else [10_000])


@settings(max_examples=60, deadline=None)
@given(
    payments=st.lists(
        st.tuples(
            st.integers(1, 10**13),
            st.sampled_from(["a", "b", None]),
            st.sampled_from([0, 10, 31]),  # days ago
            st.sampled_from([PaymentState.SETTLED, PaymentState.FAILED, PaymentState.UNKNOWN]),
        ),
        max_size=12,
    ),
    rolling=st.integers(0, 3 * 10**13),
    campaign=st.none() | st.integers(0, 3 * 10**13),
)
def test_sums_are_those_of_integers_and_a_refusal_leaves_no_trace(payments, rolling, campaign):
    ledger, kept = MemoryLedger(), []
    cap = RollingCap(max_cents=rolling, since=SINCE, campaign_cents=campaign)

    def spent(*, of=None, since=None):
        return sum(
            cents
            for cents, name, ago, state in kept
            if state is not PaymentState.FAILED
            and (of is None or name == of)
            and (since is None or NOW - timedelta(days=ago) >= since)
        )

    for number, (cents, name, ago, state) in enumerate(payments):
        at = NOW - timedelta(days=ago)
        new = entry(f"inv_{number}", cents, name).model_copy(update={"recorded_at": at})
        fits = spent(since=SINCE) + (cents if at >= SINCE else 0) <= rolling and (
            campaign is None or name is None or spent(of=name) + cents <= campaign
        )
        try:
            claimed = ledger.claim(new, cap=cap)
        except BudgetExceeded:
            claimed = False
        assert claimed is fits
        if fits:
            ledger.update(new, new.moved(state))
            kept.append((cents, name, ago, state))
    assert ledger.spent_cents(SINCE) == spent(since=SINCE)
