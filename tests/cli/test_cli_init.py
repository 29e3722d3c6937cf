"""`prefect-assay init`, the signing keys of a Prefect home, and what `up` refuses; blocks are kept in memory."""

import io
import shutil
import stat
import threading
from contextlib import nullcontext
from dataclasses import fields
from types import SimpleNamespace
from uuid import uuid4

import prefect.settings
import pytest
from prefect.blocks.core import Block
from prefect.client.schemas.objects import BlockDocument

from prefect_assay.blocks import (
    AssayAccount,
    AssayCredentials,
    LocalArchive,
    S3Archive,
    SpendingPolicy,
    WebhookEndpoint,
)
from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG
from prefect_assay.cli import prefect_api
from prefect_assay.cli.services import init, saved_blocks
from prefect_assay.cli.services.signing_keys import file_without, signing_keys
from prefect_assay.cli.services.up import _only_one
from prefect_assay.deployments import presets
from prefect_assay.errors import ArchiveError, ConfigurationError, InputError, Unauthorized
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.service.webhook_signature import LAB_KEY_PREFIX
from support.campaign_logs import WrittenCampaign

OPTIONS = {"per_experiment": "5000", "per_campaign": "20,000", "receiver": "none", "owner": "Mia Lab"}
NOTHING = dict.fromkeys(field.name for field in fields(init.Answers))
HOOKS = "https://hooks.example.org"


@pytest.fixture
def saved(monkeypatch, tmp_path):
    """Saved blocks by type and name; the token is on the standard input, and the home is a fresh folder."""
    blocks = {}

    def load(kind, name):
        return blocks.get((kind, name))

    def save(block, name, *, overwrite):
        assert overwrite
        block._block_document_name = name
        blocks[type(block), name] = block

    monkeypatch.setattr(Block, "save", save)
    for module in (saved_blocks, init, prefect_api):
        monkeypatch.setattr(module, "find_block", load)
    monkeypatch.setattr(init, "require_api", lambda: None)
    monkeypatch.setattr(prefect_api, "check_api_address", lambda: None)
    settings = SimpleNamespace(
        home=tmp_path / "prefect",
        api=SimpleNamespace(
            url="http://127.0.0.1:4200/api",
            ssl_cert_file=None,
            tls_insecure_skip_verify=False,
            auth_string=None,
        ),
    )
    monkeypatch.setattr("prefect.settings.get_current_settings", lambda: settings)
    monkeypatch.setattr("prefect.client.orchestration.get_client", lambda **_: nullcontext())
    monkeypatch.setattr("prefect_assay.campaigns.runs.queries.read_runs", lambda *_: [])
    monkeypatch.delenv(init.TOKEN_VARIABLE, raising=False)
    return blocks


def run(lab, tmp_path, monkeypatch, *, token=None, **changes):
    options = {"base_url": lab.base_url, "archive": str(tmp_path / "archive"), **OPTIONS, **changes}
    again(monkeypatch, token or lab.token, **options)


def again(monkeypatch, token="", **options):
    """`init` without a terminal, with these options alone."""
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{token}\n"))
    init.run_init(init.Answers(**NOTHING | {"name": "main"} | options))


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
    account = saved[AssayAccount, "main"]
    assert (account.credentials, account.policy) == (saved[AssayCredentials, "main"], policy)
    assert (account.archive, account.webhook) == (saved[LocalArchive, "main"], endpoint)
    assert (account.owner, account.purchase_order, account.cost_center) == ("Mia Lab", None, None)
    assert shown.count(": new") == 5
    assert f"Account main is simulated: {lab.base_url}" in shown
    assert shown.splitlines()[-1] == "Next: prefect-assay run designs.fasta --target NAME"
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
    assert "assay-account/main: replaced" in shown
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
        ({"base_url": "http://[::1"}, InputError, "--base-url"),
        ({"receiver": "https://hooks.example.org:99999"}, InputError, "--receiver"),
        ({"archive": "s3://b/p", "s3_endpoint": "minio:9000"}, InputError, "--s3-endpoint: 'minio:9000'"),
        ({"archive": "s3://b/p", "s3_endpoint": "http://[::1"}, InputError, "--s3-endpoint"),
        ({"archive": "s3:///p"}, InputError, "names no bucket"),
        ({"s3_endpoint": "http://127.0.0.1:9000"}, InputError, "is a folder"),
        ({"provider_word": "Acme"}, InputError, "--provider-word"),
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


