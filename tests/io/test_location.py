"""Locations: parsed once, never shown with a secret, opened by their real address."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from variegate.io.location import Location

SECRET = "s3cr3t"
ADDRESS = f"https://me:{SECRET}@host:8080/x/a.tar?X-Signature={SECRET}#{SECRET}"


def test_no_way_to_print_one_shows_a_secret() -> None:
    location = Location.parse(ADDRESS)
    child = location.child("b.tar")
    for one in (location, child, pickle.loads(pickle.dumps(location))):
        assert SECRET not in f"{one} {one!r} {one!s:>80} {[one]} {one.name}" + "%s" % one  # noqa: UP031
        assert SECRET in one.address()
    assert str(location) == "https://host:8080/x/a.tar"
    assert repr(location) == "Location('https://host:8080/x/a.tar')"
    assert location.address() == ADDRESS


def test_only_its_address_opens_it() -> None:
    """A path function that took one would put the address into its errors."""
    with pytest.raises(TypeError):
        open(Location.parse(ADDRESS))  # type: ignore[call-overload]  # noqa: SIM115


def test_parsing_again_changes_nothing() -> None:
    location = Location.parse(ADDRESS)
    assert Location.parse(location) is location
    assert Location.of(ADDRESS) == location
    assert len({location, Location.parse(ADDRESS), Location.parse("a.tar")}) == 2


@pytest.mark.parametrize(
    ("spec", "protocols", "is_web"),
    [
        ("/a/b.tar", (), False),
        (Path("a.tar"), (), False),
        ("C:\\data", (), False),
        ("file:///a/b.tar", (), False),
        ("memory://a", ("memory",), False),
        ("HTTPS://host/a", ("https",), True),
        ("zip://a::https://host/b.zip", ("zip", "https"), False),
        ("simplecache::s3://b/c", ("simplecache", "s3"), False),
    ],
)
def test_protocols(spec: str | Path, protocols: tuple[str, ...], is_web: bool) -> None:
    location = Location.parse(spec, chain=True)
    assert (location.protocols, location.is_web, location.is_url) == (protocols, is_web, bool(protocols))


def test_home_is_a_place_where_a_user_says_so_and_a_letter_where_a_file_is_called_so() -> None:
    assert Location.parse("~/x").address() == str(Path.home() / "x")
    assert Location.of("~/x").address() == "~/x"


def test_what_is_in_a_folder() -> None:
    assert Location.parse("/a/").child("b.jpg").address() == "/a/b.jpg"
    inside = Location.parse(f"zip://a::https://me:{SECRET}@host/b.zip", chain=True).child("c?d.jpg")
    assert inside.address() == f"zip://a/c?d.jpg::https://me:{SECRET}@host/b.zip"
    assert str(inside) == "zip://a/c?d.jpg::https://host/b.zip"


@pytest.mark.parametrize("spec", ["zip://a::https://host/b.zip", "simplecache::s3://b/c", "reference::memory://a"])
def test_an_address_within_another_is_for_sources_and_destinations(spec: str) -> None:
    with pytest.raises(ValueError, match=r"an address within another \(::\); accepted: that of a file itself"):
        Location.parse(spec)
    assert Location.parse(spec, chain=True).address() == spec


def test_a_semicolon_is_a_letter_of_a_folder() -> None:
    """The name decides how a file is read."""
    assert Location.parse("http://host/data;p/x.tar").names == ("x.tar", "x.tar")
    assert "x.tar" in Location.parse("http://host/data;sid=1F/x.tar;v=2?a/b").names
