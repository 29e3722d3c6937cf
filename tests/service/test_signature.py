"""Only what was signed with a known secret, now, is a delivery; anything else is a SignatureError."""

import contextlib
import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from prefect_assay.campaigns.receiver.settings import ReceiverSettings
from prefect_assay.errors import ConfigurationError, MalformedDelivery, SignatureError
from prefect_assay.service.models.service import WireWords
from prefect_assay.service.models.update import Delivery
from prefect_assay.service.webhook_signature import (
    delivery_url,
    derive_secret,
    prove,
    sign,
    verify,
)
from support.webhooks.deliveries import ORDER_KEY, SIGNING_KEY, body_of, headers_of

SECRET = derive_secret(SIGNING_KEY, ORDER_KEY)
TOLERANCE = timedelta(minutes=5)


def check(body, headers, *secrets, now=None, tolerance=TOLERANCE, words=None):
    return verify(
        body, headers, secrets or (SECRET,), now=now or datetime.now(UTC), tolerance=tolerance, words=words
    )


def test_derived_secrets():
    assert re.fullmatch(r"[0-9a-f]{64}", SECRET)
    assert derive_secret(SecretStr(SIGNING_KEY), ORDER_KEY) == SECRET
    # Pinned: experiments that run keep their secret for weeks, so the derivation must never change.
    assert SECRET == "ab122f770e19952462cf5cc41fdea09aa3381ee183746cfe652f816bd843deb6"
    assert derive_secret(SIGNING_KEY, ORDER_KEY[::-1]) != SECRET
    assert derive_secret(SIGNING_KEY + "x", ORDER_KEY) != SECRET


def test_short_signing_keys_are_refused_without_showing_them():
    with pytest.raises(ConfigurationError, match="shorter than 32") as caught:
        derive_secret("hunter2", ORDER_KEY)
    assert "hunter2" not in str(caught.value)


