"""Ranks in rows and columns, with a process group along each.

https://pytorch.org/docs/stable/distributed.html → torch.distributed.device_mesh
"""
from __future__ import annotations

import os
from typing import Any

import numpy as np

from .. import api as tg
from . import world as dist

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """The ranks of a program as an array, and a process group for each line of it along each axis.

    https://pytorch.org/docs → DeviceMesh

    device_type: "cpu" or "cuda". mesh: the ranks, an array of any number of axes. mesh_dim_names: a name for each axis;
        then `mesh["dp"]` is the
    line, or the block, through this rank along the axes named. backend_override: a backend's name, or None, for each
    axis. All ranks make equal meshes, in the same order.

    Errors: RuntimeError for more ranks than there are, ValueError for a rank that comes twice.

    >>> import tensorgrad.distributed as dist
    >>> from tensorgrad.distributed.device_mesh import DeviceMesh
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> mesh = DeviceMesh("cpu", [[0]], mesh_dim_names=("dp", "tp"))
    >>> mesh.shape, mesh["tp"].mesh, mesh.get_local_rank("dp")
    ((1, 1), tensor([0], dtype=torch.int32), 0)
    >>> dist.destroy_process_group()
    """

    def __init__(self, device_type: str, mesh: Any = None, *, mesh_dim_names: tuple[str, ...] | None = None,
                 backend_override: tuple[Any, ...] | None = None) -> None:
        if mesh is None:
            raise TypeError("The mesh argument is required except for PRIVATE USAGE ONLY!")
        ranks = np.asarray(mesh.detach().cpu().numpy() if isinstance(mesh, tg.Tensor) else mesh, np.int32)
        if not dist.is_initialized():
            dist.init_process_group()
        world_size = dist.get_world_size()
        if ranks.size > world_size:
            raise RuntimeError(f"Mesh should not be bigger than default world size {world_size}, but found "
                               f"{ranks.size} ranks!")
        if len(np.unique(ranks)) < ranks.size:
            raise ValueError(f"the ranks of a mesh must differ from each other, but got {ranks.tolist()}")
        if backend_override is not None and len(backend_override) != ranks.ndim:
            raise ValueError("backend_override should have the same length as the number of mesh dimensions, but got "
                             f"{len(backend_override)} and {ranks.ndim}.")
        if device_type == "cuda":
            _choose_device()
        strides = tuple(stride // ranks.itemsize for stride in np.ascontiguousarray(ranks).strides)
        self._set_up(device_type, ranks[None], strides, None if mesh_dim_names is None else tuple(mesh_dim_names), None)
        self._groups: list[Any] = [self._line_group(axis, backend)
                                   for axis, backend in enumerate(backend_override or [None] * ranks.ndim)]

    def _set_up(self, device_type: str, blocks: Any, strides: tuple[int, ...], names: tuple[str, ...] | None,
                root: DeviceMesh | None) -> None:
        """blocks: this mesh and those beside it, which other ranks are in, along a first axis."""
        self.device_type, self._blocks, self._strides, self.mesh_dim_names, self._root = (device_type, blocks, strides,
                                                                                          names, root)
        self._flattened: dict[str, DeviceMesh] = {}
        where = np.argwhere(blocks == dist.get_rank())
        self._block = blocks[int(where[0, 0])] if len(where) else blocks[0] if len(blocks) == 1 else None
        self._coordinate = tuple(where[0, 1:].tolist()) if len(where) else None

    def _line_group(self, axis: int, backend: Any) -> Any:
        """Return the group of the line through this rank along an axis.

        All ranks make the groups of all lines, since `new_group` wants that.
        """
        lines = np.moveaxis(self._blocks, axis + 1, -1).reshape(-1, self.shape[axis])
        if len(lines) == 1 and lines[0].tolist() == list(range(dist.get_world_size())) and backend is None:
            return dist.group.WORLD
        name = self.mesh_dim_names[axis] if self.mesh_dim_names else f"dim_{axis}"
        made = [dist.new_group(line.tolist(), backend=backend, group_desc=f"mesh_{name}") for line in lines]
        return next((group for group, line in zip(made, lines) if dist.get_rank() in line), None)

    @staticmethod
    def from_group(group: Any, device_type: str, mesh: Any = None, *,
                   mesh_dim_names: tuple[str, ...] | None = None) -> DeviceMesh:
        """Return the mesh of groups that are there: of one group, its ranks in a line; of several, `mesh`, with a group
        and a name for each axis.
        """
        groups = list(group) if isinstance(group, (list, tuple)) else [group]
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        given = mesh.tolist() if isinstance(mesh, (tg.Tensor, np.ndarray)) else mesh
        if not isinstance(group, (list, tuple)):
            ranks = dist.get_process_group_ranks(group)
            if given is not None and list(given) != ranks:
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {ranks}")
            given = ranks
        elif mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        elif mesh_dim_names is None:
            raise ValueError("Must pass mesh_dim_names if passing multiple ProcessGroups")
        array = np.ascontiguousarray(given, np.int32)
        if array.ndim != len(groups):
            raise ValueError(f"Expects mesh with ndim equal to number of ProcessGroups but got mesh {array.tolist()} "
                             f"and {len(groups)} ProcessGroups")
        made = DeviceMesh.__new__(DeviceMesh)
        names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        made._set_up(device_type, array[None], tuple(stride // array.itemsize for stride in array.strides), names, None)
        made._groups = groups
        return made

    # what it is

    @property
    def mesh(self) -> Any:
        """Return the ranks, as a tensor. RuntimeError for a part of a mesh that this rank is not in."""
        if self._block is None:
            raise RuntimeError("In order to get the mesh Tensor of a DeviceMesh it needs to either have all its "
                               "original dimensions (e.g., no slicing) or it needs to contain the local rank")
        return tg.tensor(self._block)

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self._strides)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return how many ranks there are along each axis."""
        return tuple(self._blocks.shape[1:])

    def size(self, mesh_dim: int | None = None) -> int:
        """Return how many ranks there are, along one axis or in all."""
        return int(np.prod(self.shape)) if mesh_dim is None else self.shape[mesh_dim]

    def __repr__(self) -> str:
        shape = (str(self.shape) if not self.mesh_dim_names
                 else f"({', '.join(f'{name}={n}' for name, n in zip(self.mesh_dim_names, self.shape))})")
        stride = tuple(() if n == 1 else stride for n, stride in zip(self.shape, self._strides))
        detail = f", Mesh: {self.mesh.tolist()}" if os.environ.get("TORCH_DISTRIBUTED_DEBUG") == "DETAIL" else ""
        return f"DeviceMesh({shape}, '{self.device_type}', stride={stride}{detail})"

    def _key(self) -> Any:
        return self._blocks.tobytes(), self._blocks.shape, self._strides, self.device_type, self.mesh_dim_names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    # where this rank is in it

    def get_rank(self) -> int:
        """Return the number of this rank among all."""
        return dist.get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Return the place of this rank along each axis; None if it is not in the mesh."""
        return self._coordinate

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return the place of this rank along one axis, which may be left out if there is but one."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(f"Found the DeviceMesh have {self.ndim} dimensions",
                               "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.")
        return dist.get_rank(self.get_group(mesh_dim or 0))

    # groups

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """Return the process group of the line through this rank along one axis, which may be left out if there is but
        one.
        """
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(f"Found the DeviceMesh have {self.ndim} dimensions",
                               "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                               "If you want to get the list of all the ProcessGroups in the DeviceMesh,please use "
                               "`get_all_groups()` instead.")
        if isinstance(mesh_dim, str):
            if mesh_dim in self._flattened:
                return self._flattened[mesh_dim].get_group()
            if not self.mesh_dim_names:
                raise KeyError("No `mesh_dim_names` found.")
            if mesh_dim not in self.mesh_dim_names:
                raise KeyError(f"Mesh dimension '{mesh_dim}' does not exist.",
                               f"Available mesh dimensions are: mesh_dim_names={self.mesh_dim_names}")
            mesh_dim = self.mesh_dim_names.index(mesh_dim)
        return self._groups[mesh_dim or 0]

    def get_all_groups(self) -> list[Any]:
        """Return the process groups along all axes."""
        return [self.get_group(axis) for axis in range(self.ndim)]

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """Return the part of the mesh through this rank along the axes named, in their order."""
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self.mesh_dim_names:
            return self
        if len(names) == 1 and names[0] in self._flattened:
            return self._flattened[names[0]]
        if not all(name in self.mesh_dim_names for name in names):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are "
                           f"{[*self.mesh_dim_names, *self._flattened]}.")
        axes = [self.mesh_dim_names.index(name) for name in names]
        rest = [axis for axis in range(self.ndim) if axis not in axes]
        blocks = self._blocks.transpose([0, *(axis + 1 for axis in rest + axes)]).reshape(-1,
                                                                                          *(self.shape[axis]
                                                                                            for axis in axes))
        part = DeviceMesh.__new__(DeviceMesh)
        part._set_up(self.device_type, blocks, tuple(self._strides[axis] for axis in axes), names, self._root or self)
        part._groups = [self._groups[axis] for axis in axes]
        return part

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: str | None = None) -> DeviceMesh:
        """Lay all ranks of the mesh out in one line, which the whole mesh then has under a name, of its own or
        "dp_tp".
        """
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name, root = mesh_dim_name or "_".join(self.mesh_dim_names), self._root or self
        if self.ndim == 1 and name in self.mesh_dim_names:
            return self
        if name in (root.mesh_dim_names or ()):
            raise ValueError(f"{name} already exists for submesh of the {root}. ",
                             f"The mesh_dim_names of submesh and flattened mesh are "
                             f"{root.mesh_dim_names}. Please specify another valid mesh_dim_name.")
        blocks = self._blocks.reshape(len(self._blocks), -1)
        known = root._flattened.get(name)
        if known is None:
            known = root._flattened[name] = DeviceMesh.__new__(DeviceMesh)
            known._set_up(self.device_type, blocks, (min(self._strides),), (name,), root)
            known._groups = [known._line_group(0, backend_override)]
        elif not np.array_equal(known._blocks, blocks):
            raise ValueError(f"Flatten mesh with mesh_dim_name {name} has been created before, Please specify another "
                             f"valid mesh_dim_name.")
        return known


