"""Planted defects in what works with samples: loading, engines, outputs, searches, trainings and the tools around them.

Each is a slip that an engineer could make, and changes what somebody would get.
"""

from __future__ import annotations

from tests.strength.defect import Defect

_LOADER, _SOURCES, _ENGINE = "tests/loader", "tests/data", "tests/jobs"

_OF_LOADING = (
    Defect(
        name="loader-counts-padding",
        anchor="Share.positions",
        search="padding = positions >= self.length",
        replace="padding = positions > self.length",
        tests=(f"{_LOADER}/test_share.py", f"{_LOADER}/test_distributed.py"),
    ),
    Defect(
        name="loader-blocks-of-shards-share-a-permutation",
        anchor="BlockOrder.at",
        search="permute_within(places, lengths, blocks, *self._key",
        replace="permute_within(places, lengths, 0 * blocks, *self._key",
        tests=(f"{_LOADER}/test_resume.py",),
    ),
    Defect(
        name="loader-state-is-a-step-behind",
        anchor="Share.done_after",
        search="self.start + (step + 1) * self.taken_at_once",
        replace="self.start + step * self.taken_at_once",
        tests=(f"{_LOADER}/test_share.py", f"{_LOADER}/test_resume.py"),
    ),
    Defect(
        name="loader-substitutes-share-a-stream",
        anchor="EpochOrder.candidates",
        search="int(OrderPurpose.SUBSTITUTES)",
        replace="int(OrderPurpose.SAMPLES)",
        tests=(f"{_LOADER}/test_failures.py",),
    ),
    Defect(
        name="decode-takes-rows-of-the-wrong-end",
        anchor="stored_rows_needed",
        search="orientation in (3, 4, 6, 7)",
        replace="orientation in (3, 4, 7, 8)",
        tests=("tests/decode/test_decode.py", "tests/decode/test_headers.py"),
    ),
    Defect(
        name="decode-forgets-that-tiles-are-decoded-whole",
        anchor="PillowFile.__init__",
        search="check_pixels(path, *tile, max_pixels)",
        replace="check_pixels(path, image.height, image.width, max_pixels)",
        tests=("tests/decode/test_decode_memory.py",),
    ),
    Defect(
        name="tar-index-forgets-the-time",
        anchor="load_index",
        search="if index.version == version:",
        replace="if index.version.size == version.size:",
        tests=(f"{_SOURCES}/tar",),
    ),
    Defect(
        name="coco-takes-ids-for-labels",
        anchor="_read_category",
        search="_Category(label, ",
        replace='_Category(int(entry["id"]) - 1, ',
        tests=(f"{_SOURCES}/annotated/test_coco.py",),
    ),
    Defect(
        name="yolo-loses-points-at-the-edge",
        anchor="_read_row",
        search="found[(found[:, :2] == 0).all(1), 2] = 0",
        replace="found[(found[:, :2] == 0).any(1), 2] = 0",
        tests=(f"{_SOURCES}/annotated/test_yolo.py",),
    ),
    Defect(
        name="yolo-leaves-its-folder",
        anchor="_below",
        search='return None if path == ".." or path.startswith("../") else path',
        replace='return None if path == ".." else path',
        tests=(f"{_SOURCES}/annotated/test_yolo.py",),
    ),
)

_OF_ENGINES = (
    Defect(
        name="engine-steals-from-the-head",
        anchor="Scheduler._next_task",
        search="return longest.queue.pop()",
        replace="return longest.queue.popleft()",
        tests=("tests/workers/test_scheduler.py",),
    ),
    Defect(
        name="engine-tries-once-too-often",
        anchor="Scheduler._redo",
        search="if task.failures[item] == self._rules.max_failures:",
        replace="if task.failures[item] > self._rules.max_failures:",
        tests=("tests/workers/test_scheduler.py",),
    ),
    Defect(
        name="engine-drops-a-lost-task",
        anchor="Scheduler._lost",
        search="self._requeue(tasks[1:])",
        replace="self._requeue(tasks[2:])",
        tests=("tests/workers/test_scheduler.py",),
    ),
    Defect(
        name="engine-records-parts-before-they-last",
        anchor="PartWriter.commit",
        search="""self.storage.sync()
        write_record""",
        replace="""write_record""",
        tests=(f"{_ENGINE}/augment/test_expansion.py",),
    ),
    Defect(
        name="sinks-rename-before-a-shard-lasts",
        anchor="LocalStorage.writer",
        search="self.place_of(relative), put, is_synced=True)",
        replace="self.place_of(relative), put)",
        tests=("tests/data/storage", "tests/jobs/test_resume.py"),
    ),
    Defect(
        name="sinks-believe-records-of-lost-files",
        anchor="Parts.__init__",
        search="if all(size_of(",
        replace="if written or all(size_of(",
        tests=("tests/jobs/output/test_run_folder.py",),
    ),
    Defect(
        name="sinks-verify-sizes-alone",
        anchor="_check_file",
        search="if digest != sha256:",
        replace="if not digest:",
        tests=("tests/jobs/output/test_verify.py",),
    ),
)

