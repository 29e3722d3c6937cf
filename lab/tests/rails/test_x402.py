"""The lab's x402 rail against credentials signed as a public client signs them."""

import base64
import copy
import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from eth_account import Account
from hypothesis import given, settings
from hypothesis import strategies as st

from assay_lab.errors import ConfigurationError
from assay_lab.rails import x402
from assay_lab.rails.credentials import CredentialVerdict
from assay_lab.rails.rail import Bill
from assay_lab.rails.x402 import X402Settings, make_challenge, settle_credential

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PAY_URL = "http://127.0.0.1:8765/api/v1/invoices/inv_1/pay"
BILL = Bill("inv_1", 12_345, "usd", PAY_URL, "lab.test", b"")
SETTINGS = X402Settings()
WALLET = Account.from_key("0x" + "11" * 32)
OTHER_WALLET = Account.from_key("0x" + "22" * 32)
NONCE = "0x" + "ab" * 32
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
TYPES = {
    "TransferWithAuthorization": [
        {"name": "from", "type": "address"},
        {"name": "to", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "validAfter", "type": "uint256"},
        {"name": "validBefore", "type": "uint256"},
        {"name": "nonce", "type": "bytes32"},
    ]
}


def decoded(header):
    return json.loads(base64.b64decode(header, validate=True))


def encoded(value):
    return base64.b64encode(json.dumps(value).encode()).decode()


def terms_of(config=SETTINGS, bill=BILL):
    return decoded(make_challenge(bill, config).headers["PAYMENT-REQUIRED"])


def signed(terms, *, wallet=WALLET, nonce=NONCE, domain=None, **changes):
    """What a client answers to `terms`; `changes` replace authorization values before they are signed."""
    offer = terms["accepts"][0]
    authorization = {
        "from": wallet.address,
        "to": offer["payTo"],
        "value": offer["amount"],
        "validAfter": "0",
        "validBefore": str(int(NOW.timestamp()) + 300),
        "nonce": nonce,
    } | changes
    signature = wallet.sign_typed_data(
        {
            "name": offer["extra"]["name"],
            "version": offer["extra"]["version"],
            "chainId": int(offer["network"].split(":")[1]),
            "verifyingContract": offer["asset"],
        }
        | (domain or {}),
        TYPES,
        authorization
        | {key: int(authorization[key]) for key in ("value", "validAfter", "validBefore")}
        | {"nonce": bytes.fromhex(authorization["nonce"][2:])},
    ).signature
    return {
        "x402Version": 2,
        "resource": terms["resource"],
        "accepted": offer,
        "payload": {"signature": "0x" + signature.hex(), "authorization": authorization},
    }


def answer(payment, *, used=frozenset(), now=NOW, config=SETTINGS, bill=BILL):
    return settle_credential(
        payment if isinstance(payment, str) else encoded(payment),
        bill,
        config,
        nonce_used=lambda payer, nonce: (payer, nonce) in used,
        now=now,
    )


def test_the_challenge_shows_the_terms_twice_and_the_amount_in_units_of_the_token():
    asked = make_challenge(BILL, SETTINGS, "why")
    body = asked.body
    assert decoded(asked.headers["PAYMENT-REQUIRED"]) == body
    assert body["x402Version"] == 2
    assert body["error"] == "why"
    assert body["resource"]["url"] == PAY_URL
    [offer] = body["accepts"]
    assert offer["amount"] == "123450000"  # 123.45 USD with six decimals
    assert offer["payTo"] == SETTINGS.pay_to
    assert offer["extra"] == {"name": "USDC", "version": "2"}


def test_a_genuine_credential_settles():
    result = answer(signed(terms_of()))
    assert result.ok, result.detail
    assert result.payer == WALLET.address
    assert result.nonce == NONCE
    assert result.reference.startswith("0x")
    assert len(result.reference) == 66
    assert decoded(result.header) == {
        "success": True,
        "transaction": result.reference,
        "network": "eip155:84532",
        "payer": WALLET.address,
    }


def test_the_resource_may_be_left_out():
    payment = signed(terms_of())
    del payment["resource"]
    assert answer(payment).ok


def test_addresses_are_compared_without_regard_to_case():
    payment = signed(terms_of())
    authorization = payment["payload"]["authorization"]
    for name in ("from", "to"):
        authorization[name] = "0x" + authorization[name][2:].upper()
    assert answer(payment).ok


