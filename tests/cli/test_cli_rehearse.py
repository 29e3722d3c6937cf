"""`prefect-assay rehearse` with a saved account, against the lab: its table, its JSON, its exit codes and its bundle."""

import contextlib
import json
import zipfile

import pytest

from prefect_assay.blocks import AssayAccount, AssayCredentials, LocalArchive, SpendingPolicy
from prefect_assay.cli.rehearse import run_rehearsal
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.errors import ConfigurationError, InputError
from prefect_assay.service.models.spec import Assay

pytestmark = pytest.mark.timeout(300)
DESIGN = "MKTAYIAKQRQISFVKSHFSRQ"


@pytest.fixture(scope="module")
def saved(lab, tmp_path_factory):
    from prefect.testing.utilities import prefect_test_harness  # imports Prefect's server: not at collection

    with prefect_test_harness(server_startup_timeout=180):
        for name, token in (("main", lab.token), ("stranger", "token_of_a_stranger")):
            AssayAccount(
                credentials=AssayCredentials(base_url=lab.base_url, token=token),
                policy=SpendingPolicy(per_experiment_usd=5_000, per_campaign_usd=20_000),
                archive=LocalArchive(root=str(tmp_path_factory.mktemp("archive"))),
            ).save(name)
        yield


@pytest.fixture
def designs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "designs.fasta"
    path.write_text(f">lovelace\n{DESIGN}\n")
    return str(path)


def run(account, designs, bundle=None, *, as_json=False):
    run_rehearsal(account, designs, Assay(), ReadingOptions(), bundle, as_json=as_json)


def test_a_ready_account_ends_with_0_and_leaves_a_bundle_here(saved, lab, designs, tmp_path, capsys):
    run("main", designs)
    shown = capsys.readouterr().out
    assert f"account main (simulated), {lab.base_url}, organization Local lab" in shown
    assert "PROBLEM" not in shown
    assert "GET /experiments (contract 4.2)" in shown
    assert "Nothing was ordered" in shown
    (bundle,) = tmp_path.glob("rehearsal-*.zip")
    assert bundle.name in shown
    assert sorted(zipfile.ZipFile(bundle).namelist()) == ["README.txt", "interface.json", "report.json"]
    assert DESIGN not in shown


def test_a_problem_ends_with_1_and_says_what_to_do(saved, designs, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        run("stranger", designs, tmp_path / "mine.zip", as_json=True)
    assert end.value.code == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["ready"], told["account"]["account_name"]) == (False, "stranger")
    assert {step["name"]: step["problem"] for step in told["steps"]}["targets"] == "Unauthorized"
    assert all(step["next_step"] for step in told["steps"] if not step["ok"])
    assert told["bundle"] == str(tmp_path / "mine.zip")
    assert zipfile.is_zipfile(tmp_path / "mine.zip")


@pytest.mark.parametrize(
    ("account", "verdict"), [("main", "Ready: a campaign can order here."), ("stranger", "Not ready: ")]
)
def test_the_end_says_whether_it_is_ready(saved, designs, tmp_path, capsys, account, verdict):
    with contextlib.suppress(SystemExit):
        run(account, designs, tmp_path / "mine.zip")
    assert f"\n{verdict}" in capsys.readouterr().out


def test_a_file_is_never_written_over(saved, lab, designs, tmp_path):
    (tmp_path / "mine.zip").write_text("mine")
    start = len(lab.journal())
    with pytest.raises(InputError, match=r"mine\.zip exists"):
        run("main", designs, tmp_path / "mine.zip")
    assert (tmp_path / "mine.zip").read_text() == "mine"
    assert len(lab.journal()) == start, "nothing was asked"


def test_designs_that_cannot_be_ordered_are_said_before_the_service_is_asked(saved, lab, tmp_path):
    start = len(lab.journal())
    with pytest.raises(InputError):
        run("main", str(tmp_path / "nothing.fasta"))
    assert len(lab.journal()) == start


def test_an_account_that_is_not_saved_is_named(saved, designs):
    with pytest.raises(ConfigurationError, match="nobody"):
        run("nobody", designs)
