"""Attenuation, online and offline: it only ever takes away, and what it took does not come back (contract 4.6)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from biscuit_auth import BlockBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from assay_lab.service import seeding
from assay_lab.tokens import permissions
from assay_lab.tokens.principal import Grant
from assay_lab.vocabulary import PaymentMethod
from lab_support.core import EPOCH, advance, get, order, refusal, spec, to_quote
from lab_support.tokens import offline, online
from support.rules.register import lab_holds

OTHER_ORG = "00000000-0000-4000-8000-000000000000"
METHODS = tuple(PaymentMethod)


def status(core, token, method="GET", path="/experiments", **request):
    """What a request is answered with."""
    from assay_lab.kernel.refusals import Refusal

    try:
        return core.request(method, path, token=token, **request).status
    except Refusal as error:
        return error.status


def made(core, how, **restrictions):
    """A child of the member's token."""
    if how == "offline":
        return offline(core, core.seeded.member_token, **restrictions)
    return online(core, core.seeded.member_token, **restrictions)["token"]


ORDER = {"experiment_spec": spec(), "name": "x"}


@pytest.mark.parametrize(
    ("restriction", "passes", "refused"),
    [
        ("read_only", ("POST", "/experiments/cost-estimate"), ("PATCH", "/experiments/x")),
        ("non_destructive", ("POST", "/experiments"), ("POST", "/quotes/x/reject")),
    ],
)
def test_what_a_call_does_and_not_its_method_decides(shared, restriction, passes, refused):
    token = offline(shared, shared.seeded.member_token, **{restriction: True})
    assert status(shared, token, *passes, json_body=ORDER) != 403
    answer = refusal(shared, *refused, token=token, json_body={})
    assert (answer.status, "missing capability" in answer.message) == (403, True)


@pytest.mark.parametrize("how", ["online", "offline"])
def test_an_expired_child_is_401_while_its_parent_lives(core, how):
    token = made(core, how, expires_at=EPOCH + timedelta(days=2)) if how == "offline" else None
    token = token or made(core, how, expires_at="2026-03-04T10:00:00+01:00")
    assert (
        core.request("GET", "/whoami", token=token).body["token_expires_at"].startswith("2026-03-04T09:00:00")
    )
    advance(core, days=1.99)
    assert status(core, token) == 200
    advance(core, days=0.01)
    assert (status(core, token), status(core, core.seeded.member_token)) == (401, 200)


def test_a_later_expiry_than_the_parents_changes_nothing(core):
    first = online(core, core.seeded.member_token, expires_at="2026-03-05T09:00:00Z")
    second = online(core, first["token"], first["id"], expires_at="2027-03-05T09:00:00Z")["token"]
    assert core.request("GET", "/whoami", token=second).body["token_expires_at"].startswith("2026-03-05")
    listed = core.request("GET", "/tokens").body["items"][0]
    assert (listed["expires_at"][:10], listed["attenuation_spec"]["expires_at"][:10]) == (
        "2026-03-05",
        "2027-03-05",
    )


def test_whoami_lists_what_is_left(shared):
    token = made(shared, "offline", allowed_resources=["quotes", "token"], non_destructive=True)
    assert shared.request("GET", "/whoami", token=token).body["permissions"] == [
        "quote:list", "quote:read", "quote:update", "token:list", "token:read", "token:issue"
    ]  # fmt: skip


def test_restrictions_may_be_null_and_the_own_organisation_may_be_named(shared):
    org_id = shared.seeded.organization_id.upper()
    token = made(
        shared,
        "online",
        allowed_actions=None,
        read_only=False,
        expires_at=None,
        allowed_org_ids=[OTHER_ORG, org_id],
    )
    assert status(shared, token, "POST", "/experiments", json_body=ORDER) == 201


@lab_holds("4.6.attenuate.parent")
def test_the_parents_record_is_named_for_an_attenuated_token_only(core):
    root = core.seeded.member_token
    first = online(core, root, non_destructive=True)
    hidden = offline(core, first["token"], read_only=True)
    second = online(core, first["token"], first["id"], read_only=True)

    def answer(token, parent):
        body = {"attenuation": {}, "name": "x", "token": token}
        body |= {"attenuated_parent_token_id": parent} if parent else {}
        return status(core, root, "POST", "/tokens/attenuate", json_body=body)

    assert [answer(root, parent) for parent in (None, first["id"], OTHER_ORG, "x")] == [201, 400, 400, 400]
    assert [answer(first["token"], parent) for parent in (None, first["id"], second["id"])] == [400, 201, 400]
    assert [answer(second["token"], parent) for parent in (first["id"], second["id"].upper())] == [400, 201]
    # One that was made offline has no record: its nearest recorded ancestor is its parent.
    assert [answer(hidden, parent) for parent in (None, first["id"])] == [400, 201]
    assert [answer(offline(core, root, read_only=True), parent) for parent in (None, first["id"])] == [
        201,
        400,
    ]
    rows = {row["id"]: row for row in core.request("GET", "/tokens").body["items"]}
    assert rows[second["id"]]["parent_token_id"] == first["id"]
    assert rows[second["id"]]["root_token_id"] == rows[first["id"]]["parent_token_id"]


