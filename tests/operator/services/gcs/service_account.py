"""A service account of a test's own."""

from __future__ import annotations

import json
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

EMAIL = "robot@p.example"


def key_file(folder: Path, token_uri: str) -> Path:
    """The JSON file of a new service account, as the console lets one download it."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    account = {
        "type": "service_account",
        "project_id": "p",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": EMAIL,
        "client_id": "1",
        "token_uri": token_uri,
    }
    path = folder / "key.json"
    path.write_text(json.dumps(account))
    return path


def public_key(path: Path) -> rsa.RSAPublicKey:
    """What the service knows of the account in a key file."""
    pem = json.loads(path.read_text())["private_key"].encode()
    key = serialization.load_pem_private_key(pem, password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key.public_key()
