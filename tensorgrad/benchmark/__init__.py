"""`python -m tensorgrad.benchmark model.py:make` or `model.onnx`: how fast a model runs, eager and compiled, beside
PyTorch, onnxruntime and OpenVINO where they are installed.

A process measures each library (`measuring.py`); `timing.py` lets them take turns.
"""
