import base64
import builtins
import json
import pickle
import traceback
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from prefect_assay.errors import ConfigurationError, PaymentRefused
from prefect_assay.orders.payments import guard
from prefect_assay.orders.payments.rails.headers import BRACKETS_MAX, HEADER_MAX
from prefect_assay.orders.payments.rails.x402 import X402Limits, X402Rail, read_offers, read_settlement
from prefect_assay.orders.payments.terms import Offers, SettlementNotice
from support.x402 import CANARY_ADDRESS, CANARY_KEY, NETWORK, RECEIVER, USDC, decode, encode, recover

RAIL = X402Rail(SecretStr(CANARY_KEY), X402Limits())
ENTRY = {
    "scheme": "exact",
    "network": NETWORK,
    "asset": USDC,
    "amount": "50000000",
    "payTo": RECEIVER,
    "maxTimeoutSeconds": 300,
    "extra": {"name": "USDC", "version": "2"},
}
CHALLENGE = {"x402Version": 2, "resource": {"url": "https://a.example/pay"}, "accepts": [ENTRY]}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def offers(**changes):
    return read_offers(encode({**CHALLENGE, "accepts": [{**ENTRY, **changes}]}))


def terms(**changes):
    (only,) = offers(**changes).terms
    return only


def test_a_challenge_is_read_and_its_entry_kept_verbatim():
    read = terms(unknown=[1])
    assert (read.network, read.asset, read.pay_to) == (NETWORK, USDC, RECEIVER)
    assert (read.amount_units, read.max_timeout_seconds, read.chain_id) == (50_000_000, 300, 84532)
    assert read.resource_url == "https://a.example/pay"
    assert read.accepted == {**ENTRY, "unknown": [1]}
    assert read.amount == "50.00 USD"


@pytest.mark.parametrize(
    "change", [lambda v: v.rstrip("="), lambda v: f" {v}\n", lambda v: v.replace("+", "-")]
)
def test_unpadded_and_url_safe_base64_is_read(change):
    value = encode({**CHALLENGE, "x": "ûûûûû>>>???"})
    assert len(read_offers(change(value)).terms) == 1


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (None, "not by x402"),
        ("", "not base64"),
        ("%%%", "not base64"),
        ("é" * 8, "not base64"),
        (base64.b64encode(b"\xff\xfe").decode(), "not base64"),
        (encode([1]), "not a JSON object"),
        (encode("text"), "not a JSON object"),
        (base64.b64encode(b'{"x402Version":NaN}').decode(), "not base64 of JSON"),
        (base64.b64encode(b'{"a":' + b"9" * 5000 + b"}").decode(), "not base64 of JSON"),
        (base64.b64encode(b'{"a":' + b"[" * BRACKETS_MAX).decode(), "too many parts"),
        ("A" * (HEADER_MAX + 1), "more than 16384"),
        (encode({**CHALLENGE, "x402Version": 1}), "version 1; only 2"),
        (encode({**CHALLENGE, "x402Version": "2"}), "version '2'; only 2"),
        (encode({"x402Version": 2}), "`accepts` is not a list"),
        (encode({"x402Version": 2, "accepts": [1] * 33}), "`accepts` is not a list"),
    ],
)
def test_an_unreadable_challenge_is_refused_by_name(value, match):
    with pytest.raises(PaymentRefused, match=match):
        read_offers(value)


