"""Names in the archive: `<prefix>/<campaign>/<experiment code>/v<NNN>/<path>`. Pure functions.

Any text becomes one safe name: ASCII, one case, no traversal, nothing that a file system reserves. Different texts get
different names, even where case is ignored: a safe text is kept, any other gets a digest of itself after a `~`.
"""

import hashlib
import re
import unicodedata
from typing import Final

from prefect_assay.archive.store import check_key, join_key
from prefect_assay.errors import ArchiveError

NAME_LENGTH: Final = 80
PATH_DEPTH: Final = 8
PREFIX_LENGTH: Final = 200  # with the lengths above every key stays below the 1024 bytes of S3
MANIFEST_NAME: Final = "manifest.json"
CLAIM_NAME: Final = "claim.json"
CRATE_NAME: Final = "ro-crate-metadata.json"
LEDGERS_FOLDER: Final = (
    "LEDGERS"  # upper case, so that no campaign has this name; see prefect_assay.orders.ledger
)
# A campaign's plan, table and report lie next to its experiments, whose codes always have a hyphen (contract 2.1).
PLAN_CODE: Final = "PLAN"
PLAN_PATH: Final = "plan.json"
TABLE_CODE: Final = "TABLE"
TABLE_PATH: Final = "results.csv"
REPORT_CODE: Final = "REPORT"
REPORT_PATH: Final = "report.html"
CAMPAIGN_CODES: Final = frozenset({PLAN_CODE, TABLE_CODE, REPORT_CODE})  # no experiments
VERSIONS_FOLDER: Final = "VERSIONS"  # in the ledgers' folder: the register of complete versions
IDENTITY_FOLDER: Final = "IDENTITY"  # likewise: whose logs they are
CAMPAIGN_LOGS_FOLDER: Final = "CAMPAIGNS"  # likewise: the logs of campaigns; see orders.ledger.campaign_log
LOOP_LOGS_FOLDER: Final = "LOOPS"  # likewise: the logs of loops
OPEN_FOLDER: Final = "OPEN"  # likewise: hints that say which campaigns and loops are open
HOMES_FOLDER: Final = (
    "HOMES"  # likewise: hints that say when each Prefect home last swept; see orders.ledger.homes
)
HINT_FOLDERS: Final = frozenset(
    {OPEN_FOLDER, HOMES_FOLDER}
)  # nothing depends on them, so they may be deleted
# What is not an organization's ledger in the ledgers' folder.
NO_LEDGERS: Final = frozenset(
    {VERSIONS_FOLDER, IDENTITY_FOLDER, CAMPAIGN_LOGS_FOLDER, LOOP_LOGS_FOLDER, *HINT_FOLDERS}
)
TABLES_FOLDER: Final = "TABLES"  # upper case, as above; see prefect_assay.analysis.tables
LOOPS_FOLDER: Final = "LOOPS"  # likewise; see prefect_assay.campaigns.loops

_DIGEST_LENGTH: Final = 12
_SUFFIX: Final = re.compile(r"(\.[a-z0-9]{1,8}){1,2}$")
_LOWER: Final = re.compile(r"[a-z0-9_][a-z0-9._-]*")
_UPPER: Final = re.compile(r"[A-Z0-9_][A-Z0-9._-]*")
_VERSION: Final = re.compile(r"v(\d{3,6})")
_TABLE: Final = re.compile(
    rf"(?:.*/)?{TABLES_FOLDER}/(?:designs/[^/]+|results/[^/]+/[^/]+|candidates/[^/]+/\d{{6}})\.parquet"
)
_HINT: Final = re.compile(
    rf"(?:.*/)?{LEDGERS_FOLDER}/(?:{OPEN_FOLDER}/(?:campaign|loop)-[^/]+\.json"
    rf"|{HOMES_FOLDER}/[^/]+/\d{{4}}-\d\d-\d\d\.json)"
)
# Device names of Windows, with or without a suffix, and everything that looks like a version folder.
_RESERVED: Final = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?|v\d+", re.IGNORECASE)


def safe_name(text: str) -> str:
    """One safe path segment for any text, in lower case."""
    return text if _is_safe_name(text, _LOWER) else _with_digest(text)


def safe_code(code: str) -> str:
    """One safe path segment for an experiment code, in upper case."""
    return code if _is_safe_name(code, _UPPER) else _with_digest(code).upper()


def safe_path(path: str) -> str:
    """A safe relative path for any text, at most eight segments deep."""
    return "/".join(safe_name(part) for part in path.split("/", PATH_DEPTH - 1))


def safe_prefix(prefix: str) -> str:
    """The user's prefix without slashes at its ends; ArchiveError unless it is a plain relative path."""
    stripped = prefix.strip("/")
    parts = stripped.split("/") if stripped else []
    plain = all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._=-]*", part) for part in parts)
    if not plain or len(stripped) > PREFIX_LENGTH:
        raise ArchiveError(
            f"the archive prefix {prefix!r} is not usable: give a relative path of ASCII letters, digits and "
            f"'._=-', not starting with a dot, of at most {PREFIX_LENGTH} characters"
        )
    return stripped


