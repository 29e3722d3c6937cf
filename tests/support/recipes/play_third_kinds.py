"""Run in a copy of the package that has a third rail and a third archive kind: each goes its own way."""

import pytest
from pydantic import ValidationError

from prefect_assay.blocks import AssayAccount, SharedPaymentTokens
from prefect_assay.blocks.archives import MemoryArchive, describe_archive_addresses, get_archive_kind
from prefect_assay.blocks.wallets import VoucherBook
from prefect_assay.campaigns.approval.purchase import describe_payment
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.deployments.setup import _BLOCKS
from prefect_assay.errors import ArchiveUnavailable, InputError, PaymentRefused, PaymentsDisabled
from prefect_assay.orders.job import PaymentState
from prefect_assay.orders.ledger import PaymentLedger
from prefect_assay.orders.payments import PaymentPolicy, can_pay_again, get_rail_kind, name_rail, settle
from prefect_assay.service.models.billing import Invoice, PayAnswer
from prefect_assay.service.models.vocabulary import MACHINE_RAILS, PaymentMethod
from prefect_assay.tasks.pay import _open_rail, require_rail
from support.accounts import make_account
from support.archive.memory_store import MemoryStore, make_ledger

METHOD = PaymentMethod.VOUCHER
LEDGER = VoucherBook(code="code-1", shops=["shop-1"])
TOKENS = SharedPaymentTokens(issuer_url="http://127.0.0.1:9", issuer_key="k", network_ids=["profile_1"])


class Service:
    """An invoice of 50 USD that asks for a voucher; it keeps the credentials that it gets."""

    base_url = "https://lab.example"

    def __init__(self, challenge):
        self.challenge, self.sent = challenge, []

    def get(self, invoice_id):
        status = "paid" if self.sent else "open"
        return Invoice(id=invoice_id, status=status, amount=5000, experiment_id="exp_1")

    def pay(self, invoice_id, headers=None):
        if headers is None:
            return PayAnswer(status_code=402, headers=self.challenge, body={})
        self.sent.append(headers)
        return PayAnswer(status_code=200, headers={}, body={})


def pay(service):
    policy = PaymentPolicy(
        enabled=True,
        max_cents_per_payment=5000,
        max_cents_rolling=5000,
        allowed_origins=(service.base_url,),
    )
    ledger = PaymentLedger(make_ledger(MemoryStore()))
    return settle(
        service,
        "inv_1",
        _open_rail(METHOD, LEDGER),
        policy,
        ledger,
        expected_cents=5000,
        experiment_id="exp_1",
        sleep=lambda _: None,
        read_delays=(0,),
    )


def test_a_payment_goes_the_way_of_its_own_rail():
    service = Service({"voucher-required": "5000;shop-1"})
    payment = pay(service)
    assert (payment.state, payment.method) == (PaymentState.SETTLED, METHOD)
    (headers,) = service.sent
    assert headers.keys() == {"Payment-Voucher", "Idempotency-Key"}


@pytest.mark.parametrize(
    ("challenge", "refusal"),
    [
        ({"voucher-required": "5000;shop-2"}, "shop 'shop-2' is not in shops"),
        ({"voucher-required": "5001;shop-1"}, "asks for 50.01 USD"),
        ({"payment-required": "e30="}, r"not by voucher; the answer has PAYMENT-REQUIRED \(x402-exact\)"),
    ],
)
def test_the_guard_asks_its_limits(challenge, refusal):
    service = Service(challenge)
    with pytest.raises(PaymentRefused, match=refusal):
        pay(service)
    assert service.sent == []


def test_the_table_knows_it():
    assert METHOD in MACHINE_RAILS
    assert get_rail_kind(METHOD).wallet_block == "VoucherBook"
    assert name_rail(METHOD) == "voucher (voucher)"
    assert not can_pay_again(METHOD)
    assert describe_payment(METHOD) == "by machine, voucher, with the account's wallet"
    assert VoucherBook in _BLOCKS


def test_an_account_pays_by_it_with_its_own_wallet_only():
    account = make_account(
        wallet=LEDGER, payment_method=METHOD, policy={"machine_payments": True, "rolling_usd": 0.01}
    )
    setup = CampaignSetup(account)
    assert setup.how_paid == "by machine (voucher)"
    require_rail(setup.payment_method, setup.policy, setup.wallet)
    assert (LEDGER.get_identity(), LEDGER.get_payees()) == ("ledger", ("shop-1",))
    for wallet in (TOKENS, None):
        with pytest.raises(PaymentsDisabled, match="save a VoucherBook block"):
            require_rail(METHOD, account.policy, wallet)
        with pytest.raises(ValidationError, match="Assay Voucher Ledger for voucher"):
            make_account(wallet=wallet, payment_method=METHOD)
    with pytest.raises(PaymentsDisabled, match="save a SharedPaymentTokens block"):
        require_rail(PaymentMethod.MPP_SPT, account.policy, LEDGER)
    assert "Assay Voucher Ledger for voucher" in AssayAccount.model_fields["wallet"].description


def test_an_archive_kind_goes_its_own_way():
    kind = get_archive_kind("memory://shelf/one")
    assert kind is MemoryArchive
    archive = kind(**kind.parse_address("memory://shelf/one"))
    assert (archive.shelf, archive.prefix) == ("shelf", "one")
    archive.get_store().put_if_absent("a", b"1", "text/plain")
    assert archive.get_store().find("a") == b"1"
    assert make_account(archive=archive).archive is archive
    archive.require_lasting()
    with pytest.raises(ArchiveUnavailable, match="no shelf elsewhere"):
        MemoryArchive(shelf="elsewhere").require_present()
    assert archive.browser_url("a") is None
    assert "memory://shelf/prefix" in describe_archive_addresses()
    assert MemoryArchive in _BLOCKS
    with pytest.raises(InputError, match="there is no kind of archive for 'gs://bucket'"):
        get_archive_kind("gs://bucket")
