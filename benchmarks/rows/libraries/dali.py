"""DALI's CPU pipelines: each row by its own operators, batches by an external source."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from nvidia.dali import fn, pipeline_def, types

from benchmarks.peers.base import NextBatch
from benchmarks.peers.dali import normalised
from benchmarks.rows import catalogue as C
from benchmarks.rows.catalogue import Case
from benchmarks.rows.libraries import dali_operations, dali_pipelines
from benchmarks.rows.libraries.base import Images, RowLibrary, in_turn

ROWS = dali_operations.ROWS | dali_pipelines.ROWS


@pipeline_def(enable_conditionals=True)
def _pipeline(feed: Any, case: Case) -> Any:
    images = fn.external_source(feed, batch=True, dtype=types.UINT8, layout="HWC", no_copy=True)
    images, options = ROWS[case.name](images)
    if case.dtype == "float32":
        return normalised(images, **options)
    return fn.crop_mirror_normalize(images, dtype=types.UINT8, output_layout="CHW", **options)


class Dali(RowLibrary):
    name = "DALI CPU"
    packages = ("nvidia-dali-cuda120",)
    works_ahead = True
    lacks: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("rotate_bicubic", "affine_bicubic"), "its warps are nearest or linear"),
        **dict.fromkeys(
            ("perspective", "perspective_bilinear", "perspective_bicubic", "jitter_perspective"),
            "no random perspective",
        ),
        **dict.fromkeys(("gamma", "solarize_add", "channel_permutation", "rgb_shift"), "no such operation"),
        "photometric_distort": "no permutation of channels",
        **dict.fromkeys(("motion_blur", "d4", "downscale", "color_temperature"), "no such operation"),
        **dict.fromkeys(("channel_dropout", "pixel_dropout", "emboss", "unsharp_mask"), "no such operation"),
        **dict.fromkeys(("mixup", "cutmix", "resizemix", "mosaic"), "no such operation"),
        "edges": "no such operation but Laplacian's, of another kernel",
        "occlusion_diffusion": "no such operation",
        **dict.fromkeys(C.LAYERS, "no such operation"),
        **dict.fromkeys(("median_blur_3", "median_blur_5", "median_blur_7"), "its median blur is a GPU's"),
        **dict.fromkeys(("elastic", "grid_distortion", "optical_distortion", "thin_plate"), "no random fields"),
        "coarse_dropout": "no random number of holes",
        "augmix": "no AugMix",
        "dino": "several crops of a file are branches of a pipeline, which this benchmark does not build",
    }
    differs: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("contrast", "color_jitter", "jitter_affine"), "contrast about 128, hue as a linear matrix"),
        **dict.fromkeys(("hue", "simclr", "byol", "dino_global", "dino_local"), "colors by one linear matrix"),
        "clahe": "multiplies colors by what the luma gains",
        "three_augment": "jitter as one linear matrix",
        **dict.fromkeys(("resized_crop", "imagenet"), "draws its box by a rule of its own"),
        **dict.fromkeys(("autoaugment", "trivialaugment"), "translations and signs by rules of its own"),
    }

    def variants(self, case: Case, images: Images, batch: int) -> dict[str, NextBatch]:
        batches = in_turn(images, batch)
        # A queue of one: what is made ahead while the clock stands still is then the one batch that is not counted.
        pipeline = _pipeline(
            lambda: list(next(batches)),
            case,
            batch_size=batch,
            num_threads=1,
            device_id=None,
            seed=1,
            prefetch_queue_depth=1,
        )

        def next_batch() -> torch.Tensor:
            (output,) = pipeline.run()
            return torch.from_numpy(np.array(output.as_array()))

        return {"external source": next_batch}


LIBRARY = Dali()