def experiment_folder(prefix: str, campaign_id: str, experiment_code: str) -> str:
    """The folder of one experiment, which holds its versions."""
    return join_key(safe_prefix(prefix), safe_name(campaign_id), safe_code(experiment_code))


def version_folder(folder: str, version: int) -> str:
    """The folder of one version of an experiment, `.../v001`."""
    return join_key(folder, f"v{version:03d}")


def registered_version_key(folder: str) -> str | None:
    """The key of a version's register entry, by the version's folder; None if the folder has no campaign."""
    *root, campaign, code, version = ["", "", *folder.split("/")]
    if not campaign:
        return None
    return join_key(*root, LEDGERS_FOLDER, VERSIONS_FOLDER, campaign, code, f"{version}.json")


def chosen_key(folder: str) -> str:
    """The key of the choice of one version in a document's folder, if it is fixed once; in the register."""
    *root, campaign, code = folder.split("/")
    return join_key(*root, LEDGERS_FOLDER, VERSIONS_FOLDER, campaign, code, "chosen.json")


def registered_place(key: str) -> str | None:
    """The version's folder that a register entry describes; None for any other key."""
    *root, ledgers, versions, campaign, code, name = ["", "", "", "", *key.split("/")]
    version = name.removesuffix(".json")
    if (ledgers, versions) != (LEDGERS_FOLDER, VERSIONS_FOLDER) or version_of(version) is None:
        return None
    return join_key(*root, campaign, code, version)


def tables_folder(prefix: str, table: str = "") -> str:
    """The folder of the all-campaign tables, or of one of them: `designs`, `results` or `candidates`."""
    return join_key(safe_prefix(prefix), TABLES_FOLDER, table)


def table_key(folder: str) -> str:
    """The key of the table that the newest version in the folder of an experiment or a report is written to."""
    *root, campaign, code = folder.split("/")
    if code == REPORT_CODE:
        return join_key(*root, TABLES_FOLDER, "designs", f"{table_name(campaign)}.parquet")
    return join_key(*root, TABLES_FOLDER, "results", table_name(campaign), f"{table_name(code)}.parquet")


def results_folder(prefix: str, campaign_id: str) -> str:
    """The folder of a campaign's part of the table `results`, one file per experiment."""
    return join_key(tables_folder(prefix, "results"), table_name(safe_name(campaign_id)))


def candidates_key(prefix: str, loop_id: str, number: int) -> str:
    """The key of the candidates of a loop's round, from 1."""
    return join_key(candidates_folder(prefix, loop_id), f"{number:06d}.parquet")


def candidates_folder(prefix: str, loop_id: str | None = None) -> str:
    """The folder of the candidates of all loops, or of one."""
    loop = "" if loop_id is None else table_name(safe_name(loop_id))
    return join_key(tables_folder(prefix, "candidates"), loop)


def table_name(folder: str) -> str:
    """The name in the tables of a folder of the archive. Readers of Parquet pass over names that begin with `_`."""
    return _with_digest(folder) if folder.startswith("_") else folder


def is_table(key: str) -> bool:
    """Return True for the key of a file of the all-campaign tables."""
    return bool(_TABLE.fullmatch(key))


def require_table(key: str) -> str:
    """Return the key of a table, the only kind of file that may be replaced; ArchiveError for any other key."""
    if is_table(check_key(key)):
        return key
    raise ArchiveError(f"{key!r} is part of the archive, and nothing replaces it")


def require_hint(key: str) -> str:
    """Return the key of a hint, the only kind of file that may be deleted; ArchiveError for any other key."""
    if _HINT.fullmatch(check_key(key)):
        return key
    raise ArchiveError(f"{key!r} is part of the archive, and nothing deletes it")


def version_of(segment: str) -> int | None:
    """The version that a path segment names, or None."""
    match = _VERSION.fullmatch(segment)
    return int(match[1]) if match and f"v{int(match[1]):03d}" == segment and int(match[1]) else None


def _is_safe_name(text: str, shape: re.Pattern[str]) -> bool:
    """Whether a text can be a name as it is: shape, length, nothing reserved."""
    return (
        bool(shape.fullmatch(text))
        and len(text) <= NAME_LENGTH
        and not text.endswith(".")
        and not _RESERVED.fullmatch(text)
    )


def _with_digest(text: str) -> str:
    """`My Design.csv` becomes `my-design~<12 hex>.csv`."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9._-]+", "-", ascii_text)
    suffix_match = _SUFFIX.search(slug)
    suffix = suffix_match[0] if suffix_match and suffix_match.start() > 0 else ""
    stem = slug[: len(slug) - len(suffix)].strip("._-") or "x"
    if _RESERVED.fullmatch(stem.split(".")[0]):
        stem = f"x-{stem}"
    room = NAME_LENGTH - _DIGEST_LENGTH - len(suffix) - 1
    return f"{stem[:room]}~{digest}{suffix}"
