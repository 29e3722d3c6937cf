from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from prefect_assay.errors import (
    BudgetExceeded,
    ClockDiffers,
    ConfigurationError,
    PaymentFailed,
    PaymentRefused,
    PaymentsDisabled,
)
from prefect_assay.orders.job import PaymentState
from prefect_assay.orders.payments import guard
from prefect_assay.orders.payments.guard import PaymentPolicy
from prefect_assay.orders.payments.interfaces import LedgerEntry, normalize_address, normalize_origin, pay_url
from prefect_assay.orders.payments.rails.x402 import X402Limits, X402Rail, X402Terms
from prefect_assay.orders.payments.terms import Offers
from prefect_assay.service.models.billing import Invoice, usd
from prefect_assay.service.models.vocabulary import PaymentMethod
from support.lab.pay import Answer

BASE = "https://assay.example"
KEY = "0x" + "11" * 32
ASSET = "0x" + "aB" * 20
RECEIVER = "0x" + "cD" * 20
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
INVOICE = Invoice(id="inv_1", status="open", currency="usd", amount=5000)
POLICY = PaymentPolicy(
    enabled=True, max_cents_per_payment=5000, max_cents_rolling=10_000, allowed_origins=(BASE,)
)
LIMITS = X402Limits(networks=("eip155:84532",), assets=(ASSET,), pay_to=(RECEIVER,))
TERMS = X402Terms(
    network="eip155:84532",
    asset=ASSET,
    pay_to=RECEIVER,
    amount_units=50_000_000,
    max_timeout_seconds=600,
    resource_url=f"{BASE}/api/v1/invoices/inv_1/pay",
    domain_name="USDC",
    domain_version="2",
    accepted={},
)


@pytest.mark.parametrize(
    ("cents", "figure"),
    [
        (0, "0.00 USD"),
        (7, "0.07 USD"),
        (5000, "50.00 USD"),
        (123_450, "1,234.50 USD"),
        (100_000_000_005, "1,000,000,000.05 USD"),
        (-5, "-0.05 USD"),
        (-150, "-1.50 USD"),
        (-123_450, "-1,234.50 USD"),
    ],
)
def test_an_amount_is_shown_with_its_sign_and_thousands_separators(cents, figure):
    assert usd(cents) == figure


BASE_MAIN, BASE_TEST = "eip155:8453", "eip155:84532"
MAIN, TEST = "0x" + "1a" * 20, "0x" + "2b" * 20
PAIRS = (f"{BASE_MAIN}/erc20:{MAIN}", f"{BASE_TEST}/erc20:{TEST}")


@pytest.mark.parametrize(
    ("networks", "assets", "allowed"),
    [
        ((BASE_MAIN, BASE_TEST), PAIRS, {(BASE_MAIN, MAIN), (BASE_TEST, TEST)}),
        ((BASE_MAIN,), PAIRS, {(BASE_MAIN, MAIN)}),
        ((BASE_TEST,), (TEST.upper().replace("X", "x"),), {(BASE_TEST, TEST)}),
        ((BASE_TEST, BASE_TEST.upper()), (TEST,), {(BASE_TEST, TEST)}),
        ((), PAIRS, set()),
        ((BASE_MAIN, BASE_TEST), (), set()),
        ((BASE_MAIN, BASE_TEST), (f"{BASE_MAIN}/slip44:{MAIN}", f"/erc20:{MAIN}"), set()),
    ],
)
def test_an_asset_is_allowed_on_its_own_network_only(networks, assets, allowed):
    limits = X402Limits(networks=networks, assets=assets, pay_to=(RECEIVER,))
    places = [(network, asset) for network in (BASE_MAIN, BASE_TEST) for asset in (MAIN, TEST)]
    assert {place for place in places if not findings(limits, network=place[0], asset=place[1])} == allowed


@pytest.mark.parametrize("assets", [(PAIRS[0], TEST), (MAIN, TEST), (*PAIRS, MAIN)])
def test_an_asset_without_its_network_makes_no_rail_where_several_are_allowed(assets):
    limits = X402Limits(networks=(BASE_MAIN, BASE_TEST), assets=assets, pay_to=(RECEIVER,))
    with pytest.raises(ConfigurationError, match=r"Write each as eip155:8453/erc20:0x\.\.\."):
        X402Rail(SecretStr(KEY), limits)


