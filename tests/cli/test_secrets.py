"""No secret is ever printed: not in a message, not with --verbose, not by a server that echoes."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.cli.conftest import Calque

SECRET = "planted-secret-0123456789"
KEY = base64.b64encode(SECRET.encode()).decode()


class Echo(BaseHTTPRequestHandler):
    """Gives out tokens; refuses everything else, repeating all it was told in its error."""

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        status = 403
        told = f"you said {self.requestline} {self.headers}"
        if self.path.startswith("/token"):
            status = 200
            body = json.dumps({"access_token": SECRET, "expires_in": 3600, "token_type": "Bearer"})
        elif self.path.startswith("/storage"):
            body = json.dumps({"error": {"code": 403, "message": told, "errors": []}})
        else:
            plain = told.replace("&", "&amp;").replace("<", "&lt;")
            body = f"<Error><Code>AccessDenied</Code><Message>{plain}</Message></Error>"
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if body[0] == "{" else "text/xml")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    """The server's address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _service_account(folder: Path, echo: str) -> tuple[Path, str]:
    """A key file, and a line of its private key."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = made.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    file = folder / "account.json"
    file.write_text(
        json.dumps(
            {
                "type": "service_account",
                "client_email": "me@project.example",
                "token_uri": f"{echo}/token",
                "private_key": pem,
            }
        )
    )
    return file, pem.splitlines()[3]


def _accounts(echo: str, folder: Path) -> dict[str, tuple[dict[str, str], tuple[str, ...]]]:
    """For each way to say who one is: the environment, and what must never be seen."""
    key_file, line = _service_account(folder, echo)
    azure = {"AZURE_STORAGE_ACCOUNT": "me"}
    signature = f"sv=2024-11-04&sp=rwdl&sig={SECRET}"
    joined = f"AccountName=me;AccountKey={KEY};BlobEndpoint={echo}/me"
    return {
        "s3": (
            {
                "AWS_ENDPOINT_URL_S3": echo,
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "me",
                "AWS_SECRET_ACCESS_KEY": KEY,
                "AWS_SESSION_TOKEN": SECRET,
            },
            (SECRET, KEY),
        ),
        "gs": ({"GOOGLE_APPLICATION_CREDENTIALS": str(key_file)}, (SECRET, line)),
        "az by key": ({**azure, "AZURE_STORAGE_KEY": KEY}, (SECRET, KEY)),
        "az by signature": ({**azure, "AZURE_STORAGE_SAS_TOKEN": signature}, (SECRET,)),
        "az by connection": ({"AZURE_STORAGE_CONNECTION_STRING": joined}, (SECRET, KEY)),
    }


@pytest.mark.parametrize("who", ["s3", "gs", "az by key", "az by signature", "az by connection"])
def test_nothing_is_told(
    calque: Calque,
    folder: Path,
    tmp_path: Path,
    environment: dict[str, str],
    echo: str,
    who: str,
) -> None:
    """Refused listings and writes, with and without --verbose: a message, and no secret."""
    (folder / "file").write_bytes(b"data")
    account, secrets = _accounts(echo, tmp_path)[who]
    environment |= account
    scheme = who.partition(" ")[0]
    option = ()
    if scheme != "s3" and who != "az by connection":
        option = ("-o", f"endpoint={echo}" if scheme == "gs" else f"endpoint={echo}/me")
    for arguments in (("ls", f"{scheme}://box/"), ("cp", "file", f"{scheme}://box/key")):
        done = calque("--verbose", *arguments, *option)
        assert done.returncode == 1, done.stderr
        assert "error: " in done.stderr
        assert "403" in done.stderr
        for secret in secrets:
            assert secret not in done.stdout + done.stderr