MINE = {
    AssayCredentials: {"provider_word": "acme", "service_word": "Acme", "max_package_gb": 3},
    SpendingPolicy: {
        "per_experiment_usd": 500.5,
        "per_campaign_usd": 2_000,
        "rolling_usd": 3_000,
        "machine_payments": True,
        "accept_quotes": True,
        "ask_before_reordering": True,
        "approval_hours": 1.5,
    },
    S3Archive: {
        "bucket": "results",
        "prefix": "team",
        "endpoint_url": "http://127.0.0.1:9000",
        "region": "eu-central-1",
        "access_key_id": "key",
        "secret_access_key": "not for the screen",
        "session_token": "neither",
        "encryption": "AES256",
    },
}

SECRETS = ("secret_access_key", "session_token")


@pytest.fixture
def mine(lab, saved, monkeypatch):
    """Blocks whose user has set more than `init` asks for; the archive is not reached unless it is tried."""
    tried = []
    store = SimpleNamespace(probe=tried.append, find=lambda _key: None)
    monkeypatch.setattr(S3Archive, "get_store", lambda self: store)
    required = {AssayCredentials: {"base_url": lab.base_url, "token": "expired"}}
    for kind, values in MINE.items():
        saved[kind, "main"] = kind(**required.get(kind, {}), **values)
    endpoint = WebhookEndpoint(url=HOOKS, signing_key=f"{LAB_KEY_PREFIX}{'k' * 32}")
    saved[WebhookEndpoint, "main"] = endpoint
    remember(saved)
    saved["tried"] = tried
    return saved


def remember(saved, **fields):
    """The account main of the blocks that are saved."""
    for (_, name), block in list(saved.items()):
        block._block_document_name = name
    account = AssayAccount(
        credentials=saved[AssayCredentials, "main"],
        policy=saved[SpendingPolicy, "main"],
        archive=saved[S3Archive, "main"],
        webhook=saved[WebhookEndpoint, "main"],
        owner="Mia Lab",
        cost_center="4711",
        **fields,
    )
    account._block_document_id = uuid4()
    saved[AssayAccount, "main"] = account


def test_a_new_token_leaves_all_else_as_it_is_saved(lab, mine, monkeypatch, capsys):
    before = dict(mine)
    again(monkeypatch, lab.token, base_url=lab.base_url)
    credentials = mine.pop((AssayCredentials, "main"))
    account = mine.pop((AssayAccount, "main"))
    assert (account.credentials, account.owner, account.cost_center) == (credentials, "Mia Lab", "4711")
    assert credentials.token.get_secret_value() == lab.token
    assert {name: getattr(credentials, name) for name in MINE[AssayCredentials]} == MINE[AssayCredentials]
    assert mine.items() <= before.items()
    shown = capsys.readouterr().out
    assert "assay-credentials/main: replaced" in shown
    assert shown.count(": unchanged") == 3
    assert mine["tried"] == []


def test_what_is_given_changes_these_fields_alone(mine, lab, monkeypatch):
    again(
        monkeypatch,
        lab.token,
        service_word="Other",
        per_campaign="3000",
        archive="s3://results/other",
        receiver="https://other.example.org",
        owner="Noa",
        purchase_order="PO-1",
        cost_center="none",
    )
    account = mine[AssayAccount, "main"]
    assert (account.owner, account.purchase_order, account.cost_center) == ("Noa", "PO-1", None)
    policy, archive = mine[SpendingPolicy, "main"], mine[S3Archive, "main"]
    expected = MINE[SpendingPolicy] | {"per_campaign_usd": 3_000}
    assert {name: getattr(policy, name) for name in expected} == expected
    assert archive.secret_access_key.get_secret_value() == "not for the screen"
    assert archive.session_token.get_secret_value() == "neither"
    shown = {name: getattr(archive, name) for name in MINE[S3Archive] if name not in SECRETS}
    assert shown == {name: MINE[S3Archive][name] for name in shown} | {"prefix": "other"}
    assert mine["tried"] == ["other"]
    assert mine[AssayCredentials, "main"].provider_word == "acme"
    assert mine[AssayCredentials, "main"].service_word == "Other"
    assert mine[WebhookEndpoint, "main"].url == "https://other.example.org"
    again(monkeypatch, lab.token, s3_endpoint="none")
    assert (mine[S3Archive, "main"].endpoint_url, mine[S3Archive, "main"].prefix) == (None, "other")