def test_a_nonce_settles_once_however_it_is_spelled():
    first = answer(signed(terms_of()))
    again = answer(signed(terms_of(), nonce="0x" + "AB" * 32), used=frozenset({(first.payer, first.nonce)}))
    assert again.reason == "invalid_transaction_state"


def replaced(payment, path, value):
    changed = copy.deepcopy(payment)
    target = changed
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (["x402Version"], 1, "invalid_x402_version"),
        (["x402Version"], "2", "invalid_x402_version"),
        (["accepted"], None, "invalid_payment_requirements"),
        (["accepted", "scheme"], "upto", "invalid_scheme"),
        (["accepted", "network"], "eip155:1", "invalid_network"),
        (["accepted", "amount"], "1", "invalid_payment_requirements"),
        (["accepted", "extra", "version"], "1", "invalid_payment_requirements"),
        (["accepted", "more"], 1, "invalid_payment_requirements"),
        (["resource", "url"], "http://127.0.0.1/api/v1/invoices/inv_2/pay", "invalid_payment_requirements"),
        (["resource"], "inv_1", "invalid_payment_requirements"),
        (["payload"], [], "invalid_payload"),
        (["payload", "authorization"], None, "invalid_payload"),
        (["payload", "authorization", "value"], 123450000, "invalid_payload"),
        (["payload", "authorization", "value"], "0123450000", "invalid_payload"),
        (["payload", "authorization", "nonce"], "0x12", "invalid_payload"),
        (["payload", "authorization", "from"], "me", "invalid_payload"),
        (["payload", "signature"], None, "invalid_exact_evm_payload_signature"),
        (["payload", "signature"], "0x1234", "invalid_exact_evm_payload_signature"),
        (["payload", "signature"], "0x" + "00" * 65, "invalid_exact_evm_payload_signature"),
        (["payload", "authorization", "nonce"], "0x" + "cd" * 32, "invalid_exact_evm_payload_signature"),
        (["payload", "authorization", "from"], OTHER_WALLET.address, "invalid_exact_evm_payload_signature"),
        (["payload", "authorization", "validAfter"], "1", "invalid_exact_evm_payload_signature"),
    ],
)
def test_a_changed_credential_is_refused(path, value, reason):
    result = answer(replaced(signed(terms_of()), path, value))
    assert (result.ok, result.reason) == (False, reason)
    assert (result.payer, result.nonce, result.reference) == (None, None, None)
    assert decoded(result.header)["errorReason"] == reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"to": OTHER_WALLET.address}, "invalid_exact_evm_payload_recipient_mismatch"),
        ({"value": "123450001"}, "invalid_exact_evm_payload_authorization_value"),
        ({"value": "1"}, "invalid_exact_evm_payload_authorization_value"),
        (
            {"validAfter": str(int(NOW.timestamp()) + 5)},
            "invalid_exact_evm_payload_authorization_valid_after",
        ),
        ({"validBefore": str(int(NOW.timestamp()))}, "invalid_exact_evm_payload_authorization_valid_before"),
        (
            {"validBefore": str(int(NOW.timestamp()) + 5)},
            "invalid_exact_evm_payload_authorization_valid_before",
        ),
        (
            {"validBefore": str(int(NOW.timestamp()) + 3600)},
            "invalid_exact_evm_payload_authorization_valid_before",
        ),
        ({"validBefore": str(2**255)}, "invalid_exact_evm_payload_authorization_valid_before"),
    ],
)
def test_a_well_signed_credential_with_other_terms_is_refused(changes, reason):
    result = answer(signed(terms_of(), **changes))
    assert (result.ok, result.reason) == (False, reason)


@pytest.mark.parametrize(
    "domain",
    [
        {"name": "USD Coin"},
        {"version": "1"},
        {"chainId": 1},
        {"verifyingContract": OTHER_WALLET.address},
    ],
)
def test_a_signature_for_another_token_or_chain_is_refused(domain):
    assert answer(signed(terms_of(), domain=domain)).reason == "invalid_exact_evm_payload_signature"


