"""The table of `support/rules/rows.py`: every wrong request, refused by the description, by the client and by the lab.

And what is the same on every side without being one wrong field: good requests, and all findings in one answer.
"""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from lab_support.core import spec
from prefect_assay.errors import InputError, InvalidSpec, RequestRefused
from support.description import find_operation, find_problems, list_operations
from support.lab.organisations import plain, refused
from support.rules.register import client_holds, lab_holds
from support.rules.rows import BINNING, BY_CLIENT, ROWS, THERMO, UNKNOWN, Row, binning

OPERATIONS = {operation.operation_id: operation for operation in list_operations()}
LISTS = [
    operation.path.removeprefix("/api/v1")
    for operation in OPERATIONS.values()
    if "limit" in {part["name"] for part in operation.parameters} and "{" not in operation.path
]
FAB = {"aa_string": "MKV:GHI", "metadata": {"type": "Fab"}}
METADATA = [
    *({"type": kind} for kind in ("VHH", "IgG", "sc_fv", "FAB", ["nanobody"])),
    {"type": "ScFv", "VH": "E"},
    *({"tag_location": "N-terminal"}, {"tag_location": 3}),
]
FINE = [
    *(spec(), spec(**THERMO), spec(**BINNING), spec(experiment_type="screening", method="spr")),
    *(binning(28), spec(n_replicates=1), spec(n_replicates=5), spec(antigen_concentrations=[0.0, 10.5])),
    spec(sequences={"a": "mkv:GHI", "b": "ACDEFGHIKLMNPQRSTVWY"}),
    spec(sequences={end: {"aa_string": "MKV", "control": True, "metadata": {"tag_location": end}} for end in "NC"}),
    # Heavy and light chain, joined by the colon, are a Fab (2.3) unless the type is another.
    *(spec(sequences={"a": "MKV:GHI", "b": other}) for other in ("mkv:ghi", FAB, {**FAB, "metadata": {"type": "IgG"}})),
    spec(sequences={"a": FAB, "b": FAB}),
    # The contract names `type` and `tag_location`, and limits the values of neither.
    *(spec(sequences={"a": {"aa_string": "MKV", "metadata": metadata}}) for metadata in METADATA),
]  # fmt: skip


def of_side(side):
    return pytest.mark.parametrize("row", [row for row in ROWS if side in row.sides], ids=str)


def body_of(row, token="t", code="ORG-001-001"):
    """A good body with the row's mistake in it; None leaves a field out."""
    good = {
        "experiments.create": {"experiment_spec": spec(), "name": "rules"},
        "experiments.estimate": {"experiment_spec": spec()},
        "experiments.modify": {},
        "sequences.add": {"experiment_code": code, "sequences": [{"name": "z", "aa_string": "GHI"}]},
        "quotes.reject": {"reason": "price"},
        "tokens.attenuate": {"token": token, "name": "narrow", "attenuation": {}},
        "partners.mint_token": {"org": {"type": "new_org", "name": "X"}, "user": {"email": "a@b.example"}},
        "webhooks.create": {"url": "https://hooks.example.org/x"},
        "targets.request_custom": {"name": "Ours", "product_id": "OWN-1", "sequence": "MKVGHI"},
        "feedback.submit": {"request_uuid": UNKNOWN, "feedback_type": "feedback"},
    }[row.call]
    return {name: value for name, value in (good | row.wrong).items() if value is not None}


@pytest.fixture(scope="module")
def place(lab, shared):
    """A draft and a quote for requests about one, and a way to send a row to the lab."""
    code = shared.made()["experiment_code"]
    shared.quoted()
    draft = shared.http.get("/experiments", params={"status": "draft"}).json()["items"][0]["id"]
    ids = {"experiment_id": draft, "quote_id": shared.http.get("/quotes").json()["items"][0]["id"]}

    def send(row):
        operation = OPERATIONS[row.call]
        path = operation.path.removeprefix("/api/v1").format(**ids)
        with plain(lab, shared.lab.partner_token if operation.is_for_partners else shared.lab.token) as http:
            return http.request(operation.method, path, json=body_of(row, shared.lab.token, code))

    yield send
    assert shared.http.get("/experiments").json()["total"] == 2
    assert shared.http.get("/webhooks").json() == []
    assert shared.http.get("/targets/request-custom").json()["total"] == 0


