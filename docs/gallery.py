"""The gallery: a few pictures of every transform that changes an image, made by the library itself."""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

import variegate as vg
from docs.reference_pages import entries
from variegate import transforms as T

# Where pictures are written: docs/conf.py makes it a folder of the site.
FOLDER = Path(__file__).resolve().parent.parent / "build" / "site" / "gallery"
SIDE = 160  # pixels of a picture's side, at most
BOXES = [[30.0, 22.0, 92.0, 80.0], [84.0, 60.0, 150.0, 124.0]]
# Of each family: its photo, and what is drawn. Several calls are several strengths; one is drawn in three epochs.
FAMILIES: dict[str, tuple[str, list[list[str]]]] = {
    "Flips and quarter turns": (
        "cat",
        [
            ["RandomHorizontalFlip(p=1)"],
            ["RandomVerticalFlip(p=1)"],
            ["AlternatingHorizontalFlip()"],
            ["Transpose(p=1)"],
            ["RandomRotate90(p=1)"],
            ["D4()"],
        ],
    ),
    "Crops and sizes": (
        "coffee",
        [
            ["CenterCrop(64)", "CenterCrop(100)"],
            ["RandomCrop(64)", "RandomCrop(100)", "RandomCrop(128, padding=40)"],
            ["RandomResizedCrop(128)"],
            ["Fit((96, 160))"],
            ["FiveCrop(64)"],
            ["TenCrop(64)"],
            ["Pad(10)", 'Pad(30, padding_mode="reflect")', 'Pad(30, padding_mode="edge")'],
            ["RandomZoomOut(p=1)"],
            ["Resize(64)", "Resize((64, 128))", "Resize(128)"],
            ["RandomResize(48, 128)"],
            ["RandomShortestSize([48, 80, 128])"],
            ["ScaleJitter((128, 128), scale_range=(0.3, 1))"],
            ["SmallestMaxSize(64)", "SmallestMaxSize(96)", "SmallestMaxSize(128)"],
            ["LongestMaxSize(64)", "LongestMaxSize(96)", "LongestMaxSize(128)"],
            ["LetterBox(96)", "LetterBox((96, 160))", "LetterBox((160, 96))"],
            ["Downscale(0.5)", "Downscale(0.25)", "Downscale(0.1)"],
        ],
    ),
    "Crops around boxes": (
        "coffee",
        [
            ["RandomAtLeastOneBoxCrop(80)"],
            ["RandomBoxSafeCrop()"],
            ["RandomResizedBoxSafeCrop(128)"],
            ["RandomIoUCrop()"],
        ],
    ),
    "Geometry": (
        "cat",
        [
            ["Rotate(15)", "Rotate(45)", "Rotate(90)"],
            ["RandomRotation(45)"],
            ["ShearX(0.1)", "ShearX(0.3)", "ShearX(0.6)"],
            ["ShearY(0.1)", "ShearY(0.3)", "ShearY(0.6)"],
            ["TranslateX(20)", "TranslateX(60)", "TranslateX(-60)"],
            ["TranslateY(20)", "TranslateY(60)", "TranslateY(-60)"],
            ["Stretch(1.3, 1)", "Stretch(1, 1.3)", "Stretch(0.7, 0.7)"],
            ["RandomAffine(30, translate=(0.1, 0.1), scale=(0.7, 1.3), shear=10)"],
            [
                "RandomPerspective(0.2, p=1)",
                "RandomPerspective(0.5, p=1)",
                "RandomPerspective(0.8, p=1)",
            ],
        ],
    ),
    "Deformations": (
        "bricks",
        [
            ["ElasticTransform(20)", "ElasticTransform(50)", "ElasticTransform(120)"],
            [
                "GridDistortion(distort_limit=0.1)",
                "GridDistortion(distort_limit=0.3)",
                "GridDistortion(distort_limit=0.6)",
            ],
            ["OpticalDistortion((-0.5, -0.5))", "OpticalDistortion((0.3, 0.3))", "OpticalDistortion((0.9, 0.9))"],
            [
                "OpticalFlowWarp(magnitude=1.0)",
                "OpticalFlowWarp(magnitude=3.0)",
                "OpticalFlowWarp(magnitude=8.0)",
            ],
            [
                "ThinPlateSpline((0.1, 0.1))",
                "ThinPlateSpline((0.3, 0.3))",
                "ThinPlateSpline((0.6, 0.6))",
            ],
        ],
    ),
    "Color": (
        "coffee",
        [
            ["Color(0)", "Color(0.5)", "Color(2)"],
            ["Hue(-0.25)", "Hue(0.1)", "Hue(0.5)"],
            ["ColorTemperature(3000.0)", "ColorTemperature(6500.0)", "ColorTemperature(15000.0)"],
            ["ColorJitter(0.4, 0.4, 0.4, 0.1)"],
            ["RandomPhotometricDistort(p=1)"],
            ["RGBShift(40, 0, 0)", "RGBShift(0, 40, 0)", "RGBShift(-40, 0, 40)"],
            ["ChannelPermutation((2, 1, 0))", "ChannelPermutation((1, 2, 0))"],
            ["RandomChannelPermutation()"],
            ["ChannelDropout(p=1)", "ChannelDropout((2, 2), p=1)"],
            ["Grayscale(3)"],
            ["ToSepia()"],
            ["RandomGrayscale(p=1)"],
        ],
    ),
    "Tone": (
        "astronaut",
        [
            ["Brightness(0.4)", "Brightness(0.8)", "Brightness(1.6)"],
            ["Contrast(0.3)", "Contrast(0.7)", "Contrast(2)"],
            ["Gamma(0.5)", "Gamma(1.5)", "Gamma(3)"],
            ["RandomToneCurve(0.1)", "RandomToneCurve(0.3)"],
            ["AutoContrast()"],
            ["RandomAutocontrast(p=1)"],
            ["PercentileStretch()", "PercentileStretch(10, 90)", "PercentileStretch(25, 75)"],
            ["Window(128, 200)", "Window(128, 100)", "Window(80, 160)"],
            ["Equalize()"],
            ["RandomEqualize(p=1)"],
            ["CLAHE(1.0)", "CLAHE(4.0)", "CLAHE(12.0)"],
            ["Posterize(4)", "Posterize(2)", "Posterize(1)"],
            ["RandomPosterize(2, p=1)"],
            ["Solarize(192)", "Solarize(128)", "Solarize(64)"],
            ["RandomSolarize(128, p=1)"],
            ["SolarizeAdd(40)", "SolarizeAdd(80)", "SolarizeAdd(110)"],
            ["Invert()"],
            ["RandomInvert(p=1)"],
        ],
    ),
    "Blur, sharpness and filters": (
        "cat",
        [
            ["GaussianBlur(5, 1.0)", "GaussianBlur(9, 2.0)", "GaussianBlur(21, 5.0)"],
            ["MotionBlur(5)", "MotionBlur(11)", "MotionBlur(21)"],
            ["MedianBlur(3)", "MedianBlur(5)", "MedianBlur(7)"],
            ["Sharpness(0)", "Sharpness(2)", "Sharpness(6)"],
            ["RandomAdjustSharpness(3, p=1)"],
            ["UnsharpMask(alpha=0.5, threshold=0)", "UnsharpMask(7, alpha=1.0, threshold=0)"],
            ["Emboss(0.3, 0.5)", "Emboss(0.7, 0.7)", "Emboss(1.0, 1.0)"],
            ["Edges()", 'Edges("sobel")'],
            ["Convolve([[0, -1, 0], [-1, 5, -1], [0, -1, 0]])"],
            ["JPEG(60)", "JPEG(20)", "JPEG(5)"],
            ["Defocus(3)", "Defocus(6)", "Defocus(12)"],
            ["ZoomBlur(1.1)", "ZoomBlur(1.3)"],
            ["ChromaticAberration(0.1, 0.1)", 'ChromaticAberration(0.1, 0.1, "red_blue")'],
            ["GlassBlur(max_delta=2)", "GlassBlur()"],
            ["Morphological(5)", 'Morphological(5, "erosion")'],
        ],
    ),
    "Noise": (
        "astronaut",
        [
            ["GaussianNoise(sigma=0.05)", "GaussianNoise(sigma=0.1)", "GaussianNoise(sigma=0.25)"],
            ["ShotNoise(2.0)", "ShotNoise(8.0)", "ShotNoise(32.0)"],
            ["SaltAndPepper(0.01)", "SaltAndPepper(0.05)", "SaltAndPepper(0.2)"],
            ["PixelDropout(0.01)", "PixelDropout(0.1)", "PixelDropout(0.3)"],
        ],
    ),
    "Occlusion": (
        "coffee",
        [
            ["Cutout(32)", "Cutout(64)", "Cutout(32, num_holes=4)"],
            ["RandomErasing(p=1)", 'RandomErasing(p=1, value="random")'],
            ["CoarseDropout()", "CoarseDropout(16, 20)"],
            ["GridMask(24)", "GridMask(48)", "GridMask(48, ratio=0.7)"],
            [
                "OcclusionDiffusion(area=0.05)",
                "OcclusionDiffusion(area=0.15)",
                "OcclusionDiffusion(area=0.4)",
            ],
        ],
    ),
    "Weather, light and layers": (
        "astronaut",
        [
            [
                "RandomFog(fog_coef_range=0.4, p=1)",
                "RandomFog(fog_coef_range=0.7, p=1)",
                "RandomFog(fog_coef_range=1, p=1)",
            ],
            ["RandomRain(p=1)", 'RandomRain(rain_type="torrential", p=1)', "RandomRain(blur_value=1, p=1)"],
            ["RandomSnow(p=1)", 'RandomSnow(method="texture", p=1)', 'RandomSnow(2, 0.6, "texture", p=1)'],
            ["RandomSunFlare(p=1)", 'RandomSunFlare(src_radius=100, method="physics_based", p=1)'],
            ["RandomShadow(p=1)", "RandomShadow((0, 0, 1, 1), 3, p=1)"],
            ["RandomGravel(p=1)", "RandomGravel(number_of_patches=6, p=1)"],
            ["Spatter(p=1)", 'Spatter(mode="mud", p=1)'],
            [
                'Illumination("linear", 0.4, p=1)',
                'Illumination("corner", 0.4, p=1)',
                'Illumination("gaussian", 0.4, p=1)',
            ],
        ],
    ),
    "Mixing": ("cat", [["MixUp()"], ["CutMix()"], ["ResizeMix()"], ["Mosaic()"]]),
    "Choices and views": (
        "cat",
        [
            ["OneOf([Hue(0.4), Rotate((30, 30)), Invert()])"],
            ["SomeOf([Hue(0.4), Rotate((30, 30)), Invert()], 2)"],
            ["RandomApply([Rotate((30, 30))], p=0.5)"],
            ["RandomChoice([Hue(0.4), Rotate((30, 30)), Invert()])"],
            ["RandomOrder([Posterize(2), Rotate((30, 30)), Invert()])"],
            ['Cond("uniform", [(0, 0.3, Invert()), (0.3, 0.6, Hue(0.4))])'],
            ["MultiView([RandomResizedCrop(96), RandomResizedCrop(64, scale=(0.05, 0.3))], [2, 3])"],
        ],
    ),
    "Policies": (
        "astronaut",
        [
            ["RandAugment(2, 3)", "RandAugment(2, 9)", "RandAugment(2, 20)"],
            ["TrivialAugmentWide()"],
            ['AutoAugment("imagenet")', 'AutoAugment("cifar10")', 'AutoAugment("svhn")'],
            ["AugMix(1)", "AugMix(3)", "AugMix(10)"],
            ["ThreeAugment()"],
            ["TimmRandAugment(3)", "TimmRandAugment(9)", "TimmRandAugment(9, num_ops=4, p=1)"],
            ["TimmAugMix(3)", "TimmAugMix(9)"],
            ["AdaptiveRandAugment()"],
            ["PBA()"],
        ],
    ),
}
# Why a transform has no pictures of its own.
WITHOUT = {
    "changes no pixel": [
        *("ClampBoundingBoxes", "SanitizeBoundingBoxes", "Identity", "ToImage", "PILToTensor", "ToPureTensor"),
    ],
    "changes the form of the output": ["Normalize", "ToTensor", "ToDtype", "ConvertImageDtype"],
    "runs other transforms": [
        *("Compose", "Pipeline", "Lambda", "CustomOp", "Augmentation"),
    ],
    "needs pictures or objects of your own": ["CopyPaste", "Overlay"],
}


