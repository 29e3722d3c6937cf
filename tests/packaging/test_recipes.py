"""The recipes of docs/developing.md: a rail and an archive kind in the places that they name, and in no others."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prefect_assay import blocks
from prefect_assay.blocks.wallets import WALLETS
from prefect_assay.errors import ConfigurationError
from prefect_assay.orders.payments import can_pay_again, get_rail_kind, name_rail, rails
from prefect_assay.orders.payments.rails import RAILS
from prefect_assay.orders.payments.terms import Terms
from prefect_assay.service.models.vocabulary import MACHINE_RAILS
from prefect_assay.tasks.pay import require_rail
from support.accounts import make_account

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support" / "recipes"
TOP = ("blocks", "deployments", "flows", "tasks")

WALLET = """
class VoucherBook(PaymentWallet):
    rail = PaymentMethod.VOUCHER
    _block_type_name = "Assay Voucher Ledger"
    code: str
    shops: list[str]

    def get_rail(self):
        from prefect_assay.orders.payments.rails.voucher import VoucherRail

        return VoucherRail(self.code, tuple(self.shops))

    def get_identity(self):
        return "ledger"

    def get_payees(self):
        return tuple(self.shops)


"""
ARCHIVE = """
_SHELVES = {}


class MemoryArchive(ArchiveBlock):
    scheme = "memory://"
    address_form = "memory://shelf/prefix"
    _block_type_name = "Assay Memory Archive"
    shelf: str
    prefix: _Prefix = ""

    @classmethod
    def parse_address(cls, address):
        shelf, _, prefix = address.removeprefix(cls.scheme).partition("/")
        return {"shelf": shelf, "prefix": prefix}

    def get_store(self):
        from support.archive.memory_store import MemoryStore

        return _SHELVES.setdefault(self.shelf, MemoryStore())

    def require_present(self):
        if self.shelf not in _SHELVES:
            raise ArchiveUnavailable(f"there is no shelf {self.shelf}")


"""
# What the recipes change: file, the text before which the addition goes, the addition.
ADDED = (
    ("service/models/vocabulary.py", '    ASYNC_INVOICE = "async_invoice"\n', '    VOUCHER = "voucher"\n'),
    (
        "orders/payments/rails/__init__.py",
        "from prefect_assay.orders.payments.rails.x402",
        "from prefect_assay.orders.payments.rails.voucher import VoucherRail\n",
    ),
    ("blocks/wallets.py", "# Where a wallet is registered", WALLET),
    ("blocks/archives.py", "# Where an archive kind is registered", ARCHIVE),
)
REGISTERED = (
    ("orders/payments/rails/__init__.py", "type[Rail], ...]] = (", "type[Rail], ...]] = (VoucherRail, "),
    ("blocks/wallets.py", "\nWallet = ", "\nWallet = VoucherBook | "),
    ("blocks/archives.py", "\nArchive = ", "\nArchive = MemoryArchive | "),
)


def change(package, name, old, new):
    path = package / name
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{name}: {old!r}"
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def package(tmp_path):
    """A copy of the package with the third kinds."""
    copy = tmp_path / "prefect_assay"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "prefect_assay", copy, ignore=ignore)
    for name in TOP:
        shutil.copytree(ROOT / name, copy / name, ignore=ignore)
    shutil.copy(SUPPORT / "voucher.py", copy / "orders" / "payments" / "rails" / "voucher.py")
    for name, before, addition in ADDED:
        change(copy, name, before, addition + before)
    for name, old, new in REGISTERED:
        change(copy, name, old, new)
    return copy


def test_a_third_rail_and_a_third_archive_kind_go_their_own_way(package):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(package.parent), str(ROOT / "tests")])}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--noconftest",
    ]
    played = subprocess.run(
        [*command, "-c", os.devnull, "--rootdir", str(package.parent), str(SUPPORT / "play_third_kinds.py")],
        env=environment,
        cwd=package.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert played.returncode == 0, played.stdout + played.stderr


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


# Where a single rail or archive kind may be named: its own places, and what is about a lab, which pays in one way.
RAIL_MODULES = {kind.__module__ for kind in RAILS}
TERMS = {kind for kind in Terms.__subclasses__() if kind.__module__ in RAIL_MODULES}
NAMES = {method.name for method in MACHINE_RAILS} | {kind.__name__ for kind in (*RAILS, *WALLETS, *TERMS)}
PLACES = {f"src/{module.replace('.', '/')}.py" for module in RAIL_MODULES} | {
    "src/prefect_assay/service/models/vocabulary.py",
    "src/prefect_assay/orders/payments/rails/__init__.py",
    "src/prefect_assay/cli/services/lab.py",
    "src/prefect_assay/cli/services/saved_blocks.py",
    "blocks/__init__.py",
    "blocks/wallets.py",
}


def test_no_other_module_names_a_rail():
    naming = set()
    for folder in ("src/prefect_assay", *TOP):
        for file in (ROOT / folder).rglob("*.py"):
            names = {
                getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "name", None)
                for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            }
            if names & NAMES:
                naming.add(file.relative_to(ROOT).as_posix())
    assert naming == PLACES
