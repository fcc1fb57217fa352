"""``variegate studio [SRC]``: a policy tuned in the browser."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from dataclasses import dataclass

from variegate.cli.augment import targets_of
from variegate.cli.console import emit_json, note, say, stderr, warnings_as_notes
from variegate.cli.options import ImportOptions
from variegate.options import option
from variegate.options.datasets import TargetOptions


@dataclass(frozen=True, kw_only=True)
class StudioOptions(TargetOptions, ImportOptions):
    src: str | None = option(
        None, "Images: a folder, shards, or one image; or OUT of augment. By default, sample photos.",
        "Arguments", metavar="SRC",
    )  # fmt: skip
    policy: str = option(
        "randaugment",
        "Policy to begin with: a policy name, a timm string, a .json or .yaml file, or none.",
        "Augmentation",
        metavar="POLICY",
    )
    size: int = option(224, "Longer side of the images, scaled before the policy.", "Augmentation", low=16, high=1024)
    findings: str | None = option(
        None, "Table that variegate check wrote for SRC; its images are shown by finding.", "Images",
        metavar="FINDINGS.PARQUET",
    )  # fmt: skip
    port: int = option(0, "Port on 127.0.0.1. By default, any free port.", "Running", low=0, high=65535)
    browser: bool = option(True, "Open the page in the browser.", "Running")


def studio(options: StudioOptions) -> None:
    """Tune a policy on your own images in the browser.

    Prints the address of a page on this machine, which shows how the policy changes the images while you add, order
    and tune its operations. Nothing is uploaded or loaded from a network. Over SSH, forward the port: ssh -L
    8700:127.0.0.1:8700 HOST, with --port 8700. Ctrl-C ends it.
    """
    from variegate.apps.preview.choosing import Annotations
    from variegate_studio.opening import studio as open_studio

    with warnings_as_notes(stderr()):
        annotations = Annotations(options.annotations, targets_of(options))
        policy = None if options.policy == "none" else options.policy
        server = open_studio(
            options.src,
            policy,
            size=options.size,
            annotations=annotations,
            findings=options.findings,
            port=options.port,
        )
    if options.as_json:
        emit_json("ready", url=server.url, port=server.port)
    else:
        say(server.url)
        note("Ctrl-C ends the studio; the address holds a token, so do not pass it on")
    if options.browser:
        webbrowser.open(server.url)
    with suppress(KeyboardInterrupt):
        server.wait()
    server.close()
