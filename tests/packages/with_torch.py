"""Run a program, or `-m module`, over PyTorch, as `python -m tensorgrad` does over tensorgrad.

torchvision's compiled operators are built against PyTorch's CUDA build, and not loaded with the CPU build; its Python
parts only ask that two of them be declared.
"""
import os
import runpy
import sys

import torch

library = torch.library.Library("torchvision", "DEF")
for operator in ("nms", "qnms"):
    library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

if __name__ == "__main__":
    del sys.argv[0]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        sys.path[0] = os.getcwd()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")
