"""What the Prefect UI shows of a block type: Prefect's own test suite for blocks, and the examples, executed."""

import re

import pytest
from prefect.blocks.abstract import CredentialsBlock
from prefect.blocks.core import Block
from prefect.testing.standard_test_suites import BlockStandardTestSuite

from prefect_assay import blocks
from prefect_assay.lab.testing import LocalLab

TYPES = [
    kind
    for kind in map(blocks.__dict__.get, blocks.__all__)
    if isinstance(kind, type) and issubclass(kind, Block)
]
# A change of one makes every saved block a block of another schema.
CHECKSUMS = {
    "assay-credentials": "sha256:9d9b13f627a3a163f79a9bb2260605509be22ac14b0660acbc4c91393c746cd4",
    "assay-experiment": "sha256:4f665e416fd465454567ea13fa927bd0cb9cc46c38d031fdb0bb9323c5446ad8",
    "assay-local-archive": "sha256:7da6fa97d459ecc89debb64f72525bef04e4dc014138e639d64e3ba751578d5e",
    "assay-s3-archive": "sha256:b864dc0b6348af4c71541171dd39ceedfae2cb71fdc879dbc8de635b838a3625",
    "assay-shared-payment-tokens": "sha256:7bc6c75f604cedeb2c120fc7eac32d138284f87a320c508711e958799da0b5f9",
    "assay-spending-policy": "sha256:f27a1b3af8691d8a962707fd31e0d57c22b3168d7b80237393927da12780e225",
    "assay-webhook-endpoint": "sha256:04d907aab0060f6571ad808e897c10c25dfbdf043acf6798400b124bbe5c46ea",
    "assay-x402-wallet": "sha256:9e5e373f3135726ecccbb01a94567c0c555cb491885411e8ec4d7b56c616a55d",
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
    saved = {(type(made), "BLOCK_NAME"): made for made in (credentials, policy, archive)}
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
