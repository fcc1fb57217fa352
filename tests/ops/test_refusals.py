"""What classes and functions refuse: a call, and the error that names the argument, the value and what is accepted."""

from __future__ import annotations

import math
import time

import numpy as np
import PIL.Image
import torch

import variegate as vg
from tests.images import photo
from tests.refusals import check_refused, every_refusal
from variegate import transforms as T
from variegate.transforms import functional as F

NAMES = {
    **{"F": F, "PIL": PIL, "T": T, "math": math, "np": np, "photo": photo, "torch": torch, "vg": vg},
    **{"A": T.Brightness(1.1), "B": T.Contrast(1.2), "FLIP": T.RandomHorizontalFlip(1.0), "IMAGE": photo(40, 50)},
    **{"MEAN": vg.IMAGENET_MEAN, "NAN": math.nan, "STD": vg.IMAGENET_STD, "WIDE": T.Grayscale(3)},
}
REFUSED = {
    "T.AugMix(mixture_width=10 ** 6)": "mixture_width=1000000; accepted: an integer from 1 to 16",
    'T.Augmentation("a", "GaussianBlur", (1, 900))': "magnitude=(1, 900); accepted: GaussianBlur: an odd ...",
    'T.AutoAugment([[["Rotate", 1, 1]]] * 10 ** 5)': "policy=...; accepted: a name, or a list of 1 to 4,096",
    'T.AutoAugment([[["Rotate", 1, 1]] * 100])': "policy[0]=...; accepted: a list of 1 to 64",
    "T.ChannelDropout(3)": "channel_drop_range=3; accepted: an integer, or a pair",
    "T.ChannelDropout((2, 1))": "channel_drop_range=(2, 1); accepted: an integer",
    "T.ChannelPermutation((0, 1, 1))": "order=(0, 1, 1); accepted: the channels 0, 1 and 2",
    "T.CoarseDropout(size=1.5)": "size=1.5; accepted: whole pixels, or shares of the side from 0.0 to 1.0",
    "T.ColorJitter(hue=0.7)": "ColorJitter: hue=0.7; accepted: ... a number from 0 to 0.5, or a pair ...",
    "T.ColorTemperature(1000)": "kelvin=1000; accepted: a number, or a pair ... from 1667 to 25000",
    "T.Compose([T.Invert()] * 10 ** 6)": "transforms=1,000,001 transforms in all; accepted: at most 10,000",
    "T.Compose([T.Compose([T.Invert()] * 200)] * 200)": "transforms=40,201 transforms in all; accepted",
    "T.Compose([T.CoarseDropout(4096)] * 20)": "transforms=81,960 blocks of random numbers; accepted: at",
    "T.Compose([])": "Compose: transforms=[]; accepted: a list of at least one transform",
    'T.Compose([A, "flip"])': "Compose: transforms[1]='flip'; accepted: a transform such as",
    "T.Compose([T.Lambda(abs), T.Invert()])(IMAGE)": "transforms[1]=Invert() after Lambda; accepted: Invert before",
    'T.Compose([T.ToDtype("float64"), T.RandomErasing(1.0)])(IMAGE)': "Erase after float64",
    'T.Compose([T.ToDtype("int32"), T.Normalize(0.5, 1)])(IMAGE)': "Normalize after torch.int32: accepted",
    'T.Compose([T.Normalize(0.5, 1), T.ToDtype("int32", True)])(IMAGE)': "of float32: accepted: integers",
    "T.Compose([T.Lambda(abs)]).to_dict()": "Lambda(abs): a function cannot be written down",
    'T.Cond("", {0: A})': "Cond: by=''; accepted: a name: uniform",
    'T.Cond("label", {})': "cases={}; accepted: a dict {value: transform}, or a list",
    'T.Cond("label", {0: "flip"})': "cases[0]='flip'; accepted: a transform",
    'T.Cond("label", [(0, A)])': "cases[0]=...; accepted: (low, high, transform)",
    'T.Cond("label", [(2, 1, A)])': "cases[0]=(2, 1); accepted: numbers low < high",
    'T.Cond("label", {0: A}, default=3)': "default=3; accepted: a transform",
    "T.Convolve([[1, 2]])": "kernel=[[1, 2]]; accepted: rows of weights, as many in each",
    "T.Convolve([[1], [2]])": "kernel=[[1], [2]]; accepted: rows of weights",
    "T.Convolve([[1, 2, 3], [1], [1]])": "accepted: rows of weights",
    "T.Convolve([[300.0]])": "256 at most in all",
    "T.Convolve(np.zeros((33, 1)))": "both numbers odd and up to 31",
    "T.Cutout(4, num_holes=10 ** 6)": "num_holes=1000000; accepted: an integer from 1 to 4096",
    "T.Defocus(0)": "radius_range=0; accepted: an integer",
    "T.FiveCrop((41, 5))(IMAGE)": "FiveCrop: size=(41, 5) ... larger than an image of (40, 50)",
    "T.GaussianBlur(10 ** 6 + 1)": "kernel_size=1000001; accepted: an odd positive integer up to 1,023",
    "T.GaussianBlur(4)": "kernel_size=4; accepted: an odd positive integer",
    "T.GaussianNoise(clip=False)": "clip=False; accepted: True",
    "T.Grayscale(2)": "Grayscale: num_output_channels=2; accepted: 1, or 3 for equal channels",
    "T.Grayscale(True)": "Grayscale: num_output_channels=True; accepted: 1, or 3",
    "T.GridMask(1)": "GridMask: unit=1; accepted: an integer, ... from 2 to",
    "T.Illumination(gaussian_spots=[(0, 0, 0, 1)])": "gaussian_spots=...accepted: None, or 1 to 64 spots",
    "T.Lambda(3)": "lambd=3; accepted: a function of a tensor",
    "T.Lambda(abs, int)": "types=...; accepted: none, or some of which one is torch.Tensor",
    "T.LongestMaxSize([])": "max_size=[]; accepted: a positive integer, or a list of 1 to 256",
    "T.Magnitude(2, 1)": "Magnitude: low=2; accepted: a number up to high=1",
    "T.Magnitude(-1, 1, signed=True)": "Magnitude: low=-1; accepted: a number >= 0, as signed=True draws",
    "T.MixUp(alpha=0)": "MixUp: alpha=0; accepted: a number",
    "T.Morphological((3, 32))": "scale=(3, 32); accepted: an integer from 1 to 31, or a pair (width",
    "T.MotionBlur((3, 6))": "kernel_size=(3, 6); accepted: an odd integer",
    'T.Normalize("data")': "mean='data'; accepted: three numbers ..., or 'dataset'",
    "T.Normalize(MEAN)": "std=None; accepted: three positive numbers",
    'T.Normalize("dataset", STD)': "accepted: none with mean='dataset'",
    'T.Normalize(("a", 0.5), STD)': "mean=('a', 0.5); accepted: ",
    "T.Normalize(MEAN, (1, 0, 1))": "std=(1, 0, 1); accepted: None, or three positive numbers",
    "T.OneOf([A, B], weights=[0, 0])": "OneOf: weights=[0, 0]; accepted: 2 numbers >= 0, ... not all 0",
    "T.OneOf([T.FiveCrop(3), T.Invert()])": "FiveCrop inside a choice",
    "T.OpticalFlowWarp(np.zeros((3, 4)))": "flow=(3, 4); accepted: None, or float [height, width, 2]",
    "T.OpticalFlowWarp([[[math.nan, 0]]])": "flow=...; accepted: None, or float [height, width, 2]",
    "T.Overlay(np.zeros((4, 4, 2), np.uint8))": "images=(4, 4, 2); accepted: RGBA or RGB pictures",
    'T.Overlay("nowhere.png")': "images='nowhere.png'; accepted: RGBA or RGB pictures: paths",
    "T.Overlay([])": "images=[]; accepted: at least one of RGBA",
    'T.Overlay(np.zeros((4, 4, 4), np.uint8), place="top")': 'place=\'top\'; accepted: "anywhere", "cover"',
    "T.Pad(2 ** 31)": "padding=2147483648; accepted: an integer, or two or four of them, up to 1,048,576",
    "T.Pad((1, 2, 3))": "padding=(1, 2, 3); accepted: an integer, or two or four",
    "T.PixelDropout(0.1, 7)": "drop_value=7; accepted: one of 0, 255",
    "T.Posterize(0)": "Posterize: bits=0; accepted: an integer, ... from 1 to 8",
    "T.Posterize(2.5)": "Posterize: bits=2.5; accepted: an integer",
    "T.RandAugment(num_ops=10 ** 6)": "RandAugment: num_ops=1000000; accepted: an integer from 0 to 64",
    'T.RandAugment(operations=["Rotate"] * 10 ** 5)': "operations=[...; accepted: None, or a list of 1 to 4,096",
    "T.RandomAffine(3, translate=(0.1, 2))": "translate=(0.1, 2); accepted: None, or a pair (horiz",
    "T.RandomAffine(3, scale=(0, 1))": "scale=(0, 1); accepted: None, or a pair ... from 1e-06",
    "T.RandomAffine(3, shear=(1, 2, 3))": "shear=(1, 2, 3); accepted: ... or two such pairs",
    "T.RandomApply([T.Grayscale()], p=0.5)": "Grayscale inside a choice; ... one format; take num_output_channels=3",
    "T.RandomChoice([T.MixUp(num_classes=3), T.CutMix()])": "num_classes=3 and num_classes=None; accepted: one",
    'T.RandomErasing(value="noise")': "value='noise'; accepted: a number, ... or \"color\"",
    "FLIP(IMAGE, IMAGE[:, :, 0])": "TypeError: inputs[1]: got ndarray[40, 50]; accepted: beside an image a dict",
    "T.RandomOrder([T.Invert()] * 129)": "RandomOrder: transforms=129 transforms; accepted: at most 128",
    "T.RandomResize(5, 5)": "max_size=5; accepted: an integer above min_size (5)",
    "T.RandomRotation(-3)": "degrees=-3; accepted: a number from 0 to ..., or a pair (low, high)",
    "T.RandomShadow((0, 1, 1, 0.5))": "shadow_roi=(0, 1, 1, 0.5); accepted: shares (x_min",
    "T.RandomShortestSize([])": "min_size=[]; accepted: a positive integer, or a list",
    "T.RandomZoomOut(side_range=(0.5, 2))": "side_range=(0.5, 2); accepted: a pair ... from 1 to",
    "T.Resize(8, max_size=2 ** 31)": "max_size=2147483648; accepted: ... up to 1,048,576",
    "T.Resize(8, interpolation=6)": "interpolation=6; accepted: one of 'nearest', ... 'lanczos'",
    "T.Resize(8, max_size=8)": "max_size=8; accepted: None, or an integer above size (8)",
    "T.Resize((8, 9), max_size=10)": "max_size=10; accepted: None where size is a pair",
    "T.Resize(None)": "size=None; accepted: a size, or None together with max_size",
    "T.Rotate((10, -10))": "Rotate: degrees=(10, -10); accepted",
    'T.Rotate(8, "lanczos")': "interpolation='lanczos'; accepted: one of 'nearest', 'bilinear', 'bicubic'",
    "T.ScaleJitter((5, 5), (0.0, 1.0))": "scale_range=(0.0, 1.0); accepted: a pair",
    "T.SomeOf([A, B], 3)": "SomeOf: n=3; accepted: an integer, or a pair (low, high) ... from 0 to 2",
    'T.ToDtype("complex64")': "dtype='complex64'; accepted: one of 'float32', ...'float64'",
    'T.ToDtype("int4")': "ToDtype: dtype='int4'; accepted: one of 'float32', 'float16', 'bfloat16'",
    "T.ToDtype(scale=2)": "ToDtype: scale=2; accepted: one of True, False",
    "T.UnsharpMask(4)": "blur_limit=4; accepted: an odd integer",
    'T.from_dict({"type": "Rotat"})': "transform.type: got 'Rotat'; accepted: a class ...did you mean 'Rotate'",
    'T.from_dict({"type": "OneOf", "transforms": [{"type": "Rotate", "degrees": "x"}]})': (
        "transform.transforms[0].degrees: got 'x'; accepted: a number"
    ),
    'T.from_dict({"type": "Rotate", "angle": 3})': "transform.angle: got 3; accepted: arguments of Rotate: degrees, ",
    'T.from_dict({"type": "Rotate"})': "transform.degrees: got None; accepted: a value: Rotate requires it",
    "F.adjust_brightness(photo(), NAN)": "brightness_factor=nan; accepted: a number from -1e+09 to 1e+09",
    "F.adjust_contrast(photo(), math.inf)": "contrast_factor=inf; accepted",
    "F.adjust_gamma(photo(), -1)": "gamma=-1; accepted: a number from 0 to 1e+09",
    "F.adjust_hue(photo(), 0.6)": "hue_factor=0.6; accepted: a number from -0.5 to 0.5",
    "F.affine(photo(), 0, (0, 0), 0, 0)": "scale=0; accepted: a number from 1e-09 to",
    "F.affine(photo(), 0, 5, 1, 0)": "translate=5; accepted: (x, y)",
    "F.crop(photo(), 0, 0, 0, 5)": "height=0; accepted: an integer from 1 to 1,048,576",
    "F.elastic(photo(3, 4), np.zeros((4, 3, 2)))": "displacement.shape=(4, 3, 2); accepted: float [1, 3",
    "F.elastic(photo(1, 1), np.full((1, 1, 2), np.inf))": "displacement=...; accepted: float [1, 1, 1, 2]",
    "F.erase(photo(9, 9), 0, 0, 2, 2, 0, True)": "inplace=True; accepted: False (every function gives a new image)",
    "F.erase(photo(), 0, 0, 2, 3, np.zeros((3, 2, 3)))": "v='shape (3, 2, 3)'; accepted: a level, 3 of",
    "F.five_crop(photo(), 65)": "size=(65, 65); accepted: at most the image's (64, 80)",
    "F.gaussian_blur(photo(), 4)": "kernel_size=4; accepted: an odd positive integer",
    "F.gaussian_blur(photo(), 3, 0)": "sigma=0; accepted: None, or a number from 1e-09 to",
    "F.gaussian_noise(photo(9, 9), 0.0, 0.1, False)": "clip=False; accepted: True (images are uint8 at this stage)",
    "F.invert(photo().astype(np.float64))": "img.dtype='float64'; accepted: uint8, uint16 or float32",
    "F.invert(torch.zeros(3, 3, requires_grad=True))": "img='a tensor that requires a gradient'; accepted",
    "F.grayscale(PIL.Image.new('I;16', (3, 3)), 3)": "img='a PIL image of mode I;16 ... 3 channels'; acc",
    "F.invert(torch.zeros(3, 3).half())": "img.dtype='torch.float16'; accepted: uint8, uint16 or float32",
    'F.invert("photo.jpg")': "img='str'; accepted: an array",
    "F.invert(photo()[..., :2])": "img.shape=(64, 80, 2); accepted: ... 1 or 3 channels",
    "F.invert(photo()[None])": "img.shape=(1, 64, 80, 3); accepted",
    "F.invert(photo()[:0])": "img.shape=(0, 80, 3); accepted: at least one pixel",
    "F.invert(torch.zeros(4, 9, 9, dtype=torch.uint8))": "img.shape=(4, 9, 9); ...[channels, height,",
    'F.invert(photo(), device="tpu")': "device: got 'tpu'; accepted: 'cpu'",
    "F.median_blur(photo(), 9)": "kernel_size=9; accepted: an odd integer from 3 to 7",
    "F.motion_blur(photo(), 5, 0, 2)": "direction=2; accepted: a number from -1 to 1",
    "F.normalize(photo(9, 9), 0.5, 0.5, True)": "inplace=True; accepted: False",
    'F.normalize(PIL.Image.new("L", (3, 3)), 0.5, 0.5)': "img='Image'; accepted: an array or a tensor",
    "F.normalize(photo(), (0.5, 0.5), 1)": "mean=(0.5, 0.5); accepted: one number or 3",
    "F.normalize(photo(), 0.5, 0)": "std=0; accepted: numbers greater than 0",
    "F.pad(photo(9, 9), 2 ** 40)": "padding=1099511627776; accepted: an integer, ... up to 1,048,576",
    "F.pad(photo(), -32)": "padding: cuts (64, 64) pixels off an image of (64, 80)... at least one pixel",
    "F.pad(photo(), (1, 2, 3))": "padding=(1, 2, 3); accepted: an integer, or two or four",
    'F.pad(photo(), 1, padding_mode="around")': "padding_mode='around'; accepted: one of 'constant', 'edge'",
    "F.permute_channels(photo(), (0, 1, 1))": "permutation=(0, 1, 1); accepted: the channels 0..2",
    "F.perspective(photo(), [[0, 0]] * 3, None)": "startpoints=...; accepted: four corners",
    "F.perspective(photo(), [[0, NAN]] * 4, [[0, 0]] * 4)": "startpoints=...; accepted: four corners",
    "F.perspective(photo(), [[0, 0]] * 4, [[0, 0]] * 4)": "endpoints=...; ...no three are in line",
    "F.posterize(photo(), 0)": "bits=0; accepted: an integer from 1 to 8",
    "F.posterize(photo(), 2.5)": "bits=2.5; accepted: an integer from 1 to 8",
    "F.resize(photo(), (0, 5))": "size=(0, 5); accepted: None, or a positive integer or a",
    "F.resize(photo(), 5, max_size=5)": "max_size=5; accepted: None, or an integer above size (5) and up to",
    "F.resize(photo(), 5, antialias=2)": "antialias=2; accepted: None, or one of True, False",
    'F.resized_crop(photo(), 0, 0, 5.5, 5, 5, edges="crop")': "edges='crop'; accepted: \"image\" for a box",
    "F.resized_crop(photo(), 0, 0, NAN, 5, 5)": "accepted: a box in pixels",
    "F.rgb_to_grayscale(photo(), 2)": "num_output_channels=2; accepted: 1, or 3 for equal",
    "F.rotate(photo(9, 9), 10 ** 400)": "angle=an integer of 1,329 bits; accepted: a number from -1e+09 to 1e+09",
    "F.rotate(photo(), NAN)": "angle=nan; accepted: a number from -1e+09 to",
    'F.rotate(photo(), "30")': "angle='30'; accepted: a number from -1e+09 to",
    'F.rotate(photo(), 30, "cubic")': "interpolation='cubic'; accepted: one of 'nearest', 'bilinear', 'bicubic'",
    'F.rotate(photo(), 30, fill="red")': "fill='red'; accepted: a level (0..255), or one",
    "F.rotate(photo(), 30, fill=(1, 2))": "fill=(1, 2); accepted",
    "F.rotate(photo(), 30, center=(1,))": "center=(1,); accepted: None, or a pair (x, y)",
    'F.solarize(photo(), "x")': "threshold='x'; accepted: a number from -1e+09 to 1e+09",
    'vg.load_policy("rand-n1000000")': "num_ops=1000000; accepted: an integer from 0 to 64",
    "vg.Augmenter(T.MixUp(num_classes=3))([photo(17, 31)] * 12)": (
        'MixUp: mixes an image with others, ...partners="batch"'
    ),
    "T.MixUp()(photo(17, 31))": "MixUp: mixes an image with others",
    'vg.Augmenter(T.MixUp(num_classes=3))([photo(17, 31)] * 12, partners="batches")': (
        "partners: got 'batches'; accepted: 'batch', or places in the batch"
    ),
    "vg.Augmenter(T.MixUp(num_classes=3))([photo(17, 31)] * 12, partners=[12])": (
        "integers from 0 to 11: 1 for each output"
    ),
    'vg.Augmenter(T.MixUp(num_classes=3))([photo(17, 31)] * 12, labels=[3] * 12, partners="batch")': (
        "labels: got class 3; accepted: 0 to 2 (num_classes=3)"
    ),
    'vg.Augmenter(T.MixUp(num_classes=3))([photo(17, 31), photo(9, 9)], partners="batch")': (
        "MixUp: got an image 17x31 (channels: 3), to be mixed with one 9x9"
    ),
    "T.Compose([T.MixUp(), T.RandomHorizontalFlip(1.0)])": (
        "HorizontalFlip... after MixUp; accepted: RandomHorizontalFlip before MixUp"
    ),
    'vg.Augmenter(T.Identity())([photo(17, 31)] * 12, partners="foo")': (
        "partners: got 'foo' with a transform that mixes nothing; accepted: 'batch'"
    ),
    "vg.Augmenter(T.MixUp()).explain(0, partners=[1, 2])": "partners: got [1, 2]; accepted: 1 ids",
    'vg.Augmenter(T.Identity())([photo(9, 9)] * 2, labels=["a", "b"])': "labels: got ['a', ...; accepted: numbers",
    'T.Cond(by="objects", then=A)': "any_of=None; accepted: a list of classes, here or in all_of or none_of",
    'T.Cond(by="objects", any_of=["text"])': "then=None; accepted: a transform",
    'T.Cond(by="objects", any_of="text", then=A)': "any_of='text'; accepted: a list of classes",
    'T.Cond(by="objects", any_of=[1.5], then=A)': "any_of=[1.5]; accepted: a list of classes",
    'T.Cond(by="objects", cases={0: A})': "cases=...; accepted: any_of, all_of, none_of and then with by='obj",
    'T.Cond(by="label", cases={0: A}, any_of=[1])': "any_of=[1]; accepted: None with by='label'",
    'vg.Augmenter(T.Compose([T.MixUp(), T.CutMix()]))([photo(17, 31)] * 2, partners="batch")': (
        "CutMix after MixUp: an image is mixed once"
    ),
    'vg.Augmenter(T.Compose([T.Lambda(torch.neg, torch.Tensor), T.MixUp()]))([photo(17, 31)] * 2, partners="batch")': (
        "MixUp after Lambda(...which is done to the finished tensor"
    ),
}


@every_refusal(REFUSED)
def test_refused(call: str, message: str) -> None:
    start = time.process_time()
    check_refused(call, message, NAMES)
    # Also calls that would cost time or memory.
    assert time.process_time() - start < 5.0
