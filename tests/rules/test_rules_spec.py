"""The rules of a specification (contract 2.2 and 2.3): what the client refuses, the lab refuses without it."""

import pytest
from pydantic import ValidationError

from lab_support.core import spec
from prefect_assay.errors import InvalidSpec
from prefect_assay.service.models.experiment import CreateRequest
from support.lab.organisations import refused, typed
from support.rules.register import client_holds, lab_holds

FOUR = {f"s{n}": "MKV" + "A" * n for n in range(1, 5)}
THERMO = {"experiment_type": "thermostability", "method": None, "target_id": None}
BINNING = {"experiment_type": "epitope_binning", "method": None, "sequences": FOUR}
FAB = {"aa_string": "MKV:GHI", "metadata": {"type": "FAB", "framework_regions": {"ch": "x", "cl": "y"}}}

# What is wrong, and the rule it breaks; the status is the lab's.
BROKEN = [
    ("2.2.method", {"method": None}, 400),
    ("2.2.method", THERMO | {"method": "bli"}, 400),
    ("2.2.method", BINNING | {"method": "spr"}, 400),
    ("2.2.target", {"target_id": None}, 400),
    ("2.2.target", {"target_id": "EGFR"}, 400),
    ("2.2.target", THERMO | {"target_id": spec()["target_id"]}, 400),
    ("2.2.target", BINNING | {"target_id": None}, 400),
    ("2.2.replicates", BINNING | {"n_replicates": 3}, 400),
    ("2.2.concentrations", THERMO | {"antigen_concentrations": [1.0]}, 400),
    ("2.2.concentrations", {"experiment_type": "screening", "antigen_concentrations": [1.0]}, 400),
    ("2.2.concentrations", {"antigen_concentrations": []}, 400),
    ("2.2.concentrations", {"antigen_concentrations": [-0.1]}, 400),
    ("2.2.sequences", {"sequences": {}}, 400),
    ("2.2.sequences", {"sequences": {" ": "MKV"}}, 400),
    ("2.3.letters", {"sequences": {"a": "MKX"}}, 422),
    ("2.3.letters", {"sequences": {"a": "MK V"}}, 422),
    ("2.3.letters", {"sequences": {"a": "MKV:"}}, 422),
    ("2.3.letters", {"sequences": {"a": ""}}, 422),
    ("2.3.letters", {"sequences": {"a": "MK\u017f"}}, 422),
    ("2.3.duplicates", {"sequences": {"a": "MKV", "b": "mkv"}}, 400),
    ("2.3.duplicates", {"sequences": {"a": {"aa_string": "MKV", "metadata": {"tag_location": "N"}}, "b": {"aa_string": "MKV", "metadata": {"tag_location": "N"}}}}, 400),
]  # fmt: skip
FINE = [
    spec(),
    spec(**THERMO),
    spec(**BINNING),
    spec(experiment_type="screening", method="spr"),
    spec(antigen_concentrations=[0.0, 10.5]),
    spec(sequences={"a": "mkv:GHI", "b": "ACDEFGHIKLMNPQRSTVWY"}),
    spec(
        sequences={
            end: {"aa_string": "MKV", "control": True, "metadata": {"tag_location": end}} for end in "NC"
        }
    ),
    spec(sequences={"a": FAB, "b": FAB}),
    # Heavy and light chain, joined by the colon, are a Fab (2.3) whatever the metadata says.
    spec(sequences={"a": "MKV:GHI", "b": "mkv:ghi"}),
    spec(sequences={"a": "MKV:GHI", "b": {"aa_string": "MKV:GHI", "metadata": {"type": "IgG"}}}),
    # The contract names `type` and `tag_location`, and limits the values of neither.
    *(
        spec(sequences={"a": {"aa_string": "MKV", "metadata": metadata}})
        for metadata in (
            {"type": "VHH"},
            {"type": "FAB"},
            {"type": "ScFv", "VH": "E"},
            {"type": ["nanobody"]},
            {"tag_location": "N-terminal"},
            {"tag_location": 3},
        )
    ),
    spec(
        sequences={
            place: {"aa_string": "MKV", "metadata": {"tag_location": place}}
            for place in ("N-terminal", "C-terminal")
        }
    ),
]
ids = [f"{rule}-{number}" for number, (rule, _, _) in enumerate(BROKEN)]


@client_holds("2.2.method", "2.2.target", "2.2.replicates", "2.2.concentrations", "2.2.sequences")
@client_holds("2.3.letters", "2.3.duplicates")
@pytest.mark.parametrize(("rule", "changes", "status"), BROKEN, ids=ids)
def test_the_client_refuses_a_broken_specification(org, rule, changes, status):
    broken = typed(spec(**changes))
    request = CreateRequest(experiment_spec=broken, name="x")
    assert isinstance(org.refuses(lambda client: client.experiments.create(request)), InvalidSpec)
    org.refuses(lambda client: client.experiments.estimate_cost(broken))


@lab_holds("2.2.method", "2.2.target", "2.2.replicates", "2.2.concentrations", "2.2.sequences")
@lab_holds("2.3.letters", "2.3.duplicates")
@pytest.mark.parametrize(("rule", "changes", "status"), BROKEN, ids=ids)
def test_the_lab_refuses_a_broken_specification(org, rule, changes, status):
    broken = spec(**changes)
    refused(org.post(broken), status)
    estimate = org.http.post("/experiments/cost-estimate", json={"experiment_spec": broken})
    assert estimate.status_code in (400, 422)
    assert org.http.get("/experiments").json()["total"] == 0


@pytest.mark.parametrize("raw", FINE)
def test_both_take_a_good_specification(org, raw):
    org.client.experiments.create(CreateRequest(experiment_spec=typed(raw), name="x"))
    org.made(raw)


@client_holds("2.2.type")
@pytest.mark.parametrize("kind", ["sequencing", "", "Affinity"])
def test_the_client_knows_seven_types(kind):
    with pytest.raises(ValidationError):
        typed(spec(experiment_type=kind))


@lab_holds("2.2.type")
@pytest.mark.parametrize("kind", ["sequencing", "", "Affinity", 7, None])
def test_the_lab_knows_seven_types(org, kind):
    refused(org.post(spec(experiment_type=kind)), 400, "experiment_type")


_MANY = {
    "method": None,
    "n_replicates": 9,
    "antigen_concentrations": [-1.0],
    "sequences": {"a": "MKV", "b": "MKV", "c": "M1V"},
}


@client_holds("2.2.all")
def test_the_client_reports_everything_at_once(org):
    request = CreateRequest(experiment_spec=typed(spec(**_MANY)), name="", webhook_url="http://example.org")
    findings = org.refuses(lambda client: client.experiments.create(request)).findings
    said = {finding.partition(":")[0] for finding in findings}
    assert said >= {"method", "n_replicates", "antigen_concentrations", "sequences['b']", "sequences['c']"}
    assert said >= {"name", "webhook_url"}


@lab_holds("2.2.all")
def test_the_lab_reports_everything_at_once(org):
    answer = refused(org.post(spec(**_MANY, colour="red"), webhook_url="http://example.org"), 400)
    for word in (
        "method",
        "n_replicates",
        "antigen_concentrations",
        "sequences.b",
        "sequences.c",
        "colour",
        "webhook_url",
    ):
        assert word in answer["error"]
