"""What x402 publishes, written from its description alone: test addresses, header values and who signed."""

import base64
import json

from eth_account import Account
from eth_account.messages import encode_typed_data

USDC = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
NETWORK = "eip155:84532"
RECEIVER = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"
# A key that stands for a secret: no test may find it, or any signature, where it does not belong.
CANARY_KEY = "0x" + "c0ffee" * 10 + "1234"
CANARY_ADDRESS = Account.from_key(CANARY_KEY).address

AUTHORIZATION = [
    {"name": "from", "type": "address"},
    {"name": "to", "type": "address"},
    {"name": "value", "type": "uint256"},
    {"name": "validAfter", "type": "uint256"},
    {"name": "validBefore", "type": "uint256"},
    {"name": "nonce", "type": "bytes32"},
]


def encode(content) -> str:
    return base64.b64encode(json.dumps(content).encode()).decode()


def decode(value):
    return json.loads(base64.b64decode(value))


def recover(authorization: dict, signature: str, accepted: dict) -> str:
    signable = encode_typed_data(
        domain_data={
            "name": accepted["extra"]["name"],
            "version": accepted["extra"]["version"],
            "chainId": int(accepted["network"].split(":")[1]),
            "verifyingContract": accepted["asset"],
        },
        message_types={"TransferWithAuthorization": AUTHORIZATION},
        message_data={
            **authorization,
            **{name: int(authorization[name]) for name in ("value", "validAfter", "validBefore")},
        },
    )
    return Account.recover_message(signable, signature=signature).lower()
