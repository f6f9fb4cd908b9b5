"""Networks as graphs of symbols, whose shapes are inferred while a model is built."""
from . import config, graph_algorithms, model_tools, useful_layers
from .config import optimize_module_calls
from .data import SymbolicCallable, SymbolicData, SymbolicTensor
from .drawing import draw_graph
from .functions_utility import add_to_graph, add_to_model
from .inputs import CustomInput, Input
from .model import DetachedSymbolicModel, SymbolicModel
from .pictures import picture

__all__ = ["CustomInput", "DetachedSymbolicModel", "Input", "SymbolicCallable", "SymbolicData", "SymbolicModel",
           "SymbolicTensor", "add_to_graph", "add_to_model", "config", "draw_graph", "graph_algorithms", "model_tools",
           "optimize_module_calls",
           "picture", "useful_layers"]
