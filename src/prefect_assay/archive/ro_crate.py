"""Makes `ro-crate-metadata.json`: it describes a folder of the archive for readers that do not know this package.

RO-Crate 1.1 as JSON-LD, from a manifest and the caller's words about the measurement. Pure functions: the same input
gives the same bytes. No address of the service appears, and so no link that works without a token.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

from prefect_assay.archive.archived import ArchivedFile, Manifest
from prefect_assay.archive.layout import (
    CLAIM_NAME,
    CRATE_NAME,
    MANIFEST_NAME,
    safe_code,
    version_folder,
)
from prefect_assay.service.assays import QuantityKind, find_assay_type
from prefect_assay.service.models.base import Model
from prefect_assay.service.words import in_words, many

_PROFILE: Final = "https://w3id.org/ro/crate/1.1"
# The context of 1.1 is older than schema.org's term for the digest of a file.
_CONTEXT: Final = [f"{_PROFILE}/context", {"sha256": "http://schema.org/sha256"}]

_METHODS: Final = {"bli": "bio-layer interferometry (BLI)", "spr": "surface plasmon resonance (SPR)"}

_KNOWN: Final = {
    "results.csv": "results table: one row per replicate and one summary per design",
    "mapping.json": "mapping: which fields of the raw answers the results table was made of, as declared",
    "spec.json": "specification: the designs and the assay, as ordered",
    "receipt.json": "receipt of the payment, without secrets",
    "plan.json": "plan of the campaign: its experiments, in their order",
}
_FOLDERS: Final = {
    "raw/": "raw answer of the service, byte for byte",
    "packages/": "data package of the laboratory: raw curves and fits",
}
_SEALS: Final = {
    MANIFEST_NAME: "manifest: size and SHA-256 of every file, written last",
    CLAIM_NAME: "claim: names and digests of this version, written first",
}


class Measurement(Model):
    """What the manifest of an experiment does not say: words of the order, such as `affinity` and `bli`.

    `licence` is the address of a licence, or its name; None is unknown.
    """

    experiment_type: str
    method: str | None = None
    target: str | None = None
    designs: int
    licence: str | None = None


def ro_crate(manifest: Manifest, about: Measurement) -> bytes:
    """Describe one version of an experiment, by its manifest without the description itself."""
    method = _METHODS.get(about.method or "", about.method)
    kind = find_assay_type(about.experiment_type)
    variables = _describe_variables(kind.measured if kind else ())
    described = f"{in_words(about.experiment_type)} measurement of {about.designs} protein designs"
    root = {
        "name": f"{manifest.experiment_code}, version {manifest.version}",
        "description": f"{described}{f' by {method}' if method else ''}, campaign {manifest.campaign_id}. "
        f"Results reported: {manifest.results_status}.",
        "identifier": manifest.experiment_id,
        "version": str(manifest.version),
        "datePublished": manifest.created_at.isoformat(),
        "measurementTechnique": method or in_words(about.experiment_type),
        "variableMeasured": _link_entities(variables),
        "about": about.target and f"target {about.target}",
        "license": about.licence,
    }
    files = [_describe_file(file) for file in manifest.files] + [
        _drop_empty({"@id": name, "@type": "File", "encodingFormat": "application/json", "description": text})
        for name, text in _SEALS.items()
    ]
    return _build_crate(root, files, variables)


def campaign_crate(manifest: Manifest, sources: tuple[Manifest, ...]) -> bytes:
    """Describe a whole campaign, next to a version of its report: the report's files, and a dataset per manifest of it.

    The datasets have relative addresses, so a moved or copied archive keeps them.
    """
    datasets = [
        {
            "@id": f"#{source.experiment_code}-v{source.version:03d}",
            "@type": "Dataset",
            "name": f"{source.experiment_code}, version {source.version}",
            "description": f"{many(len(source.files), 'file')}, results reported: {source.results_status}",
            "identifier": source.experiment_id,
            "datePublished": source.created_at.isoformat(),
            "url": version_folder(f"../../{safe_code(source.experiment_code)}", source.version),
        }
        for source in sources
    ]
    root = {
        "name": f"Campaign {manifest.campaign_id}",
        "description": f"Report, tables and plots of a campaign, made of {len(sources)} archived versions.",
        "identifier": manifest.campaign_id,
        "version": str(manifest.version),
        "datePublished": manifest.created_at.isoformat(),
        "mentions": _link_entities(datasets),
    }
    return _build_crate(root, [_describe_file(file) for file in manifest.files], datasets)


def _build_crate(root: dict[str, Any], files: list[dict[str, Any]], others: list[dict[str, Any]]) -> bytes:
    graph = [
        {
            "@id": CRATE_NAME,
            "@type": "CreativeWork",
            "conformsTo": {"@id": _PROFILE},
            "about": {"@id": "./"},
        },
        _drop_empty({"@id": "./", "@type": "Dataset", **root, "hasPart": _link_entities(files)}),
        *files,
        *others,
    ]
    text = json.dumps({"@context": _CONTEXT, "@graph": graph}, indent=2, ensure_ascii=False)
    return f"{text}\n".encode()


def _describe_file(file: ArchivedFile) -> dict[str, Any]:
    folder = next((text for start, text in _FOLDERS.items() if file.path.startswith(start)), None)
    what = "data package" if file.path.startswith("packages/") else "list of the service"
    absent = file.path.endswith(".absent.json")
    return _drop_empty(
        {
            "@id": file.path,
            "@type": "File",
            "name": file.path.rpartition("/")[2],
            "description": f"note in place of a {what}" if absent else _KNOWN.get(file.path, folder),
            "encodingFormat": file.content_type,
            "contentSize": str(file.size),
            "sha256": file.sha256,
        }
    )


def _describe_variables(quantities: Iterable[QuantityKind]) -> list[dict[str, Any]]:
    return [
        _drop_empty(
            {
                "@id": f"#{kind.column}",
                "@type": "PropertyValue",
                "name": kind.column,
                "description": kind.description,
                "unitText": kind.unit_text,
                "unitCode": kind.unit_term,
            }
        )
        for kind in quantities
    ]


def _link_entities(entities: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [{"@id": entity["@id"]} for entity in entities]


def _drop_empty(entity: dict[str, Any]) -> dict[str, Any]:
    """The entity without what is unknown or empty."""
    return {name: value for name, value in entity.items() if value not in (None, [], "")}