def findings(limits=LIMITS, **changes):
    rail, terms = X402Rail(SecretStr(KEY), limits), TERMS.model_copy(update=changes)
    return guard.find_problems(rail, terms, base_url=BASE, invoice=INVOICE, cents=5000, now=NOW)


def entry(**changes):
    values = {
        "id": "a record",
        "state": PaymentState.SENT,
        "sent_at": NOW,
        "invoice_id": "inv_1",
        "rail": PaymentMethod.X402_EXACT,
        "amount_cents": 5000,
        "nonce": "0x01",
        "network": "eip155:84532",
        "asset": ASSET,
        "pay_to": RECEIVER,
        "expires_at": NOW + timedelta(minutes=5),
    }
    return LedgerEntry(**{**values, **changes})


def test_terms_inside_the_policy_have_no_findings():
    assert findings() == ()
    assert findings(asset=ASSET.lower(), pay_to=RECEIVER.upper().replace("X", "x")) == ()
    assert findings(resource_url="/api/v1/invoices/inv_1/pay") == ()
    assert findings(resource_url="HTTPS://ASSAY.EXAMPLE:443/api/v1/invoices/inv_1/pay") == ()


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"amount_units": 50_000_001}, "50000001 units, the invoice for 50.00 USD"),
        ({"amount_units": 49_990_000}, "49.99 USD, the invoice for 50.00 USD"),
        ({"amount_units": 0}, "0.00 USD, the invoice for 50.00 USD"),
        (
            {"network": "eip155:8453"},
            "network 'eip155:8453' is not in networks of the X402Wallet block (eip155:84532)",
        ),
        ({"asset": RECEIVER}, "is not in assets of the X402Wallet block"),
        ({"pay_to": ASSET}, "is not in pay_to of the X402Wallet block"),
        ({"max_timeout_seconds": 601}, "601 s, and at most 600 s are allowed"),
        ({"resource_url": None}, "resource.url is None"),
        *(
            ({"resource_url": url}, f"resource.url is {url!r}")
            for url in ("", " ", "\t", "?", "#", ";", "https:", "https:;", "//")
        ),
        ({"resource_url": f"{BASE}/api/v1/invoices/inv_2/pay"}, "inv_2"),
        ({"resource_url": f"{BASE}/api/v1/invoices/inv_1/pay?x=1"}, "?x=1"),
        ({"resource_url": f"{BASE}/api/v1/invoices/inv_1/pay#x"}, "#x"),
        ({"resource_url": "https://me@assay.example/api/v1/invoices/inv_1/pay"}, "me@"),
        ({"resource_url": "https://assay.example:8443/api/v1/invoices/inv_1/pay"}, ":8443"),
        ({"resource_url": "http://assay.example/api/v1/invoices/inv_1/pay"}, "'http://"),
        ({"resource_url": "https://assay.example.evil/api/v1/invoices/inv_1/pay"}, ".evil"),
        ({"resource_url": "//evil/api/v1/invoices/inv_1/pay"}, "//evil"),
        ({"resource_url": "https://[::1/pay"}, "[::1"),
        ({"resource_url": "https://assay.example:port/"}, ":port"),
    ],
)
def test_each_deviation_is_one_finding_that_names_it(changes, part):
    (finding,) = findings(**changes)
    assert part in finding


def test_empty_allow_lists_allow_nothing():
    bare = PaymentPolicy(enabled=True, max_cents_per_payment=5000, max_cents_rolling=5000)
    assert [f.partition(" ")[0] for f in findings(X402Limits())] == ["network", "asset", "payTo"]
    with pytest.raises(PaymentRefused, match=r"AssayCredentials block \(which is empty"):
        guard.check_origin(bare, BASE)


def test_every_unacceptable_offer_is_named_and_an_acceptable_one_is_chosen():
    wrong = TERMS.model_copy(update={"network": "eip155:1"})
    offers = Offers(terms=(wrong,), ignored=("scheme 'upto' on 'eip155:1': not known here",))
    arguments = {"base_url": BASE, "invoice": INVOICE, "cents": 5000, "now": NOW}
    rail = X402Rail(SecretStr(KEY), LIMITS)
    with pytest.raises(PaymentRefused) as caught:
        guard.choose_terms(rail, offers, **arguments)
    assert "scheme 'upto'" in str(caught.value)
    assert "network 'eip155:1' is not in networks of the X402Wallet block" in str(caught.value)
    assert guard.choose_terms(rail, Offers(terms=(wrong, TERMS)), **arguments) == TERMS
    with pytest.raises(PaymentRefused, match="nothing"):
        guard.choose_terms(rail, Offers(terms=()), **arguments)


