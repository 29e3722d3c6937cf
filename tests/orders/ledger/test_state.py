"""The states of an order: where each record leads, and every record that contradicts the log."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from prefect_assay.errors import ArchiveError
from prefect_assay.orders.job import OrderRoute, PaymentState
from prefect_assay.orders.ledger.log import (
    Accepted,
    Approved,
    Confirming,
    InDoubt,
    Named,
    NotSettled,
    Ordered,
    Partial,
    Paying,
    Planned,
    Refused,
    Reopened,
    Sending,
    Settled,
    Stopped,
    Surplus,
    Withdrawn,
)
from prefect_assay.orders.ledger.state import (
    NotBegun,
    NotOrdered,
    Paid,
    PaymentInDoubt,
    PaymentRefused,
    PaymentSent,
    Unpaid,
)
from prefect_assay.service.models.vocabulary import PaymentMethod

PLANNED = Planned(archive_id="a", campaign_id="c")
ORDERED = Ordered(experiment_id="exp_1")
UNSETTLED = {PaymentState.SENT, PaymentState.UNKNOWN}


def sending(attempt=1, rail=PaymentMethod.X402_EXACT):
    return Sending(attempt=attempt, route=OrderRoute.QUOTED, rail=rail)


def paying(**changes):
    values = {
        "invoice_id": "inv_1",
        "rail": PaymentMethod.X402_EXACT,
        "payer": "0xc",
        "amount_cents": 5000,
        "nonce": "0x01",
        "network": "eip155:84532",
        "asset": "0xa",
        "pay_to": "0xb",
        "expires_at": datetime.now(UTC) + timedelta(minutes=5),
    }
    return Paying(**{**values, **changes})


def settled(**changes):
    return Settled(**{"invoice_id": "inv_1", "amount_cents": 5000, **changes})


def refused(attempt=1):
    return Refused(attempt=attempt, reason="400")


def surplus(experiment_id, kept):
    return Surplus(experiment_id=experiment_id, kept=kept)


def folded(*records, planned=True):
    state = NotBegun()
    for record in (PLANNED, *records) if planned else records:
        state = state.next(record)
    return state


def test_an_order_from_its_plan_to_its_settlement():
    approved, payment, paid = Approved(amount_cents=9, approver="rule"), paying(), settled(receipt={"a": "b"})
    state = folded(sending(), ORDERED, approved, Confirming(amount_cents=9), payment, paid)
    assert (state.count, state.planned, type(state)) == (7, PLANNED, Paid)
    assert (state.attempts, state.open_attempts, state.rail) == (1, (), PaymentMethod.X402_EXACT)
    assert (state.ordered, state.approved, state.confirmed, state.settled) == (ORDERED, approved, True, paid)
    assert state.payment.attempt() == payment.attempt()
    assert (state.payment.id, state.payment.sent_at) == (payment.id, payment.at)
    assert (state.payment.state, state.payment.receipt) == (PaymentState.SETTLED, {"a": "b"})


@pytest.mark.parametrize(
    ("records", "amount", "invoice"),
    [
        ([], None, None),
        ([Approved(amount_cents=9, approver="rule")], 9, None),
        ([Approved(amount_cents=9, approver="rule"), paying(amount_cents=8)], 8, "inv_1"),
        ([Approved(amount_cents=9, approver="rule"), settled(amount_cents=0)], 0, "inv_1"),
        ([paying(amount_cents=8), settled(amount_cents=0, invoice_id="inv_2")], 0, "inv_2"),
        ([paying(amount_cents=8), settled(amount_cents=None, invoice_id="inv_2")], 8, "inv_2"),
    ],
)
def test_the_settled_invoice_comes_first_and_zero_is_an_amount(records, amount, invoice):
    state = folded(sending(), ORDERED, *records)
    assert (state.amount_cents, state.invoice_id) == (amount, invoice)


def test_what_an_answer_names_is_no_order_and_leaves_the_attempt_open():
    state = folded(sending(), Named(experiment_id="exp_1"))
    assert (type(state), state.ordered, state.named) == (NotOrdered, None, ("exp_1",))
    assert len(state.open_attempts) == 1
    assert state.placed
    assert folded(sending(), Named(experiment_id="exp_1"), ORDERED, Named(experiment_id="exp_2")).named == (
        "exp_1",
        "exp_2",
    )


def test_attempts_are_open_until_they_are_refused_or_the_order_is_known():
    state = folded(sending(1), sending(2, PaymentMethod.MPP_SPT))
    assert [sent.attempt for sent in state.open_attempts] == [1, 2]
    state = state.next(refused(1))
    assert [sent.attempt for sent in state.open_attempts] == [2]
    assert (state.attempts, state.rail) == (2, PaymentMethod.MPP_SPT)
    assert state.next(ORDERED).open_attempts == ()


def test_a_remark_outlives_another_sending_while_the_payment_is_in_doubt():
    assert folded(ORDERED, paying(), InDoubt(remark="lost"), paying()).payment.remark == "lost"
    assert folded(ORDERED, paying(), InDoubt(remark="lost"), settled()).payment.remark == "lost"
    assert folded(ORDERED, paying(), NotSettled(remark="no funds"), paying()).payment.remark is None


def test_notes_leave_the_state_where_it_was():
    noted = (
        surplus("exp_2", "exp_1"),
        Named(experiment_id="exp_3"),
        Approved(amount_cents=1, approver="x"),
        Partial(seen=datetime.now(UTC)),
        Stopped(person="ada", how="cancel"),
        Reopened(person="ada"),
    )
    assert type(folded(ORDERED, *noted)) is Unpaid
    assert folded(ORDERED, Withdrawn(reason="expired"), *noted).withdrawn
    assert not folded(ORDERED, Withdrawn(reason="expired"), Confirming(amount_cents=1)).withdrawn
    for ends, expected in (([], PaymentSent), ([InDoubt()], PaymentInDoubt), ([settled()], Paid)):
        assert type(folded(ORDERED, paying(), *ends, *noted, Confirming(amount_cents=1))) is expected


@pytest.mark.parametrize(
    ("records", "expected", "payment"),
    [
        ([], NotOrdered, None),
        ([sending(), refused()], NotOrdered, None),
        ([ORDERED], Unpaid, None),
        ([ORDERED, Confirming(amount_cents=1)], Unpaid, None),
        ([ORDERED, paying()], PaymentSent, PaymentState.SENT),
        ([ORDERED, paying(), InDoubt(remark="lost")], PaymentInDoubt, PaymentState.UNKNOWN),
        ([ORDERED, paying(), InDoubt(remark="lost"), paying()], PaymentInDoubt, PaymentState.UNKNOWN),
        ([ORDERED, paying(), paying()], PaymentInDoubt, PaymentState.UNKNOWN),
        ([ORDERED, paying(), NotSettled(remark="no funds")], PaymentRefused, PaymentState.FAILED),
        ([ORDERED, paying(), NotSettled(), paying()], PaymentSent, PaymentState.SENT),
        ([ORDERED, paying(), NotSettled(), paying(), NotSettled(), settled()], Paid, PaymentState.SETTLED),
        ([ORDERED, paying(), settled()], Paid, PaymentState.SETTLED),
        ([ORDERED, paying(), InDoubt(), settled()], Paid, PaymentState.SETTLED),
        ([ORDERED, settled()], Paid, None),
    ],
)
def test_records_lead_from_state_to_state(records, expected, payment):
    state = folded(*records)
    assert (type(state), state.payment and state.payment.state) == (expected, payment)


def test_a_withdrawn_quote_can_be_followed_by_another_one():
    withdrawn = folded(ORDERED, Confirming(amount_cents=1), Withdrawn(reason="expired"))
    assert (withdrawn.confirmed, withdrawn.committed) == (False, False)
    assert withdrawn.next(Confirming(amount_cents=2)).confirmed


def test_an_acceptance_of_before_does_not_answer_a_later_confirmation():
    accepted = folded(sending(), Accepted(experiment_id="exp_1"), ORDERED)
    confirming = accepted.next(Confirming(amount_cents=1))
    assert not confirming.is_confirmation_answered
    assert confirming.accepted is accepted.accepted, "it names the invoice"
    assert confirming.next(Accepted(experiment_id="exp_1")).is_confirmation_answered


@pytest.mark.parametrize(
    ("before", "record"),
    [
        ([], PLANNED),
        ([ORDERED], Ordered(experiment_id="exp_2")),
        ([ORDERED], sending()),
        ([], sending(2)),
        ([sending()], sending(1)),
        ([], refused()),
        ([sending()], refused(2)),
        ([sending(), refused()], refused()),
        ([sending(), ORDERED], refused()),
        ([], Confirming(amount_cents=1)),
        ([], paying()),
        ([sending()], paying()),
        ([ORDERED], paying(experiment_id="exp_2")),
        ([ORDERED, surplus("exp_1", "exp_2")], paying(experiment_id="exp_1")),
        ([ORDERED, settled()], paying()),
        ([], settled()),
        ([ORDERED, settled()], settled()),
        ([ORDERED], InDoubt()),
        ([ORDERED], NotSettled()),
        ([ORDERED, paying(), NotSettled()], InDoubt()),
        ([ORDERED, paying(), NotSettled()], NotSettled()),
        ([ORDERED, paying(), InDoubt()], NotSettled()),
        ([ORDERED, paying(), paying()], NotSettled()),
        ([ORDERED, paying(), settled()], InDoubt()),
        ([ORDERED, paying(), settled()], NotSettled()),
        ([ORDERED, settled()], Withdrawn(reason="late")),
        ([ORDERED, paying()], Withdrawn(reason="late")),
        ([ORDERED], surplus("exp_1", "exp_1")),
        ([ORDERED, Confirming(amount_cents=1)], surplus("exp_1", "exp_2")),
        ([ORDERED, paying(), NotSettled()], surplus("exp_1", "exp_2")),
        ([ORDERED, settled()], surplus("exp_1", "exp_2")),
    ],
)
def test_a_record_that_contradicts_the_log_is_refused(before, record):
    state = folded(*before)
    with pytest.raises(ArchiveError, match=rf"record {state.count + 1} .* `{record.kind}` .*contradicts"):
        state.next(record)


@pytest.mark.parametrize(
    "record",
    [ORDERED, sending(), Named(experiment_id="exp_1"), Approved(amount_cents=1, approver="x"), settled()],
)
def test_a_log_begins_with_its_plan(record):
    with pytest.raises(ArchiveError, match=r"record 1 .*contradicts"):
        folded(record, planned=False)


def test_a_surplus_moves_the_order_to_the_older_experiment_while_nothing_is_committed():
    first = Ordered(experiment_id="exp_1", invoice_id="inv_1")
    state = folded(first, surplus("exp_1", "exp_0"))
    assert state.ordered.experiment_id == "exp_0"
    assert (state.ordered.invoice_id, state.ordered.adopted) == (None, True)
    assert state.surplus == ("exp_1",)
    assert folded(first, surplus("exp_2", "exp_1")).ordered == first


@pytest.mark.parametrize("kept", ["exp_0", "exp_1"])
def test_an_acceptance_is_forgotten_only_when_the_order_moves_to_an_older_experiment(kept):
    """Else a quote of the older experiment would seem to be confirmed already, and nobody would confirm it."""
    accepted = Accepted(experiment_id="exp_1", invoice_id="inv_1")
    extra = "exp_1" if kept == "exp_0" else "exp_2"
    state = folded(Ordered(experiment_id="exp_1"), accepted, surplus(extra, kept))
    assert state.ordered.experiment_id == kept
    assert state.accepted == (accepted if kept == "exp_1" else None)


experiments = st.sampled_from(["exp_1", "exp_2", "exp_3"])


class AnyRecords(RuleBasedStateMachine):
    """Whatever is written: the fold refuses it, or keeps what a log promises."""

    def __init__(self):
        super().__init__()
        self.state = NotBegun()
        self.accepted = []

    @rule(
        record=st.one_of(
            st.just(PLANNED),
            st.builds(sending, st.integers(1, 3)),
            st.builds(refused, st.integers(1, 3)),
            st.builds(Named, experiment_id=experiments),
            st.builds(Ordered, experiment_id=experiments),
            st.builds(surplus, experiments, experiments),
            st.just(Approved(amount_cents=1, approver="x")),
            st.just(Confirming(amount_cents=1)),
            st.builds(paying, experiment_id=st.none() | experiments),
            st.just(InDoubt()),
            st.just(NotSettled()),
            st.builds(settled),
            st.just(Withdrawn(reason="x")),
        )
    )
    def write(self, record):
        before = self.state
        try:
            self.state = before.next(record)
        except ArchiveError:
            assert self.state is before
            return
        self.accepted.append(record)
        if before.committed and not isinstance(record, Withdrawn):
            assert self.state.ordered == before.ordered
        if before.payment is not None and before.payment.in_doubt:
            assert self.state.payment.in_doubt or self.state.settled or isinstance(record, NotSettled)
            if before.payment.state is PaymentState.UNKNOWN:
                assert not isinstance(record, NotSettled)
        if isinstance(record, Paying):
            assert before.ordered
            assert not before.settled

    @invariant()
    def one_of_each(self):
        kinds = [record.kind for record in self.accepted]
        for kind in ("planned", "ordered", "settled"):
            assert kinds.count(kind) <= 1
        assert self.state.count == len(kinds)
        assert (self.state.ordered is not None) == ("ordered" in kinds)
        assert (self.state.settled is not None) == ("settled" in kinds)
        assert (self.state.payment is not None) == ("paying" in kinds)
        if self.state.settled and self.state.payment:
            assert self.state.payment.state is PaymentState.SETTLED
        if self.state.payment and self.state.payment.state not in UNSETTLED:
            assert self.state.settled or kinds[::-1].index("not_settled") < kinds[::-1].index("paying")

    @invariant()
    def everything_committed_names_one_experiment(self):
        named = {r.experiment_id for r in self.accepted if isinstance(r, Paying) and r.experiment_id}
        assert len(named) <= 1
        if named:
            assert {self.state.ordered.experiment_id} == named


AnyRecords.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
TestAnyRecords = AnyRecords.TestCase