_OF_LEARNING = (
    Defect(
        name="search-copies-the-worst",
        anchor="exploit",
        search="donors = ranked[len(low) :][-share:]",
        replace="donors = ranked[len(low) :][:share]",
        tests=("tests/learn/search/test_exploit.py",),
    ),
    Defect(
        name="training-average-forgets-itself",
        anchor="MovingAverage.update",
        search="mine.lerp_(new, 1 - decay)",
        replace="mine.lerp_(new, decay)",
        tests=("tests/learn/train/test_optimizers.py",),
    ),
    Defect(
        name="training-rate-is-a-step-ahead",
        anchor="Fit.run_epoch",
        search="epoch + before / length",
        replace="epoch + (before + step_images) / length",
        tests=("tests/learn/train/test_trainer.py",),
    ),
    Defect(
        name="training-parts-do-not-share-a-step",
        anchor="Fit._add_gradients",
        search="self.step.add_gradients(images, labels, step_images, weights)",
        replace="self.step.add_gradients(images, labels, len(images), weights)",
        tests=("tests/learn/train/test_trainer.py",),
    ),
)

_OF_TOOLS = (
    Defect(
        name="check-names-one-copy-of-a-leak",
        anchor="_leaks",
        search="for row in copies.of(train) if is_train[row]",
        replace="for row in [train]",
        tests=("tests/apps/check/duplicates/test_findings.py",),
    ),
    Defect(
        name="check-report-runs-what-a-name-says",
        anchor="_rows_json",
        search='.replace("<", "\\\\u003c")',
        replace="",
        tests=("tests/apps/check/report/test_report.py",),
    ),
    Defect(
        name="verify-ends-well-with-problems",
        anchor="verify",
        search="raise typer.Exit(console.FAILED)",
        replace="raise typer.Exit(0)",
        tests=("tests/cli/test_cli.py",),
    ),
    Defect(
        name="commands-do-not-steal",
        anchor="DeviceOptions",
        search='(work stealing).", "Devices")] = True',
        replace='(work stealing).", "Devices")] = False',
        tests=("tests/options",),
    ),
    Defect(
        name="doctor-counts-bad-files-among-the-good",
        anchor="_Session.notes",
        search="tried = len(bad) + len(self._held.good)",
        replace="tried = len(self._held.good)",
        tests=("tests/apps/doctor/test_doctor.py",),
    ),
    Defect(
        name="preview-draws-boxes-a-pixel-large",
        anchor="_shown_boxes",
        search="np.maximum(edges[:, 2:] - 1, edges[:, :2])",
        replace="np.maximum(edges[:, 2:], edges[:, :2])",
        tests=("tests/apps/preview/test_overlay.py",),
    ),
    Defect(
        name="torch-workers-repeat-one-another",
        anchor="RunningIds.take_one",
        search="(0, 0) if seed is None else rng.stream_key(seed & _MASK64, 0)",
        replace="(0, 0)",
        tests=("tests/interop/test_torch_data.py",),
    ),
    Defect(
        name="timm-sizes-are-rounded-up",
        anchor="_Pipeline.evaluation",
        search="math.floor(side / share)",
        replace="math.ceil(side / share)",
        tests=("tests/interop/convert/test_timm.py",),
    ),
    Defect(
        name="addresses-show-their-parameters",
        anchor="_AFTER_PATH",
        search='re.compile(r"[?#;]")',
        replace='re.compile(r"[?#]")',
        tests=("tests/io/test_addresses.py", "tests/cli/test_secrets.py"),
    ),
)

DEFECTS: tuple[Defect, ...] = (*_OF_LOADING, *_OF_ENGINES, *_OF_LEARNING, *_OF_TOOLS)
