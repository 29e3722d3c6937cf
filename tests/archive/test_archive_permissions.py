"""`bucket-policy.json` is enough for an archive, and none of its actions can go, on an S3 server that enforces policies."""

import json
from contextlib import contextmanager
from pathlib import Path

import boto3
import httpx
import pytest

from prefect_assay.archive.s3 import S3Store, client_config
from prefect_assay.errors import ArchiveError
from support.archive.moto_s3 import moto_server

BUCKET = "assay-results"
POLICY = json.loads(
    (Path(__file__).parents[2] / "deployments" / "production" / "bucket-policy.json")
    .read_text()
    .replace("BUCKET", BUCKET)
)
ACTIONS = [
    action
    for statement in POLICY["Statement"]
    for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
]
HINTS = ("team/LEDGERS/OPEN/campaign-c.json", "team/LEDGERS/HOMES/h1/2026-11-27.json")
SET_UP = 4  # the calls of `user_with`, which need no permission


@contextmanager
def user_with(policy):
    """A store for a user who has this policy and nothing else."""
    with moto_server() as endpoint:
        root = {"endpoint_url": endpoint, "region_name": "us-east-1"}
        keys = {"aws_access_key_id": "root", "aws_secret_access_key": "root"}
        assert httpx.post(f"{endpoint}/moto-api/reset-auth", content=str(SET_UP)).is_success
        boto3.client("s3", **root, **keys).create_bucket(Bucket=BUCKET)
        iam = boto3.client("iam", **root, **keys)
        iam.create_user(UserName="archive")
        iam.put_user_policy(UserName="archive", PolicyName="archive", PolicyDocument=json.dumps(policy))
        made = iam.create_access_key(UserName="archive")["AccessKey"]
        user_keys = {
            "aws_access_key_id": made["AccessKeyId"],
            "aws_secret_access_key": made["SecretAccessKey"],
        }
        try:
            yield S3Store(BUCKET, boto3.client("s3", **root, **user_keys, config=client_config(endpoint)))
        finally:
            httpx.post(f"{endpoint}/moto-api/reset-auth", content="inf")
            httpx.post(f"{endpoint}/moto-api/reset")


def without(action):
    kept = []
    for statement in POLICY["Statement"]:
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        rest = [one for one in actions if one != action]
        kept += [{**statement, "Action": rest}] if rest else []
    return {**POLICY, "Statement": kept}


def everything(store):
    """Every kind of request that an archive makes, and whether what it leaves behind is right."""
    store.probe("team")
    assert store.put_if_absent("team/small", b"1", "text/plain")
    assert not store.put_if_absent("team/small", b"2", "text/plain")
    assert store.read("team/small") == b"1"
    assert store.find("team/absent") is None
    assert store.stat("team/small").size == 1
    # Without the permission to list, S3 says 403 and not 404 of an object that is absent.
    assert sorted(store.keys("team")) == ["team/small"]
    assert [key for key, _ in store.strays("team")] == [], "no probe is left"
    for hint in HINTS:
        assert store.put_if_absent(hint, b"1", "application/json")
        assert store.delete(hint)


def test_the_policy_is_enough():
    with user_with(POLICY) as store:
        everything(store)


def test_without_the_permission_to_delete_a_hint_stays():
    with user_with(without("s3:DeleteObject")) as store:
        for hint in HINTS:
            assert store.put_if_absent(hint, b"1", "application/json")
            assert store.delete(hint) is False
            assert store.read(hint) == b"1"


@pytest.mark.parametrize("action", ACTIONS)
def test_no_action_can_go(action):
    with user_with(without(action)) as store, pytest.raises((ArchiveError, AssertionError)):
        everything(store)
