"""Whose credentials sign the requests of an `S3Archive`: keys, temporary keys, a profile, a role, an AwsCredentials block."""

from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from prefect.blocks.core import Block, UnknownBlockType
from pydantic import SecretStr

from prefect_assay.blocks import S3Archive
from prefect_assay.errors import ConfigurationError
from support.services.serving import serving

CONFIG = """
[profile lab]
aws_access_key_id = of-the-profile
aws_secret_access_key = secret
region = eu-central-1

[profile archivist]
role_arn = arn:aws:iam::123456789012:role/archivist
source_profile = lab
region = eu-central-1
"""
ROLE = b"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<AssumedRoleUser><AssumedRoleId>r</AssumedRoleId><Arn>a</Arn></AssumedRoleUser>
<Credentials><AccessKeyId>of-the-role</AccessKeyId><SecretAccessKey>secret</SecretAccessKey>
<SessionToken>token-of-the-role</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>
</AssumeRoleResult></AssumeRoleResponse>"""


class Sts(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        granted = b"Action=AssumeRole&" in asked and b"role%2Farchivist" in asked
        self.send_response(200 if granted else 400)
        self.end_headers()
        self.wfile.write(ROLE)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def sts(monkeypatch):
    with serving(HTTPServer(("127.0.0.1", 0), Sts)) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", address)
        yield


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch):
    file = tmp_path / "aws-config"
    file.write_text(CONFIG)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def signer(**fields):
    """The key id and the session token that sign a request."""
    client = S3Archive(bucket="b", **{"region": "eu-central-1", **fields}).get_store()._client
    address = client.generate_presigned_url("get_object", Params={"Bucket": "b", "Key": "k"})
    asked = parse_qs(urlsplit(address).query)
    key_id = (asked.get("AWSAccessKeyId") or [asked["X-Amz-Credential"][0].split("/")[0]])[0]
    return key_id, (asked.get("x-amz-security-token") or asked.get("X-Amz-Security-Token") or [None])[0]


def test_keys_sign_with_their_session_token():
    keys = {"access_key_id": "of-the-block", "secret_access_key": "secret"}
    assert signer(**keys) == ("of-the-block", None)
    assert signer(**keys, session_token="temporary") == ("of-the-block", "temporary")


def test_a_profile_signs_and_leaves_other_archives_alone():
    assert signer(profile="lab", region=None) == ("of-the-profile", None)
    assert signer(access_key_id="mine", secret_access_key="secret") == ("mine", None)


def test_a_profile_may_assume_a_role(sts):
    assert signer(profile="archivist") == ("of-the-role", "token-of-the-role")


def test_a_profile_that_the_worker_does_not_have_is_named():
    with pytest.raises(ConfigurationError, match=r"'b' cannot be opened: .*missing.*profile"):
        S3Archive(bucket="b", profile="missing").get_store()


def test_an_aws_credentials_block_signs_and_its_secrets_are_hidden(monkeypatch):
    saved = SimpleNamespace(
        get_boto3_session=lambda: boto3.Session("of-aws-credentials", "secret-of-it", "its-token"),
        aws_access_key_id="of-aws-credentials",
        aws_secret_access_key=SecretStr("secret-of-it"),
        aws_session_token="its-token",
    )
    loaded = {"aws-credentials/lab-account": saved}
    monkeypatch.setattr(Block, "load", lambda name, **_: loaded[name])
    assert signer(aws_credentials="lab-account") == ("of-aws-credentials", "its-token")
    store = S3Archive(bucket="b", region="eu-central-1", aws_credentials="lab-account").get_store()
    assert set(store._hidden) == {"of-aws-credentials", "secret-of-it", "its-token"}


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (ValueError("Unable to find"), "save an AwsCredentials block"),
        (UnknownBlockType(), "install prefect-aws"),
    ],
)
def test_an_aws_credentials_block_that_cannot_be_loaded_is_named(monkeypatch, error, advice):
    def load(_name, **_):
        raise error

    monkeypatch.setattr(Block, "load", load)
    with pytest.raises(ConfigurationError, match=f"aws-credentials/lab cannot be loaded; {advice}"):
        S3Archive(bucket="b", aws_credentials="lab").get_store()
