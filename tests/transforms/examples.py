"""Examples of every transform, by its class, and of every family of policies."""

from __future__ import annotations

import variegate as vg
from variegate import transforms as T

FLIP, GRAY = T.RandomHorizontalFlip(), T.RandomGrayscale(p=0.5)

EXAMPLES: dict[str, list[T.Transform]] = {
    "AutoContrast": [T.AutoContrast()],
    "Brightness": [T.Brightness(1.5), T.Brightness((0.5, 1.5))],
    "CenterCrop": [T.CenterCrop(16), T.CenterCrop((3, 300))],
    "ChannelPermutation": [T.ChannelPermutation((1, 2, 0))],
    "CoarseDropout": [T.CoarseDropout(), T.CoarseDropout(3, (0.1, 0.3), fill="random"), T.CoarseDropout(0, 4, 9)],
    "Color": [T.Color(0.0), T.Color((0.1, 1.9))],
    "ColorJitter": [T.ColorJitter(0.4, (0.5, 1.5), 0.4, 0.1), T.ColorJitter(hue=0.5), T.ColorJitter()],
    "Compose": [T.Compose([T.RandomResizedCrop(24), FLIP, T.Normalize(0.5, 0.5)])],
    "Cond": [
        T.Cond("uniform", [(0, 0.5, FLIP), (0.5, None, T.Invert())]),
        T.Cond("channels", {1: T.Identity(), 3: GRAY}, default=FLIP),
        T.Cond("height", {7: [FLIP, GRAY]}),
    ],
    "Contrast": [T.Contrast(0.5)],
    "ConvertImageDtype": [T.ConvertImageDtype("float16")],
    "Cutout": [T.Cutout(8), T.Cutout((4, 12), num_holes=3, fill=(1, 2, 3))],
    "Equalize": [T.Equalize()],
    "Gamma": [T.Gamma((0.5, 2.0), gain=0.9)],
    "GaussianBlur": [T.GaussianBlur(5), T.GaussianBlur((3, 7), 1.0)],
    "GaussianNoise": [T.GaussianNoise(0.0, (0.05, 0.2))],
    "Grayscale": [T.Grayscale(), T.Grayscale(3)],
    "GridMask": [T.GridMask(), T.GridMask((4, 9), (0.3, 0.6), fill=128)],
    "Hue": [T.Hue((-0.5, 0.5))],
    "Identity": [T.Identity()],
    "Invert": [T.Invert()],
    "MotionBlur": [T.MotionBlur((3, 9)), T.MotionBlur(5, 45.0, 0.5)],
    "Normalize": [T.Normalize((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))],
    "OneOf": [T.OneOf([FLIP, T.Invert()], p=0.7, weights=[1, 3])],
    "Pad": [T.Pad(3), T.Pad((1, 2), 9, "reflect"), T.Pad([1, 2, 3, 4], padding_mode="edge")],
    "Posterize": [T.Posterize(4), T.Posterize((0, 8))],
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
    "RandomResizedCrop": [T.RandomResizedCrop(24), T.RandomResizedCrop((9, 31), (0.5, 1.0), interpolation="bicubic")],
    "RandomRotate90": [T.RandomRotate90()],
    "RandomRotation": [
        T.RandomRotation(45),
        T.RandomRotation((0, 360), expand=True, interpolation="bilinear"),
        T.RandomRotation(10, center=(0, 3), fill=(9, 8, 7)),
    ],
    "RandomSolarize": [T.RandomSolarize(128.0)],
    "RandomVerticalFlip": [T.RandomVerticalFlip()],
    "Resize": [T.Resize(24), T.Resize((9, 31), "bicubic"), T.Resize(None, max_size=40), T.Resize(24, max_size=30)],
    "Rotate": [T.Rotate(30), T.Rotate((-10, 10), "bilinear", fill=(1, 2, 3))],
    "SaltAndPepper": [T.SaltAndPepper(), T.SaltAndPepper((0.0, 0.3), salt=1.0)],
    "Sharpness": [T.Sharpness((0.1, 1.9))],
    "ShearX": [T.ShearX((-0.3, 0.3))],
    "ShearY": [T.ShearY(0.3, "bilinear")],
    "ShotNoise": [T.ShotNoise(), T.ShotNoise(3.0)],
    "Solarize": [T.Solarize((0, 256))],
    "SolarizeAdd": [T.SolarizeAdd((0, 110)), T.SolarizeAdd(-5, 200)],
    "SomeOf": [T.SomeOf([FLIP, T.Invert(), GRAY], 2), T.SomeOf([FLIP, T.Invert(), GRAY], (0, 3))],
    "Stretch": [T.Stretch(), T.Stretch(1.5, (0.5, 1.0))],
    "ToDtype": [T.ToDtype("float32"), T.ToDtype("float16", scale=True)],
    "ToImage": [T.ToImage()],
    "TranslateX": [T.TranslateX((-8, 8)), T.TranslateX(0.1, relative=True)],
    "TranslateY": [T.TranslateY(5), T.TranslateY((-0.3, 0.3), relative=True)],
}
# What needs others to mix an image with: of these a batch has enough, a single image has not.
MIXERS: dict[str, list[T.Transform]] = {
    "CutMix": [T.CutMix(), T.CutMix(alpha=0.5, num_classes=10)],
    "MixUp": [T.MixUp(alpha=0.2), T.MixUp(num_classes=10)],
    "Mosaic": [T.Mosaic(), T.Mosaic((0.5, 0.5), num_classes=10)],
    "ResizeMix": [T.ResizeMix(), T.ResizeMix((0.2, 0.4), num_classes=10)],
}
POLICIES = [
    *(vg.load_policy(name) for name in ("imagenet", "v0", "randaugment", "trivialaugment", "augmix", "3-augment")),
    *(vg.load_policy(name) for name in ("pba-cifar10", "rand-m9-mstd0.5-inc1")),
    T.Augmentation("turn", "Rotate", (0, 30)),
]
