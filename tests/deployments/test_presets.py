"""The saved account becomes the default of the forms, and never replaces what somebody has chosen."""

from types import SimpleNamespace
from uuid import uuid4

from prefect.exceptions import ObjectNotFound

from prefect_assay.deployments.presets import fill_account_into_forms

CAMPAIGN, LOOP = "campaign/assay-campaign", "design-build-test/assay-design-build-test"


class Server:
    """Deployments and saved blocks, as far as Prefect's client is asked for them."""

    def __init__(self, *blocks, **deployed):
        self.blocks = {name: SimpleNamespace(id=uuid4()) for name in blocks}
        self.deployed = {
            name: SimpleNamespace(id=name, parameters=parameters) for name, parameters in deployed.items()
        }
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
        matches = [block for block in self.blocks.values() if block.id == id_]
        if not matches:
            raise ObjectNotFound(Exception())
        return matches[0]

    def update_deployment(self, id_, update):
        assert update.model_fields_set == {"parameters"}, "nothing else is changed"
        self.written.append(id_)
        self.deployed[id_].parameters = update.parameters

    def reference(self, block):
        return {"$ref": {"block_document_id": str(self.blocks[block].id)}}


MAIN = "assay-account/main"


def test_the_account_main_becomes_the_default_of_what_people_start():
    server = Server(MAIN, **{CAMPAIGN: {"campaign_id": "c"}, LOOP: {}, "decide/assay-decide": {}})
    assert fill_account_into_forms(server) == (CAMPAIGN, LOOP)
    assert server.deployed[CAMPAIGN].parameters == {"campaign_id": "c", "account": server.reference(MAIN)}
    assert server.deployed["decide/assay-decide"].parameters == {}
    assert fill_account_into_forms(server) == ()
    assert len(server.written) == 2


def test_what_somebody_has_chosen_stays_and_a_deleted_account_is_replaced():
    server = Server(MAIN, "assay-account/team", **{CAMPAIGN: {}, LOOP: {}})
    chosen = {"account": server.reference("assay-account/team")}
    server.deployed[CAMPAIGN].parameters = chosen
    server.deployed[LOOP].parameters = {"account": {"$ref": {"block_document_id": str(uuid4())}}}
    assert fill_account_into_forms(server) == (LOOP,)
    assert server.deployed[CAMPAIGN].parameters == chosen
    assert server.deployed[LOOP].parameters == {"account": server.reference(MAIN)}


def test_a_dry_run_and_a_server_without_deployments_change_nothing():
    server = Server(MAIN, **{CAMPAIGN: {}})
    assert fill_account_into_forms(server, dry_run=True) == (CAMPAIGN,)
    assert server.written == []
    assert fill_account_into_forms(Server(MAIN)) == ()
    assert fill_account_into_forms(Server(**{CAMPAIGN: {}})) == ()


def test_another_name_takes_the_account_of_that_name():
    server = Server("assay-account/lab", MAIN, **{CAMPAIGN: {}})
    assert fill_account_into_forms(server, "lab") == (CAMPAIGN,)
    assert server.deployed[CAMPAIGN].parameters == {"account": server.reference("assay-account/lab")}
