"""Data sets of the paper.

The files are looked for in :func:`data_home`; a missing one raises :class:`DatasetNotFound`,
which says where it was looked for and where to get it.
"""

from experiments.datasets._delft import DELFT, OneClassData, delft_classes, load_delft
from experiments.datasets._folders import (
    ABNORMAL_CLASSES,
    AbnormalImages,
    ImageFiles,
    load_abnormal1001,
    load_caltech256,
)
from experiments.datasets._home import DatasetNotFound, data_home
from experiments.datasets._images import FlowerImage, Mnist, load_flowers17_images, load_mnist
from experiments.datasets._mfeat import load_multiple_features
from experiments.datasets._oulu import OuluProtocol, OuluVideo, load_oulu_npu, oulu_faces

__all__ = [
    "ABNORMAL_CLASSES",
    "DELFT",
    "AbnormalImages",
    "DatasetNotFound",
    "FlowerImage",
    "ImageFiles",
    "Mnist",
    "OneClassData",
    "OuluProtocol",
    "OuluVideo",
    "data_home",
    "delft_classes",
    "load_abnormal1001",
    "load_caltech256",
    "load_delft",
    "load_flowers17_images",
    "load_mnist",
    "load_multiple_features",
    "load_oulu_npu",
    "oulu_faces",
]
