"""An archive's store in memory, with the faults a real one has, and logs of orders in it."""

import hashlib
import threading
from collections import Counter, deque
from datetime import UTC, datetime, timedelta

from prefect_assay.archive.layout import require_hint, require_table
from prefect_assay.archive.store import ObjectInfo, check_key, chunks_of
from prefect_assay.errors import ArchiveError, ArchiveUnavailable
from prefect_assay.orders.ledger import Ledgers, OrderLedger
from prefect_assay.orders.ledger.log import Ordered
from prefect_assay.orders.payments.interfaces import PaymentAttempt
from prefect_assay.service.models.vocabulary import PaymentMethod

ACCOUNT = "org-1"


class MemoryStore:
    """A `Store`. Each fault befalls the next call that it fits, once for each time it was asked for.

    Attributes:
        objects: the content by key.
        calls: how often each method was called.
        before_put: called with the key before each put, outside the lock: a test may wait or write there.
    """

    def __init__(self):
        self.objects = {}
        self.calls = Counter()
        self.before_put = lambda key: None
        self._lock = threading.Lock()
        self._puts = deque()
        self._hidden = Counter()

    def fail_before_writing(self, times=1):
        """The next puts do not arrive."""
        self._puts.extend(["before"] * times)

    def lose_answer(self, times=1):
        """The next puts arrive, and their answers are lost."""
        self._puts.extend(["after"] * times)

    def pass_puts(self, times=1):
        """The next puts go well; for faults that come later."""
        self._puts.extend([""] * times)

    def hide(self, suffix, times=1):
        """The next readings do not see the key that ends like this."""
        self._hidden[suffix] += times

    def put_if_absent(self, key, data, content_type, *, sha256=None):
        self.calls["put_if_absent"] += 1
        self.before_put(check_key(key))
        with self._lock:
            fault = self._puts.popleft() if self._puts else ""
            if fault == "before":
                raise ArchiveUnavailable(f"{key}: no connection")
            body = b"".join(chunks_of(data))
            written = self.objects.setdefault(key, body) is body
            if fault == "after":
                raise ArchiveUnavailable(f"{key}: the answer was lost")
        return written

    def replace(self, key, data, content_type):
        self.calls["replace"] += 1
        self.objects[require_table(key)] = b"".join(chunks_of(data))

    def find(self, key):
        self.calls["find"] += 1
        return None if self._is_hidden(key) else self.objects.get(key)

    def read(self, key):
        data = self.find(key)
        if data is None:
            raise ArchiveError(f"{key} is not in the archive")
        return data

    def stream(self, key):
        yield self.read(key)

    def stat(self, key):
        self.calls["stat"] += 1
        data = None if self._is_hidden(key) else self.objects.get(key)
        return None if data is None else ObjectInfo(size=len(data), sha256=hashlib.sha256(data).hexdigest())

    def keys(self, prefix):
        folder = f"{prefix}/" if prefix else ""
        yield from sorted(key for key in list(self.objects) if key.startswith(folder))

    def folders(self, prefix):
        folder = f"{prefix}/" if prefix else ""
        below = (key.removeprefix(folder) for key in list(self.objects) if key.startswith(folder))
        yield from sorted({key.partition("/")[0] for key in below if "/" in key})

    def delete(self, key):
        self.calls["delete"] += 1
        self.objects.pop(require_hint(key), None)
        return True

    def strays(self, prefix):
        return iter(())

    def location(self, key):
        return f"memory:{key}"

    def probe(self, prefix="", *, with_race=True):
        pass

    def _is_hidden(self, key):
        with self._lock:
            for suffix in +self._hidden:
                if key.endswith(suffix):
                    self._hidden[suffix] -= 1
                    return True
        return False


def ledgers_in(store=None, account=ACCOUNT):
    """The ledgers of an account in a new or a given store."""
    return Ledgers(store if store is not None else MemoryStore(), "", account)


def make_ledger(store=None, campaign="c", key="k", experiment="exp_1") -> OrderLedger:
    """The log of an order whose experiment is known; without one with `experiment=None`. Each call is another run."""
    ledger = ledgers_in(store).open_order(campaign, key)
    if experiment is not None:
        ledger.record(lambda state: None if state.ordered else Ordered(experiment_id=experiment))
    return ledger


def spent_cents(ledger, since) -> int:
    """What machine payments come to, as another run reads it."""
    return ledgers_in(ledger.ledgers.store).budget.read().paid_cents(since)


def an_attempt(**changes) -> PaymentAttempt:
    """A machine payment that is about to be sent."""
    values = {
        "invoice_id": "inv_1",
        "experiment_id": "exp_1",
        "rail": PaymentMethod.X402_EXACT,
        "payer": "0xc",
        "amount_cents": 3000,
        "nonce": "0x01",
        "network": "eip155:84532",
        "asset": "0xa",
        "pay_to": "0xb",
        "expires_at": datetime.now(UTC) + timedelta(minutes=5),
    }
    return PaymentAttempt(**{**values, **changes})
