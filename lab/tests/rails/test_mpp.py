"""The mpp-spt rail: challenge, credential, settlement, and everything that must not settle."""

import base64
import hashlib
import hmac
import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay_lab.kernel.faults import PaymentFault
from assay_lab.rails import mpp
from assay_lab.requests import validation
from lab_support.core import advance, get, order, refusal
from lab_support.tool_client import x402_credential

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SETTINGS = mpp.MppSettings(secret="s" * 32)
BILL = mpp.Bill("inv_1", 5000, "usd", "", "lab.test", b"")
SPT = "spt_abc123"


def unpacked(text):
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def packed(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def parts_of(header):
    scheme, _, rest = header.partition(" ")
    assert scheme == "Payment"
    return dict(re.findall(r'(\w+)="([^"]*)"', rest))


def credential_of(header, spt=SPT, changes=None):
    """What a client answers to a challenge: its parts echoed, and the token."""
    echo = parts_of(header) | (changes or {})
    external = unpacked(parts_of(header)["request"])["externalId"]
    echo = {name: value for name, value in echo.items() if value is not None}
    return "Payment " + packed({"challenge": echo, "payload": {"spt": spt, "externalId": external}})


def answer(credential, *, bill=BILL, now=NOW, used=frozenset()):
    return mpp.settle_credential(
        credential, bill, SETTINGS, used=lambda payer, nonce: bool({payer, nonce} & used), now=now
    )


@pytest.fixture
def pay_path(core):
    """An open invoice on the rail."""
    return path_of(order_by_card(core))


def order_by_card(core):
    return order(core, auto_accept_quote=True, payment={"method": "mpp-spt"}).body


def path_of(accepted):
    return accepted["payment"]["pay_url"].removeprefix("/api/v1")


def pay(core, path, credential=None, **headers):
    sent = headers if credential is None else {"Payment-Authorization": credential, **headers}
    return core.request("POST", path, headers=sent)


def ledgers(core):
    with core.lab.store.transaction() as db:
        return db.all("SELECT * FROM settlements ORDER BY id")


def test_the_challenge_names_the_terms_and_where_the_credential_goes():
    header = mpp.make_challenge(BILL, SETTINGS, NOW)
    parts = parts_of(header)
    assert list(parts) == [
        "id", "realm", "method", "intent", "request", "expires", "digest", "header", "opaque",
    ]  # fmt: skip
    assert (parts["realm"], parts["method"], parts["intent"]) == ("lab.test", "stripe", "charge")
    assert parts["header"] == "Payment-Authorization"
    assert unpacked(parts["request"]) == {
        "amount": "5000",
        "currency": "usd",
        "externalId": "inv_1",
        "methodDetails": {"networkId": SETTINGS.network_id, "paymentMethodTypes": ["card"]},
    }
    assert datetime.fromisoformat(parts["expires"]) == NOW + timedelta(seconds=300)
    empty = base64.b64encode(hashlib.sha256(b"").digest()).decode()
    assert parts["digest"] == f"sha-256=:{empty}:"
    order_of_parts = ("realm", "method", "intent", "request", "expires", "digest", "header", "opaque")
    covered = "|".join(parts[name] for name in order_of_parts).encode()
    made = hmac.new(SETTINGS.secret.encode(), covered, hashlib.sha256).digest()
    assert base64.urlsafe_b64encode(made).decode().rstrip("=") == parts["id"]
    assert parts_of(mpp.make_challenge(BILL, SETTINGS, NOW))["id"] != parts["id"]


def test_a_genuine_credential_settles():
    header = mpp.make_challenge(BILL, SETTINGS, NOW)
    settlement = answer(credential_of(header))
    assert settlement.ok, settlement.detail
    assert settlement.nonce == parts_of(header)["id"]
    assert SPT not in repr(settlement)
    receipt = unpacked(settlement.header)
    assert receipt == {
        "status": "success",
        "method": "stripe",
        "reference": settlement.reference,
        "timestamp": receipt["timestamp"],
        "externalId": "inv_1",
    }
    padded = credential_of(header) + "=" * (-len(credential_of(header).split()[1]) % 4)
    assert answer(padded).ok


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "x"}, {"id": None}, {"realm": "elsewhere"}, {"method": "other"}, {"intent": "session"},
        {"request": packed({"amount": "1"})}, {"expires": "2999-01-01T00:00:00.000000Z"}, {"expires": None},
        {"digest": None}, {"header": None}, {"header": "Authorization"}, {"opaque": packed({})}, {"opaque": None},
        {"opaque": {"challenge": "x"}}, {"realm": 1}, {"realm": "\ud800"},
    ],
)  # fmt: skip
def test_the_challenge_is_echoed_verbatim_or_nothing_settles(changes):
    settlement = answer(credential_of(mpp.make_challenge(BILL, SETTINGS, NOW), changes=changes))
    assert (settlement.ok, settlement.status) == (False, 402)


