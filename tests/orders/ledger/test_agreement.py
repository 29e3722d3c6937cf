"""The order's log against the budget: one of them restored from an older backup is found out before money moves."""

import shutil
from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.archive import LocalStore
from prefect_assay.errors import ArchiveError, ConfigurationError, DecisionNeeded, PaymentOutcomeUnknown
from prefect_assay.orders.job import OrderRoute, PaymentState
from prefect_assay.orders.ledger import PaymentLedger
from prefect_assay.orders.ledger.log import Approved, Confirming, Ordered, Sending
from prefect_assay.orders.ledger.state import NotBegun
from prefect_assay.orders.payments.interfaces import RollingCap
from prefect_assay.orders.question import QuestionKind
from prefect_assay.service.models.vocabulary import PaymentMethod
from support.archive.memory_store import MemoryStore, an_attempt, ledgers_in, make_ledger

CAP = RollingCap(max_cents=10_000, since=datetime.now(UTC) - timedelta(days=30), at=datetime.now(UTC))

SENDING = Sending(attempt=1, route=OrderRoute.QUOTED, rail=PaymentMethod.MPP_SPT)


class Archive:
    """A folder, the backups of it, and one order in it. Each `order` is another run's."""

    def __init__(self, folder):
        self.folder = folder / "archive"
        self.backups = folder / "backups"

    def order(self, key="k"):
        return ledgers_in(LocalStore(self.folder)).open_order("c", key)

    def send(self, key="k", cents=3000):
        ledger = self.order(key)
        ledger.ledgers.budget.reserve(key, "c", cents)
        ledger.record(lambda state: SENDING)
        ledger.record(lambda state: Ordered(experiment_id="exp_1"))
        ledger.record(lambda state: Approved(amount_cents=cents, approver="a rule"))
        return ledger

    def pay(self):
        payment_ledger = PaymentLedger(self.order())
        payment_ledger.reserve(3000, CAP)
        return payment_ledger.begin(an_attempt(rail=PaymentMethod.MPP_SPT), previous=payment_ledger.get())

    def backup(self):
        shutil.copytree(self.folder, self.backups)

    def restore(self, *parts):
        """Put the backup's folders with these names back, as they were then."""
        for part in parts:
            (there,) = self.folder.glob(f"**/{part}")
            shutil.rmtree(there)
            for kept in self.backups.glob(f"**/{part}"):
                shutil.copytree(kept, there)


@pytest.fixture
def archive(tmp_path):
    return Archive(tmp_path)


def test_records_that_agree_are_no_question(archive):
    archive.order().require_agreement()
    archive.send()
    archive.order().require_agreement()
    archive.order("k2").require_agreement()
    sent = archive.pay()
    archive.order().require_agreement()
    PaymentLedger(archive.order()).record_outcome(sent, PaymentState.FAILED)
    archive.order().require_agreement()


def test_a_new_order_finds_out_that_an_older_budget_lacks_those_before_it(archive):
    archive.order("k0").ledgers.budget.reserve("k0", "c", 1)
    archive.backup()
    for key in ("k1", "k2"):
        archive.order(key).require_agreement()
        archive.send(key, cents=50_000)
    archive.restore("BUDGET")
    new = archive.order("k3")
    with pytest.raises(DecisionNeeded, match=r"order k1: 500.00 USD; order k2: 500.00 USD"):
        new.require_agreement()
    new.accept_records()
    new.require_agreement()
    assert new.ledgers.budget.read().campaign_cents("c") == 100_001


def test_a_damaged_log_stops_no_other_order_of_its_campaign(archive):
    archive.send("k1")
    next(archive.folder.glob("**/k1/*1.json")).write_text("damaged")
    with pytest.raises(ConfigurationError, match="damaged"):
        archive.order("k1").read()
    archive.order("k2").require_agreement()


@pytest.mark.parametrize("action", [SENDING, Confirming(amount_cents=5)])
def test_a_kill_between_any_two_writes_is_no_contradiction(archive, action, monkeypatch):
    """The budget is written before the record, and the record is noted in it afterwards."""
    ledger = archive.order()
    ledger.ledgers.budget.reserve("k", "c", 3000)
    archive.order().require_agreement()
    if isinstance(action, Confirming):
        ledger.record(lambda state: Ordered(experiment_id="exp_1"))

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(ledger.ledgers.budget), "note_action", killed)
    with pytest.raises(KeyboardInterrupt):
        ledger.record(lambda state: action)
    monkeypatch.undo()
    archive.order().require_agreement()


def test_a_log_that_has_lost_its_payment_sends_no_second_one(archive):
    """Played: `mpp-spt` issued a second token in 2 of 3 tries."""
    archive.send()
    archive.backup()
    archive.pay()
    archive.restore("k")
    before = archive.order().read()
    assert before.payment is None
    with pytest.raises(PaymentOutcomeUnknown, match="has lost records that its budget knows"):
        archive.pay()
    for _ in range(5):  # records that follow do not make up for the lost one
        archive.order().record(lambda state: Approved(amount_cents=1, approver=f"rule {state.count}"))
    with pytest.raises(PaymentOutcomeUnknown):
        archive.pay()
    assert archive.order().read().payment is None


