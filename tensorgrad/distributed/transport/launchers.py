"""Find the launcher that started this process as a rank: those of MPI libraries and Slurm set environment variables."""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Launch", "launched"]


class Launch(NamedTuple):
    """Place of a process among those that a launcher started; −1 for a number that the launcher does not publish."""

    launcher: str
    rank: int
    size: int
    local_rank: int     # among the processes of this machine
    local_size: int


# (launcher, variables of rank, size, local rank, local size); the first whose rank is set counts. PMI's variables come
# from MPICH, Intel MPI, MPICH's descendants, and Slurm where it serves PMI-2.
VARIABLES = (
    ("Open MPI's mpiexec", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("MVAPICH's mpiexec", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"),
    ("a launcher that speaks PMI (mpiexec of MPICH or Intel MPI)", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS"),
)


def launched(variables: Mapping[str, str] | None = None) -> Launch | None:
    """Return the place of this process among those that mpiexec or srun started; None without a launcher.

    >>> launched({"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"})[1:]
    (1, 4, 1, 2)
    >>> launched({"SLURM_STEP_ID": "0", "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1"})
    Launch(launcher="Slurm's srun", rank=5, size=8, local_rank=1, local_size=-1)
    >>> launched({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}) is None         # the script of a job, which is no task of it
    True
    """  # noqa: E501
    given = os.environ if variables is None else variables

    def number(*names: str) -> int:
        return next((int(given[name]) for name in names if given.get(name, "").isdecimal()), -1)
    for launcher, rank, size, local_rank, local_size in VARIABLES:
        if number(rank) >= 0:
            return Launch(launcher, number(rank), number(size), number(local_rank, "SLURM_LOCALID"), number(local_size))
    if number("SLURM_STEP_ID") >= 0 and number("SLURM_PROCID") >= 0:
        return Launch("Slurm's srun", number("SLURM_PROCID"), number("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
                      number("SLURM_LOCALID"), -1)
    if number("PMIX_RANK") >= 0:
        return Launch("a launcher that speaks PMIx", number("PMIX_RANK"), -1, number("PMIX_LOCAL_RANK"), -1)
    return None