def test_a_challenge_of_another_rail_is_named():
    answer = SimpleNamespace(
        status_code=402, headers={"www-authenticate": 'Payment method="stripe"'}, body={}
    )
    with pytest.raises(PaymentRefused, match=r"not by x402 .*; the answer has WWW-Authenticate \(mpp-spt\)"):
        guard.read_offers(RAIL, answer)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"network": "eip155:0"}, "missing network"),
        ({"network": "eip155:84532\n"}, "missing network"),
        ({"network": "solana:abc"}, "missing network"),
        ({"asset": "0x12"}, "missing asset"),
        ({"payTo": RECEIVER + "0"}, "missing payTo"),
        ({"amount": "1.5"}, "missing amount"),
        ({"amount": "-1"}, "missing amount"),
        ({"amount": "٣"}, "missing amount"),
        ({"amount": 50000000}, "missing amount"),
        ({"maxTimeoutSeconds": -1}, "missing maxTimeoutSeconds"),
        ({"maxTimeoutSeconds": "300"}, "missing maxTimeoutSeconds"),
        ({"maxTimeoutSeconds": True}, "missing maxTimeoutSeconds"),
        ({"extra": None}, "missing extra"),
        ({"extra": {"name": "", "version": "2"}}, "missing extra.name"),
        ({"scheme": "batch\x1b[31m"}, r"scheme 'batch\x1b[31m' on"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named_and_ignored(changes, part):
    read = offers(**changes)
    assert read.terms == ()
    assert part in read.ignored[0]
    assert read.ignored[0].isprintable()


@given(st.binary(max_size=200))
def test_any_bytes_are_offers_or_refused(raw):
    for value in (raw.decode("latin-1"), base64.b64encode(raw).decode()):
        try:
            assert isinstance(read_offers(value), Offers)
        except PaymentRefused as error:
            str(error).encode()


@given(json_values, st.sampled_from([*ENTRY, "other"]), json_values)
def test_any_json_in_any_place_of_a_challenge_is_offers_or_refused(resource, name, value):
    header = encode({**CHALLENGE, "resource": resource, "accepts": [{**ENTRY, name: value}, value]})
    try:
        read = read_offers(header)
    except PaymentRefused as error:
        str(error).encode()
        return
    for line in read.ignored:
        line.encode()
    for item in read.terms:
        item.summary().encode()
        try:
            RAIL.make_credential(item, nonce="0x" + "00" * 32, valid_before=1)
        except PaymentRefused as error:
            str(error).encode()


@given(st.binary(max_size=200), json_values)
def test_any_settlement_header_is_read_without_failing(raw, value):
    headers = (
        raw.decode("latin-1"),
        base64.b64encode(raw).decode(),
        encode({"success": value, "payer": value}),
    )
    for header in headers:
        read = read_settlement(header)
        assert isinstance(read, SettlementNotice)
        assert all(text.isascii() for text in (read.receipt or {}).values())


def test_a_receipt_keeps_known_plain_fields_only():
    read = read_settlement(
        encode(
            {"success": False, "errorReason": "x" * 500, "network": "a\nb", "signature": "0x00", "payer": 3}
        )
    )
    assert read == SettlementNotice(reason="x" * 200, receipt={"success": "false", "errorReason": "x" * 200})
    assert read_settlement(None) == read_settlement("%") == read_settlement(encode([])) == SettlementNotice()
    assert read_settlement(encode({"success": "true"})).success is None


def test_a_failure_that_names_a_transaction_is_no_proof_that_nothing_moved():
    failed = {"success": False, "errorReason": "insufficient_funds", "network": "eip155:84532"}
    assert read_settlement(encode(failed | {"transaction": ""})).success is False
    assert read_settlement(encode(failed | {"transaction": "0x" + "ab" * 32})).success is None


@pytest.mark.parametrize("reason", [None, "", "timed out", "transaction_failed", "unexpected_settle_error"])
def test_nor_is_one_whose_reason_may_come_of_a_broadcast(reason):
    failed = {"success": False, "errorReason": reason, "transaction": "", "network": "eip155:84532"}
    assert read_settlement(encode(failed)).success is None


def answered(error, status=402, **response):
    """An answer to a credential: the challenge again with `error`, and PAYMENT-RESPONSE where there is one."""
    headers = {"payment-required": encode({**CHALLENGE, "error": error})}
    if response:
        headers["payment-response"] = encode(response)
    return SimpleNamespace(status_code=status, headers=headers, body={})


@pytest.mark.parametrize(
    "reason",
    [
        "insufficient_funds",
        "invalid_signature",
        "invalid_exact_evm_insufficient_balance",
        "invalid_exact_evm_payload_signature",
        "invalid_exact_evm_payload_authorization_valid_before",
        "invalid_payload",
        "invalid_payment_requirements",
        "missing_eip712_domain",
        "network_mismatch",
        "payment_expired",
        "unsupported_scheme",
    ],
)
def test_a_reason_found_before_a_broadcast_is_a_refusal(reason):
    assert RAIL.read_settlement(answered(reason)) == SettlementNotice(success=False, reason=reason)


@pytest.mark.parametrize(
    "reason",
    [
        "invalid_exact_evm_nonce_already_used",
        "invalid_exact_evm_transaction_simulation_failed",
        "invalid_exact_evm_transfer_event_mismatch",
        "invalid_transaction_state",
        "settlement_pending",
        "transaction_failed",
        "unexpected_settle_error",
        "timeout",
    ],
)
def test_a_reason_that_may_come_of_a_broadcast_is_named_and_ends_no_doubt(reason):
    assert RAIL.read_settlement(answered(reason)) == SettlementNotice(reason=reason)


@pytest.mark.parametrize(
    "error",
    [
        "Payment required",
        "invalid_signature: svc_token",
        "",
        None,
        7,
        True,
        ["invalid_payload"],
        "invalid_" + "x" * 99,
    ],
)
def test_a_402_without_a_reason_stays_in_doubt(error):
    assert RAIL.read_settlement(answered(error)).success is None
    assert RAIL.read_settlement(answered(error)).reason in {None, "true"}


def test_a_reason_counts_only_on_a_402_without_a_statement_of_the_settlement():
    reason = "insufficient_funds"
    for status in (200, 400, 403, 500):
        assert RAIL.read_settlement(answered(reason, status)).success is None
    broadcast = answered(reason, success=False, errorReason="late", transaction="0x" + "ab" * 32)
    assert RAIL.read_settlement(broadcast).success is None
    unreadable = answered(reason)
    unreadable.headers["payment-response"] = "%"
    assert RAIL.read_settlement(unreadable).success is None
    for headers in ({}, {"payment-required": "%"}, {"payment-required": encode([])}):
        silent = SimpleNamespace(status_code=402, headers=headers, body={"error": reason})
        assert RAIL.read_settlement(silent) == SettlementNotice(reason=reason)


def test_the_nonce_follows_from_service_invoice_and_wallet():
    other = X402Rail(SecretStr("0x" + "11" * 32), X402Limits())
    nonces = {
        RAIL.make_nonce("https://a.example", "inv_1"),
        RAIL.make_nonce("https://a.example", "inv_2"),
        RAIL.make_nonce("https://b.example", "inv_1"),
        other.make_nonce("https://a.example", "inv_1"),
        RAIL.make_nonce("https://a.examplei", "nv_1"),
    }
    assert len(nonces) == 5
    # Pinned: another release that derives it differently could pay an invoice a second time.
    assert RAIL.make_nonce("https://a.example", "inv_1") == (
        "0x9e89cd3e4cf46446fee050875930ccd59df20af4899c777bc506298501ccb9a7"
    )


def test_the_credential_is_signed_by_the_wallet_for_these_terms():
    nonce = RAIL.make_nonce("https://a.example", "inv_1")
    headers = RAIL.make_credential(terms(), nonce=nonce, valid_before=1_800_000_000)
    sent = decode(headers["PAYMENT-SIGNATURE"])

    assert list(headers) == ["PAYMENT-SIGNATURE"]
    assert sent["x402Version"] == 2
    assert sent["accepted"] == ENTRY
    assert sent["resource"] == CHALLENGE["resource"]
    assert sent["payload"]["authorization"] == {
        "from": CANARY_ADDRESS,
        "to": RECEIVER,
        "value": "50000000",
        "validAfter": "0",
        "validBefore": "1800000000",
        "nonce": nonce,
    }
    signature = sent["payload"]["signature"]
    assert len(bytes.fromhex(signature[2:])) == 65
    assert recover(sent["payload"]["authorization"], signature, ENTRY) == CANARY_ADDRESS.lower()
    assert headers == RAIL.make_credential(terms(), nonce=nonce, valid_before=1_800_000_000)


def test_an_address_with_a_wrong_checksum_is_signed_all_the_same():
    swapped = USDC[:2] + USDC[2:].swapcase()
    headers = RAIL.make_credential(terms(asset=swapped), nonce="0x" + "00" * 32, valid_before=1)
    sent = decode(headers["PAYMENT-SIGNATURE"])
    assert (
        recover(sent["payload"]["authorization"], sent["payload"]["signature"], ENTRY)
        == CANARY_ADDRESS.lower()
    )


@pytest.mark.parametrize(
    "key", [CANARY_KEY + "ab", CANARY_KEY[:-2], CANARY_KEY.replace("1234", "zzzz"), "0x" + "f" * 64, ""]
)
def test_a_wrong_key_is_named_and_never_shown(key):
    with pytest.raises(ConfigurationError, match="private key is not 32 bytes") as caught:
        X402Rail(SecretStr(key), X402Limits())

    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    text = "".join(traceback.format_exception(error)) + repr(error) + repr(pickle.dumps(error))
    assert "c0ffee" not in text
    assert "f" * 64 not in text


def test_without_the_extra_the_rail_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("eth_account"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigurationError, match=r"in a checkout, run pip install '\.\[x402\]'"):
        X402Rail(SecretStr(CANARY_KEY), X402Limits())


def test_the_header_is_standard_base64_of_json():
    value = RAIL.make_credential(terms(), nonce="0x" + "00" * 32, valid_before=1)["PAYMENT-SIGNATURE"]
    assert json.loads(base64.b64decode(value, validate=True))["x402Version"] == 2
