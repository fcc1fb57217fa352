"""``variegate studio [SRC]``: a policy tuned in the browser."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from variegate.cli.console import emit_json, note, print_line, stderr, warnings_as_notes
from variegate.cli.options import ImportOptions
from variegate.options import Opt
from variegate.options.shared import TargetOptions


@dataclass(frozen=True, kw_only=True)
class StudioOptions(TargetOptions, ImportOptions):
    src: Annotated[
        str | None,
        Opt(
            "Images: a folder, shards, or one image; or OUT of augment. By default, sample photos.",
            "Arguments",
            metavar="SRC",
        ),
    ] = None
    policy: Annotated[
        str,
        Opt(
            "Policy to begin with: a policy name, a timm string, a .json or .yaml file, or none.",
            "Augmentation",
            metavar="POLICY",
        ),
    ] = "randaugment"
    size: Annotated[
        int, Opt("Longer side of the images, scaled before the policy.", "Augmentation", ge=16, le=1024)
    ] = 224
    findings: Annotated[
        str | None,
        Opt(
            "Table that variegate check wrote for SRC; its images are shown by finding.",
            "Images",
            metavar="FINDINGS.PARQUET",
        ),
    ] = None
    port: Annotated[int, Opt("Port on 127.0.0.1. By default, any free port.", "Running", ge=0, le=65535)] = 0
    browser: Annotated[bool, Opt("Open the page in the browser.", "Running")] = True


def studio(options: StudioOptions) -> None:
    """Tune a policy on your own images in the browser.

    Prints the address of a page on this machine, which shows how the policy changes the images while you add, order
    and tune its operations. Nothing is uploaded or loaded from a network. Over SSH, forward the port: ssh -L
    8700:127.0.0.1:8700 HOST, with --port 8700. Ctrl-C ends it.

    Examples:
        variegate studio photos --policy imagenet
        variegate studio photos --findings findings.parquet --port 8700
    """
    from variegate.apps.preview.choosing import Annotations
    from variegate.jobs.arguments import targets_of
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
        print_line(server.url)
        note("Ctrl-C ends the studio; the address holds a token, so do not pass it on")
    if options.browser:
        webbrowser.open(server.url)
    with suppress(KeyboardInterrupt):
        server.wait()
    server.close()
