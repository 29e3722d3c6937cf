# ruff: noqa: PT017 - a documented exception is an outcome here, and its content is part of it
"""Fuzzes the parsers that read what others send: designs, webhook deliveries, error bodies, request bodies.

Payment headers and tokens have properties of their own, in `tests/orders/payments`, `lab/tests/rails` and `lab/tests/tokens`.
Each class takes a seed; `one()` tries one input and fails for any exception but the documented ones.
"""

import hashlib
import hmac
import json
from datetime import UTC, datetime

from assay_lab.kernel.refusals import Refusal
from assay_lab.requests.core import Call
from lab_support.core import lab_core
from prefect_assay.designs.read import read_sequences
from prefect_assay.errors import InvalidSequences, MalformedDelivery, SignatureError
from prefect_assay.service.client.http.failures import problem_of, retry_after
from prefect_assay.service.client.http.request import Answer
from prefect_assay.service.models.vocabulary import AMINO_ACIDS
from prefect_assay.service.webhook_signature import verify
from support.fuzz.mutations import Mutator
from support.webhooks.deliveries import SIGNING_KEY, body_of

_NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class SequencesFuzz:
    """FASTA and tables: checked sequences, or `InvalidSequences`."""

    CORPUS = (
        ">a\nMKTAYIAKQR\n>b desc|1 2\nGSHM:KLVFFA*\n",
        "> 1\r\nACD\r\nEFG\r\n;comment\r\n>2\r\nmkv\r\n",
        "name,sequence,control\na,MKV,true\nb,GHI,\n",
        'name;sequence;type;VH;VL;tag_location\n"x;y";MKV;ScFv;E;D;N\n',
        "sep=,\nDesign,Sequence,score\nd1,ACDEF,0.5\nd2,GHIKL,null\n",
        "id\tdesigned_chain_sequence\tch\tcl\ttype\n1\tMKV\tCH1\tkappa\tFAB\n",
        "name|aa_string|is_control|molecule_class\na|MKV|no|nanobody\n",
    )
    PIECES = (
        ">", ">a\n", "name,sequence\n", "name;sequence;control\n", "sep=,\n", '"', '""', ",", ";", "\t", "|", "\r\n", "*",
        "MKV", "acd", "X", "true", "control", "type", "ScFv", "FAB", "VH", "\ufeff", "\x1f\x8b", "PK\x03\x04", "%PDF", "null",
        "designed_sequence", "A" * 500, "ACGT" * 20, "\n\n", "; comment\n", "# comment\n",
    )  # fmt: skip

    def __init__(self, seed: int) -> None:
        self._words = Mutator(seed, self.CORPUS, self.PIECES)

    def one(self) -> None:
        source = (
            {"data": self._words.data()}
            if self._words.chance.random() < 0.7
            else {"text": self._words.text()}
        )
        try:
            read = read_sequences("d", **source)
        except InvalidSequences as error:
            assert 1 <= len(error.findings) <= 51
            assert all("\n" not in finding for finding in error.findings)
            return
        names = [sequence.name for sequence in read.items]
        assert names
        assert len({name.casefold() for name in names}) == len(names)
        for sequence in read.items:
            assert all(chain and set(chain) <= AMINO_ACIDS for chain in sequence.aa_string.split(":"))


class SignatureFuzz:
    """Deliveries: a genuine one, or `SignatureError`; and never a genuine one that nobody signed."""

    def __init__(self, seed: int) -> None:
        bodies = [
            body_of(),
            body_of(data_eta="2026-03-02T09:00:00Z", description=None),
            body_of(api_version=None),
        ]
        self._bodies = Mutator(
            seed, [body.decode() for body in bodies], ('"data":', '"', "{", "[", "null", "1e999", "\\u0000")
        )
        self._headers = Mutator(
            seed + 1, ["sha256=" + "0" * 64, "SHA256=" + "f" * 64, "sha256="], ("sha256=", "a" * 64)
        )
        self._secret = SIGNING_KEY.encode()

    def one(self) -> None:
        chance = self._bodies.chance
        body = self._bodies.data()
        true = "sha256=" + hmac.new(self._secret, body, hashlib.sha256).hexdigest()
        signed = chance.random() < 0.6
        sent = true if signed else self._headers.text()
        headers = {
            chance.choice(("X-Service-Signature", "x-service-signature")): sent,
            "X-Service-Event": "experiment_update",
        }
        headers["X-Service-Delivery-Id"] = self._delivery_id(body)
        if chance.random() < 0.2:
            headers[chance.choice(list(headers))] = self._headers.text()
        try:
            delivery = verify(body, headers, [SIGNING_KEY], now=_NOW, tolerance=None)
        except SignatureError as error:
            assert signed or not isinstance(error, MalformedDelivery), "parsed before it was verified"
            return
        assert headers.get("X-Service-Signature", headers.get("x-service-signature", "")).strip() == true
        assert delivery.data.experiment_id
        assert delivery.data.update_id

    @staticmethod
    def _delivery_id(body: bytes) -> str:
        try:
            return str(json.loads(body)["delivery_id"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return "none"


class ErrorBodyFuzz:
    """Error bodies and `Retry-After`: read whatever they are."""

    CORPUS = (
        '{"error": "name: Field required; experiment_spec.method: required", "request_id": "req_1", "code": "x"}',
        '{"error": ["a", {"field": "b", "message": "c"}], "hint": "d"}',
        '{"detail": [{"loc": ["body", 0, "x"], "msg": "bad"}]}',
        '{"errors": {"name": ["too short"], "x": {"message": "y"}}}',
        "<html><body>Bad gateway</body></html>",
        "120",
        "Wed, 21 Oct 2026 07:28:00 GMT",
    )

    def __init__(self, seed: int) -> None:
        self._words = Mutator(seed, self.CORPUS, ('"', "{", "[", "null", ";", "\n- ", ":", "GMT", "+9999"))

    def one(self) -> None:
        value = self._words.text().encode("latin-1", "replace").decode("latin-1")
        answer = Answer(
            status=self._words.chance.choice((400, 422, 500, 999)),
            headers={"retry-after": value, "x-request-id": value},
            content=self._words.data(),
        )
        problem = problem_of(answer)
        assert problem.messages
        assert all(len(message) <= 2_000 and "\n" not in message for message in problem.messages)
        wait = retry_after(answer)
        assert wait is None or wait >= 0


class BodyFuzz:
    """Request bodies at the lab's door: JSON, or 400 and 415."""

    CORPUS = (
        '{"experiment_spec": {"experiment_type": "affinity", "sequences": {"a": "MKV"}}, "name": "x"}',
        "[]",
        "{}",
        '"x"',
        "1e5",
    )

    def __init__(self, seed: int) -> None:
        self._words = Mutator(
            seed,
            self.CORPUS,
            ('"', "{" * 300, "[" * 300, "NaN", "1e999", "\\ud800", '"name": 1,', "-0", "0" * 400, "9" * 5000),
        )
        self._core = lab_core()
        self._who = self._core.lab.tokens.authenticate(f"Bearer {self._core.seeded.member_token}")

    def one(self) -> None:
        media = self._words.chance.choice(
            ("application/json", "application/json; charset=utf-8", "text/plain")
        )
        call = Call(self._core.lab, self._who, headers={"content-type": media}, body=self._words.data())
        try:
            value = call.json()
        except Refusal as refusal:
            if refusal.status not in (400, 415):
                raise
            return
        json.dumps(value, allow_nan=False).encode()

    def close(self) -> None:
        self._core.close()


ALL = (SequencesFuzz, SignatureFuzz, ErrorBodyFuzz, BodyFuzz)
