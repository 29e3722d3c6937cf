"""`ReceiverSettings`: the settings of the webhook receiver, from the environment or from code."""

import json
from typing import Annotated, Any, Self

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from prefect_assay.errors import ConfigurationError
from prefect_assay.service.models.service import WireWords
from prefect_assay.service.models.vocabulary import WEBHOOK_SECRET_MIN_LENGTH

ENV_PREFIX = "PREFECT_ASSAY_RECEIVER_"


class ReceiverSettings(BaseSettings):
    """Each setting defaults to the environment variable `PREFECT_ASSAY_RECEIVER_<NAME>`."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        env_parse_none_str="none",
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,  # a signing key that does not validate must not be printed
    )

    signing_keys: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        min_length=1,
        description="The signing_key of the WebhookEndpoint block; several, separated by commas, while a key is "
        "being replaced. At least 32 characters each; a key with a comma in a JSON list.",
    )
    path_prefix: str = Field(
        default="/assay",
        pattern=r"^(/[A-Za-z0-9._~-]+)*/?$",
        description="Path in front of the order key, as the receiver sees it. Empty for none.",
    )
    tolerance_seconds: float | None = Field(
        default=900.0,
        gt=0,
        description="How far a delivery's signed timestamp may be from now; none where the service runs on "
        "another clock, such as the local lab's.",
    )
    words: WireWords = Field(
        default_factory=WireWords, description="The deployment's spelling of the header names (contract 1)."
    )
    max_body_bytes: int = Field(default=262_144, gt=0, description="Larger deliveries are refused with 413.")
    head_timeout_seconds: float = Field(
        default=10.0,
        gt=0,
        description="How long a sender may take to send a request's head; then the connection is closed "
        "(prefect-assay receiver only).",
    )
    body_timeout_seconds: float = Field(
        default=10.0, gt=0, description="How long a sender may take to send a body; then 503."
    )
    wake_timeout_seconds: float = Field(
        default=30.0,
        gt=0,
        description="How long a delivery may wait for Prefect; then 503, and the service retries.",
    )
    max_waiting: int = Field(
        default=1000,
        gt=0,
        description="How many deliveries may wait for their turn to wake; more get 503 at once.",
    )
    max_waiting_per_order: int = Field(
        default=10,
        gt=0,
        description="How many of them may be of one order; more get 503 at once. An organization's address has no "
        "such bound.",
    )
    status: bool = Field(
        default=True,
        description="Serve readiness and metrics below the path prefix; false keeps them off the public path.",
    )
    status_port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="Serve health, readiness and metrics on a port of their own (prefect-assay receiver only), and "
        "readiness and metrics nowhere else.",
    )
    status_host: str = Field(default="127.0.0.1", description="The address that STATUS_PORT listens on.")
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Host names under which readiness and metrics answer in addition to those of the loopback and every IP "
        "address, separated by commas. Deliveries are taken under any name.",
    )
    ready_timeout_seconds: float = Field(
        default=3.0, gt=0, description="How long readiness waits for Prefect; then 503."
    )

    @field_validator("signing_keys", "allowed_hosts", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        """Accept a JSON list, or values separated by commas."""
        if not isinstance(value, str):
            return value
        if value.lstrip().startswith("["):
            try:
                return json.loads(value)
            except ValueError:
                raise ValueError("not a JSON list") from None
        return [one.strip() for one in value.split(",") if one.strip()]

    @field_validator("signing_keys")
    @classmethod
    def _long_enough(cls, value: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if any(len(key.get_secret_value()) < WEBHOOK_SECRET_MIN_LENGTH for key in value):
            raise ValueError(f"each signing key needs at least {WEBHOOK_SECRET_MIN_LENGTH} characters")
        return value

    @field_validator("path_prefix")
    @classmethod
    def _no_closing_slash(cls, value: str) -> str:
        return value.rstrip("/")

    @classmethod
    def from_environment(cls) -> Self:
        """Read the settings from the environment.

        Raises:
            ConfigurationError: a variable is missing or wrong; the message names it and never shows a key.
        """
        try:
            return cls()  # pyright: ignore[reportCallIssue] - the environment fills the fields
        except ValidationError as error:
            problems = "; ".join(
                f"{ENV_PREFIX}{'__'.join(str(part) for part in item['loc'][:2]).upper()}: {item['msg']}"
                for item in error.errors(include_url=False, include_context=False, include_input=False)
            )
            raise ConfigurationError(f"the webhook receiver cannot start: {problems}") from None
