"""An unpaid order at a lab in the test's own process, a rail to pay it by, and what can happen on the way.

The judge is the lab's list of settlements, and what was sent: an authorisation that may still be settled counts.
"""

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from email.utils import format_datetime
from types import SimpleNamespace

from pydantic import SecretStr

from assay_lab.kernel.faults import PaymentFault
from assay_lab.kernel.refusals import Refusal
from assay_lab.rails.x402 import X402Settings
from assay_lab.service.core import LabCore
from lab_support.core import get, order
from prefect_assay.errors import PaymentOutcomeUnknown
from prefect_assay.orders.ledger import PaymentLedger
from prefect_assay.orders.payments.guard import PaymentPolicy
from prefect_assay.orders.payments.rails.mpp import MppRail
from prefect_assay.orders.payments.rails.x402 import X402Limits, X402Rail
from prefect_assay.orders.payments.settle import settle, utc_now
from prefect_assay.service.models.billing import Invoice
from support.archive.memory_store import MemoryStore, make_ledger, spent_cents
from support.x402 import CANARY_KEY, NETWORK, USDC, decode, encode

X402, MPP = "x402-exact", "mpp-spt"
PROFILE = "profile_lab_1ab402"
PAY_TO = X402Settings().pay_to
CANARY_TOKEN = "spt_canary"
TRANSACTION = "0x" + "ab" * 32
LIMITS = X402Limits(networks=(NETWORK,), assets=(USDC,), pay_to=(PAY_TO,))
RAIL = X402Rail(SecretStr(CANARY_KEY), LIMITS)
OTHER_RAIL = X402Rail(SecretStr("0x" + "11" * 32), LIMITS)


@dataclass(frozen=True)
class Answer:
    status_code: int
    headers: dict
    body: dict


# --- what becomes of a request with a credential; `send` brings it to the lab ---


def arrive(send):
    return send()


def lose(send):
    raise PaymentOutcomeUnknown("no answer")


def drop_answer(send):
    send()
    raise PaymentOutcomeUnknown("no answer")


def fail_after(send):
    send()
    return Answer(500, {}, {})


def forbid_replay(send):
    send()
    return Answer(403, {}, {})


def leave_out_receipt(send):
    return replace(send(), headers={}, body={})


def refuse_without_reason(send):
    return Answer(402, {}, {})


def after(answers):
    """The same answer to a credential that has arrived."""
    return lambda send: (send(), answers(send))[1]


def claim_settlement(send):
    """Of a credential that never arrived, in the words of both protocols."""
    settled = encode({"success": True, "transaction": TRANSACTION, "network": NETWORK})
    receipt = encode({"status": "success", "method": "stripe", "reference": "pi_1"})
    return Answer(200, {"payment-response": settled, "payment-receipt": receipt}, {"status": "paid"})


def state_failure(reason):
    """A settlement that has failed or not ended: the transaction may still be mined."""
    failure = encode(
        {"success": False, "errorReason": reason, "transaction": TRANSACTION, "network": NETWORK}
    )
    return lambda _: Answer(402, {"payment-response": failure}, {})


def refuse(send):
    """Stated as each protocol states that nothing was moved."""
    reason = {"payment-response": encode({"success": False, "errorReason": "insufficient_funds"})}
    problem = {"type": "https://paymentauth.org/problems/payment-expired", "detail": "insufficient_funds"}
    return Answer(402, reason, problem)


@dataclass
class LabPayApi:
    """The two calls of `InvoiceApi`, and how each goes.

    Attributes:
        answers: what becomes of a request with a credential.
        asked: changes the answer to a request without one.
        shown: what is overridden in the invoice, such as its status; a callable is asked each time.
        before: called when a credential arrives.
    """

    core: LabCore
    base_url: str
    answers: object = arrive
    asked: object = staticmethod(lambda answer: answer)
    shown: dict = field(default_factory=dict)
    before: object = staticmethod(lambda: None)
    now: object = staticmethod(utc_now)
    sent: list[dict] = field(default_factory=list)
    probes: int = 0

    def get(self, invoice_id):
        fields = {name: value() if callable(value) else value for name, value in self.shown.items()}
        return Invoice.model_validate({**get(self.core, f"/invoices/{invoice_id}"), **fields})

    def pay(self, invoice_id, headers=None):
        if not headers:
            self.probes += 1
            return self.asked(self._perform(invoice_id, {}))
        self.before()
        self.sent.append(dict(headers))
        return self.answers(lambda: self._perform(invoice_id, headers))

    def _perform(self, invoice_id, headers):
        try:
            reply = self.core.request("POST", f"/invoices/{invoice_id}/pay", headers=dict(headers))
        except Refusal as refusal:
            return Answer(refusal.status, {}, {"error": refusal.message})
        date = format_datetime(self.now(), usegmt=True)
        lower = {name.lower(): value for name, value in (reply.headers or {}).items()}
        return Answer(reply.status, {"date": date, **lower}, reply.body)

    def fault(self, action, **details):
        self.core.lab.payment_faults.append(PaymentFault(action=action, **details))

    def offer(self, resource=None, others=(), **changes):
        """Change what the x402 challenge offers."""

        def change(answer):
            asked = decode(answer.headers["payment-required"])
            asked["accepts"] = [*others, {**asked["accepts"][0], **changes}]
            asked["resource"] |= {"url": resource} if resource else {}
            return replace(answer, headers={**answer.headers, "payment-required": encode(asked)})

        self.asked = change


