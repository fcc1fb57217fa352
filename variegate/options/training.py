"""Options of ``variegate train``. No default depends on the machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from variegate.options import Opt
from variegate.options.fit import FitOptions, Model, TrainingSeed
from variegate.options.recipes import with_recipe
from variegate.options.rows import Row, parse_row
from variegate.options.shared import Threads, TrainReadOptions

Adapt = Literal["none", "entropy"]

# Options that a resumed run may change, because they do not affect the weights.
FREE = {"out", "tensorboard", "checkpoint_every", "devices", "threads", "compile"}
# Options that it may change as well if the number of ranks changes.
FREE_ON_OTHER_RANKS = {"batch_size", "accumulate"}
# Rows without --policy. Moved copies of an image have its class on nearly all data; mirrored ones often have not.
DEFAULT_POLICY = "crop"
DEFAULT_ADAPTED_POLICY = "randaugment+crop"


@dataclass(frozen=True, kw_only=True)
class TrainOptions(FitOptions, TrainReadOptions):
    """Options of ``train``. None: chosen by the images. Raises ValueError naming the argument."""

    validation: Annotated[
        str | None,
        Opt("Validation data set to score the model on after each epoch.", "Images", metavar="SRC2", is_main=True),
    ] = None
    size: Annotated[
        str,
        Opt(
            "Image size for the model. auto keeps images of one common size of up to 64 pixels and chooses a size for "
            "others; none keeps images of one size as they are.",
            "Images",
            metavar="SIDE|HxW|auto|none",
            is_main=True,
        ),
    ] = "auto"
    policy: Annotated[
        str | None,
        Opt(
            "Augmentation: none, flip, crop, flip+crop, or a policy (a name, a timm string, a file or a schedule) and "
            f"such parts, as in randaugment-1-5+flip+crop4+cutout8. By default {DEFAULT_POLICY}; "
            f"{DEFAULT_ADAPTED_POLICY} with --adapt.",
            "Augmentation",
            metavar="POLICY",
            is_main=True,
        ),
    ] = None
    adapt: Annotated[
        Adapt,
        Opt(
            "Adapt the magnitudes of RandAugment to each image during training, by the model's confidence (entropy).",
            "Augmentation",
        ),
    ] = "none"
    mixup: Annotated[
        float,
        Opt(
            "MixUp alpha; 0 disables it. With --cutmix, each of the two is applied to half of the images.",
            "Augmentation",
            ge=0.0,
        ),
    ] = 0.0
    cutmix: Annotated[float, Opt("CutMix alpha; 0 disables it.", "Augmentation", ge=0.0)] = 0.0
    random_erasing: Annotated[
        float, Opt("Probability of erasing a rectangle, as the last step.", "Augmentation", ge=0.0, le=1.0)
    ] = 0.0
    model: Model = None
    seed: TrainingSeed = 0
    devices: Annotated[
        str,
        Opt(
            "Device: cpu, cuda, cuda:N, or auto (a GPU for each rank if there are any). Several ranks on a machine "
            "take a list such as cuda:0,cuda:1 in turn.",
            "Devices",
            metavar="DEVICES",
            is_main=True,
        ),
    ] = "auto"
    threads: Threads = None
    checkpoint_every: Annotated[
        int | None, Opt("Steps between checkpoints, in addition to those at the ends of epochs.", "Output", ge=1)
    ] = None
    tensorboard: Annotated[bool, Opt("Write TensorBoard events to OUT/tensorboard as well.", "Output")] = False
    out: Annotated[Path, Opt("Output folder for the log, checkpoints and model.", "Output", is_main=True)] = Path(
        "train"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "out", Path(self.out))
        self.row  # noqa: B018  raises for wrong values

    @classmethod
    def from_recipe(cls, recipe: str, **passed: Any) -> TrainOptions:
        """A recipe's options, overridden by ``passed``. Raises ValueError."""
        return cls(**with_recipe(recipe, passed))

    @property
    def policy_name(self) -> str:
        """The name of ``row``."""
        return self.row.name

    @property
    def row(self) -> Row:
        """The policy and its parts: ``policy``, or the default. Raises ValueError."""
        default = DEFAULT_POLICY if self.adapt == "none" else DEFAULT_ADAPTED_POLICY
        row = parse_row(default if self.policy is None else self.policy, "policy")
        if row.policy is not None and row.policy.startswith("adaptive:"):
            mode = row.policy.partition(":")[2]
            raise ValueError(f"policy: got {self.policy!r}; accepted: {DEFAULT_ADAPTED_POLICY} with adapt={mode!r}")
        return row
