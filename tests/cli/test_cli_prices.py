"""`targets` and `estimate` against a real lab: the catalog, prices, caps; without Prefect, and without an order."""

import json

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from prefect_assay.cli.campaigns import estimate as estimates
from prefect_assay.cli.campaigns.estimate import estimate_campaign
from prefect_assay.cli.designs.targets import price_of, search_targets, show_targets
from prefect_assay.designs.options import CampaignOptions, ReadingOptions
from prefect_assay.errors import ConfigurationError, InvalidSequences, InvalidSpec
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.spec import Assay, Target
from prefect_assay.service.models.vocabulary import ExperimentType
from support.accounts import make_account
from support.command import command

EGFR = "Human EGFR, extracellular domain"
UNPRICED = "Human insulin receptor, extracellular domain"


@pytest.fixture
def service(lab, monkeypatch):
    monkeypatch.setenv("PREFECT_ASSAY_BASE_URL", lab.base_url)
    monkeypatch.setenv("PREFECT_ASSAY_TOKEN", lab.token)
    monkeypatch.setenv("COLUMNS", "80")
    with AssayClient(lab.base_url, lab.token) as client:
        yield client


@pytest.fixture
def designs(tmp_path):
    path = tmp_path / "designs.fasta"
    path.write_text("".join(f">d{n}\nMKVLAAGTSEELKQQRLIEEAKRLNPDE{'A' * n}GG\n" for n in range(1, 6)))
    return str(path)


@pytest.fixture
def account(lab, tmp_path, monkeypatch):
    made = make_account(base_url=lab.base_url, token=lab.token, archive=tmp_path / "archive")
    monkeypatch.setattr(estimates, "saved_account", lambda _name: made)
    return made


def estimated(designs, assay, *, as_json=True, capsys, **reading):
    options = CampaignOptions(reading=ReadingOptions(**{"designs_per_experiment": 2, **reading}))
    estimate_campaign(designs, assay, options, account="main", as_json=as_json)
    out = capsys.readouterr().out
    return json.loads(out) if as_json else out


@pytest.mark.parametrize("words", [["egfr"], ["extracellular", "EGFR"], ["domain egfr HUMAN"], ["P00533"]])
def test_the_catalog_is_searched_for_all_words_in_any_order(service, words):
    assert [target.name for target in search_targets(service, words)] == [EGFR]


def test_a_conjugated_target_is_found_by_words_that_no_other_has(service):
    assert [target.catalog_number for target in search_targets(service, ["PD-L1"])] == ["LOCAL-002"]
    assert [target.catalog_number for target in search_targets(service, ["biotinylated", "pd-l1"])] == [
        "LOCAL-012"
    ]
    assert "LOCAL-012" not in {target.catalog_number for target in search_targets(service, [])}


def test_a_target_is_found_without_its_hyphens(service):
    assert [target.catalog_number for target in search_targets(service, ["pdl1"])] == ["LOCAL-002"]
    assert search_targets(service, ["pdl9"]) == []


def test_targets_show_whole_ids_at_80_columns_and_how_they_are_measured(service, capsys):
    show_targets(["human"], account=None, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    (egfr,) = search_targets(service, ["egfr"])
    assert any(line.startswith(egfr.id) for line in lines)
    assert "by quote" in "\n".join(lines)
    assert "affinity (bli or spr)" in "\n".join(lines)


def test_targets_show_every_digit_of_a_price_at_80_columns(service, capsys):
    show_targets([], account=None, as_json=False)
    shown = capsys.readouterr().out.splitlines()
    prices = [line for target in search_targets(service, []) for line in price_of(target).splitlines()]
    assert any("2,880.00 USD for 96" in price for price in prices)
    for price in prices:
        assert any(line.rstrip().endswith(price) for line in shown), price


def test_no_target_is_exit_code_1(service, capsys):
    with pytest.raises(SystemExit) as ended:
        show_targets(["no-such-antigen"], account=None, as_json=True)
    assert ended.value.code == 1
    assert json.loads(capsys.readouterr().out)["targets"] == []


@pytest.mark.parametrize(
    ("pricing", "shown"),
    [
        ({"price_per_sequence_cents": 4000}, "40.00 USD a design"),
        ({"lot_prices": [{"num_sequences": 24, "price_usdcent": 72_000}]}, "720.00 USD for 24"),
        ({"type": "of tomorrow"}, "has a price"),
        (None, "by quote"),
    ],
)
def test_every_form_of_a_price_is_shown(pricing, shown):
    assert price_of(Target(id="t", pricing=pricing)) == shown


@pytest.mark.usefixtures("account")
def test_an_estimate_has_the_price_of_each_experiment_line_by_line_and_orders_nothing(
    service, designs, capsys
):
    estimate = estimated(designs, Assay(target=EGFR), capsys=capsys)
    assert [one["designs"] for one in estimate["experiments"]] == [2, 2, 1]
    assert [one["cents"] for one in estimate["experiments"]] == [43_800, 43_800, 21_900]
    for one in estimate["experiments"]:
        assert [line["name"] for line in one["lines"]] == ["assay", "replicates", "materials"]
        assert sum(line["cents"] for line in one["lines"]) == one["cents"]
        assert one["unread"] == []
    assert (estimate["due_cents"], estimate["unpriced"], estimate["simulated"]) == (109_500, 0, True)
    assert list(service.experiments.iterate()) == []


def test_an_estimate_leaves_no_trace_in_the_archive(account, designs, capsys):
    estimated(designs, Assay(target=EGFR), capsys=capsys)
    assert list(account.archive.get_store().keys("")) == []


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    ("assay", "remark"),
    [
        (Assay(target=UNPRICED), "no self-service pricing"),
        (Assay(experiment_type=ExperimentType.THERMOSTABILITY), "takes no target"),
    ],
)
def test_what_is_ordered_by_quote_says_so(designs, capsys, assay, remark):
    estimate = estimated(designs, assay, capsys=capsys)
    assert all(remark in one["by_quote"] for one in estimate["experiments"])
    assert (estimate["unpriced"] == 3) is bool(assay.target)


