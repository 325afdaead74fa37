"""Networks that turn images into embeddings: backbones by name, the embedder around them, models saved as a folder.

Every backbone is called as `forward(images, after=None)`: `images` n × channels × rows × columns as its preprocessing
leaves them; `after(stage, features)` is called after each stage, and what it returns goes on. `weights`: None (random),
"pretrained", or a file. `progress(done, total)` is called.
"""

from lookalike.models.architecture import Architecture
from lookalike.models.backbones import ADAPTERS, MEMBERS, available, build, names
from lookalike.models.backbones.bn_inception import BNInception
from lookalike.models.backbones.conv4 import Conv4
from lookalike.models.backbones.efficientnet_lite import EfficientNetLite0, EfficientNetLite1, EfficientNetLite2
from lookalike.models.backbones.googlenet import GoogLeNet
from lookalike.models.backbones.pixels import Pixels
from lookalike.models.backbones.resnet import ResNet18, ResNet50
from lookalike.models.embedder import Embedder
from lookalike.models.export import export_onnx
from lookalike.models.freezing import Unfreezing, up_to
from lookalike.models.model import Model
from lookalike.models.preprocess import Preprocessing
from lookalike.models.readout import Readout, principal_axes

__all__ = [
    "ADAPTERS",
    "MEMBERS",
    "Architecture",
    "BNInception",
    "Conv4",
    "EfficientNetLite0",
    "EfficientNetLite1",
    "EfficientNetLite2",
    "Embedder",
    "GoogLeNet",
    "Model",
    "Pixels",
    "Preprocessing",
    "Readout",
    "ResNet18",
    "ResNet50",
    "Unfreezing",
    "available",
    "build",
    "export_onnx",
    "names",
    "principal_axes",
    "up_to",
]
