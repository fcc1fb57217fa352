"""Run by a Python that has CleanVision: ``FOLDER JOBS`` -> one JSON object: seconds, and the issues of every file."""

import contextlib
import json
import os
import sys
import time


def main(folder: str, jobs: int) -> None:
    from cleanvision import Imagelab  # type: ignore[import-not-found, unused-ignore]

    with contextlib.redirect_stdout(sys.stderr):
        started = time.perf_counter()
        lab = Imagelab(data_path=folder)
        lab.find_issues(n_jobs=jobs)
        seconds = time.perf_counter() - started
    columns = [name for name in lab.issues.columns if name.startswith("is_")]
    found = {
        os.path.basename(path): [name[3:-6] for name in columns if row[name]] for path, row in lab.issues.iterrows()
    }
    print(json.dumps({"seconds": seconds, "found": found}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
