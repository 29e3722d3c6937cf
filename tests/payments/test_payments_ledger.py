import json
import os
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.errors import BudgetExceeded, ConfigurationError
from prefect_assay.models.job import PaymentState
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.payments import FileLedger, KeyValueLedger, LedgerEntry, MemoryLedger, RollingCap
from prefect_assay.payments.ledger import _MemoryStore, ledger_key

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CAP = RollingCap(max_cents=10_000, since=NOW - timedelta(days=30))


class _UnlockedStore(_MemoryStore):
    """As a remote store would be: create is atomic, and nothing holds other writers back."""

    def create(self, key, value):
        return self._values.setdefault(key, value) is value

    def locked(self):
        return nullcontext()


@pytest.fixture(params=["memory", "files", "unlocked"])
def ledger(request, tmp_path):
    if request.param == "files":
        return FileLedger(tmp_path / "deep" / "ledger")
    return MemoryLedger() if request.param == "memory" else KeyValueLedger(_UnlockedStore())


def entry(invoice="inv_1", **changes):
    values = {
        "key": ledger_key("https://a.example", invoice),
        "base_url": "https://a.example",
        "invoice_id": invoice,
        "rail": PaymentMethod.X402_EXACT,
        "amount_cents": 3000,
        "nonce": "0x01",
        "network": "eip155:84532",
        "asset": "0xa",
        "pay_to": "0xb",
        "expires_at": NOW + timedelta(minutes=5),
        "recorded_at": NOW,
    }
    return LedgerEntry(**{**values, **changes})


def test_a_claim_stands_and_a_second_one_is_turned_away(ledger):
    first, second = entry(), entry()
    assert ledger.get(first.key) is None
    assert ledger.claim(first)
    assert not ledger.claim(second)
    assert ledger.get(first.key) == first != second


def test_a_claim_takes_the_place_of_exactly_the_entry_it_has_seen(ledger):
    first, second, third = entry(), entry(), entry()
    ledger.claim(first)
    assert ledger.claim(second, previous=first)
    assert not ledger.claim(third, previous=first)
    assert ledger.get(first.key) == second


def test_an_update_needs_the_entry_as_it_stands(ledger):
    first = entry()
    sent = first.moved(PaymentState.SENT, sent_at=NOW)
    assert not ledger.update(first, sent)
    ledger.claim(first)
    assert ledger.update(first, sent)
    assert not ledger.update(first, first.moved(PaymentState.FAILED))
    assert ledger.get(first.key) == sent
    assert sent.moved(PaymentState.SETTLED).sent_at == NOW


@pytest.mark.parametrize("state", list(PaymentState))
def test_everything_but_a_failure_counts_as_spent(ledger, state):
    ledger.claim(entry(state=state))
    assert ledger.spent_cents(NOW) == (0 if state is PaymentState.FAILED else 3000)
    assert ledger.spent_cents(NOW + timedelta(seconds=1)) == 0


def test_the_rolling_cap_can_be_reached_and_not_passed(ledger):
    for number in range(3):
        assert ledger.claim(entry(f"inv_{number}"), cap=CAP)
    with pytest.raises(
        BudgetExceeded, match=r"inv_9 of 30.00 USD .* 90.00 USD of 100.00 USD .* since 2026-01-30"
    ):
        ledger.claim(entry("inv_9"), cap=CAP)
    assert ledger.get(entry("inv_9").key).state is PaymentState.FAILED
    assert ledger.claim(entry("inv_8", amount_cents=1000), cap=CAP)
    assert ledger.spent_cents(CAP.since) == 10_000


def test_what_lies_before_the_window_no_longer_counts(ledger):
    ledger.claim(entry("inv_0", amount_cents=9000, recorded_at=NOW - timedelta(days=31)))
    assert ledger.claim(entry(), cap=CAP)


def test_over_the_cap_an_earlier_entry_stays_as_it_was(ledger):
    unknown = entry(state=PaymentState.UNKNOWN, sent_at=NOW)
    ledger.claim(unknown)
    with pytest.raises(BudgetExceeded):
        ledger.claim(
            entry(state=PaymentState.UNKNOWN), previous=unknown, cap=CAP.model_copy(update={"max_cents": 1})
        )
    assert ledger.get(unknown.key) == unknown


def test_racing_threads_never_pass_the_rolling_cap(ledger):
    barrier = threading.Barrier(10)

    def claim(number):
        barrier.wait(5)
        try:
            return ledger.claim(entry(f"inv_{number}"), cap=CAP)
        except BudgetExceeded:
            return False

    with ThreadPoolExecutor(10) as pool:
        won = sum(pool.map(claim, range(10)))
    assert ledger.spent_cents(CAP.since) == won * 3000 <= CAP.max_cents
    if not isinstance(ledger._store, _UnlockedStore):  # without a lock, racing claims may refuse each other
        assert won == 3


