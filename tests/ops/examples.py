"""Examples of every transform, by its class, and of every family of policies."""

from __future__ import annotations

from typing import Any

import numpy as np

import variegate as vg
from variegate import transforms as T
from variegate.transforms import functional as F

# Transforms that choose by the boxes of samples that are dicts.
BY_BOXES: dict[str, list[T.Transform]] = {
    "RandomAtLeastOneBoxCrop": [T.RandomAtLeastOneBoxCrop(16), T.RandomAtLeastOneBoxCrop((9, 20), 0.5)],
    "RandomBoxSafeCrop": [T.RandomBoxSafeCrop(), T.RandomBoxSafeCrop(0.4)],
    "RandomIoUCrop": [T.RandomIoUCrop(), T.RandomIoUCrop(0.2, 0.9, 0.7, 1.5, [0.0, 0.4, 1.0], 7)],
    "RandomResizedBoxSafeCrop": [
        *(T.RandomResizedBoxSafeCrop(24), T.RandomResizedBoxSafeCrop((9, 31), 0.2, "nearest")),
    ],
    "SanitizeBoundingBoxes": [T.SanitizeBoundingBoxes(), T.SanitizeBoundingBoxes(4.5, min_area=30)],
}

STICKER = np.dstack([np.arange(60, dtype=np.uint8).reshape(6, 10) * step for step in (1, 2, 3, 4)])
# Images of other domains.
FLIP, GRAY = T.RandomHorizontalFlip(), T.RandomGrayscale(p=0.5)


@vg.pipeline
def turned(image: Any, degrees: float = 30.0) -> Any:
    return FLIP(F.rotate(image, vg.uniform(-degrees, degrees)))


@vg.pipeline
def by_size(image: Any, height: int) -> Any:
    if vg.coin():
        side = vg.randint(3, 7)
        image = F.crop(image, side, 1, 5, side)
    elif height > 30:
        image = T.GaussianNoise()(image)
    return F.adjust_gamma(F.translate_x(image, image.width / 4), abs(vg.normal()))


