"""The mpp-spt rail: reading challenges, the guard, one credential, and what answers say."""

import base64
import json
import traceback
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from prefect_assay.errors import PaymentRefused
from prefect_assay.orders.payments import guard
from prefect_assay.orders.payments.rails.headers import parse_challenges
from prefect_assay.orders.payments.rails.mpp import MppRail, TokenLimits, read_offers, read_settlement
from prefect_assay.orders.payments.settle import utc_now
from prefect_assay.orders.payments.terms import Offers, SettlementNotice
from prefect_assay.service.models.billing import Invoice

CANARY = "spt_canary"
NETWORK_ID = "profile_lab_1ab402"
BASE = "http://127.0.0.1:8000"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
REQUEST = {
    "amount": "5000",
    "currency": "usd",
    "externalId": "inv_1",
    "methodDetails": {"networkId": NETWORK_ID, "paymentMethodTypes": ["card"]},
}
PARAMETERS = {
    "id": "abc",
    "realm": "lab.test",
    "method": "stripe",
    "intent": "charge",
    "expires": "2026-03-01T12:05:00Z",
    "header": "Payment-Authorization",
    "opaque": "e30",
}
INVOICE = Invoice(id="inv_1", status="open", currency="usd", amount=5000)


def packed(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def unpacked(text):
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def challenge(request=None, **changes):
    parts = {**PARAMETERS, "request": packed(REQUEST if request is None else request), **changes}
    return "Payment " + ", ".join(f"{name}={quoted(v)}" for name, v in parts.items() if v is not None)


def terms(request=None, **changes):
    (only,) = read_offers(challenge(request, **changes)).terms
    return only


def findings(request=None, **changes):
    return guard.find_problems(
        MppRail(lambda _: CANARY, [NETWORK_ID]),
        terms(request, **changes),
        base_url=BASE,
        invoice=INVOICE,
        cents=5000,
        now=NOW,
    )


# The header


def test_challenges_are_told_apart_by_the_grammar():
    header = 'Basic realm="a, b=\\"c\\"", Negotiate dGVzdA==,, payment id = abc ,x-new="1", Bearer, Payment'
    assert parse_challenges(header) == [
        ("basic", {"realm": 'a, b="c"'}),
        ("negotiate", {}),
        ("payment", {"id": "abc", "x-new": "1"}),
        ("bearer", {}),
        ("payment", {}),
    ]


@pytest.mark.parametrize(
    "header",
    ['Payment id="a', 'Payment id="a", ID="b"', '="a"', 'Payment id="a" realm="b"', "P" * 70_000, "A, " * 33],
)
def test_what_is_no_list_of_challenges_is_refused(header):
    with pytest.raises(PaymentRefused, match="cannot be read"):
        read_offers(header)


@given(st.text(max_size=60) | st.text(alphabet='Pp aym="\\,x\t', max_size=40))
def test_any_header_is_offers_or_refused(text):
    for header in (text, f"Payment {text}", challenge(opaque=text.replace("\n", ""))):
        try:
            assert isinstance(read_offers(header), Offers)
        except PaymentRefused as error:
            str(error).encode()


@given(
    st.sampled_from([*REQUEST, "other"]),
    st.none() | st.integers() | st.text(max_size=9) | st.lists(st.text(max_size=3), max_size=3),
)
def test_any_value_in_any_place_of_a_request_is_terms_or_named(name, value):
    read = read_offers(challenge({**REQUEST, name: value}))
    assert len(read.terms) + len(read.ignored) == 1
    assert all(line.isprintable() for line in read.ignored)


def test_a_challenge_is_read_and_kept_verbatim_with_what_is_not_known():
    read = terms(**{"x-new": 'a "quoted", b\\c', "expires": "2026-03-01T13:05:00+01:00"})
    assert (read.network, read.asset, read.pay_to) == ("stripe", "usd", NETWORK_ID)
    assert (read.amount_units, read.external_id, read.amount) == (5000, "inv_1", "50.00 USD")
    assert read.expires == NOW + timedelta(minutes=5)
    assert read.challenge == {
        **PARAMETERS,
        "request": packed(REQUEST),
        "x-new": 'a "quoted", b\\c',
        "expires": "2026-03-01T13:05:00+01:00",
    }


def test_of_several_challenges_each_is_read_or_named():
    header = f'Bearer realm="x", {challenge(method="tempo")}, {challenge()}, {challenge(intent="session")}'
    read = read_offers(header)
    assert len(read.terms) == 1
    assert read.ignored == (
        "method 'tempo', intent 'charge': not known here",
        "method 'stripe', intent 'session': not known here",
    )


@pytest.mark.parametrize(
    ("header", "part"),
    [
        (challenge(id=None), "missing id"),
        (challenge(id="a b"), "missing id"),
        (challenge(expires=None), "missing expires"),
        (challenge(expires="soon"), "no date and time"),
        (challenge(expires="2026-03-01T12:05:00"), "no date and time"),
        (challenge(request={**REQUEST, "amount": 5000}), "missing amount"),
        (challenge(request={**REQUEST, "amount": "50.00"}), "missing amount"),
        (challenge(request={**REQUEST, "amount": "-1"}), "missing amount"),
        (challenge(request={**REQUEST, "amount": "٣"}), "missing amount"),
        (challenge(request={**REQUEST, "methodDetails": {}}), "missing methodDetails.networkId"),
        (challenge(request=[1]), "request cannot be read: it is not a JSON object"),
        (challenge(request=None).replace(packed(REQUEST), "%%%"), "request cannot be read"),
    ],
)
def test_a_challenge_that_cannot_be_used_is_named(header, part):
    read = read_offers(header)
    assert read.terms == ()
    assert part in read.ignored[0]


@pytest.mark.parametrize(
    ("headers", "match"),
    [
        ({}, "without a challenge"),
        ({"PAYMENT-REQUIRED": "e30="}, r"the answer has PAYMENT-REQUIRED \(x402-exact\)"),
        ({"WWW-Authenticate": 'Basic realm="x"'}, "WWW-Authenticate has 'basic'"),
    ],
)
def test_a_402_without_a_challenge_of_this_rail_says_what_it_offers(headers, match):
    with pytest.raises(PaymentRefused, match=match):
        guard.read_offers(
            MppRail(lambda _: CANARY, ()), SimpleNamespace(status_code=402, headers=headers, body={})
        )


# The guard


def test_right_terms_have_no_findings():
    assert findings() == ()
    assert findings(header="payment-authorization") == ()
    assert findings({**REQUEST, "currency": "USD", "unknown": 1}) == ()
    assert findings(expires="2026-03-01T12:10:00Z") == ()


@pytest.mark.parametrize(
    ("request_changes", "changes", "part"),
    [
        ({"amount": "5001"}, {}, "asks for 50.01 USD, the invoice for 50.00 USD"),
        ({"amount": "50000000"}, {}, "asks for 500,000.00 USD"),
        ({"currency": "eur"}, {}, "currency is 'eur', not usd"),
        ({"externalId": "inv_2"}, {}, "externalId is 'inv_2', this invoice's is inv_1"),
        ({"externalId": None}, {}, "externalId is None"),
        (
            {"methodDetails": {"networkId": "other"}},
            {},
            "networkId 'other' is not in network_ids of the SharedPaymentTokens block",
        ),
        (
            {"methodDetails": {"networkId": NETWORK_ID.upper()}},
            {},
            "is not in network_ids of the SharedPaymentTokens block",
        ),
        ({}, {"header": None}, "names no header for the credential"),
        ({}, {"header": "Authorization"}, "in the header 'Authorization'; only Payment-Authorization"),
        ({}, {"header": "X-Pay"}, "in the header 'X-Pay'"),
        ({}, {"expires": "2026-03-01T12:00:00Z"}, "it expired 0 s ago"),
        ({}, {"expires": "2026-03-01T12:10:01Z"}, "valid for 601 s, and at most 600 s are allowed"),
        ({}, {"expires": "9999-12-31T23:59:59Z"}, "at most 600 s are allowed"),
    ],
)
def test_each_deviation_is_one_finding_that_names_it(request_changes, changes, part):
    (finding,) = findings({**REQUEST, **request_changes}, **changes)
    assert part in finding


# The credential


def test_the_credential_echoes_the_challenge_and_carries_one_token():
    asked = []

    def issue(limits):
        asked.append(limits)
        return SecretStr(CANARY)

    rail, offered = MppRail(issue, [NETWORK_ID]), terms(unknown="kept")
    sent = rail.make_credential(offered, nonce="abc", valid_before=1_800_000_000)
    (name, value), *more = sent.items()
    scheme, _, content = value.partition(" ")
    assert (name, scheme, more) == ("Payment-Authorization", "Payment", [])
    assert unpacked(content) == {
        "challenge": offered.challenge,
        "payload": {"spt": CANARY, "externalId": "inv_1"},
    }
    assert asked == [
        TokenLimits(currency="usd", max_amount=5000, expires_at=1_800_000_000, network_id=NETWORK_ID)
    ]
    assert CANARY not in repr(rail) + repr(vars(rail))


def test_every_credential_has_a_token_of_its_own_so_the_rail_is_not_repeatable():
    rail = MppRail(count_tokens(), [NETWORK_ID])
    soon = (utc_now() + timedelta(minutes=5)).isoformat()
    offered = terms(expires=soon)
    first = rail.make_credential(offered, nonce="abc", valid_before=1)
    assert not rail.is_repeatable
    assert rail.make_credential(offered, nonce="abc", valid_before=1) != first
    assert rail.make_credential(terms(expires=soon, id="new"), nonce="new", valid_before=1) != first


def count_tokens():
    made = []

    def issue(_):
        made.append(1)
        return f"spt_{len(made)}"

    return issue


@pytest.mark.parametrize("token", ["", "a\nb", "é", None, 7, "x" * 3000, SecretStr("")])
def test_what_is_no_token_is_refused_and_not_shown(token):
    with pytest.raises(PaymentRefused, match="no text that can be one"):
        MppRail(lambda _: token, [NETWORK_ID]).make_credential(terms(), nonce="abc", valid_before=1)


def test_an_issuer_that_fails_is_named_and_its_words_are_not_shown():
    def issue(_):
        raise RuntimeError(CANARY)

    with pytest.raises(PaymentRefused, match=r"\(RuntimeError\); nothing was sent") as caught:
        MppRail(issue, [NETWORK_ID]).make_credential(terms(), nonce="abc", valid_before=1)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


# What answers say


def test_a_receipt_is_read_on_success_only():
    value = packed(
        {"status": "success", "method": "stripe", "reference": "pi_1", "externalId": "inv_1", "x": 1}
    )
    kept = {"status": "success", "method": "stripe", "reference": "pi_1", "externalId": "inv_1"}
    assert read_settlement(True, value, {}) == SettlementNotice(success=True, receipt=kept)
    assert read_settlement(False, value, {}) == SettlementNotice()
    assert read_settlement(True, None, {}) == read_settlement(True, "%", {}) == SettlementNotice()


@pytest.mark.parametrize(
    ("kind", "success"),
    [
        ("payment-expired", False),
        ("invalid-challenge", None),
        ("verification-failed", None),
        ("internal-payment-error", None),
        ("payment-required", None),
    ],
)
def test_only_a_problem_from_before_the_charge_proves_that_nothing_was_paid(kind, success):
    body = {"type": f"https://paymentauth.org/problems/{kind}", "detail": "why"}
    assert read_settlement(False, None, body) == SettlementNotice(success=success, reason="why")
    assert read_settlement(False, None, {"error": "x" * 500}).reason == "x" * 200
    assert read_settlement(False, None, {"detail": ["no text"]}) == SettlementNotice()