def test_a_log_that_has_lost_its_create_is_a_question_and_then_continues(archive):
    archive.order().record(lambda state: Approved(amount_cents=3000, approver="a rule"))
    archive.backup()
    archive.send()
    archive.restore("k")
    with pytest.raises(DecisionNeeded) as raised:
        archive.order().require_agreement()
    question = raised.value.question
    assert (question.kind, question.decisions) == (QuestionKind.LEDGER, ("continue", "reject"))
    assert ("reserved in the budget", "30.00 USD") in [(fact.name, fact.value) for fact in question.facts]
    archive.order().accept_records()
    archive.order().require_agreement()
    assert archive.order().ledgers.budget.read().campaign_cents("c") == 3000, "it still counts"


def test_a_budget_that_is_gone_is_a_question_of_every_order_and_made_again(archive):
    archive.send()
    archive.pay()
    archive.send("k2", 500)
    archive.order("k3").record(lambda state: Approved(amount_cents=9, approver="a rule"))
    (budget,) = archive.folder.glob("**/BUDGET")
    shutil.rmtree(budget)
    for key in ("k", "k2", "k3"):
        with pytest.raises(DecisionNeeded, match="has orders that its budget does not know") as raised:
            archive.order(key).require_agreement()
        assert [fact.name for fact in raised.value.question.facts] == ["order k", "order k2"]
    archive.order("k3").accept_records()
    for key in ("k", "k2", "k3"):
        archive.order(key).require_agreement()
    state = archive.order().ledgers.budget.read()
    assert (state.campaign_cents("c"), state.paid_cents(CAP.since)) == (3500, 3000)


def test_a_budget_of_an_older_backup_is_a_question_of_every_order_of_its_campaign(archive):
    archive.send("k1")
    archive.backup()
    archive.send()
    archive.restore("BUDGET")
    for key in ("k", "k1"):
        with pytest.raises(DecisionNeeded, match=r"\(order k: 30.00 USD"):
            archive.order(key).require_agreement()


@pytest.mark.parametrize("name", ["000001.jsonl", "1.json", "000002.json.bak", "head"])
def test_a_log_of_another_layout_is_refused_and_not_seen_as_empty(archive, name):
    ledger = archive.order()
    folder = archive.folder / ledger._log.folder
    folder.mkdir(parents=True)
    (folder / name).write_text("{}")
    with pytest.raises(ArchiveError, match="another version of prefect-assay wrote them"):
        ledger.read()
    with pytest.raises(ArchiveError, match="no first record"):
        ledger.record(lambda state: SENDING)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"kind":"sending"', '"kind":"sending_soon"'),
        ('"attempt":1', '"attempt":1,"moved_to":"exp_2"'),
        ('"record_schema":1', '"record_schema":0'),
        ('"record_schema":1', '"record_schema":"1"'),
        ('"record_schema":1', '"record_schema":2'),
    ],
)
def test_a_record_of_another_version_is_refused(old, new):
    store = MemoryStore()
    make_ledger(store, experiment=None).record(lambda state: SENDING)
    key = next(key for key in store.objects if key.endswith("k/000002.json"))
    assert old in store.objects[key].decode()
    store.objects[key] = store.objects[key].replace(old.encode(), new.encode())
    with pytest.raises((ConfigurationError, ArchiveError), match="version"):
        make_ledger(store, experiment=None).read()


def test_a_reservation_of_another_version_is_refused():
    store = MemoryStore()
    ledgers_in(store).budget.reserve("k", "c", 5)
    key = next(key for key in store.objects if "BUDGET" in key)
    store.objects[key] = store.objects[key].replace(b'"cents":5', b'"cents":5,"currency":"EUR"')
    with pytest.raises(ConfigurationError, match="another version"):
        ledgers_in(store).budget.read()


class Forgetful(MemoryStore):
    """A store whose conditional write overwrites what another has just written, as check-then-act does."""

    def __init__(self, other):
        super().__init__()
        self.other = other

    def put_if_absent(self, key, data, content_type, *, sha256=None):
        written = super().put_if_absent(key, data, content_type, sha256=sha256)
        if written and self.other and self.other in self.objects[key]:
            self.objects[key] = self.objects[key].replace(b'"id":"', b'"id":"another')
            self.other = None
        return written


@pytest.mark.parametrize(
    ("word", "record"), [(b'"sending"', SENDING), (b'"ordered"', Ordered(experiment_id="exp_1"))]
)
def test_a_record_that_precedes_an_action_is_read_back(word, record):
    store = Forgetful(word)
    ledger = make_ledger(store, experiment=None)
    result = ledger.record(lambda state: None if state.attempts or state.ordered else record)
    assert result is None, "another's record is under the number"
    assert not isinstance(ledger.state, NotBegun)


def test_a_payment_is_read_back():
    store = Forgetful(b'"paying"')
    payment_ledger = PaymentLedger(make_ledger(store))
    payment_ledger.reserve(3000, CAP)
    assert payment_ledger.begin(an_attempt(), previous=None) is None


def test_a_reading_back_costs_one_read():
    store = MemoryStore()
    ledger = make_ledger(store, experiment=None)
    ledger.ledgers.budget.reserve("k", "c", 5)
    ledger.record(lambda state: Approved(amount_cents=1, approver="a rule"))
    reads = []
    find = store.find
    store.find = lambda key: reads.append(key) or find(key)
    ledger.record(lambda state: SENDING)
    assert [key for key in reads if "BUDGET" not in key] == [f"{ledger._log.folder}/000003.json"]
