"""The table of rails: each machine rail of the vocabulary has one, and an invoice never falls to another rail."""

import pytest

from assay_lab import rails
from assay_lab.experiments import purchase
from assay_lab.kernel.refusals import Refusal
from assay_lab.rails import RAILS, require_rail
from assay_lab.rails.credentials import CredentialVerdict
from assay_lab.rails.rail import Challenge, LabRail
from assay_lab.rails.x402 import X402Rail
from assay_lab.requests.schemas import PaymentSelector
from assay_lab.requests.validation import read_shape
from assay_lab.vocabulary import MACHINE_RAILS, PaymentMethod
from lab_support.core import order


@pytest.mark.parametrize("method", sorted(MACHINE_RAILS))
def test_every_machine_rail_is_registered_once_with_a_header_of_its_own(method):
    assert [rail.method for rail in RAILS].count(method) == 1
    assert [rail.credential_header for rail in RAILS].count(require_rail(method).credential_header) == 1


@pytest.mark.parametrize("word", PaymentMethod)
def test_request_bodies_take_the_machine_rails(word):
    body, refused = read_shape(PaymentSelector, {"method": word})
    assert (body is not None, not refused) == (word in MACHINE_RAILS, word in MACHINE_RAILS)


@pytest.mark.parametrize("method", sorted(MACHINE_RAILS))
def test_a_rail_that_is_not_registered_has_no_substitute(monkeypatch, method):
    monkeypatch.setattr(rails, "RAILS", tuple(rail for rail in RAILS if rail.method != method))
    with pytest.raises(LookupError, match=f"the payment method {method} has no rail"):
        require_rail(method)


class VoucherRail(LabRail[None]):
    """A rail that the lab has never seen, under the word of another one."""

    method = PaymentMethod.MPP_SPT
    credential_header = "Payment-Voucher"
    credential_text = "a code"

    def make_settings(self):
        return None

    def show_settings(self, settings):
        return {}

    def challenge(self, bill, settings, now, error=None):
        return Challenge(
            {"error": error or "a voucher, please"}, {"Voucher-Required": str(bill.amount_cents)}
        )

    def settle(self, credential, bill, settings, settlements, now):
        if settlements.has_either(credential, bill.invoice_id):
            return CredentialVerdict(False, "used before", 403)
        return CredentialVerdict(
            credential == "code",
            "checked",
            402,
            payer=credential,
            nonce=bill.invoice_id,
            reference="r1",
            amount_cents=bill.amount_cents,
        )

    def refuse(self, bill, settings, now, verdict):
        return self.challenge(bill, settings, now, verdict.detail)

    def receipt_headers(self, verdict):
        return {"Voucher-Receipt": verdict.reference}


def test_another_rail_is_asked_for_its_own_challenge_and_credential(monkeypatch, core):
    table = (X402Rail(), VoucherRail())
    for module in (rails, purchase):
        monkeypatch.setattr(module, "RAILS", table)
    accepted = order(core, auto_accept_quote=True, payment={"method": "mpp-spt"}).body
    path = accepted["payment"]["pay_url"].removeprefix("/api/v1")

    def pay(**headers):
        return core.request("POST", path, headers=headers)

    for headers in ({}, {"Payment-Authorization": "Payment e30"}, {"Payment-Voucher": "other"}):
        asked = pay(**headers)
        assert (asked.status, list(asked.headers)) == (402, ["Voucher-Required"])
    with pytest.raises(Refusal) as caught:
        pay(**{"PAYMENT-SIGNATURE": "e30="})
    assert caught.value.status == 409
    paid = pay(**{"Payment-Voucher": "code"})
    assert (paid.status, paid.headers, paid.body["status"]) == (200, {"Voucher-Receipt": "r1"}, "paid")
    assert pay().body["already_paid"]