def test_signature_of_a_published_example():
    # RFC 4231, test case 2.
    assert sign(b"what do ya want for nothing?", "Jefe") == (
        "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    )


def test_delivery_url():
    assert (
        delivery_url("https://hooks.example.org/assay/", ORDER_KEY)
        == f"https://hooks.example.org/assay/{ORDER_KEY}"
    )


@pytest.mark.parametrize(
    "base", ["", "hooks.example.org", "ftp://x/y", "https://x/y?z=1", "https://x/#y", "https://[x"]
)
def test_addresses_that_cannot_work(base):
    with pytest.raises(ConfigurationError, match="https://host/path"):
        delivery_url(base, ORDER_KEY)


def test_the_signature_covers_the_bytes_as_they_came():
    """Written anew by this side, the same JSON would have other bytes."""
    written = json.loads(body_of(data_update_id="u-7"))
    body = json.dumps(written, indent=4, sort_keys=True).encode() + b"\n"
    delivery = check(body, headers_of(body, SECRET))
    assert (delivery.data.update_id, delivery.delivery_id) == ("u-7", written["delivery_id"])
    for other in (json.dumps(written).encode(), b" ".join(body.split())):
        with pytest.raises(SignatureError, match="does not match its body"):
            check(body, headers_of(other, SECRET))


def test_headers_are_found_in_any_case():
    body = body_of()
    check(body, {name.upper(): value for name, value in headers_of(body, SECRET).items()})


def test_the_deployment_spells_the_headers():
    body = body_of()
    check(body, headers_of(body, SECRET, word="Acme"), words=WireWords(service="Acme"))
    with pytest.raises(SignatureError, match="no X-Acme-Signature header"):
        check(body, headers_of(body, SECRET), words=WireWords(service="Acme"))


def test_any_of_several_secrets_will_do_while_a_key_is_replaced():
    body = body_of()
    check(body, headers_of(body, SECRET), "another", SECRET)


@pytest.mark.parametrize("secrets", [(), ("another",)])
def test_no_matching_secret(secrets):
    body = body_of()
    with pytest.raises(SignatureError, match="does not match"):
        verify(body, headers_of(body, SECRET), secrets, now=datetime.now(UTC), tolerance=None)


@pytest.mark.parametrize(
    "value",
    [
        "", " ", "sha256=", "sha1=abc", "sha256=é" + "0" * 62, "\udcff", "\0", "x" * 100_000, None, 7,
        b"sha256=00",
    ],
)  # fmt: skip
def test_signature_headers_that_are_none(value):
    body = body_of()
    with pytest.raises(SignatureError):
        check(body, headers_of(body, SECRET) | {"X-Service-Signature": value})


@pytest.mark.parametrize("name", ["X-Service-Signature", "X-Service-Event", "X-Service-Delivery-Id"])
def test_every_header_of_the_contract_is_needed(name):
    body = body_of()
    headers = headers_of(body, SECRET)
    del headers[name]
    with pytest.raises(SignatureError, match=f"no {name} header"):
        check(body, headers)


def odd(body, **headers):
    """The remarks about a delivery with these headers."""
    sent_headers = headers_of(body, SECRET) | {
        f"X-Service-{name.replace('_', '-')}": v for name, v in headers.items()
    }
    assert check(body, sent_headers) == Delivery.model_validate_json(body)
    return prove(body, sent_headers, [SECRET], now=datetime.now(UTC), tolerance=TOLERANCE).remarks


def test_what_differs_in_the_headers_is_remarked_and_no_more():
    """A 4xx is never sent again (contract 6, rule 3), and the signature holds."""
    assert odd(body_of()) == ()
    assert "delivery id" in " ".join(odd(body_of(), Delivery_Id="another"))
    assert "event" in " ".join(odd(body_of(), Event="experiment_deleted"))
    assert "event" in " ".join(odd(body_of(event="experiment_deleted")))
    assert "event" in " ".join(odd(body_of(event="experiment_deleted"), Event="experiment_deleted"))


def test_a_signature_in_upper_case_holds():
    body = body_of()
    headers = headers_of(body, SECRET)
    signature = headers["X-Service-Signature"].removeprefix("sha256=")
    assert check(body, headers | {"X-Service-Signature": "sha256=" + signature.upper()})


def test_an_empty_secret_proves_nothing():
    body = body_of()
    headers = headers_of(body, "")
    for secrets in ([""], ["", SECRET]):
        with pytest.raises(SignatureError, match="does not match"):
            check(body, headers, *secrets)
    assert check(body, headers_of(body, SECRET), "", SECRET)


def test_one_text_is_no_list_of_secrets():
    """Each of its letters would be a secret, soon guessed."""
    body = body_of()
    with pytest.raises(SignatureError, match="give a list"):
        verify(body, headers_of(body, SECRET[0]), SECRET, now=datetime.now(UTC), tolerance=None)


@pytest.mark.parametrize("age", [timedelta(minutes=6), timedelta(minutes=-6)])
def test_the_signed_time_must_be_near(age):
    body = body_of(timestamp=(datetime.now(UTC) - age).isoformat())
    with pytest.raises(SignatureError, match="a replay, or a clock") as caught:
        check(body, headers_of(body, SECRET))
    named = str(caught.value).partition("PREFECT_ASSAY_RECEIVER_")[2].partition(" ")[0]
    assert named.lower() == "tolerance_seconds"
    assert named.lower() in ReceiverSettings.model_fields
    assert check(body, headers_of(body, SECRET), tolerance=timedelta(minutes=7))


def test_a_virtual_clock_needs_no_tolerance():
    body = body_of(timestamp="2031-05-01T00:00:00Z")
    assert check(body, headers_of(body, SECRET), tolerance=None).timestamp.year == 2031


def test_a_time_without_zone_is_utc():
    body = body_of(timestamp="2026-01-01T12:00:00")
    assert check(body, headers_of(body, SECRET), now=datetime(2026, 1, 1, 12, 1, tzinfo=UTC))


@pytest.mark.parametrize("timestamp", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_times_at_the_ends_of_the_calendar(timestamp):
    body = body_of(timestamp=timestamp)
    with pytest.raises(SignatureError):
        check(body, headers_of(body, SECRET))


def signed(body: bytes) -> dict[str, str]:
    return {
        "X-Service-Event": "experiment_update",
        "X-Service-Delivery-Id": "d",
        "X-Service-Signature": sign(body, SECRET),
    }


@pytest.mark.parametrize(
    "body",
    [
        b"", b"no json", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"delivery_id": 1' + b"0" * 10_000 + b"}",
        {"data_experiment_id": None}, {"data_update_id": None}, {"data_experiment_id": ""},
        {"timestamp": "yesterday"}, {"event": 7},
    ],
    ids=[
        "empty", "text", "array", "not-utf-8", "deep", "huge-number", "no-experiment", "no-update",
        "empty-experiment", "no-time", "no-event",
    ],
)  # fmt: skip
def test_signed_but_malformed(body):
    if isinstance(body, dict):  # made now: the time that a delivery carries must be fresh
        body = body_of(**body)
    headers = signed(body)
    if body.startswith(b'{"delivery_id": "'):
        headers["X-Service-Delivery-Id"] = json.loads(body)["delivery_id"]
    with pytest.raises(MalformedDelivery):
        check(body, headers)


def test_errors_show_no_content_of_the_body():
    body = body_of(timestamp="the private text")
    with pytest.raises(MalformedDelivery, match=r"timestamp \(datetime") as caught:
        check(body, headers_of(body, SECRET))
    assert "private" not in str(caught.value)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def genuine(body, headers, *secrets, **more) -> bool:
    """Whether it verifies; any exception but SignatureError fails the test."""
    try:
        check(body, headers, *secrets, **more)
    except SignatureError:
        return False
    return True


@settings(max_examples=200)
@given(st.data())
def test_one_changed_byte_is_noticed(data):
    body = body_of()
    headers = headers_of(body, SECRET)
    position = data.draw(st.integers(0, len(body) - 1))
    changed = (
        body[:position]
        + bytes([data.draw(st.integers(0, 255).filter(lambda b: b != body[position]))])
        + body[position + 1 :]
    )
    assert genuine(body, headers)
    with pytest.raises(SignatureError) as caught:
        check(changed, headers)
    assert not isinstance(caught.value, MalformedDelivery), "parsed before it was verified"


@given(st.binary(max_size=60) | ANY_JSON.map(lambda value: json.dumps(value).encode()))
def test_any_other_signed_body_is_malformed(body):
    with pytest.raises(MalformedDelivery):
        check(body, signed(body))


ANYTHING = (
    ANY_JSON
    | st.binary(max_size=20)
    | st.binary(max_size=20).map(bytearray)
    | st.datetimes()
    | st.timedeltas()
    | st.characters(categories=["Cs"])
    | st.builds(object)
)
PARTS = ("body", "headers", "secrets", "now", "tolerance", "words")


@settings(max_examples=500)
@given(st.dictionaries(st.sampled_from(PARTS), ANYTHING, min_size=1))
def test_whatever_it_is_given_it_raises_nothing_else(changes):
    body = body_of()
    given_all = {
        "body": body,
        "headers": headers_of(body, SECRET),
        "secrets": [SECRET],
        "now": datetime.now(UTC),
        "tolerance": TOLERANCE,
        "words": None,
    } | changes
    with contextlib.suppress(SignatureError):
        delivery = verify(
            given_all.pop("body"), given_all.pop("headers"), given_all.pop("secrets"), **given_all
        )
        assert isinstance(delivery, Delivery)
        assert not {"body", "headers", "secrets"} & set(changes)  # else nothing genuine was left


class Hostile:
    """Headers that fail when they are read."""

    def items(self):
        raise LookupError("no headers today")


def test_headers_that_cannot_be_read():
    with pytest.raises(SignatureError, match="LookupError"):
        check(body_of(), Hostile())


class Pairs(dict):
    """Headers as a server has them: one name several times."""

    def __init__(self, headers, *more):
        super().__init__(headers)
        self.pairs = [*headers.items(), *more]

    def items(self):
        return self.pairs


BAD = ("x-service-signature", "sha256=" + "0" * 64)


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_of_several_signatures_one_that_holds_is_enough(first, joined):
    """A refusal is permanent (contract 6, rule 3), and a signature that holds proves the body, whatever else is there."""
    body = body_of()
    good = headers_of(body, SECRET)
    name = next(name for name in good if name.lower() == BAD[0])
    both = (good[name], BAD[1]) if first else (BAD[1], good[name])
    if joined:
        check(body, {**good, name: ", ".join(both)})
    else:
        rest = {key: value for key, value in good.items() if key != name}
        check(body, Pairs({**rest, name: both[0]}, (name, both[1])))
    with pytest.raises(SignatureError) as refused:
        check(body, {**good, name: f"{BAD[1]}, {BAD[1]}"})
    assert refused.value.reason == "signature"
