"""Addresses in messages: host and path are there, and what opens doors is not."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variegate.io.addresses import redact_secrets, redact_url

SCHEMES = ("http", "https", "s3", "gs", "ftp", "sftp", "memory", "abfs", "ray", "webdav", "newscheme")
OUTER = ("", "zip://inner/a.jpg::", "simplecache::", "zip://a.jpg::simplecache::")
TEXTS = ("{}", "cannot read {}: gone", "404, url='{}' (no)", 'at "{}", perhaps', "({})", "from {} to", "`{}`")
# Letters of secrets are capitals, and nothing else is: not one of them may be left.
LETTERS = "QXZÄ0123456789-._~%+&=$!*,"


@dataclass(frozen=True)
class Case:
    address: str
    visible: str  # host and path
    is_clear: bool  # it can be read in one way only


def secret(extra: str) -> st.SearchStrategy[str]:
    return st.text(LETTERS + extra, min_size=1, max_size=12).map(lambda text: f"Q{text}Z")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    host = draw(st.sampled_from(["host", "data.example.org", "10.0.0.7", "[::1]"])) + draw(
        st.sampled_from(["", ":8080"])
    )
    path = draw(st.sampled_from(["/a.tar", "/deep/train-000.tar", "/x.parquet", "/photos", "/b/c/d.jpg"]))
    place = draw(st.sampled_from(["user", "password", "query", "fragment", "params"]))
    hidden = draw(secret("@;" if place == "user" else "@:/?#;"))
    has_user = draw(st.booleans()) or place in ("user", "password")
    user = (f"{hidden}:pw@" if place == "user" else f"me:{hidden}@" if place == "password" else "me:pw@") * has_user
    if place == "user" and draw(st.booleans()):
        user = f"{hidden}@"
    tail = {"query": f"?sig={hidden}", "fragment": f"#{hidden}", "params": f";jsessionid={hidden}"}.get(place, "")
    address = f"{draw(st.sampled_from(OUTER))}{draw(st.sampled_from(SCHEMES))}://{user}{host}{path}{tail}"
    # Behind a user, me:pw@host/photos?sig=Q@Z may also be the password "pw@host/photos?sig=Q" of the host "Z".
    late = "@" in tail and has_user and "." not in path
    inside = place == "password" and re.search("@.*[?#;]", hidden, re.DOTALL) is not None
    return Case(address, host + path, not late and not inside)


@given(cases(), st.sampled_from(TEXTS))
def has_no_secret(case: Case, text: str) -> None:
    for said in (redact_url(case.address), redact_secrets(text.format(case.address))):
        assert not re.search("[QXZÄ]", said), said
        assert "pw" not in said
        if case.is_clear:
            assert case.visible in said
    assert redact_secrets(redact_url(case.address)) == redact_url(case.address)


@pytest.mark.parametrize("examples", [300, pytest.param(1500, marks=pytest.mark.slow)])
def test_no_secret_in_any_place_of_any_address(examples: int) -> None:
    settings(max_examples=examples)(has_no_secret)()


@settings(max_examples=200)
@given(cases())
def test_what_a_package_says_of_a_known_address(case: Case) -> None:
    from urllib.parse import quote, unquote

    said = f"no: {unquote(case.address)} ({quote(case.address)}): '{case.address}'"
    assert not re.search("Q[^ ]*Z", redact_secrets(said, case.address))


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://user:pass@host/a.tar?X-Signature=abc:d&x=1", "https://host/a.tar"),
        ("https://user:p/a@ss@host/a.tar", "https://host/a.tar"),
        ("https://user:p%40ss@host/a.tar", "https://host/a.tar"),
        ("https://user:p?a#s:s@host/a.tar", "https://host/a.tar"),
        ("https://token@host:8080/a.tar", "https://host:8080/a.tar"),
        ("https://host:8080/a@b.tar", "https://host:8080/a@b.tar"),
        ("https://host:8080/a.tar?to=me@host/x", "https://host:8080/a.tar"),
        ("https://me:8080/x@host/a.tar", "https://host/a.tar"),
        ("https://host/a@b/c.tar#part", "https://host/a@b/c.tar"),
        ("https://host/a.tar;jsessionid=1F/2", "https://host/a.tar"),
        ("https://host/data;p/x.tar", "https://host/data;p/x.tar"),
        ("https://host/data;p/x.tar;v=1?token=1", "https://host/data"),
        ("https://host/data;p/x.tar?token=1", "https://host/data;p/x.tar"),
        ("https://host/data;sid=1F/x.tar", "https://host/data"),
        ("https://me:pw@host/a.tar?sig=x@y/z", "https://host/a.tar"),
        ("https://me:pw@host/a?sig=x@y/z", "https://…"),
        ("https://me:a::zz://b@host/a.tar", "https://host/a.tar"),
        ("https://proxy/https://me:pw@host/a.tar?x=1", "https://proxy/https://host/a.tar"),
        ("https://bucket.s3.amazonaws.com/k.tar?X-Amz-Credential=AK%2F1&X-Amz-Signature=f", "https://bucket.s3.amazonaws.com/k.tar"),
        ("s3://KEY:se/cr+et@bucket/a.tar", "s3://bucket/a.tar"),
        ("s3://bucket/a-?.tar", "s3://bucket/a-?.tar"),
        ("s3://bucket/a.tar?versionId=1", "s3://bucket/a.tar"),
        ("s3://bucket/folder?token/manifest.parquet", "s3://bucket/folder"),
        ("memory://bucket/folder#SECRET", "memory://bucket/folder"),
        ("zip://a.jpg::https://user:pass@host/b.zip?token=1", "zip://a.jpg::https://host/b.zip"),
        ("zip://a.jpg::memory://d/x@y", "zip://a.jpg::memory://d/x@y"),
        ("zip://a:b@c.jpg::memory://d/x", "zip://a:b@c.jpg::memory://d/x"),
        ("file:///C:/a@b/c.jpg", "file:///C:/a@b/c.jpg"),
        ("a@b?c;d#e.tar", "a@b?c;d#e.tar"),
        ("C:\\photos#1", "C:\\photos#1"),
    ],
)  # fmt: skip
def test_as_it_is_shown(address: str, expected: str) -> None:
    assert redact_url(address) == expected


def test_what_a_path_object_made_of_an_address() -> None:
    assert redact_secrets("https:/me:pw@host/a.json: no such file") == "https:/host/a.json: no such file"
    assert redact_secrets("note:/me:pw@host, C:/x@y") == "note:/me:pw@host, C:/x@y"


def test_secrets_that_stand_alone() -> None:
    address = "sftp://bob:open%20sesame@host/a file.tar?sig=abc&x=1"
    said = "Authentication failed for bob with 'open sesame', sig abc, at " + address
    assert redact_secrets(said, address) == ("Authentication failed for … with '…', sig …, at sftp://host/a file.tar")