@pytest.mark.parametrize(
    "bill",
    [
        mpp.Bill("inv_2", 5000, "usd", "", "lab.test", b""),
        mpp.Bill("inv_1", 5001, "usd", "", "lab.test", b""),
        mpp.Bill("inv_1", 5000, "eur", "", "lab.test", b""),
        mpp.Bill("inv_1", 5000, "usd", "", "other.test", b""),
        mpp.Bill("inv_1", 5000, "usd", "", "lab.test", b"{}"),
    ],
)
def test_a_challenge_is_good_for_its_own_request_only(bill):
    settlement = answer(credential_of(mpp.make_challenge(BILL, SETTINGS, NOW)), bill=bill)
    assert (settlement.ok, settlement.status) == (False, 402)


def test_a_challenge_expires():
    credential = credential_of(mpp.make_challenge(BILL, SETTINGS, NOW))
    assert answer(credential, now=NOW + timedelta(seconds=299)).ok
    late = answer(credential, now=NOW + timedelta(seconds=300))
    assert (late.ok, late.detail) == (False, "the challenge has expired")


@pytest.mark.parametrize("spt", ["", "abc", "spt_", "spt_a b", "spt_" + "x" * 201, 1, None, ["spt_a"]])
def test_only_a_shared_payment_token_settles(spt):
    settlement = answer(credential_of(mpp.make_challenge(BILL, SETTINGS, NOW), spt=spt))
    assert (settlement.ok, settlement.status) == (False, 402)


def test_the_payload_may_leave_out_the_invoice_but_not_name_another():
    echo = parts_of(mpp.make_challenge(BILL, SETTINGS, NOW))
    for payload, ok in (({"spt": SPT}, True), ({"spt": SPT, "externalId": "inv_2"}, False), ([], False)):
        assert answer("Payment " + packed({"challenge": echo, "payload": payload})).ok is ok


def test_what_was_used_answers_403_and_what_is_declined_402():
    header = mpp.make_challenge(BILL, SETTINGS, NOW)
    first = answer(credential_of(header))
    for used in (first.payer, first.nonce):
        assert answer(credential_of(header), used=frozenset({used})).status == 403
    assert answer(credential_of(header, spt="spt_declined_1")).detail == "the payment was declined"


@settings(max_examples=60)
@given(
    st.one_of(
        st.text(max_size=60),
        st.binary(max_size=60).map(lambda raw: "Payment " + base64.urlsafe_b64encode(raw).decode()),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["challenge", "payload", "id", "request", "spt"]), inner)
            ),
            max_leaves=8,
        ).map(lambda value: "Payment " + packed(value)),
    )
)
def test_nothing_foreign_settles_or_breaks(text):
    settlement = answer(text)
    assert (settlement.ok, settlement.status) == (False, 402)


def test_an_invoice_is_paid_once_with_a_receipt(core, pay_path):
    first = pay(core, pay_path)
    assert first.status == 402
    assert first.headers["Cache-Control"] == "no-store"
    credential = credential_of(first.headers["WWW-Authenticate"])
    paid = pay(core, pay_path, credential)
    assert (paid.status, paid.body["status"], paid.body["already_paid"]) == (200, "paid", False)
    receipt = unpacked(paid.headers["Payment-Receipt"])
    assert receipt["reference"] == paid.body["settlement_reference"]
    assert receipt["externalId"] == paid.body["id"]
    again = pay(core, pay_path, credential)
    assert (again.status, again.body["already_paid"]) == (200, True)
    assert "Payment-Receipt" not in again.headers
    assert "settlement_reference" not in again.body
    (row,) = ledgers(core)
    assert (row["payment_method"], row["amount_cents"]) == ("mpp-spt", paid.body["amount"])
    assert SPT not in json.dumps(row)


def test_of_many_payments_at_once_one_settles(core, pay_path):
    credentials = [
        credential_of(pay(core, pay_path).headers["WWW-Authenticate"], spt=f"spt_{number}")
        for number in range(6)
    ]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda credential: pay(core, pay_path, credential).body, credentials))
    assert sorted(answer["already_paid"] for answer in answers) == [False, *[True] * 5]
    assert len(ledgers(core)) == 1


