"""What the Prefect UI shows of a block type: Prefect's own test suite for blocks, and the examples, executed."""

import re

import pytest
from prefect.blocks.abstract import CredentialsBlock
from prefect.blocks.core import Block
from prefect.testing.standard_test_suites import BlockStandardTestSuite

from assay_lab.testing import LocalLab
from prefect_assay import blocks

TYPES = [
    kind
    for kind in map(blocks.__dict__.get, blocks.__all__)
    if isinstance(kind, type) and issubclass(kind, Block)
]
# A change of one makes every saved block a block of another schema.
CHECKSUMS = {
    "assay-account": "sha256:d62721ae8e673c69461944de0b8efb4f99d4a5f50bca74ec577b716c42198ccf",
    "assay-credentials": "sha256:cdc3f0c090c51c06143de6905fc96d03d3865fd53b684791bef54d00a5db79f6",
    "assay-experiment": "sha256:ccfa42de1e5d4061d6ecf99fbc82118746ec94efd29abef0060e1b52f1720bbe",
    "assay-local-archive": "sha256:e11c52af1942a9e7f87aaf7cda67c94c45d2cebf0b855458f097ad6148af1b2c",
    "assay-s3-archive": "sha256:44af7542a5785f4a8745cae93c749a1373afbb7ae73e347a5296013153382e94",
    "assay-shared-payment-tokens": "sha256:433fadbaed3a85200f341b5e32e919c696d61bf777ccca5ee55174074f340295",
    "assay-spending-policy": "sha256:f1c370f060049dab8723769a35a448f68d56617abe11d5f6b72f3c2c28b363d9",
    "assay-webhook-endpoint": "sha256:861e42064f5a26b077eb0eacc1f8009e7ce49a9016b247a7760facca18247a09",
    "assay-x402-wallet": "sha256:7e8c1e1bc144df59935839b16b719f398ec0178d026216009c83ff74535e4b93",
}


@pytest.fixture(params=TYPES, ids=lambda kind: kind.__name__)
def block(request):
    return request.param


class TestBlockTypes(BlockStandardTestSuite):
    @pytest.fixture
    def block(self, block):
        return block

    def test_has_a_valid_image(self, block):
        """Offline: the logo is in the folder of the logos of Prefect's own blocks."""
        from prefect.blocks.system import Secret

        assert str(block._logo_url).rpartition("/")[0] == str(Secret._logo_url).rpartition("/")[0]


@pytest.fixture(scope="module")
def lab():
    with LocalLab() as running:
        yield running


@pytest.fixture
def documents(lab, monkeypatch, tmp_path):
    """Saved blocks, in memory."""
    credentials = blocks.AssayCredentials(base_url=lab.base_url, token=lab.token)
    policy = blocks.SpendingPolicy(per_experiment_cents=100, per_campaign_cents=100)
    archive = blocks.LocalArchive(root=str(tmp_path))
    account = blocks.AssayAccount(credentials=credentials, policy=policy, archive=archive)
    saved = {(type(made), "BLOCK_NAME"): made for made in (credentials, policy, archive, account)}
    monkeypatch.setattr(Block, "save", lambda self, name, **_: saved.__setitem__((type(self), name), self))
    monkeypatch.setattr(Block, "load", classmethod(lambda cls, name, **_: saved[cls, name]))
    return saved


def test_its_example_runs(block, documents):
    (example,) = re.findall(r"```python\n(.*?)```", block.get_code_example(), flags=re.DOTALL)
    exec(compile(example, block.__name__, "exec"), {})
    made = documents[block, "BLOCK_NAME"]
    assert isinstance(made, block)
    within = [getattr(made, name) for name in block.model_fields]
    assert [other for other in within if isinstance(other, Block) and other not in documents.values()] == []


def test_the_schema_is_unchanged(block):
    assert block._calculate_schema_checksum() == CHECKSUMS[block.get_block_type_slug()]


def test_credentials_are_credentials_for_prefect():
    assert issubclass(blocks.AssayCredentials, CredentialsBlock)
