"""FASTA headers: a name, and the columns that pipelines write behind it; samples of ProteinMPNN and LigandMPNN.

`>design_7 n:0|mpnn:1.32|plddt:0.92`, `>design_7 score=1.3 round=2` and `>P1, score=1.2, chains=['A', 'B']` give columns;
any other text becomes the column `description`.

ProteinMPNN (`protein_mpnn_run.py`) writes the input first, with gaps as X and chains separated by `/`:

    >3HTN, score=1.1705, global_score=1.2045, fixed_chains=['C'], designed_chains=['A', 'B'], model_name=v_48_020, seed=37
    >T=0.1, sample=1, score=0.7291, global_score=0.9330, seq_recovery=0.5736

LigandMPNN (`run.py`):

    >1BC8, T=0.1, seed=111, num_res=93, num_ligand_res=93, use_ligand_context=True, model_path=...
    >1BC8, id=1, T=0.1, seed=111, overall_confidence=0.4, ligand_confidence=0.4, seq_rec=0.5

A sample's name is `3HTN_T=0.1_sample=1` or `1BC8_T=0.1_id=1`. Earlier versions number samples from 0 in every batch; a
repeated name gets `_2`, `_3` in the order of the file.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from prefect_assay.designs.readers.producers import COLAB
from prefect_assay.designs.readers.records import Rows, name_key
from prefect_assay.service.models.vocabulary import CHAIN_SEPARATOR
from prefect_assay.service.words import listed, many

DESCRIPTION: Final = "description"
_PAIR = re.compile(r"([A-Za-z_][\w.%-]*)[=:]([^\s,;|]+)")
_PAIRS = re.compile(rf"(?:{_PAIR.pattern}(?:[\s,;|]+|$))+")
# A comma in brackets, as in ['A', 'B'], separates nothing.
_COMMA = re.compile(r",\s*(?=[A-Za-z_][\w.%-]*=)")
_COMMA_PAIR = re.compile(r"([A-Za-z_][\w.%-]*)=(.*)", re.DOTALL)


def header_fields(text: str) -> dict[str, str]:
    """The columns in the text behind a header's name."""
    if not text:
        return {}
    if _PAIRS.fullmatch(text):
        return dict(_PAIR.findall(text))
    matches = [_COMMA_PAIR.fullmatch(part) for part in _COMMA.split(text)]
    if all(matches):
        return {match[1]: match[2].strip() for match in matches if match}
    return {DESCRIPTION: text}