def test_the_work_starts_with_the_payment(core):
    accepted = order_by_card(core)
    (experiment,) = get(core, "/experiments")["items"]
    path = path_of(accepted)
    advance(core, days=20)
    assert get(core, f"/experiments/{experiment['id']}")["status"] == "waiting_for_confirmation"
    pay(core, path, credential_of(pay(core, path).headers["WWW-Authenticate"]))
    advance(core, days=20)
    assert get(core, f"/experiments/{experiment['id']}")["status"] == "done"


def test_a_token_pays_one_invoice(core, pay_path):
    pay(core, pay_path, credential_of(pay(core, pay_path).headers["WWW-Authenticate"]))
    second = path_of(order_by_card(core))
    challenge = pay(core, second).headers["WWW-Authenticate"]
    assert (
        refusal(core, "POST", second, headers={"Payment-Authorization": credential_of(challenge)}).status
        == 403
    )
    assert pay(core, second, credential_of(challenge, spt="spt_other")).status == 200
    assert len(ledgers(core)) == 2


def test_a_credential_of_another_invoice_gets_a_new_challenge(core, pay_path):
    credential = credential_of(pay(core, pay_path).headers["WWW-Authenticate"])
    second = path_of(order_by_card(core))
    answered = pay(core, second, credential)
    assert answered.status == 402
    assert answered.body["error"].startswith("the challenge is for another request")
    assert "WWW-Authenticate" in answered.headers
    assert ledgers(core) == []


def test_first_the_token_then_the_payment(core, pay_path):
    """401 comes before 402, and a credential in Authorization is none."""
    credential = credential_of(pay(core, pay_path).headers["WWW-Authenticate"])
    for value in (credential, "Bearer wrong"):
        headers = {"Authorization": value, "Payment-Authorization": credential}
        assert refusal(core, "POST", pay_path, headers=headers).status == 401
    assert refusal(core, "POST", pay_path, token=core.seeded.viewer_token).status == 403


def test_another_method_is_a_conflict(core, pay_path):
    for headers in ({"PAYMENT-SIGNATURE": "x"}, {"X-Service-Payment-Method": "x402-exact"}):
        assert refusal(core, "POST", pay_path, headers=headers).status == 409
    assert pay(core, pay_path, **{"X-Service-Payment-Method": "mpp-spt"}).status == 402
    other = order(core, auto_accept_quote=True, payment={"method": "x402-exact"}).body
    headers = {"Payment-Authorization": "Payment x"}
    assert refusal(core, "POST", path_of(other), headers=headers).status == 409


def fault(core, action, **details):
    core.lab.payment_faults.append(validation.read_body(PaymentFault, {"action": action, **details}))


WRONG = {
    "wrong_amount": lambda request, parts: request["amount"] == "2",
    "wrong_payee": lambda request, parts: request["methodDetails"]["networkId"] == "profile_other",
    "wrong_asset": lambda request, parts: request["currency"] == "eur",
    "wrong_resource": lambda request, parts: request["externalId"].endswith("-other"),
    "wrong_network": lambda request, parts: parts["method"] == "other",
    "missing_header": lambda request, parts: "header" not in parts,
    "expired_challenge": lambda request, parts: parts["expires"] < datetime.now(UTC).isoformat(),
    "ten_year_window": lambda request, parts: parts["expires"] > "2035",
}