def named(call: str) -> str:
    return call.partition("(")[0]


def families() -> dict[str, tuple[str, list[list[str]]]]:
    """``FAMILIES``, with the transforms that they do not name: each beside others of its file, from one end of its
    useful range to the other."""
    shown = {named(calls[0]) for _, family in FAMILIES.values() for calls in family}
    left = {*transform_classes(), *shown}.difference(shown, *WITHOUT.values())
    every = {name: (photo, list(family)) for name, (photo, family) in FAMILIES.items()}
    for name in sorted(left):
        typical = getattr(T, name)._typical_range
        if typical is None:
            continue
        calls = [f"{name}({value:g})" for value in typical.spacing(typical.low, typical.high, 3)]
        beside = [family for _, family in every.values() if home_of(named(family[0][0])) == home_of(name)]
        (beside or [every["Color"][1]])[0].append(calls)
    return every


def transform_classes() -> set[str]:
    known = ((name, getattr(T, name)) for name in T.__all__)
    return {name for name, one in known if isinstance(one, type) and issubclass(one, T.Transform)} - {"Transform"}


def home_of(name: str) -> str:
    return str(getattr(T, name).__module__)


def photos(first: str) -> list[Any]:
    """The sample photos at the size of the gallery, ``first`` at the head; all 160 x 160 but where size matters."""
    from variegate.data.sample_photos import NAMES, sample_photo

    names = [first, *(name for name in ("coffee", "astronaut", "rocket", "cat") if name != first)]
    assert set(names) <= set(NAMES)
    pictures = []
    for name in names:
        picture = Image.open(sample_photo(name)).convert("RGB")
        side = min(picture.size)
        left, top = (picture.width - side) // 2, (picture.height - side) // 3
        square = picture.crop((left, top, left + side, top + side))
        pictures.append(np.asarray(square.resize((SIDE, SIDE), Image.Resampling.LANCZOS)))
    return pictures


