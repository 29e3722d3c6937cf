"""What a wallet holds, by a node of its network: its address may hold a key, and its answers may be absurd."""

import httpx
import pytest
from pydantic import SecretStr

from prefect_assay.errors import ServiceUnavailable
from prefect_assay.orders.payments.rails import x402_balance as balance
from support.runs.world import WALLET_KEY

URL = "https://node.example/v3/canary-key?also=canary"
ASSET = "eip155:84532/erc20:0x" + "a" * 40


@pytest.fixture
def node(monkeypatch):
    """A node that answers each method in turn."""
    answers = {"eth_chainId": "0x14a34", balance._BALANCE_OF: hex(5_250_000), balance._DECIMALS: "0x6"}

    def answer(request):
        call = request.read().decode()
        return httpx.Response(200, json={"result": next(v for name, v in answers.items() if name in call)})

    made = httpx.Client(transport=httpx.MockTransport(answer))
    monkeypatch.setattr(balance.httpx, "Client", lambda **_: made)
    return answers


def holds():
    return balance.balance_cents(SecretStr(URL), SecretStr(WALLET_KEY), [ASSET])


def test_the_key_in_the_nodes_address_stays_out_of_the_log(node, caplog):
    caplog.set_level("INFO", "httpx")
    assert holds() == 525
    assert "POST https://node.example/ " in caplog.text
    assert "canary" not in caplog.text


def test_an_absurd_number_of_decimals_is_an_answer_that_says_nothing(node):
    node[balance._DECIMALS] = "0x" + "f" * 64
    with pytest.raises(ServiceUnavailable):
        holds()
