"""Refusals name settings by the fields of the blocks, because blocks are what a user can change."""

import ast
import re
from pathlib import Path

import pytest

import prefect_assay
from prefect_assay import blocks, flows, tasks
from prefect_assay.blocks import (
    AssayCredentials,
    LocalArchive,
    S3Archive,
    SharedPaymentTokens,
    SpendingPolicy,
    WebhookEndpoint,
    X402Wallet,
)
from prefect_assay.orders.payments.guard import PaymentPolicy

BLOCKS = {
    block.__name__: block
    for block in (
        AssayCredentials,
        LocalArchive,
        S3Archive,
        SharedPaymentTokens,
        SpendingPolicy,
        WebhookEndpoint,
        X402Wallet,
    )
}
NAMED = re.compile(r"(\w+) of the (\w+) block")
# Settings of the library's own policy that no block has: a user of the flows cannot find them.
INTERNAL = PaymentPolicy.model_fields.keys() - {
    name for block in BLOCKS.values() for name in block.model_fields
}


def folders():
    package = Path(prefect_assay.__file__).parent
    below = [package / name for name in ("orders", "analysis", "campaigns")]
    return [*below, *(Path(part.__file__).parent for part in (blocks, flows, tasks))]


def texts(tree):
    """The text constants of a module that hold more than a name, without its docstrings."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in docstrings else None
        if isinstance(text, str) and not text.isidentifier():
            yield text


MESSAGES = [
    text
    for folder in folders()
    for file in sorted(folder.rglob("*.py"))
    for text in texts(ast.parse(file.read_text(encoding="utf-8")))
]
MENTIONS = sorted({mention for text in MESSAGES for mention in NAMED.findall(text)})


@pytest.mark.parametrize(("field", "block"), MENTIONS)
def test_a_setting_in_a_message_is_a_field_of_its_block(field, block):
    assert field in BLOCKS[block].model_fields


def test_the_refusals_name_their_settings():
    assert {
        ("base_url", "AssayCredentials"),
        ("machine_payments", "SpendingPolicy"),
        ("network_ids", "SharedPaymentTokens"),
        ("per_experiment_usd", "SpendingPolicy"),
        ("rolling_usd", "SpendingPolicy"),
        ("assets", "X402Wallet"),
        ("networks", "X402Wallet"),
        ("pay_to", "X402Wallet"),
    } <= set(MENTIONS)


@pytest.mark.parametrize("name", sorted(INTERNAL - {"enabled"}))
def test_no_message_names_a_setting_that_no_block_has(name):
    assert not [text for text in MESSAGES if re.search(rf"\b{name}\b", text)]


def test_no_message_tells_a_user_to_set_enabled():
    assert not [text for text in MESSAGES if "enabled=" in text]
