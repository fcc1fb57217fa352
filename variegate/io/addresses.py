"""Text as it may be shown: no secrets of addresses, and nothing that a terminal would act upon.

Of an address (URL) scheme, host and path are shown; no user, password, query, fragment or parameters. Passwords need
not be percent-encoded: they may hold @ : / ? and #.
If an address can be parsed in two ways, the secrets of both are hidden.
"""

from __future__ import annotations

import os
import re
from functools import partial
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from variegate.io.files import StrPath

# Two letters at least, so that a drive (C:\\) is no protocol.
_NAME = r"[A-Za-z][A-Za-z0-9+.-]+"
_PROTOCOL = re.compile(rf"^({_NAME})(?:://|::)")
# The second form has lost a slash in a path object. Only for schemes that are one for certain.
_SCHEME = re.compile(
    rf"(?<![A-Za-z0-9+.-])(?:({_NAME})://+|(https?|s3a?|gs|gcs|s?ftp|ssh|abfss?|az|hf|oci|oss|smb|webdavs?|memory|ray):/)"
)
# Schemes whose addresses hold paths of members and files, and never a user.
_WITHOUT_USERS = ("zip", "tar", "libarchive", "file", "local")
# Schemes that may precede an address in a chain; with any other scheme "::" is part of a password, a path or a
# signature.
_WRAPPERS = re.compile(r"(zip|tar|libarchive|reference|dir|\w*cached?|\w*wrapper)(?:$|::|://)|[A-Za-z0-9+.-]+(?:$|::)")
_PORT = re.compile(r"(\[[0-9a-fA-F:.]*\]|[^:@]*):[0-9]{1,5}")
_NUMERIC_HOST = re.compile(r"\[[0-9a-fA-F:.]*\]$")  # of IPv6
_AFTER_PATH = re.compile(r"[?#;]")
# In a glob pattern, "?" is part of the file name; in web addresses it begins the query.
_EXTENSION = r"\.(?:tar|tar\.gz|tgz|parquet|arrow|zip|jpe?g|jpe|jfif|png|webp|gif|bmp|tiff?|p[pgbn]m|json|ya?ml)"
_PATTERN = re.compile(rf"\?[^=&/]*{_EXTENSION}$", re.IGNORECASE)
# host/file.tar? is the end of a path rather than the middle of a password.
_WHOLE_PATH = re.compile(rf"[^/?#;@]+/[^?#;@]*{_EXTENSION}[?#;]", re.IGNORECASE)
# data;v2/file.tar is a folder with a semicolon in its name. A parameter has "=", or ends the path.
_IN_FOLDER = re.compile(rf";[^/=&?#;]*/[^=&?#]*{_EXTENSION}(?:[?#]|$)", re.IGNORECASE)
_WEB = ("http", "https")
_LIKE_AN_ADDRESS = re.compile(rf"{_NAME}:/")
_CLOSING = ")]}>,.;:'\"`"
# Controls (C0, DEL, C1), characters that turn or hide text (marks of direction, invisible letters, tags), and line
# separators. Surrogates, which Python uses for undecodable bytes. Joiners are letters to many scripts.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_HIDDEN = "\N{HORIZONTAL ELLIPSIS}"
# Shorter secrets also occur in ordinary words.
_LEAST_SECRET = 3
_QUOTINGS = (str, unquote, unquote_plus, quote, quote_plus, partial(quote, safe=""))


def is_url(path: str) -> bool:
    """True for what fsspec reads: ``memory://a``, ``s3://bucket/a``, ``zip://a::https://host/b.zip``."""
    return _PROTOCOL.match(path) is not None


def protocols(url: str) -> list[str]:
    """The protocols of an address, the outermost first: zip, https for ``zip://a::https://host/b.zip``."""
    return [part.partition("://")[0].lower() for part in url.split("::")]


def redact_url(path: str) -> str:
    """The path for messages and names: of an address, without secrets."""
    return "::".join(kept for kept, _ in _split(path)) if is_url(path) else path


def redact_host(address: str) -> str:
    """HOST:PORT as well, which a user and a password may stand before."""
    return redact_url(address) if is_url(address) else _split_one(f"host://{address}")[0].removeprefix("host://")


def redact_secrets(text: str, *known: str) -> str:
    """Text that may hold addresses, without the secrets in them.

    An address ends at a blank, or, where a quote stands before it, at the next such quote. ``known``: addresses that
    the text may quote verbatim, percent-encoded or decoded.
    """
    for address in known:
        text = _without_known(text, address)
    pieces: list[str] = []
    at = 0
    while ":/" in text and (found := _SCHEME.search(text, at)) is not None:
        begin = _chain_begin(text, at, found.start())
        end = _end(text, begin)
        address = text[begin:end].rstrip(_CLOSING)
        tail = text[begin + len(address) : end][-2:]  # of the sentence
        pieces += [text[at:begin], "::".join(kept for kept, _ in _split(address)), tail]
        at = end
    return "".join(pieces) + text[at:]