def test_the_policy_of_the_token_chooses_the_method(core):
    def order_with(token, **fields):
        body = {"experiment_spec": spec(), "name": "x", "auto_accept_quote": True, **fields}
        return core.request("POST", "/experiments", token=token, json_body=body)

    mpp_first = made(core, "online", payment_policy=["mpp-spt", "x402-exact"])
    assert order_with(mpp_first).body["payment"]["methods"] == ["mpp-spt"]
    both = offline(core, mpp_first, payment_policy=["x402-exact", "mpp-spt", "async_invoice"])
    assert order_with(both).body["payment"]["methods"] == ["x402-exact"]
    narrow = offline(core, both, payment_policy=["async_invoice", "mpp-spt"])
    assert order_with(narrow).body["payment"]["methods"] == ["mpp-spt"]
    assert order_with(narrow, payment={"method": "mpp-spt"}).status == 200
    wrong = {"token": narrow, "json_body": ORDER | {"payment": {"method": "x402-exact"}}}
    assert refusal(core, "POST", "/experiments", **wrong).status == 403
    none = offline(core, narrow, payment_policy=["x402-exact"])
    assert refusal(core, "POST", "/experiments", token=none, json_body=ORDER).status == 403
    assert status(core, none) == 200


@lab_holds("4.2.create.2.policy")
def test_the_organisations_policy_bounds_the_tokens(core):
    org = seeding.add_organization(core.lab, "machines", "Machines", ["x402-exact", "mpp-spt"])
    token = offline(core, org.member_token, payment_policy=["async_invoice", "mpp-spt"])
    body = ORDER | {"auto_accept_quote": True}
    assert core.request("POST", "/experiments", token=token, json_body=body).body["payment"]["methods"] == [
        "mpp-spt"
    ]
    only = offline(core, org.member_token, payment_policy=["async_invoice"])
    assert refusal(core, "POST", "/experiments", token=only, json_body=body).status == 403


def test_a_policy_also_holds_for_confirming_and_for_paying(core):
    invoice_only = made(core, "offline", payment_policy=["async_invoice"])
    machine = made(core, "online", payment_policy=["x402-exact"])
    experiment_id = to_quote(core)
    path = f"/experiments/{experiment_id}/quote/confirm"
    assert status(core, machine, "POST", path, json_body={}) == 403
    assert status(core, invoice_only, "POST", path, json_body={}) == 200
    pay = order(core, auto_accept_quote=True, payment={"method": "x402-exact"}).body["payment"]["pay_url"]
    pay = pay.removeprefix("/api/v1")
    assert status(core, invoice_only, "POST", pay) == 403
    assert status(core, machine, "POST", pay) == 402


@pytest.mark.parametrize("how", ["online", "offline"])
@pytest.mark.parametrize(
    "restrictions", [{"allowed_resources": ["experiment"]}, {"allowed_actions": ["create"]}]
)
@pytest.mark.parametrize("payment", [None, {"method": "x402-exact"}])
def test_a_quote_is_accepted_along_with_the_order_only_by_who_may_confirm_one(
    core, how, restrictions, payment
):
    experiment_id = to_quote(core)
    token = made(core, how, **restrictions)
    path = f"/experiments/{experiment_id}/quote/confirm"
    confirming = refusal(core, "POST", path, token=token, json_body={})
    body = ORDER | {"auto_accept_quote": True, "payment": payment}
    ordering = refusal(core, "POST", "/experiments", token=token, json_body=body)
    assert (ordering.status, ordering.message) == (confirming.status, confirming.message)
    assert (ordering.status, ordering.message) == (
        403,
        "missing capability quote:update: the token is restricted",
    )
    assert get(core, "/experiments")["total"] == 1
    assert get(core, "/invoices")["total"] == 0
    assert status(core, token, "POST", json_body=ORDER | {"auto_accept_quote": False}) == 201


