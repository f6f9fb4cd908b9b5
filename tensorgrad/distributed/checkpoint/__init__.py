"""torch.distributed.checkpoint: state of several processes, saved on some ranks and loaded on others.

https://pytorch.org/docs/stable/distributed.checkpoint.html

Checkpoints are folders in PyTorch's layout: each library reads the other's. Reading runs nothing that is in them.
"""
from ...messages.missing_names import missing
from .api import CheckpointException
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorStorageMetadata
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import async_save, save, save_state_dict
from .storage import StorageReader, StorageWriter

__all__ = ["BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "DefaultLoadPlanner",
           "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter", "LoadPlan", "LoadPlanner", "Metadata",
           "ReadItem", "SavePlan", "SavePlanner", "StorageReader", "StorageWriter", "TensorStorageMetadata",
           "WriteItem", "async_save", "load", "load_state_dict", "save", "save_state_dict"]

__getattr__ = missing(__name__)