def test_an_estimate_shows_caps_and_who_is_asked_at_80_columns(account, designs, capsys, monkeypatch):
    policy = {"per_experiment_usd": 400, "per_campaign_usd": 1_000}
    capped = account.model_copy(update={"policy": account.policy.model_copy(update=policy)})
    monkeypatch.setattr(estimates, "saved_account", lambda _name: capped)
    monkeypatch.setenv("COLUMNS", "80")
    shown = estimated(designs, Assay(target=EGFR), as_json=False, capsys=capsys)
    assert max(map(len, shown.splitlines())) <= 80
    words = " ".join(shown.split())
    assert "due now 1,095.00 USD without VAT" in words
    assert "caps 400.00 USD per experiment, 1,000.00 USD per campaign" in words
    assert "asked a person, before anything is ordered: it is over the cap per campaign" in words
    assert "(simulated), http://127.0.0.1" in words
    assert "Nothing was ordered." in words


@pytest.mark.usefixtures("account")
def test_a_misspelled_target_is_named_with_what_is_near(designs, capsys):
    with pytest.raises(InvalidSpec, match="did you mean 'Human EGFR"):
        estimated(designs, Assay(target="EGFR"), capsys=capsys)


def test_without_a_service_both_ways_to_name_one_are_said(monkeypatch):
    monkeypatch.delenv("PREFECT_ASSAY_BASE_URL", raising=False)
    no_api = temporary_settings(restore_defaults={PREFECT_API_URL})  # another test's server may have blocks
    with (
        no_api,
        pytest.raises(ConfigurationError, match=r"prefect-assay init.*--account.*PREFECT_ASSAY_TOKEN"),
    ):
        show_targets([], account=None, as_json=False)


def test_a_token_in_the_environment_needs_no_prefect(lab, tmp_path):
    # A module of this name in front of the installed one: an import of Prefect would fail.
    (tmp_path / "prefect.py").write_text("raise ImportError('Prefect was imported')")
    env = {
        "PREFECT_ASSAY_BASE_URL": lab.base_url,
        "PREFECT_ASSAY_TOKEN": lab.token,
        "PYTHONPATH": str(tmp_path),
    }
    assert command("targets", "egfr", **env).code == 0


PDL1 = "FTVTVPKDLYVVEYGSNMTIECKFPVEKQLDLAALIVYWEMEDKNIIQFVHGEEDLKVQHSSYRQRARLLKDQLSLG"


@pytest.mark.usefixtures("account")
def test_designs_with_the_catalogs_target_have_no_price(tmp_path, capsys):
    path = tmp_path / "fused.fasta"
    binder = "SPEELLKKAEELLKRGDYEEALKLLEEALELARELGDEEREA"
    path.write_text(f">a\n{binder}AKK{PDL1}\n>b\n{binder}GEE{PDL1}\n")
    assay = Assay(target="LOCAL-002")
    words = "the end of 2 of 2 designs is the target in the service's catalog"
    with pytest.raises(InvalidSequences, match=words):
        estimated(str(path), assay, capsys=capsys)
    cut = estimated(str(path), assay, capsys=capsys, chain="1", target_sequence=PDL1)
    assert cut["reading"][0] == "2 designs: 45 residues; 1 chain each"
    assert estimated(str(path), assay, capsys=capsys, as_is=True)["due_cents"]
