"""Programs to run and to read, in order of size:

python -m examples.xor
python -m examples.graph
python -m examples.mnist.cnn.train
python -m examples.mnist.vit.train
python -m examples.chargpt.train
python -m examples.inference

Each says with `-h` what can be set. They are plain PyTorch programs but for the name they import.
"""