def _choose_device() -> None:
    """Let this process use the GPU that its launcher meant it to, unless the program has chosen one."""
    from .. import cuda
    if "LOCAL_RANK" in os.environ and not cuda.is_initialized():
        cuda.set_device(int(os.environ["LOCAL_RANK"]))


def init_device_mesh(device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: tuple[str, ...] | None = None,
                     backend_override: dict[int | str, str] | None = None) -> DeviceMesh:
    """Return the first ranks as a `DeviceMesh` of a shape, in row-major order.

    https://pytorch.org/docs → torch.distributed.device_mesh.init_device_mesh

    Begins with `init_process_group()` if that has not been called. backend_override: the backend of an axis, by its
    number or name.
    """
    names, count = mesh_dim_names, len(mesh_shape)
    if names is not None and len(set(names)) != len(names):
        raise RuntimeError(f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {names}")
    if names is not None and count != len(names):
        raise RuntimeError(f"mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): "
                           f"{len(names)} and len(mesh_shape):{count}.")
    if device_type and not device_type.isalpha():
        raise RuntimeError(f"Device type with index is not supported but got {device_type}. ",
                           "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.")
    backends = None if backend_override is None else _backends(dict(backend_override), names, count)
    return DeviceMesh(device_type, np.arange(int(np.prod(mesh_shape)), dtype=np.int32).reshape(mesh_shape),
                      mesh_dim_names=names, backend_override=backends)


def _backends(given: dict[int | str, str], names: tuple[str, ...] | None, count: int) -> tuple[Any, ...]:
    """Return the backend of each axis, or None."""
    found = []
    for axis in range(count):
        name = names[axis] if names else None
        if name in given and axis in given:
            raise RuntimeError(f"Found redundant dim index {axis} and name {name} in backend_override")
        found.append(given.pop(name, None) or given.pop(axis, None))    # type: ignore[arg-type]
    if given:
        raise RuntimeError(f"Found invalid keys in backend_override: got {list(given)}, expected integers in range [0, "
                           f"{count}) or one of {names or ()}")
    return tuple(found)