EXAMPLES: dict[str, list[T.Transform]] = {
    "AlternatingHorizontalFlip": [T.AlternatingHorizontalFlip()],
    "AutoContrast": [T.AutoContrast()],
    "Brightness": [T.Brightness(1.5), T.Brightness((0.5, 1.5))],
    "CenterCrop": [T.CenterCrop(16), T.CenterCrop((3, 300))],
    "ChannelDropout": [T.ChannelDropout(), T.ChannelDropout((1, 2), (9, 8, 7), p=1.0)],
    "ChannelPermutation": [T.ChannelPermutation((1, 2, 0))],
    "ClampBoundingBoxes": [T.ClampBoundingBoxes()],
    "CoarseDropout": [T.CoarseDropout(), T.CoarseDropout(3, (0.1, 0.3), fill="random"), T.CoarseDropout(0, 4, 9)],
    "Color": [T.Color(0.0), T.Color((0.1, 1.9))],
    "ColorJitter": [T.ColorJitter(0.4, (0.5, 1.5), 0.4, 0.1), T.ColorJitter(hue=0.5), T.ColorJitter()],
    "ColorTemperature": [T.ColorTemperature(), T.ColorTemperature(2000)],
    "Compose": [T.Compose([T.RandomResizedCrop(24), FLIP, T.Normalize(0.5, 0.5)])],
    "Cond": [
        T.Cond("uniform", [(0, 0.5, FLIP), (0.5, None, T.Invert())]),
        T.Cond("channels", {1: T.Identity(), 3: GRAY}, default=FLIP),
        T.Cond("height", {7: [FLIP, GRAY]}),
    ],
    "Contrast": [T.Contrast(0.5)],
    "Convolve": [T.Convolve([[0, -1, 0], [-1, 5, -1], [0, -1, 0]]), T.Convolve([[0.5, 0.25, 0.25]])],
    "ConvertImageDtype": [T.ConvertImageDtype("float16")],
    "Cutout": [T.Cutout(8), T.Cutout((4, 12), num_holes=3, fill=(1, 2, 3))],
    "D4": [T.D4(), T.D4(0.5)],
    "Downscale": [T.Downscale(), T.Downscale((0.1, 0.9), "bilinear", "bicubic"), T.Downscale(1.0)],
    "ElasticTransform": [
        *(T.ElasticTransform(), T.ElasticTransform((90.0, 20.0), [3.0, 8.0], "nearest", (1, 2, 3))),
        T.ElasticTransform(10, 0, "bicubic"),
    ],
    "Edges": [T.Edges(), T.Edges("sobel", (0.2, 1.0))],
    "Emboss": [T.Emboss(), T.Emboss(1.0, 0.5)],
    "Equalize": [T.Equalize()],
    "Gamma": [T.Gamma((0.5, 2.0), gain=0.9)],
    "FiveCrop": [T.FiveCrop(1)],
    "GaussianBlur": [T.GaussianBlur(5), T.GaussianBlur((3, 7), 1.0)],
    "GaussianNoise": [T.GaussianNoise(0.0, (0.05, 0.2))],
    "Grayscale": [T.Grayscale(), T.Grayscale(3)],
    "GridMask": [T.GridMask(), T.GridMask((4, 9), (0.3, 0.6), fill=128)],
    "Hue": [T.Hue((-0.5, 0.5))],
    "Identity": [T.Identity()],
    "Invert": [T.Invert()],
    "JPEG": [T.JPEG((5, 95)), T.JPEG(1)],
    "LetterBox": [T.LetterBox(24), T.LetterBox((40, 31), "bicubic", (1, 2, 3), upscale=False)],
    "LongestMaxSize": [T.LongestMaxSize(24), T.LongestMaxSize([16, 40], "nearest")],
    "ChromaticAberration": [T.ChromaticAberration(), T.ChromaticAberration(0.1, (-0.1, 0.2), "red_blue")],
    "Defocus": [T.Defocus(), T.Defocus(13, 2.0)],
    "GlassBlur": [T.GlassBlur(), T.GlassBlur(0, 1, 3)],
    "Morphological": [T.Morphological(), T.Morphological(5, "erosion")],
    "RandomToneCurve": [T.RandomToneCurve(), T.RandomToneCurve(0.3, per_channel=True)],
    "ToSepia": [T.ToSepia()],
    "Window": [T.Window(100, 120), T.Window((60, 140), (20.5, 300))],
    "ZoomBlur": [T.ZoomBlur(), T.ZoomBlur((1.1, 2.0), 0.1)],
    "CLAHE": [T.CLAHE(), T.CLAHE(3.0, (2, 5))],
    "MedianBlur": [T.MedianBlur(), T.MedianBlur(5)],
    "MotionBlur": [T.MotionBlur((3, 9)), T.MotionBlur(5, 45.0, 0.5)],
    "PercentileStretch": [T.PercentileStretch(), T.PercentileStretch(0, 90.5)],
    "Normalize": [T.Normalize((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))],
    "OneOf": [T.OneOf([FLIP, T.Invert()], p=0.7, weights=[1, 3])],
    "Illumination": [
        *(T.Illumination(p=1.0), T.Illumination("corner", 0.3, "darken", p=1.0)),
        T.Illumination("gaussian", (0.1, 0.4), p=1.0, num_spots_range=(1, 3)),
        T.Illumination("gaussian", p=1.0, gaussian_spots=[(0.2, 0.3, 0.1, -0.5), (0.9, 0.9, 0.4, 0.2)]),
    ],
    "Overlay": [
        *(
            T.Overlay(STICKER, p=1.0),
            T.Overlay([STICKER, STICKER[..., :3]], (0.1, 2.0), "cover", "multiply", (0.2, 0.9)),
        ),
        *(T.Overlay(STICKER, 0.7, (0.1, 0.9), "screen", p=1.0), T.Overlay(STICKER, blend="add", p=0.4)),
    ],
    "RandomFog": [T.RandomFog(p=1.0), T.RandomFog(0.3, 0.5)],
    "RandomGravel": [T.RandomGravel(p=1.0), T.RandomGravel((0, 0, 1, 1), (0, 5), p=1.0)],
    "RandomRain": [T.RandomRain(p=1.0), T.RandomRain(30.0, 12, 2, (90, 9, 250), 1, 1.0, "torrential", p=1.0)],
    "RandomShadow": [T.RandomShadow(p=1.0), T.RandomShadow((0, 0, 1, 1), (0, 4), 7, (0.1, 0.9), p=1.0)],
    "RandomSnow": [T.RandomSnow(p=1.0), T.RandomSnow(2.0, 0.4, "texture", p=1.0)],
    "RandomSunFlare": [
        *(T.RandomSunFlare(p=1.0), T.RandomSunFlare((0, 0, 1, 1), 30, (255, 200, 9), 0.3, 0, "physics_based", p=1.0)),
    ],
    "Spatter": [T.Spatter(p=1.0), T.Spatter(0.6, (0.2, 0.4), (1.0, 3.0), 0.65, (0.1, 0.9), "mud", (9, 8, 7), p=1.0)],
    "PILToTensor": [T.PILToTensor()],
    "Pad": [
        T.Pad(3),
        T.Pad((1, 2), 9, "reflect"),
        T.Pad([1, 2, 3, 4], padding_mode="edge"),
        T.Pad([2, 0, -2, 3], 300),
    ],
    "Pipeline": [turned, vg.pipeline(turned, degrees=5.0), by_size],
    "OcclusionDiffusion": [T.OcclusionDiffusion(), T.OcclusionDiffusion((1, 9), (0.0, 1.0), "random", cells=5)],
    "PixelDropout": [T.PixelDropout(0.2), T.PixelDropout((0.0, 0.5), 255)],
    "Posterize": [T.Posterize(4), T.Posterize((1, 8))],
    "RGBShift": [T.RGBShift(), T.RGBShift(5, (-3, 3), 0)],
    "RandomAdjustSharpness": [T.RandomAdjustSharpness(2.0)],
    "RandomAffine": [
        T.RandomAffine(30, (0.1, 0.2), (0.5, 2.0), 10),
        T.RandomAffine((0, 90), shear=(0, 5, -5, 5), center=(3, 4), interpolation="bilinear"),
    ],
    "RandomApply": [T.RandomApply([FLIP, T.Invert()], p=0.3)],
    "RandomAutocontrast": [T.RandomAutocontrast()],
    "RandomChannelPermutation": [T.RandomChannelPermutation()],
    "RandomChoice": [T.RandomChoice([FLIP, T.Invert()], p=[0.2, 0.8])],
    "RandomCrop": [
        T.RandomCrop(16, pad_if_needed=True),
        T.RandomCrop((24, 20), padding=(3, 5), pad_if_needed=True, padding_mode="symmetric"),
        T.RandomCrop(1, padding=[1, 2, 3, 4], fill=(9, 8, 7)),
    ],
    "RandomEqualize": [T.RandomEqualize(p=1.0)],
    "RandomErasing": [T.RandomErasing(), T.RandomErasing(1.0, value=(1, 2, 3)), T.RandomErasing(value="random")],
    "RandomGrayscale": [T.RandomGrayscale()],
    "RandomHorizontalFlip": [T.RandomHorizontalFlip(p=0.25)],
    "RandomInvert": [T.RandomInvert()],
    "RandomOrder": [T.RandomOrder([FLIP, T.Invert(), GRAY, T.Rotate(3), T.Posterize(4)])],
    "RandomPerspective": [T.RandomPerspective(), T.RandomPerspective(1.0, p=1.0, fill=7)],
    "RandomPhotometricDistort": [T.RandomPhotometricDistort()],
    "RandomPosterize": [T.RandomPosterize(3)],
    "RandomResize": [T.RandomResize(9, 31), T.RandomResize(3, 4, "lanczos", None)],
    "Fit": [T.Fit(24), T.Fit((9, 31), "center", "bicubic")],
    "RandomResizedCrop": [
        T.RandomResizedCrop(24),
        T.RandomResizedCrop((9, 31), (0.5, 1.0), interpolation="bicubic"),
        T.RandomResizedCrop(24, interpolation="hamming", antialias=False, edges="crop"),
        T.RandomResizedCrop(24, interpolation="nearest"),
    ],
    "RandomRotate90": [T.RandomRotate90()],
    "RandomRotation": [
        T.RandomRotation(45),
        T.RandomRotation((0, 360), expand=True, interpolation="bilinear"),
        T.RandomRotation(10, center=(0, 3), fill=(9, 8, 7)),
    ],
    "RandomSolarize": [T.RandomSolarize(128.0)],
    "RandomShortestSize": [T.RandomShortestSize([9, 17, 31], 40), T.RandomShortestSize(20)],
    "RandomVerticalFlip": [T.RandomVerticalFlip()],
    "RandomZoomOut": [T.RandomZoomOut(), T.RandomZoomOut((1, 2, 3), (1.5, 2.5), p=1.0)],
    "Resize": [T.Resize(24), T.Resize((9, 31), "bicubic"), T.Resize(None, max_size=40), T.Resize(24, max_size=30)],
    "Rotate": [T.Rotate(30), T.Rotate((-10, 10), "bilinear", fill=(1, 2, 3))],
    "SaltAndPepper": [T.SaltAndPepper(), T.SaltAndPepper((0.0, 0.3), salt=1.0)],
    "ScaleJitter": [T.ScaleJitter((40, 50)), T.ScaleJitter((9, 20), (0.5, 1.0), "box")],
    "Sharpness": [T.Sharpness((0.1, 1.9))],
    "ShearX": [T.ShearX((-0.3, 0.3))],
    "ShearY": [T.ShearY(0.3, "bilinear")],
    "ShotNoise": [T.ShotNoise(), T.ShotNoise(3.0)],
    "SmallestMaxSize": [T.SmallestMaxSize(24), T.SmallestMaxSize((8, 9, 10), "bicubic")],
    "Solarize": [T.Solarize((0, 256))],
    "SolarizeAdd": [T.SolarizeAdd((0, 110)), T.SolarizeAdd(-5, 200)],
    "SomeOf": [T.SomeOf([FLIP, T.Invert(), GRAY], 2), T.SomeOf([FLIP, T.Invert(), GRAY], (0, 3))],
    "Stretch": [T.Stretch(), T.Stretch(1.5, (0.5, 1.0))],
    "TenCrop": [T.TenCrop(1), T.TenCrop((1, 1), vertical_flip=True)],
    "ToDtype": [
        *(T.ToDtype("float32"), T.ToDtype("float16", scale=True)),
        *(T.ToDtype("float64", scale=True), T.ToDtype("uint8", scale=True)),
    ],
    "ToImage": [T.ToImage()],
    "ToPureTensor": [T.ToPureTensor()],
    "ToTensor": [T.ToTensor()],
    "Transpose": [T.Transpose(), T.Transpose(p=1.0)],
    "TranslateX": [T.TranslateX((-8, 8)), T.TranslateX(0.1, relative=True)],
    "TranslateY": [T.TranslateY(5), T.TranslateY((-0.3, 0.3), relative=True)],
    "GridDistortion": [
        *(T.GridDistortion(), T.GridDistortion(3, 0.9, normalized=False, fill=9)),
        T.GridDistortion(interpolation="nearest"),
    ],
    "OpticalDistortion": [T.OpticalDistortion(), T.OpticalDistortion((0.5, 0.5), "fisheye", "bicubic")],
    "OpticalFlowWarp": [T.OpticalFlowWarp(), T.OpticalFlowWarp(magnitude=(0.0, 9.0), scale=4.0, fill=(1, 2, 3))],
    "ThinPlateSpline": [T.ThinPlateSpline(), T.ThinPlateSpline(0.5, 2, "nearest"), T.ThinPlateSpline((0, 1), 3)],
    "UnsharpMask": [T.UnsharpMask(), T.UnsharpMask(5, (0.5, 2.0), 1.5, threshold=0)],
}
# What needs others to mix an image with: of these a batch has enough, a single image has not.
MIXERS: dict[str, list[T.Transform]] = {
    "CopyPaste": [T.CopyPaste(), T.CopyPaste(1.0, (0.1, 2.0), flip=0.0, feather=3, num_classes=10)],
    "CutMix": [T.CutMix(), T.CutMix(alpha=0.5, num_classes=10)],
    "MixUp": [T.MixUp(alpha=0.2), T.MixUp(num_classes=10)],
    "Mosaic": [T.Mosaic(), T.Mosaic((0.5, 0.5), num_classes=10)],
    "ResizeMix": [T.ResizeMix(), T.ResizeMix((0.2, 0.4), num_classes=10)],
}
# A class with a typical range needs no entry.
for _name, _cls in T.Transform.registry.items():
    if (
        _cls._typical_range is not None
        and _cls.__module__.startswith("variegate.ops.")
        and _name not in EXAMPLES | BY_BOXES
    ):
        _low, _high = _cls._typical_range.low, _cls._typical_range.high
        EXAMPLES[_name] = [_cls(_high), _cls((_low, _high))]  # type: ignore[call-arg]
POLICIES = [
    *(vg.load_policy(name) for name in ("imagenet", "v0", "randaugment", "trivialaugment", "augmix", "3-augment")),
    *(vg.load_policy(name) for name in ("pba-cifar10", "rand-m9-mstd0.5-inc1", "augmix-m5-w2-d1")),
    T.Augmentation("turn", "Rotate", (0, 30)),
]
