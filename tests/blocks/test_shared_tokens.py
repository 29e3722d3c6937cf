"""The block that names a user's issuer of payment tokens: what it asks, and what it never shows."""

import traceback

import pytest
from pydantic import SecretStr

from prefect_assay.blocks import SharedPaymentTokens, SpendingPolicy, X402Wallet
from prefect_assay.errors import ConfigurationError, PaymentRefused, PaymentsDisabled
from prefect_assay.orders.payments.rails.mpp import TokenLimits
from prefect_assay.service.models.vocabulary import PaymentMethod
from prefect_assay.tasks.pay import require_rail
from support.services.issuer import ISSUER_KEY, issuer_server

LIMITS = TokenLimits(currency="usd", max_amount=5000, expires_at=1_800_000_000, network_id="profile_1")
POLICY = SpendingPolicy(
    per_experiment_usd=0.01, per_campaign_usd=0.01, rolling_usd=0.01, machine_payments=True
)


@pytest.fixture(scope="module")
def server():
    with issuer_server() as running:
        yield running


@pytest.fixture
def issuer(server):
    server.asked.clear()
    server.broken = ""
    return server


def test_the_issuer_is_asked_once_with_the_limits(issuer):
    issue = SharedPaymentTokens(
        issuer_url=issuer.url, issuer_key=ISSUER_KEY, network_ids=["profile_1"]
    ).get_issuer()
    token = issue(LIMITS)
    assert isinstance(token, SecretStr)
    assert token.get_secret_value().startswith("spt_issued_")
    assert issuer.asked == [
        {"currency": "usd", "max_amount": 5000, "expires_at": 1_800_000_000, "network_id": "profile_1"}
    ]
    assert ISSUER_KEY not in repr(issue) + repr(vars(issue))


@pytest.mark.parametrize(
    ("broken", "match"),
    [
        ("status", "it answered 503"),
        ("redirect", "it answered 307"),
        ("text", "its answer is not"),
        ("shape", "its answer is not"),
        ("list", "its answer is not"),
        ("empty", "its answer is not"),
        ("endless", "its answer is larger than 65,536 bytes"),
        ("packed", "its answer is larger than 65,536 bytes"),
    ],
)
def test_an_issuer_that_gives_no_token_is_named_without_its_words(issuer, broken, match):
    issuer.broken = broken
    with pytest.raises(PaymentRefused, match=match) as caught:
        SharedPaymentTokens(
            issuer_url=issuer.url, issuer_key=ISSUER_KEY, network_ids=["profile_1"]
        ).get_issuer()(LIMITS)
    assert "canary" not in "".join(traceback.format_exception(caught.value))
    assert len(issuer.asked) == 1


def test_what_permits_an_address_stays_out_of_the_log_of_httpx(issuer, caplog):
    caplog.set_level("INFO", "httpx")
    SharedPaymentTokens(
        issuer_url=f"{issuer.url}?code=permission", issuer_key=ISSUER_KEY, network_ids=["profile_1"]
    ).get_issuer()(LIMITS)
    assert f"POST {issuer.url} " in caplog.text
    assert "permission" not in caplog.text


def test_a_wrong_key_and_an_issuer_that_is_away_are_named(issuer):
    with pytest.raises(PaymentRefused, match="it answered 401"):
        SharedPaymentTokens(
            issuer_url=issuer.url, issuer_key="wrong", network_ids=["profile_1"]
        ).get_issuer()(LIMITS)
    with pytest.raises(PaymentRefused, match=r"no answer \(ConnectError\)"):
        SharedPaymentTokens(
            issuer_url="http://127.0.0.1:1", issuer_key=ISSUER_KEY, network_ids=["profile_1"]
        ).get_issuer()(LIMITS)


@pytest.mark.parametrize(
    "url",
    ["http://issuer.example", "https://me:pw@issuer.example", "issuer.example", "https://a/#b", "ftp://a"],
)
def test_an_address_that_would_show_the_key_is_refused(url):
    with pytest.raises(ConfigurationError, match="issuer_url"):
        SharedPaymentTokens(issuer_url=url, issuer_key=ISSUER_KEY, network_ids=["profile_1"]).get_issuer()


@pytest.mark.parametrize("key", ["", "a b", "a\nb"])
def test_a_key_that_cannot_stand_in_a_header_is_refused_and_not_shown(key):
    with pytest.raises(ConfigurationError, match="issuer_key") as caught:
        SharedPaymentTokens(
            issuer_url="https://issuer.example", issuer_key=key, network_ids=["profile_1"]
        ).get_issuer()
    assert caught.value.__cause__ is None


def test_the_wallet_must_be_the_rails_own():
    tokens = SharedPaymentTokens(
        issuer_url="https://issuer.example", issuer_key=ISSUER_KEY, network_ids=["profile_1"]
    )
    purse = X402Wallet(private_key="0x" + "11" * 32, networks=[], assets=[], pay_to=[])
    require_rail(PaymentMethod.MPP_SPT, POLICY, tokens)
    require_rail(PaymentMethod.X402_EXACT, POLICY, purse)
    require_rail(PaymentMethod.ASYNC_INVOICE, POLICY, None)
    for wallet in (purse, None):
        with pytest.raises(PaymentsDisabled, match="SharedPaymentTokens block"):
            require_rail(PaymentMethod.MPP_SPT, POLICY, wallet)
    with pytest.raises(PaymentsDisabled, match="X402Wallet block"):
        require_rail(PaymentMethod.X402_EXACT, POLICY, tokens)


def test_a_wallet_whose_assets_could_be_on_several_networks_orders_nothing():
    def purse(*assets, networks=("eip155:8453", "eip155:84532")):
        return X402Wallet(private_key="0x" + "11" * 32, networks=networks, assets=assets, pay_to=[])

    with pytest.raises(ConfigurationError, match=r"0xabc\. Write each as eip155:8453/erc20:0x"):
        require_rail(PaymentMethod.X402_EXACT, POLICY, purse("eip155:8453/erc20:0xdef", "0xabc"))
    require_rail(PaymentMethod.X402_EXACT, POLICY, purse("eip155:8453/erc20:0xdef"))
    require_rail(PaymentMethod.X402_EXACT, POLICY, purse("0xabc", networks=["eip155:8453"]))
