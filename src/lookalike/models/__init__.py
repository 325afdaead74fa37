"""Networks that turn images into embeddings: backbones by name, the embedder around them, models saved as a folder."""

from lookalike.models.architecture import Architecture
from lookalike.models.backbones import ADAPTERS, MEMBERS, available, build, names
from lookalike.models.bn_inception import BNInception
from lookalike.models.conv4 import Conv4
from lookalike.models.efficientnet_lite import EfficientNetLite0
from lookalike.models.embedder import Embedder
from lookalike.models.export import export_onnx
from lookalike.models.freezing import Unfreezing, up_to
from lookalike.models.googlenet import GoogLeNet
from lookalike.models.model import Model
from lookalike.models.preprocess import Preprocessing
from lookalike.models.resnet import ResNet18, ResNet50

__all__ = [
    "ADAPTERS",
    "MEMBERS",
    "Architecture",
    "BNInception",
    "Conv4",
    "EfficientNetLite0",
    "Embedder",
    "GoogLeNet",
    "Model",
    "Preprocessing",
    "ResNet18",
    "ResNet50",
    "Unfreezing",
    "available",
    "build",
    "export_onnx",
    "names",
    "up_to",
]
