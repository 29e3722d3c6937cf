"""Materialization events of archived data, in the form in which Prefect emits them for `@materialize`.

A task of this package runs again after every wake-up, so the decorator would repeat its events. These have an id made of
the archived version, and are sent once. A test compares their form with Prefect's. Pure.
"""

import hashlib
import re
from typing import Any, ClassVar, Final

from prefect_assay.campaigns.events.kinds import Fact

MATERIALIZED_BY: Final = "prefect-assay"
_KEY_MAX: Final = 512  # Prefect's limit
_REFUSED: Final = re.compile(r"""[\s\0#?&%"'<>\[\]{}|\\^`]""")  # by Prefect, in a key
_VERSION: Final = re.compile(r"/v\d{3,}(/[^/]+)?$")
# Prefect allows a hundred related resources, and the run with its tags needs some.
UPSTREAM_MAX: Final = 60

ASSETS: Final = {
    "experiment": "Archived results of an experiment",
    "table": "All measured rows of a campaign",
    "report": "The report of a campaign",
    "round": "The measurements of a round",
}


class Materialization(Fact):
    """A version of an asset exists. `upstream` are the keys of the assets that it was made from."""

    event: ClassVar = "prefect.asset.materialization.succeeded"
    resource: ClassVar = "{key}"
    identity: ClassVar = ("version", "upstream")

    key: str
    title: str
    description: str
    version: str  # the manifest's digest, or another name of the content
    upstream: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies it

    @property
    def name(self) -> str:
        """The asset's name."""
        return self.title

    def properties(self) -> dict[str, str]:
        """As Prefect writes an asset's properties."""
        return {"prefect.asset.description": self.description}

    def lineage(self) -> list[dict[str, str]]:
        """As Prefect writes what an asset was made from, and by what."""
        roles = [(key, "asset") for key in self.upstream[:UPSTREAM_MAX]]
        roles.append((MATERIALIZED_BY, "asset-materialized-by"))
        return [{"prefect.resource.id": key, "prefect.resource.role": role} for key, role in roles]

    def payload(self) -> dict[str, Any]:
        """The metadata, which Prefect shows with the asset."""
        return {**self.metadata, "version": self.version}


def asset_key(location: str) -> str:
    """The key of the asset at an address of the archive, the same for all its versions: `s3://...` or `file:///...`."""
    bare = _VERSION.sub("", location.rstrip("/"))
    address = bare if re.match(r"^[a-z0-9]+://", bare) else f"file://{bare}"
    if len(address) > _KEY_MAX:
        scheme, _, path = address.partition("://")
        address = f"{scheme}://{hashlib.sha256(path.encode()).hexdigest()}/{path[-300:]}"
    return _REFUSED.sub("_", address)
