from variegate import math as math
from variegate import policies as policies
from variegate import transforms as transforms
from variegate.apps.check.checking import check as check
from variegate.apps.check.cleaning import clean as clean
from variegate.apps.check.findings import CheckResult as CheckResult
from variegate.apps.doctor import doctor as doctor
from variegate.apps.studio import studio as studio
from variegate.augmenter.augmenter import Augmenter as Augmenter
from variegate.checks import PIXEL_VERSION as PIXEL_VERSION
from variegate.data.opening import open_source as open_source
from variegate.data.sample_photos import sample_images as sample_images
from variegate.data.statistics import dataset_statistics as dataset_statistics
from variegate.decode.dicom import Dicom as Dicom
from variegate.decode.entropy.index import EntropyIndex as EntropyIndex
from variegate.errors import DecodeError as DecodeError
from variegate.errors import DeviceMemoryError as DeviceMemoryError
from variegate.executors.runners.images import RaggedBatch as RaggedBatch
from variegate.interop.convert import from_albumentations as from_albumentations
from variegate.interop.convert import from_timm as from_timm
from variegate.interop.convert import from_torchvision as from_torchvision
from variegate.interop.convert import targets_from_albumentations as targets_from_albumentations
from variegate.interop.items import WithIds as WithIds
from variegate.interop.torch_data import Collate as Collate
from variegate.interop.torch_data import as_transform as as_transform
from variegate.jobs.engine import Engine as Engine
from variegate.jobs.pack import pack as pack
from variegate.learn.attribution import attribution as attribution
from variegate.learn.model_file import load_model as load_model
from variegate.learn.race import race as race
from variegate.learn.search import search as search
from variegate.loader import Batch as Batch
from variegate.loader import Loader as Loader
from variegate.loader import Mixture as Mixture
from variegate.loader import TooManyErrors as TooManyErrors
from variegate.loader.buckets import AspectBuckets as AspectBuckets
from variegate.loader.options import ProcessWorkers as ProcessWorkers
from variegate.loader.options import RayWorkers as RayWorkers
from variegate.pipelines import PipelineError as PipelineError
from variegate.pipelines import choice as choice
from variegate.pipelines import coin as coin
from variegate.pipelines import normal as normal
from variegate.pipelines import pipeline as pipeline
from variegate.pipelines import randint as randint
from variegate.pipelines import select as select
from variegate.pipelines import uniform as uniform
from variegate.policies import load_policy as load_policy
from variegate.program.draws.trace import trace as trace
from variegate.targets.settings import Targets as Targets
from variegate.workers.protocol import EngineError as EngineError

__all__: list[str]
__version__: str
IMAGENET_MEAN: tuple[float, float, float]
IMAGENET_STD: tuple[float, float, float]
