"""Processes that start with nothing compiled: one compiles, the others wait and load; nothing on disk stops them."""

from __future__ import annotations

import os
import platform
import signal
from pathlib import Path

import pytest

from tests.compiling.tiny import RESULTS, end, go, read_until, run, start

pytestmark = pytest.mark.process

ALL = ["leaf", "left", "right"]


def refuse_writing(folder: Path, locator: str) -> None:
    """Let processes find that they may not write where a locator of Numba's says; root may write anywhere."""
    (folder / "site").mkdir()
    (folder / "site" / "patched_numba.py").write_text(f"""
import numba.core.caching
def refuse(self):
    raise PermissionError(13, "Permission denied")
numba.core.caching.{locator}.ensure_cache_path = refuse
""")


def test_a_second_process_compiles_nothing_and_says_nothing(tmp_path: Path) -> None:
    first, _ = run(tmp_path)
    assert sorted(first["compiled"]) == ALL
    second, said = run(tmp_path)
    assert second == {"compiled": [], "results": RESULTS}
    assert said == []


def test_exactly_one_of_many_processes_compiles_each_kernel(tmp_path: Path) -> None:
    """They call the kernels in opposite orders, each of which holds what the other needs."""
    orders = ["results += [tiny.right(1), tiny.left(1)]", "results += [tiny.left(1), tiny.right(1)]"]
    processes = [start(tmp_path, orders[n % 2], pause=0.3, waits=True) for n in range(4)]
    go(*processes)
    ended = [end(process)[0] for process in processes]
    assert sorted(name for done in ended for name in done["compiled"]) == ALL
    assert [sorted(done["results"]) for done in ended] == [[13, 16]] * 4


@pytest.mark.slow
def test_threads_and_processes_together(tmp_path: Path) -> None:
    steps = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    results += pool.map(lambda n: [tiny.right, tiny.left, tiny.leaf][n % 3](1), range(12))
"""
    processes = [start(tmp_path, steps, pause=0.2, waits=True) for _ in range(2)]
    go(*processes)
    ended = [end(process)[0] for process in processes]
    assert sorted(name for done in ended for name in done["compiled"]) == ALL
    assert [done["results"] for done in ended] == [RESULTS * 4] * 2


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_the_next_process_takes_over_from_one_that_is_killed(tmp_path: Path) -> None:
    holder = start(tmp_path, pause=600.0)
    read_until(holder, "compiling right")
    waiting = start(tmp_path, waits=True)
    go(waiting)
    with pytest.raises(Exception, match="timed out"):
        waiting.communicate(timeout=4)
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    done, said = end(waiting)
    assert sorted(done["compiled"]) == ALL
    assert done["results"] == RESULTS
    assert said[0].startswith("variegate: waiting for another process to compile kernels into ")


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_who_waits_can_be_interrupted(tmp_path: Path) -> None:
    holder = start(tmp_path, pause=600.0)
    read_until(holder, "compiling right")
    waiting = start(tmp_path, waits=True)
    go(waiting)
    with pytest.raises(Exception, match="timed out"):
        waiting.communicate(timeout=3)
    waiting.send_signal(signal.SIGINT)
    assert waiting.communicate(timeout=60)[1].splitlines()[-1] == "KeyboardInterrupt"
    assert holder.poll() is None
    holder.kill()
    holder.communicate()


def test_code_that_does_not_compile_keeps_nobody_out(tmp_path: Path) -> None:
    steps = """
try:
    tiny.right("text")
except Exception as error:
    results.append(type(error).__name__)
print("failed", flush=True)
sys.stdin.readline()
"""
    failed = start(tmp_path, steps)
    read_until(failed, "failed")
    assert run(tmp_path)[0]["results"] == RESULTS
    assert failed.stdin is not None
    failed.stdin.write("\n")
    failed.stdin.flush()
    assert end(failed)[0]["results"] == ["TypingError"]


def test_a_kill_leaves_nothing_that_is_taken_for_new_code(tmp_path: Path) -> None:
    """The folder keeps the code of older sources, under the same names."""
    run(tmp_path)
    text = (tmp_path / "tiny.py").read_text()
    (tmp_path / "tiny.py").write_text(text.replace("x * 2 + 1", "x * 2 + 0x2"))
    # Ended between the two files that Numba writes for a kernel.
    steps = """
