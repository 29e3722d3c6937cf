"""Changes and saves an account and the blocks in it; makes those for a lab.

A block holds more than a command asks for, and its user may have set the rest in the Prefect UI.
"""

from typing import TYPE_CHECKING, TypeVar

from prefect.blocks.core import Block

from prefect_assay.cli.asking import user_name
from prefect_assay.cli.prefect_api import api_errors, find_block
from prefect_assay.service.models.vocabulary import PaymentMethod

if TYPE_CHECKING:
    from prefect_assay.blocks import AssayAccount, LocalArchive, Wallet, WebhookEndpoint, X402Wallet

B = TypeVar("B", bound=Block)


def change_block(kind: type[B], saved: B | None, **changes: object) -> B:
    """The saved block with these fields in place of its own, under its name; a new one without it."""
    fields = {name: getattr(saved, name) for name in kind.model_fields} if saved else {}
    block = kind(**{**fields, **changes})
    if saved is not None:
        block._block_document_name = saved._block_document_name  # noqa: SLF001 - Prefect has no public name for it
    return block


def save_block(block: B, name: str) -> tuple[B, str]:
    """Save a block under this name; the saved one, and whether it is `new`, `replaced` or `unchanged`."""
    before = find_block(type(block), name)
    if before is not None and _list_comparable_fields(before) == _list_comparable_fields(block):
        return before, "unchanged"
    block.save(name, overwrite=True)
    return block, "new" if before is None else "replaced"


def save_account(account: "AssayAccount", name: str) -> list[str]:
    """Save the blocks of an account, and the account that refers to them; a line for each.

    A block that has a name of its own, such as an archive that a team shares, keeps it.
    """
    lines, nested = [], {}
    with api_errors():
        for field, block in ((field, getattr(account, field)) for field in type(account).model_fields):
            if isinstance(block, Block):
                own_name = block._block_document_name or name  # noqa: SLF001 - Prefect has no public name for it
                nested[field], change = save_block(block, own_name)
                lines.append(f"{format_reference(block, own_name)}: {change}")
        _, change = save_block(change_block(type(account), account, **nested), name)
    return [*lines, f"{format_reference(account, name)}: {change}"]


def format_reference(block: Block, name: str) -> str:
    """`<slug>/<name>`, as Prefect's commands and `--archive` take it."""
    return f"{type(block).get_block_type_slug()}/{name}"


def make_lab_account(
    base_url: str,
    token: str,
    *,
    archive: "LocalArchive",
    webhook: "WebhookEndpoint",
    wallet: "Wallet | None",
    cap_cents: int,
) -> "AssayAccount":
    """An account at a lab, not saved: one amount is each cap, and the wallet pays, if there is one."""
    from pydantic import SecretStr

    from prefect_assay.blocks import AssayAccount, AssayCredentials, SpendingPolicy

    return AssayAccount(
        credentials=AssayCredentials(base_url=base_url, token=SecretStr(token)),
        policy=SpendingPolicy(
            per_experiment_usd=cap_cents / 100,
            per_campaign_usd=cap_cents / 100,
            rolling_usd=cap_cents / 100,
            machine_payments=True,
        ),
        archive=archive,
        webhook=webhook,
        wallet=wallet,
        payment_method=wallet.rail if wallet else PaymentMethod.ASYNC_INVOICE,
        owner=user_name(),
    )


def new_lab_wallet() -> "X402Wallet":
    """A wallet with a fresh key that a lab takes; ImportError without the extra."""
    from eth_account import Account
    from pydantic import SecretStr

    from assay_lab.rails.x402 import X402Settings
    from prefect_assay.blocks import X402Wallet

    offer, key = X402Settings(), SecretStr(Account.create().key.hex())
    return X402Wallet(private_key=key, networks=[offer.network], assets=[offer.asset], pay_to=[offer.pay_to])


def _list_comparable_fields(block: Block) -> dict[str, object]:
    """The fields of a block and of its nested blocks, without ids and names, for comparison; equal secrets are equal."""
    values = ((name, getattr(block, name)) for name in type(block).model_fields)
    return {
        name: (type(value), _list_comparable_fields(value)) if isinstance(value, Block) else value
        for name, value in values
    }
