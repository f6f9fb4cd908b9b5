"""torch.utils.model_zoo: the older name of torch.hub.load_state_dict_from_url."""
from typing import Any

from .. import hub
from ..hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


def __getattr__(name: str) -> Any:
    """Import tqdm on access, for programs that import it from here."""
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return hub.tqdm