def test_the_default_policy_pays_nothing():
    with pytest.raises(PaymentsDisabled, match="machine_payments of the SpendingPolicy block"):
        guard.check_ready(PaymentPolicy(), BASE, 100)


def test_an_enabled_policy_must_state_both_caps():
    with pytest.raises(ValidationError, match="max_cents_per_payment and max_cents_rolling"):
        PaymentPolicy(enabled=True)
    with pytest.raises(ValidationError, match="need max_cents_rolling"):
        PaymentPolicy(enabled=True, max_cents_per_payment=1)


def test_a_payment_over_its_cap_is_refused_and_one_at_the_cap_is_not():
    guard.check_ready(POLICY, BASE, 5000)
    with pytest.raises(BudgetExceeded, match=r"50.01 USD is over the cap of one payment, 50.00 USD"):
        guard.check_ready(POLICY, BASE, 5001)
    with pytest.raises(BudgetExceeded, match="no cap of one payment is set"):
        guard.check_ready(
            PaymentPolicy(enabled=False).model_copy(update={"enabled": True, "allowed_origins": (BASE,)}),
            BASE,
            1,
        )


@pytest.mark.parametrize("cents", [0, -5000])
def test_an_amount_that_is_not_positive_is_refused(cents):
    with pytest.raises(PaymentRefused, match="positive"):
        guard.check_ready(POLICY, BASE, cents)


