"""The target of an assay is the one of that exact name, number or id, in a real lab's catalog."""

from types import SimpleNamespace

import pytest

from prefect_assay.errors import Forbidden, InvalidSpec
from prefect_assay.orders.targets import resolve_target
from prefect_assay.service.models.spec import Assay, Target

PLAIN, CONJUGATED = "Human PD-L1, extracellular domain", "Human PD-L1, extracellular domain, biotinylated"


def resolved(service, query):
    return resolve_target(service, Assay(experiment_type="affinity", method="bli", target=query))


@pytest.mark.parametrize(
    ("query", "name"),
    [
        (PLAIN, PLAIN),
        (f" {PLAIN.upper()} ", PLAIN),
        ("LOCAL-002", PLAIN),
        (CONJUGATED, CONJUGATED),
        ("local-012", CONJUGATED),
    ],
)
def test_a_target_is_found_by_name_number_and_id_conjugated_or_not(service, query, name):
    target = resolved(service, query)
    assert target.name == name
    assert resolved(service, target.id).name == name
    assert resolved(service, target.id.upper()).name == name


@pytest.mark.parametrize("status", [404, 405])
def test_an_id_is_found_in_the_list_of_a_service_that_has_no_single_targets(lab, service, status):
    known = resolved(service, PLAIN)
    with lab.fault("status", "/targets/*", "GET", status=status, count=100):
        assert resolved(service, known.id) == known


def test_a_target_that_may_not_be_read_is_an_error(lab, service):
    known = resolved(service, PLAIN)
    with lab.fault("status", "/targets/*", "GET", status=403, count=100), pytest.raises(Forbidden):
        resolved(service, known.id)


@pytest.mark.parametrize(
    "query", ["Human PD-L1", "biotinylated", "6a0cfed8-bbf9-4040-8eff-ce9359f021ae", "no such antigen"]
)
def test_another_target_is_never_taken(service, query):
    with pytest.raises(InvalidSpec, match=f"target: '{query}' is not in the service's catalog"):
        resolved(service, query)


def test_a_name_that_two_targets_have_is_refused_with_both():
    twins = [Target(id=f"0000000{n}-0000-4000-8000-000000000000", name="EGFR") for n in (1, 2)]
    service = SimpleNamespace(targets=SimpleNamespace(iterate=lambda **_: iter(twins)))
    with pytest.raises(InvalidSpec, match=r"names 2 targets: .*00000001-.*00000002-.*; use the id"):
        resolved(service, "EGFR")


def test_a_name_in_another_order_is_suggested():
    from prefect_assay.orders.targets import _find_alike
    from prefect_assay.service.models.spec import Target

    targets = [Target(id="1", name="Human EGFR, extracellular domain"), Target(id="2", name="Human PD-L1")]
    assert [one.id for one in _find_alike(targets, "EGFR human")] == ["1"]
    assert _find_alike(targets, "human insulin receptor") == []
