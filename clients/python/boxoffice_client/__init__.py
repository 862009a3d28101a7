"""A typed client of the boxoffice ticketing API."""

import urllib.request
from http import HTTPStatus
from typing import TypeVar

import httpx

from .generated import api, models
from .generated.client import Client
from .generated.errors import UnexpectedStatus
from .generated.types import UNSET, Response
from .retries import RetryingTransport

__all__ = [
    "UNSET",
    "VERSION",
    "ApiError",
    "Client",
    "RetryingTransport",
    "UnexpectedStatus",
    "api",
    "connect",
    "models",
    "success",
]

VERSION = "3.0.0"
"""Version of the API for which this client was generated."""

T = TypeVar("T")


class ApiError(Exception):
    """An error response, or the response to a conditional request that the resource has not changed (304)."""

    def __init__(self, status: int, body: models.ErrorBody | None, request_id: str | None) -> None:
        """Create it from the facts of the response."""
        text = f"{body.code}: {body.error or body.message or ''}" if body else "not modified"
        super().__init__(f"{status} {text} (request {request_id})")
        self.status = status
        self.code = body.code if body else None
        """Stable code, or None for a 304. Later versions of the server may send others."""
        self.body = body
        """The body, or None for a 304."""
        self.fields = (body.fields if body else None) or []
        """The missing and invalid arguments."""
        self.refused = (body.refused if body else None) or []
        """The tickets that were not admitted, with the reasons."""
        self.request_id = request_id
        """Identifier by which the server's log names the request."""


def connect(address: str, key: str) -> Client:
    """Create a client of the server at `address`, with the key of an application, a session or an admission token.

    It is passed to each operation as `client`. It retries requests, see `RetryingTransport`, and uses the proxies of the environment.
    """

    if not (key.isascii() and key.isprintable()):
        # httpx would raise an error with the key.
        raise ValueError("the key contains characters that a header can't have, such as the end of a line")

    def authenticate(request: httpx.Request) -> httpx.Request:
        request.headers["X-API-Key"] = key
        return request

    tls = httpx.create_ssl_context()
    proxy = _proxy(httpx.URL(address))
    transport = RetryingTransport(
        httpx.HTTPTransport(verify=tls, proxy=proxy), httpx.AsyncHTTPTransport(verify=tls, proxy=proxy)
    )
    return Client(
        base_url=address.rstrip("/"),
        headers={"X-Client-Version": VERSION},
        # A redirect to another server would reveal the key to it.
        follow_redirects=False,
        timeout=httpx.Timeout(30),
        raise_on_unexpected_status=True,
        # The headers are in the client's `repr`, so the key isn't one of them.
        httpx_args={"auth": authenticate, "transport": transport},
    )


def _proxy(address: httpx.URL) -> httpx.Proxy | None:
    """Return the proxy for an address. httpx uses those of the environment with its own transport only."""
    if urllib.request.proxy_bypass(address.netloc.decode()):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    return httpx.Proxy(proxy if "://" in proxy else f"http://{proxy}") if proxy else None


def success(response: Response[T | models.ErrorBody]) -> T:
    """Return the body of a response, or raise the `ApiError` that it is. A 304 is an error, too: it has no body."""
    body = response.parsed
    request_id = response.headers.get("x-request-id")
    if isinstance(body, models.ErrorBody):
        raise ApiError(response.status_code, body, request_id)
    if response.status_code == HTTPStatus.NOT_MODIFIED:
        raise ApiError(response.status_code, None, request_id)
    return body  # type: ignore[return-value]  # A success without a body is None.