@pytest.mark.parametrize("action", sorted(WRONG))
def test_a_wrong_term_is_shown_and_would_really_be_paid(core, pay_path, action):
    amount = get(core, pay_path.removesuffix("/pay"))["amount"]
    fault(core, action)
    header = pay(core, pay_path).headers["WWW-Authenticate"]
    parts = parts_of(header)
    request = unpacked(parts["request"])
    request["amount"] = (
        str(int(request["amount"]) // amount) if action == "wrong_amount" else request["amount"]
    )
    assert WRONG[action](request, parts)
    answered = pay(core, pay_path, credential_of(header))
    assert answered.status == (402 if action == "expired_challenge" else 200)


@pytest.mark.parametrize(("action", "times"), [("wrong_amount", 2), ("wrong_payee", 1)])
@pytest.mark.parametrize("method", ["mpp-spt", "x402-exact"])
def test_the_ledger_has_the_amount_that_was_paid(core, method, action, times):
    path = path_of(order(core, auto_accept_quote=True, payment={"method": method}).body)
    fault(core, action)
    challenge = pay(core, path)
    if method == "mpp-spt":
        paid = pay(core, path, credential_of(challenge.headers["WWW-Authenticate"]))
    else:
        paid = pay(core, path, **{"PAYMENT-SIGNATURE": x402_credential(challenge.body)})
    invoiced = get(core, path.removesuffix("/pay"))["amount"]
    assert (paid.status, [row["amount_cents"] for row in ledgers(core)]) == (200, [times * invoiced])


def test_always_402_never_settles_and_no_receipt_settles_in_silence(core, pay_path):
    fault(core, "always_402", count=2)
    for _ in range(2):
        header = pay(core, pay_path).headers["WWW-Authenticate"]
        core.lab.payment_faults.clear()
        fault(core, "always_402")
        assert pay(core, pay_path, credential_of(header)).status == 402
    assert ledgers(core) == []
    core.lab.payment_faults.clear()
    fault(core, "no_receipt", rail="mpp-spt")
    fault(core, "replay_403", after=1)
    credential = credential_of(pay(core, pay_path).headers["WWW-Authenticate"])
    paid = pay(core, pay_path, credential)
    assert (paid.status, dict(paid.headers)) == (200, {})
    assert "settlement_reference" not in paid.body
    core.lab.payment_faults.clear()
    fault(core, "replay_403")
    assert refusal(core, "POST", pay_path, headers={"Payment-Authorization": credential}).status == 403
    assert pay(core, pay_path).body["already_paid"] is True
    assert len(ledgers(core)) == 1


@pytest.mark.parametrize(
    ("action", "look"),
    [
        ("wrong_amount", lambda offer, body: offer["amount"]),
        ("wrong_payee", lambda offer, body: offer["payTo"]),
        ("wrong_asset", lambda offer, body: offer["asset"]),
        ("wrong_network", lambda offer, body: offer["network"]),
        ("wrong_resource", lambda offer, body: body["resource"]["url"]),
        ("ten_year_window", lambda offer, body: offer["maxTimeoutSeconds"]),
        ("expired_challenge", lambda offer, body: offer["maxTimeoutSeconds"]),
    ],
)
def test_the_other_rail_shows_the_same_faults(core, action, look):
    path = path_of(order(core, auto_accept_quote=True, payment={"method": "x402-exact"}).body)
    right = pay(core, path).body
    fault(core, action, rail="mpp-spt")
    assert pay(core, path).body == right
    fault(core, action, rail="x402-exact")
    wrong = pay(core, path).body
    assert look(wrong["accepts"][0], wrong) != look(right["accepts"][0], right)


def test_the_other_rail_leaves_out_its_header(core):
    path = path_of(order(core, auto_accept_quote=True, payment={"method": "x402-exact"}).body)
    fault(core, "missing_header")
    assert "PAYMENT-REQUIRED" not in pay(core, path).headers
    core.lab.payment_faults.clear()
    fault(core, "always_402")
    assert pay(core, path, **{"PAYMENT-SIGNATURE": "x"}).body["error"] == "the payment was refused"


def test_a_refusal_for_want_of_funds_carries_the_reason_as_the_rail_does(core, pay_path):
    fault(core, "insufficient_funds")
    by_card = pay(core, pay_path, credential_of(pay(core, pay_path).headers["WWW-Authenticate"]))
    assert (by_card.status, by_card.body["error"]) == (402, "insufficient_funds")
    assert by_card.body["type"] == "https://paymentauth.org/problems/payment-insufficient"
    path = path_of(order(core, auto_accept_quote=True, payment={"method": "x402-exact"}).body)
    by_coin = pay(core, path, **{"PAYMENT-SIGNATURE": "x"})
    assert json.loads(base64.b64decode(by_coin.headers["PAYMENT-REQUIRED"]))["error"] == "insufficient_funds"
    assert "PAYMENT-RESPONSE" not in by_coin.headers
    assert ledgers(core) == []


def test_payment_faults_are_aimed_and_counted(core, pay_path):
    other = path_of(order_by_card(core))
    invoice_id = get(core, other.removesuffix("/pay"))["id"]
    fault(core, "wrong_amount", invoice_id=invoice_id, count=1)
    amounts = [
        unpacked(parts_of(pay(core, path).headers["WWW-Authenticate"])["request"])["amount"]
        for path in (pay_path, other, other)
    ]
    assert amounts[1] == str(2 * int(amounts[0]))
    assert amounts[2] == amounts[0]
    assert [row["used"] for row in core.lab.payment_faults.view()] == [1]
