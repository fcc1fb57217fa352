"""The storages and the cache folder of the tests of outputs."""

from tests.jobs.output.conftest import cache, remote, storage

__all__ = ["cache", "remote", "storage"]
