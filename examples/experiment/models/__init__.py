"""Models of these experiments: importing a module registers what it defines."""
from . import chargpt, cnn, fields, gan