import os
replace = os.replace
os.replace = lambda *paths: (replace(*paths), os._exit(0))
tiny.leaf(1)
"""
    killed = start(tmp_path, steps)
    killed.communicate(timeout=300)
    done, _ = run(tmp_path)
    assert done["results"] == [18, 14, 4]


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_damaged_files_are_compiled_again(tmp_path: Path, ending: str) -> None:
    run(tmp_path)
    for path in tmp_path.rglob(f"*.{ending}"):
        data = path.read_bytes()
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes(255 - byte for byte in data[middle : middle + 64]) + data[middle + 64 :])
    done, _ = run(tmp_path)
    assert done["results"] == RESULTS
    assert done["compiled"] != []
    assert run(tmp_path)[0] == {"compiled": [], "results": RESULTS}


def test_nowhere_to_write(tmp_path: Path) -> None:
    """Read-only site-packages, and no cache of the user."""
    steps = "results += [tiny.right(1), tiny.left(1), tiny.leaf(1.5)]"
    nowhere = {"NUMBA_CACHE_DIR": "/dev/null/x", "XDG_CACHE_HOME": "/dev/null/x", "HOME": None}
    refuse_writing(tmp_path, "_CacheLocator")
    done, said = run(tmp_path, steps, pause=0.7, env=nowhere)
    assert sorted(done["compiled"]) == ["leaf", *ALL]
    assert len(said) == 2
    assert said[0].endswith("in every process, as no cache folder is writable; set NUMBA_CACHE_DIR to one that is")
    assert list(tmp_path.rglob("*.nb?")) == []


def test_a_folder_that_can_only_be_read_is_read(tmp_path: Path) -> None:
    """As in a container whose image was built with the kernels in it, by another user."""
    beside = {"NUMBA_CACHE_DIR": None, "XDG_CACHE_HOME": str(tmp_path / "user")}
    assert sorted(run(tmp_path, env=beside)[0]["compiled"]) == ALL
    refuse_writing(tmp_path, "InTreeCacheLocator")
    assert run(tmp_path, env=beside)[0] == {"compiled": [], "results": RESULTS}
    # And what is not there is kept where it can be.
    steps = "results += [tiny.leaf(1.5)]"
    assert run(tmp_path, steps, env=beside)[0]["compiled"] == ["leaf"]
    assert run(tmp_path, steps, env=beside)[0]["compiled"] == []
    assert len(list((tmp_path / "user").rglob("*.nbc"))) == 1


@pytest.mark.skipif(os.name != "posix", reason="limits of file sizes")
def test_a_full_disk(tmp_path: Path) -> None:
    steps = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
results += [tiny.right(1), tiny.left(1), tiny.leaf(1)]
"""
    done, said = run(tmp_path, steps)
    assert done["results"] == RESULTS
    unkept = [line for line in said if "cannot be cached" in line]
    assert len(unkept) == 1
    assert unkept[0].startswith(f"variegate: kernels cannot be cached in {tmp_path / 'cache'}")
    assert unkept[0].endswith(" (File too large); every process compiles them again")
    assert list(tmp_path.rglob("*.nb?")) == []


def test_no_lock_where_there_can_be_none(tmp_path: Path) -> None:
    """As on network disks that know no locks."""
    steps = """
import errno, fcntl
def refuse(*_):
    raise OSError(errno.ENOLCK, "No locks available")
fcntl.flock = refuse
results += [tiny.right(1), tiny.left(1), tiny.leaf(1)]
"""
    done, _ = run(tmp_path, steps)
    assert (sorted(done["compiled"]), done["results"]) == (ALL, RESULTS)
    assert run(tmp_path)[0]["compiled"] == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_fork_while_another_thread_compiles(tmp_path: Path) -> None:
    """The child neither waits for a thread that it does not have, nor keeps the lock from others."""
    steps = """
import os, threading
thread = threading.Thread(target=tiny.right, args=(1,))
thread.start()
while not Compiled.names:
    time.sleep(0.01)
child = os.fork()
if child == 0:
    os._exit(tiny.right(1))
thread.join()
results.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
sleeper = os.fork()
if sleeper == 0:
    time.sleep(60)
    os._exit(0)
print("forked", flush=True)
sys.stdin.readline()
os.kill(sleeper, 9)
"""
    process = start(tmp_path, steps, pause=0.3)
    read_until(process, "forked")
    assert run(tmp_path, "results += [tiny.leaf(1.5)]")[0]["results"] == [4.0]
    assert process.stdin is not None
    process.stdin.write("\n")
    done, _ = end(process)
    assert done["results"] == [RESULTS[0]]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of x86-64 processors")
def test_two_kinds_of_processor_share_a_folder(tmp_path: Path) -> None:
    """As on a network disk: each has code of its own, and runs that alone."""
    kinds = [{"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": ""} for name in ("x86-64", "x86-64-v2")]
    for env in kinds:
        done, _ = run(tmp_path, env=env)
        assert (sorted(done["compiled"]), done["results"]) == (ALL, RESULTS)
    for env in kinds:
        assert run(tmp_path, env=env)[0] == {"compiled": [], "results": RESULTS}


def test_two_versions_share_a_folder(tmp_path: Path) -> None:
    """Each time the code of the sources that are there is run, whatever was left by the others."""
    run(tmp_path)
    old = (tmp_path / "tiny.py").read_text()
    # Of another length, too: Python takes bytecode of a file of the same size and second for the file's own.
    new = old.replace("x * 2 + 1", "x * 2 + 0x2")
    for text, results in ((new, [18, 14, 4]), (old, RESULTS), (new, [18, 14, 4])):
        (tmp_path / "tiny.py").write_text(text)
        assert run(tmp_path)[0]["results"] == results
