"""Run published models: a ResNet names what is in a picture, a GPT-2 goes on with a text.

python -m examples.inference classify IMAGE --weights FILE
python -m examples.inference continue "TEXT" --weights FILE

Each says with `-h` what can be set. The two models, resnet.py and gpt2.py, are plain PyTorch programs but for the name
they import.
"""