def escape_control(text: str) -> str:
    """Escape control characters, so that a terminal shows one line: ``\\x1b`` for escape, ``\\u202e``, ``\\udcff``."""
    return _UNPRINTABLE.sub(_escaped, text)


def redact_text(text: str) -> str:
    """A message for people: without secrets, on one line, and with nothing in it that a terminal would act upon."""
    return escape_control(redact_secrets(text))


def _chain_begin(text: str, least: int, begin: int) -> int:
    """An address may begin with protocols alone: ``simplecache::https://...``."""
    found = re.search(rf"(?:{_NAME}::)+$", text[least:begin])
    return begin if found is None else least + found.start()


def _end(text: str, begin: int) -> int:
    before = text[begin - 1 : begin]
    if before and before in "'\"`" and (end := text.find(before, begin)) >= 0:
        return end
    blank = re.compile(r"\s").search(text, begin)
    return blank.start() if blank else len(text)


def _split(address: str) -> list[tuple[str, list[str]]]:
    """For each address of a chain: its visible text, and its secrets."""
    if not _WRAPPERS.match(address):
        return [_split_one(address)]
    part, separator, rest = address.partition("::")
    return [_split_one(part), *(_split(rest) if separator else [])]


def _split_one(part: str) -> tuple[str, list[str]]:
    scheme = _SCHEME.match(part)
    if scheme is None:
        return part, []
    name = (scheme[1] or scheme[2]).lower()
    rest = part[scheme.end() :]
    kept = rest if name in _WITHOUT_USERS else _without_user(rest)
    if kept is None:
        return scheme[0] + _HIDDEN, [rest]
    hidden = [rest[: len(rest) - len(kept)]]
    for match in _AFTER_PATH.finditer(kept):
        if match[0] == "?" and name not in _WEB and _PATTERN.match(kept, match.start()):
            continue
        if match[0] == ";" and _IN_FOLDER.match(kept, match.start()):
            continue
        hidden.append(kept[match.end() :])
        kept = kept[: match.start()]
        break
    if inner := _SCHEME.search(kept):  # the address of a proxy, with that of the file as its path
        kept_inner, more = _split_one(kept[inner.start() :])
        kept = kept[: inner.start()] + kept_inner
        hidden = hidden + more
    return scheme[0] + kept, [text for text in hidden if text]


def _without_user(rest: str) -> str | None:
    """The rest of an address after its scheme, user and password; None if they cannot be determined."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    last = rest.rfind("@")
    if last < 0:
        return rest
    if last < len(authority):
        return rest[last + 1 :]
    if "@" not in authority:
        if ":" not in authority or _NUMERIC_HOST.match(authority):
            return rest
        # host:8080/a@b.tar, or user:8080/a@host/b.tar?
        if _PORT.fullmatch(authority) and (_AFTER_PATH.search(rest[:last]) or "/" not in rest[last:]):
            return rest
    first = rest.find("@")
    if not _AFTER_PATH.search(rest[first:last]):
        return rest[last + 1 :]
    # user:a@host/b?c@d, or user:a@host/b?c@host?
    return rest[first + 1 :] if _WHOLE_PATH.match(rest, first + 1) else None


def _without_known(text: str, address: str) -> str:
    text = text.replace(address, redact_url(address))
    visible = redact_url(address)
    secrets = {secret for _, hidden in _split(address) for one in hidden for secret in _values(one)}
    said = {way(secret) for secret in secrets for way in _QUOTINGS}
    for secret in sorted(said, key=len, reverse=True):
        if len(secret) >= _LEAST_SECRET and secret not in visible:
            text = text.replace(secret, _HIDDEN)
    return text


def _values(hidden: str) -> list[str]:
    """The secrets that may also occur alone: user, password, and the values of a query."""
    pieces = re.split(r"[?#;&]", hidden.removesuffix("@"))
    values = [piece.partition("=")[2] or piece for piece in pieces]
    user, _, password = hidden.removesuffix("@").partition(":")
    return [hidden.removesuffix("@"), *values, *([user, password] if hidden.endswith("@") else [])]


def check_is_local(argument: str, path: StrPath) -> None:
    """ValueError for an address where only a file of this machine can be written; ``Path`` makes one slash of two."""
    if _LIKE_AN_ADDRESS.match(os.fspath(path)):
        raise ValueError(f"{argument}: got an address; accepted: a file or folder of this machine")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
