"""The kinds of events: ids follow from the fact alone, and no payload can hold a link or a secret."""

import re
from datetime import UTC, datetime
from typing import Literal, get_args, get_origin
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prefect_assay.campaigns.events import KINDS, kinds

NAME = re.compile(r"assay\.[a-z]+\.[a-z]+(-[a-z]+)*")


def test_names_follow_the_grammar_and_are_unique():
    names = [kind.event for kind in KINDS]
    assert len(set(names)) == len(names)
    assert [name for name in names if not NAME.fullmatch(name)] == []


def test_identity_and_labels_name_fields_and_the_resource_is_not_repeated_in_them():
    for kind in KINDS:
        named = {*kind.identity, *kind.labels, *re.findall(r"{(\w+)}", kind.resource)}
        assert named <= set(kind.model_fields), kind.event
        assert not {*kind.identity} & {*re.findall(r"{(\w+)}", kind.resource)}, kind.event


def test_no_field_is_meant_for_a_secret_or_an_address_of_the_service():
    fields = {name for kind in KINDS for name in kind.model_fields}
    assert {name for name in fields if re.search(r"url|link|token|secret|password|credential", name)} == set()


VALUES = {
    int: st.integers(0, 1),
    bool: st.booleans(),
    float: st.just(1e-9),
    str: st.sampled_from("ab"),
    datetime: st.sampled_from([datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2)]),
}


def values(annotation):
    """Few values of each type, so that equal ones meet."""
    if annotation in VALUES:
        return VALUES[annotation]
    if get_origin(annotation) is Literal:
        return st.sampled_from(get_args(annotation))
    if get_origin(annotation) is tuple:
        return st.tuples(values(get_args(annotation)[0]))
    return st.none() | values(next(a for a in get_args(annotation) if a is not type(None)))


def facts(kind):
    return st.builds(kind, **{name: values(field.annotation) for name, field in kind.model_fields.items()})


@settings(suppress_health_check=[HealthCheck.too_slow])  # its first draw imports much
@given(st.data(), st.sampled_from(KINDS))
def test_the_id_follows_from_resource_and_identity_alone(data, kind):
    one, other = data.draw(facts(kind)), data.draw(facts(kind))
    same = one.resource_id == other.resource_id and all(
        str(getattr(one, name)) == str(getattr(other, name)) for name in kind.identity
    )
    assert (one.id == other.id) == same
    assert kind.model_validate_json(one.model_dump_json()).id == one.id


def test_ids_never_change():
    """Stored events and runs that wait across an upgrade know them."""
    paid = kinds.ExperimentPaid(experiment_id="e-1", payment_method="async_invoice", amount_cents=100)
    assert paid.id == UUID("2a0cb9af-7d24-5708-914c-3b20e00e47f5")


def test_the_estimate_of_a_campaign_is_about_the_campaign():
    estimate = kinds.EstimateCompleted(campaign_id="c", experiments=2, designs=20, total_cents=1)
    assert estimate.resource_id == "assay.campaign.c"
    assert estimate.model_copy(update={"order_key": "k", "experiments": 1}).resource_id == "assay.order.k"