def client_refusal(org, row):
    """The error of the client, which sends nothing."""
    sent = len(org.transport.sent)
    with pytest.raises((InputError, ValidationError, TypeError)) as caught:
        BY_CLIENT[row.call](org.client, row.wrong if row.call == "lists" else body_of(row))
    assert not isinstance(caught.value, RequestRefused)
    assert len(org.transport.sent) == sent
    return caught.value


@of_side("c")
def test_the_client_refuses(shared, row):
    error = client_refusal(shared, row)
    assert row.place in str(error)
    if row.rules.startswith("2.") and isinstance(error, InputError):
        assert isinstance(error, InvalidSpec)
        client_refusal(shared, replace(row, call="experiments.estimate"))


@of_side("d")
def test_the_description_refuses(row):
    assert find_problems(body_of(row), OPERATIONS[row.call].body_schema)


@of_side("l")
def test_the_lab_refuses(shared, place, row):
    if row.call == "lists":
        for path in LISTS:
            refused(shared.http.get(path, params=row.wrong), row.status, row.place)
        return
    refused(place(row), row.status, row.place)
    if row.call == "experiments.create" and row.wrong.keys() == {"experiment_spec"}:
        assert place(replace(row, call="experiments.estimate")).status_code in (400, 422)


@pytest.mark.parametrize("raw", FINE, ids=lambda raw: str(raw)[:60])
def test_every_side_takes_a_good_specification(shared_good, raw):
    row = Row("", "experiments.create", {"experiment_spec": raw}, "")
    assert find_problems(body_of(row), find_operation("POST", "/api/v1/experiments").body_schema) == []
    BY_CLIENT[row.call](shared_good.client, body_of(row))
    shared_good.made(raw)


@pytest.fixture(scope="module")
def shared_good(lab):
    from support.lab.organisations import organisation

    with organisation(lab) as made:
        yield made


AT_ONCE = [
    (
        "experiments.create",
        {
            "experiment_spec": spec(method=None, n_replicates=9, antigen_concentrations=[-1.0], sequences={"a": "MKV", "b": "MKV", "c": "M1V"}),
            "name": "", "webhook_url": "http://example.org", "webhook_secret": "short", "payment": {"method": "async_invoice"},
        },
        ("method", "n_replicates", "antigen_concentrations", "sequences", "same residues", "'1'", "name", "webhook_url", "webhook_secret", "payment.method"),
    ),
    (
        "experiments.modify",
        {"name": "", "target_id": "EGFR", "n_replicates": 6, "antigen_concentrations": [-1.0], "webhook_url": "x", "sequences": [{"name": "a", "aa_string": "MKX"}, {"name": "a", "aa_string": "MK"}]},
        ("name", "target_id", "n_replicates", "antigen_concentrations", "webhook_url", "'X'", "'a'"),
    ),
    (
        "sequences.add",
        {"sequences": [{"name": "a", "aa_string": "MKT"}, {"name": "a", "aa_string": "MKX"}, {"name": "b", "aa_string": "mkt"}]},
        ("'X'", "'a'", "same residues"),
    ),
    (
        "tokens.attenuate",
        {"name": "", "attenuation": {"allowed_actions": ["read", "fly"], "allowed_org_ids": ["x"]}, "attenuated_parent_token_id": "x"},
        ("name", "allowed_actions", "allowed_org_ids", "attenuated_parent_token_id"),
    ),
    ("partners.mint_token", {"org": {"type": "existing_org", "id": "x"}, "user": {"email": "nobody"}}, ("org", "email")),
    ("targets.request_custom", {"name": "", "product_id": ""}, ("name", "product_id")),
]  # fmt: skip


@client_holds("2.2.all")
@lab_holds("2.2.all")
@pytest.mark.parametrize(("call", "wrong", "places"), AT_ONCE, ids=[case[0] for case in AT_ONCE])
def test_all_findings_come_in_one_answer(shared, place, call, wrong, places):
    row = Row("2.2.all", call, wrong, "")
    finding, answer = str(client_refusal(shared, row)), place(row).json()["error"]
    assert [word for word in places if word not in finding] == [], finding
    assert [word for word in places if word not in answer] == [], answer


def test_an_unknown_target_comes_with_all_other_findings_of_a_change(place):
    row = Row("", "experiments.modify", {"target_id": UNKNOWN, "n_replicates": 9, "color": "red"}, "")
    answer = place(row)
    refused(answer, 400, "not in the catalog", "n_replicates", "color")
