"""`prefect-assay init`, the signing keys of a Prefect home, and what `up` refuses; blocks are kept in memory."""

import io
import stat
import threading
from types import SimpleNamespace

import pytest
from prefect.blocks.core import Block

from prefect_assay.blocks import (
    AssayCredentials,
    LocalArchive,
    S3Archive,
    SharedPaymentTokens,
    SpendingPolicy,
    WebhookEndpoint,
    X402Wallet,
)
from prefect_assay.cli import prefect_api
from prefect_assay.cli.services import init
from prefect_assay.cli.services.signing_keys import signing_keys
from prefect_assay.cli.services.up import _only_one
from prefect_assay.errors import ConfigurationError, InputError, Unauthorized
from prefect_assay.webhooks.signature import LAB_KEY_PREFIX

OPTIONS = {"per_experiment": "5000", "per_campaign": "20,000", "s3_endpoint": None, "receiver": "none"}


@pytest.fixture
def saved(monkeypatch, tmp_path):
    """Saved blocks by type and name; the token is on the standard input, and the home is a fresh folder."""
    blocks = {}

    def load(kind, name):
        return blocks.get((kind, name))

    def save(block, name, *, overwrite):
        assert overwrite
        blocks[type(block), name] = block

    monkeypatch.setattr(Block, "save", save)
    monkeypatch.setattr(init, "find_block", load)
    monkeypatch.setattr(init, "require_api", lambda: None)
    home = SimpleNamespace(home=tmp_path / "prefect")
    monkeypatch.setattr("prefect.settings.get_current_settings", lambda: home)
    monkeypatch.delenv(init.TOKEN_VARIABLE, raising=False)
    return blocks


def run(lab, tmp_path, monkeypatch, *, token=None, **changes):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{token or lab.token}\n"))
    given = {
        "name": "main",
        "base_url": lab.base_url,
        "archive": str(tmp_path / "archive"),
        **OPTIONS,
        **changes,
    }
    init.run_init(init.Answers(**given))


def test_it_saves_what_it_has_tried(lab, saved, tmp_path, monkeypatch, capsys):
    run(lab, tmp_path, monkeypatch, receiver="https://hooks.example.org/assay/")
    assert saved[AssayCredentials, "main"].token.get_secret_value() == lab.token
    policy = saved[SpendingPolicy, "main"]
    assert (policy.per_experiment_cents, policy.per_campaign_cents) == (500_000, 2_000_000)
    assert not policy.machine_payments
    assert saved[LocalArchive, "main"].root == str(tmp_path / "archive")
    endpoint = saved[WebhookEndpoint, "main"]
    assert endpoint.url == "https://hooks.example.org/assay"
    assert endpoint.signing_key.get_secret_value().startswith(LAB_KEY_PREFIX), "the service is a local lab"
    shown = capsys.readouterr().out
    assert shown.count(": new") == 4
    assert "prefect-assay run designs.fasta --target NAME --webhook main" in shown
    assert lab.token not in shown
    assert endpoint.signing_key.get_secret_value() not in shown


def test_again_it_changes_what_has_changed_and_keeps_the_signing_key(
    lab, saved, tmp_path, monkeypatch, capsys
):
    for number, cap in enumerate(("5000", "6000.50")):
        run(lab, tmp_path, monkeypatch, per_experiment=cap, receiver="https://hooks.example.org")
        if not number:
            key = saved[WebhookEndpoint, "main"].signing_key
            capsys.readouterr()
            (tmp_path / "prefect" / "assay-signing-keys").unlink()
    shown = capsys.readouterr().out
    assert "assay-spending-policy/main: replaced" in shown
    assert shown.count(": unchanged") == 3
    assert saved[WebhookEndpoint, "main"].signing_key == key


@pytest.mark.parametrize(
    ("changes", "kind", "place"),
    [
        ({"base_url": None}, InputError, "--base-url is missing"),
        ({"base_url": "lab.example.org"}, InputError, "--base-url"),
        ({"per_experiment": "many"}, InputError, "--per-experiment: 'many'"),
        ({"per_campaign": "1.234"}, InputError, "--per-campaign"),
        ({"per_campaign": "-5"}, InputError, "--per-campaign"),
        ({"per_campaign": "nan"}, InputError, "--per-campaign"),
        ({"receiver": "hooks"}, InputError, "--receiver"),
        ({"token": "assay_labwrong"}, Unauthorized, "401"),
        ({"token": " "}, InputError, "PREFECT_ASSAY_TOKEN"),
    ],
)
def test_bad_answers_name_the_option_and_save_nothing(
    lab, saved, tmp_path, monkeypatch, changes, kind, place
):
    with pytest.raises(kind) as caught:
        run(lab, tmp_path, monkeypatch, **changes)
    assert place in str(caught.value)
    assert saved == {}


def test_a_bucket_is_probed_before_it_is_saved(lab, saved, tmp_path, monkeypatch):
    probed = []
    store = SimpleNamespace(probe=probed.append)
    monkeypatch.setattr(S3Archive, "get_store", lambda self: store)
    run(lab, tmp_path, monkeypatch, archive="s3://results/team/one", s3_endpoint="http://127.0.0.1:9000")
    archive = saved[S3Archive, "main"]
    assert (archive.bucket, archive.prefix, archive.endpoint_url) == (
        "results",
        "team/one",
        "http://127.0.0.1:9000",
    )
    assert probed == ["team/one"]


def test_the_keys_are_made_once_by_whoever_is_first_and_are_private(tmp_path):
    found, home = [], tmp_path / "home"
    threads = [threading.Thread(target=lambda: found.append(signing_keys(home))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({(keys.service, keys.lab) for keys in found}) == 1
    keys = found[0]
    assert keys.lab.startswith(LAB_KEY_PREFIX)
    assert not keys.service.startswith(LAB_KEY_PREFIX)
    assert stat.S_IMODE(keys.file.stat().st_mode) == 0o600
    assert [path.name for path in home.iterdir()] == [keys.file.name]
    assert keys.service not in repr(keys)
    keys.file.write_text(f"{keys.lab}\n")
    with pytest.raises(ConfigurationError, match="needs a line"):
        signing_keys(home)


def test_a_second_up_on_one_home_is_refused(tmp_path):
    with _only_one(tmp_path), pytest.raises(ConfigurationError, match="runs already"), _only_one(tmp_path):
        pass
    with _only_one(tmp_path):
        pass


def test_a_missing_block_names_init_where_init_makes_it(monkeypatch):
    monkeypatch.setattr(prefect_api, "find_block", lambda kind, name: None)
    with pytest.raises(ConfigurationError, match="prefect-assay init`"):
        prefect_api.load_block(SpendingPolicy, "main")
    with pytest.raises(ConfigurationError, match="prefect-assay init --name other`"):
        prefect_api.load_archive("other")
    for wallet in (X402Wallet, SharedPaymentTokens):
        with pytest.raises(ConfigurationError) as caught:
            prefect_api.load_block(wallet, "main")
        assert "init" not in str(caught.value)
