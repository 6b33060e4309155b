"""Site keys and tokens: who may make groups in an aggregation daemon."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path

VERSION = "palmette-token-1"
KEY_BYTES = 32
"""Least bytes of a key; a new one is as many random bytes in hexadecimal digits."""


class TokenError(ValueError):
    """A key that can't be used or a token that can't be made."""


def write_secret(path: str | Path, text: str) -> None:
    """Write a new file that only its owner may read. Raises OSError, also where the file is there already."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(handle, "w", encoding="ascii") as stream:
        stream.write(text + "\n")


def new_key() -> str:
    """Return a random key."""
    return secrets.token_hex(KEY_BYTES)


def read_key(path: str | Path) -> bytes:
    """Return a site's key. Raises TokenError where others may read the file or it is too short, and OSError."""
    given = Path(path)
    if given.stat().st_mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise TokenError(f"{path}: others may read it; chmod 600 {path}")
    key = given.read_bytes().strip()
    if len(key) < KEY_BYTES:
        raise TokenError(f"{path}: {len(key)} bytes are too short for a key; --new-key {path} makes one")
    return key


def make_token(key: bytes, uid: int, expires_s: int, groups: int) -> str:
    """Return the token as one line: what it grants, and the key that proves it, 32 bytes in hexadecimal digits.

    `expires_s` counts seconds since 1970, `groups` those at the same time in each daemon.
    """
    grant = f"{VERSION},{uid},{expires_s},{groups}"
    return f"{grant}:{hmac.new(key, grant.encode(), hashlib.sha256).hexdigest()}"