def test_checks_that_take_too_long_are_a_500_and_never_a_refusal(shared):
    numbers = " ".join(f"n({number});" for number in range(40))
    endless = f"{numbers} t($a, $b, $c) <- n($a), n($b), n($c); check if t($a, $b, $c), $a + $b + $c == 1000;"
    held = shared.lab.tokens._open(shared.seeded.member_token)
    token = "assay_lab" + held.biscuit.append(BlockBuilder(endless)).to_base64()
    assert status(shared, token) == 500


# --- The model: the seven restrictions in plain Python, written from the contract and not from the checks.


@dataclass(frozen=True)
class Asked:
    """One thing that a caller may want to do."""

    action: str
    resource: str
    destructive: bool
    at: datetime
    method: str | None


def leaves(restrictions, asked, org_id):
    """Whether one attenuation leaves it."""
    takes_away = asked.destructive or asked.action in ("delete", "revoke")
    refused = [
        "allowed_actions" in restrictions and asked.action not in restrictions["allowed_actions"],
        "allowed_org_ids" in restrictions and org_id not in restrictions["allowed_org_ids"],
        "allowed_resources" in restrictions and asked.resource not in restrictions["allowed_resources"],
        "expires_at" in restrictions and asked.at >= restrictions["expires_at"],
        restrictions.get("non_destructive", False) and takes_away,
        asked.method is not None and asked.method not in restrictions.get("payment_policy", METHODS),
        restrictions.get("read_only", False) and asked.action not in ("list", "read"),
    ]
    return not any(refused)


def some(values):
    return st.lists(st.sampled_from(values), min_size=1, max_size=4, unique=True)


TIMES = [EPOCH + timedelta(days=days) for days in (1, 2, 3, 400)]
RESTRICTIONS = st.fixed_dictionaries(
    {},
    optional={
        "allowed_actions": some(permissions.ACTIONS),
        "allowed_org_ids": some(["own", OTHER_ORG]),
        "allowed_resources": some(permissions.RESOURCES),
        "expires_at": st.sampled_from(TIMES),
        "non_destructive": st.booleans(),
        "payment_policy": some(METHODS),
        "read_only": st.booleans(),
    },
)
ASKED = st.builds(
    Asked,
    st.sampled_from(permissions.ACTIONS),
    st.sampled_from(permissions.RESOURCES),
    st.booleans(),
    st.sampled_from(
        [EPOCH, *(moment + timedelta(seconds=off) for moment in TIMES[:3] for off in (-1, 0, 1))]
    ),
    st.none() | st.sampled_from(METHODS),
)


def chain_of(core, steps):
    """The root token and its descendants, one for each step."""
    tokens, record = [core.seeded.member_token], None
    for where, restrictions in steps:
        if where == "online":
            wire = restrictions | (
                {"expires_at": restrictions["expires_at"].isoformat()} if "expires_at" in restrictions else {}
            )
            body = {"attenuation": wire, "name": "x", "token": tokens[-1]}
            body |= {"attenuated_parent_token_id": record} if record else {}
            # The root calls: it is the held text that is restricted, whatever it may still do itself.
            answer = core.request("POST", "/tokens/attenuate", json_body=body).body
            record = answer["id"]
            tokens.append(answer["token"])
        else:
            tokens.append(offline(core, tokens[-1], **restrictions))
    return tokens


@lab_holds("4.6.attenuate.reduces", "4.6.attenuate.inherits", "4.6.attenuate.readonly")
@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(["online", "offline"]), RESTRICTIONS), max_size=4),
    st.lists(ASKED, min_size=15, max_size=15),
)
def test_chains_of_attenuations_never_widen(shared, steps, asked):
    org_id = shared.seeded.organization_id
    steps = [
        (
            where,
            restrictions
            | (
                {
                    "allowed_org_ids": [
                        org_id if org == "own" else org for org in restrictions["allowed_org_ids"]
                    ]
                }
                if "allowed_org_ids" in restrictions
                else {}
            ),
        )
        for where, restrictions in steps
    ]
    tokens = chain_of(shared, steps)
    for want in asked:
        left = []
        for token in tokens:
            grant = Grant(shared.lab.tokens._open(token), want.at)
            left.append(
                grant.allows(want.action, want.resource, destructive=want.destructive, method=want.method)
            )
        # A child never may what its parent may not.
        assert left == sorted(left, reverse=True)
        # And it may exactly what the restrictions leave.
        expected = [
            all(leaves(restrictions, want, org_id) for _, restrictions in steps[:length])
            for length in range(len(steps) + 1)
        ]
        assert left == expected, (steps, want)
