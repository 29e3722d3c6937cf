"""Random orders, valid and broken in several ways, judged by the client and by the lab: both must say the same.

What only the service knows is kept out: every target is in the catalog and has a price. The client judges the order
as a whole, as its `create` does before anything is sent; the lab judges the bytes that it would have sent.
"""

import json
import math
import random
from typing import Any

from pydantic import ValidationError

from assay_lab.api import ROUTES
from assay_lab.kernel.refusals import Refusal
from lab_support.core import BY_LOT, PRICED, lab_core
from prefect_assay.errors import InputError, InvalidRequest, InvalidSpec
from prefect_assay.service.assays import BINDING_TYPES, METHOD_TYPES
from prefect_assay.service.client.http.request import Request
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import ExperimentType
from support.client import operations

_CREATE = next(route for route in ROUTES if (route.method, route.path) == ("POST", "/experiments"))
_LETTERS = "ACDEFGHIKLMNPQRSTVWY"
_FREE = (
    None, 0, 1, -1, 2**70, 0.5, "", "x", "N", "C", "n", True, False, [], {}, ["N"], {"ch": "a"}, "\ud800",
    math.nan,
)  # fmt: skip
_TYPES = (
    "ScFv", "scfv", "sc_fv", "FAB", "fab", "SingleChain", "single_chain", "IgG", "igg", "IGG", "nanobody", "",
    " fab", 3,
)  # fmt: skip
_TARGETS = (
    PRICED["id"], BY_LOT["id"].upper(), PRICED["id"].replace("-", ""), "{" + PRICED["id"] + "}",
    "urn:uuid:" + PRICED["id"], PRICED["id"] + " ", PRICED["id"][:-1], PRICED["id"][:-1] + "\u0663", "EGFR", "",
    None,
)  # fmt: skip
_ODD_RESIDUES = (
    "", ":", "MK:", ":MK", "M::K", "MKX", "mk*", "M K", "MK\u017f", "M\u0130K", "MK\n", "MK1", "B", "MKé",
)  # fmt: skip
_ODD_NAMES = ("", " ", "\t", "a\n", " a", "Ω", "a" * 300, "\ud800", '"', "provider_x", "text", "object")
_URLS = (
    "https://example.org/hook", "https://example.org:8443/x?y=1", "http://example.org", "https://", "https://a b", "HTTPS://EXAMPLE.ORG",
    "https://[::1", "https://example.org:99999", "https://example.org:0", "https:///x", "//example.org", "", "https://e\u0445.org/x", "https://user@example.org",
    "https://example.org\n", "https://example.org/\x7f",
)  # fmt: skip