@pytest.mark.parametrize(
    ("base_url", "allowed"),
    [
        ("https://assay.example", "https://assay.example"),
        ("https://ASSAY.example:443/", "https://assay.example"),
        ("https://assay.example/deep/", "https://assay.example/"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_listed_https_and_loopback_origins_are_allowed(base_url, allowed):
    guard.check_origin(POLICY.model_copy(update={"allowed_origins": (allowed,)}), base_url)


@pytest.mark.parametrize(
    ("base_url", "match"),
    [
        ("http://assay.example", "is not https"),
        ("http://127.0.0.1.evil.example", "is not https"),
        ("http://localhost.evil.example", "is not https"),
        ("http://10.0.0.1", "is not https"),
        ("ftp://assay.example", "is not https"),
        ("https://assay.example:8443", "is not an allowed address"),
        ("https://assay.example@evil.example", "'https://evil.example' is not an allowed address"),
        ("assay.example", "not a URL"),
        ("https://assay.example:99999", "not a URL"),
    ],
)
def test_other_origins_are_refused(base_url, match):
    listed = POLICY.model_copy(update={"allowed_origins": (BASE, "http://assay.example", "http://10.0.0.1")})
    with pytest.raises(PaymentRefused, match=match):
        guard.check_origin(listed, base_url)


@pytest.mark.parametrize("status", ["draft", "paid", "void", "uncollectible", "frozen", None])
def test_only_an_open_invoice_is_payable(status):
    guard.check_invoice(INVOICE, 5000)
    with pytest.raises(PaymentFailed, match=f"inv_1 is '?{status}'?, not open"):
        guard.check_invoice(Invoice(id="inv_1", status=status, amount=5000), 5000)


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_the_invoice_must_ask_for_exactly_what_was_approved(asked, approved):
    invoice = Invoice(id="inv_1", status="open", amount=asked)
    if asked == approved:
        guard.check_invoice(invoice, approved)
    else:
        with pytest.raises(PaymentRefused, match="was approved"):
            guard.check_invoice(invoice, approved)


STATES = [PaymentState.SENT, PaymentState.UNKNOWN, PaymentState.SETTLED, PaymentState.FAILED]
LATER = NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    "change", [{}, {"nonce": "0x02"}, {"network": "eip155:1"}, {"asset": RECEIVER}, {"amount_cents": 5001}]
)
@pytest.mark.parametrize("is_repeatable", [True, False])
@pytest.mark.parametrize("now", [NOW, LATER])
@pytest.mark.parametrize("state", STATES)
def test_another_credential_waits_for_a_refused_one_to_expire_and_for_one_in_doubt_for_ever(
    state, now, is_repeatable, change
):
    """Only the same authorisation, on a rail that settles a nonce once, may follow at any time."""
    again = entry(expires_at=now + timedelta(minutes=5), **change)
    if (is_repeatable and not change) or (state is PaymentState.FAILED and now is LATER):
        guard.check_again(entry(state=state), again, now, is_repeatable=is_repeatable)
        return
    with pytest.raises(PaymentRefused, match=f"was sent and is {state.value}, .*could be settled besides it"):
        guard.check_again(entry(state=state), again, now, is_repeatable=is_repeatable)


@pytest.mark.parametrize("state", [PaymentState.SENT, PaymentState.UNKNOWN])
def test_a_payment_in_doubt_is_repeated_only_on_a_rail_that_settles_once(state):
    guard.check_repeatable(entry(state=state), is_repeatable=True)
    with pytest.raises(PaymentRefused, match=rf"x402-exact was sent and is {state.value}; no other one is"):
        guard.check_repeatable(entry(state=state), is_repeatable=False)


@pytest.mark.parametrize("belongs_to", ["exp_2", "", None])
def test_an_invoice_of_another_experiment_is_refused(belongs_to):
    invoice = INVOICE.model_copy(update={"experiment_id": belongs_to})
    guard.check_owner(invoice, None)
    guard.check_owner(invoice.model_copy(update={"experiment_id": "exp_1"}), "exp_1")
    with pytest.raises(PaymentRefused, match=rf"belongs to experiment {belongs_to!r}, .* exp_1; nothing was"):
        guard.check_owner(invoice, "exp_1")


def test_the_window_is_longer_by_what_clocks_may_differ_and_a_credential_may_take():
    cap = PaymentPolicy(rolling_days=366).rolling_cap(NOW)
    assert (cap.at, cap.since) == (NOW, NOW - timedelta(days=366, minutes=20))
    with pytest.raises(ValidationError, match="366"):
        PaymentPolicy(rolling_days=367)


def dated(*values):
    return Answer(402, {"date": ", ".join(values)} if values else {}, {})


def stated(**away):
    return format_datetime(NOW + timedelta(**away), usegmt=True)


def test_the_contract_promises_no_date():
    assert guard.check_clock(dated(), NOW) == NOW


@pytest.mark.parametrize("minutes", [-4, 0, 4])
def test_a_clock_that_agrees_with_the_services_date_gives_the_time(minutes):
    assert guard.check_clock(dated(stated(minutes=minutes)), NOW) == NOW
    assert guard.check_clock(dated(*2 * [stated(minutes=minutes)]), NOW) == NOW  # a doubled header


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (dated(stated(minutes=6)), "the service's is"),
        (dated(stated(days=-400)), "the service's is"),
        (dated(stated(), stated(days=31)), "the service's Date cannot be read"),
        (dated("yesterday"), "the service's Date cannot be read"),
        (dated("Sat, 31 Feb 2026 10:00:00 GMT"), "the service's Date cannot be read"),
    ],
)
def test_a_clock_that_a_date_does_not_confirm_pays_nothing_and_says_both_times(answer, says):
    with pytest.raises(
        ClockDiffers, match=rf"{NOW:%Y-%m-%d %H:%M:%S} UTC, and {says}.*Set the clock"
    ) as told:
        guard.check_clock(answer, NOW)
    assert told.value.retriable


def test_a_wallets_new_key_is_named_where_the_earlier_one_has_to_pay():
    one, other = entry(payer="0xaa"), entry(payer="0xbb", nonce="0x02")
    with pytest.raises(
        PaymentRefused, match=r"the first authorisation is of 0xaa, this one of 0xbb\. Save the first key"
    ):
        guard.check_again(one, other, LATER)
    with pytest.raises(PaymentRefused, match=r"could be settled besides it$"):
        guard.check_again(one, entry(payer="0xaa", nonce="0x02"), LATER)


def test_what_was_never_sent_binds_nothing():
    guard.check_again(None, entry(), NOW)


def test_an_address_has_one_spelling():
    spellings = ("https://Assay.example", "https://assay.example:443/", "HTTPS://assay.example//")
    assert {normalize_address(url) for url in spellings} == {BASE}
    assert (
        pay_url("https://assay.example/x/", "a/b c")
        == "https://assay.example/x/api/v1/invoices/a%2Fb%20c/pay"
    )
    with pytest.raises(ConfigurationError, match="base_url"):
        normalize_address("nowhere")


@given(st.text(max_size=60))
def test_any_text_is_an_origin_or_a_value_error(text):
    try:
        origin = normalize_origin(text)
    except ValueError:
        return
    assert normalize_origin(origin) == origin
