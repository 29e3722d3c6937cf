"""What the Prefect UI shows of a block type: Prefect's own test suite for blocks, and the examples, executed."""

import json
import os
import re
from pathlib import Path

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
SCHEMAS = Path(__file__).parent / "schemas.json"


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
    policy = blocks.SpendingPolicy(per_experiment_usd=1, per_campaign_usd=1)
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
    """After a change, every saved block has another schema: `UPDATE_GOLDEN=1 pytest tests/blocks/test_block_types.py`."""
    slug, checksum = block.get_block_type_slug(), block._calculate_schema_checksum()
    golden = json.loads(SCHEMAS.read_text(encoding="utf-8"))
    if os.environ.get("UPDATE_GOLDEN"):
        golden[slug] = checksum
        SCHEMAS.write_text(json.dumps(golden, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert checksum == golden[slug]


def test_credentials_are_credentials_for_prefect():
    assert issubclass(blocks.AssayCredentials, CredentialsBlock)
