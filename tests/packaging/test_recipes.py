"""The recipes of docs/developing.md: a rail and an archive kind in the places that they name, and in no others."""

import ast
from pathlib import Path

import pytest

from prefect_assay import blocks
from prefect_assay.blocks.archives import ARCHIVES, get_archive_kind
from prefect_assay.blocks.wallets import WALLETS
from prefect_assay.errors import ConfigurationError, InputError
from prefect_assay.orders.payments import rails
from prefect_assay.orders.payments.rails import RAILS, can_pay_again, get_rail_kind, name_rail
from prefect_assay.orders.payments.terms import Terms
from prefect_assay.service.models.vocabulary import MACHINE_RAILS
from prefect_assay.tasks.pay import require_rail
from support.accounts import make_account

ROOT = Path(__file__).parents[2]
TOP = ("blocks", "deployments", "flows", "tasks")


@pytest.mark.parametrize("method", sorted(MACHINE_RAILS))
def test_every_machine_rail_is_registered_with_a_wallet_block_of_its_own(method):
    kind = get_rail_kind(method)
    (wallet,) = [wallet for wallet in WALLETS if wallet.rail is method]
    assert (kind.wallet_block, getattr(blocks, wallet.__name__)) == (wallet.__name__, wallet)
    assert name_rail(method) == f"{kind.title} ({method})"


@pytest.mark.parametrize("method", sorted(MACHINE_RAILS))
def test_a_rail_that_is_not_registered_is_refused_before_money(monkeypatch, method):
    monkeypatch.setattr(rails, "RAILS", tuple(kind for kind in RAILS if kind.method is not method))
    policy = make_account(policy={"machine_payments": True, "rolling_usd": 0.01}).policy
    with pytest.raises(ConfigurationError, match=f"{method} is not a machine rail of this installation"):
        require_rail(method, policy, None)
    assert not can_pay_again(method)
    assert name_rail(method) == method


def test_an_address_of_no_archive_kind_is_refused_with_those_that_there_are():
    for kind in ARCHIVES:
        assert get_archive_kind(kind.address_form) is kind
    with pytest.raises(InputError, match=r"there is no kind of archive for 'gs://bucket'") as caught:
        get_archive_kind("gs://bucket")
    assert all(kind.address_form in str(caught.value) for kind in ARCHIVES)


# Where a single rail or archive kind may be named: its own places, and what is about a lab or the demo, which have one of each.
RAIL_MODULES = {kind.__module__ for kind in RAILS}
TERMS = {kind for kind in Terms.__subclasses__() if kind.__module__ in RAIL_MODULES}
RAIL_NAMES = {text for method in MACHINE_RAILS for text in (method.name, method.value)} | {
    kind.__name__ for kind in (*RAILS, *WALLETS, *TERMS)
}
RAIL_PLACES = {f"src/{module.replace('.', '/')}.py" for module in RAIL_MODULES} | {
    "src/prefect_assay/service/models/vocabulary.py",
    "src/prefect_assay/orders/payments/rails/__init__.py",
    "src/prefect_assay/cli/services/lab.py",
    "src/prefect_assay/cli/services/saved_blocks.py",
    "blocks/__init__.py",
    "blocks/wallets.py",
}
ARCHIVE_PLACES = {
    "src/prefect_assay/cli/campaigns/find.py",  # a folder of this machine
    "src/prefect_assay/cli/demo/campaign.py",
    "src/prefect_assay/cli/demo/story.py",
    "src/prefect_assay/cli/services/lab.py",
    "src/prefect_assay/cli/services/saved_blocks.py",
    "blocks/__init__.py",
    "blocks/archives.py",
}


def names_in(file):
    """Every name, attribute and word of a module, as its code has them."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    return {
        getattr(node, field)
        for node in nodes
        for field in ("id", "attr", "name", "value")
        if hasattr(node, field)
    }


@pytest.mark.parametrize(
    ("names", "places"),
    [(RAIL_NAMES, RAIL_PLACES), ({kind.__name__ for kind in ARCHIVES}, ARCHIVE_PLACES)],
    ids=["rail", "archive kind"],
)
def test_no_other_module_names_a_rail_or_an_archive_kind(names, places):
    files = [file for folder in ("src/prefect_assay", *TOP) for file in (ROOT / folder).rglob("*.py")]
    assert {file.relative_to(ROOT).as_posix() for file in files if names_in(file) & names} == places
