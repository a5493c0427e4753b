"""Static pages and the files they are made of: read once, served from memory, open to everybody who may connect.

They tell nothing of calls or of who they are with. Their policy lets them load and reach nothing but this service,
run no script but their own files, and be framed by nobody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response

ROOT = Path(__file__).parent.parent / "web"
PREFIX = "/web/"
INDEX = "index.html"
INSPECTOR = "inspect"
"""Directory of the inspector's pages: served under a path of their own, where there is an inspector."""
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "permissions-policy": "microphone=(self), speaker-selection=(self), camera=(), geolocation=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    # Asked for anew each time and answered with 304: after an update nobody mixes old and new files.
    "cache-control": "no-cache",
}


def policy_with(sources: Mapping[str, str]) -> str:
    """Return `POLICY` with further directives, such as ``{"media-src": "'self'"}``; one that it has is replaced."""
    directives = dict(part.partition(" ")[::2] for part in POLICY.split("; "))
    return "; ".join(f"{name} {value}" for name, value in {**directives, **sources}.items())


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file of the page, and the tag that tells its versions apart."""

    body: bytes
    media_type: str
    tag: str


class Pages:
    """The static files under ``root``. Nothing else on the disk can be asked for: paths are looked up, never opened.

    Args:
        prefix: Path of the directory.
        index: Path of its ``index.html``.
        policy: Sources that its content security policy allows beside those of `POLICY`.

    Attributes:
        paths: Every path that is answered here.
    """

    def __init__(
        self, root: Path = ROOT, *, prefix: str = PREFIX, index: str = "/", policy: Mapping[str, str] | None = None
    ) -> None:
        self._headers = {**HEADERS, "content-security-policy": policy_with(policy or {})}
        self._files = {
            prefix + file.relative_to(root).as_posix(): _read(file)
            for file in sorted(root.rglob("*"))
            if file.suffix in TYPES and (root != ROOT or file.relative_to(root).parts[0] != INSPECTOR)
        }
        page = self._files.pop(prefix + INDEX, None)
        if page is not None:
            self._files[index] = page
        self.paths = frozenset(self._files)

    def routes(self) -> APIRouter:
        """Return a route for each file."""
        routes = APIRouter()
        for path, file in self._files.items():
            routes.add_api_route(path, _answer(file, self._headers), methods=["GET", "HEAD"], response_model=None)
        return routes


def _read(file: Path) -> StaticFile:
    body = file.read_bytes()
    return StaticFile(body, TYPES[file.suffix], f'"{hashlib.sha256(body).hexdigest()[:16]}"')


def _answer(file: StaticFile, sent: Mapping[str, str]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        headers = {**sent, "etag": file.tag}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.body, media_type=file.media_type, headers=headers)

    return answer