def wide(image: Any) -> Any:
    """Not square, so that sizes show."""
    return np.ascontiguousarray(image[16:-16])


def drawn(call: str, images: list[Any], epoch: int, boxes: bool) -> Any:
    """What ``T.call`` makes of the first image in that epoch: uint8 [H, W, 3]."""
    transform = eval(call, vars(T))
    if named(call) in ("MixUp", "CutMix", "ResizeMix", "Mosaic"):
        loader = vg.Loader((images, [*range(len(images))]), transform, len(images), "cpu", shuffle=False, layout="NHWC")
        loader.set_epoch(epoch)
        return np.asarray(next(iter(loader))[0][0])
    augmenter = vg.Augmenter(transform, device="cpu", seed=3, layout="NHWC")
    if boxes:
        sample = {"image": images[0], "boxes": BOXES, "labels": ["cup", "spoon"]}
        out = augmenter([sample], ids=[1], epoch=epoch)[0]
        picture = Image.fromarray(np.asarray(out["image"]))
        for box in np.asarray(out["boxes"]).tolist():
            ImageDraw.Draw(picture).rectangle(box, outline=(255, 210, 0), width=2)
        return np.asarray(picture)
    if named(call) == "PBA":
        epoch = 60 + 60 * epoch  # its first epochs do nothing
    conditions = {"magnitude": [epoch / 2]} if named(call) == "AdaptiveRandAugment" else None
    batch = augmenter([images[0]], ids=[1], epoch=epoch, conditions=conditions)
    if named(call) == "MultiView":
        return side_by_side([np.asarray(group[0]) for group in batch])
    out = np.asarray(batch[0])
    if out.ndim == 4:  # several crops, side by side
        if out.shape[1] == 3:
            out = out.transpose(0, 2, 3, 1)
        out = np.pad(out, ((0, 0), (0, 4), (0, 4), (0, 0)), constant_values=255)
        rows = [np.concatenate(list(out[first : first + 5]), axis=1) for first in range(0, len(out), 5)]
        out = np.concatenate(rows)[:-4, :-4]
    return out


