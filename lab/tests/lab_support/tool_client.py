"""Tool calls against a lab in the test's own process, and a payer for its x402 challenges."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from starlette.testclient import TestClient

from assay_lab.service.core import LabCore
from assay_lab.web.server import create_app

BASE_URL = "http://127.0.0.1:8000"


@contextmanager
def browser(core: LabCore) -> Iterator[TestClient]:
    """An HTTP client of the lab; it keeps cookies and follows no redirects."""
    with TestClient(create_app(core), base_url=BASE_URL, follow_redirects=False) as client:
        yield client


@dataclass
class Tools:
    """The tool endpoint and the REST API of one lab, side by side."""

    core: LabCore
    http: TestClient

    def post(self, method: str, params: dict[str, Any], token: str | None = None, **headers: str) -> Any:
        """One message of the protocol; the HTTP answer."""
        sent = {"Accept": "application/json, text/event-stream", **headers}
        if token != "":
            sent["Authorization"] = f"Bearer {token or self.core.seeded.member_token}"
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        sent["Content-Type"] = "application/json"
        return self.http.post("/mcp", content=json.dumps(message), headers=sent)

    def listed(self, token: str | None = None) -> dict[str, dict[str, Any]]:
        """All tools by name."""
        tools = self.post("tools/list", {}, token).json()["result"]["tools"]
        return {tool["name"]: tool for tool in tools}

    def whole(self, tool: str, arguments: dict[str, Any], token: str | None = None) -> dict[str, Any]:
        """The result of a tool call."""
        answer = self.post("tools/call", {"name": tool, "arguments": arguments}, token)
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()["result"]
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        assert result["isError"] is (result["structuredContent"]["status"] >= 400)
        return result

    def call(self, tool: str, token: str | None = None, /, **arguments: Any) -> dict[str, Any]:
        """Status, headers and body of a tool call."""
        content: dict[str, Any] = self.whole(tool, arguments, token)["structuredContent"]
        return content

    def rest(self, method: str, path: str, token: str | None = None, **request: Any) -> Any:
        """The same over HTTP."""
        headers = {"Authorization": f"Bearer {token or self.core.seeded.member_token}"}
        return self.http.request(method, f"/api/v1{path}", headers=headers, **request)


def x402_credential(challenge: dict[str, Any]) -> str:
    """What a public client's wallet answers to a challenge: the value of PAYMENT-SIGNATURE."""
    from eth_account import Account
    from eth_account.messages import encode_typed_data

    account = Account.from_key("0x" + "33" * 32)
    terms = challenge["accepts"][0]
    authorization = {
        "from": account.address,
        "to": terms["payTo"],
        "value": terms["amount"],
        "validAfter": "0",
        "validBefore": str(int(time.time()) + 120),
        "nonce": "0x" + "0c" * 32,
    }
    kinds = {"from": "address", "to": "address", "value": "uint256", "validAfter": "uint256"}
    kinds |= {"validBefore": "uint256", "nonce": "bytes32"}
    numbers = {name: int(authorization[name]) for name in ("value", "validAfter", "validBefore")}
    message = encode_typed_data(
        {
            "name": terms["extra"]["name"],
            "version": terms["extra"]["version"],
            "chainId": int(terms["network"].split(":")[1]),
            "verifyingContract": terms["asset"],
        },
        {"TransferWithAuthorization": [{"name": name, "type": kind} for name, kind in kinds.items()]},
        authorization | numbers | {"nonce": bytes.fromhex("0c" * 32)},
    )
    signature = "0x" + account.sign_message(message).signature.hex().removeprefix("0x")
    payload = {"signature": signature, "authorization": authorization}
    body = {"x402Version": 2, "resource": challenge["resource"], "accepted": terms, "payload": payload}
    return base64.b64encode(json.dumps(body).encode()).decode()
