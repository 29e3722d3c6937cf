"""Saved blocks become defaults of the forms, and never replace what somebody has chosen."""

from types import SimpleNamespace
from uuid import uuid4

from prefect.exceptions import ObjectNotFound

from prefect_assay.deployments.presets import preset_blocks

CAMPAIGN, LOOP = "campaign/assay-campaign", "design-build-test/assay-design-build-test"


class Server:
    """Deployments and saved blocks, as far as Prefect's client is asked for them."""

    def __init__(self, *blocks, **deployed):
        self.blocks = {name: SimpleNamespace(id=uuid4()) for name in blocks}
        self.deployed = {name: SimpleNamespace(id=name, parameters=given) for name, given in deployed.items()}
        self.written = []

    def read_deployment_by_name(self, name):
        if name not in self.deployed:
            raise ObjectNotFound(Exception())
        return self.deployed[name]

    def read_block_document_by_name(self, name, slug, *, include_secrets):
        assert not include_secrets
        if f"{slug}/{name}" not in self.blocks:
            raise ObjectNotFound(Exception())
        return self.blocks[f"{slug}/{name}"]

    def read_block_document(self, id_, include_secrets):
        assert not include_secrets
        found = [block for block in self.blocks.values() if block.id == id_]
        if not found:
            raise ObjectNotFound(Exception())
        return found[0]

    def update_deployment(self, id_, update):
        assert update.model_fields_set == {"parameters"}, "nothing else is changed"
        self.written.append(id_)
        self.deployed[id_].parameters = update.parameters

    def reference(self, block):
        return {"$ref": {"block_document_id": str(self.blocks[block].id)}}


OWN = ("assay-credentials/main", "assay-spending-policy/main", "assay-local-archive/main")


def test_blocks_named_main_become_the_defaults_of_what_people_start():
    server = Server(*OWN, **{CAMPAIGN: {"deadline_days": 30}, LOOP: {}, "decide/assay-decide": {}})
    filled = ("credentials", "policy", "archive")
    assert preset_blocks(server) == {CAMPAIGN: filled, LOOP: filled}
    assert server.deployed[CAMPAIGN].parameters == {
        "deadline_days": 30,
        "credentials": server.reference(OWN[0]),
        "policy": server.reference(OWN[1]),
        "archive": server.reference(OWN[2]),
    }
    assert server.deployed["decide/assay-decide"].parameters == {}
    assert preset_blocks(server) == {}
    assert len(server.written) == 2


def test_what_somebody_has_chosen_stays_and_a_deleted_block_is_replaced():
    server = Server(*OWN, "assay-credentials/team", **{CAMPAIGN: {}})
    gone = {"$ref": {"block_document_id": str(uuid4())}}
    chosen = {"credentials": server.reference("assay-credentials/team"), "archive": gone, "policy": None}
    server.deployed[CAMPAIGN].parameters = chosen
    assert preset_blocks(server) == {CAMPAIGN: ("archive",)}
    found = server.deployed[CAMPAIGN].parameters
    assert found == chosen | {"archive": server.reference("assay-local-archive/main")}


def test_of_two_archives_of_one_name_none_is_chosen():
    server = Server("assay-local-archive/main", "assay-s3-archive/main", **{CAMPAIGN: {}})
    assert preset_blocks(server) == {}


def test_a_dry_run_and_a_server_without_deployments_change_nothing():
    server = Server(*OWN, **{CAMPAIGN: {}})
    assert preset_blocks(server, dry_run=True) == {CAMPAIGN: ("credentials", "policy", "archive")}
    assert server.written == []
    assert preset_blocks(Server(*OWN)) == {}


def test_another_name_takes_the_blocks_of_that_name():
    server = Server("assay-credentials/lab", *OWN, **{CAMPAIGN: {}})
    assert preset_blocks(server, "lab") == {CAMPAIGN: ("credentials",)}