def side_by_side(groups: list[Any]) -> Any:
    """Views [V, H, W, C] of several sizes in a row, on white."""
    views = [view for group in groups for view in group]
    height = max(view.shape[0] for view in views)
    padded = [np.pad(one, ((0, height - one.shape[0]), (0, 4), (0, 0)), constant_values=255) for one in views]
    return np.concatenate(padded, axis=1)[:, :-4]


def save(picture: Any, path: Path) -> tuple[int, int]:
    image = Image.fromarray(picture)
    if image.width > 2 * SIDE:
        image = image.resize((2 * SIDE, round(image.height * 2 * SIDE / image.width)))
    image.save(path, quality=78, method=4)
    return image.size


@dataclass(frozen=True)
class Picture:
    """A file of the gallery, with the pixels before it was compressed."""

    file: str
    pixels: Any
    size: tuple[int, int]
    call: str
    caption: str

    def html(self, folder: str) -> str:
        return (
            f'<img src="{folder}/{self.file}" width="{self.size[0]}" height="{self.size[1]}" loading="lazy" '
            f'alt="{html.escape(self.call)}">'
        )


@cache
def pictures() -> dict[str, tuple[Picture, dict[str, list[Picture]]]]:
    """Of each family, its photo, and the pictures of each transform. Writes their files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    found: dict[str, tuple[Picture, dict[str, list[Picture]]]] = {}
    for family, (photo, rows) in families().items():
        images = photos(photo)
        if family == "Crops and sizes":
            images[0] = wide(images[0])
        original = make_picture(f"photo-{len(found)}.webp", images[0], "the photo", "the photo")
        found[family] = original, {named(calls[0]): draw_row(calls, images, family) for calls in rows}
    return found


def draw_row(calls: list[str], images: list[Any], family: str) -> list[Picture]:
    """Several strengths in one epoch each, or one call in three epochs, without repetitions."""
    row: dict[bytes, Picture] = {}
    for epoch, call in enumerate(calls if len(calls) > 1 else calls * 3):
        pixels = drawn(call, images, epoch, family == "Crops around boxes")
        arguments = call.partition("(")[2][:-1]
        caption = arguments if len(calls) > 1 or not row else f"epoch {epoch}"
        picture = make_picture(f"{named(call).lower()}-{epoch}.webp", pixels, call, caption)
        row.setdefault(pixels.tobytes(), picture)
    return list(row.values())


def make_picture(file: str, pixels: Any, call: str, caption: str) -> Picture:
    return Picture(file, pixels, save(pixels, FOLDER / file), call, caption)


def strip(name: str) -> str:
    """The pictures of a transform, for a page in a folder of the site; nothing for one without pictures."""
    rows = [row[name] for _, row in pictures().values() if name in row]
    figures = [
        f"<figure>{one.html('../gallery')}<figcaption>{html.escape(one.caption)}</figcaption></figure>"
        for row in rows
        for one in row
    ]
    return f'<div class="strip">{"".join(figures)}</div>' if figures else ""


def wall() -> str:
    """The text of the gallery's page (MyST Markdown): a thumbnail per transform, linked to its description."""
    lines: list[str] = []
    pages = reference_pages_of_transforms()
    for family, (original, rows) in pictures().items():
        tiles = [f"<span>{original.html('gallery')}<b>the photo</b></span>"]
        for name, row in rows.items():
            address = f"reference/{pages[name]}.html#variegate.transforms.{name}"
            tiles.append(f'<a href="{address}">{telling(row, original).html("gallery")}<b>{name}</b></a>')
        lines += [f"## {family}", "", "```{raw} html", f'<div class="wall">{"".join(tiles)}</div>', "```", ""]
    lines += ["## Without pictures", "", "| transforms | reason |", "|---|---|"]
    for reason, names in WITHOUT.items():
        links = ", ".join(f"{{py:class}}`~variegate.transforms.{name}`" for name in names)
        lines.append(f"| {links} | {reason} |")
    return "\n".join(lines) + "\n"


def telling(row: list[Picture], original: Picture) -> Picture:
    """The picture for a thumbnail: of several strengths the middle one, of several draws the one that changed most."""
    if len({one.call for one in row}) > 1:
        return row[len(row) // 2]

    def difference(one: Picture) -> float:
        if one.pixels.shape != original.pixels.shape:
            return 0.0
        return float(np.abs(one.pixels.astype(int) - original.pixels).mean())

    return max(row, key=difference)


def reference_pages_of_transforms() -> dict[str, str]:
    """Names of transforms, and the page of docs/reference that describes each."""
    return {
        name: page.stem
        for page in (Path(__file__).parent / "reference").glob("*.md")
        for module, name, _ in entries(page.read_text(encoding="utf-8"))
        if module == "variegate.transforms"
    }