RACER = """
import sys, time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from prefect_assay.errors import BudgetExceeded
from prefect_assay.payments.ledger import LedgerEntry, RollingCap, ledger_key
from prefect_assay.payments.ledger_files import FileLedger

folder, number = sys.argv[1], sys.argv[2]
ledger, now, won = FileLedger(Path(folder) / "ledger"), datetime.now(UTC), 0
cap = RollingCap(max_cents=10_000, since=now - timedelta(days=30))
Path(folder, f"ready-{number}").touch()
deadline = time.monotonic() + 30
while not Path(folder, "go").exists() and time.monotonic() < deadline:
    time.sleep(0.005)
for attempt in range(5):
    invoice = f"inv_{number}_{attempt}"
    entry = LedgerEntry(
        key=ledger_key("https://a.example", invoice), base_url="https://a.example", invoice_id=invoice,
        rail="x402-exact", amount_cents=700, nonce="0x01", network="eip155:1", asset="0xa", pay_to="0xb",
        expires_at=now, recorded_at=now,
    )
    try:
        won += ledger.claim(entry, cap=cap)
    except BudgetExceeded:
        pass
shared = LedgerEntry(**{**entry.model_dump(), "key": ledger_key("https://a.example", "shared"), "amount_cents": 1})
print(won, int(ledger.claim(shared)))
"""


def test_racing_processes_pass_neither_the_cap_nor_a_claim(tmp_path):
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path), str(number)], stdout=subprocess.PIPE, text=True
        )
        for number in range(10)
    ]
    try:
        _until(lambda: len(list(tmp_path.glob("ready-*"))) == 10)
        (tmp_path / "go").touch()
        answers = [racer.communicate(timeout=30)[0].split() for racer in racers]
    finally:
        for racer in racers:
            racer.kill()

    assert sum(int(won) for won, _ in answers) == 14  # 14 x 7 USD fit into 100 USD, 15 do not
    assert sum(int(shared) for _, shared in answers) == 1
    assert FileLedger(tmp_path / "ledger").spent_cents(NOW - timedelta(days=3650)) == 14 * 700 + 1


CRASHER = """
import os, sys
from prefect_assay.payments.ledger import LedgerEntry
from prefect_assay.payments.ledger_files import FileLedger

ledger, step = FileLedger(sys.argv[1]), sys.argv[3]
entry = LedgerEntry.model_validate_json(sys.argv[2])
real = getattr(os, step)
setattr(os, step, lambda *args, **kwargs: os._exit(9))
ledger.claim(entry)
"""


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_a_crash_while_an_entry_is_written_leaves_none(tmp_path, step):
    arguments = [sys.executable, "-c", CRASHER, str(tmp_path), entry().model_dump_json(), step]
    assert subprocess.run(arguments, timeout=30, check=False).returncode == 9

    ledger = FileLedger(tmp_path)
    assert ledger.get(entry().key) is None
    assert ledger.spent_cents(NOW) == 0
    assert ledger.claim(entry())


def _until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_entry_is_one_readable_file_of_its_owner(tmp_path):
    ledger = FileLedger(str(tmp_path / "ledger"))
    ledger.claim(entry("../../etc/passwd"))
    (file,) = (tmp_path / "ledger").glob("*.json")

    assert json.loads(file.read_text())["invoice_id"] == "../../etc/passwd"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert sorted(path.name for path in file.parent.iterdir()) == [".lock", file.name]
    assert FileLedger(tmp_path / "ledger").get(file.stem).invoice_id == "../../etc/passwd"


@pytest.mark.parametrize("content", ["", "{", '{"key": "k"}', "\x00"])
def test_a_damaged_ledger_stops_every_payment(tmp_path, content):
    ledger = FileLedger(tmp_path)
    ledger.claim(entry())
    (file,) = tmp_path.glob("*.json")
    file.write_text(content)

    with pytest.raises(ConfigurationError, match="unreadable entry"):
        ledger.get(entry().key)
    with pytest.raises(ConfigurationError, match="unreadable entry"):
        ledger.claim(entry("inv_2"), cap=CAP)


def test_a_folder_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=f"{tmp_path}/file/ledger cannot be used"):
        FileLedger(tmp_path / "file" / "ledger")


def test_a_file_system_without_links_is_named(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    ledger = FileLedger(tmp_path)
    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(ConfigurationError, match="hard links"):
        ledger.claim(entry())
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_keys_differ_by_service_and_invoice():
    keys = {
        ledger_key(*pair)
        for pair in [("https://a", "b"), ("https://a", "c"), ("https://ab", ""), ("https:/", "/ab")]
    }
    assert len(keys) == 4
    assert all(len(key) == 40 and key.isalnum() for key in keys)
