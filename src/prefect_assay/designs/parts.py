"""Parts of proteins that many designs share for a good reason: tags, linkers, fusion partners, constant and variable domains.

Public sequences of common constructs. A part is recognized by exact stretches, so that a variant still counts.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

_WORD: Final = 8  # residues: no two of the parts below share so many, and by chance it never happens
_STEP: Final = 4  # every fourth word is looked at first: each part of eleven residues has one of them
_TAGS: Final = (
    ("His tag", re.compile("H{6,}")),
    ("Strep tag", re.compile("WSHPQFEK")),
    ("FLAG tag", re.compile("DYKDDDDK|DYKDHDG")),
    ("Avi tag", re.compile("GLNDIFEAQKIEWHE")),
    ("HA tag", re.compile("YPYDVPDYA")),
    ("Myc tag", re.compile("EQKLISEEDL")),
    ("V5 tag", re.compile("GKPIPNPLLGLDST")),
    ("C tag", re.compile("EPEA$")),
    ("SpyTag", re.compile("VMVDAYK")),
    ("protease site", re.compile("ENLYFQ[GS]?|LEVLFQGP|LPET[GAS]G?|LVPRGS")),
    ("linker", re.compile("(?:G{1,6}S{1,2}){2,}G{0,6}|G{5,}|(?:EAAAK){2,}|(?:GGS|GSS|SGG|PAS|PAPAP){3,}")),
)
_LONG: Final = {
    "Fc": "DKTHTCPPCPAPELLGGPSVFLFPPKPKDTLMISRTPEVTCVVVDVSHEDPEVKFNWYVDGVEVHNAKTKPREEQYNSTYRVVSVLTVLHQDWLNGKEYKCKVSNKA"
    "LPAPIEKTISKAKGQPREPQVYTLPPSRDELTKNQVSLTCLVKGFYPSDIAVEWESNGQPENNYKTTPPVLDSDGSFFLYSKLTVDKSRWQQGNVFSCSVMHEALHNHYTQKS"
    "LSLSPGK",
    "CH1": "ASTKGPSVFPLAPSSKSTSGGTAALGCLVKDYFPEPVTVSWNSGALTSGVHTFPAVLQSSGLYSLSSVVTVPSSSLGTQTYICNVNHKPSNTKVDKKVEPKSC",
    "kappa constant domain": "RTVAAPSVFIFPPSDEQLKSGTASVVCLLNNFYPREAKVQWKVDNALQSGNSQESVTEQDSKDSTYSLSSTLTLSKADYEKHKVYACEV"
    "THQGLSSPVTKSFNRGEC",
    "lambda constant domain": "GQPKAAPSVTLFPPSSEELQANKATLVCLISDFYPGAVTVAWKADSSPVKAGVETTTPSKQSNNKYAASSYLSLTPEQWKSHRSYSCQV"
    "THEGSTVEKTVAPTECS",
    "GST": "MSPILGYWKIKGLVQPTRLLLEYLEEKYEEHLYERDEGDKWRNKKFELGLEFPNLPYYIDGDVKLTQSMAIIRYIADKHNMLGGCPKERAEISMLEGAVLDIRYGVSRIAY"
    "SKDFETLKVDFLSKLPEMLKMFEDRLCHKTYLNGDHVTHPDFMLYDALDVVLYMDPMCLDAFPKLVCFKKRIEAIPQIDKYLKSSKYIAWPLQGWQATFGGGDHPPK",
    "MBP": "MKIEEGKLVIWINGDKGYNGLAEVGKKFEKDTGIKVTVEHPDKLEEKFPQVAATGDGPDIIFWAHDRFGGYAQSGLLAEITPDKAFQDKLYPFTWDAVRYNGKLIAYPIAV"
    "EALSLIYNKDLLPNPPKTWEEIPALDKELKAKGKSALMFNLQEPYFTWPLIAADGGYAFKYENGKYDIKDVGVDNAGAKAGLTFLVDLIKNKHMNADTDYSIAEAAFNKGETA"
    "MTINGPWAWSNIDTSKVNYGVTVLPTFKGQPSKPFVGVLSAGINAASPNKELAKEFLENYLLTDEGLEAVNKDKPLGAVALKSYEEELAKDPRIAATMENAQKGEIMPNIPQM"
    "SAFWYAVRTAVINAASGRQTVDEALKDAQT",
    "GB1 domain": "MQYKLILNGKTLKGETTTEAVDAATAEKVFKQYANDNGVDGEWTYDDATKTFTVTE",
    "SUMO": "MSDSEVNQEAKPEVKPEVKPETHINLKVSDGSSEIFFKIKKTTPLRRLMEAFAKRQGKEMDSLRFLYDGIRIQADQTPEDLDMEDNDIIEAHREQIGG",
    "thioredoxin": "MSDKIIHLTDDSFDTDVLKADGAILVDFWAEWCGPCKMIAPILDEIADEYQGKLTVAKLNIDQNPGTAPKYGIRGIPTLLLFKNGEVAATKVGALSKGQLKE"
    "FLDANLA",
    "GFP": "MVSKGEELFTGVVPILVELDGDVNGHKFSVSGEGEGDATYGKLTLKFICTTGKLPVPWPTLVTTLTYGVQCFSRYPDHMKQHDFFKSAMPEGYVQERTIFFKDDGNYKTRA"
    "EVKFEGDTLVNRIELKGIDFKEDGNILGHKLEYNYNSHNVYIMADKQKNGIKVNFKIRHNIEDGSVQLADHYQQNTPIGDGPVLLPDNHYLSTQSALSKDPNEKRDHMVLLEF"
    "VTAAGITLGMDELYK",
}
_WORDS: Final = {
    text[start : start + _WORD]: name
    for name, text in _LONG.items()
    for start in range(len(text) - _WORD + 1)
}
# A variable domain: its two cysteines, the tryptophan between them, and the J segment's WG-G of heavy or FG-G of light chains.
_JOINING = re.compile("[WF]G.G[ST]")  # which most chains do not have
_VARIABLE = re.compile(r"C.{8,20}?W.{40,80}?C.{2,45}?([WF])G.G[ST]")
MOTIFS: Final = {"heavy": "WG", "light": "FG"}  # that every domain of the kind has
# A constant domain of an antibody of any mammal: the first cysteine with what follows it in CH1, CH3 and light chains or in CH2,
# and the second cysteine. Domains of other proteins, such as those of MHC and T-cell receptors, differ in both stretches.
_CONSTANT = re.compile(
    "C(?:[FLMV][AILV][AKNRST][DGN][FLY][FMSY]P..[AILV].V.W|VV[AV]D[ILMV].{2,4}P.V.[FIV].W).{30,55}?C.[AV].[HNS]"
)
_CONSTANT_BEFORE: Final = 30  # residues of the domain before its first cysteine, or of the hinge
_CONSTANT_BEHIND: Final = 20
_LOOKED_AT: Final = 3000  # residues: longer than any antibody, and the pattern takes its time
_BEFORE: Final = 26  # residues of the domain before its first cysteine, and behind the motif
_BEHIND: Final = 8


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a chain, from `start` to `end` (exclusive, from 0)."""

    name: str
    start: int
    end: int