def split_headers(headers: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Names and the text behind them, or None if no header has more than one word.

    Names are the first words (up to a space or tab, without a closing comma) if these are unique without regard to
    case, else the whole lines.
    """
    if not any(" " in header or "\t" in header for header in headers):
        return None
    words = [_first_word(header) for header in headers]
    rests = [header[len(word) :].lstrip(" \t,;") for header, word in zip(headers, words, strict=True)]
    written = sum(1 for header in headers if header)
    unique = len({name_key(word) for word in words if word}) == written
    return (words if unique else list(headers)), rests


def _first_word(header: str) -> str:
    word = header.partition(" ")[0].partition("\t")[0]
    return word.rstrip(",;") if len(word) < len(header) else word


_COLAB = re.compile(r"(design:(\d+))\s+n:(\d+)\|(mpnn:.*)")
_FOUNDRY = re.compile(r"(.+)_b\d+_d\d+")
_PROTEIN_SAMPLE = re.compile(
    r"T=(?P<T>[^,\s]+),\s*(?:\w+=[^,]*,\s*)*?sample=(?P<number>\d+)(?:,.*)?", re.DOTALL
)
_LIGAND_SAMPLE = re.compile(r"(?P<native>.+?), id=(?P<number>\d+), T=(?P<T>[^,\s]+)(?:,.*)?", re.DOTALL)
_LIGAND_NATIVE = re.compile(r".+?, T=[^,\s]+, seed=\d+, num_res=.*", re.DOTALL)
_CHAINS: Final = "/"
_OF_THE_INPUT: Final = frozenset({"score", "global_score"})  # the native's own scores, which no sample has
_LISTED: Final = 3


@dataclass(slots=True)
class _Backbone:
    """The input that the samples below it were made for."""

    name: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    run: str = ""


def is_mpnn(headers: Sequence[str]) -> bool:
    """Return True if any of the headers is a sample's."""
    return any(
        ("sample=" in header or ", id=" in header) and _match_sample(header) is not None for header in headers
    )


def name_samples(rows: Rows, *, keep_native: bool) -> None:
    """Give samples their names and columns, and leave out the native inputs unless they are asked for."""
    headers = rows.names
    seen: Counter[str] = Counter()
    natives = []
    backbone = _Backbone()
    inputs = Counter(
        _read_backbone(header).name
        for position, header in enumerate(headers)
        if _match_sample(header) is None and _is_native(headers, position)
    )
    runs: Counter[str] = Counter()
    ligand = False
    names, extras = [], []
    for position, header in enumerate(headers):
        sample = _match_sample(header)
        if sample is None and _is_native(headers, position):
            natives.append(position)
            backbone = _read_backbone(header)
            runs[backbone.name] += 1
            if inputs[backbone.name] > 1:
                backbone.run = f"_run{runs[backbone.name]}"
            names.append(backbone.name)
            extras.append(_pack_columns(backbone.columns))
        elif sample is None:
            names.append(header)
            extras.append("")
            continue
        else:
            ligand = ligand or "native" in sample.groupdict()
            names.append(_sample_name(sample, backbone, seen))
            extras.append(_pack_columns(_sample_columns(header, sample, backbone)))
        rows.residues[position] = rows.residues[position].replace(_CHAINS, CHAIN_SEPARATOR)
    rows.names, rows.extras = names, extras
    rows.read.producer = "LigandMPNN" if ligand else "ProteinMPNN"
    rows.read.columns |= {"parent": "backbone"}
    again = sum(count > 1 for count in inputs.values())
    if again:
        shown = next(name for name in names if "_run1_" in name)
        rows.notes.append(
            f"{many(again, 'input occurs', 'inputs occur')} in several runs: the run is in the names, as in {shown!r}"
        )
    if repeated := sum(count - 1 for count in seen.values()):
        rows.notes.append(
            f"{many(repeated, 'sample has', 'samples have')} the name of another one of the run: numbered _2, _3 and so on"
        )
    if natives and not keep_native:
        _remove_native_inputs(rows, natives)


def name_colab(rows: Rows) -> bool:
    """Name the records of RFdiffusion in Colab, `>design:0 n:1|mpnn:1.2|...` with `TARGET/BINDER`; False if they are not."""
    if not rows.names or not _COLAB.fullmatch(rows.names[0]):
        return False
    matches = [match for header in rows.names if (match := _COLAB.fullmatch(header))]
    if len(matches) < len(rows.names):
        return False
    rows.names = [f"design_{match[2]}_n_{match[3]}" for match in matches]
    rows.extras = [f"parent=design_{match[2]} {match[4]}" for match in matches]
    rows.residues = [residues.replace(_CHAINS, CHAIN_SEPARATOR) for residues in rows.residues]
    rows.read.producer = COLAB
    rows.notes.append(f"a FASTA file of {COLAB}: '/' separates chains, usually TARGET/BINDER")
    return True


def add_parents(rows: Rows) -> None:
    """The parent of designs of Foundry, `NAME_b0_d1, sequence_recovery=0.4`, from their names."""
    if not rows.names or not _FOUNDRY.fullmatch(rows.names[0]) or "sequence_recovery=" not in rows.extras[0]:
        return
    for position, (name, extra) in enumerate(zip(rows.names, rows.extras, strict=True)):
        if match := _FOUNDRY.fullmatch(name):
            rows.extras[position] = f"{extra}, parent={match[1]}" if extra else f"parent={match[1]}"
    rows.read.producer = "Foundry MPNN"
    rows.read.columns |= {"parent": "part of the name"}


def _match_sample(header: str) -> re.Match[str] | None:
    return _PROTEIN_SAMPLE.fullmatch(header) or _LIGAND_SAMPLE.fullmatch(header)


def _is_native(headers: Sequence[str], position: int) -> bool:
    """A record directly above its samples: ProteinMPNN's carry no name, LigandMPNN's carry the native's."""
    if position + 1 == len(headers):
        return False
    below = _match_sample(headers[position + 1])
    if below is None:
        return False
    if "native" not in below.groupdict():
        return True
    return below["native"] == _read_backbone(headers[position]).name and bool(
        _LIGAND_NATIVE.fullmatch(headers[position])
    )


def _read_backbone(header: str) -> _Backbone:
    name, _, rest = header.partition(", ")
    return _Backbone(name.strip(), header_fields(rest))


def _sample_name(sample: re.Match[str], backbone: _Backbone, seen: Counter[str]) -> str:
    groups = sample.groupdict()
    native = groups.get("native") or backbone.name
    counter = "id" if "native" in groups else "sample"
    name = f"{native}{backbone.run}_T={sample['T']}_{counter}={sample['number']}".lstrip("_")
    seen[name.casefold()] += 1
    times = seen[name.casefold()]
    return name if times == 1 else f"{name}_{times}"


def _sample_columns(header: str, sample: re.Match[str], backbone: _Backbone) -> dict[str, str]:
    """The sample's own columns, then those of the run that the input's header names."""
    native = sample.groupdict().get("native") or backbone.name
    columns = header_fields(
        header.removeprefix(native).lstrip(", ") if "native" in sample.groupdict() else header
    )
    shared = {k: v for k, v in backbone.columns.items() if k not in columns and k not in _OF_THE_INPUT}
    return ({"backbone": native, "parent": native} if native else {}) | columns | shared


def _pack_columns(columns: dict[str, str]) -> str:
    """The columns as `header_fields` reads them."""
    return ", ".join(f"{title}={value}" for title, value in columns.items())


def _remove_native_inputs(rows: Rows, natives: list[int]) -> None:
    """Take the native inputs out of the rows, and note them."""
    names = [rows.names[position] for position in natives]
    rows.read.natives += [rows.residues[position] for position in natives]
    for position in natives:
        rows.read.leave_out(rows.names[position], rows.lines[position], "a native input")
    for position in reversed(natives):
        for column in (rows.lines, rows.names, rows.residues, rows.extras):
            del column[position]
    what = "the native input" if len(names) == 1 else f"{len(names)} native inputs"
    rows.notes.append(
        f"{what} of ProteinMPNN left out: {listed(names, _LISTED)}; --keep-native (in a form: keep_native) also measures them"
    )
