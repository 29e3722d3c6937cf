"""Authorization code with PKCE for tool clients (contract 5.7). The `mcp` library checks requests and verifiers."""

import re
from collections.abc import Callable
from typing import Final, TypeVar
from urllib.parse import urlsplit

from mcp.server.auth.handlers.metadata import MetadataHandler
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.server.auth.routes import (
    build_metadata,
    cors_middleware,
    create_auth_routes,
    create_protected_resource_routes,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.routing import Route

from assay_lab.account import oauth
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.store import Db
from assay_lab.requests.core import Lab

T = TypeVar("T")

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
# Applications' own schemes are welcome (RFC 8252), those that a browser runs or reads files with are not.
_NEVER: Final = frozenset({"javascript", "data", "vbscript", "file", "blob", "about", "ftp", "ws", "wss"})


def create(lab: Lab) -> Starlette:
    """The application of all sign-in paths; ValueError when the lab's address is plain http off loopback."""
    # The settings keep addresses without a path as they are; clients compare them as text.
    settings = AuthSettings.model_validate(
        {
            "issuer_url": lab.settings.base_url,
            "resource_server_url": f"{lab.settings.base_url}/mcp",
            "validate_token_resource": False,
        }
    )
    resource = settings.resource_server_url
    if resource is None:  # pragma: no cover - given above
        raise ValueError("no resource")
    described = create_protected_resource_routes(
        resource, [settings.issuer_url], resource_name="Protein characterization service (local lab)"
    )
    registration, revocation = ClientRegistrationOptions(enabled=True), RevocationOptions(enabled=True)
    routes = create_auth_routes(
        Provider(lab),
        settings.issuer_url,
        client_registration_options=registration,
        revocation_options=revocation,
    )
    # The library's own document promises refresh tokens and conceals that clients without a secret are welcome.
    metadata = build_metadata(settings.issuer_url, None, registration, revocation)
    metadata.grant_types_supported = ["authorization_code"]
    metadata.token_endpoint_auth_methods_supported = ["client_secret_post", "client_secret_basic", "none"]
    document = cors_middleware(MetadataHandler(metadata).handle, ["GET", "OPTIONS"])
    # Some clients request the resource's document without the resource's path.
    bare = [Route(route.path.removesuffix("/mcp"), endpoint=route.endpoint) for route in described]
    metadata_routes = [Route("/.well-known/oauth-authorization-server", endpoint=document)]
    return Starlette(routes=[*metadata_routes, *routes, *described, *bare])


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Grants by a person who is signed in to the portal."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """A registered client."""
        row = await self._in_database(
            lambda db: db.one("SELECT information FROM oauth_clients WHERE id = ?", client_id)
        )
        return OAuthClientInformationFull.model_validate_json(row["information"]) if row else None

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Registration is open; only the person's consent grants access."""
        for uri in client_info.redirect_uris or ():
            if not _may_redirect(str(uri)):
                raise RegistrationError(
                    "invalid_redirect_uri", f"{uri}: https, http on loopback, or an application's own scheme"
                )
        row = {"id": client_info.client_id, "information": client_info.model_dump_json(exclude_none=True)}
        await self._in_database(lambda db: db.insert("oauth_clients", row))

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """The portal page with the request for the person."""
        resource = (params.resource or "").rstrip("/")
        if resource not in ("", self._lab.settings.base_url, f"{self._lab.settings.base_url}/mcp"):
            raise AuthorizeError("invalid_target", "this server gives tokens for itself only")
        if not re.fullmatch(r"[A-Za-z0-9_-]{43}", params.code_challenge):
            raise AuthorizeError(
                "invalid_request", "code_challenge: a SHA-256 digest in base64url is required"
            )
        request = params.model_dump_json()
        key = await self._in_database(lambda db: oauth.request_access(db, client.client_id, request))
        return f"{self._lab.settings.base_url}/portal/connect/{key}/"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        """The grant of a code."""
        row = await self._in_database(
            lambda db: oauth.of_code(self._lab, db, client.client_id, authorization_code)
        )
        if row is None:
            return None
        params = AuthorizationParams.model_validate_json(row["request"])
        return AuthorizationCode(
            # The library hands it back at the exchange; the grant's own id will do, and is not a secret.
            code=row["id"],
            scopes=params.scopes or [],
            expires_at=row["expires_at"],
            client_id=row["client_id"],
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        """A token of the lab, bound to the session that allowed it."""
        name = client.client_name or "tool client"
        redeemed = await self._in_database(
            lambda db: oauth.redeem_grant(self._lab, db, authorization_code.code, name[:200])
        )
        if redeemed is None:
            raise TokenError("invalid_grant", "the portal session has ended, or the code was used")
        return OAuthToken(access_token=redeemed[0], expires_in=redeemed[1])

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        """Refresh tokens do not exist: a sign-in ends with its portal session."""
        del client, refresh_token
        return None

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """Refuse: refresh tokens do not exist."""
        del client, refresh_token, scopes
        raise TokenError("unsupported_grant_type", "sign in again: a sign-in ends with the portal session")

    async def load_access_token(self, token: str) -> AccessToken | None:
        """A living token of a sign-in; its id is in `claims`."""

        def find(db: Db) -> AccessToken | None:
            try:
                who = self._lab.tokens.principal(db, token)
            except Refusal:
                return None
            row = db.one("SELECT client_id FROM oauth_grants WHERE token_id = ?", who.token_id)
            if row is None:
                return None
            claims = {"id": who.token_id}
            return AccessToken(token=token, client_id=row["client_id"], scopes=[], claims=claims)

        return await self._in_database(find)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """Revoke a token that its client returns."""
        token_id = (token.claims or {}).get("id") if isinstance(token, AccessToken) else None
        if token_id is not None:
            await self._in_database(lambda db: oauth.revoke_sign_in(self._lab, db, str(token_id)))

    async def _in_database(self, work: Callable[[Db], T]) -> T:
        def run() -> T:
            with self._lab.store.transaction() as db:
                return work(db)

        return await run_in_threadpool(run)


def _may_redirect(uri: str) -> bool:
    parts = urlsplit(uri)
    if parts.fragment:
        return False
    if parts.scheme == "http":
        return parts.hostname in _LOOPBACK
    return parts.scheme == "https" or (
        parts.scheme not in _NEVER and re.fullmatch(r"[a-z][a-z0-9+.-]*", parts.scheme) is not None
    )