class SpecFuzz:
    """`one()` makes one order and compares the verdicts. `agreed` counts what both took."""

    def __init__(self, seed: int) -> None:
        self.core = lab_core()
        self._chance = random.Random(seed)
        self.agreed = 0

    def close(self) -> None:
        self.core.close()

    def one(self) -> None:
        raw = self._order()
        try:
            request = CreateRequest.model_validate(raw)
        except ValidationError:
            self._refused_by_the_model(raw)
            return
        content, local = judged(request)
        if content is None or "not JSON" in local:  # it would travel as something else
            return
        lab = self._lab(content)
        assert bool(local) == bool(lab), (
            f"client: {local or 'fine'}\nlab: {lab or 'fine'}\norder: {content!r}"
        )
        self.agreed += not local

    def _refused_by_the_model(self, raw: dict[str, Any]) -> None:
        """A type that is wrong: the lab refuses it as well."""
        if "payment_method" in raw:
            return
        try:
            content = json.dumps(raw, allow_nan=False).encode()
        except ValueError:
            return
        assert self._lab(content), content

    def _lab(self, content: bytes) -> str:
        headers = {
            "authorization": f"Bearer {self.core.seeded.member_token}",
            "content-type": "application/json",
        }
        try:
            self.core.perform(_CREATE, path={}, query={}, headers=headers, body=content)
        except Refusal as refusal:
            if refusal.status not in (400, 422):
                raise
            return refusal.message
        return ""

    def _order(self) -> dict[str, Any]:
        """A valid order, broken in none to three places."""
        chance = self._chance
        kind = chance.choice(list(ExperimentType))
        count = chance.choice((4, 8, 28)) if kind == ExperimentType.EPITOPE_BINNING else chance.randint(1, 6)
        spec: dict[str, Any] = {
            "experiment_type": kind,
            "sequences": {f"s{n}": {"aa_string": self._residues()} for n in range(count)},
        }
        if kind in METHOD_TYPES:
            spec["method"] = chance.choice(("bli", "spr"))
        if kind in BINDING_TYPES:
            spec["target_id"] = chance.choice(_TARGETS[:2])
        order: dict[str, Any] = {"experiment_spec": spec, "name": "x"}
        for _ in range(chance.choice((0, 0, 1, 1, 2, 3))):
            if not isinstance(spec["sequences"], dict):
                break
            chance.choice((self._break_spec, self._break_spec, self._break_sequences, self._break_order))(
                order
            )
        return order

    def _residues(self) -> str:
        chains = (
            "".join(self._chance.choices(_LETTERS, k=self._chance.randint(3, 12)))
            for _ in range(self._chance.choice((1, 1, 2)))
        )
        text = ":".join(chains)
        return text.lower() if self._chance.random() < 0.2 else text

    def _break_spec(self, order: dict[str, Any]) -> None:
        chance, spec = self._chance, order["experiment_spec"]
        match chance.randrange(8):
            case 7:
                fields = [name for name in ExperimentSpec.model_fields if name != "target_id"]
                spec[chance.choice(fields)] = chance.choice((5, "x", "3", 2.5, ["a"], {"a": 1}, True))
            case 0:
                spec["experiment_type"] = chance.choice(list(ExperimentType))
            case 1:
                spec["method"] = chance.choice(("bli", "spr", None))
            case 2:
                spec["target_id"] = chance.choice(_TARGETS)
            case 3:
                spec["n_replicates"] = chance.choice((0, 1, 3, 5, 6, -1, 2**40, None))
            case 4:
                spec["antigen_concentrations"] = chance.choice(
                    ([], [0], [-0.0], [1.0, 10], [-1e-9], [math.nan], [math.inf], [1e308], None, [5] * 50)
                )
            case 5:
                spec["parameters"] = chance.choice(
                    ({}, {"a": chance.choice(_FREE)}, {"a": {"b": [chance.choice(_FREE)]}}, None)
                )
            case _:
                count = chance.randrange(31)
                names = [*spec["sequences"], *(f"more{n}" for n in range(30))][:count]
                spec["sequences"] = {
                    name: spec["sequences"].get(name, {"aa_string": self._residues()}) for name in names
                }

    def _break_sequences(self, order: dict[str, Any]) -> None:
        chance, sequences = self._chance, order["experiment_spec"]["sequences"]
        if not sequences or not all(isinstance(value, dict) for value in sequences.values()):
            return
        name = chance.choice(list(sequences))
        match chance.randrange(6):
            case 5:
                wrong = chance.choice(
                    ({"aa_string": 5}, {"control": "maybe"}, {"metadata": "x"}, {"metadata": []}, {"tag": 1})
                )
                sequences[name] = sequences[name] | wrong
            case 0:
                sequences[name] = sequences[name] | {"aa_string": chance.choice(_ODD_RESIDUES)}
            case 1:
                sequences[chance.choice(_ODD_NAMES)] = {"aa_string": self._residues()}
            case 2:
                sequences["twin"] = {
                    "aa_string": str(sequences[name].get("aa_string", "")).swapcase(),
                    "metadata": chance.choice((None, {}, self._metadata())),
                }
            case 3:
                sequences[name] = sequences[name] | {"control": chance.choice((True, False))}
            case _:
                sequences[name] = sequences[name] | {"metadata": self._metadata()}

    def _metadata(self) -> dict[str, Any]:
        chance = self._chance
        keys = chance.sample(
            ("type", "tag_location", "VH", "VL", "framework_regions", "linker", "chain_order", "note"),
            chance.randint(0, 5),
        )
        metadata: dict[str, Any] = {key: chance.choice(_FREE) for key in keys}
        if "type" in metadata:
            metadata["type"] = chance.choice(_TYPES)
        if "framework_regions" in metadata:
            metadata["framework_regions"] = chance.choice(
                ({"ch": "a", "cl": "b"}, {"ch": "a", "cl": chance.choice(_FREE)}, chance.choice(_FREE))
            )
        return metadata

    def _break_order(self, order: dict[str, Any]) -> None:
        chance = self._chance
        match chance.randrange(5):
            case 0:
                order["name"] = chance.choice(("", " ", "\t\n", "x" * 500, "Ω", "\x00"))
            case 1:
                order["webhook_url"] = chance.choice(_URLS)
            case 2:
                order["webhook_secret"] = chance.choice(("x" * 31, "x" * 32, "é" * 32, "", " " * 32))
            case 3:
                order["payment_method"] = chance.choice(("x402-exact", "mpp-spt", "async_invoice"))
            case _:
                order["auto_accept_quote"] = True


def judged(request: CreateRequest) -> tuple[bytes | None, str]:
    """What an unchecked request would send, None where JSON cannot say it, and why the client does not send it."""
    try:
        content = Request(method="POST", path="/experiments", json=request.wire()).content()
        operations.experiments.create(request)
    except (InvalidRequest, InvalidSpec) as error:
        return content, str(error)
    except InputError:
        return None, ""
    return content, ""
