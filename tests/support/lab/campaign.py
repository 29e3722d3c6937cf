"""A campaign of two orders at a lab in this process, played run by run without Prefect, and its judge.

Each run is another process: only the archive is kept. The judge reads the lab's database, and what has arrived there.
"""

from collections import Counter
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

from prefect import Task
from prefect.logging import disable_run_logger
from pydantic import SecretStr

from assay_lab.control.events import body_of, trigger_event
from assay_lab.kernel.settings import LabSettings
from assay_lab.rails.x402 import X402Settings
from assay_lab.requests import validation
from assay_lab.service.core import LabCore
from lab_support.core import PRICED, UNPRICED, advance
from prefect_assay.archive.campaign_plan import Plan, PlannedExperiment
from prefect_assay.blocks import AssayCredentials, LocalArchive, SharedPaymentTokens, X402Wallet
from prefect_assay.campaigns import advance as advancing
from prefect_assay.campaigns import artifacts, play
from prefect_assay.campaigns.approval import questions
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.orders.create import find_or_create
from prefect_assay.orders.identity import order_key
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.campaign_log import CampaignLog
from prefect_assay.orders.ledger.open_money import OpenKind, is_closed, read_logs
from prefect_assay.orders.open_money import check_orders
from prefect_assay.orders.payments.reconciliation import require_paid_again
from prefect_assay.orders.payments.settle import settle
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.spec import Assay, ExperimentSpec
from prefect_assay.service.models.vocabulary import PaymentMethod
from prefect_assay.tasks import pay as paying
from support.accounts import make_account, make_options
from support.archive.memory_store import MemoryStore
from support.lab.in_process import Fate, FatedStore, LabTransport, is_act
from support.x402 import CANARY_KEY, NETWORK, USDC, decode

CAMPAIGN = "camp"
UNASKED_CENTS = 10**8
BASE_URL = "http://127.0.0.1:8000"


