"""The examples of docs/reference.md on the client, and those of the docstrings, run against a lab."""

import asyncio
import inspect
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from uuid import uuid4

import pytest

from assay_lab.testing import LocalLab
from prefect_assay import errors
from prefect_assay.service.client import AssayClient, RejectReason, filters, parameters
from prefect_assay.service.models.billing import usd
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.sequences import ProteinSequence
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.tokens import Attenuation, MintRequest, NewOrg
from support.client_calls import list_methods

PAGE = (Path(__file__).parents[3] / "docs" / "reference.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("\n## Client\n") : PAGE.index("\n## The service\n")]
FENCE = re.compile(r"^( *)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


with AssayClient("https://localhost", None) as unused:
    METHODS = list_methods(unused)


def test_the_page_names_what_belongs_to_the_client_itself():
    public = {name for name in vars(AssayClient) if not name.startswith("_")}
    assert public - set(re.findall(r"`([a-z_]+)`", SECTION)) == set()


@pytest.mark.parametrize("name", METHODS)
def test_every_method_names_its_call_its_source_and_has_an_example(name):
    text = inspect.getdoc(METHODS[name])
    assert "contract " in text or name.endswith(".iterate") or name.startswith("documents."), name
    assert FENCE.search(text), name
    if not name.endswith((".iterate", ".download")):
        assert re.search(r"(GET|POST|PATCH|DELETE) /", text), name


@pytest.fixture(scope="module")
def names():
    """What the examples use: a client of a lab with a draft, a quote, an invoice and results."""
    with LocalLab() as lab, AssayClient(lab.base_url, lab.token, sleep=lambda _: None) as client:
        target = client.targets.list(selfservice_only=True, limit=1).items[0]
        spec = ExperimentSpec.model_validate(
            {
                "experiment_type": "affinity",
                "method": "bli",
                "target_id": target.id,
                "sequences": {"d1": "MKTAYIAKQRQISFVK"},
            }
        )

        def order(name, **fields):
            request = CreateRequest(experiment_spec=spec, name=name, **fields)
            return client.experiments.create(request)

        done = order("done", skip_draft=True, auto_accept_quote=True).experiment_id
        lab.advance(days=20)
        quoted = order("egfr-1", skip_draft=True).experiment_id
        lab.advance(hours=1)
        machine = order("machine", auto_accept_quote=True, payment_method="x402-exact")
        yield {
            "AssayClient": AssayClient, "Attenuation": Attenuation, "CreateRequest": CreateRequest,
            "ExperimentSpec": ExperimentSpec, "MintRequest": MintRequest, "NewOrg": NewOrg, "Path": Path,
            "ProteinSequence": ProteinSequence, "RejectReason": RejectReason, "asyncio": asyncio,
            "client": client, "errors": errors, "f": filters, "p": parameters, "usd": usd, "uuid4": uuid4,
            "base_url": lab.base_url, "token": lab.token, "secret": "s" * 32, "spec": spec,
            "since": datetime.now(UTC) - timedelta(days=90), "until": datetime.now(UTC),
            "experiment_id": done, "quoted": quoted,
            "invoice_id": machine.invoice_id, "target_id": target.id,
            "quote_id": client.quotes.list(status="pending").items[0].id,
            "result": next(client.experiments.iterate_results(done)),
            "result_id": next(client.experiments.iterate_results(done)).id,
            "sequence_id": next(client.experiments.iterate_sequences(done)).id,
        }  # fmt: skip


def run(code, names, tmp_path, monkeypatch):
    """Run an example where its files may lie."""
    monkeypatch.chdir(tmp_path)
    exec(compile(dedent(code), "an example", "exec"), dict(names))


ON_A_DRAFT = {"experiments.submit", "experiments.modify", "sequences.add"}
ON_A_QUOTE = {"experiments.confirm_quote", "experiments.download_quote_pdf", "experiments.get_quote"}
# Those that end what the other examples use, need a partner's token, or are about a record of their own.
ELSEWHERE = {"tokens.revoke", "tokens.mint", "quotes.confirm", "quotes.reject"}
OWN_RECORD = {"custom_targets.get", "webhooks.modify", "webhooks.delete"}


@pytest.mark.parametrize("name", sorted(METHODS.keys() - ELSEWHERE))
def test_the_example_of_a_method_runs(name, names, tmp_path, monkeypatch, capsys):
    client = names["client"]
    names = dict(names)
    if name in ON_A_DRAFT:
        draft = CreateRequest(experiment_spec=names["spec"], name=name)
        names["experiment_id"] = client.experiments.create(draft).experiment_id
    if name in ON_A_QUOTE:
        names["experiment_id"] = names["quoted"]
    if name in OWN_RECORD:
        names["webhook_id"] = client.webhooks.create("https://hooks.example/a").id
        names["request_id"] = client.custom_targets.request("Mine", f"ag-{uuid4()}", "MKTAYIAKQRQISFVK").id
    run(FENCE.search(inspect.getdoc(METHODS[name]))[2], names, tmp_path, monkeypatch)


def list_examples():
    documented = (SECTION, inspect.getdoc(AssayClient), inspect.getdoc(AssayClient.run))
    codes = [match[2] for text in documented for match in FENCE.finditer(text)]
    assert len(codes) == len(documented)
    return codes


@pytest.mark.parametrize("code", list_examples(), ids=("page", "client", "run"))
def test_an_example_of_the_client_runs(code, names, tmp_path, monkeypatch, capsys):
    run(code.replace('"https://lab.example.org"', "base_url"), names, tmp_path, monkeypatch)