def test_the_mirrored_signature_is_refused():
    payment = signed(terms_of())
    raw = bytes.fromhex(payment["payload"]["signature"][2:])
    high = ORDER - int.from_bytes(raw[32:64], "big")
    mirrored = raw[:32] + high.to_bytes(32, "big") + bytes([55 - raw[64]])
    result = answer(replaced(payment, ["payload", "signature"], "0x" + mirrored.hex()))
    assert result.reason == "invalid_exact_evm_payload_signature"


@pytest.mark.parametrize("shift", [-27, 8, 100])
def test_a_recovery_byte_that_contracts_refuse_is_refused(shift):
    payment = signed(terms_of())
    *raw, recovery = bytes.fromhex(payment["payload"]["signature"][2:])
    assert recovery in (27, 28)
    changed = bytes([*raw, recovery + shift])
    result = answer(replaced(payment, ["payload", "signature"], "0x" + changed.hex()))
    assert result.reason == "invalid_exact_evm_payload_signature"


def test_it_expires_with_the_wall_clock():
    payment = signed(terms_of())
    # Facilitators ask for six seconds more, to settle in.
    assert answer(payment, now=NOW + timedelta(seconds=294.9)).ok
    assert not answer(payment, now=NOW + timedelta(seconds=295)).ok


def test_a_credential_pays_only_its_own_invoice():
    twin = replace(BILL, invoice_id="inv_2", pay_url=PAY_URL.replace("inv_1", "inv_2"))
    result = answer(signed(terms_of()), bill=twin)
    assert result.reason == "invalid_payment_requirements"


@pytest.mark.parametrize(
    ("fault", "shows"),
    [
        ("wrong_amount", lambda terms: terms["accepts"][0]["amount"] == "246900000"),
        ("wrong_payee", lambda terms: terms["accepts"][0]["payTo"] != SETTINGS.pay_to),
        ("wrong_asset", lambda terms: terms["accepts"][0]["asset"] != SETTINGS.asset),
        ("wrong_network", lambda terms: terms["accepts"][0]["network"] != SETTINGS.network),
        ("wrong_resource", lambda terms: terms["resource"]["url"] != PAY_URL),
        ("ten_year_window", lambda terms: terms["accepts"][0]["maxTimeoutSeconds"] > 300_000_000),
    ],
)
def test_a_fault_shows_and_a_client_without_a_guard_would_pay_it(fault, shows):
    bill = replace(BILL, fault=fault)
    assert not shows(terms_of())
    assert shows(terms_of(bill=bill))
    assert answer(signed(terms_of(bill=bill)), bill=bill).ok


@given(st.text(max_size=400))
@settings(max_examples=200)
def test_any_text_is_a_refusal(text):
    result = answer(text)
    assert isinstance(result, CredentialVerdict)
    assert not result.ok
    assert result.reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
GENUINE = signed(terms_of())
PATHS = [
    ["x402Version"],
    ["accepted"],
    ["payload"],
    ["payload", "signature"],
    ["payload", "authorization"],
    *(["accepted", key] for key in GENUINE["accepted"]),
    *(["payload", "authorization", key] for key in GENUINE["payload"]["authorization"]),
]


@given(path=st.sampled_from(PATHS), value=JSON)
@settings(max_examples=200)
def test_any_json_in_any_place_is_a_refusal(path, value):
    changed = replaced(GENUINE, path, value)
    assert answer(changed).ok is (changed == GENUINE)


@given(position=st.integers(0, len(encoded(GENUINE)) - 1), byte=st.integers(0, 255))
@settings(max_examples=200)
def test_a_damaged_header_never_raises_and_settles_nothing_else(position, byte):
    header = encoded(GENUINE)
    damaged = header[:position] + chr(byte) + header[position + 1 :]
    result = answer(damaged)
    if result.ok:  # a bit of padding or an unread field: then still this payer, nonce and amount
        assert (result.payer, result.nonce) == (WALLET.address, NONCE)
    else:
        assert result.reason


def test_deep_nesting_and_great_length_are_refusals():
    deep = base64.b64encode(b"[" * 12_000).decode()
    assert answer(deep).reason == "invalid_payload"
    assert answer("A" * 1_000_000).reason == "invalid_payload"


def test_without_the_extra_the_error_names_the_install_command(monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(x402.importlib, "import_module", absent)
    with pytest.raises(ConfigurationError, match="pip install eth-account"):
        answer(GENUINE)


def test_importing_the_rail_does_not_import_the_library():
    code = "import sys, assay_lab.rails.x402; sys.exit('eth_account' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
