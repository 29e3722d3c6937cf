"""The account on a real Prefect server: its nested blocks are saved, and found by its name and by a run's reference."""

import json
from itertools import product

import pytest
from prefect.client.orchestration import get_client
from prefect.testing.utilities import prefect_test_harness
from pydantic import ValidationError

from prefect_assay.blocks import AssayAccount, LocalArchive, S3Archive, SharedPaymentTokens, X402Wallet
from prefect_assay.campaigns.sweep.saved_blocks import saved_accounts, saved_archives
from prefect_assay.flows import campaign
from support.accounts import PARTS, make_account, reference
from support.runs.world import WALLET_KEY

SECRET = "assay_lab_secret"
ADDRESS = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
ARCHIVES = {
    "folder": lambda: LocalArchive(root="/nowhere"),
    "s3": lambda: S3Archive(
        bucket="results", region="eu-central-1", access_key_id="a", secret_access_key="b"
    ),
}
WALLETS = {
    "async_invoice": lambda: None,
    "x402-exact": lambda: X402Wallet(
        private_key=WALLET_KEY, networks=["eip155:84532"], assets=[ADDRESS], pay_to=[ADDRESS]
    ),
    "mpp-spt": lambda: SharedPaymentTokens(
        issuer_url="http://127.0.0.1:9/issue", issuer_key="key", network_ids=["profile_1"]
    ),
}


@pytest.fixture(scope="module")
def server():
    with prefect_test_harness(server_startup_timeout=180), get_client(sync_client=True) as client:
        yield client


@pytest.mark.parametrize("saved", [True, False], ids=["chosen", "within"])
@pytest.mark.parametrize(("archive", "rail"), list(product(ARCHIVES, WALLETS)))
def test_an_account_is_found_with_its_parts_by_name_and_by_reference(server, archive, rail, saved):
    name = f"{archive}-{rail}-{saved}".lower().replace("_", "-")
    account = make_account(
        token=SECRET, archive=ARCHIVES[archive](), wallet=WALLETS[rail](), payment_method=rail, owner="Ada"
    )
    parts = [part for part in PARTS if getattr(account, part) is not None]
    for part in parts if saved else ():
        getattr(account, part).save(f"{name}-{part}")
    account.save(name)

    document = server.read_block_document_by_name(name, "assay-account", include_secrets=False)
    assert set(document.block_document_references) == (set(parts) if saved else set())
    assert SECRET not in json.dumps(document.data, default=str)
    parameters = {
        "designs": "x",
        "assay": {"experiment_type": "thermostability"},
        "account": reference(account),
    }
    for loaded in (AssayAccount.load(name), campaign.validate_parameters(parameters)["account"]):
        assert loaded.name == name
        assert loaded.credentials.token.get_secret_value() == SECRET
        for part in parts:
            assert type(getattr(loaded, part)) is type(getattr(account, part))
            assert getattr(loaded, part).model_dump() == getattr(account, part).model_dump()


def test_an_account_finds_its_archive_whether_it_is_saved_itself_or_not(server):
    chosen, within = LocalArchive(root="/chosen"), LocalArchive(root="/within")
    chosen.save("chosen")
    for name, archive in (("of-chosen", chosen), ("of-within", within)):
        make_account(archive=archive).save(name)
    names_by_root = {
        archive.root: name for name, archive in saved_archives(server) if isinstance(archive, LocalArchive)
    }
    assert names_by_root["/chosen"] == f"{LocalArchive.get_block_type_slug()}/chosen"
    assert names_by_root["/within"] == "assay-account/of-within"
    assert {"of-chosen", "of-within"} <= {account.name for account in saved_accounts(server)}


@pytest.mark.parametrize("rail", ["x402-exact", "mpp-spt"])
def test_a_machine_rail_needs_a_wallet_of_its_kind(rail):
    other = WALLETS["mpp-spt" if rail == "x402-exact" else "x402-exact"]()
    for wallet in (None, other):
        with pytest.raises(ValidationError, match="needs a wallet of its kind"):
            make_account(payment_method=rail, wallet=wallet)
