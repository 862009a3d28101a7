"""Checks of the identifiers in paths."""

from typing import Any

import httpx

from .generated.client import Client


class CheckedClient(Client):
    """Rejects an identifier that would lead to another resource.

    httpx removes segments like `..` from a path, so a DELETE of the session `..` would delete the account.
    """

    def get_httpx_client(self) -> httpx.Client:
        """Return the client that sends requests."""
        if self._client is None:
            self._client = _HttpxClient(**self._settings())
        return self._client

    def get_async_httpx_client(self) -> httpx.AsyncClient:
        """Return the client that sends asynchronous requests."""
        if self._async_client is None:
            self._async_client = _AsyncHttpxClient(**self._settings())
        return self._async_client

    def _settings(self) -> dict[str, Any]:
        """Return the same settings as those of the generated client."""
        return {
            "base_url": self._base_url,
            "cookies": self._cookies,
            "headers": self._headers,
            "timeout": self._timeout,
            "verify": self._verify_ssl,
            "follow_redirects": self._follow_redirects,
            **self._httpx_args,
        }


class _HttpxClient(httpx.Client):
    def build_request(self, method: str, url: httpx.URL | str, **options: Any) -> httpx.Request:
        _check_path(url)
        return super().build_request(method, url, **options)


class _AsyncHttpxClient(httpx.AsyncClient):
    def build_request(self, method: str, url: httpx.URL | str, **options: Any) -> httpx.Request:
        _check_path(url)
        return super().build_request(method, url, **options)


def _check_path(url: httpx.URL | str) -> None:
    """Raise an error if an identifier is empty, `.` or `..`. The generated code encodes all others, and begins paths with a slash."""
    path = str(url).split("?")[0]
    segments = path.split("/")[1:] if path.startswith("/") else []
    for segment in segments:
        if segment in (".", "..") or (segment == "" and path != "/"):
            raise ValueError(f"{segment!r} is not the identifier of a resource")
