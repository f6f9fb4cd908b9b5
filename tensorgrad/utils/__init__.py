"""Helpers around training (PyTorch: ``torch.utils``): ``checkpoint``, ``data``, ``hooks``, …"""
import importlib

__all__ = ['checkpoint', 'data', 'hooks']


def __getattr__(name: str):
    """Import a submodule when it is first asked for."""
    try:
        return importlib.import_module(f'{__name__}.{name}')
    except ModuleNotFoundError as error:
        if error.name != f'{__name__}.{name}':
            raise
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}') from None
