"""Options of a training. No default depends on the machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from variegate.options import option, same_option
from variegate.options.fit import FitOptions
from variegate.options.recipes import with_recipe
from variegate.options.rows import Row, parse_row
from variegate.options.search import TrainingOptions

Adapt = Literal["none", "entropy"]

# Options that a resumed run may change, because they do not affect the weights.
FREE = {"out", "tensorboard", "checkpoint_every", "device", "threads", "compile"}
# Options that it may change as well if the number of ranks changes.
FREE_ON_OTHER_RANKS = {"batch_size", "accumulate"}
# Rows without --policy. Moved copies of an image have its class on nearly all data; mirrored ones often have not.
DEFAULT_POLICY = "crop"
DEFAULT_ADAPTED_POLICY = "randaugment+crop"


@dataclass(frozen=True, kw_only=True)
class TrainOptions(FitOptions):
    """Options of ``train``. None: chosen by the images. Raises ValueError naming the argument."""

    validation: str | None = option(
        None, "Validation data set to score the model on after each epoch.", "Main options", metavar="SRC2"
    )
    size: str = option(
        "auto",
        "Image size for the model. auto keeps images of one common size of up to 64 pixels and chooses a size for "
        "others; none keeps images of one size as they are.",
        "Images",
        metavar="SIDE|HxW|auto|none",
    )
    policy: str | None = option(
        None,
        "Augmentation: none, flip, crop, flip+crop, or a policy (a name, a timm string, a file or a schedule) and such "
        f"parts, as in randaugment-1-5+flip+crop4+cutout8. By default {DEFAULT_POLICY}; {DEFAULT_ADAPTED_POLICY} "
        "with --adapt.",
        "Main options",
        metavar="POLICY",
    )
    adapt: Adapt = option(
        "none",
        "Adapt the magnitudes of RandAugment to each image during training, by the model's confidence (entropy).",
        "Augmentation",
    )
    mixup: float = option(
        0.0,
        "MixUp alpha; 0 disables it. With --cutmix, each of the two is applied to half of the images.",
        "Augmentation",
        low=0.0,
    )
    cutmix: float = option(0.0, "CutMix alpha; 0 disables it.", "Augmentation", low=0.0)
    random_erasing: float = option(
        0.0, "Probability of erasing a rectangle, as the last step.", "Augmentation", low=0.0, high=1.0
    )
    model: str | None = same_option(
        TrainingOptions,
        "model",
        panel="Main options",
        help="Network: wrn-DEPTH-WIDTH, airbench-94xWIDTH, timm:NAME, or package.module:factory, which is called with "
        "num_classes. By default wrn-28-2, or wrn-16-1 for fewer than 2,000 images.",
    )
    seed: int = option(0, "Seed for weight initialization, shuffling and augmentation.", "Training", low=0)
    device: str = option(
        "auto",
        "Device: cpu, cuda, cuda:N, or auto (a GPU for each rank if there are any).",
        "Machine",
        metavar="DEVICE",
    )
    threads: int | None = option(None, "Threads of the loader. By default, all cores.", "Machine", low=1)
    checkpoint_every: int | None = option(
        None, "Steps between checkpoints, in addition to those at the ends of epochs.", "Output", low=1
    )
    tensorboard: bool = option(False, "Write TensorBoard events to OUT/tensorboard as well.", "Output")
    out: Path = option(Path("train"), "Output folder for the log, checkpoints and model.", "Main options")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "out", Path(self.out))
        self.row  # noqa: B018  raises for wrong values

    @classmethod
    def from_recipe(cls, recipe: str, **passed: Any) -> TrainOptions:
        """Options of a recipe, replaced by those that are passed. Raises ValueError."""
        return cls(**with_recipe(recipe, passed))

    @property
    def policy_name(self) -> str:
        """The name of ``row``."""
        return self.row.name

    @property
    def row(self) -> Row:
        """The policy and its parts: those of ``policy``, or the default. Raises ValueError."""
        default = DEFAULT_POLICY if self.adapt == "none" else DEFAULT_ADAPTED_POLICY
        row = parse_row(default if self.policy is None else self.policy, "policy")
        if row.policy is not None and row.policy.startswith("adaptive:"):
            mode = row.policy.partition(":")[2]
            raise ValueError(f"policy: got {self.policy!r}; accepted: {DEFAULT_ADAPTED_POLICY} with adapt={mode!r}")
        return row
