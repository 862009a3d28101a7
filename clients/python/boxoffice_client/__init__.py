"""A typed client of the boxoffice ticketing API."""

import urllib.request

import httpx

from .errors import ApiError, success
from .generated import api, models
from .generated.client import Client
from .generated.errors import UnexpectedStatus
from .generated.types import UNSET
from .identifiers import CheckedClient
from .lists import async_entries, entries
from .retries import RetryingTransport

__all__ = [
    "UNSET",
    "VERSION",
    "ApiError",
    "Client",
    "RetryingTransport",
    "UnexpectedStatus",
    "api",
    "async_entries",
    "connect",
    "entries",
    "models",
    "success",
]

VERSION = "3.0.0"
"""Version of the API for which this client was generated."""


def connect(address: str, key: str, *, max_attempts: int = 8, retry_window: float = 100.0) -> Client:
    """Create a client of the server at `address`, with the key of an application, a session or an admission token.

    It is passed to each operation as `client`. It sends a request at most `max_attempts` times, see `RetryingTransport`, and starts no
    retry after `retry_window` seconds. It uses the proxies of the environment.
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
        httpx.HTTPTransport(verify=tls, proxy=proxy),
        httpx.AsyncHTTPTransport(verify=tls, proxy=proxy),
        max_attempts,
        retry_window,
    )
    return CheckedClient(
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