class PlayedCampaign:
    """Two experiments of one campaign, by one rail; `machine` is how far this machine's clock is ahead."""

    def __init__(self, method, *, is_priced, by_quote, accept_quotes=True, rolling_cents=10**9, orders=2):
        self.core = LabCore(LabSettings())
        self.transport = LabTransport(self.core)
        self.store = MemoryStore()
        self.fates, self.machine, self.tokens = [Fate()], timedelta(), 0
        self.method = PaymentMethod(method)
        self.target = PRICED if is_priced else UNPRICED
        self.options = make_options(poll_seconds=1.0, request_quote=by_quote)
        self.policy = {
            "machine_payments": True,
            "accept_quotes": accept_quotes,
            "rolling_usd": rolling_cents / 100,
            "answer_ceiling_usd": 10**7,
        }
        with self.replaced():
            self.plan, self.terms = self._plan(orders), self.setup().terms(UNASKED_CENTS)
        self.keys = [one.order_key for one in self.plan.experiments]

    def setup(self):
        """The blocks as one process loads them."""
        wallet = {
            PaymentMethod.X402_EXACT: lambda: X402Wallet(
                private_key=CANARY_KEY, networks=[NETWORK], assets=[USDC], pay_to=[X402Settings().pay_to]
            ),
            PaymentMethod.MPP_SPT: lambda: SharedPaymentTokens(
                issuer_url="http://127.0.0.1:9/", issuer_key="key", network_ids=["profile_lab_1ab402"]
            ),
        }.get(self.method, lambda: None)()
        account = make_account(
            base_url=BASE_URL,
            token=self.core.seeded.member_token,
            policy=self.policy,
            payment_method=self.method,
            wallet=wallet,
        )
        return CampaignSetup(account, self.options)

    def _plan(self, orders):
        specs = [
            ExperimentSpec.model_validate(
                {
                    "experiment_type": "affinity",
                    "method": "bli",
                    "target_id": self.target["id"],
                    "sequences": {"d": {"aa_string": f"MKVLAAGICDE{residue}"}},
                }
            )
            for residue in "AC"[:orders]
        ]
        planned = tuple(
            PlannedExperiment(order_key=order_key(CAMPAIGN, number, spec), batch_index=number, spec=spec)
            for number, spec in enumerate(specs)
        )
        assay = Assay(experiment_type="affinity", target=self.target["name"])
        archive_id = self.setup().ledgers.archive_id
        return Plan(campaign_id=CAMPAIGN, archive_id=archive_id, source="d", assay=assay, experiments=planned)

    # --- a run ---

    def look(self, fate=None):
        """One execution by a new process; the stage of each order."""
        self.fates.append(fate or Fate())
        try:
            with self.replaced():
                setup = self.setup().under(self.terms)
                campaign = play.Campaign(setup, self.plan, setup.log(CAMPAIGN), self.terms)
                return [one.stage for one in play.look_at_orders(campaign).orders.values()]
        finally:
            self.fates.pop()

    def _replacements(self):
        for name, value in list(vars(advancing).items()):
            if isinstance(value, Task):
                yield advancing, name, value.fn
        yield advancing._OrderActions, "retrieve", self._retrieve
        yield AssayCredentials, "get_client", lambda credentials: self._client(credentials)  # noqa: PLW0108 - binds the block
        yield LocalArchive, "get_store", lambda _: FatedStore(self.store, self.fates[-1])
        yield SharedPaymentTokens, "get_issuer", lambda _: self._issue
        yield paying, "utc_now", self.now
        for name in ("show_order", "show_payment", "show_surplus"):
            yield artifacts, name, lambda *_, **__: None
        yield questions, "show_question", lambda *_, **__: None
        yield play, "_show_changes", lambda *_: None

    @contextmanager
    def replaced(self):
        """The tasks' own functions, this lab and archive, and no waiting."""
        with ExitStack() as stack:
            stack.enter_context(disable_run_logger())
            for place, name, value in self._replacements():
                stack.enter_context(patch.object(place, name, value))
            stack.enter_context(patch("time.sleep", lambda _: None))
            for function, changes in (
                (find_or_create, {"patience": (0.0,), "sleep": lambda _: None}),
                (settle, {"read_delays": (0.0,), "sleep": lambda _: None, "now": self.now}),
                (require_paid_again, {"sleep": lambda _: None}),
            ):
                stack.enter_context(patch.dict(function.__kwdefaults__, changes))
            yield

    def now(self):
        return datetime.now(UTC) + self.machine

    def _client(self, credentials):
        return AssayClient(
            credentials.base_url,
            credentials.token,
            transport=self.transport.at(self.fates[-1]),
            sleep=lambda _: None,
        )

    def _issue(self, _limits):
        self.tokens += 1
        return SecretStr(f"spt_campaign_{self.tokens}")

    @staticmethod
    def _retrieve(performing, seen):
        if seen.row.results_status == "all":
            performing.order.ledger.deliver(seen.row.code)
        return seen.add(retrieved=True)

    # --- persons and the laboratory ---

    def ledgers(self):
        """The ledgers, as another process reads them."""
        return Ledgers.find_recorded(self.store, "", BASE_URL)

    def ledger(self, key):
        """The ledger of an order, likewise."""
        return self.ledgers().open_order(CAMPAIGN, key)

    def states(self):
        return [self.ledger(key).read() for key in self.keys]

    def open_questions(self):
        return self.log().read().open_questions

    def log(self):
        """The campaign's log, as another process reads it."""
        return CampaignLog(self.store, "", CAMPAIGN)

    def answer(self, choose):
        """Answer each open question by the decision that `choose` makes of its decisions."""
        log = self.log()
        for key, asked in log.read().open_questions.items():
            log.answer(
                key,
                asked.revision,
                choose(asked.question),
                amount_cents=asked.question.amount_cents,
                answerer="ada",
                how="a command",
                now=datetime.now(UTC),
                ceiling_cents=10**9,
            )

    def happen(self, event, key, **details):
        """An event of the laboratory at the experiment of an order, if there is one."""
        state = self.ledger(key).read()
        if state.ordered is not None:
            body = {"experiment_id": state.ordered.experiment_id, **details}
            trigger_event(self.core.lab, event, validation.read_body(body_of(event), body))

    def pass_time(self, **span):
        advance(self.core, **span)

    # --- the judge ---

    def rows(self, sql, *values):
        with self.core.lab.store.transaction() as db:
            return [dict(row) for row in db.all(sql, *values)]

    def experiments(self, key):
        return self.rows("SELECT * FROM experiments WHERE name LIKE ?", f"%{key}%")

    def bills(self, key):
        """The experiments of an order with an invoice that somebody has to pay or has paid."""
        ids = [one["id"] for one in self.experiments(key)]
        billed = self.rows("SELECT experiment_id FROM invoices WHERE status <> 'void'")
        return {one["experiment_id"] for one in billed} & {*ids}

    def settlements(self, key):
        ids = {one["id"] for one in self.experiments(key)}
        return [one for one in self.rows("SELECT * FROM settlements") if one["experiment_id"] in ids]

    def list_open_money(self):
        """What is open by the ledgers and the service."""
        logs, notes = read_logs(self.ledgers())
        with self.replaced(), self._client(self.setup().credentials) as client:
            checks = check_orders(logs, client, self._lab_time())
        assert notes == checks.notes == ()
        assert all(item.url for item in checks.open_money.items if item.amount_cents)
        return checks

    def _lab_time(self):
        return self.core.lab.clock.now(self.core.seeded.organization_id)

    def booked_money(self):
        """What is open by the lab's records, in cents by kind.

        An experiment that no ledger names is left out: of one order, two without an answer may have been made.
        """
        logs, _ = read_logs(self.ledgers())
        sums = [self._booked(log, self._lab_time().isoformat()) for log in logs if not is_closed(log.state)]
        return {kind: sum(one[kind] for one in sums) for kind in OpenKind}

    def _booked(self, log, now):
        state, experiment_rows = (
            log.state,
            sorted(self.experiments(log.order_key), key=lambda one: one["seq"]),
        )
        is_lost = state.ordered is None and state.open_attempts
        current = (
            state.ordered.experiment_id
            if state.ordered
            else experiment_rows[0]["id"]
            if experiment_rows and is_lost
            else None
        )
        booked = Counter()
        for one in experiment_rows:
            beside = one["id"] != current
            if beside and one["id"] not in state.surplus:
                continue
            is_void = beside or one["status"] == "canceled"
            for bill in self.rows("SELECT * FROM invoices WHERE experiment_id = ?", one["id"]):
                if bill["status"] in {"draft", "open"}:
                    booked[OpenKind.TO_VOID if is_void else OpenKind.TO_PAY] += bill["amount_cents"]
                elif bill["status"] == "paid" and (is_void or state.delivered is None):
                    booked[OpenKind.TO_REFUND if is_void else OpenKind.TO_DELIVER] += bill["amount_cents"]
            for quote in self.rows("SELECT * FROM quotes WHERE experiment_id = ?", one["id"]):
                if quote["status"] == "pending" and one["status"] == "quote_sent" and not beside:
                    booked[OpenKind.QUOTE] += quote["total_cents"] if quote["valid_until"] > now else 0
        return booked

    def acting(self):
        """The requests that have arrived and act: creates, confirmations, credentials."""
        return [
            (path, headers)
            for method, path, headers in self.transport.journal
            if is_act(method, path, headers)
        ]

    def credentials_by_invoice(self):
        """How many credentials that could settle next to each other were sent for each invoice."""
        seen = {}
        for _, path, headers in (*self.transport.journal, *self.transport.lost):
            if "payment-signature" in headers:
                one = decode(headers["payment-signature"])["payload"]["authorization"]
                seen.setdefault(path, set()).add((one["from"], one["nonce"]))
            elif "payment-authorization" in headers:
                seen.setdefault(path, set()).add(headers["payment-authorization"])
        return Counter({path: len(credentials) for path, credentials in seen.items()})

    def close(self):
        self.core.close()