def known_parts(chain: str) -> list[Part]:
    """Tags, linkers, fusion partners and constant domains, with the hinges between these."""
    tags = [
        Part(name, *match.span())
        for name, pattern in _TAGS
        for match in pattern.finditer(chain)
        if name != "linker" or len(match.group()) >= _WORD
    ]
    return [*tags, *_find_constructs(chain), *_constant_domains(chain)]


def _find_constructs(chain: str) -> Iterator[Part]:
    """A part for each known construct whose words occur, from its first word to its last."""
    places = range(len(chain) - _WORD + 1)
    if not any(chain[start : start + _WORD] in _WORDS for start in places[::_STEP]):
        return
    hits: dict[str, list[int]] = {}
    for start in places:
        if name := _WORDS.get(chain[start : start + _WORD]):
            hits.setdefault(name, []).append(start)
    for name, starts in hits.items():
        yield Part(name, starts[0], starts[-1] + _WORD)


def _constant_domains(chain: str) -> Iterator[Part]:
    """Constant domains of antibodies, each up to the next one or to an end of the chain that is near."""
    if "C" not in chain:
        return
    places = [match.span() for match in _CONSTANT.finditer(chain[:_LOOKED_AT])]
    for number, (first, last) in enumerate(places, 1):
        following = places[number][0] if number < len(places) else len(chain)
        near = following if following - last <= 2 * _CONSTANT_BEFORE else last + _CONSTANT_BEHIND
        yield Part("antibody constant domain", max(0, first - _CONSTANT_BEFORE), near)


def variable_domains(chain: str) -> list[Part]:
    """The antibody domains of a chain, called `heavy` and `light`."""
    domains: list[Part] = []
    if not _JOINING.search(chain):
        return domains
    for match in _VARIABLE.finditer(chain[:_LOOKED_AT]):
        kind = "heavy" if match[1] == "W" else "light"
        domains.append(Part(kind, max(0, match.start() - _BEFORE), min(len(chain), match.end() + _BEHIND)))
    return domains


@lru_cache(maxsize=1024)  # a common chain is in many designs
def classify_antibody_chain(chain: str) -> Literal["heavy", "light"] | None:
    """`heavy` or `light` for a chain of one variable domain and known parts; None for any other."""
    domains = variable_domains(chain)
    if len(domains) != 1:
        return None
    rest = len(chain) - (domains[0].end - domains[0].start)
    rest -= sum(part.end - part.start for part in known_parts(chain))
    return ("heavy" if domains[0].name == "heavy" else "light") if rest < 2 * _BEFORE else None
