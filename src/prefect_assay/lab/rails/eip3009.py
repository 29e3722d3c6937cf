"""EIP-3009 authorisations: who signed a `TransferWithAuthorization`, found without a chain.

Only plain accounts can be checked offline; contract wallets cannot. `eth_account` is imported when first needed.
"""

import importlib
from typing import Any, Final

from prefect_assay.errors import ConfigurationError

_HALF_ORDER: Final = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
_TYPES: Final = {
    "TransferWithAuthorization": [
        {"name": "from", "type": "address"},
        {"name": "to", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "validAfter", "type": "uint256"},
        {"name": "validBefore", "type": "uint256"},
        {"name": "nonce", "type": "bytes32"},
    ]
}


def recover(
    authorization: dict[str, str], signature: str, *, name: str, version: str, chain_id: int, contract: str
) -> str | None:
    """The checksum address that signed, or None when the signature (65 bytes as 0x hex) is invalid.

    `authorization` has its six fields as well-formed strings; `name` and `version` are the token contract's EIP-712
    domain. ConfigurationError when the extra `x402` is not installed.
    """
    account, messages = _library()
    # The upper half of s is the same signature mirrored; token contracts refuse it.
    if int(signature[66:130], 16) > _HALF_ORDER:
        return None
    message = messages.encode_typed_data(
        domain_data={
            "name": name,
            "version": version,
            "chainId": chain_id,
            "verifyingContract": contract.lower(),
        },
        message_types=_TYPES,
        message_data={
            # Lower case: the encoder refuses an address whose mixed case is no checksum.
            "from": authorization["from"].lower(),
            "to": authorization["to"].lower(),
            "value": int(authorization["value"]),
            "validAfter": int(authorization["validAfter"]),
            "validBefore": int(authorization["validBefore"]),
            "nonce": bytes.fromhex(authorization["nonce"][2:]),
        },
    )
    try:
        return str(account.recover_message(message, signature=signature))
    except Exception:  # noqa: BLE001 - the library has many ways to call a signature bad, and none settles
        return None


def _library() -> tuple[Any, Any]:
    try:
        account = importlib.import_module("eth_account").Account
        return account, importlib.import_module("eth_account.messages")
    except ImportError:
        raise ConfigurationError.missing_extra("x402", "settling x402 payments in the lab") from None
