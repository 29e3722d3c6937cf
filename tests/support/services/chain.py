"""A token contract in memory, as the signer that x402's own facilitator works with.

The facilitator's code is the public library's, whole; only the chain behind it is not there. It refuses a second
transfer with one (from, nonce), as the contract does.
"""

from eth_account import Account
from x402.mechanisms.evm.exact.eip3009_utils import ERC20_TRANSFER_EVENT_TOPIC
from x402.mechanisms.evm.types import TransactionReceipt


class Chain:
    """`FacilitatorEvmSigner` of the library."""

    def __init__(self, contract):
        self.contract = contract
        self.transfers = []
        self.refused = 0
        self.broke = False  # whether the payer's account is empty
        self.late = False  # whether its answer to a transaction comes too late for the facilitator
        self.hidden = False  # whether the service's invoice keeps quiet about the transfers

    def get_addresses(self):
        return [Account.from_key("0x" + "77" * 32).address]

    def get_chain_id(self):
        return 84532

    def get_code(self, address):
        return b"\x60" if address.lower() == self.contract.lower() else b""

    def read_contract(self, address, abi, function_name, *args):
        assert function_name == "transferWithAuthorization"
        self._check(args)

    def write_contract(self, address, abi, function_name, *args, data_suffix=None):
        self._check(args)
        payer, to, value, *_, nonce = args[:6]
        self.transfers.append({"from": payer, "to": to, "value": value, "nonce": nonce})
        if self.late:
            raise TimeoutError("read timed out")
        return f"0x{len(self.transfers):064x}"

    def wait_for_transaction_receipt(self, tx_hash):
        moved = self.transfers[int(tx_hash, 16) - 1]
        log = {
            "address": self.contract,
            "topics": [ERC20_TRANSFER_EVENT_TOPIC, _topic(moved["from"]), _topic(moved["to"])],
            "data": f"0x{moved['value']:064x}",
        }
        return TransactionReceipt(status=1, block_number=1, tx_hash=tx_hash, logs=[log])

    def verify_typed_data(self, *_):
        raise AssertionError("a plain account's signature is verified without the chain")

    def _check(self, args):
        if any((args[0], args[5]) == (moved["from"], moved["nonce"]) for moved in self.transfers):
            self.refused += 1
            raise RuntimeError("execution reverted: authorization is used")
        if self.broke:
            raise RuntimeError("execution reverted: ERC20: transfer amount exceeds balance")


def _topic(address):
    return "0x" + address.lower().removeprefix("0x").rjust(64, "0")