def test_at_a_terminal_enter_keeps_what_is_saved(mine, lab, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(
        init.typer, "prompt", lambda text, default=None, **_: asked.append((text, default)) or default
    )
    saved_token = AssayCredentials(base_url=lab.base_url, token=lab.token, **MINE[AssayCredentials])
    mine[AssayCredentials, "main"] = saved_token
    tried = mine.pop("tried")
    remember(mine)
    mine["tried"] = tried
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    monkeypatch.setattr(presets, "fill_account_into_forms", lambda *_, **__: ())
    init.run_init(init.Answers(**NOTHING | {"name": "main"}))
    assert [default for _, default in asked] == [
        lab.base_url,
        "",
        "500.50",
        "2,000.00",
        HOOKS,
        "Mia Lab",
        "none",
        "4711",
    ]
    assert capsys.readouterr().out.count(": unchanged") == 5


@pytest.mark.parametrize(
    ("forms", "answer", "filled"),
    [(None, None, 0), (None, True, 1), (None, False, 0), (True, None, 1), (False, None, 0)],
)
def test_it_fills_the_forms_when_told_or_when_a_person_agrees(
    mine, lab, monkeypatch, capsys, forms, answer, filled
):
    """`answer` is the person's, or None without a terminal."""
    written, asked = [], []

    def preset(_, name, *, dry_run=False):
        written.extend([] if dry_run else [name])
        return ("campaign/assay-campaign",)

    monkeypatch.setattr(presets, "fill_account_into_forms", preset)
    monkeypatch.setattr(init.typer, "confirm", lambda text, **_: asked.append(text) or answer)
    monkeypatch.setattr(init.typer, "prompt", lambda *_, default=None, **__: default)
    stdin = io.StringIO(f"{lab.token}\n")
    stdin.isatty = lambda: answer is not None
    monkeypatch.setattr("sys.stdin", stdin)
    monkeypatch.setenv(init.TOKEN_VARIABLE, lab.token)
    init.run_init(init.Answers(**NOTHING | {"name": "main", "base_url": lab.base_url, "forms": forms}))
    assert written == ["main"] * filled
    assert len(asked) == (answer is not None)
    message = "The form of campaign/assay-campaign has the account main"
    assert capsys.readouterr().out.count(message) == filled


def test_a_saved_token_is_not_sent_to_another_service(mine, monkeypatch):
    with pytest.raises(InputError, match="no API token"):
        again(monkeypatch, base_url="http://127.0.0.1:9")


def test_a_block_with_a_name_of_its_own_keeps_it_in_the_account(mine, lab, monkeypatch, capsys):
    """A team shares its policy, and each member has an account."""
    policy = mine.pop((SpendingPolicy, "main"))
    policy._block_document_name = "team"
    mine[SpendingPolicy, "team"] = policy
    again(monkeypatch, lab.token, per_campaign="3000")
    assert mine[SpendingPolicy, "team"].per_campaign_cents == 300_000
    assert (SpendingPolicy, "main") not in mine
    assert "assay-spending-policy/team: replaced" in capsys.readouterr().out


@pytest.mark.parametrize("kind", [AssayCredentials, SpendingPolicy, WebhookEndpoint])
def test_a_new_account_replaces_no_block_of_its_name(mine, lab, tmp_path, monkeypatch, kind):
    """The accounts of others may refer to it."""
    mine["team"] = mine.pop((AssayAccount, "main"))
    for other in {AssayCredentials, SpendingPolicy, WebhookEndpoint} - {kind}:
        del mine[other, "main"]
    before = dict(mine)
    with pytest.raises(InputError, match=rf"{kind.get_block_type_slug()}/main exists.* another --name"):
        run(lab, tmp_path, monkeypatch, receiver=HOOKS)
    assert mine == before


def test_an_archive_of_the_other_kind_takes_the_place_of_one_without_orders(mine, lab, tmp_path, monkeypatch):
    again(monkeypatch, lab.token, archive=str(tmp_path / "folder"))
    assert mine[AssayAccount, "main"].archive == mine[LocalArchive, "main"]
    assert mine[LocalArchive, "main"].root == str(tmp_path / "folder")


def test_an_archive_with_orders_is_not_replaced_but_by_its_copy(lab, saved, tmp_path, monkeypatch):
    run(lab, tmp_path, monkeypatch)
    again(monkeypatch, lab.token, archive=str(tmp_path / "empty"))  # nothing was ordered in the first
    before = saved[LocalArchive, "main"]
    _ = Ledgers(before.get_store(), before.prefix, "account").archive_id
    with pytest.raises(InputError, match=r"assay-local-archive/main has a log of orders.*another --name"):
        again(monkeypatch, lab.token, archive=str(tmp_path / "other"))
    assert saved[LocalArchive, "main"] is before
    shutil.copytree(before.root, tmp_path / "moved")
    again(monkeypatch, lab.token, archive=str(tmp_path / "moved"))
    assert saved[LocalArchive, "main"].root == str(tmp_path / "moved")


def carrying(campaign_id, account):
    """A suspended run that carries a campaign of an account."""
    reference = {"$ref": {"block_document_id": str(account._block_document_id)}}
    return SimpleNamespace(
        name=campaign_id, tags=[CAMPAIGN_TAG + campaign_id], parameters={"account": reference}
    )


def test_a_folder_that_is_not_mounted_is_not_replaced_while_a_run_waits_with_it(
    lab, saved, tmp_path, monkeypatch
):
    run(lab, tmp_path, monkeypatch)
    before = saved[LocalArchive, "main"]
    account = saved[AssayAccount, "main"]
    account._block_document_id = uuid4()
    WrittenCampaign(before.get_store(), before.prefix, "egfr")
    other = carrying("other", SimpleNamespace(_block_document_id=uuid4()))
    runs = [carrying("egfr", account), other]
    monkeypatch.setattr("prefect_assay.campaigns.runs.queries.read_runs", lambda *_: runs)
    shutil.move(before.root, tmp_path / "moved")
    with pytest.raises(
        InputError, match=r"assay-local-archive/main .* runs carry: egfr\. .* mount .*another --name"
    ):
        again(monkeypatch, lab.token, archive=str(tmp_path / "new"))
    assert saved[LocalArchive, "main"] is before
    again(monkeypatch, lab.token, archive=str(tmp_path / "moved"))
    assert saved[LocalArchive, "main"].root == str(tmp_path / "moved")


def test_an_archive_that_cannot_be_read_is_replaced_by_one_with_orders_alone(mine, lab, monkeypatch):
    contents = {"results": ArchiveError("no answer"), "new": None, "moved": b'{"archive_id": "a"}'}

    class Store:
        def __init__(self, bucket):
            self.found = contents[bucket]

        def probe(self, _prefix, **_):
            pass

        def find(self, key):
            if isinstance(self.found, ArchiveError):
                raise self.found
            return self.found if key.endswith("ARCHIVE.json") else None

        def stat(self, _key):
            return None

        def keys(self, _prefix):
            return iter(())

        def location(self, key):
            return key

    monkeypatch.setattr(S3Archive, "get_store", lambda self: Store(self.bucket))
    with pytest.raises(InputError, match="cannot be read: no answer"):
        again(monkeypatch, lab.token, archive="s3://new")
    runs = [carrying("egfr", mine[AssayAccount, "main"])]
    monkeypatch.setattr("prefect_assay.campaigns.runs.queries.read_runs", lambda *_: runs)
    with pytest.raises(InputError, match="these runs carry: egfr"):
        again(monkeypatch, lab.token, archive="s3://moved")
    runs.clear()
    again(monkeypatch, lab.token, archive="s3://moved")
    assert mine[S3Archive, "main"].bucket == "moved"


def test_an_endpoint_for_a_saved_folder_is_refused(lab, saved, tmp_path, monkeypatch):
    run(lab, tmp_path, monkeypatch)
    with pytest.raises(InputError, match="--s3-endpoint belongs to"):
        again(monkeypatch, lab.token, s3_endpoint="http://127.0.0.1:9000")


def test_words_of_a_deployment_are_saved_and_the_receiver_s_named(lab, saved, tmp_path, monkeypatch, capsys):
    run(lab, tmp_path, monkeypatch, provider_word="acme", service_word="Acme", receiver=HOOKS)
    assert (saved[AssayCredentials, "main"].provider_word, saved[AssayCredentials, "main"].service_word) == (
        "acme",
        "Acme",
    )
    assert "PREFECT_ASSAY_RECEIVER_WORDS__SERVICE=Acme" in capsys.readouterr().out
    again(monkeypatch, lab.token, service_word="Service")
    assert "WORDS__SERVICE" not in capsys.readouterr().out


@pytest.mark.parametrize("is_lab", [True, False])
def test_a_signing_key_of_the_other_kind_is_not_kept(lab, saved, tmp_path, monkeypatch, is_lab):
    """The receiver does not judge the age of what is signed with a lab's key."""
    monkeypatch.setattr(init, "_is_local_lab", lambda base_url: is_lab)
    prefix = "" if is_lab else LAB_KEY_PREFIX
    run(lab, tmp_path, monkeypatch, receiver=HOOKS)
    kept = WebhookEndpoint(url=HOOKS, signing_key=f"{prefix}{'k' * 32}")
    saved[WebhookEndpoint, "main"] = kept
    saved[AssayAccount, "main"] = saved[AssayAccount, "main"].model_copy(update={"webhook": kept})
    run(lab, tmp_path, monkeypatch, receiver=HOOKS)
    keys = signing_keys(tmp_path / "prefect")
    key = saved[WebhookEndpoint, "main"].signing_key.get_secret_value()
    assert key == (keys.lab if is_lab else keys.service)


@pytest.mark.parametrize("api", ["http://127.0.0.1:4200/api", "https://prefect.example.org/api"])
def test_a_key_for_a_receiver_elsewhere_is_named(lab, saved, tmp_path, monkeypatch, capsys, api):
    prefect.settings.get_current_settings().api.url = api
    for _ in range(2):
        run(lab, tmp_path, monkeypatch, receiver=HOOKS)
    shown = capsys.readouterr().out
    assert shown.count("refuses all deliveries") == (0 if "127.0.0.1" in api else 1)


def test_a_kept_key_that_the_receiver_s_file_has_lost_is_named_with_the_mend(
    lab, saved, tmp_path, monkeypatch, capsys
):
    run(lab, tmp_path, monkeypatch, receiver=HOOKS)
    keys = signing_keys(tmp_path / "prefect")
    assert file_without(tmp_path / "prefect", keys.lab) is None
    keys.file.unlink()
    new = signing_keys(tmp_path / "prefect")
    capsys.readouterr()
    again(monkeypatch, lab.token)
    shown = capsys.readouterr().out
    assert f"{keys.file} does not hold the endpoint's signing key" in shown
    assert f">> {keys.file}" in shown
    assert not any(key in shown for key in (keys.lab, keys.service, new.lab, new.service))
    with keys.file.open("a") as file:
        file.write(f"{keys.lab}\n")
    again(monkeypatch, lab.token)
    assert "does not hold" not in capsys.readouterr().out


def test_the_keys_are_made_once_by_whoever_is_first_and_are_private(tmp_path):
    key_pairs, home = [], tmp_path / "home"
    threads = [threading.Thread(target=lambda: key_pairs.append(signing_keys(home))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({(keys.service, keys.lab) for keys in key_pairs}) == 1
    keys = key_pairs[0]
    assert keys.lab.startswith(LAB_KEY_PREFIX)
    assert not keys.service.startswith(LAB_KEY_PREFIX)
    assert stat.S_IMODE(keys.file.stat().st_mode) == 0o600
    assert [path.name for path in home.iterdir()] == [keys.file.name]
    assert keys.service not in repr(keys)
    keys.file.write_text(f"# of the service, and of local labs\n{keys.service}\n{keys.lab}\n")
    assert signing_keys(home) == keys
    keys.file.write_text(f"{keys.lab}\n")
    with pytest.raises(ConfigurationError, match="needs a line"):
        signing_keys(home)


def test_a_second_up_on_one_home_is_refused(tmp_path):
    with _only_one(tmp_path), pytest.raises(ConfigurationError, match="runs already"), _only_one(tmp_path):
        pass
    with _only_one(tmp_path):
        pass


def test_a_missing_account_or_archive_names_init(monkeypatch):
    monkeypatch.setattr(prefect_api, "find_block", lambda kind, name: None)
    monkeypatch.setattr(prefect_api, "_other_accounts", lambda: "")
    with pytest.raises(ConfigurationError, match="prefect-assay init`"):
        prefect_api.load_account("main")
    with pytest.raises(ConfigurationError, match="prefect-assay init --name other`"):
        prefect_api.load_archive("other")


def test_a_block_that_is_not_valid_is_an_error_that_names_block_and_field(monkeypatch):
    saved = SpendingPolicy(per_experiment_usd=0.01, per_campaign_usd=0.01)

    def load(kind, _name):
        document = BlockDocument.model_construct(
            name="main", data=saved.model_dump() | {"machine_payments": True}, block_schema={}
        )
        return kind._load_from_block_document(document)

    monkeypatch.setattr(Block, "load", classmethod(load))
    with pytest.raises(ConfigurationError, match=r"assay-spending-policy/main is not valid .* rolling_usd"):
        prefect_api.find_block(SpendingPolicy, "main")
