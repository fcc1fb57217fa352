"""What tests begin by forking is a process like any that is begun anew."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import run_python, start_python

pytestmark = pytest.mark.process
PIPE = subprocess.PIPE


def test_it_ends_as_python_does() -> None:
    ends = {
        "": 0,
        "import sys; sys.exit(3)": 3,
        "raise SystemExit": 0,
        "import os; os._exit(7)": 7,
        "1 / 0": 1,
        "import os; os.kill(os.getpid(), 9)": -signal.SIGKILL,
        "raise KeyboardInterrupt": -signal.SIGINT,
        "import signal; signal.raise_signal(signal.SIGTERM)": -signal.SIGTERM,
        "import sys; sys.exit('so')": 1,
        "def f():\n    raise ValueError('so')\n\nf()": 1,
        # What is left to do at the end is done.
        """
import atexit, threading, time
class Late:
    def __del__(self):
        print("collected")
late = Late()
atexit.register(print, "handled")
threading.Thread(target=lambda: (time.sleep(0.1), print("joined"))).start()
print("left", end=" ")
""": 0,
    }
    for code, expected in ends.items():
        ran = run_python(code)
        fresh = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout, ran.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr), code
        assert ran.returncode == expected, code


def test_its_surroundings_are_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME", "one")
    code = "import os, sys; print(os.getcwd(), os.environ.get('SOME'), sys.argv[1:], __name__, '__file__' in globals())"
    told = f"{tmp_path} two ['a b', '3', '{tmp_path}'] __main__ False\n"
    assert run_python(code, "a b", 3, tmp_path, cwd=tmp_path, env={**os.environ, "SOME": "two"}).stdout == told
    monkeypatch.chdir(tmp_path)
    assert run_python(code).stdout == f"{tmp_path} one [] __main__ False\n"
    with pytest.raises(AssertionError, match="VARIEGATE_LEVEL"):
        run_python(code, env={**os.environ, "VARIEGATE_LEVEL": "x86-64"})

    # It reads and writes what it is given.
    code = "import sys; print(sys.stdin.read(), end=''); print('ü', file=sys.stderr)"
    long = "ä\n" * 100_000  # more than a pipe holds
    ran = run_python(code, input=long)
    assert (ran.stdout, ran.stderr) == (long, "ü\n")
    assert run_python(code, input=b"\xc3\xa4", text=False).stdout == "ä".encode()
    code = "print('there', flush=True); import os; os.write(2, b'too')"
    with open(tmp_path / "out", "w") as file, start_python(code, stdout=file, stderr=subprocess.STDOUT) as child:
        pass
    assert (tmp_path / "out").read_text() == "there\ntoo"
    assert child.poll() == child.returncode == 0

    # Nothing of another child is seen.
    first = "import sys, variegate; sys.modules['left'] = variegate; variegate.left = left = 1"
    assert run_python(first).returncode == 0
    assert run_python("import sys, variegate; print('left' in sys.modules, hasattr(variegate, 'left'))").stdout == (
        "False False\n"
    )


def test_several_at_once_answer_one_after_another_and_take_signals() -> None:
    code = "import sys; print('ready', flush=True); print(sys.stdin.readline(), end='')"
    children = [start_python(code, stdin=PIPE, stdout=PIPE, text=True) for _ in range(3)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
        assert child.poll() is None
    for number, child in reversed([*enumerate(children)]):
        assert child.communicate(f"{number}\n", timeout=60) == (f"{number}\n", None)
        assert child.returncode == 0
    assert len({child.pid for child in children}) == 3
    # In short sleeps: a signal that comes just before a long one is answered after it.
    code = "import time; print('ready', flush=True)\nwhile True: time.sleep(0.05)"
    for send in (lambda child: child.send_signal(signal.SIGINT), lambda child: os.killpg(child.pid, signal.SIGINT)):
        with start_python(code, stdout=PIPE, stderr=PIPE, text=True, start_new_session=True) as child:
            assert child.stdout.readline() == "ready\n"
            send(child)
            _, said = child.communicate(timeout=60)
        assert child.returncode == -signal.SIGINT
        assert said.endswith("KeyboardInterrupt\n")
        with pytest.raises(ProcessLookupError):
            os.kill(child.pid, 0)

    # What takes too long is killed.
    with pytest.raises(subprocess.TimeoutExpired):
        run_python("import time; time.sleep(600)", timeout=0.2)
    with start_python("import time; time.sleep(600)") as child:
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.1)
        child.kill()
    assert child.returncode == -signal.SIGKILL


def test_it_begins_processes_of_its_own(tmp_path: Path) -> None:
    code = """
import multiprocessing, os
for method in ("spawn", "fork"):
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        print(pool.map(abs, [-1, -2]), pool.apply(os.getcwd), pool.apply(os.getppid) == os.getpid())
"""
    ran = run_python(code, cwd=tmp_path)
    assert (ran.stdout, ran.stderr) == (f"[1, 2] {tmp_path} True\n" * 2, "")


def test_tiers_can_be_chosen() -> None:
    """Before pytest chooses by -m, every test without another tier is a unit test."""
    code = "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
    run = run_python(
        code, "--collect-only", "-q", "-p", "no:randomly", "-m", "unit", Path(__file__).parent / "test_errors.py"
    )
    assert run.returncode == 0, run.stdout
    assert "test_errors.py::" in run.stdout