def with_signing(credential):
    """The canary's rail with something else in place of its signature."""
    names = (
        "method",
        "payer",
        "is_repeatable",
        "make_nonce",
        "read_offers",
        "find_problems",
        "read_settlement",
    )
    return SimpleNamespace(make_credential=credential, **{name: getattr(RAIL, name) for name in names})


def interrupt(*_, **__):
    raise KeyboardInterrupt


class PayWorld:
    """An open invoice on one rail, and an issuer that counts. Each payment is another run's, with a log of its own."""

    def __init__(self, core, method=X402):
        core.lab.payment_faults.clear()
        self.method = method
        self.api = LabPayApi(core, core.lab.settings.base_url)
        pointer = order(core, auto_accept_quote=True, payment={"method": method}).body["payment"]
        self.invoice_id = pointer["pay_url"].removeprefix("/api/v1/invoices/").removesuffix("/pay")
        invoice = self.api.get(self.invoice_id)
        self.cents, self.experiment_id = invoice.amount, invoice.experiment_id
        self.alias, self.page = invoice.provider_invoice_id, invoice.provider_hosted_invoice_url
        self.store, self.payment_ledger = MemoryStore(), None
        self.issued, self.token, self.slept = [], CANARY_TOKEN, []
        self.rail = RAIL if method == X402 else self.new_rail()
        self.policy = PaymentPolicy(
            enabled=True,
            max_cents_per_payment=self.cents,
            max_cents_rolling=2 * self.cents,
            allowed_origins=(self.api.base_url,),
        )

    def new_rail(self, issue=None):
        """By tokens each process has its own: what one has in memory, no other one can send."""
        return RAIL if self.method == X402 else MppRail(issue or self.issue, [PROFILE])

    def issue(self, limits):
        self.issued.append(limits)
        return f"{self.token}_{self.invoice_id.replace('-', '')}_{len(self.issued)}"

    def signing(self, before):
        """The rail, with something that happens while the credential is made."""
        if self.method == X402:
            return with_signing(
                lambda *arguments, **options: (before(), RAIL.make_credential(*arguments, **options))[1]
            )
        return self.new_rail(lambda limits: (before(), self.issue(limits))[1])

    def settle(self, invoice_id=None, **changes):
        arguments = {
            "expected_cents": self.cents,
            "experiment_id": self.experiment_id,
            "sleep": self.slept.append,
            **changes,
        }
        self.api.now = arguments.get("now", utc_now)  # time passes for both
        rail, api = arguments.pop("rail", self.rail), arguments.pop("api", self.api)
        payment_ledger = arguments.pop("ledger", self.payment_ledger) or self.another_run()
        return settle(api, invoice_id or self.invoice_id, rail, self.policy, payment_ledger, **arguments)

    def ledger(self):
        return make_ledger(self.store, experiment=self.experiment_id)

    def another_run(self):
        return PaymentLedger(self.ledger())

    def allow(self, **changes):
        self.policy = PaymentPolicy(**{**self.policy.model_dump(), **changes})

    # The judge

    def entry(self):
        return self.another_run().get()

    def state(self):
        entry = self.entry()
        return entry and entry.state.value

    def records(self):
        return [record.kind for record in self.ledger().records()][2:]

    def spent(self):
        return spent_cents(self.ledger(), utc_now() - timedelta(days=1))

    def settlements(self):
        with self.api.core.lab.store.transaction() as db:
            rows = [dict(row) for row in db.all("SELECT * FROM settlements")]
        return [row for row in rows if row["invoice_id"] == self.invoice_id]

    def authorisations(self):
        return [decode(sent["PAYMENT-SIGNATURE"])["payload"]["authorization"] for sent in self.api.sent]

    def could_settle(self):
        """How many of what was sent could move money beside each other."""
        if self.method == MPP:
            return len(self.api.sent)
        accepted = [decode(sent["PAYMENT-SIGNATURE"])["accepted"] for sent in self.api.sent]
        pairs = zip(self.authorisations(), accepted, strict=True)
        return len({(one["from"], one["nonce"], to["network"], to["asset"]) for one, to in pairs})

    def is_untouched(self):
        """Nothing was sent, is recorded or counts."""
        return (self.api.sent, self.settlements(), self.entry(), self.spent()) == ([], [], None, 0)


@contextmanager
def hidden(world, readings=10**9):
    """The invoice shows a settlement only after this many readings."""
    left = iter(range(readings))

    def status():
        actual = get(world.api.core, f"/invoices/{world.invoice_id}")["status"]
        return "open" if actual == "paid" and next(left, None) is not None else actual

    world.api.shown["status"] = status
    yield
    world.api.shown.pop("status", None)
