"""``variegate demo``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from variegate.cli.augment import run_expansion
from variegate.cli.console import emit_json, print_facts, say, stderr
from variegate.cli.options import CommandOptions
from variegate.options import option


@dataclass(frozen=True, kw_only=True)
class DemoOptions(CommandOptions):
    folder: Path = option(Path("demo"), "The folder to write to.", "Arguments", metavar="[DIR]")
    copies: int = option(8, "How many augmented copies to make of every photo.", "Augmentation", low=1)
    seed: int = option(0, "Another seed gives other augmentations.", "Augmentation", low=0)
    threads: int | None = option(None, "Threads to use. Without it, all cores.", "Running", low=1)


def demo(options: DemoOptions) -> None:
    """Expand a few photos with RandAugment, and draw a contact sheet of the result.

    The photos come with the package; nothing is downloaded.
    """
    from variegate.demo import run_demo

    as_json = options.as_json
    if not as_json:
        say("preparing: photos, and kernels (compiled at the first start only, for about a minute) ...", stderr())

    run = partial(run_expansion, as_json=as_json, summary=False)
    done = run_demo(options.folder, options.copies, options.seed, options.threads, run)
    if as_json:
        emit_json(
            "done",
            photos=str(done.photos),
            augmented=str(done.augmented),
            sheet=str(done.sheet),
            written=done.report.written,
            seconds=round(done.report.seconds, 3),
            images_per_second=round(done.report.rate, 1),
            prepare_seconds=round(done.prepare_seconds, 3),
        )
        return
    print_facts(
        [
            ("photos", f"{done.photos}  ({done.num_photos} in class folders)"),
            ("augmented", f"{done.augmented}  ({done.report.written:,} images, and manifest.parquet)"),
            ("contact sheet", str(done.sheet)),
            ("images/s", f"{done.report.rate:,.0f}  (read, decoded, augmented, encoded and written)"),
            ("kernels ready", f"in {done.prepare_seconds:.1f} s, not part of the rate"),
        ]
    )
    say("\nNext:")
    say(f"  variegate preview {done.photos} --sweep Rotate --out rotate.png")
    say(f"  variegate preview {done.photos} --policy imagenet --out imagenet.png")
    say("  variegate augment YOUR_FOLDER OUT --policy randaugment --copies 4 --size 224")
