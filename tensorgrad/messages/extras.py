"""The extras of the distribution, and the packages that each stands for: what a message tells to install has to be what
an index has.
"""

EXTRAS = {"viz": "matplotlib pillow", "plot": "matplotlib", "cuda12": "cupy-cuda12x", "cuda13": "cupy-cuda13x",
          "bfloat16": "ml_dtypes", "mpi": "mpi4py", "mpich": "mpi4py mpich", "onnx": "onnx", "tensorboard": "pillow",
          "experiment": "pyyaml tqdm",
          "yaml": "pyyaml"}


def install(extra: str) -> str:
    """The command that installs the packages of an extra.

    >>> install("viz")
    'pip install matplotlib pillow (the extra [viz])'
    """
    return f"pip install {EXTRAS[extra]} (the extra [{extra}])"
